"""Validation of outcomes: every mistake of a source, with its row and column."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import hyperparameters_of
from study.interface.declarations import Metric
from study.outcomes.columns import ALIASES, NUMBERS, OUTCOME_SCHEMA, own_name
from study.outcomes.files import Source
from study.outcomes.run_names import seed_names
from study.outcomes.separated import MISSING
from study.outcomes.wanted import Success, Wanted, question
from study.records import LEAST_SEED, Outcome
from study.summaries.metrics import averaged
from study.words import count_of

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

_SOLVED = {"true": Outcome.SOLVED, "1": Outcome.SOLVED, "false": Outcome.UNSOLVED, "0": Outcome.UNSOLVED}
_SOLVED |= {"1.0": Outcome.SOLVED, "0.0": Outcome.UNSOLVED}
_MOST_LISTED = 10


def checked(source: Source, mistakes: list[str], wanted: Wanted, notices: list[str]) -> pa.Table | None:
    """Return a source's checked outcomes, and append its mistakes and notices to lists.

    Args:
        source: the source as it was read.
        mistakes: a list that gets a line for each mistake, up to ten of each kind, and a line that counts the others.
            If columns are missing, only these are listed.
        wanted: user-supplied roles of its columns.
        notices: a list that gets sentences for the reader.

    Returns:
        The columns of `OUTCOME_SCHEMA`, then those of its metrics; None if the source has mistakes, or a wanted metric
        has no direction.
    """
    names = source.table.column_names
    if lacking := _lacking(source, wanted):
        mistakes += lacking
        return None
    declared: dict[str, Metric] = {**wanted.known, **source.metrics, **wanted.metrics}
    metrics = averaged({name: metric for name, metric in declared.items() if name in names})
    reading = _Reading(source, mistakes, notices)
    before = len(mistakes)
    seed = reading.seed()
    numbers = {name: reading.numbers(name, own_name(name, names)) for name in NUMBERS}
    values = {name: reading.metric(name, metric) for name, metric in metrics.items()}
    outcome = reading.outcome(wanted)
    if wanted.covariate is not None:
        reading.numbers(wanted.covariate, wanted.covariate, -np.inf, is_finite=False)
    required = {name: values[name] for name, metric in metrics.items() if metric.of == "solved"}
    reading.check_solved(outcome, numbers, required)
    if len(mistakes) == before:
        mistakes += [f"  {question(name)}" for name in wanted.undirected]
    if len(mistakes) > before:
        return None
    content: dict[str, Any] = {name: pa.array(values, from_pandas=True) for name, values in numbers.items()}
    content |= {"seed": seed, "outcome": outcome, "stopped_early": reading.stopped_early()}
    table = pa.table([pc.cast(content[field.name], field.type) for field in OUTCOME_SCHEMA], schema=OUTCOME_SCHEMA)
    for name, numbers_of_metric in values.items():
        table = table.append_column(name, pa.array(numbers_of_metric, pa.float64(), from_pandas=True))
    return table


def _lacking(source: Source, wanted: Wanted) -> list[str]:
    """Describe the required columns that a source lacks."""
    names = source.table.column_names
    there = f"; choose from {', '.join(names)}"
    lacking = [f"  no column seed{there}{_hint_of_seeds(source)}"] if "seed" not in names else []
    for name in wanted.columns:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            lacking.append(f"  no column {name}{f'; did you mean {near[0]}?' if near else there}")
    if not wanted.says_outcome and "solved" not in names and "outcome" not in names:
        candidates = _candidates(source.table)
        example = candidates[0] if candidates else "COLUMN"
        numbers = f"; its columns of numbers are {', '.join(candidates)}" if candidates else ""
        lacking.append(
            f"  no column solved or outcome: give a success criterion, as in --success '{example} < 0.01', or a "
            f"metric to average, as in --metric {example}{numbers}"
        )
    return lacking


def _hint_of_seeds(source: Source) -> str:
    """Return the end of a sentence that names a column of seeds; empty without a candidate."""
    candidates = seed_names(source.table.column_names)
    return f"; `study import csv {source.name}` takes {candidates[0]} as the seed" if candidates else ""


def _candidates(table: pa.Table) -> list[str]:
    """List the varying columns of numbers that may be metrics, those with the most values first.

    A column counts as a hyperparameter if each of its values occurs with several seeds, and at least half of all seeds.
    """
    others = {alias for aliases in ALIASES.values() for alias in aliases} | {*hyperparameters_of(table)}
    counts = {
        name: len(pc.unique(table[name]))
        for name in table.column_names
        if name not in others and _are_numbers(table[name])
    }
    varying = [name for name, count in counts.items() if count > 1 and not _is_crossed(table, name)]
    return sorted(varying, key=lambda name: -counts[name])


def _is_crossed(table: pa.Table, name: str) -> bool:
    """Return True if each value of a column occurs with several seeds, and with at least half of all seeds."""
    if "seed" not in table.column_names:
        return False
    seeds = len(pc.unique(table["seed"]))
    pairs = pa.table({"value": table[name], "seed": table["seed"]})
    fewest = pc.min(pairs.group_by("value").aggregate([("seed", "count_distinct")])["seed_count_distinct"]).as_py()
    return bool(fewest > 1 and 2 * fewest >= seeds)


def _are_numbers(column: pa.ChunkedArray) -> bool:
    """Return True for a numeric column, and for texts that are all numbers or stand for missing values."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return True
    if not _is_text(kind):
        return False
    different = pc.drop_null(pc.unique(column))
    different = different.dictionary_decode() if pa.types.is_dictionary(different.type) else different
    text = pa.chunked_array([_text(different)])
    return bool(len(text)) and not np.any(np.asarray(pc.is_null(_parse(text))) & ~_is_missing(text))


