"""How far a study is, as a line that its driver writes into its job's log every few seconds.

Everybody who may see the cluster can read the log, wherever the driver runs; there is no other such place.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from study.console import Console
from study.driver.progress import Board, CellValue, value_texts
from study.visible import uncoloured
from study.words import count_of, duration

if TYPE_CHECKING:  # it imports pyarrow
    from study.summaries.failures import Failure

IN_JOB = "STUDY_JOB"
"""Environment variable that is 1 for a study's driver on a cluster."""

_MARK = "@study "
_EVERY_S = 10.0
_MOST_REASONS, _MOST_VALUES, _MOST_CHARACTERS = 3, 8, 600
_OPTIONAL = ("finished", "stopped", "failures", "metric", "values")
_COUNTS = ("done", "trials", "solved", "unsolved", "finished", "stopped", "diverged", "failed", "workers")


@dataclass(frozen=True, slots=True)
class FailureNews:
    """A reason for which trials failed, in a heartbeat.

    Args:
        trials: their number.
        reason: the error of one of them, in one line.
        is_repeated: whether the same code with the same seed fails the same way again.
    """

    trials: int
    reason: str
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """How far a study is.

    Args:
        study: its name.
        done: number of trials with an outcome.
        trials: number of all trials.
        solved: number of the done trials that were solved.
        unsolved: number of the done trials that were not.
        finished: number of the done trials that ended where nothing says what success is.
        diverged: number of the done trials that diverged.
        failed: number of the done trials that failed.
        stopped: number of the done trials that were stopped early.
        left_s: seconds until all are done, at the present rate; None if that isn't known.
        workers: number of packs that train now.
        at: when this was printed, in UTC.
        failures: the most frequent reasons for which trials failed; empty in a log of an earlier version.
        metric: the first metric's name for readers; empty where no running value is known.
        values: running values of that metric, of cells that train now.
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
    finished: int = 0
    stopped: int = 0
    failures: tuple[FailureNews, ...] = ()
    metric: str = ""
    values: tuple[CellValue, ...] = ()

    @property
    def outcomes(self) -> str:
        """The numbers of trials by outcome; of solved and finished ones only where there are any."""
        judged = [f"{self.solved} solved", f"{self.unsolved} unsolved"]
        ended = [f"{count} {name}" for name in ("finished", "stopped") if (count := getattr(self, name))]
        has_judged = self.solved or self.unsolved or not self.finished
        return ", ".join(
            [*(judged if has_judged else ()), *ended, f"{self.diverged} diverged", f"{self.failed} failed"]
        )

    @property
    def pending(self) -> int:
        """The number of trials without an outcome."""
        return max(0, self.trials - self.done)


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
    for name in _OPTIONAL:  # earlier versions, which may read the log, don't know these keys
        if not content[name]:
            del content[name]
    return _MARK + json.dumps(content, separators=(",", ":"))


def read(text: str) -> Heartbeat | None:
    r"""Return the last heartbeat in a log, whatever else is written there; None if there is none.

    Example:
        >>> read("starting Ray\n@study {half a li") is None
        True
    """
    for log_line in reversed(text.splitlines()):
        heartbeat = _parse(log_line)
        if heartbeat is not None:
            return heartbeat
    return None


def readable(log_line: str) -> str:
    """Format a line of a log for people: a heartbeat as a readable line, any other line as it is.

    Example:
        >>> at = datetime(2026, 5, 1, 12, 30, 5, tzinfo=UTC)
        >>> readable(line(Heartbeat("demo", 120, 400, 90, 29, 1, 0, left_s=42.0, workers=3, at=at)))
        '12:30:05 UTC · 120/400 trials · 90 solved · 29 unsolved · 1 diverged · 0 failed · 3 packs training · 42 s left'
        >>> readable("stopping: keeping checkpoints")
        'stopping: keeping checkpoints'
    """
    heartbeat = _parse(log_line)
    if heartbeat is None:
        return log_line
    return f"{heartbeat.at:%H:%M:%S} UTC · {progress_words(heartbeat)}"


def progress_words(heartbeat: Heartbeat) -> str:
    """Format a heartbeat for people, but for the time of day."""
    parts = [f"{heartbeat.done}/{heartbeat.trials} trials", *heartbeat.outcomes.split(", ")]
    if heartbeat.workers:
        parts.append(f"{count_of(heartbeat.workers, 'pack')} training")
    if heartbeat.left_s is not None and heartbeat.done < heartbeat.trials:
        parts.append(f"{duration(heartbeat.left_s)} left")
    return " · ".join([*parts, *value_texts(heartbeat.metric, heartbeat.values)])


def is_heartbeat(log_line: str) -> bool:
    """Return whether a line of a log is a heartbeat."""
    return _parse(log_line) is not None


def in_job() -> bool:
    """Return whether this process drives a study as a job on a cluster."""
    return os.environ.get(IN_JOB) == "1"


def beat(
    study: str,
    counts: Mapping[str, int],
    console: Console,
    *,
    left_s: float | None = None,
    workers: int = 0,
    failures: Sequence[Failure] = (),
    metric: str = "",
    values: Sequence[CellValue] = (),
) -> None:
    """Print one heartbeat if this process is a job, and do nothing otherwise.

    Args:
        study: its name.
        counts: numbers of trials by outcome, of those done, and of all.
        console: where to print it.
        left_s: seconds until all are done; None if that isn't known.
        workers: number of packs that train now.
        failures: the reasons for which trials failed, the most frequent first.
        metric: the first metric's name for readers.
        values: running values of that metric, of cells that train now.
    """
    if not in_job():
        return
    heartbeat = Heartbeat(
        study,
        **{name: counts.get(name, 0) for name in _COUNTS if name != "workers"},
        left_s=None if left_s is None else round(left_s, 1),
        workers=workers,
        at=datetime.now(UTC),
        failures=tuple(FailureNews(one.trials, one.reason, one.is_repeated) for one in failures[:_MOST_REASONS]),
        metric=metric if values else "",
        values=tuple(values[:_MOST_VALUES]),
    )
    console.print(line(heartbeat), soft_wrap=True)


@contextmanager
def beating(board: Board, study: str, console: Console) -> Iterator[Callable[[], None]]:
    """Print a heartbeat every ten seconds while a study's board changes.

    Yields:
        What to call after each change.
    """
    last = -_EVERY_S

    def show() -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_S:
            last = time.monotonic()
            beat(
                study,
                board.counts,
                console,
                left_s=board.left_s,
                workers=board.running,
                failures=board.failures,
                metric=board.metric_title,
                values=board.values,
            )

    yield show


def _parse(log_line: str) -> Heartbeat | None:
    """Parse one line. Anybody can write into a log, so everything in it is checked before it is used."""
    if not log_line.startswith(_MARK):
        return None
    try:
        content: Any = json.loads(log_line.removeprefix(_MARK))
        if not isinstance(content, dict):
            return None
        content = {"finished": 0, "stopped": 0, "failures": [], "metric": "", "values": []} | content
        if set(content) != {field.name for field in fields(Heartbeat)}:
            return None
        failures, values = _failures(content["failures"]), _values(content["values"])
        at, left_s = datetime.fromisoformat(content["at"]), content["left_s"]
    except (ValueError, TypeError, RecursionError):
        return None
    if failures is None or values is None or not isinstance(content["metric"], str):
        return None
    counts = [content[name] for name in _COUNTS]
    has_counts = isinstance(content["study"], str) and all(type(n) is int and n >= 0 for n in counts)
    has_time = left_s is None or (type(left_s) in (int, float) and 0 <= left_s < 1e12)
    if not has_counts or not has_time or at.utcoffset() is None:
        return None
    metric = uncoloured(content["metric"])[:_MOST_CHARACTERS]
    return Heartbeat(**content | {"at": at.astimezone(UTC), "failures": failures, "metric": metric, "values": values})


def _values(content: object) -> tuple[CellValue, ...] | None:
    """Parse the running values of a heartbeat; None if they can't be such values."""
    if not isinstance(content, list) or len(content) > _MOST_VALUES:
        return None
    names = {field.name for field in fields(CellValue)}
    for one in content:
        if not isinstance(one, dict) or set(one) != names or not isinstance(one["cell"], str):
            return None
        is_number = type(one["mean"]) in (int, float) and math.isfinite(one["mean"])
        if not is_number or type(one["trials"]) is not int or one["trials"] < 1:
            return None
    return tuple(CellValue(uncoloured(one["cell"])[:_MOST_CHARACTERS], one["mean"], one["trials"]) for one in content)


def _failures(content: object) -> tuple[FailureNews, ...] | None:
    """Parse the reasons of a heartbeat; None if they can't be such reasons."""
    if not isinstance(content, list) or len(content) > _MOST_REASONS:
        return None
    names = {field.name for field in fields(FailureNews)}
    for one in content:
        if not isinstance(one, dict) or set(one) != names:
            return None
        is_count = type(one["trials"]) is int and one["trials"] >= 0
        is_reason = isinstance(one["reason"], str) and len(one["reason"]) <= _MOST_CHARACTERS
        if not is_count or not is_reason or not isinstance(one["is_repeated"], bool):
            return None
    return tuple(
        FailureNews(one["trials"], uncoloured(one["reason"])[:_MOST_CHARACTERS], one["is_repeated"]) for one in content
    )
