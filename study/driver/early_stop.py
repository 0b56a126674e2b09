"""The decision to end a run early if its trials fail for the same reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from study.plan.plan import Plan
from study.records import Outcome, Result, Trial
from study.summaries.reasons import failure_reason
from study.words import count_of

FIRST = 10
"""Number of trials of a run or a cell that must end, all of them failed for the same reason."""
FEWEST = 3
"""Minimum number of trials if a cell has fewer than `FIRST`."""


@dataclass
class _EndedTrials:
    """Ended trials of a run or of a cell.

    Args:
        trials: their number.
        reasons: keys of the reasons of their failures.
        has_result: whether one of them, now or in an earlier run, didn't fail.
        cells: ids of their cells.
    """

    trials: int = 0
    reasons: set[str] = field(default_factory=set)
    has_result: bool = False
    cells: set[str] = field(default_factory=set)

    def add(self, result: Result) -> None:
        self.trials += 1
        self.cells.add(result.trial.cell.id)
        if result.outcome is Outcome.FAILED:
            self.reasons.add(failure_reason(result.error or "").key)
        else:
            self.has_result = True

    def has_one_reason(self, least: int) -> bool:
        return not self.has_result and self.trials >= least and len(self.reasons) == 1


class EarlyStop:
    """The decision to end a run early, made from its results.

    A run should end if the first ten trials that end all fail for the same reason. The same holds for the first ten
    trials of a cell, or for all trials of a cell that has three to nine.

    In a search single candidates may fail. So only the first rule applies, and the trials must belong to at least two
    candidates. A pack that crashed because of its surroundings (memory, a worker, the store) counts as one trial.
    """

    def __init__(self) -> None:
        self._run = _EndedTrials()
        self._cells: dict[str, _EndedTrials] = {}
        self._planned: Counter[str] = Counter()
        self._is_search = False

    def begin(self, plan: Plan, pending: Sequence[Trial]) -> None:
        """Record each cell's number of planned trials, and a flag: an earlier run has a result that isn't failed.

        Args:
            plan: the study's plan so far.
            pending: trials of the plan that are to be trained, with those that failed in an earlier run.
        """
        self._is_search = plan.spec.seed_design.is_search
        left = Counter(trial.cell.id for trial in pending)
        for cell in plan.cells:
            self._planned[cell.id] = len(plan.seeds(cell))
            ended = self._cells.setdefault(cell.id, _EndedTrials())
            ended.has_result = ended.has_result or left[cell.id] + ended.trials < self._planned[cell.id]

    def add(self, results: Sequence[Result], *, has_crashed: bool = False) -> str | None:
        """Add a pack's results, and decide if the run should end.

        Args:
            results: one for each trial of the pack.
            has_crashed: whether the pack failed as a whole.

        Returns:
            The reason to end the run, in a sentence; None to continue.
        """
        if has_crashed and not failure_reason(results[0].error or "").is_repeated:
            results = results[:1]
        for result in results:
            self._run.add(result)
            self._cells.setdefault(result.trial.cell.id, _EndedTrials()).add(result)
        reason = next((failure_reason(result.error or "").text for result in results if result.error is not None), "")
        if self._run.has_one_reason(FIRST) and (len(self._run.cells) > 1 or not self._is_search):
            return f"the first {count_of(self._run.trials, 'trial')} that ended failed for the same reason: {reason}"
        for cell_id in {} if self._is_search else dict.fromkeys(result.trial.cell.id for result in results):
            ended = self._cells[cell_id]
            if ended.has_one_reason(max(FEWEST, min(FIRST, self._planned[cell_id]))):
                all_of = "all" if ended.trials == self._planned[cell_id] else "the first"
                return f"{all_of} {count_of(ended.trials, 'trial')} of a cell failed for the same reason: {reason}"
        return None
