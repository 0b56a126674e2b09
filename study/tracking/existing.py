"""Trials' runs that MLflow has already, and their ranking if a trial has several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from study.tracking.rows import KIND, LABEL, PACK, TRIAL_ID, run_digest

if TYPE_CHECKING:
    from mlflow.entities import Run

# If a trial has several runs, the one with the lowest rank of its status is kept.
ENDED = {"FINISHED": 0, "FAILED": 1}


@dataclass(frozen=True)
class ExistingRun:
    """A trial's existing run.

    Args:
        run_id: MLflow's id of the run.
        start_ms: its start, in milliseconds since 1970.
        running: True if it hasn't ended.
        blank: True if it has no metrics yet; all of them are written at once.
        digest: the hash of its content (`study.tracking.rows.run_digest`); None if it is blank.
        tags: the tags that describe the trial's result; empty if the run has ended.
    """

    run_id: str
    start_ms: int
    running: bool
    blank: bool
    digest: str | None
    tags: Mapping[str, str]

    @property
    def content(self) -> tuple[bool, str | None]:
        """True if the run hasn't ended, and its digest; None if that is blank."""
        return self.running, self.digest


def existing_run(run: Run) -> ExistingRun:
    """Return the state of a trial's run in MLflow.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
        LookupError, ValueError, TypeError: if the tag with the run's names was changed.
    """
    running = run.info.status not in ENDED
    blank = not run.data.metrics
    return ExistingRun(
        run_id=run.info.run_id,
        start_ms=run.info.start_time,
        running=running,
        blank=blank,
        digest=None if blank else run_digest(run.data.params, run.data.metrics, run.data.tags),
        tags={name: value for name, value in run.data.tags.items() if _is_ours(name)} if running else {},
    )


def trial_id_of(run: Run) -> str:
    """Return the trial's id from the tag of a trial's run.

    Raises:
        KeyError: if the run has no such tag.
    """
    return str(run.data.tags[TRIAL_ID])


def rank(run: Run) -> tuple[str, int, int, str]:
    """Return a sort key that puts each trial's best run first, equal for every publisher.

    Raises:
        KeyError: if the run has no tag with the trial's id.
    """
    return trial_id_of(run), ENDED.get(run.info.status, 2), run.info.start_time, run.info.run_id


def _is_ours(tag: str) -> bool:
    return tag not in (KIND, PACK) and not tag.startswith(("mlflow.", LABEL))
