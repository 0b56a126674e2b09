"""Separators, decimal commas and error values of text files."""

from __future__ import annotations

import csv
import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.words import count_of

MISSING = ("", "nan", "na", "n/a", "none", "null", "<na>", "nat")
"""Texts of missing values, in lower case."""

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
_SAMPLED_ROWS = 20
# Error values of spreadsheets, in English and German.
_ERROR_VALUE = re.compile(r"\s*#(N/A|NA|NV|VALUE!|WERT!|DIV/0!|NUM!|ZAHL!|REF!|BEZUG!|NAME\?|NULL!)\s*")
_POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_COMMA_THOUSANDS = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d+)?")
_IS_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
_DECIMAL, _THOUSANDS, _EITHER = "decimal commas", "thousands separators", "decimal or thousands separators"


def header_and_separator(path: Path) -> tuple[list[str], str]:
    """Return the names of a text file's columns, and its separator.

    Of the separators that split the header, it is the one by which most of the first 20 rows have as many values as the
    header; of several, the one with most columns. If none splits the header, it is a comma, and the line is one name.
    There are no names if the first line is empty, or because of an unclosed quote.

    Args:
        path: a UTF-8 file with values separated by commas, semicolons, tabs or pipes.

    Raises:
        OSError: if the file can't be read.
        UnicodeDecodeError: if its beginning isn't UTF-8.
    """
    readings: dict[str, tuple[int, int, list[str]]] = {}
    for separator in _SEPARATORS:
        with path.open(encoding="utf-8-sig", newline="") as file:
            try:
                rows = list(itertools.islice(csv.reader(file, delimiter=separator), _SAMPLED_ROWS))
            except csv.Error:  # a value above the size limit, because of an unclosed quote
                continue
        header = rows[0] if rows else []
        even = sum(len(row) == len(header) for row in rows) if len(header) > 1 else 0
        readings[separator] = even, len(header), header
    if not readings:
        return [], ","
    separator = max(readings, key=lambda name: readings[name][:2])
    return readings[separator][2], separator


def with_plain_numbers(table: pa.Table, separator: str) -> tuple[pa.Table, list[str]]:
    """Replace decimal commas by points, and spreadsheets' error values by nulls; remove thousands separators.

    Commas and points are replaced or removed only in columns of numbers, and only if the file's separator isn't a
    comma. In a column such as 1.234, points separate thousands only if another column has decimal commas.

    Args:
        table: columns of text, or of dictionaries of text.
        separator: the file's separator.

    Returns:
        The table, and a sentence about each kind of change.
    """
    changed: dict[str, list[str]] = defaultdict(list)
    names = [name for name in table.column_names if separator != "," or _has_errors(table[name])]
    encoded = {name: _encoded(table[name]) for name in names}
    texts = {name: [text or "" for text in column.dictionary.to_pylist()] for name, column in encoded.items()}
    valid = ([text for text in column if not _ERROR_VALUE.fullmatch(text)] for column in texts.values())
    has_commas = separator != "," and any(_commas_of(_numbers_in(column)) == _DECIMAL for column in valid)
    empty, with_errors = 0, []
    for name, column in texts.items():
        errors = [bool(_ERROR_VALUE.fullmatch(text)) for text in column]
        values = ["" if is_error else text for text, is_error in zip(column, errors, strict=True)]
        if any(errors):
            empty += int(np.isin(np.asarray(encoded[name].indices.drop_null()), np.flatnonzero(errors)).sum())
            with_errors.append(name)
        kind = _commas_of(_numbers_in(values)) if separator != "," else ""
        if kind == _EITHER and not has_commas and not any("," in text for text in values):
            kind = ""  # without any decimal comma in the file, points are decimal points
        if kind:
            remove, comma = (",", "") if kind == _THOUSANDS else (".", ".")
            example = next(text for text in values if _IS_GROUPED.match(text.strip()) or "," in text)
            values = [text.replace(remove, "").replace(",", comma) for text in values]
            read = example.replace(remove, "").replace(",", comma)
            note = f"; ambiguous, so check it: {example} was read as {read}" if kind == _EITHER else ""
            changed[f"{kind}{note}"].append(name)
        if values != column:
            plain = pa.array([value or None for value in values], pa.string()).take(encoded[name].indices)
            is_dictionary = pa.types.is_dictionary(table[name].type)
            plain = plain.dictionary_encode() if is_dictionary else plain
            table = table.set_column(table.column_names.index(name), name, pa.chunked_array([plain]))
    if with_errors:
        changed[f"no value: {count_of(empty, 'cell')} with a spreadsheet's error, such as #N/A"] = with_errors
    return table, [f"{change}: {', '.join(names)}" for change, names in changed.items()]


def _has_errors(column: pa.ChunkedArray) -> bool:
    """Return True if any text begins with #, as a spreadsheet's errors do."""
    different = (
        pa.chunked_array([c.dictionary for c in column.chunks]) if pa.types.is_dictionary(column.type) else column
    )
    return bool(pc.any(pc.starts_with(pc.utf8_ltrim_whitespace(different), "#")).as_py())


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column as one dictionary array."""
    values = column.combine_chunks()
    return values if pa.types.is_dictionary(values.type) else pc.dictionary_encode(values)


def _numbers_in(texts: Sequence[str]) -> list[str]:
    """Return the texts that aren't missing, without spaces at the ends."""
    return [text.strip() for text in texts if text.strip().lower() not in MISSING]


def _commas_of(texts: Sequence[str]) -> str:
    """Return the meaning of a column's commas and points: `_DECIMAL`, `_THOUSANDS`, `_EITHER`, or empty if usual.

    Example:
        >>> _commas_of(["0,835", "1"]), _commas_of(["1.234,5"]), _commas_of(["1,234,567"]), _commas_of(["1,234.5"])
        ('decimal commas', 'decimal commas', 'thousands separators', 'thousands separators')
        >>> _commas_of(["1,234", "2"]), _commas_of(["0.5", "3"]), _commas_of(["adam, sgd"])
        ('decimal or thousands separators', '', '')
    """
    is_decimal, is_thousands = (all(map(form.fullmatch, texts)) for form in (_COMMA, _COMMA_THOUSANDS))
    has_comma = any("," in text for text in texts)
    if is_decimal and (has_comma or not all(map(_POINT.fullmatch, texts)) or _all_grouped(texts)):
        return _EITHER if (is_thousands or not has_comma) and _all_grouped(texts) else _DECIMAL
    return _THOUSANDS if is_thousands and has_comma else ""


def _all_grouped(texts: Sequence[str]) -> bool:
    """Return True if numbers have a comma or point, and each that has one has three digits after it, as in 1.234."""
    marked = [text for text in texts if re.search("[.,]", text)]
    return bool(marked) and all(_IS_GROUPED.fullmatch(text) for text in marked)
