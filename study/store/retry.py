"""Retries of actions on a store that is away: its disk is full or read-only, or its server is down."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from study.errors import PATIENCE_S, StoreAwayError
from study.records import Event, Notice, Tick
from study.words import duration

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_TICK_S = 1.0


def patiently(act: Callable[[], T], patience_s: float) -> Generator[Event, None, T]:
    """Act on the store; while it is away, retry after growing pauses.

    A tick comes every second during a pause. If the caller closes the generator then, the action is tried once more.

    Args:
        act: the action, which may run several times.
        patience_s: seconds after which its error is raised; 0 to try once.

    Yields:
        A notice when the store is away and when it is back, and ticks in between.

    Returns:
        The result of `act`.

    Raises:
        StoreAwayError: the last one, once `patience_s` is over.
        GeneratorExit: if the caller closes the generator during a pause, and the last try succeeds.
        Exception: any other error of `act`, at once, and any error of that last try.

    Example:
        >>> list(patiently(lambda: print("stored"), 600.0))
        stored
        []
    """
    began = time.monotonic()
    pause_s, away = _FIRST_PAUSE_S, False
    while True:
        try:
            done = act()
            break
        except StoreAwayError as error:
            left_s = patience_s - (time.monotonic() - began)
            if left_s <= 0:
                raise
            first, away = not away, True
            text = _away(error, patience_s)
        try:
            if first:
                yield Notice(text)
            yield from _ticks(min(pause_s, left_s))
        except GeneratorExit:
            act()
            raise
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    if away:
        yield Notice(_back(began))
    return done


def _away(error: StoreAwayError, patience_s: float) -> str:
    """Return the notice that the store is away."""
    return f"{error}. Trying again for up to {duration(patience_s)}; nothing is lost meanwhile"


def _back(began: float) -> str:
    """Return the notice that the store is back."""
    return f"the store is back after {duration(time.monotonic() - began)}"


@dataclass(frozen=True)
class Patience:
    """Callable that acts on the store, and blocks while it is away.

    Args:
        notify: called with a sentence when the store is away and when it is back.
        patience_s: seconds after which its error is raised.

    Example:
        >>> Patience(print)(lambda: "read")
        'read'
    """

    notify: Callable[[str], None]
    patience_s: float = PATIENCE_S

    def __call__(self, act: Callable[[], T], patience_s: float | None = None) -> T:
        """Run an action, again while the store is away, and return its result.

        Args:
            act: the action, which may run several times.
            patience_s: seconds for this action instead of the default; 0 to try once.

        Raises:
            StoreAwayError: the last one, once the time is over.
            Exception: any other error of `act`, at once.
        """
        steps = patiently(act, self.patience_s if patience_s is None else patience_s)
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                done: T = end.value
                return done
            if isinstance(event, Notice):
                self.notify(event.text)


class Later:
    """Queue of actions on the store: runs them in order, and never blocks while the store is away.

    Args:
        notify: called with a sentence when the store is away and when it is back.
        patience_s: seconds after which its error is raised; 0 to try once.

    Example:
        >>> later = Later(print)
        >>> later.do(lambda: print("stored")), later.waiting
        stored
        (None, False)
    """

    def __init__(self, notify: Callable[[str], None], patience_s: float = PATIENCE_S) -> None:
        self._notify, self._patience_s = notify, patience_s
        self._acts: deque[Callable[[], object]] = deque()
        self._away_since: float | None = None
        self._again_at = self._pause_s = 0.0

    @property
    def waiting(self) -> bool:
        """True if any action is queued."""
        return bool(self._acts)

    def do(self, act: Callable[[], object]) -> None:
        """Queue an action, and run the queued actions that can run now.

        Args:
            act: the action, which may run several times.

        Raises:
            StoreAwayError: the last one, once `patience_s` is over.
            Exception: any other error of an action, which stays in the queue.
        """
        self._acts.append(act)
        self.go_on()

    def go_on(self) -> None:
        """Run the queued actions that can run now. Call it regularly.

        Raises:
            StoreAwayError: the last one, once `patience_s` is over.
            Exception: any other error of an action, which stays in the queue.
        """
        if not self._acts or time.monotonic() < self._again_at:
            return
        try:
            while self._acts:
                self._acts[0]()
                self._acts.popleft()
        except StoreAwayError as error:
            self._put_off(error)
            return
        if self._away_since is not None:
            self._notify(_back(self._away_since))
            self._away_since = None

    def _put_off(self, error: StoreAwayError) -> None:
        """Schedule the next try, with a notice at the first failure; raise the error if the time is over."""
        now = time.monotonic()
        since = now if self._away_since is None else self._away_since
        left_s = since + self._patience_s - now
        if left_s <= 0:
            raise error
        if self._away_since is None:
            self._away_since, self._pause_s = now, _FIRST_PAUSE_S
            self._notify(_away(error, self._patience_s))
        self._again_at = now + min(self._pause_s, left_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)


def _ticks(for_s: float) -> Generator[Event, None, None]:
    """Yield a tick each second for some seconds."""
    until = time.monotonic() + for_s
    while (left_s := until - time.monotonic()) > 0:
        yield Tick()
        time.sleep(min(_TICK_S, left_s))
