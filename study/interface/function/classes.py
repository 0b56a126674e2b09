"""A class with a method `fit` as a training function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def as_function(called: Any) -> Callable[..., Any]:
    """Return a class with a method `fit` as a function that makes an instance and fits it; anything else as it is.

    The function's parameters are those of ``__init__`` and of `fit`, of which each gets those that it has.

    Args:
        called: a function or a class.

    Example:
        >>> class Model:
        ...     def __init__(self, *, rate: float = 0.5):
        ...         self.rate = rate
        ...     def fit(self, seed):
        ...         return {"loss": seed * self.rate}
        >>> train = as_function(Model)
        >>> train(seed=3, rate=2.0), list(inspect.signature(train).parameters)
        ({'loss': 6.0}, ['rate', 'seed'])
    """
    fit = getattr(called, "fit", None)
    if not inspect.isclass(called) or not callable(fit):
        return called  # type: ignore[no-any-return]
    of_fit = list(inspect.signature(fit).parameters.values())[1:]
    try:
        of_class = list(inspect.signature(called).parameters.values())
    except ValueError:  # Python knows no signature of it
        of_class = []
    parameters = {parameter.name: parameter for parameter in [*of_class, *of_fit]}

    def train(**arguments: Any) -> Any:
        def given(parameters: list[inspect.Parameter]) -> dict[str, Any]:
            return {one.name: arguments[one.name] for one in parameters if one.name in arguments}

        made: Any = called(**given(of_class))
        return made.fit(**given(of_fit))

    keyword = inspect.Parameter.KEYWORD_ONLY
    named = [one.replace(kind=keyword) if one.kind in _NAMED else one for one in parameters.values()]
    train.__signature__ = inspect.Signature(sorted(named, key=lambda one: one.kind))  # type: ignore[attr-defined]
    train.__name__, train.__qualname__ = called.__name__, called.__qualname__
    train.__wrapped__ = fit  # type: ignore[attr-defined]  # its place is that of the function
    return train


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
