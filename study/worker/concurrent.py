"""Several packs at once in one worker, on a GPU that a single pack would leave half idle.

Kernels of different processes take turns on a GPU; those of one process run in parallel. So packs that share a GPU are
threads of one worker, which mostly wait for the device. On the CPU a worker has one pack and no threads.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing

from study.interface.error_text import entries_of, error_traceback
from study.interface.stop_signals import noting_stops, requested_stop
from study.records import Event, Pack, PackCrashed, PackDone

Work = Callable[[Pack], Iterator[Event]]
"""Trains and stores a pack, and yields its progress about every second; if closed early, stores a checkpoint."""

# Concurrent packs' events are yielded together, at most this often: each report costs the driver some milliseconds.
_EVERY_S = 1.0
# Innermost frames of a traceback to keep: enough to include the user's code that called torch.
_MOST_FRAMES = 16


def concurrently(work: Work, packs: Sequence[Pack]) -> Generator[list[Event], None, None]:
    """Run packs in parallel, and yield lists of their events, including the end of each, done or crashed.

    If it is closed early, each pack stores a checkpoint. If one crashes, the others continue.

    Args:
        work: trains one pack.
        packs: the packs to run.

    Raises:
        BaseException: the exception of a signal's handler, such as KeyboardInterrupt.

    Example:
        >>> from study.spec import load_spec
        >>> from study.plan.packs import make_packs
        >>> from study.plan.plan import make_plan
        >>> two = make_packs(make_plan(load_spec("simple")).trials, slots=1)[:2]
        >>> [len(events) for events in concurrently(lambda pack: iter([]), two)]
        [2]
    """
    if len(packs) == 1:
        with closing(_events_with_end(work, packs[0])) as steps:
            for event in steps:
                yield [event]
        return
    threads = _Threads(work, packs)
    try:
        yield from threads.events()
    finally:
        threads.stop()


def _events_with_end(work: Work, pack: Pack) -> Generator[Event, None, None]:
    """Yield the events of a pack's work, and its end as the last event."""
    steps = work(pack)
    try:
        while (event := _next_event(steps, pack)) is not None:
            yield event
            if isinstance(event, PackCrashed) and event.pack_id == pack.id:
                return
        yield PackDone(pack.id)
    finally:
        close(steps)


def _next_event(steps: Iterator[Event], pack: Pack) -> Event | None:
    """Return the next event, the crash of the pack, or None at the end.

    An error of the user's code must not end other packs: only a signal ends the process.
    """
    with noting_stops():
        try:
            return next(steps, None)
        except BaseException as error:
            if requested_stop() is not None:
                raise
            return PackCrashed(pack.id, crash_text(error))


def crash_text(error: BaseException) -> str:
    """Return the last 16 entries of an error's traceback, and its message."""
    return error_traceback(error, entries_of(error), limit=-_MOST_FRAMES)


class _Threads:
    """The threads that run packs, one each."""

    def __init__(self, work: Work, packs: Sequence[Pack]) -> None:
        self._work = work
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(pack,), daemon=True) for pack in packs]
        for thread in self._threads:
            thread.start()

    def _run(self, pack: Pack) -> None:
        """Run a pack, and put its events into the queue, then None."""
        try:
            with closing(_events_with_end(self._work, pack)) as steps:
                for event in steps:
                    self._queue.put(event)
                    if self._stop.is_set():
                        return
        except BaseException as error:  # also SystemExit and the like, which would end a thread without a report
            self._queue.put(PackCrashed(pack.id, crash_text(error)))
        finally:
            self._queue.put(None)

    def events(self) -> Iterator[list[Event]]:
        """Yield the events of about a second together, until all packs have ended."""
        left = len(self._threads)
        while left:
            together: list[Event] = []
            until = time.monotonic() + _EVERY_S
            while left and (remaining := until - time.monotonic()) > 0:
                try:
                    event = self._queue.get(timeout=remaining)
                except queue.Empty:
                    break
                if event is None:
                    left -= 1
                else:
                    together.append(event)
            if together:
                yield together

    def stop(self) -> None:
        """End all threads; each pack stores a checkpoint."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


def close(steps: Iterator[Event]) -> None:
    """Close an iterator if it has a method `close`, as generators do.

    Raises:
        Exception: any error of its own end, such as StoreAwayError if a checkpoint can't be stored.
    """
    closing = getattr(steps, "close", None)
    if closing is not None:
        closing()
