"""Success criteria set by reference trials, whose model knows the answer except for parts that all models learn."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from study.interface.criterion import Bound, in_words

Kind = Literal["mean", "prediction"]
KINDS: tuple[Kind, ...] = ("mean", "prediction")
"""Kinds of bounds: a confidence bound of the references' mean, or a prediction bound of one more reference."""

FEWEST = 2
"""Least number of references for a bound; a single one has no sample standard deviation."""


def reference_bound(
    values: Sequence[float] | npt.NDArray[np.float64], kind: Kind, level: float, *, higher_is_better: bool = False
) -> float | None:
    r"""Compute the bound of a metric from the values of reference trials.

    Let n be the number of values, m their mean, and s their sample standard deviation (divisor n - 1). Let t be the
    quantile at `level` of Student's t distribution with n - 1 degrees of freedom. The bounds are:

    - ``mean``: m + t s / sqrt(n), the one-sided confidence bound of the references' mean. This is the criterion of
      Madsen and Johansen, Neural Arithmetic Units (ICLR 2020), appendix on sequential MNIST. A perfect learner is one
      whose metric has the references' distribution. For normal values, it meets this bound with probability
      T(t / sqrt(n + 1)), where T is the distribution function of the same t distribution. If `level` > 1/2, the
      probability is below `level`.
    - ``prediction``: m + t s sqrt(1 + 1/n), the one-sided prediction bound of one more value. For normal values, a
      perfect learner meets it with probability `level`. Whitmore, The American Statistician 40 (1986) 141-143.

    If higher is better, minus replaces plus.

    Args:
        values: the metric's value of each reference, finite, [n].
        kind: ``mean`` or ``prediction``.
        level: one-sided level, in (0, 1).
        higher_is_better: True if greater values are better.

    Returns:
        The bound; None if there are fewer than two values. It is infinite or NaN if squares of values overflow.

    Raises:
        ValueError: if a value isn't finite, or `level` is out of range.

    Example:
        >>> digits = [0.21, 0.25, 0.19, 0.24, 0.22]
        >>> [round(reference_bound(digits, kind, 0.99), 3) for kind in KINDS]
        [0.262, 0.32]
    """
    x = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(x)):
        raise ValueError(f"the values of references must be finite, but got {x.tolist()}")
    if not 0 < level < 1:
        raise ValueError(f"0 < level < 1 must hold, but got {level:g}")
    n = x.size
    if n < FEWEST:
        return None
    if np.all(x == x[0]):
        return float(x[0])  # a rounded mean might fail the references themselves
    from scipy import special  # only here: most study files have no references, and are read without scipy

    spread = {"mean": 1 / n, "prediction": 1 + 1 / n}[kind]
    reach = float(special.stdtrit(n - 1, level)) * math.sqrt(spread) * float(np.std(x, ddof=1))
    return float(np.mean(x)) + (-reach if higher_is_better else reach)


@dataclass(frozen=True, kw_only=True)
class References:
    """Reference trials of one question.

    Args:
        values: values of the counted references, float64 [n], by metric that gets a bound.
        dropped: number of ended references that aren't counted: diverged, without a finite value, or outside `keep`.
    """

    values: Mapping[str, npt.NDArray[np.float64]]
    dropped: int = 0

    @property
    def count(self) -> int:
        """Number of counted references; 0 without metrics."""
        return min(map(len, self.values.values()), default=0)


