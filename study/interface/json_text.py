"""JSON from outside: files that may be damaged or foreign, and messages of a user's program."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Parse JSON, with NaN and Infinity as `json.dumps` writes them.

    A text that is nested too deeply for Python's parser is invalid, too.

    Raises:
        ValueError: if the text isn't valid JSON.

    Example:
        >>> parse_json('{"a": [1, 2]}')
        {'a': [1, 2]}
        >>> parse_json("[" * 100_000)
        Traceback (most recent call last):
        ValueError: maximum recursion depth exceeded...
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(str(error)) from None
