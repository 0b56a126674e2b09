"""Conversion of stored values to Python source, safe against code injection."""

from __future__ import annotations

import math

from study.visible import visible


def literal(value: object) -> str:
    """Write a value as a Python literal; infinity and NaN become constants of the module `math`.

    Raises:
        TypeError: if it isn't a `str`, `int` or `float`.

    Example:
        >>> literal("cpu"), literal(0.5), literal(float("-inf"))
        ("'cpu'", '0.5', '-math.inf')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f"{'-' if value < 0 else ''}math.{'nan' if math.isnan(value) else 'inf'}"
    if not isinstance(value, str | int | float):
        raise TypeError(f"a literal must be a text or a number, but got {value!r}")
    return repr(value)


def docstring(text: str) -> str:
    r"""Write a text as a docstring, with escapes for any content.

    Example:
        >>> docstring("a 'quote' and a line\n") == "".join(['"' * 3, "a 'quote' and a line\n", '"' * 3])
        True
    """
    return '"""' + visible(text).replace("\\", "\\\\").replace('"', '\\"') + '"""'
