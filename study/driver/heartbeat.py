"""Heartbeats of the driver: a study's progress, in the log of its job and in the store.

Everyone who may use the cluster can read the log, wherever the driver runs. The store keeps the heartbeat of a running
study for the index.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from study.console import Console
from study.driver.progress import Board
from study.errors import StudyError
from study.summaries.heartbeat import (
    COUNTS,
    MOST_CELLS,
    MOST_REASONS,
    MOST_VALUES,
    CellValue,
    FailureNews,
    Heartbeat,
    line,
)

if TYPE_CHECKING:  # they import pyarrow
    from study.store import StudyStore
    from study.summaries.failures import Failure

IN_JOB = "STUDY_JOB"
"""Environment variable that is 1 for a study's driver on a cluster."""

_EVERY_S = 10.0
_AFTER_FAILURE_S = 60.0


def in_job() -> bool:
    """Return True if this process drives a study as a job on a cluster."""
    return os.environ.get(IN_JOB) == "1"


def beat(
    study: str,
    counts: Mapping[str, int],
    console: Console,
    *,
    left_s: float | None = None,
    workers: int = 0,
    waiting: int = 0,
    failures: Sequence[Failure] = (),
    metric: str = "",
    values: Sequence[CellValue] = (),
) -> None:
    """Print one heartbeat if this process is a job; otherwise do nothing.

    Args:
        study: the study's name.
        counts: numbers of trials: all, done, and by outcome.
        console: where to print it.
        left_s: seconds until all are done; None if unknown.
        workers: number of packs in training.
        waiting: number of workers that wait for room on the cluster.
        failures: reasons of failed trials, the most frequent first.
        metric: the first metric's name for readers.
        values: running values of that metric, for cells in training.
    """
    if not in_job():
        return
    heartbeat = _heartbeat(
        study, counts, left_s=left_s, workers=workers, waiting=waiting, failures=failures, metric=metric, values=values
    )
    console.print(line(heartbeat), soft_wrap=True)


def _heartbeat(
    study: str,
    counts: Mapping[str, int],
    *,
    left_s: float | None,
    failures: Sequence[Failure],
    metric: str,
    values: Sequence[CellValue],
    **more: Any,
) -> Heartbeat:
    """Make a heartbeat of now, from at most `MOST_REASONS` failures and `MOST_VALUES` values."""
    more |= {name: counts.get(name, 0) for name in COUNTS}
    return Heartbeat(
        study,
        left_s=None if left_s is None else round(left_s, 1),
        at=datetime.now(UTC),
        failures=tuple(
            FailureNews(failure.trials, failure.reason, failure.is_repeated) for failure in failures[:MOST_REASONS]
        ),
        metric=metric if values else "",
        values=tuple(values[:MOST_VALUES]),
        **more,
    )


@contextmanager
def beating(board: Board, study: str, console: Console) -> Iterator[Callable[[], None]]:
    """Print a heartbeat at most every ten seconds while a study's board changes; nothing outside of a job.

    Args:
        board: the running counts.
        study: the study's name.
        console: where to print it.

    Yields:
        A function to call after each change.
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
                waiting=board.waiting,
                failures=board.failures,
                metric=board.metric_title,
                values=board.values,
            )

    yield show


@contextmanager
def stored_heartbeat(board: Board, folder: StudyStore) -> Iterator[Callable[[], None]]:
    """Keep a heartbeat in a study's folder while it runs, updated at most every ten seconds.

    A failed write doesn't disturb training; it is retried after a minute. The block's end removes the heartbeat.

    Yields:
        A function to call after each change of the board.
    """
    due = time.monotonic()

    def keep() -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        training = board.training
        heartbeat = _heartbeat(
            folder.name,
            board.counts,
            left_s=board.left_s,
            workers=board.running,
            waiting=board.waiting,
            failures=board.failures,
            metric=board.metric_title,
            values=board.values,
            cells=len(training),
            training=tuple(training[:MOST_CELLS]),
        )
        due = time.monotonic() + _AFTER_FAILURE_S
        with suppress(StudyError):
            folder.write_heartbeat(line(heartbeat))
            due = time.monotonic() + _EVERY_S

    try:
        yield keep
    finally:
        with suppress(StudyError):
            folder.remove_heartbeat()
