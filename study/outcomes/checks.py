"""What must hold for the values of outcomes: every mistake of a source, with its row and column."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.outcomes.columns import NUMBERS, OUTCOME_SCHEMA, missing, own_name
from study.outcomes.files import Source
from study.records import Outcome

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

MISSING = ("", "nan", "na", "n/a", "none", "null")
_SOLVED = {"true": Outcome.SOLVED, "1": Outcome.SOLVED, "false": Outcome.UNSOLVED, "0": Outcome.UNSOLVED}
_SOLVED |= {"1.0": Outcome.SOLVED, "0.0": Outcome.UNSOLVED}
_MOST_LISTED = 10


def checked(source: Source, mistakes: list[str]) -> pa.Table | None:
    """Check a source's outcomes, and return them.

    Args:
        source: the source as it was read.
        mistakes: list to append a line to for each mistake; of many mistakes of one kind, only the first ones.

    Returns:
        The columns of `OUTCOME_SCHEMA`; None if there are mistakes.
    """
    absent = missing(source.table.column_names)
    if absent:
        names = ", ".join(source.table.column_names)
        mistakes.append(f"  no column {', '.join(absent)} (it may have no values, but must be there); there is {names}")
        return None
    reading = _Reading(source, mistakes)
    before = len(mistakes)
    seed = reading.seed()
    numbers = {name: reading.numbers(name) for name in NUMBERS}
    outcome = reading.outcome()
    reading.check_solved(outcome, numbers)
    if len(mistakes) > before:
        return None
    content: dict[str, Any] = {name: pa.array(values, from_pandas=True) for name, values in numbers.items()}
    content |= {"seed": seed, "outcome": outcome, "stopped_early": reading.stopped_early()}
    return pa.table([pc.cast(content[field.name], field.type) for field in OUTCOME_SCHEMA], schema=OUTCOME_SCHEMA)


class _Reading:
    """Reads a source, and collects its mistakes."""

    def __init__(self, source: Source, mistakes: list[str]) -> None:
        self._source = source
        self._mistakes = mistakes
        self._refused: dict[str, Rows] = {}

    def seed(self) -> pa.ChunkedArray:
        """Read the seeds, whole numbers >= 0, with all their digits."""
        column = self._source.table["seed"]
        try:
            source = column if pa.types.is_integer(column.type) else _by_value(column, _text)
            seeds = pc.cast(source, pa.int64())
        except pa.ArrowInvalid:  # 3.0, or no number: each different text is parsed by itself
            seeds = _each(_text(column), _whole, pa.int64())
        wrong = pc.fill_null(pc.less(seeds, 0), True)
        self.refuse(np.asarray(wrong), "seed", "isn't a whole number >= 0")
        return seeds

    def numbers(self, name: str) -> Floats:
        """Read a column of finite numbers >= 0, with NaN where there is none."""
        own = own_name(name, self._source.table.column_names)
        if own is None:
            return np.full(self._source.table.num_rows, np.nan)
        column = self._source.table[own]
        kind = column.type
        if not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            self._mistakes.append(f"  column {own} holds {kind}, but must hold numbers")
            return np.full(len(column), np.nan)
        try:
            parsed = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:  # some text isn't a number
            text = _text(column)
            parsed = _parse(text)
            self.refuse(np.asarray(pc.is_null(parsed)) & ~_is_missing(text), own, "isn't a number")
        values = np.asarray(pc.fill_null(parsed, np.nan))
        self.refuse(np.isinf(values), own, "isn't a finite number")
        self.refuse(values < 0, own, "is below 0")
        return values

    def outcome(self) -> pa.ChunkedArray:
        """Read the outcome from the column outcome, solved or both, which must agree."""
        outcome, solved = self._words("outcome"), self._words("solved")
        if outcome is None:
            assert solved is not None
            return solved
        if solved is not None:
            agree = pc.equal(pc.equal(outcome, str(Outcome.SOLVED)), pc.equal(solved, str(Outcome.SOLVED)))
            self.refuse(~np.asarray(pc.fill_null(agree, True)), "outcome", "isn't what column solved says")
        return outcome

    def _words(self, name: str) -> pa.ChunkedArray | None:
        if name not in self._source.table.column_names:
            return None
        outcome_of = {str(o): str(o) for o in Outcome} if name == "outcome" else {k: str(v) for k, v in _SOLVED.items()}
        text = _by_value(self._source.table[name], lambda values: pc.utf8_lower(_text(values)))
        index = pc.index_in(text, pa.array(list(outcome_of)))
        outcomes = pa.chunked_array([pa.array(list(outcome_of.values())).take(index.combine_chunks())])
        wrong = np.asarray(pc.is_null(index))
        if name == "solved" and "outcome" in self._source.table.column_names:
            wrong &= ~_is_missing(text)  # a trial that failed has no value there
        elif self._source.has_pending:
            wrong &= ~_is_missing(text)
        must = f"isn't one of {', '.join(Outcome)}" if name == "outcome" else "is neither true nor false"
        self.refuse(wrong, name, must, list(outcome_of))
        return outcomes

    def stopped_early(self) -> pa.ChunkedArray:
        """Read which trials were stopped early; without the column, none was."""
        table = self._source.table
        if "stopped_early" not in table.column_names:
            return pa.chunked_array([pa.array(np.zeros(table.num_rows, bool))])
        yes = pa.array(["true", "1", "1.0"])
        is_stopped = _by_value(
            table["stopped_early"], lambda values: pc.is_in(pc.utf8_lower(_text(values)), value_set=yes)
        )
        return pc.fill_null(is_stopped, False)

    def check_solved(self, outcome: pa.ChunkedArray, numbers: dict[str, Floats]) -> None:
        """Check that all solved trials have the values of solved trials, if any trial in the file has them."""
        solved = np.asarray(pc.fill_null(pc.equal(outcome, str(Outcome.SOLVED)), False))
        for name in ("solved_at_iteration", "sparsity_error"):
            values = numbers[name]
            own = own_name(name, self._source.table.column_names) or name
            if np.any(np.isfinite(values)):
                self.refuse(solved & ~np.isfinite(values), own, "is no number, but the trial is solved")
        last = numbers["trained_iterations"]
        with np.errstate(invalid="ignore"):
            late = solved & (numbers["solved_at_iteration"] > last)
        own = own_name("solved_at_iteration", self._source.table.column_names) or ""
        self.refuse(late, own, "is after the trial's last iteration")

    def refuse(self, wrong: Rows, column: str, must: str, valid: list[str] | None = None) -> None:
        """Record the rows in which a column is wrong, each row once."""
        before = self._refused.get(column, np.zeros(len(wrong), bool))
        self._refused[column] = before | wrong
        places = np.flatnonzero(wrong & ~before)
        for place in places[:_MOST_LISTED]:
            value = self._source.table[column][int(place)].as_py()
            near = difflib.get_close_matches(str(value), valid or [], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            text = "nothing" if value is None else repr(value)
            self._mistakes.append(f"  row {self._source.rows[place]}: {column}: {text} {must}{hint}")
        if len(places) > _MOST_LISTED:
            self._mistakes.append(f"  ... and {len(places) - _MOST_LISTED:,} more in {column}")


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _by_value(column: pa.ChunkedArray, read: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """Call ``read`` on each different value once, since a text can be in a thousand rows; null stays null."""
    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    return pa.chunked_array([read(encoded.dictionary).take(encoded.indices)])


def _text(values: pa.Array | pa.ChunkedArray) -> Any:
    return pc.utf8_trim_whitespace(pc.cast(values, pa.string()))


def _is_missing(text: pa.ChunkedArray) -> Rows:
    is_missing: Rows = np.asarray(pc.or_(pc.is_null(text), pc.is_in(pc.utf8_lower(text), pa.array(MISSING))))
    return is_missing


def _parse(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Parse numbers, with null where the text is missing or isn't a number."""
    present = pc.if_else(pa.chunked_array([pa.array(_is_missing(text))]), pa.scalar(None, pa.string()), text)
    try:
        return pc.cast(present, pa.float64())
    except pa.ArrowInvalid:  # something isn't a number
        return _each(present, _float, pa.float64())


def _each(text: pa.ChunkedArray, read: Callable[[str | None], Any], kind: pa.DataType) -> pa.ChunkedArray:
    return _by_value(text, lambda values: pa.array([read(value) for value in values.to_pylist()], kind))


def _float(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _whole(text: str | None) -> int | None:
    if text is not None and text.isdecimal():
        return int(text) if int(text) < 2**63 else None  # a float would lose digits
    number = _float(text)
    return int(number) if number is not None and number.is_integer() and abs(number) < 2**53 else None
