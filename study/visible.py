"""Text from other sources, made safe for a terminal: control characters are escaped."""

from __future__ import annotations

import re

# Control characters except tab and newline, characters that change the text direction or separate lines, and the
# surrogates of bytes that can't be decoded.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m|\r+(?=\n|\Z)")


def visible(text: str) -> str:
    r"""Escape every character that could control a terminal, except tabs and newlines.

    Example:
        >>> visible("a\x1b[2Jb"), visible("one\ntwo"), visible("\ud800")
        ('a\\x1b[2Jb', 'one\ntwo', '\\ud800')
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def uncoloured(text: str) -> str:
    r"""Drop the colours and the carriage returns at ends of lines from a log, and escape the rest as `visible` does.

    Example:
        >>> uncoloured("\x1b[31mstopping\x1b[0m\x1b]0;title\x07")
        'stopping\\x1b]0;title\\x07'
    """
    return visible(_COLOUR.sub("", text))
