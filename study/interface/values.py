"""Pydantic types of values in study files, with limits and readable errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

_MOST = 2**31 - 1
_MOST_ITERATIONS = 2**32 - 2  # the stream's counter has 32 bits for the iteration
_LONGEST = 60


class ChoiceError(ValueError):
    """Value outside a set of choices.

    Args:
        value: the invalid value.
        choices: the valid values.
    """

    def __init__(self, value: object, choices: Sequence[object]) -> None:
        self.value, self.choices = value, [str(choice) for choice in choices]
        super().__init__(f"must be one of {', '.join(self.choices)}, but got {quoted(value)}")


def quoted(value: object) -> str:
    """Format a value for a message, truncated to 60 characters.

    Example:
        >>> quoted(True), quoted(None), quoted("a")
        ('true', 'nothing', "'a'")
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def number(value: object) -> float | int:
    """Return a value unchanged if it is a finite number.

    Raises:
        ValueError: if it isn't a finite int or float, is a Boolean, or is an int that is ±2**63 or beyond.
    """
    if isinstance(value, list):
        raise ValueError(f"must be one number, but got the list {quoted(value)}; to sweep it, put it under grid")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, but got {quoted(value)}")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError(f"must fit into 64 bits, but got {quoted(value)}")
    if not math.isfinite(value):
        raise ValueError(f"must be a finite number, but got {value}")
    return value


def whole(value: object) -> int:
    """Return a whole number as an int; 3.0 becomes 3.

    Raises:
        ValueError: if the value isn't a whole number, is a Boolean, or is an int that is ±2**63 or beyond; floats such
            as 1e300 pass.
    """
    finite = number(value)
    if finite != int(finite):
        raise ValueError(f"must be a whole number, but got {finite:g}")
    return int(finite)


def choice(names: Iterable[str]) -> Any:
    """Return a pydantic type of the given names; pydantic's error for another value contains a `ChoiceError`.

    Example:
        >>> from pydantic import TypeAdapter
        >>> TypeAdapter(choice(("adam", "sgd"))).validate_python("adam")
        'adam'
    """
    valid = tuple(names)

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in valid:
            raise ChoiceError(value, valid)
        return value

    return Annotated[str, BeforeValidator(check), WithJsonSchema({"enum": list(valid)})]


def _float32(value: float) -> float:
    if value > 3e38:
        raise ValueError(f"must fit into 32 bits, but got {value:g}")
    return value


Whole = Annotated[int, BeforeValidator(whole)]
Count = Annotated[int, Field(ge=1, le=_MOST), BeforeValidator(whole)]
Iteration = Annotated[int, Field(ge=0, le=_MOST_ITERATIONS), BeforeValidator(whole)]
Positive = Annotated[float, Field(gt=0), BeforeValidator(number), AfterValidator(_float32)]
NotNegative = Annotated[float, Field(ge=0), BeforeValidator(number), AfterValidator(_float32)]
Share = Annotated[float, Field(gt=0, le=1), BeforeValidator(number)]
ShareOrNone = Annotated[float, Field(ge=0, le=1), BeforeValidator(number)]
