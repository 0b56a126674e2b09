"""States of training functions as named arrays without pickle, so that loading a state can't run code.

A state may be a number, string, bool, None, bytes, numpy array, numpy number or torch tensor, or a nested dict, list or
tuple of these. Keys of dicts are strings or integers. Tensors are loaded on the CPU. The function must convert
other objects to these types, for example to bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]

_TREE = "tree"
_HOLDS = "numbers, texts, True, False, None, bytes, arrays, tensors, and dicts, lists and tuples of these"


def state_arrays(state: Any) -> dict[str, npt.NDArray[Any]]:
    """Copy a state into named arrays that need no pickle.

    Raises:
        ValueError: if a value or a key is of a type that a state can't hold; the message names its place in the state.
            Also if numpy can't hold a tensor, such as a bfloat16 or a meta tensor, or if an int has more than 4,300
            digits.
        RecursionError: if the state contains itself, or is nested too deeply for Python.

    Example:
        >>> state_of(state_arrays({"epoch": 3, "weights": np.ones(2), "rng": (1, b"x")}))
        {'epoch': 3, 'weights': array([1., 1.]), 'rng': (1, b'x')}
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    tree = json.dumps(_node(state, "state", arrays))
    return {_TREE: np.frombuffer(tree.encode(), np.uint8)} | arrays


def state_of(arrays: Arrays) -> Any:
    """Return the state from the arrays of `state_arrays`.

    Raises:
        ImportError: if the state has a tensor, and torch isn't installed.
        KeyError: if an array is missing.
    """
    return _value(json.loads(arrays[_TREE].tobytes()), arrays)


def _node(value: Any, where: str, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    """Return a value as JSON data: plain values unchanged, others as a dict of kind and content.

    The content of arrays, bytes and tensors is added to `arrays`. An unsupported type raises ValueError.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        if wrong := [key for key in value if type(key) not in (str, int)]:
            raise ValueError(f"a key of {where} must be a text or a whole number, but is {wrong[0]!r}")
        return {"dict": [[key, _node(item, f"{where}[{key!r}]", arrays)] for key, item in value.items()]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_node(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]}
    name = str(len(arrays))
    kind, arrays[name] = _array(value, where)
    return {kind: name}


def _array(value: Any, where: str) -> tuple[str, npt.NDArray[Any]]:
    """Return the kind and content, as an array, of a tensor, bytes, array or numpy number; else raise ValueError."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            return "tensor", np.array(value.detach().cpu().resolve_conj().resolve_neg().numpy())
        except (TypeError, RuntimeError) as error:
            raise ValueError(f"{where} is a tensor that numpy can't hold: {error}") from None
    if type(value) in (bytes, bytearray):
        return "bytes", np.frombuffer(bytes(value), np.uint8)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcSU":
        return "array" if isinstance(value, np.ndarray) else "number", np.array(value)
    raise ValueError(f"{where} is of type {type(value).__name__}, but a state can hold only {_HOLDS}")


def _value(node: Any, arrays: Arrays) -> Any:
    """Return the value of a node that `_node` made."""
    if not isinstance(node, dict):
        return node
    ((kind, content),) = node.items()
    if kind == "dict":
        return {key: _value(item, arrays) for key, item in content}
    if kind in ("list", "tuple"):
        items = [_value(item, arrays) for item in content]
        return items if kind == "list" else tuple(items)
    array = np.array(arrays[content])
    if kind == "tensor":
        import torch  # slow, but functions whose states have tensors import it anyway

        return torch.from_numpy(array)
    return array.tobytes() if kind == "bytes" else array[()] if kind == "number" else array
