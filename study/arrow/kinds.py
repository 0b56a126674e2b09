"""Kinds of hyperparameter values, and their column types.

| kind | values | column |
| --- | --- | --- |
| whole | 64-bit int | int64 |
| number | float; also int, in rows that `whole_numbers` notes | float64 |
| text | str | string |
| flag | bool | bool |
| range | tuple of pairs of floats | string, as `study.records.format_range` writes it |
| json | lists, values of several kinds, longer integers, texts that aren't Unicode | string, as JSON |
| none | no values | null |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from study.interface.kinds import FLAG, JSON, NONE, NUMBER, RANGE, TEXT, WHOLE
from study.records import format_range, parse_range

_TYPES = {
    WHOLE: pa.int64(),
    NUMBER: pa.float64(),
    TEXT: pa.string(),
    FLAG: pa.bool_(),
    RANGE: pa.string(),
    JSON: pa.string(),
    NONE: pa.null(),
}
_MOST_WHOLE = 2**53
"""Greatest magnitude up to which every integer is exactly a float."""

_WRITERS: dict[str, Callable[[Any], Any]] = {NUMBER: float, RANGE: format_range, JSON: json.dumps}
_READERS: dict[str, Callable[[Any], Any]] = {RANGE: parse_range, JSON: json.loads}


def kind_of(values: Iterable[Any]) -> str:
    """Return the kind of a column for these values; None fits every kind. Without other values, it is ``none``.

    Example:
        >>> kind_of([1, None]), kind_of([1, 0.5]), kind_of([1, "a"]), kind_of([[1, 2]]), kind_of([None])
        ('whole', 'number', 'json', 'json', 'none')
    """
    present = [value for value in values if value is not None]
    kinds = {_kind(value) for value in present}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else NONE
    if kinds == {WHOLE, NUMBER} and all(abs(value) <= _MOST_WHOLE for value in present if isinstance(value, int)):
        return NUMBER
    return JSON


def type_of(kind: str) -> pa.DataType:
    """Return the Arrow type of a kind's columns.

    Raises:
        KeyError: if the kind is unknown.
    """
    return _TYPES[kind]


def encoded(values: Sequence[Any], kind: str) -> pa.Array:
    """Encode values as a column of the given kind; None becomes null.

    Args:
        values: the values.
        kind: a kind that fits them all, as `kind_of` returns it.

    Raises:
        KeyError: if the kind is unknown.
        ValueError, TypeError, OverflowError: if a value doesn't fit the kind.

    Example:
        >>> encoded([1, "a", None], "json").to_pylist()
        ['1', '"a"', None]
    """
    write = _WRITERS.get(kind)
    plain = values if write is None else [None if value is None else write(value) for value in values]
    return pa.array(plain, _TYPES[kind])


def decoded(column: pa.Array | pa.ChunkedArray, kind: str) -> list[Any]:
    """Decode a column of the given kind; null becomes None. With an unknown kind, values are returned as they are.

    Raises:
        ValueError: if a text isn't the JSON or the range that the kind promises.

    Example:
        >>> decoded(encoded([((-2.0, 2.0),), None], "range"), "range")
        [((-2.0, 2.0),), None]
    """
    values: list[Any] = column.to_pylist()
    read = _READERS.get(kind)
    if read is None:
        return values
    value_by_text = {text: None if text is None else read(text) for text in set(values)}
    return [value_by_text[text] for text in values]


def _kind(value: Any) -> str:
    """Return the kind of a single value other than None."""
    if isinstance(value, bool):
        return FLAG
    if isinstance(value, int):
        return WHOLE if -(2**63) <= value < 2**63 else JSON
    if isinstance(value, float):
        return NUMBER
    if isinstance(value, str):
        return TEXT if _is_unicode(value) else JSON
    return RANGE if _is_range(value) else JSON


def _is_unicode(text: str) -> bool:
    """Return True if the text can be encoded in UTF-8; a lone surrogate, possible in JSON, can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_range(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(_is_interval(part) for part in value)


def _is_interval(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(end, float) for end in value)
