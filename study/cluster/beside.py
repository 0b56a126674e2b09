"""Packs in one process beside the driver: for studies that are over before Ray would have started."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from types import TracebackType
from typing import Self

from study.cluster.workers import Bundle, More
from study.engine.calls.guarded import GuardedProcess, ending, import_path
from study.records import Cell, Event, Pack, PackCrashed, PackDone, Progress
from study.worker.beside import event_of
from study.worker.pack_work import PackWork

_PROGRAM = "study.worker.beside"
RAY_STARTS_S = 5.0
"""Seconds in which Ray and its workers start, about: what takes longer is left to them."""
_FIRST_TRIAL_S, _LOOK_AFTER_S = 1.0, 2.5  # the first trial imports what is imported late
_EVERY_S = 0.1
_STOP_S, _CHECKPOINT_S = 1.0, 60.0


class PackProcess:
    """A process that trains packs one after another; as a context manager, it ends with the block.

    Args:
        work: trains a pack.
        cell: a cell of the study.
        environment: of the process.
    """

    def __init__(self, work: PackWork, cell: Cell, environment: Mapping[str, str]) -> None:
        self._work, self._cell, self._environment = work, cell, environment

    def __enter__(self) -> Self:
        self._process = GuardedProcess(_PROGRAM, {"path": import_path()}, environment=self._environment)
        self.send(self._work)
        self.send(self._cell)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process and whatever it trains."""
        self._process.close()

    def send(self, content: PackWork | Cell | Pack | None) -> None:
        """Send what the process expects next; None is a request to stop. If it has ended, `events` says so."""
        with suppress(OSError):
            self._process.connection.send(content)

    def events(self, timeout_s: float) -> Iterator[Event | None]:
        """Yield what has come within a time, None once the code is imported.

        Raises:
            ChildProcessError: if the process has ended, or has sent something else.
        """
        connection = self._process.connection
        if not wait([connection, self._process.end], timeout_s):
            return
        try:
            while connection.poll():
                yield event_of(connection.recv_bytes())
        except (EOFError, OSError):
            self._process.kill()
        except ValueError:
            self._process.kill()
            raise ChildProcessError("the code wrote to a file descriptor that it hasn't opened") from None
        if self._process.has_ended(0):
            raise ChildProcessError(f"the process that trained it ended with {ending(self._process.exit_code())}")


class BesideScheduler:
    """Runs packs in a process beside this one, for as long as that is quicker than to start Ray.

    Args:
        process: trains the packs.
        stop: set to end early, with a checkpoint.
        more: called for more bundles whenever all are done, until it returns none; None if no more can follow.

    Attributes:
        left: bundles that haven't been done when `run` returns, for Ray: all together would take too long here, or the
            process has ended in the middle of a pack.
    """

    def __init__(self, process: PackProcess, stop: threading.Event, more: More | None = None) -> None:
        self._process, self._stop, self._more = process, stop, more
        self._began_s: float | None = None
        self._ended = self._total = 0
        self._is_over = False
        self.left: Sequence[Bundle] = ()

    def run(
        self, bundles: Sequence[Bundle], shares: Mapping[str, float] | None, on_event: Callable[[Event], None]
    ) -> set[str]:
        """Run bundles until all are done or the rest is left; see `study.cluster.workers.Scheduler`.

        The process has ended then: a trial in it must not go on beside the worker that trains it next.
        """
        self._asked_s = time.monotonic()
        try:
            while bundles:
                self.left = self._run([pack for bundle in bundles for pack in bundle], on_event)
                bundles = self._more()[0] if self._more is not None and not self.left else ()
        finally:
            self._process.close()
        return set()

    def _run(self, packs: Sequence[Pack], on_event: Callable[[Event], None]) -> list[Bundle]:
        """Train packs, and return those that are left."""
        self._total += sum(len(pack.trials) for pack in packs)
        for place, pack in enumerate(packs):
            is_done = self._is_done(pack, on_event)
            if not is_done or self._is_over:
                return [(other,) for other in packs[place + is_done :]]
            self._ended += len(pack.trials)
        return []

    def _is_done(self, pack: Pack, on_event: Callable[[Event], None]) -> bool:
        """Train a pack, and return whether it came to its end."""
        self._process.send(pack)
        ended, until_s = 0, float("inf")
        while time.monotonic() < until_s:
            try:
                for event in self._process.events(_EVERY_S):
                    if event is None:
                        self._began_s = time.monotonic()
                        continue
                    on_event(event)
                    if isinstance(event, PackDone):
                        return True
                    if isinstance(event, PackCrashed):
                        return False
                    if isinstance(event, Progress):
                        ended = event.ended
            except ChildProcessError as error:
                if not self._is_over:
                    on_event(PackCrashed(pack.id, str(error)))
                return False
            if not self._is_over and (self._stop.is_set() or self._takes_too_long(ended)):
                self._is_over = True
                self._process.send(None)
                until_s = time.monotonic() + (_CHECKPOINT_S if self._stop.is_set() else _STOP_S)
        return False

    def _takes_too_long(self, ended: int) -> bool:
        """Return whether Ray would be quicker, given how many trials of the pack have ended."""
        now_s = time.monotonic()
        if self._began_s is None:
            return now_s - self._asked_s > RAY_STARTS_S
        took_s, done = now_s - self._began_s, self._ended + ended
        if not done:
            return took_s > _FIRST_TRIAL_S
        left_s = took_s * (self._total - done) / done
        return took_s > _LOOK_AFTER_S and (left_s > RAY_STARTS_S or took_s > 2 * RAY_STARTS_S)
