"""How far a study is, as a line that its driver writes into its job's log every few seconds.

The log is the one place where the driver, wherever it runs, can be heard by everybody who may see the cluster.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from study.console import Console
from study.driver.progress import Board
from study.words import duration

IN_JOB = "STUDY_JOB"
"""Set to 1 in the environment of a study's driver on a cluster."""

_MARK = "@study "
_EVERY_S = 10.0
_COUNTS = ("done", "trials", "solved", "unsolved", "diverged", "failed", "workers")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """How far a study is.

    Args:
        study: its name.
        done: trials with an outcome.
        trials: all of them.
        solved: of those done.
        unsolved: of those done.
        diverged: of those done.
        failed: of those done.
        left_s: seconds until all are done, at the present rate; None if that isn't known.
        workers: packs that train now.
        at: when it was said, in UTC.
    """

    study: str
    done: int
    trials: int
    solved: int
    unsolved: int
    diverged: int
    failed: int
    left_s: float | None
    workers: int
    at: datetime


def line(heartbeat: Heartbeat) -> str:
    """Write a heartbeat as one line.

    Example:
        >>> at = datetime(2026, 5, 1, 12, 30, 5, tzinfo=UTC)
        >>> beat = Heartbeat("demo", 120, 400, 90, 29, 1, 0, left_s=42.0, workers=3, at=at)
        >>> line(beat)
        '@study {"study":"demo","done":120,...,"left_s":42.0,"workers":3,"at":"2026-05-01T12:30:05+00:00"}'
        >>> read(line(beat)) == beat
        True
    """
    content = asdict(heartbeat) | {"at": heartbeat.at.isoformat(timespec="seconds")}
    return _MARK + json.dumps(content, separators=(",", ":"))


def read(text: str) -> Heartbeat | None:
    r"""Find the last heartbeat in a log; None if there is none, whatever else is written there.

    Example:
        >>> read("starting Ray\n@study {half a li") is None
        True
    """
    for written in reversed(text.splitlines()):
        found = _parsed(written)
        if found is not None:
            return found
    return None


def readable(written: str) -> str:
    """Write a line of a log for people: a heartbeat as a sentence, any other as it is.

    Example:
        >>> at = datetime(2026, 5, 1, 12, 30, 5, tzinfo=UTC)
        >>> readable(line(Heartbeat("demo", 120, 400, 90, 29, 1, 0, left_s=42.0, workers=3, at=at)))
        '12:30:05 UTC · 120/400 trials · 90 solved · 29 unsolved · 1 diverged · 0 failed · 3 packs training · 42 s left'
        >>> readable("stopping: keeping checkpoints")
        'stopping: keeping checkpoints'
    """
    found = _parsed(written)
    if found is None:
        return written
    parts = [
        f"{found.at:%H:%M:%S} UTC",
        f"{found.done}/{found.trials} trials",
        f"{found.solved} solved",
        f"{found.unsolved} unsolved",
        f"{found.diverged} diverged",
        f"{found.failed} failed",
    ]
    if found.workers:
        parts.append(f"{found.workers} packs training")
    if found.left_s is not None and found.done < found.trials:
        parts.append(f"{duration(found.left_s)} left")
    return " · ".join(parts)


def is_heartbeat(written: str) -> bool:
    """Say whether a line of a log is one."""
    return _parsed(written) is not None


def in_job() -> bool:
    """Say whether this process drives a study as a job on a cluster."""
    return os.environ.get(IN_JOB) == "1"


def beat(
    study: str, counts: Mapping[str, int], console: Console, *, left_s: float | None = None, workers: int = 0
) -> None:
    """Say once how far the study is, if this is a job; else nothing.

    Args:
        study: its name.
        counts: trials by outcome, done and in all.
        console: where.
        left_s: seconds until all are done; None if that isn't known.
        workers: packs that train now.
    """
    if not in_job():
        return
    said = Heartbeat(
        study,
        **{name: counts[name] for name in _COUNTS if name != "workers"},
        left_s=None if left_s is None else round(left_s, 1),
        workers=workers,
        at=datetime.now(UTC),
    )
    console.print(line(said), soft_wrap=True)


@contextmanager
def beating(board: Board, study: str, console: Console) -> Iterator[Callable[[], None]]:
    """Say every ten seconds how far a study is, while its board changes.

    Yields:
        What to call after each change.
    """
    last = -_EVERY_S

    def show() -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_S:
            last = time.monotonic()
            beat(study, board.counts, console, left_s=board.left_s, workers=board.running)

    yield show


def _parsed(written: str) -> Heartbeat | None:
    """Read one line; anybody can write into a log, so nothing of it is believed before it is looked at."""
    if not written.startswith(_MARK):
        return None
    try:
        content: Any = json.loads(written.removeprefix(_MARK))
        if not isinstance(content, dict) or set(content) != {field.name for field in fields(Heartbeat)}:
            return None
        at, left_s = datetime.fromisoformat(content["at"]), content["left_s"]
    except (ValueError, TypeError, RecursionError):
        return None
    counts = [content[name] for name in _COUNTS]
    known = isinstance(content["study"], str) and all(type(count) is int and count >= 0 for count in counts)
    timed = left_s is None or (type(left_s) in (int, float) and 0 <= left_s < 1e12)
    if not known or not timed or at.utcoffset() is None:
        return None
    return Heartbeat(**content | {"at": at.astimezone(UTC)})
