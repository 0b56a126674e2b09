"""Success criteria: bounds of metrics, and the first step within them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Bounds of a metric: ``at_least <= metric < below`` and ``metric <= at_most``.

    Args:
        at_least: inclusive lower bound; None without one.
        below: exclusive upper bound; None without one.
        at_most: inclusive upper bound; None without one.

    Raises:
        ValueError: if all bounds are None, or ``at_least < below`` or ``at_least <= at_most`` doesn't hold.
    """

    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if self.at_least is None and self.below is None and self.at_most is None:
            raise ValueError("a criterion must have at_least, below or at_most, but has none of them")
        if self.at_least is not None and self.below is not None and not self.at_least < self.below:
            raise ValueError(f"at_least < below must hold, but got {self.at_least:g} and {self.below:g}")
        if self.at_least is not None and self.at_most is not None and not self.at_least <= self.at_most:
            raise ValueError(f"at_least <= at_most must hold, but got {self.at_least:g} and {self.at_most:g}")

    def holds(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return True for each value within the bounds; NaN is outside.

        Args:
            values: values of the metric, float64 of any shape.

        Returns:
            A boolean array of the same shape.

        Example:
            >>> Bound(at_least=0.95).holds(np.array([0.9, 0.95, np.nan])).tolist()
            [False, True, False]
        """
        within = ~np.isnan(values)
        if self.at_least is not None:
            within &= values >= self.at_least
        if self.below is not None:
            within &= values < self.below
        if self.at_most is not None:
            within &= values <= self.at_most
        return within


def is_success(metrics: Mapping[str, float], criterion: Mapping[str, Bound]) -> bool:
    """Return True if metrics meet all bounds of a criterion; NaN meets none, and any metrics meet an empty criterion.

    Args:
        metrics: values by metric.
        criterion: bounds by metric.

    Raises:
        KeyError: if a metric of the criterion is missing.

    Example:
        >>> is_success({"accuracy": 0.96, "loss": 0.2}, {"accuracy": Bound(at_least=0.95), "loss": Bound(below=0.2)})
        False
    """
    return all(bool(bound.holds(np.array([metrics[name]]))[0]) for name, bound in criterion.items())


def first_success(
    steps: npt.NDArray[np.int64], curves: Mapping[str, npt.NDArray[np.float64]], criterion: Mapping[str, Bound]
) -> int | None:
    """Return the first step within all bounds; later steps may violate them.

    Args:
        steps: the steps, int64 [steps].
        curves: values at these steps by metric, each float64 [steps].
        criterion: bounds by metric.

    Returns:
        The step; None if no step is within the bounds. With an empty criterion, it is the first step.

    Raises:
        KeyError: if a metric of the criterion is missing.

    Example:
        >>> curves = {"accuracy": np.array([0.5, 0.96, 0.9])}
        >>> first_success(np.array([0, 10, 20]), curves, {"accuracy": Bound(at_least=0.95)})
        10
    """
    met = np.ones(len(steps), bool)
    for name, bound in criterion.items():
        met &= bound.holds(curves[name])
    return int(steps[met.argmax()]) if met.any() else None


def in_words(criterion: Mapping[str, Bound]) -> str:
    """Format a criterion as text; empty for an empty criterion.

    Example:
        >>> in_words({"accuracy": Bound(at_least=0.95), "loss": Bound(below=2e-3)})
        'accuracy >= 0.95 and loss < 0.002'
    """
    parts = []
    for name, bound in criterion.items():
        parts += [] if bound.at_least is None else [f"{name} >= {bound.at_least!r}"]
        parts += [] if bound.below is None else [f"{name} < {bound.below!r}"]
        parts += [] if bound.at_most is None else [f"{name} <= {bound.at_most!r}"]
    return " and ".join(parts)
