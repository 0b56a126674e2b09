"""Criteria from reference trials, which know the answer but for what all trials must learn."""

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
"""What a bound is of: the mean of all references that there could be, or one more reference."""

FEWEST = 2
"""The fewest references from which a bound can be computed: one alone says nothing of how they vary."""


def reference_bound(
    values: Sequence[float] | npt.NDArray[np.float64], kind: Kind, level: float, *, higher_is_better: bool = False
) -> float | None:
    r"""Compute the bound that references set for a metric.

    With n values, their mean m, sample standard deviation s (over n - 1) and t the level's quantile of Student's
    distribution with n - 1 degrees of freedom:

    - ``mean``: m + t s / sqrt(n), the one-sided confidence bound of the references' mean. This is the criterion of
      Madsen and Johansen, Neural Arithmetic Units (ICLR 2020), appendix on sequential MNIST. A perfect learner, whose
      metric has the distribution of the references', passes it less often than the level says: for normal values with
      probability T(t / sqrt(n + 1)), T the distribution function of Student's with n - 1 degrees of freedom.
    - ``prediction``: m + t s sqrt(1 + 1/n), the one-sided prediction bound of one more value: for normal values a
      perfect learner passes it with the probability `level`. Whitmore, The American Statistician 40 (1986) 141-143.

    Of a metric of which higher is better it is the mirror image, with minus instead of plus.

    Args:
        values: of the metric, one a reference, finite.
        kind: ``mean`` or ``prediction``.
        level: one-sided, in (0, 1).
        higher_is_better: whether a greater value is better.

    Returns:
        The bound; None if there are fewer than two values.

    Raises:
        ValueError: if a value isn't finite, or the level is out of range.

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
        return float(x[0])  # their mean would be rounded, and they might not pass it themselves
    from scipy import special  # only here: a study file is read without it, and most have no references

    spread = {"mean": 1 / n, "prediction": 1 + 1 / n}[kind]
    reach = float(special.stdtrit(n - 1, level)) * math.sqrt(spread) * float(np.std(x, ddof=1))
    return float(np.mean(x)) + (-reach if higher_is_better else reach)


@dataclass(frozen=True, kw_only=True)
class References:
    """The references of one question.

    Args:
        values: of each metric of success that they set a bound for, those of the references that count, float64 [n].
        dropped: how many references ended and don't count: they diverged, lack a finite value, or don't meet `keep`.
    """

    values: Mapping[str, npt.NDArray[np.float64]]
    dropped: int = 0

    @property
    def count(self) -> int:
        """The number of references that count."""
        return min(map(len, self.values.values()), default=0)


@dataclass(frozen=True, kw_only=True)
class ReferenceCriterion:
    """What success is, where references of the same study say it.

    It can be judged only where all results are: when they are read, never by an engine.

    Args:
        model: the model whose trials the references are.
        higher_is_better: the metrics for which references set a bound, and whether a greater value is better.
        kind: what the bounds are of.
        level: of the bounds, one-sided, in (0, 1).
        keep: what a reference must meet to count.
        bounds: of other metrics, what the metrics of a solved trial meet besides.
        reference_of: for each cell, by its id, the id of the cell whose trials are its references.
        seeds: of each cell of references, by its id, the seeds that count.
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
        """Select the references that count.

        Args:
            has_ended: of each trial of a question's references, whether it has a result.
            metrics: their metrics, each at its own best step, float64 [trials]; NaN where there is no number, and for
                trials that diverged.

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
        """Return the bound that references set for a metric; None if they are too few.

        Args:
            references: those of the question.
            metric: one of `higher_is_better`.
            kind: what the bound is of; None for the study's.
        """
        values, is_higher = references.values[metric], self.higher_is_better[metric]
        return reference_bound(values, kind or self.kind, self.level, higher_is_better=is_higher)

    def bound(self, metric: str, end: float) -> Bound:
        """Return what a metric must reach: the end of the bound itself is enough.

        References that don't vary would otherwise not pass their own bound.
        """
        return Bound(at_least=end) if self.higher_is_better[metric] else Bound(at_most=end)

    def of(self, references: References) -> dict[str, Bound]:
        """Return what the metrics of a solved trial meet; empty if the references are too few to say it.

        Example:
            >>> criterion = ReferenceCriterion(model="exact", higher_is_better={"error": False})
            >>> criterion.of(References(values={"error": np.array([1.0])}))
            {}
        """
        ends = {name: self.end(references, name) for name in self.higher_is_better}
        known = {name: self.bound(name, end) for name, end in ends.items() if end is not None}
        return {**self.bounds, **known} if len(known) == len(ends) else {}

    def in_words(self, references: References) -> str:
        """Write what trials with these references are judged by; empty if the references are too few.

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
"""What success is: bounds of metrics that are known beforehand, empty if nothing says it, or that references set."""
