"""Marker of objects that a study file may name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

_MARK = "__seeded_study__"


def seeded(object_: T) -> T:
    """Mark a training function or a model builder as an object that a study file may name.

    Studies call only marked objects, and subclasses of `study.Task` and `torch.nn.Module`. So a study file can't call
    arbitrary functions of installed packages.

    Args:
        object_: a function or class.

    Returns:
        The same object.

    Raises:
        AttributeError: if the object can't have attributes, such as a built-in function.
        TypeError: if it is a built-in class.

    Example:
        >>> @seeded
        ... def train(seed, *, width: int = 32):
        ...     return {"test_loss": 1 / width}
        >>> is_seeded(train), is_seeded(print)
        (True, False)
    """
    setattr(object_, _MARK, True)
    return object_


def is_seeded(object_: object) -> bool:
    """Return True if an object is marked; a class doesn't inherit the mark."""
    return bool(vars(object_).get(_MARK)) if hasattr(object_, "__dict__") else False
