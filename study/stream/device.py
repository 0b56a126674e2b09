"""The device that tasks compute on: where their streams' numbers, their data and new tensors are put."""

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
    """Compute on a device: torch's factory functions make tensors there, and streams put their numbers there.

    Args:
        device: such as ``cpu`` or ``cuda``.

    Example:
        >>> with use_device("meta"):
        ...     torch.arange(3).device, on_device(torch.ones(2)).device
        (device(type='meta'), device(type='meta'))
    """
    chosen = None if device == "cpu" else torch.device(device)
    if chosen == _DEVICE.get():  # the CPU is what torch uses anyway, and its calls take longer if that is said
        yield
        return
    token = _DEVICE.set(chosen)
    try:
        with torch.device(device):
            yield
    finally:
        _DEVICE.reset(token)


def current_device() -> torch.device | None:
    """Return the device that `use_device` chose; None for the CPU."""
    return _DEVICE.get()


def on_device(data: Tensor) -> Tensor:
    """Return data of a task on the device that is used; they are copied there once.

    Args:
        data: on the CPU, such as a data set that is kept from call to call; any shape.

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
