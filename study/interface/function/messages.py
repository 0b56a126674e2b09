"""Messages of an isolated trial to its parent: frames of JSON and arrays, read without blocking.

A frame begins with a mark, so that what the trial's code writes to the pipe by mistake isn't taken for a message.
"""

from __future__ import annotations

import io
import json
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_MARK = b"\x93study\r\n"
_SIZES = struct.Struct("!QQ")
_HEADER = len(_MARK) + _SIZES.size
_AT_ONCE = 2**20

Message = tuple[Any, bytes]
"""The content, and the bytes that come with it."""


class BrokenMessageError(ValueError):
    """What was read isn't a message."""


def send(descriptor: int, content: Mapping[str, Any], more: bytes = b"") -> None:
    """Write a message to a pipe."""
    text = json.dumps(content).encode()
    left = memoryview(_MARK + _SIZES.pack(len(text), len(more)) + text + more)
    while left:
        left = left[os.write(descriptor, left) :]


class MessageReader:
    """Messages from a pipe, as far as they have arrived.

    Args:
        descriptor: the pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._arrived = descriptor, bytearray()

    def receive(self) -> bool:
        """Read what has arrived, once; wait only if nothing has.

        Returns:
            Whether the pipe is still open.
        """
        data = os.read(self._descriptor, _AT_ONCE)
        self._arrived += data
        return bool(data)

    def take(self) -> Message | None:
        """Return the next message; None if it hasn't arrived completely.

        Raises:
            BrokenMessageError: if what has arrived isn't a message.
        """
        arrived = self._arrived
        if not _MARK.startswith(bytes(arrived[: len(_MARK)])):
            raise BrokenMessageError(f"{bytes(arrived[:20])!r}")
        if len(arrived) < _HEADER:
            return None
        text_size, more_size = _SIZES.unpack_from(arrived, len(_MARK))
        end = _HEADER + text_size + more_size
        if len(arrived) < end:
            return None
        text, more = bytes(arrived[_HEADER : _HEADER + text_size]), bytes(arrived[_HEADER + text_size : end])
        del arrived[:end]
        try:
            return json.loads(text), more
        except (ValueError, RecursionError):
            raise BrokenMessageError(f"{text[:20]!r}") from None


def packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return named arrays as bytes, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `packed` made bytes of."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)
