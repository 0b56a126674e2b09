"""The decision to end a run early, when its trials fail for one reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from study.plan.plan import Plan
from study.records import Outcome, Result, Trial
from study.summaries.reasons import failure_reason
from study.words import count_of

FIRST = 10
"""The number of trials, of a run or of a cell, that must fail for one reason and no trial end otherwise."""
FEWEST = 3
"""The least number of trials of a cell with fewer than `FIRST` trials."""


@dataclass
class _Ended:
    """The trials of a run, or of one of its cells, that have ended.

    Args:
        trials: their number.
        reasons: the keys of the reasons for which they failed.
        has_result: whether one of them, now or in an earlier run, didn't fail.
        cells: the ids of their cells.
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
    """Decides from the results of a run whether it should end, since its trials fail for one reason.

    It should if the first ten trials that end fail for one reason; or the first ten of a cell, or all of a cell that
    has three to nine. Cells of a search are candidates, of which some may fail: there only the first rule holds, and
    the trials must be of two candidates at least. A pack that crashed because of its surroundings (memory, a worker,
    the store) counts as one trial.
    """

    def __init__(self) -> None:
        self._run = _Ended()
        self._cells: dict[str, _Ended] = {}
        self._planned: Counter[str] = Counter()
        self._is_search = False

    def begin(self, plan: Plan, pending: Sequence[Trial]) -> None:
        """Expect the results of further trials.

        Args:
            plan: what the study asks for so far.
            pending: the trials of the plan that have no result.
        """
        self._is_search = plan.spec.seed_design.is_search
        left = Counter(trial.cell.id for trial in pending)
        for cell in plan.cells:
            self._planned[cell.id] = len(plan.seeds(cell))
            ended = self._cells.setdefault(cell.id, _Ended())
            ended.has_result = ended.has_result or left[cell.id] + ended.trials < self._planned[cell.id]

    def add(self, results: Sequence[Result], *, has_crashed: bool = False) -> str | None:
        """Take the results of a pack, and return a sentence that says why the run should end; None if it shouldn't.

        Args:
            results: one for each of its trials.
            has_crashed: whether the pack as a whole has failed.
        """
        if has_crashed and not failure_reason(results[0].error or "").is_repeated:
            results = results[:1]
        for result in results:
            self._run.add(result)
            self._cells.setdefault(result.trial.cell.id, _Ended()).add(result)
        reason = next((failure_reason(result.error or "").text for result in results if result.error is not None), "")
        if self._run.has_one_reason(FIRST) and (len(self._run.cells) > 1 or not self._is_search):
            return f"the first {count_of(self._run.trials, 'trial')} that ended failed for one reason: {reason}"
        for cell_id in {} if self._is_search else dict.fromkeys(result.trial.cell.id for result in results):
            ended = self._cells[cell_id]
            if ended.has_one_reason(max(FEWEST, min(FIRST, self._planned[cell_id]))):
                all_of = "all" if ended.trials == self._planned[cell_id] else "the first"
                return f"{all_of} {count_of(ended.trials, 'trial')} of a cell failed for one reason: {reason}"
        return None
