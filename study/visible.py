"""Text that others wrote, made fit for a terminal: control characters are written out."""

from __future__ import annotations

import re

# Control characters but for tab and the end of a line, what turns the direction of reading or ends a line elsewhere,
# and the halves of characters that stand for bytes which are no text.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m|\r+(?=\n|\Z)")


def visible(text: str) -> str:
    r"""Write out every character that could steer a terminal; tabs and ends of lines stay.

    Example:
        >>> visible("a\x1b[2Jb"), visible("one\ntwo"), visible("\ud800")
        ('a\\x1b[2Jb', 'one\ntwo', '\\ud800')
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def uncoloured(text: str) -> str:
    r"""Write out a log, whose colours and carriage returns at ends of lines are dropped.

    Example:
        >>> uncoloured("\x1b[31mstopping\x1b[0m\x1b]0;title\x07")
        'stopping\\x1b]0;title\\x07'
    """
    return visible(_COLOUR.sub("", text))
