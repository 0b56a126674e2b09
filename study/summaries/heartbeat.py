"""Heartbeats: a running study's progress as a line of text, in its job's log and in its folder of the store."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar

from study.interface.json_text import parse_json
from study.visible import uncoloured
from study.words import count_of, duration, measure

T = TypeVar("T")

MOST_REASONS, MOST_VALUES, MOST_CELLS = 3, 8, 20
"""The most reasons, running values and cells in a heartbeat."""

COUNTS = ("done", "trials", "solved", "unsolved", "finished", "stopped", "diverged", "failed")
"""The counts of trials in a heartbeat."""

_MARK = "@study "
_MOST_CHARACTERS = 600
_OPTIONAL = {
    "finished": 0, "stopped": 0, "failures": [], "metric": "", "values": [], "cells": 0, "training": [], "waiting": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CellValue:
    """Running value of a cell that trains.

    Args:
        cell: the cell's short name.
        mean: the mean of the first metric over the cell's trials of this run: latest values of running trials, and
            results of ended ones.
        trials: the number of these trials.
    """

    cell: str
    mean: float
    trials: int


@dataclass(frozen=True, slots=True)
class CellTraining:
    """Cell that trains now.

    Args:
        cell: the cell's short name; empty if the study has only one cell.
        trials: the number of its trials in packs that train.
        share: the mean share of their iterations that is done; None if unknown.
    """

    cell: str
    trials: int
    share: float | None


@dataclass(frozen=True, slots=True)
class FailureNews:
    """A reason of failed trials, in a heartbeat.

    Args:
        trials: the number of these trials.
        reason: the error of one of them, in one line.
        is_repeated: True if the same code with the same seed fails in the same way again.
    """

    trials: int
    reason: str
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The progress of a study.

    Args:
        study: the study's name.
        done: number of trials with an outcome.
        trials: number of all trials.
        solved: number of solved trials.
        unsolved: number of unsolved trials.
        finished: number of trials that ended without a success criterion.
        diverged: number of diverged trials.
        failed: number of failed trials.
        stopped: number of trials that were stopped early.
        left_s: seconds until all trials are done, at the present rate; None if unknown.
        workers: number of packs that train now.
        at: the time of the heartbeat, in UTC.
        failures: the most frequent reasons of failed trials; empty in a log of an earlier version.
        metric: the first metric's name for readers; empty without running values.
        values: running values of that metric, of cells that train now.
        cells: number of cells that train now; 0 if unknown.
        training: these cells in the order of the study, at most twenty.
        waiting: number of workers that wait for room in the cluster.
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
    cells: int = 0
    training: tuple[CellTraining, ...] = ()
    waiting: int = 0

    @property
    def outcomes(self) -> str:
        """The numbers of trials by outcome, as text; finished and stopped ones only if there are any.

        If trials finished, and none was solved or unsolved, these two are left out, too.
        """
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
    """Format a heartbeat as one line of a log.

    Example:
        >>> at = datetime(2026, 5, 1, 12, 30, 5, tzinfo=UTC)
        >>> beat = Heartbeat("demo", 120, 400, 90, 29, 1, 0, left_s=42.0, workers=3, at=at)
        >>> line(beat)
        '@study {"study":"demo","done":120,...,"left_s":42.0,"workers":3,"at":"2026-05-01T12:30:05+00:00"}'
        >>> read(line(beat)) == beat
        True
    """
    content = asdict(heartbeat) | {"at": heartbeat.at.isoformat(timespec="seconds")}
    for name in _OPTIONAL:  # earlier versions, which may read the log, refuse unknown keys
        if not content[name]:
            del content[name]
    return _MARK + json.dumps(content, separators=(",", ":"))


def read(text: str) -> Heartbeat | None:
    r"""Return the last heartbeat in a log; None without a heartbeat.

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
    """Format a line of a log for people: a heartbeat as a readable line, any other line unchanged.

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
    """Format a heartbeat's counts, remaining time and running values for people.

    Packs, waiting workers and remaining time are left out if there are none, or if the time is unknown.
    """
    parts = [f"{heartbeat.done}/{heartbeat.trials} trials", *heartbeat.outcomes.split(", ")]
    if heartbeat.workers:
        parts.append(f"{count_of(heartbeat.workers, 'pack')} training")
    if heartbeat.waiting:
        parts.append(f"{count_of(heartbeat.waiting, 'worker')} waiting for room")
    if heartbeat.left_s is not None and heartbeat.done < heartbeat.trials:
        parts.append(f"{duration(heartbeat.left_s)} left")
    return " · ".join([*parts, *value_texts(heartbeat.metric, heartbeat.values)])


def is_heartbeat(log_line: str) -> bool:
    """Return True if a line of a log is a heartbeat."""
    return _parse(log_line) is not None


def value_texts(title: str, values: Sequence[CellValue]) -> list[str]:
    """Return a sentence for each running value.

    Example:
        >>> value_texts("val acc", [CellValue("lr 0.1", 0.8125, 12)])
        ['lr 0.1: val acc 0.812 on average of 12 trials so far']
    """
    texts = [f"{title} {measure(v.mean)} on average of {count_of(v.trials, 'trial')} so far" for v in values]
    return [f"{v.cell}: {text}" if v.cell else text for v, text in zip(values, texts, strict=True)]


def _parse(log_line: str) -> Heartbeat | None:
    """Parse one line; None unless it is a valid heartbeat. All is checked, since anybody can write into a log."""
    if not log_line.startswith(_MARK):
        return None
    try:
        content: Any = parse_json(log_line.removeprefix(_MARK))
        if not isinstance(content, dict):
            return None
        content = _OPTIONAL | content
        if set(content) != {field.name for field in fields(Heartbeat)}:
            return None
        read = {
            "failures": _items(content["failures"], MOST_REASONS, FailureNews, _is_failure),
            "values": _items(content["values"], MOST_VALUES, CellValue, _is_value),
            "training": _items(content["training"], MOST_CELLS, CellTraining, _is_training),
        }
        at, left_s = datetime.fromisoformat(content["at"]), content["left_s"]
    except (ValueError, TypeError):
        return None
    counts = [content[name] for name in (*COUNTS, "workers", "cells", "waiting")]
    has_texts = isinstance(content["study"], str) and isinstance(content["metric"], str)
    has_counts = all(type(n) is int and n >= 0 for n in counts)
    has_time = left_s is None or (type(left_s) in (int, float) and 0 <= left_s < 1e12)
    if None in read.values() or not has_texts or not has_counts or not has_time or at.utcoffset() is None:
        return None
    return Heartbeat(**content | read | {"at": at.astimezone(UTC), "metric": _text(content["metric"])})


def _items(
    content: object, most: int, class_: type[T], is_valid: Callable[[dict[str, Any]], bool]
) -> tuple[T, ...] | None:
    """Parse a list of a heartbeat; None if it is invalid."""
    if not isinstance(content, list) or len(content) > most:
        return None
    names = {field.name for field in fields(class_)}  # type: ignore[arg-type]
    if not all(isinstance(item, dict) and set(item) == names and is_valid(item) for item in content):
        return None
    return tuple(class_(**{key: _text(v) if isinstance(v, str) else v for key, v in item.items()}) for item in content)


def _text(text: str) -> str:
    """Remove colours and control characters from a text, and cut it to the limit."""
    return uncoloured(text)[:_MOST_CHARACTERS]


def _is_value(item: dict[str, Any]) -> bool:
    """Return True if a running value has a finite mean and at least one trial."""
    is_number = type(item["mean"]) in (int, float) and math.isfinite(item["mean"])
    return isinstance(item["cell"], str) and is_number and type(item["trials"]) is int and item["trials"] >= 1


def _is_training(item: dict[str, Any]) -> bool:
    """Return True if a training cell has a share from 0 to 1, or None, and at least one trial."""
    share = item["share"]
    is_share = share is None or (type(share) in (int, float) and 0 <= share <= 1)
    return isinstance(item["cell"], str) and is_share and type(item["trials"]) is int and item["trials"] >= 1


def _is_failure(item: dict[str, Any]) -> bool:
    """Return True if a reason has a count and a text within the limit."""
    is_count = type(item["trials"]) is int and item["trials"] >= 0
    is_reason = isinstance(item["reason"], str) and len(item["reason"]) <= _MOST_CHARACTERS
    return is_count and is_reason and isinstance(item["is_repeated"], bool)
