"""The mark of objects that a study file may name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

_MARK = "__seeded_study__"


def seeded(object_: T) -> T:
    """Mark a training function or a builder of models as one that a study file may name.

    A study calls nothing that isn't marked, so that a study file can't name any function of any package.

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
    """Return whether an object itself is marked; a class isn't marked by its base."""
    return bool(vars(object_).get(_MARK)) if hasattr(object_, "__dict__") else False
