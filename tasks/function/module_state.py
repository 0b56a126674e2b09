"""Values at module level in the user's modules, which a trial can change and later trials can read.

Settings of the process, such as its working directory, are put back after each trial (`process_state`).
"""

from __future__ import annotations

import pickle
import sys
import types
import warnings
from collections.abc import Collection, Mapping
from typing import Any

_DEPTH = 3


def module_state(modules: Collection[str]) -> dict[str, tuple[str, Any]]:
    """Return what later trials can read: by name, its type and a copy that can be compared.

    Args:
        modules: names of the user's top-level modules.

    Example:
        >>> import tasks.function.module_state as module
        >>> module.COUNTS = [1]
        >>> before = module_state(["tasks"])
        >>> module.COUNTS.append(2)
        >>> changed_state(before, module_state(["tasks"]))
        ('tasks.function.module_state.COUNTS (list)',)
        >>> del module.COUNTS
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some types warn that they won't be picklable in later versions of Python
        state: dict[str, tuple[str, Any]] = {}
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in modules and isinstance(module, types.ModuleType):
                state |= _values(name, vars(module), module.__name__)
    return state


def changed_state(before: Mapping[str, tuple[str, Any]], after: Mapping[str, tuple[str, Any]]) -> tuple[str, ...]:
    """Return the names of what changed, each with its type; what is new doesn't count."""
    names = [name for name in before if name in after and before[name] != after[name]]
    return tuple(f"{name} ({before[name][0]})" for name in names)


def _values(prefix: str, content: Mapping[str, Any], module: str) -> dict[str, tuple[str, Any]]:
    """Return the state of the names of a module, or of a class that is defined in it."""
    values: dict[str, tuple[str, Any]] = {}
    for name, value in list(content.items()):
        if name.startswith("__") or isinstance(value, types.ModuleType):
            continue
        path = f"{prefix}.{name}"
        if isinstance(value, type):
            if value.__module__ == module:
                values |= _values(path, vars(value), "")
            continue
        kind = type(value)
        if hasattr(value, "cache_info"):
            values[path] = ("a cache", value.cache_info())
        elif isinstance(value, types.FunctionType):
            values[path] = ("a function's defaults or attributes", _function(value))
        elif (copy := _copied(value, _DEPTH)) is not None:
            values[path] = (kind.__name__, copy)
    return values


def _function(value: types.FunctionType) -> Any:
    cells = [cell.cell_contents for cell in value.__closure__ or () if not callable(_contents(cell))]
    return _copied((value.__defaults__, value.__kwdefaults__, vars(value), cells), _DEPTH)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return len


def _copied(value: Any, depth: int) -> Any:
    """Return bytes that stand for a value; None if it has no state that can be copied."""
    try:
        return pickle.dumps(value)
    except Exception:  # whatever a type raises that can't be pickled
        pass
    if hasattr(value, "get_state"):  # a generator of torch
        try:
            return _copied(value.get_state(), 0)
        except Exception:  # it is something else that has such a method
            return None
    content = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    if isinstance(value, list | tuple | set | frozenset):
        content = dict(enumerate(value))
    if content is None or depth == 0:
        return None
    return {str(name): _copied(item, depth - 1) for name, item in list(content.items())}
