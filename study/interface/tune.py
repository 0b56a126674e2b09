"""Search spaces of Ray Tune as plain tables, made from its objects without importing it."""

from __future__ import annotations

from typing import Any

_UNIFORM = {"Float": "uniform", "Integer": "randint"}
_LOG = {"Float": "loguniform", "Integer": "lograndint"}


def plain_domain(domain: Any) -> Any:
    """Return a domain of Ray Tune's as a table, ``{"uniform": [0, 1]}``; it is a `default` of `json.dump`.

    Args:
        domain: what `ray.tune.uniform` and the like return, a function, or a number of numpy.

    Raises:
        TypeError: if it is something else.

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
