"""The arithmetic task: sums of subsets of the inputs, combined by an operation.

    a_j = sum of x over subset j,   t = a_1 ∘ a_2,   ∘ in {+, -, ×, ÷, a_1², sqrt(a_1), 1 / a_1}

Neighbouring subsets overlap; the first starts at an offset drawn once per seed. A trial has solved the task when its
test MSE on the extrapolation range is below that of the right solution with every layer-1 weight off by ε.

In the single-module task each subset is one number, next to the other, and one layer must combine them.

Source: Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020; "Measuring Arithmetic Extrapolation
Performance", 2019. The single-module task: Mistry, Farrahi & Hare, "A Primer for Neural Arithmetic Logic Modules",
JMLR 2022.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from study.interface.declarations import Metric
from tasks.arithmetic.distributions import Source, check_source
from tasks.arithmetic.models import SINGLE_MODULE
from tasks.arithmetic.module_threshold import module_threshold
from tasks.arithmetic.threshold import Range, threshold

if TYPE_CHECKING:
    from torch import Tensor

OPERATIONS = ("add", "sub", "mul", "div", "squared", "root", "reciprocal")

RELATIVE_ERROR: Mapping[str, Metric] = {"test_relative_error": Metric(title="relative test error", low=0.0)}
"""The optional metric of a cell: the mean of abs(y - t) / abs(t) on the test rows."""

_SUBSETS = {"sub": (2, 2), "div": (2, 2), "squared": (1, 2), "root": (1, 2), "reciprocal": (1, 2)}
_FLOAT32_SPACING = 2.0**-24
"""The distance from 1 to the next smaller float32, the resolution of weights near 1."""

_MODULE_OPERATIONS = ("add", "sub", "mul", "div", "reciprocal")
_SIMPLE_MASKS = ((1, 1, 0, 0), (1, 1, 1, 1))


@dataclass(frozen=True, kw_only=True)
class ArithmeticTask:
    """The task that a trial must learn.

    Args:
        operation: one of `OPERATIONS`; ``squared``, ``root`` and ``reciprocal`` take the first subset only.
        input_size: numbers in an input row, n >= 1.
        subset_ratio: s / n before rounding down; 0 < ratio <= 1. None for the simple and single-module tasks.
        overlap_ratio: overlap / s before rounding down; 0 <= ratio <= 1. None for the simple and single-module tasks.
        subsets: number of subsets: 2, or more for ``add`` and ``mul``, or 1 for ``squared``, ``root`` and
            ``reciprocal``.
        interpolation_range: range of training and validation inputs.
        extrapolation_range: range of test inputs.
        distribution: of inputs on these ranges, one of `distributions.DISTRIBUTIONS`; None for uniform.
        interpolation_mean: mean of normally distributed training and validation inputs, before truncation.
        extrapolation_mean: the same for test inputs.
        deviation: the standard deviation of both.
        simple: t = (x1 + x2) ∘ (x1 + x2 + x3 + x4) instead, without an offset.
        single: t = x_i ∘ x_{i+1} instead, where i is the offset, for one layer.

    Raises:
        ValueError: if the subsets don't fit, a range or its distribution is invalid, or the operation can't take them.

    Example:
        >>> task = ArithmeticTask(operation="mul", input_size=8, subset_ratio=0.5, overlap_ratio=0.5)
        >>> task.subset_size, task.overlap, task.used
        (4, 2, 6)
        >>> task.masks(offset=2).astype(int).tolist()
        [[0, 0, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]]
        >>> simple_task(operation="add").masks(offset=0).astype(int).tolist()
        [[1, 1, 0, 0], [1, 1, 1, 1]]
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "validation_mse": Metric(title="validation MSE", low=0.0, of="none"),
        "test_mse": Metric(title="test MSE", low=0.0, of="none"),
        "sparsity_error": Metric(low=0.0, high=0.5, of="solved", interval="beta", resolution=_FLOAT32_SPACING),
    }
    """Errors of the best step; the sparsity error is the maximum over all layers' effective weights W of
    min(abs W, abs(1 - abs W))."""

    operation: str = "mul"
    input_size: int = 100
    subset_ratio: float | None = 0.25
    overlap_ratio: float | None = 0.5
    subsets: int = 2
    interpolation_range: Range = ((1.0, 2.0),)
    extrapolation_range: Range = ((2.0, 6.0),)
    distribution: str | None = None
    interpolation_mean: float | None = None
    extrapolation_mean: float | None = None
    deviation: float | None = None
    simple: bool = False
    single: bool = False

    def __post_init__(self) -> None:
        check_operation(self.operation, self.subsets)
        check_range("interpolation_range", self.interpolation_range)
        check_range("extrapolation_range", self.extrapolation_range)
        if self.distribution is not None:
            for range_, mean in (
                (self.interpolation_range, self.interpolation_mean),
                (self.extrapolation_range, self.extrapolation_mean),
            ):
                check_source(Source(range_, self.distribution, mean, self.deviation))
        if self.simple:
            self._check_simple()
        elif self.single:
            self._check_single()
        else:
            self._check_fit()
        if self.operation == "root":
            for range_ in (self.interpolation_range, self.extrapolation_range):
                if min(low for low, _ in range_) < 0:
                    raise ValueError(f"operation 'root' needs ranges of numbers >= 0, but got {range_}")

    def _check_simple(self) -> None:
        if (self.input_size, self.subset_ratio, self.overlap_ratio) != (4, None, None) or self.subsets > 2:
            raise ValueError(
                "the simple task has input_size 4, subsets x1+x2 and x1+x2+x3+x4 and no ratios, but got "
                f"input_size {self.input_size}, subset_ratio {self.subset_ratio}, "
                f"overlap_ratio {self.overlap_ratio}, subsets {self.subsets}"
            )

    def _check_single(self) -> None:
        if self.operation not in _MODULE_OPERATIONS:
            raise ValueError(
                f"operation must be one of {', '.join(_MODULE_OPERATIONS)} in the single-module task, but got "
                f"{self.operation!r}"
            )
        alone = self.operation == "reciprocal" and self.subsets == 1
        is_pair = self.subsets == 2 and self.input_size >= 2
        if not (alone or is_pair) or (self.subset_ratio, self.overlap_ratio) != (None, None):
            raise ValueError(
                "the single-module task has 2 subsets of one number each, or for 'reciprocal' 1, no more than "
                "input_size, and no ratios, but got "
                f"input_size {self.input_size}, subset_ratio {self.subset_ratio}, "
                f"overlap_ratio {self.overlap_ratio}, subsets {self.subsets}"
            )

    def _check_fit(self) -> None:
        if self.subset_ratio is None or not 0 < self.subset_ratio <= 1:
            raise ValueError(f"0 < subset_ratio <= 1 must hold, but got {self.subset_ratio}")
        if self.overlap_ratio is None or not 0 <= self.overlap_ratio <= 1:
            raise ValueError(f"0 <= overlap_ratio <= 1 must hold, but got {self.overlap_ratio}")
        if self.subset_size < 1:
            raise ValueError(
                f"a subset must have at least 1 number, but subset_ratio {self.subset_ratio:g} of input_size "
                f"{self.input_size} has {self.subset_size}; take a larger subset_ratio or input_size"
            )
        if self.used > self.input_size:
            raise ValueError(
                f"{self.subsets} subsets of {self.subset_size} with overlap {self.overlap} need {self.used} "
                f"numbers, but input_size is {self.input_size}; take a smaller subset_ratio than "
                f"{self.subset_ratio:g}, a larger overlap_ratio than {self.overlap_ratio:g} or fewer subsets"
            )

    @property
    def subset_size(self) -> int:
        """The size of a subset, s = floor(subset_ratio n); in the simple task 2, of the first; for one layer 1.

        The product is rounded to 9 decimals first.
        """
        if self.single:
            return 1
        return 2 if self.subset_ratio is None else _floor(self.subset_ratio * self.input_size)

    @property
    def overlap(self) -> int:
        """The overlap of neighbouring subsets, floor(overlap_ratio s); in the simple task 2; for one layer 0.

        The product is rounded to 9 decimals first.
        """
        if self.single:
            return 0
        return 2 if self.overlap_ratio is None else _floor(self.overlap_ratio * self.subset_size)

    @property
    def used(self) -> int:
        """The distance from the start of the first subset to the end of the last; n in the simple task."""
        if self.simple:
            return self.input_size
        return self.subsets * self.subset_size - (self.subsets - 1) * self.overlap

    def offset(self, uniform: float) -> int:
        """Compute the start of the first subset.

        Args:
            uniform: 0 <= uniform < 1, drawn once per seed.

        Returns:
            An integer in 0..n - used; all are equally likely.
        """
        places = self.input_size - self.used + 1
        return min(int(uniform * places), places - 1)

    def masks(self, offset: int) -> npt.NDArray[np.float32]:
        """Compute the membership masks of the subsets.

        Args:
            offset: start of the first subset, a result of the method `offset`; no effect in the simple task.

        Returns:
            0 or 1, float32 [subsets, n].
        """
        if self.simple:
            return np.array(_SIMPLE_MASKS[: self.subsets], np.float32)
        masks = np.zeros((self.subsets, self.input_size), np.float32)
        for j in range(self.subsets):
            start = offset + j * (self.subset_size - self.overlap)
            masks[j, start : start + self.subset_size] = 1
        return masks

    def pieces(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Compute the masks at offset 0, with neighbours in the same subsets merged, so that large n cost no more.

        In the simple task, each input is a piece of its own.

        Returns:
            The masks, 0 or 1, float32 [subsets, pieces], and the number of inputs in each piece, int64 [pieces].

        Example:
            >>> task = ArithmeticTask(operation="mul", input_size=8, subset_ratio=0.5, overlap_ratio=0.5)
            >>> masks, widths = task.pieces()
            >>> masks.astype(int).tolist(), widths.tolist()
            ([[1, 1, 0, 0], [0, 1, 1, 0]], [2, 2, 2, 2])
        """
        if self.simple:
            return self.masks(0), np.ones(self.input_size, np.int64)
        starts = np.arange(self.subsets, dtype=np.int64) * (self.subset_size - self.overlap)
        ends = starts + self.subset_size
        edges = np.unique(np.concatenate([starts, ends, [0, self.input_size]]))
        inside = (starts[:, None] <= edges[:-1]) & (edges[:-1] < ends[:, None])
        return inside.astype(np.float32), np.diff(edges)

    def target(self, sums: Tensor) -> Tensor:
        """Combine the subsets' sums by the operation.

        Args:
            sums: shape [..., subsets, batch].

        Returns:
            [..., 1, batch]; NaN for ``root`` of a negative sum; infinite or NaN where a divisor is 0.
        """
        first, *others = (sums[..., j : j + 1, :] for j in range(self.subsets))
        match self.operation:
            case "add":
                return reduce(operator.add, others, first)
            case "mul":
                return reduce(operator.mul, others, first)
            case "sub":
                return first - others[0]
            case "div":
                return first / others[0]
            case "squared":
                return first * first
            case "reciprocal":
                return 1 / first
        return first.sqrt()

    def threshold(self, epsilon: float = 1e-5) -> float:
        """Compute the test MSE that a trial must undercut; see `tasks.arithmetic.threshold`.

        Args:
            epsilon: 0 < ε < 1/2, the error of every layer-1 weight; for one layer, see `module_threshold`.

        Raises:
            ValueError: if epsilon is out of range, the mean doesn't exist (``div`` with a divisor that can be 0) or
                isn't finite in float64, no formula is known (for ``reciprocal`` or a distribution), it takes too
                long to compute (``mul`` of many subsets), or, in the single-module task except for sums, ε times the
                mean absolute input is 1 or more.

        Example:
            >>> task = ArithmeticTask(operation="mul")
            >>> round(task.threshold(), 10)
            0.1605591839
        """
        return _threshold(self, epsilon)


def metrics_with(has_relative_error: bool) -> Mapping[str, Metric]:
    """Return the metrics of trials, with or without the relative error."""
    return {**ArithmeticTask.metrics, **(RELATIVE_ERROR if has_relative_error else {})}


simple_task = partial(ArithmeticTask, input_size=4, subset_ratio=None, overlap_ratio=None, simple=True)
"""Build the simple task, t = (x1 + x2) ∘ (x1 + x2 + x3 + x4), from the other values; see `ArithmeticTask`."""


single_task = partial(ArithmeticTask, input_size=2, subset_ratio=None, overlap_ratio=None, single=True)
"""Build the single-module task, t = x_i ∘ x_{i+1}, from the other values; see `ArithmeticTask`."""

TASKS: dict[str, Callable[..., ArithmeticTask]] = {
    "arithmetic": ArithmeticTask,
    "simple": simple_task,
    SINGLE_MODULE: single_task,
}
"""The tasks by their names in study files."""


def check_operation(operation: str, subsets: int) -> None:
    """Check that an operation exists and takes that many subsets.

    Raises:
        ValueError: if the operation is unknown, or doesn't take that many subsets.
    """
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, but got {operation!r}")
    least, most = _SUBSETS.get(operation, (2, None))
    if subsets < least or (most is not None and subsets > most):
        must = f"{least} or more" if most is None else " or ".join(str(k) for k in range(least, most + 1))
        raise ValueError(f"operation {operation!r} takes {must} subsets, but got subsets {subsets}")


def check_range(name: str, range_: Range) -> None:
    """Check that a range is one interval, or two of equal width.

    Raises:
        ValueError: if it doesn't have one or two intervals, an end isn't finite, low < high doesn't hold, or the
            widths differ by more than 1e-6 of the larger.
    """
    if not 1 <= len(range_) <= 2:
        raise ValueError(f"{name} must have one or two intervals, but got {len(range_)}")
    for low, high in range_:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"low < high must hold in {name}, and both finite, but got [{low:g}, {high:g}]")
    widths = [high - low for low, high in range_]
    if not math.isclose(widths[0], widths[-1], rel_tol=1e-6):
        raise ValueError(f"the two intervals of {name} must have equal width, but got {widths[0]:g} and {widths[1]:g}")


def _floor(value: float) -> int:
    # 0.29 * 100 is 28.999999999999996 in floating point, but means 29.
    return math.floor(round(value, 9))


@lru_cache(maxsize=4096)
def _threshold(task: ArithmeticTask, epsilon: float) -> float:
    _refuse_threshold(task)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            if task.single:
                value = module_threshold(task.operation, task.input_size, task.extrapolation_range, epsilon)
            else:
                masks, widths = task.pieces()
                value = threshold(task.operation, masks, task.extrapolation_range, epsilon, widths)
    except ArithmeticError:  # a square that overflows a float, or an interval too narrow for one
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"operation {task.operation!r} has no finite success threshold over extrapolation_range "
            f"{task.extrapolation_range}; take numbers of another size, or give success.threshold"
        )
    return value


def _refuse_threshold(task: ArithmeticTask) -> None:
    if task.distribution is not None:
        raise ValueError(
            f"the success threshold of distribution {task.distribution!r} is unknown: give success.threshold"
        )
    if task.operation == "reciprocal":
        raise ValueError("the success threshold of operation 'reciprocal' is unknown: give success.threshold")
