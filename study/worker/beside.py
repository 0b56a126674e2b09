"""The program of a process that trains packs beside the driver (`study.cluster.beside`)."""

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
    """Train packs as they arrive, until the parent closes the connection or asks to stop.

    The parent sends pickled objects: a `PackWork`, a cell of the study, and then packs. A request to stop is None or,
    while a pack trains, anything. The answers are JSON, because the user's code runs here: null once that code is
    imported or its import has failed, and then events (`event_of`).

    Args:
        parent: connection to the parent.
        request: unused.

    Raises:
        EOFError: if the parent closes the connection before it has sent the `PackWork`.
        OSError: if the parent has ended when an answer is sent.
    """
    work: PackWork = parent.recv()
    assert work.own is not None
    with suppress(BaseException):  # the first pack fails for the same reason
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
    """Return the event that a process of `run` has sent; None for the null after its import of the code.

    The types of the event's fields aren't checked.

    Raises:
        ValueError: if the data are neither an event nor null, since the user's code has written them.
    """
    try:
        content = json.loads(data)
        if content is None:
            return None
        event: Event = _EVENTS[content.pop("event")](**content)
    except (AttributeError, KeyError, TypeError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"data must be an event, but is {data[:60]!r}") from error
    return event
