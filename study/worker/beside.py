"""The program of a process that trains packs beside the driver, which is `study.cluster.beside`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from study.records import Event, Notice, PackCrashed, PackDone, Preparing, Progress
from study.worker.concurrent import concurrently
from study.worker.pack_work import PackWork

_EVENTS = {kind.__name__: kind for kind in (Notice, PackCrashed, PackDone, Preparing, Progress)}


def run(parent: Connection, request: Mapping[str, Any]) -> None:
    """Train packs as they come, until the parent closes the connection or asks to stop.

    The parent sends objects, as Ray sends them to workers: a `PackWork`, a cell of the study, and then packs. While a
    pack trains, whatever it sends is a request to stop. The answers are data, because the user's code runs here: null
    when that code is imported, and then events (`event_of`).
    """
    work: PackWork = parent.recv()
    assert work.own is not None
    with suppress(BaseException):  # the first pack fails of it, with the reason
        work.own.prepare(parent.recv())
    parent.send_bytes(json.dumps(None).encode())
    with suppress(EOFError):
        while (pack := parent.recv()) is not None:
            with closing(concurrently(work, (pack,))) as steps:
                for (event,) in steps:
                    parent.send_bytes(json.dumps({"event": type(event).__name__} | asdict(event)).encode())
                    if not isinstance(event, PackDone | PackCrashed) and parent.poll():
                        return


def event_of(data: bytes) -> Event | None:
    """Return the event that such a process has sent; None for what it sends when the code is imported.

    Raises:
        ValueError: if it is none of these: code of the user's has written it.
    """
    try:
        content = json.loads(data)
        if content is None:
            return None
        event: Event = _EVENTS[content.pop("event")](**content)
    except (AttributeError, KeyError, TypeError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"data must be an event, but is {data[:60]!r}") from error
    return event
