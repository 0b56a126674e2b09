"""Messages of an isolated trial to its parent: frames of JSON and arrays, read without blocking.

Each frame begins with a mark, so that stray output of the trial's code isn't taken for a message.
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

from study.interface.json_text import parse_json

_MARK = b"\x93study\r\n"
_SIZES = struct.Struct("!QQ")
_HEADER = len(_MARK) + _SIZES.size
_AT_ONCE = 2**20

Message = tuple[Any, bytes]
"""The JSON content, and the bytes after it."""


class BrokenMessageError(ValueError):
    """Data read from a pipe that aren't a message."""


def send(descriptor: int, content: Mapping[str, Any], payload: bytes = b"") -> None:
    """Write a message to a pipe.

    Args:
        descriptor: the pipe.
        content: JSON content.
        payload: bytes to send after it.

    Raises:
        OSError: if the pipe can't be written, for example because its other end is closed.
        TypeError: if the content isn't JSON.
    """
    text = json.dumps(content).encode()
    unsent = memoryview(_MARK + _SIZES.pack(len(text), len(payload)) + text + payload)
    while unsent:
        unsent = unsent[os.write(descriptor, unsent) :]


class MessageReader:
    """Reader of messages from a pipe.

    Args:
        descriptor: the pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._arrived = descriptor, bytearray()

    def receive(self) -> bool:
        """Read the available data once, at most 1 MiB; block only if there are none.

        Returns:
            True if data were read; False if the other end is closed and all data have been read.

        Raises:
            OSError: if the pipe can't be read.
        """
        data = os.read(self._descriptor, _AT_ONCE)
        self._arrived += data
        return bool(data)

    def take(self) -> Message | None:
        """Remove the next message from the received data, and return it; None if it isn't complete yet.

        Raises:
            BrokenMessageError: if the data aren't a message.
        """
        arrived = self._arrived
        if not _MARK.startswith(bytes(arrived[: len(_MARK)])):
            raise BrokenMessageError(f"{bytes(arrived[:20])!r}")
        if len(arrived) < _HEADER:
            return None
        text_size, payload_size = _SIZES.unpack_from(arrived, len(_MARK))
        end = _HEADER + text_size + payload_size
        if len(arrived) < end:
            return None
        text, payload = bytes(arrived[_HEADER : _HEADER + text_size]), bytes(arrived[_HEADER + text_size : end])
        del arrived[:end]
        try:
            return parse_json(text), payload
        except ValueError:
            raise BrokenMessageError(f"{text[:20]!r}") from None


def packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Serialise named arrays without pickle.

    Raises:
        ValueError: if an array holds Python objects.
        TypeError: if an array is called ``file`` or ``allow_pickle``, as arguments of `numpy.savez` are.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `packed` serialised.

    Raises:
        Exception: of various types, if the data aren't from `packed`.
    """
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)
