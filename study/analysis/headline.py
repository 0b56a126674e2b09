"""The finding in a sentence, computed from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from study import statistics, words
from study.analysis import series
from study.analysis.contrasts import Contrasts, TrendTest
from study.analysis.rows import ResultRows
from study.analysis.search import SearchFindings
from study.analysis.summary import Summary

LEVEL = 0.05
"""A trend is reported as one if its adjusted p-value is below this."""

_MOST_QUESTIONS = 4


@dataclass(frozen=True)
class _Method:
    """Rows that differ only in what is swept, in ascending order of its values; some of them are compared."""

    name: str
    rows: tuple[int, ...]
    solved: int
    finished: int

    @property
    def rate(self) -> float:
        return self.solved / self.finished

    @property
    def label(self) -> str:
        """The name with all but the model in brackets, since commas separate methods here."""
        first, comma, rest = self.name.partition(", ")
        return f"{first} ({rest})" if comma else self.name


def headline(rows: ResultRows, contrasts: Contrasts) -> str:
    """Return a sentence on which method succeeds most often, and how its success and its time change with the sweep.

    Methods are compared within a question (an operation, a range, ...), over the swept values at which all of them
    have finished trials.

    Args:
        rows: the results of the trials.
        contrasts: their trends.
    """
    finished = rows.finished()
    if not finished:
        return "No trial has finished yet."
    if not any(rows.summaries[row].solved for row in finished):
        return f"None of {count_of(sum(rows.summaries[row].finished for row in finished), 'trial')} was solved."
    x = series.x_axis(rows)
    if x not in rows.keys or not rows.is_number[rows.keys.index(x)]:
        x = "model"  # names aren't swept: a different name is a different question or a different method
    question_keys = [key for key in rows.varying() if key not in rows.methods and key != x]
    questions = rows.alike(question_keys, finished)
    if len(questions) == 1:
        parts = _in_full(rows, finished, x, contrasts)
    else:
        first = list(questions.values())[:_MOST_QUESTIONS]
        parts = [
            f"at {rows.name(some[0], question_keys)}, {_most_often(_methods(rows, some, x, question_keys))}"
            for some in first
        ]
        more = len(questions) - len(first)
        parts += [f"and {more} questions more"] if more else []
        parts[0] = parts[0][0].upper() + parts[0][1:]
    incomplete = sum(not s.complete for s in rows.summaries)
    if incomplete:
        parts.append(f"incomplete: {incomplete} of {count_of(len(rows.summaries), rows.noun)}")
    return "; ".join(part for part in parts if part) + "."


def search_headline(search: SearchFindings, rows: Sequence[Summary]) -> str:
    """Return a sentence on what a search found, and on how good its best candidate is by fresh seeds alone.

    Args:
        search: the search and its candidates.
        rows: the summaries of the candidates that were confirmed, the best first.
    """
    effort = f"{len(search.candidates)} candidates in {search.trials:,} trials"
    if not search.is_over:
        return f"The search goes on: {effort} so far, of {search.budget:,}."
    best = rows[0]
    if best.success_rate is None or best.success_rate_interval is None:
        return f"The best of {effort} is yet to be confirmed with fresh seeds."
    low, high = best.success_rate_interval
    parts = [
        f"The best of {effort} solves {best.solved} of {best.finished} ({words.rate(best.success_rate)}, {low:.2f} to "
        f"{high:.2f}) with fresh seeds"
    ]
    parts += [] if best.complete else [f"incomplete: {best.seeds - best.finished} of them are missing"]
    parts += [f"{len(rows)} candidates of its front were confirmed"] if len(rows) > 1 else []
    return "; ".join(parts) + "."


def count_of(number: int, noun: str) -> str:
    """Write a number of things.

    Example:
        >>> count_of(1, "trial"), count_of(1200, "trial")
        ('1 trial', '1,200 trials')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _in_full(rows: ResultRows, finished: Sequence[int], x: str, contrasts: Contrasts) -> list[str]:
    methods = _methods(rows, finished, x, ())
    parts = [_most_often(methods)]
    best = _best(methods)
    if len(best) != 1:
        return parts
    (first,) = best
    if len(first.rows) == 1:
        return [*parts, _solved_at(rows.summaries[first.rows[0]])]
    trend = next((t for t in contrasts.trends if t.key == x and t.name == first.name), None)
    return [*parts, _changes(rows, first.rows, x, trend), _time(rows, first.rows, x)]


