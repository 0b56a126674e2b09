"""Scheduler in this process, for debugging."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from study.cluster.workers import Bundle, More
from study.records import Event, Pack, PackCrashed, PackFailed
from study.worker.concurrent import Work, concurrently


@dataclass(frozen=True)
class LocalScheduler:
    """Scheduler that trains packs sequentially in this process, without retries after a crash.

    Args:
        work: trains a pack.
        stop: set to end early, with a checkpoint.
        more: called for more bundles whenever all are done, until it returns none; None if no more can follow.
    """

    work: Work
    stop: threading.Event
    more: More | None = None
    left: Sequence[Bundle] = ()

    def run(
        self, bundles: Sequence[Bundle], shares: Mapping[str, float] | None, on_event: Callable[[Event], None]
    ) -> set[str]:
        """Run bundles until all are done or `stop` is set; see `study.cluster.workers.Scheduler`.

        Args:
            bundles: the bundles to run.
            shares: unused.
            on_event: called with each event, in this process.

        Returns:
            This process, as ``host:process``.

        Raises:
            Exception: the error of `on_event` or `more`.
        """
        with _restored_threads():
            while bundles:
                for pack in [pack for bundle in bundles for pack in bundle]:
                    self._run(pack, on_event)
                    if self.stop.is_set():
                        return {_HERE}
                bundles = self.more()[0] if self.more is not None else ()
        return {_HERE}

    def _run(self, pack: Pack, on_event: Callable[[Event], None]) -> None:
        with closing(concurrently(self.work, (pack,))) as steps:
            for events in steps:
                for event in events:
                    on_event(PackFailed(event.pack_id, event.error) if isinstance(event, PackCrashed) else event)
                if self.stop.is_set():
                    return


@contextmanager
def _restored_threads() -> Iterator[None]:
    """Restore torch's number of threads and OMP_NUM_THREADS after the block.

    Engines set them for their process, and a notebook goes on in this one.
    """
    variable = os.environ.get(_THREADS)
    threads = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else os.cpu_count() or 1
    try:
        yield
    finally:
        os.environ.pop(_THREADS, None)
        if variable is not None:
            os.environ[_THREADS] = variable
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)


_THREADS = "OMP_NUM_THREADS"
_HERE = f"{socket.gethostname()}:{os.getpid()}"
