"""A trial that ran elsewhere and whose steps are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from study.engine.calls.call import TrialCall
from study.engine.calls.trial import CallProgress, CallTrial
from study.interface.function import Step


class RecordedCall(TrialCall):
    """A trial whose steps were recorded elsewhere; steps after a metric that isn't finite don't count.

    Args:
        trial: its seed, hyperparameters and metrics.
        steps: each step, with its metrics and its undeclared numbers.
        reports_steps: whether the steps were reported during training, rather than at its end.
        training_s: seconds that it took.
    """

    reports_steps = False

    def __init__(
        self,
        trial: CallTrial,
        steps: Iterable[tuple[int, Mapping[str, float], Mapping[str, float]]],
        *,
        reports_steps: bool,
        training_s: float,
    ) -> None:
        super().__init__(trial, None, 0.0)
        self.reports_steps = reports_steps
        self._history.training_s = training_s
        for step, metrics, others in steps:
            self._history.add(Step(step, dict(metrics), undeclared=dict(others)))
            if not all(map(math.isfinite, metrics.values())):
                break
        self._done = True

    def advance(self, for_s: float) -> CallProgress:
        """Return the progress of an ended trial."""
        return self._progress()

    def checkpoint(self) -> None:
        """Return None, as a recorded trial has no state."""

    def close(self) -> None:
        """Do nothing, since nothing runs."""