class _Reading:
    """Reader of a source that collects its mistakes and notices."""

    def __init__(self, source: Source, mistakes: list[str], notices: list[str]) -> None:
        self._source = source
        self._failed = np.zeros(source.table.num_rows, bool) if source.failed is None else source.failed
        self._mistakes, self._notices = mistakes, notices
        self._refused: dict[str, Rows] = {}

    def seed(self) -> pa.ChunkedArray:
        """Read the seeds without rounding; refuse all but whole numbers, and negative ones except in a study."""
        column = self._source.table["seed"]
        try:
            source = column if pa.types.is_integer(column.type) else _by_value(column, _text)
            seeds = pc.cast(source, pa.int64())
        except pa.ArrowInvalid:  # a text such as 3.0 or x: each distinct text is parsed by itself
            seeds = _each(_text(column), _whole, pa.int64())
        # a study's seeds may be below 0, if each source of randomness has its own
        least = LEAST_SEED if self._source.metrics else 0
        wrong = pc.fill_null(pc.less(seeds, least), True)
        problem = "isn't a seed of a study, single or combined" if self._source.metrics else "isn't a whole number >= 0"
        self.refuse(np.asarray(wrong), "seed", problem)
        return seeds

    def metric(self, name: str, metric: Metric) -> Floats:
        """Read a metric: finite and within its lower limit for metrics of solved trials, otherwise any number."""
        if metric.of == "solved":
            return self.numbers(name, name, -np.inf if metric.low is None else metric.low)
        return self.numbers(name, name, -np.inf, is_finite=False)

    def numbers(self, name: str, own: str | None, least: float = 0.0, *, is_finite: bool = True) -> Floats:
        """Read a column of numbers, with NaN for missing values, and record invalid ones as mistakes.

        Args:
            name: the column's name in `OUTCOME_SCHEMA`, or the metric's name.
            own: its name in the source; None if the source lacks it.
            least: the smallest valid number.
            is_finite: True if infinity is invalid.
        """
        if own is None:
            return np.full(self._source.table.num_rows, np.nan)
        column = self._source.table[own]
        kind = column.type
        if not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            self._mistakes.append(f"  column {own} holds {kind}, but must hold numbers")
            return np.full(len(column), np.nan)
        try:
            parsed = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:  # a text isn't a number
            text = _text(column)
            parsed = _parse(text)
            self.refuse(np.asarray(pc.is_null(parsed)) & ~_is_missing(text), own, "isn't a number")
        values = np.asarray(pc.fill_null(parsed, np.nan))
        if is_finite:
            self.refuse(np.isinf(values), own, "isn't a finite number")
        self.refuse(values < least, own, f"is below {least:g}")
        return values

    def outcome(self, wanted: Wanted) -> pa.ChunkedArray:
        """Read the outcomes; a failed state takes precedence over all other columns."""
        outcome = self._outcome_of_results(wanted)
        return pa.chunked_array([pc.if_else(pa.array(self._failed), str(Outcome.FAILED), outcome.combine_chunks())])

    def _outcome_of_results(self, wanted: Wanted) -> pa.ChunkedArray:
        """Read outcomes by the success criterion, else from the source's columns, else by finiteness of a metric."""
        names = self._source.table.column_names
        if wanted.success is not None:
            return self._judged(wanted.success)
        if "outcome" in names or "solved" in names:
            return self._stated()
        first = self._deciding(next(iter(wanted.metrics)))
        ended = np.where(np.isfinite(first), str(Outcome.FINISHED), str(Outcome.DIVERGED))
        return pa.chunked_array([pa.array(ended.tolist(), pa.string())])

    def _deciding(self, name: str) -> Floats:
        """Read the column that decides the outcomes, and report the number of trials without a value."""
        values = self.numbers(name, name, -np.inf, is_finite=False)
        if lacking := 0 if self._source.has_pending else int((np.isnan(values) & ~self._failed).sum()):
            self._notices.append(f"no number in {name}: {count_of(lacking, 'trial')}, counted as diverged")
        return values

    def _judged(self, success: Success) -> pa.ChunkedArray:
        """Judge a column: trials without a finite number have diverged; failed and pending trials stay so."""
        values = self._deciding(success.column)
        judged = np.where(success.holds(values), str(Outcome.SOLVED), str(Outcome.UNSOLVED))
        outcome = np.where(np.isfinite(values), judged, str(Outcome.DIVERGED)).astype(object)
        if "outcome" in self._source.table.column_names:
            own = _by_value(self._source.table["outcome"], lambda texts: pc.utf8_lower(_text(texts)))
            outcome[np.asarray(pc.fill_null(pc.equal(own, str(Outcome.FAILED)), False))] = str(Outcome.FAILED)
            if self._source.has_pending:
                outcome[np.asarray(pc.is_null(own))] = None
        return pa.chunked_array([pa.array(outcome.tolist(), pa.string())])

    def _stated(self) -> pa.ChunkedArray:
        """Read the outcomes from the columns outcome and solved; record rows where they disagree as mistakes."""
        outcome, solved = self._words("outcome"), self._words("solved")
        if outcome is None:
            assert solved is not None
            return solved
        if solved is not None:
            agree = pc.equal(pc.equal(outcome, str(Outcome.SOLVED)), pc.equal(solved, str(Outcome.SOLVED)))
            self.refuse(~np.asarray(pc.fill_null(agree, True)) & ~self._failed, "outcome", "contradicts column solved")
        return outcome

    def _words(self, name: str) -> pa.ChunkedArray | None:
        """Read the outcomes from the words in a column, null for wrong or missing ones; record wrong ones as mistakes.

        None without the column.
        """
        if name not in self._source.table.column_names:
            return None
        outcome_of = {str(o): str(o) for o in Outcome} if name == "outcome" else {k: str(v) for k, v in _SOLVED.items()}
        text = _by_value(self._source.table[name], lambda values: pc.utf8_lower(_text(values)))
        index = pc.index_in(text, pa.array(list(outcome_of)))
        outcomes = pa.chunked_array([pa.array(list(outcome_of.values())).take(index.combine_chunks())])
        wrong = np.asarray(pc.is_null(index))
        if name == "solved" and "outcome" in self._source.table.column_names:
            wrong &= ~_is_missing(text)  # failed trials have no value in column solved
        elif self._source.has_pending:
            wrong &= ~_is_missing(text)
        wrong &= ~(self._failed & _is_missing(text))
        problem = f"isn't one of {', '.join(Outcome)}" if name == "outcome" else "is neither true nor false"
        self.refuse(wrong, name, problem, list(outcome_of))
        return outcomes

    def stopped_early(self) -> pa.ChunkedArray:
        """Read the column stopped_early: true for true, 1 and 1.0, else false; all false if the source lacks it."""
        table = self._source.table
        if "stopped_early" not in table.column_names:
            return pa.chunked_array([pa.array(np.zeros(table.num_rows, bool))])
        yes = pa.array(["true", "1", "1.0"])
        is_stopped = _by_value(
            table["stopped_early"], lambda values: pc.is_in(pc.utf8_lower(_text(values)), value_set=yes)
        )
        return pc.fill_null(is_stopped, False)

    def check_solved(self, outcome: pa.ChunkedArray, numbers: dict[str, Floats], required: dict[str, Floats]) -> None:
        """Refuse solved trials without a number in a column that has any, or solved after their last iteration."""
        solved = np.asarray(pc.fill_null(pc.equal(outcome, str(Outcome.SOLVED)), False))
        own = own_name("solved_at_iteration", self._source.table.column_names) or "solved_at_iteration"
        for own_column, values in {own: numbers["solved_at_iteration"], **required}.items():
            if np.any(np.isfinite(values)):
                self.refuse(solved & ~np.isfinite(values), own_column, "isn't a number, but the trial is solved")
        last = numbers["trained_iterations"]
        with np.errstate(invalid="ignore"):
            late = solved & (numbers["solved_at_iteration"] > last)
        self.refuse(late, own, "is after the trial's last iteration")

    def refuse(self, wrong: Rows, column: str, problem: str, valid: list[str] | None = None) -> None:
        """Record the rows with a wrong value in a column as mistakes, each row once, and list up to ten."""
        before = self._refused.get(column, np.zeros(len(wrong), bool))
        self._refused[column] = before | wrong
        places = np.flatnonzero(wrong & ~before)
        for place in places[:_MOST_LISTED]:
            value = self._source.table[column][int(place)].as_py()
            near = difflib.get_close_matches(str(value), valid or [], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            text = "nothing" if value is None else repr(value)
            self._mistakes.append(f"  row {self._source.rows[place]}: {column}: {text} {problem}{hint}")
        if len(places) > _MOST_LISTED:
            self._mistakes.append(f"  ... and {len(places) - _MOST_LISTED:,} more in {column}")


def _is_text(kind: pa.DataType) -> bool:
    """Return True for text and dictionaries of text."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _by_value(column: pa.ChunkedArray, read: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """Call ``read`` on each distinct value once, to save time on repeated texts; null stays null."""
    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    return pa.chunked_array([read(encoded.dictionary).take(encoded.indices)])


def _text(values: pa.Array | pa.ChunkedArray) -> Any:
    """Return values as text without spaces at the ends."""
    return pc.utf8_trim_whitespace(pc.cast(values, pa.string()))


def _is_missing(text: pa.ChunkedArray) -> Rows:
    """Return a mask of the texts that are null or stand for a missing value, such as NaN."""
    is_missing: Rows = np.asarray(pc.or_(pc.is_null(text), pc.is_in(pc.utf8_lower(text), pa.array(MISSING))))
    return is_missing


def _parse(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Parse numbers, with null for missing texts and texts that aren't numbers."""
    present = pc.if_else(pa.chunked_array([pa.array(_is_missing(text))]), pa.scalar(None, pa.string()), text)
    try:
        return pc.cast(present, pa.float64())
    except pa.ArrowInvalid:  # a text isn't a number
        return _each(present, _float, pa.float64())


def _each(text: pa.ChunkedArray, read: Callable[[str | None], Any], kind: pa.DataType) -> pa.ChunkedArray:
    """Parse each distinct text once; null where `read` returns None."""
    return _by_value(text, lambda values: pa.array([read(value) for value in values.to_pylist()], kind))


def _float(text: str | None) -> float | None:
    """Parse a number; None for other texts."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _whole(text: str | None) -> int | None:
    """Parse digits below 2^63, or a whole number in another form (-1, 3.0) below 2^53; None for other texts."""
    if text is not None and text.isdecimal():
        return int(text) if int(text) < 2**63 else None  # a float would lose digits
    number = _float(text)
    return int(number) if number is not None and number.is_integer() and abs(number) < 2**53 else None
