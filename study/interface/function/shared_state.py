"""Values at module level in the user's modules; a trial that changes them can affect later trials.

Settings of the process, such as its working directory, are restored after each trial (`process_state`).
"""

from __future__ import annotations

import random
import sys
import types
from collections import deque
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from study.interface.error_text import attempt

_DEPTH = 3


def shared_state(modules: Collection[str]) -> dict[str, tuple[str, Any]]:
    """Return the state of the user's modules, as each value's type and comparable copy by dotted name.

    Attributes of classes that a module defines are included. Names that begin with two underscores, modules, other
    classes and values that can't be read are left out. Below three levels of nesting, only a container's length counts.

    Args:
        modules: names of the user's top-level modules; their imported submodules are included.

    Example:
        >>> import study.interface.function.shared_state as module
        >>> module.COUNTS = [1]
        >>> before = shared_state(["study"])
        >>> module.COUNTS.append(2)
        >>> changed_state(before, shared_state(["study"]))
        ('study.interface.function.shared_state.COUNTS (list)',)
        >>> del module.COUNTS
    """
    state: dict[str, tuple[str, Any]] = {}
    for name, module in sys.modules.copy().items():  # a copy, since another thread may import modules
        if name.partition(".")[0] in modules and isinstance(module, types.ModuleType):
            state |= _values(name, vars(module), module.__name__)
    return state


def changed_state(before: Mapping[str, tuple[str, Any]], after: Mapping[str, tuple[str, Any]]) -> tuple[str, ...]:
    """Return each changed value as ``name (type before)``; new and removed values are ignored."""
    names = [name for name in before if name in after and before[name] != after[name]]
    return tuple(f"{name} ({before[name][0]})" for name in names)


def _values(prefix: str, content: Mapping[str, Any], module: str) -> dict[str, tuple[str, Any]]:
    """Return the state of the values in a module, or in a class defined in it.

    Args:
        prefix: dotted name of the module or class.
        content: its attributes.
        module: name of the module, whose own classes are entered; empty for a class, whose inner classes are skipped.
    """
    values: dict[str, tuple[str, Any]] = {}
    for name, value in list(content.items()):
        if name.startswith("__") or issubclass(type(value), types.ModuleType):
            continue
        path = f"{prefix}.{name}"
        if issubclass(type(value), type):
            if value.__module__ == module:
                values |= _values(path, vars(value), "")
            continue
        # Weak references may die while they are read, and a user's object may raise anything.
        if (state := attempt(partial(_state, value), None)) is not None:
            values[path] = state
    return values


def _state(value: Any) -> tuple[str, Any] | None:
    """Return a value's type and a comparable copy, or None if its state can't be read."""
    if hasattr(value, "cache_info"):
        return "a cache", value.cache_info()
    if isinstance(value, types.FunctionType):
        return "a function's defaults or attributes", _function(value)
    copy = _copied(value, _DEPTH)
    return None if copy is None else (type(value).__name__, copy)


def _function(value: types.FunctionType) -> Any:
    cells = [cell.cell_contents for cell in value.__closure__ or () if not callable(_contents(cell))]
    return _copied((value.__defaults__, value.__kwdefaults__, vars(value), cells), _DEPTH)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return len


def _copied(value: Any, depth: int) -> Any:
    """Return a comparable copy of a value; nested containers and attributes are copied down to `depth`.

    Below it, only their lengths count.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return repr(value.bit_generator.state if isinstance(value, np.random.Generator) else value.get_state())
    if isinstance(value, random.Random):
        return value.getstate()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor | torch.Generator):
        tensor = value if isinstance(value, torch.Tensor) else value.get_state()
        values = attempt(lambda: tensor.detach().cpu().tolist(), None)  # a tensor may have no data
        return str(tensor.dtype), repr(values)
    content: Any
    if isinstance(value, Mapping):
        content = dict(value)
    elif isinstance(value, list | tuple | set | frozenset | deque):
        content = dict(enumerate(value))
    else:
        content = getattr(value, "__dict__", None) or attempt(lambda: repr(value), "")
    if depth == 0 or not isinstance(content, dict):
        return content if isinstance(content, str) else len(content)
    return {str(name): _copied(item, depth - 1) for name, item in list(content.items())}
