"""A class with a method `fit` as a training function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from study.interface.signature import SignatureError, place_of


def as_function(called: Any) -> Callable[..., Any]:
    """Convert a class with a method `fit` to a function that makes an instance and fits it.

    The function's parameters are those of ``__init__`` and `fit`. A parameter of both is declared as in `fit`, and
    passed to both.

    Args:
        called: a function or a class.

    Returns:
        The function; `called` itself if it isn't a class with a method `fit`.

    Raises:
        SignatureError: if Python can't read the signature of `fit`.
        ValueError: if ``__init__`` has an optional positional-only parameter, and `fit` a required one.

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
    try:
        fit_parameters = list(inspect.signature(fit).parameters.values())
    except ValueError:
        raise SignatureError(place_of(called), [("", "Python can't read the signature of its method fit")]) from None
    if not isinstance(inspect.getattr_static(called, "fit"), staticmethod | classmethod):
        del fit_parameters[:1]  # self
    try:
        init_parameters = list(inspect.signature(called).parameters.values())
    except ValueError:  # the class has no readable signature
        init_parameters = []
    parameters = {parameter.name: parameter for parameter in [*init_parameters, *fit_parameters]}

    def train(**arguments: Any) -> Any:
        def select(parameters: list[inspect.Parameter]) -> dict[str, Any]:
            return {entry.name: arguments[entry.name] for entry in parameters if entry.name in arguments}

        instance: Any = called(**select(init_parameters))
        return instance.fit(**select(fit_parameters))

    keyword = inspect.Parameter.KEYWORD_ONLY
    named = [entry.replace(kind=keyword) if entry.kind in _NAMED else entry for entry in parameters.values()]
    train.__signature__ = inspect.Signature(sorted(named, key=lambda entry: entry.kind))  # type: ignore[attr-defined]
    train.__name__, train.__qualname__ = called.__name__, called.__qualname__
    train.__wrapped__ = fit  # type: ignore[attr-defined]  # error messages name the file and line of `fit`
    return train


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
