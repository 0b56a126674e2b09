"""The plan of a report's comparisons: questions, and the methods that answer each.

If hyperparameters are declared to be methods, such as the model, methods that differ in any of them are compared at
each value of all others. If a hyperparameter is swept, methods are also compared on average over its values that all of
them have.

Otherwise, one factor is varied at a time. With up to three factors, a factor's values are compared at each setting of
all other hyperparameters. With more, that would be hundreds of tests. A factor's values are then compared once, on
average over the settings of all other hyperparameters that every value has. A hyperparameter that some models don't
have forms one factor with the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from study import words
from study.comparisons.methods import Method, methods_of
from study.summaries import series
from study.summaries.rows import ResultRows


@dataclass(frozen=True)
class Statement:
    """A comparison that a user asks for.

    Args:
        factor: the keys in which methods differ.
        tune: the keys whose best values each method uses; empty if nothing is tuned.
    """

    factor: tuple[str, ...]
    tune: tuple[str, ...] = ()


MOST_FACTORS = 3
"""The greatest number of factors whose values are compared at each setting of all else."""
MOST_PAIRS = 2000
"""The greatest number of pairs of methods that are tested: more aren't read, and have no power after the correction."""


@dataclass(frozen=True)
class Question:
    """Methods that are compared pairwise.

    Args:
        name: their common values, for readers; empty for all of the report.
        methods: at least one; with a single one there is nothing to compare.
        swept: the hyperparameter over which rows are averaged; empty if there is none.
        factor: the keys in which the methods differ, if factors are varied one at a time; else empty.
        settings: the number of settings of all other hyperparameters in the average; 0 without an average.
        tuned: the hyperparameters whose best values each method uses; empty if there are none.
    """

    name: str
    methods: tuple[Method, ...]
    swept: str = ""
    factor: tuple[str, ...] = ()
    tuned: tuple[str, ...] = ()
    settings: int = 0


@dataclass(frozen=True)
class ComparisonPlan:
    """All comparisons between the rows of a report: one family of tests.

    Args:
        by_row: questions whose methods are single rows.
        by_method: the questions of the headline; some of them may be in `by_row`.
        x: the swept hyperparameter; ``model`` if there is none.
    """

    by_row: tuple[Question, ...]
    by_method: tuple[Question, ...]
    x: str

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions, each once."""
        return tuple(dict.fromkeys([*self.by_row, *self.by_method]))

    @property
    def pairs_count(self) -> int:
        """The number of pairs of methods."""
        return sum(math.comb(len(question.methods), 2) for question in self.questions)

    def pairs(self) -> list[tuple[Question, Method, Method]]:
        """List the pairs of methods, question by question."""
        return [(question, *pair) for question in self.questions for pair in combinations(question.methods, 2)]


def comparison_plan(rows: ResultRows, statements: Sequence[Statement] = ()) -> ComparisonPlan:
    """Plan the comparisons between the rows with judged trials or, without success rates, with ended ones.

    Args:
        rows: the rows of a report.
        statements: the comparisons that the user asks for; none for the default.

    Raises:
        InputError: if the vocabulary of an installed package can't be imported.
    """
    among = rows.judged() if rows.has_rates else rows.ended()
    if statements:
        stated = [question for statement in statements for question in _stated(rows, among, statement)]
        return ComparisonPlan(tuple(q for q in stated if not q.tuned), tuple(stated), "model")
    if not rows.is_declared and len(factors := _factors(rows)) > MOST_FACTORS:
        averaged = tuple(question for factor in factors for question in _averaged(rows, among, factor))
        return ComparisonPlan((), averaged, "model")
    if not rows.is_declared and len(factors) > 1:
        questions = tuple(question for factor in factors for question in _questions(rows, among, factor, factor))
        return ComparisonPlan(questions, questions, "model")
    by_row = _questions(rows, among, rows.method_keys)
    x = _swept(rows, among)
    by_method = _by_method(rows, among, x)
    same = {tuple(method.rows for method in question.methods): question for question in by_row}
    return ComparisonPlan(
        by_row,
        tuple(same.get(tuple(method.rows for method in question.methods), question) for question in by_method),
        x,
    )


def _stated(rows: ResultRows, among: Sequence[int], statement: Statement) -> list[Question]:
    """Make the questions of a statement: one for each setting of the unnamed keys that has two methods or more."""
    other_keys = [key for key in rows.varying() if key not in (*statement.factor, *statement.tune)]
    questions = []
    for members in rows.alike(other_keys, among).values():
        methods = rows.alike(statement.factor, members).values()
        named = tuple(Method(rows.name(group[0], statement.factor), tuple(group)) for group in methods)
        if len(named) > 1:
            questions.append(Question(rows.name(members[0], other_keys), named, tuned=statement.tune))
    return questions


def _factors(rows: ResultRows) -> list[tuple[str, ...]]:
    """List the factors: keys, or the model together with the keys that some models don't have."""
    compared = rows.method_keys
    partial = [key for key in compared if any(rows.value(row, key) is None for row in range(len(rows.values)))]
    together = tuple(key for key in compared if key == "model" or key in partial) if partial else ()
    return [*([together] if together else []), *((key,) for key in compared if key not in together)]


def _questions(
    rows: ResultRows, among: Sequence[int], methods: Sequence[str], factor: tuple[str, ...] = ()
) -> tuple[Question, ...]:
    """Make a question of the rows that differ only in the given keys; rows without a counterpart are left out."""
    other_keys = [key for key in rows.varying() if key not in methods]
    return tuple(
        Question(
            rows.name(members[0], other_keys),
            tuple(Method(rows.name(row, methods), (row,)) for row in members),
            "",
            factor,
        )
        for members in rows.alike(other_keys, among).values()
        if len(members) > 1
    )


def _averaged(rows: ResultRows, among: Sequence[int], factor: tuple[str, ...]) -> list[Question]:
    """Ask which value of a factor is best on average over the settings of all else that are complete for every value.

    The result has one question, or none without such a setting.
    """
    other_keys = [key for key in rows.varying() if key not in factor]
    levels = rows.alike(factor, among)
    settings = [
        members
        for members in rows.alike(other_keys, among).values()
        if len(members) == len(levels) and all(rows.summaries[row].complete for row in members)
    ]
    kept = {row for members in settings for row in members}
    methods = [
        Method(rows.name(group[0], factor), tuple(row for row in group if row in kept)) for group in levels.values()
    ]
    name = f"the average over {words.count_of(len(settings), 'setting')} of all else"
    return [Question(name, tuple(methods), factor=factor, settings=len(settings))] if settings else []


def _swept(rows: ResultRows, among: Sequence[int]) -> str:
    """Return the hyperparameter over whose values rows are averaged; ``model`` if there is none."""
    x = series.x_axis(rows)
    if x not in rows.keys or not rows.is_number[rows.keys.index(x)]:
        return "model"  # names aren't swept: each is a question or a method of its own
    if x in rows.methods and not methods_of(rows, among, x, ()):
        return "model"  # not all methods have it: each of its values makes a method
    return x


def _by_method(rows: ResultRows, among: Sequence[int], x: str) -> tuple[Question, ...]:
    """Make a question of each setting of the question's keys but x, with rows averaged over x."""
    keys = [key for key in rows.question_keys if key != x]
    questions = []
    for members in rows.alike(keys, among).values():
        methods = methods_of(rows, members, x, keys)
        is_averaged = any(len(method.rows) > 1 for method in methods)
        questions.append(Question(rows.name(members[0], keys), methods, x if is_averaged else ""))
    return tuple(questions)
