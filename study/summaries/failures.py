"""Distinct reasons of a study's failed trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from study.records import Outcome
from study.summaries.reasons import Reason, failure_reason

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A reason of failed trials.

    Args:
        reason: the error of an example: type, message, and the place in the user's code if it is known.
        key: the reason without the parts that vary by seed; equal keys mean the same reason.
        trials: the number of trials that failed for this reason; numbers and addresses in their messages may differ.
        cells: the number of these trials by cell id.
        trial_id: the id of the example.
        cell_id: the id of the example's cell.
        seed: the example's seed.
        traceback: the example's traceback, reduced to the user's frames if it has any; empty without a traceback.
        is_repeated: True if the same code with the same seed fails in the same way again, so that a retry can't help.
        again: the number of these trials that had failed for the same reason in an earlier run.
    """

    reason: str
    key: str
    trials: int
    cells: Mapping[str, int]
    trial_id: str
    cell_id: str
    seed: int
    traceback: str
    is_repeated: bool
    again: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the reason as JSON data, without `key` and `again`."""
        return {
            "reason": self.reason,
            "trials": self.trials,
            "is_repeated": self.is_repeated,
            "cells": dict(self.cells),
            "example": {"trial_id": self.trial_id, "cell_id": self.cell_id, "seed": self.seed},
            "traceback": self.traceback,
        }


class FailureTally:
    """A count of failed trials by reason.

    Example:
        >>> tally = FailureTally()
        >>> for seed in range(3):
        ...     tally.add("trial", "cell", seed, f"ValueError: seed {seed}")
        >>> [(failure.reason, failure.trials, failure.is_repeated) for failure in tally.failures()]
        [('ValueError: seed 0', 3, True)]
    """

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[Reason, tuple[str, str, int]]] = {}
        self._cells: dict[str, Counter[str]] = {}

    def add(self, trial_id: str, cell_id: str, seed: int, error: str | None) -> None:
        """Count a failed trial; without an error text, the reason says that none was given."""
        reason = failure_reason(error or "")
        self._reasons.setdefault(reason.key, (reason, (trial_id, cell_id, seed)))
        self._cells.setdefault(reason.key, Counter())[cell_id] += 1

    def failures(self) -> list[Failure]:
        """Return the reasons, the most frequent first."""
        reasons = [
            Failure(
                reason=reason.text,
                key=key,
                trials=self._cells[key].total(),
                cells=dict(self._cells[key]),
                trial_id=trial_id,
                cell_id=cell_id,
                seed=seed,
                traceback=reason.traceback,
                is_repeated=reason.is_repeated,
            )
            for key, (reason, (trial_id, cell_id, seed)) in self._reasons.items()
        ]
        return sorted(reasons, key=lambda failure: -failure.trials)


def failures_of(results: pa.Table) -> list[Failure]:
    """Group the failed trials of a table of results by reason, the most frequent first."""
    tally = FailureTally()
    for row in failed_rows(results):
        tally.add(row["trial_id"], row["cell_id"], row["seed"], row["error"])
    return tally.failures()


def failed_rows(results: pa.Table) -> Iterable[dict[str, Any]]:
    """Return trial_id, cell_id, seed and error of the failed trials of a table of results."""
    import pyarrow.compute as pc  # imported late: every command imports this module

    failed = results.filter(pc.equal(results["outcome"], str(Outcome.FAILED)))
    rows: list[dict[str, Any]] = failed.select(["trial_id", "cell_id", "seed", "error"]).to_pylist()
    return rows


def with_earlier(results: pa.Table, earlier: Mapping[str, str]) -> list[Failure]:
    """Return `failures_of` with the number of trials that had failed for the same reason before.

    Args:
        results: a table of results.
        earlier: the key of each trial's reason in an earlier run, as `reason_keys` returned it.
    """
    if not earlier:
        return failures_of(results)
    again = Counter(key for trial_id, key in reason_keys(results).items() if earlier.get(trial_id) == key)
    return [replace(failure, again=again[failure.key]) for failure in failures_of(results)]


def reason_keys(results: pa.Table) -> dict[str, str]:
    """Return the key of each failed trial's reason, by trial id."""
    return {row["trial_id"]: failure_reason(row["error"] or "").key for row in failed_rows(results)}
