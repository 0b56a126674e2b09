"""The arguments of a trial's call, and the record of its results, without an outcome."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from study.interface.declarations import Metric
from study.interface.function.call import Step
from study.interface.pruning import Comparison

Arrays = Mapping[str, npt.NDArray[Any]]

_CURVE = "curve/"
_UNDECLARED = "undeclared/"
MOST_UNDECLARED = 100
"""Names of undeclared numbers kept per trial, at most: some scripts make a new name at each step."""
_STATE = "state/"


@dataclass(frozen=True, kw_only=True)
class CallTrial:
    """The arguments of one call.

    Args:
        seed: the trial's seed.
        values: hyperparameters by name, as in a study file.
        metrics: the metrics that it reports; the first one selects the best step.
        iterations: the highest step that it may report; None for no limit.
        is_stopped_at: given a step and its metrics, returns True to stop the trial early; None to never stop it.
    """

    seed: int
    values: Mapping[str, Any]
    metrics: Mapping[str, Metric]
    iterations: int | None = None
    is_stopped_at: Comparison | None = None


@dataclass(frozen=True)
class CallProgress:
    """The progress of a trial.

    Args:
        step: the latest step; None before the first.
        iterations: the highest step that it may report, if there is one.
        is_done: whether it has ended.
        value: the first metric at the latest step; None before the first.
    """

    step: int | None
    iterations: int | None
    is_done: bool
    value: float | None = None


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """The results of a trial.

    Args:
        metrics: values at the best step: among the steps with finite metrics, the first at which the first metric is
            best. None if there is none.
        best_step: that step.
        last_step: the latest step; None if there is none.
        steps: every step, int64 [steps]. A function that returned a dict has one, 0 unless the dict gives another.
        curves: each metric at each step, float64 [steps].
        undeclared: each undeclared number at each step, float64 [steps]; NaN where it wasn't reported.
        reports_steps: whether the function yields its steps; otherwise they aren't steps of training.
        has_diverged: whether the last step has a metric that is NaN or infinite, which ended the trial.
        error: the reason of a failure, one line; None without one. Values reported before a failure are kept.
        details: the traceback of the user's code; empty if there is none.
        training_s: seconds that the call took, including those before a checkpoint.
        was_stopped: whether it was stopped early.
    """

    metrics: Mapping[str, float] | None
    best_step: int | None
    last_step: int | None
    steps: npt.NDArray[np.int64]
    curves: Mapping[str, npt.NDArray[np.float64]]
    undeclared: Mapping[str, npt.NDArray[np.float64]]
    reports_steps: bool
    has_diverged: bool
    error: str | None
    details: str
    training_s: float
    was_stopped: bool = False


class History:
    """The steps of a trial so far.

    Args:
        metrics: the metrics that it reports; the first one selects the best step.
        checkpoint: the arrays that `arrays` returned, to resume from; None to start.

    Raises:
        ValueError: if the checkpoint has other metrics.
    """

    def __init__(self, metrics: Mapping[str, Metric], checkpoint: Arrays | None) -> None:
        self._metrics = metrics
        self.steps: list[int] = []
        self.training_s = 0.0
        self._curves: dict[str, list[float]] = {name: [] for name in metrics}
        self._undeclared: dict[str, list[float]] = {}
        if checkpoint is None:
            return
        if (names := {name.removeprefix(_CURVE) for name in checkpoint if name.startswith(_CURVE)}) != set(metrics):
            raise ValueError(f"the checkpoint must have the metrics {sorted(metrics)}, but has {sorted(names)}")
        self.steps = checkpoint["steps"].tolist()
        self._curves = {name: checkpoint[_CURVE + name].tolist() for name in metrics}
        kept = {name: array for name, array in checkpoint.items() if name.startswith(_UNDECLARED)}
        self._undeclared = {name.removeprefix(_UNDECLARED): array.tolist() for name, array in kept.items()}
        self.training_s = float(checkpoint["training_s"])

    @property
    def last_step(self) -> int | None:
        """The latest step; None before the first."""
        return self.steps[-1] if self.steps else None

    @property
    def latest(self) -> float | None:
        """The first metric at the latest step; None before the first, or without metrics."""
        curve = self._curves[next(iter(self._metrics))] if self._metrics else []
        return curve[-1] if curve else None

    @property
    def undeclared(self) -> list[str]:
        """Names of the numbers reported so far that aren't declared metrics; at most `MOST_UNDECLARED`."""
        return list(self._undeclared)

    def metrics_by_step(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield each step with its metrics, in order."""
        for place, step in enumerate(self.steps):
            yield step, {name: values[place] for name, values in self._curves.items()}

    def add(self, step: Step) -> None:
        """Append a step.

        NaN stands for an undeclared number at the steps that lack it. Names beyond `MOST_UNDECLARED` are dropped.

        Args:
            step: a step with all declared metrics, and no others.
        """
        for name, value in step.metrics.items():
            self._curves[name].append(value)
        for name in step.undeclared:
            if len(self._undeclared) < MOST_UNDECLARED:
                self._undeclared.setdefault(name, [math.nan] * len(self.steps))
        for name, values in self._undeclared.items():
            values.append(step.undeclared.get(name, math.nan))
        self.steps.append(step.step)

    def arrays(self, state: Arrays) -> dict[str, npt.NDArray[Any]]:
        """Copy out the history and a state of the latest step, to resume from.

        Args:
            state: the function's own state, from `state_arrays`; empty if it has none.
        """
        return {
            "steps": np.array(self.steps, np.int64),
            "training_s": np.array(self.training_s),
            **{_CURVE + name: values for name, values in _arrays(self._curves).items()},
            **{_UNDECLARED + name: values for name, values in _arrays(self._undeclared).items()},
            **{_STATE + name: array for name, array in state.items()},
        }

    def record(self, *, reports_steps: bool, error: str | None, details: str, was_stopped: bool = False) -> CallRecord:
        """Return the record of the steps so far; the trial must have at least one metric.

        Args:
            reports_steps: whether the function yields its steps.
            error: the reason of a failure; None without one.
            details: the traceback of the failure; empty if there is none.
            was_stopped: whether the trial was stopped early.
        """
        curves = _arrays(self._curves)
        finite = np.logical_and.reduce([np.isfinite(curve) for curve in curves.values()])
        best = self._best(curves, finite)
        return CallRecord(
            metrics=None if best is None else {name: float(curve[best]) for name, curve in curves.items()},
            best_step=None if best is None else self.steps[best],
            last_step=self.last_step,
            steps=np.array(self.steps, np.int64),
            curves=curves,
            undeclared=_arrays(self._undeclared),
            reports_steps=reports_steps,
            has_diverged=bool(self.steps) and not finite[-1],
            error=error,
            details=details,
            training_s=self.training_s,
            was_stopped=was_stopped,
        )

    def _best(self, curves: Mapping[str, npt.NDArray[np.float64]], finite: npt.NDArray[np.bool_]) -> int | None:
        if not finite.any():
            return None
        name, metric = next(iter(self._metrics.items()))
        values = curves[name] if metric.higher_is_better else -curves[name]
        return int(np.where(finite, values, -np.inf).argmax())


def _arrays(curves: Mapping[str, Sequence[float]]) -> dict[str, npt.NDArray[np.float64]]:
    return {name: np.array(values, np.float64) for name, values in curves.items()}


def state_in(checkpoint: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return the function's own state from the arrays of a checkpoint; empty if it has saved none."""
    return {name.removeprefix(_STATE): array for name, array in checkpoint.items() if name.startswith(_STATE)}