@dataclass(frozen=True, kw_only=True)
class ReferenceCriterion:
    """Success criterion with bounds set by references of the same study.

    It is evaluated when results are read, since engines don't have all references.

    Args:
        model: the model of the reference trials.
        higher_is_better: direction of each metric that gets a bound; True if greater values are better.
        kind: kind of the bounds.
        level: one-sided level of the bounds, in (0, 1).
        keep: bounds that a reference must meet to be counted.
        bounds: fixed bounds of other metrics.
        reference_of: id of the reference cell by cell id.
        seeds: seeds of the counted references by reference cell id.
    """

    model: str
    higher_is_better: Mapping[str, bool]
    kind: Kind = "prediction"
    level: float = 0.99
    keep: Mapping[str, Bound] = field(default_factory=dict)
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    reference_of: Mapping[str, str] = field(default_factory=dict)
    seeds: Mapping[str, Collection[int]] = field(default_factory=dict)

    def select(self, has_ended: npt.NDArray[np.bool_], metrics: Mapping[str, npt.NDArray[np.float64]]) -> References:
        """Select the references that are counted: ended, within `keep`, and finite in each metric that gets a bound.

        Args:
            has_ended: True for each reference trial of a question that has a result, bool [trials].
            metrics: the trials' metrics at their best steps, float64 [trials] by name; NaN if missing or diverged.

        Raises:
            KeyError: if `metrics` lacks a metric of `higher_is_better` or `keep`.

        Example:
            >>> criterion = ReferenceCriterion(model="exact", higher_is_better={"error": False})
            >>> some = criterion.select(np.array([True, True, False]), {"error": np.array([0.5, np.nan, np.nan])})
            >>> some.count, some.dropped
            (1, 1)
        """
        counts = has_ended.copy()
        for name in self.higher_is_better:
            counts &= np.isfinite(metrics[name])
        for name, bound in self.keep.items():
            counts &= bound.holds(metrics[name])
        values = {name: metrics[name][counts] for name in self.higher_is_better}
        return References(values=values, dropped=int(np.count_nonzero(has_ended & ~counts)))

    def end(self, references: References, metric: str, kind: Kind | None = None) -> float | None:
        """Return the bound of a metric as a number, or None with fewer than two references.

        Args:
            references: references of the question.
            metric: a key of `higher_is_better`.
            kind: kind of the bound; None for the study's kind.

        Raises:
            ValueError: as `reference_bound` does.
            KeyError: if the metric gets no bound, or the references lack it.
        """
        values, is_higher = references.values[metric], self.higher_is_better[metric]
        return reference_bound(values, kind or self.kind, self.level, higher_is_better=is_higher)

    def bound(self, metric: str, end: float) -> Bound:
        """Return the inclusive bound of a metric, so that references without variation meet their own bound.

        Args:
            metric: a key of `higher_is_better`.
            end: the bound as a number.
        """
        return Bound(at_least=end) if self.higher_is_better[metric] else Bound(at_most=end)

    def of(self, references: References) -> dict[str, Bound]:
        """Return all bounds that a solved trial meets, fixed ones too, by metric; empty with fewer than two references.

        Raises:
            ValueError: as `reference_bound` does.
            KeyError: if the references lack a metric of `higher_is_better`.

        Example:
            >>> criterion = ReferenceCriterion(model="exact", higher_is_better={"error": False})
            >>> criterion.of(References(values={"error": np.array([1.0])}))
            {}
        """
        ends = {name: self.end(references, name) for name in self.higher_is_better}
        known = {name: self.bound(name, end) for name, end in ends.items() if end is not None}
        return {**self.bounds, **known} if len(known) == len(ends) else {}

    def in_words(self, references: References) -> str:
        """Format the bounds of `of` as text; empty with fewer than two references.

        Raises:
            ValueError: as `reference_bound` does.
            KeyError: if the references lack a metric of `higher_is_better`.

        Example:
            >>> criterion = ReferenceCriterion(model="exact", higher_is_better={"error": False}, level=0.75)
            >>> criterion.in_words(References(values={"error": np.array([1.0, 2.0])}))
            'error <= 2.366025... (75% prediction bound of 2 references)'
        """
        note = f"({100 * self.level:g}% {self.kind} bound of {references.count} references)"
        parts = [
            f"{in_words({name: bound})} {note}" if name in self.higher_is_better else in_words({name: bound})
            for name, bound in self.of(references).items()
        ]
        return " and ".join(parts)


Criterion = Mapping[str, Bound] | ReferenceCriterion
"""Success criterion: fixed bounds by metric (empty without a criterion), or bounds set by references."""
