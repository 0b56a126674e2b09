"""The device that tasks compute on, for the numbers of streams, data and new tensors."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

_DEVICE: ContextVar[torch.device | None] = ContextVar("device", default=None)


@contextmanager
def use_device(device: str) -> Iterator[None]:
    """Compute on a device within the context: torch's factory functions and streams put their tensors there.

    This is a no-op if the device is in use already. So ``cpu``, unless within the context of another device, leaves the
    default device that torch has by other means.

    Args:
        device: such as ``cpu`` or ``cuda``.

    Raises:
        RuntimeError: if torch doesn't know the device.

    Example:
        >>> with use_device("meta"):
        ...     torch.arange(3).device, on_device(torch.ones(2)).device
        (device(type='meta'), device(type='meta'))
    """
    chosen = None if device == "cpu" else torch.device(device)
    if chosen == _DEVICE.get():  # torch uses the CPU by default, and is slower if told so
        yield
        return
    token = _DEVICE.set(chosen)
    try:
        with torch.device(device):
            yield
    finally:
        _DEVICE.reset(token)


def current_device() -> torch.device | None:
    """Return the device of `use_device`; None for the CPU."""
    return _DEVICE.get()


def on_device(data: Tensor) -> Tensor:
    """Return a task's data on the device in use; each tensor is copied there once.

    The copy is kept as long as the tensor; later changes of the tensor's numbers aren't copied.

    Args:
        data: on the CPU, such as a data set that is kept between calls; any shape.

    Example:
        >>> data = torch.arange(3)
        >>> on_device(data) is data
        True
    """
    device = _DEVICE.get()
    if device is None:
        return data
    copies = _copies.setdefault(data, {})
    if device not in copies:
        copies[device] = data.to(device)
    return copies[device]


_copies: MutableMapping[Tensor, dict[torch.device, Tensor]] = WeakTensorKeyDictionary()
