"""Packs one after another in this process, so that a debugger sees everything."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing

from study.records import Event, Pack, PackCrashed, PackFailed
from study.worker.concurrent import Work, abreast


def run_here(
    packs: Sequence[Pack],
    work: Work,
    on_event: Callable[[Event], None],
    *,
    stop: threading.Event,
    more: Callable[[], Sequence[Pack]] = lambda: (),
) -> None:
    """Run the packs one after another in this process; what crashes isn't tried again.

    Args:
        packs: what to run.
        work: what a pack does.
        on_event: told what happens.
        stop: set to end early, with a checkpoint.
        more: asked for more packs whenever all are done, until it has none.
    """
    while packs:
        for pack in packs:
            _run(pack, work, on_event, stop)
            if stop.is_set():
                return
        packs = more()


def _run(pack: Pack, work: Work, on_event: Callable[[Event], None], stop: threading.Event) -> None:
    with closing(abreast(work, (pack,))) as steps:
        for events in steps:
            for event in events:
                on_event(PackFailed(event.pack_id, event.error) if isinstance(event, PackCrashed) else event)
            if stop.is_set():
                return
