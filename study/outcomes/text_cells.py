"""CSV cells that a spreadsheet would take for formulas, marked as text by an apostrophe."""

from __future__ import annotations

import re

# The start of a formula in a spreadsheet, after any apostrophes (our marks, or part of the text).
_FORMULA = "'*[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]"  # the characters themselves: Arrow's regexes don't support \\u
_STARTS = re.compile(_FORMULA)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-](inf|nan)")

MARKED = rf"^'({_FORMULA})"
"""Matches a cell that `as_text` marked; the group is the text without the mark."""


def as_text(value: str) -> str:
    """Mark a text that begins like a formula; numbers stay numbers.

    Example:
        >>> as_text("=1+1"), as_text("-0.5"), as_text("-late"), as_text("'=1"), as_text("late")
        ("'=1+1", '-0.5', "'-late", "''=1", 'late')
    """
    return f"'{value}" if _STARTS.match(value) and not _NUMBER.fullmatch(value) else value


def from_text(value: str) -> str:
    """Remove the mark of `as_text`.

    Example:
        >>> [from_text(as_text(text)) for text in ("=1+1", "-0.5", "'=1", "'late'")]
        ['=1+1', '-0.5', "'=1", "'late'"]
    """
    return re.sub(MARKED, r"\1", value)
