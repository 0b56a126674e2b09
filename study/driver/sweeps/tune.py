"""Ray Tune's search spaces, written as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from study.driver.sweeps.sweep import Domain, Sweep, range_of, read_yaml
from study.errors import InputError, nearest

_ARGUMENTS = {
    "grid_search": 0, "choice": 0, "sample_from": 0, "uniform": 2, "quniform": 3, "loguniform": 2, "qloguniform": 3,
    "randint": 2, "qrandint": 3, "lograndint": 2, "qlograndint": 3, "randn": 2, "qrandn": 3,
}  # fmt: skip
"""Number of arguments of each space; 0 for a list, or for any."""


def sweep_of_tune(path: Path) -> Sweep:
    """Read a ``param_space`` of Ray Tune, with spaces as tables such as ``{"uniform": [0, 1]}``.

    Other tables are nested hyperparameters, and other values are fixed.

    Args:
        path: path of the JSON file.

    Raises:
        InputError: if the file can't be read or isn't a table with entries, a space's name looks misspelt or its
            arguments are wrong, or a seed isn't valid.
    """
    content = read_yaml(path)
    if not isinstance(content, Mapping) or not content:
        raise InputError(f'{path}: must be a param_space, such as {{"lr": {{"loguniform": [1e-4, 0.1]}}}}')
    spaces = dict(_spaces(content, path))
    is_search = any(kind not in ("", "grid_search") for kind, _ in spaces.values())
    sweep = Sweep(source=f"Ray Tune's param_space {path}", sampler="random" if is_search else "")
    if is_search and any(kind == "grid_search" for kind, _ in spaces.values()):
        sweep.notes.append("grid_search beside other spaces is a choice: a search has no grid")
    try:
        domains = {name: _domain(name, kind, arguments, sweep.notes) for name, (kind, arguments) in spaces.items()}
    except (ValueError, OverflowError) as error:  # of an infinite limit, or of one that isn't a number
        raise InputError(f"{path}: {error}; limits must be finite numbers") from None
    sweep.add(domains)
    if is_search:
        sweep.notes.append("num_samples, metric, mode and scheduler aren't in param_space: correct search and metrics")
    return sweep


def _spaces(content: Mapping[str, Any], path: Path, before: str = "") -> Iterator[tuple[str, tuple[str, Any]]]:
    """Yield each hyperparameter's name, with the kind of its space (empty for a constant) and its arguments.

    Raise InputError for an invalid space.
    """
    for key, value in content.items():
        name = f"{before}{key}"
        if not isinstance(value, Mapping) or not value:
            yield name, ("", value)
            continue
        kind, arguments = next(iter(value.items()))
        if len(value) == 1 and kind in _ARGUMENTS:
            _check(name, kind, arguments, path)
            yield name, (kind, arguments)
        elif len(value) == 1 and isinstance(arguments, list) and (hint := nearest(kind, _ARGUMENTS)):
            raise InputError(f"{path}: {name}: {kind} isn't a space of ray.tune{hint}")
        else:
            yield from _spaces(value, path, f"{name}.")


def _check(name: str, kind: str, arguments: Any, path: Path) -> None:
    """Raise InputError unless Ray Tune accepts the arguments of a space."""
    count, given = _ARGUMENTS[kind], f"{{{kind!r}: {arguments!r}}}"
    if kind in ("grid_search", "choice") and not (isinstance(arguments, list) and arguments):
        raise InputError(f"{path}: {name}: {kind} must have a list of values, but is {given}")
    if not count:
        return
    if (
        not isinstance(arguments, list)
        or len(arguments) != count
        or any(type(number) not in (int, float) for number in arguments)
    ):
        raise InputError(f"{path}: {name}: {kind} must have {count} numbers, but is {given}")
    if "randn" not in kind and not arguments[0] < arguments[1]:
        raise InputError(f"{path}: {name}: {kind} must have lower < upper, but is {given}")
    if "log" in kind and not arguments[0] > 0:
        raise InputError(f"{path}: {name}: {kind} must have lower > 0, but is {given}")
    if kind.startswith("q") and not arguments[2] > 0:
        raise InputError(f"{path}: {name}: {kind} must have q > 0, but is {given}")


def _domain(name: str, kind: str, arguments: Any, notes: list[str]) -> Domain:
    """Return the values of a space of Ray Tune, and note omitted parts."""
    if not kind:
        return {"choices": [arguments]}
    if kind in ("grid_search", "choice"):
        return {"choices": arguments}
    if kind == "sample_from":
        notes.append(f"{name} is the function {arguments}, which isn't translated: give it a value, now null")
        return {"choices": [None]}
    if kind.endswith("randn"):
        mean, sd = arguments[:2]
        notes.append(f"{name}: {kind} of {mean:g} and {sd:g} is replaced by a uniform range of 2 sd to both sides")
        return range_of(mean - 2 * sd, mean + 2 * sd)
    low, high = arguments[:2]
    step = arguments[2] if kind.startswith("q") else 1 if kind.endswith("randint") else None
    if kind.endswith("randint"):
        low, high = int(low), int(high) - (step == 1)  # without steps, the upper limit is exclusive
    return range_of(low, high, step, name, notes, is_log="log" in kind)