def _methods(rows: ResultRows, finished: Sequence[int], x: str, question_keys: Sequence[str]) -> list[_Method]:
    """Group rows that differ only in x into methods, and count over the values of x that all methods have."""
    rest = [key for key in rows.varying() if key not in question_keys and (key != x or x == "model")]
    rank = {level: i for i, level in enumerate(series.levels(rows, x))}
    groups = rows.alike(rest, finished)
    for members in groups.values():
        members.sort(key=lambda row: rank.get(rows.value(row, x), 0))
    compared = _rows_in_common(rows, groups, x) if x != "model" else groups
    return [
        _Method(
            name=rows.name(members[0], rest),
            rows=tuple(members),
            solved=sum(rows.summaries[row].solved for row in compared[key]),
            finished=sum(rows.summaries[row].finished for row in compared[key]),
        )
        for key, members in groups.items()
        if compared[key]
    ]


def _rows_in_common(
    rows: ResultRows, groups: Mapping[tuple[Any, ...], Sequence[int]], x: str
) -> dict[tuple[Any, ...], list[int]]:
    """Select the rows at values of x that all groups have; if there is no such value, nothing can be compared."""
    levels = [{rows.value(row, x) for row in members} for members in groups.values()]
    common = set.intersection(*levels)
    return {key: [row for row in members if rows.value(row, x) in common] for key, members in groups.items()}


def _best(methods: Sequence[_Method]) -> list[_Method]:
    most = max((method.rate for method in methods), default=0.0)
    return [method for method in methods if method.rate == most > 0]


def _most_often(methods: Sequence[_Method]) -> str:
    if not methods:
        return "no two methods were tried at the same values of what is swept"
    best = _best(methods)
    if not best:
        return "nothing was solved"
    first = best[0]
    rate = f"{first.solved:,} of {first.finished:,} trials ({words.percent(first.rate)})"
    if len(methods) == 1:
        return f"{first.label}: {rate} were solved" if first.name else f"{rate} were solved"
    others = sorted((method for method in methods if method not in best), key=lambda method: -method.rate)
    if len(best) > 1:
        number = "both" if len(best) == 2 else "all"
        return f"{_and([m.label for m in best])} {number} solved {words.percent(first.rate)} of their trials"
    second = others[0]
    low, _ = statistics.newcombe(first.solved, first.finished, second.solved, second.finished)
    chance = " (which may be chance)" if low <= 0 else ""
    rates = [f"{method.label} {words.percent(method.rate)}" for method in others[:2]]
    rates += [count_of(len(others) - 2, "other") + " less"] if len(others) > 2 else []
    return f"{first.label} succeeds most often{chance}, in {rate}, {_and(rates)}"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _changes(rows: ResultRows, members: Sequence[int], x: str, trend: TrendTest | None) -> str:
    first, last = (rows.summaries[row] for row in (members[0], members[-1]))
    here, there = (words.percent(s.solved / s.finished) for s in (first, last))
    at_first, at_last = (words.show_value(x, rows.value(row, x)) for row in (members[0], members[-1]))
    name = words.title(x)
    if trend is None:
        return f"its success rate is {here} at {name} {at_first} and {there} at {at_last}"
    p = words.p_value(trend.p_adjusted)
    test = f"trend p {p if p.startswith('<') else f'= {p}'} after Holm"
    if trend.p_adjusted >= LEVEL:
        return f"no trend with {name} was detected ({here} at {at_first}, {there} at {at_last}; {test})"
    verb = "grows" if trend.z > 0 else "falls"
    return f"its success rate {verb} with {name}, from {here} at {at_first} to {there} at {at_last} ({test})"


def _time(rows: ResultRows, members: Sequence[int], x: str) -> str:
    there = [row for row in members if rows.summaries[row].solved_at_mean is not None]
    if len(there) < 2:
        return ""
    first, last = there[0], there[-1]
    at = [words.show_value(x, rows.value(row, x)) for row in (first, last)]
    means = [words.iterations(rows.summaries[row].solved_at_mean) for row in (first, last)]
    return f"solved trials take {means[0]} iterations on average at {at[0]} and {means[1]} at {at[1]}"


def _solved_at(summary: Summary) -> str:
    if summary.solved_at_mean is None:
        return ""
    return f"solved trials take {words.iterations(summary.solved_at_mean)} iterations on average"
