"""A second torch device without hardware: its tensors are the CPU's, but can't be mixed with those of the CPU.

Torch lets a Python program be the backend `privateuseone`, here named ``far``. Its results have the bits of the CPU. It
refuses what a GPU refuses: operations on tensors of both devices, unless those of the CPU are scalars, and numpy's view
of a tensor that wasn't copied to the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch.fx.experimental import proxy_tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

FAR = "far:0"
_COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
_is_registered = False


class FarTensor(torch.Tensor):
    """A tensor on the far device; its numbers are in a tensor of the CPU."""

    def __new__(cls, near: torch.Tensor):
        tensor = torch.Tensor._make_wrapper_subclass(
            cls, near.shape, strides=near.stride(), storage_offset=near.storage_offset(), dtype=near.dtype, device=FAR
        )
        tensor.near = near
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with _Dispatch():
            return func(*args, **(kwargs or {}))


class _Dispatch(TorchDispatchMode):
    """A dispatch mode that computes on the CPU, and counts copies back from the far device."""

    def __init__(self) -> None:
        super().__init__()
        self.copied_back = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        recorder = proxy_tensor.get_proxy_mode()
        if recorder is not None:  # otherwise it would be called last, and only see tensors of the CPU
            with proxy_tensor.disable_proxy_modes_tracing(), self:
                return recorder.__torch_dispatch__(func, types, args, kwargs)
        tensors = [tensor for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, torch.Tensor)]
        far = [tensor for tensor in tensors if isinstance(tensor, FarTensor)]
        if func not in _COPIES and far and any(tensor.dim() for tensor in tensors if not isinstance(tensor, FarTensor)):
            raise RuntimeError(f"all tensors must be on one device, but {func} got some on {FAR} and some on the CPU")
        is_far = isinstance(args[0], FarTensor) if func is torch.ops.aten.copy_.default else bool(far)
        if kwargs.get("device") is not None:
            is_far, kwargs["device"] = torch.device(kwargs["device"]).type == "far", torch.device("cpu")
        self.copied_back += func in _COPIES and bool(far) and not is_far
        result = func(*tree_map(_near, args), **tree_map(_near, kwargs))
        known = {id(tensor.near): tensor for tensor in far}
        return (
            tree_map(lambda tensor: known[id(tensor)] if id(tensor) in known else _far(tensor), result)
            if is_far
            else result
        )


class _FarModule(_DummyBackendModule):
    """The module `torch.far`; the generator for `torch.random.fork_rng` draws nothing."""

    __name__ = "torch.far"  # required of all imported modules

    def get_rng_state(self, device=FAR) -> torch.Tensor:
        return torch.empty(0, dtype=torch.uint8)

    def set_rng_state(self, state, device=FAR) -> None:
        pass


def _near(value):
    return value.near if isinstance(value, FarTensor) else value


def _far(value):
    return FarTensor(value) if isinstance(value, torch.Tensor) and not isinstance(value, FarTensor) else value


@contextmanager
def far_device() -> Iterator[_Dispatch]:
    """Activate the far device; it stays registered in this process.

    The test is skipped on a machine with a GPU: torch has one accelerator per process, so gradients on the GPU would
    fail in all later tests.
    """
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    global _is_registered
    if not _is_registered:
        _setup_privateuseone_for_python_backend("far", backend_module=_FarModule())
        _is_registered = True
    before = torch._C._only_lift_cpu_tensors()
    # Otherwise torch.tensor would call the backend directly, and the backend has only the operations of `_Dispatch`.
    torch._C._set_only_lift_cpu_tensors(True)
    handled = proxy_tensor.HANDLED_TYPES
    proxy_tensor.HANDLED_TYPES = (*handled, FarTensor)
    try:
        with _Dispatch() as dispatch:
            yield dispatch
    finally:
        proxy_tensor.HANDLED_TYPES = handled
        torch._C._set_only_lift_cpu_tensors(before)
