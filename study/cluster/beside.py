"""Training in one process beside the driver, for studies shorter than the start of Ray."""

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
"""Approximate seconds until Ray and its workers have started; longer studies are left to them."""
_FIRST_TRIAL_S, _LOOK_AFTER_S = 1.0, 2.5  # the first trial includes late imports
_EVERY_S = 0.1
_STOP_S, _CHECKPOINT_S = 1.0, 60.0


class PackProcess:
    """A process that trains packs sequentially; a context manager that ends it with the block.

    Args:
        work: trains a pack.
        cell: a cell of the study.
        environment: environment variables of the process.
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
        """End the process."""
        self._process.close()

    def send(self, content: PackWork | Cell | Pack | None) -> None:
        """Send the next message to the process; None requests a stop. If it has ended, `events` raises an error."""
        with suppress(OSError):
            self._process.connection.send(content)

    def events(self, timeout_s: float) -> Iterator[Event | None]:
        """Yield the events that have arrived, after waiting up to `timeout_s` seconds for the first.

        None stands for the message that the code is imported. Nothing is yielded after a timeout.

        Raises:
            ChildProcessError: if the process has ended or sent invalid data.
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
    """Scheduler that trains packs in a process beside this one, while that is quicker than starting Ray.

    Args:
        process: trains the packs.
        stop: set to end early, with a checkpoint.
        more: called for more bundles whenever all are done, until it returns none; None if no more can follow.

    Attributes:
        left: bundles that aren't done when `run` returns, for Ray: they would take too long here, or the process has
            ended during a pack.
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
        """Run bundles until all are done, or the remaining ones are in `left`; see `study.cluster.workers.Scheduler`.

        The process has ended then, so that no trial continues in it while another worker trains it.

        Args:
            bundles: the bundles to run.
            shares: unused.
            on_event: called with each event, in this process.

        Returns:
            An empty set, since no other workers were used.

        Raises:
            Exception: the error of `on_event` or `more`.
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
        """Train packs in order until one crashes or training here is over; return those not done, one pack a bundle."""
        self._total += sum(len(pack.trials) for pack in packs)
        for place, pack in enumerate(packs):
            is_done = self._train(pack, on_event)
            if not is_done or self._is_over:
                return [(other,) for other in packs[place + is_done :]]
            self._ended += len(pack.trials)
        return []

    def _train(self, pack: Pack, on_event: Callable[[Event], None]) -> bool:
        """Train a pack, unless a stop or a long duration ends training here; return True if it was completed."""
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
        """Return True if Ray would be quicker, given the number of ended trials of the pack."""
        now_s = time.monotonic()
        if self._began_s is None:
            return now_s - self._asked_s > RAY_STARTS_S
        took_s, done = now_s - self._began_s, self._ended + ended
        if not done:
            return took_s > _FIRST_TRIAL_S
        left_s = took_s * (self._total - done) / done
        return took_s > _LOOK_AFTER_S and (left_s > RAY_STARTS_S or took_s > 2 * RAY_STARTS_S)
