"""Conversion of Ray Tune's search spaces to plain tables, without importing Ray."""

from __future__ import annotations

from typing import Any

_UNIFORM = {"Float": "uniform", "Integer": "randint"}
_LOG = {"Float": "loguniform", "Integer": "lograndint"}


def plain_domain(domain: Any) -> Any:
    """Convert a domain of Ray Tune to a table such as ``{"uniform": [0, 1]}``.

    It can serve as `default` of `json.dump`.

    Args:
        domain: the result of `ray.tune.uniform` or a similar function, a function or class, or a numpy number.

    Returns:
        A table of the domain's name and arguments; a function's name as ``{"sample_from": NAME}``; or a Python number.

    Raises:
        TypeError: if `domain` is another object.
        ValueError: if it is a numpy array with other than one element.

    Example:
        >>> from ray import tune
        >>> plain_domain(tune.qloguniform(5, 100, 5)), plain_domain(tune.choice(["a", "b"]))
        ({'qloguniform': [5, 100, 5]}, {'choice': ['a', 'b']})
    """
    kind = type(domain).__name__
    if kind == "Categorical":
        return {"choice": list(domain.categories)}
    if kind == "Function" or callable(domain):
        return {"sample_from": getattr(getattr(domain, "func", domain), "__name__", kind)}
    if kind in _UNIFORM:
        sampler, quantum = domain.sampler, []
        if hasattr(sampler, "q"):
            sampler, quantum = sampler.sampler, [sampler.q]
        name = type(sampler).__name__.removeprefix("_")
        if name == "Normal":
            return {"q" * len(quantum) + "randn": [sampler.mean, sampler.sd, *quantum]}
        names = _LOG if name == "LogUniform" else _UNIFORM
        return {"q" * len(quantum) + names[kind]: [domain.lower, domain.upper, *quantum]}
    if hasattr(domain, "item"):
        return domain.item()
    raise TypeError(f"must be JSON, or a search space of ray.tune, but is {domain!r}")
