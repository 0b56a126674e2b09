"""The probability that a trial of one method is better than a trial of another, with the seed as the sampling unit."""

from __future__ import annotations

import math

import numpy as np

from study.records import Interval
from study.statistics.checks import Floats, check_confidence
from study.statistics.seed_values import MeanOverCells, Sample, SeedValues, blocks, student

_PRIOR = 0.25
"""The weight, in seeds, of a coin flip's variance that is added to both variances of the ratio r. Without it, r would
be 0/0 if all trials of one method are better."""


def probability_of_improvement(
    *, of: SeedValues, over: SeedValues, higher_is_better: bool, confidence: float = 0.95
) -> MeanOverCells:
    """Estimate the probability that a trial of one method is better than one of another, ties counted half.

    In each cell, p is the share of pairs of trials with different seeds in which the first method is better (Mann &
    Whitney, Annals of Mathematical Statistics 18 (1947) 50-60). Pairs of one seed are left out, since they are
    correlated. The estimate is the mean over cells. The influence of a seed is Σ (a - p)/√(m (m - 1)) over its trials,
    divided by the number of cells. There, m is the number of seeds of the trial's own method in the cell. For a trial
    of the first method, a is the share of the second method's trials that are worse; for one of the second, the share
    of the first method's trials that are better. V is the sum of squared influences (DeLong et al., Biometrics 44
    (1988) 837-845; of clusters: Obuchowski, Biometrics 53 (1997) 567-578).

    The interval is a score interval like Wilson's: the p with (p̂ - p)² <= t² r p (1 - p)/n. Here n is the least number
    of seeds, and t the quantile of `student`. r = (V + v)/(p̂ (1 - p̂)/n + v), with v = c/4 / (n (n + c)) and c = 1/4.
    If all trials of one method are better, V is 0 and r is 1: the interval is that of n independent comparisons, since
    more comparisons of the same n seeds need not add information.

    Args:
        of: the values of the method that may be better.
        over: the values of the other method, in the same cells. An infinite value is better, or worse, than any number.
        higher_is_better: whether a higher value is better.
        confidence: in (0, 1).

    Returns:
        The probability. Its interval is None if a method has fewer than two seeds in a cell.

    Raises:
        ValueError: if the cells aren't the same, no two trials of a cell have different seeds, or the confidence is out
            of range.

    Example:
        >>> of = SeedValues({"a": {0: 5.0, 1: 7.0, 2: 8.0}, "b": {0: 5.0, 1: 9.0, 2: 9.0}})
        >>> over = SeedValues({"a": {0: 4.0, 1: 6.0, 2: 9.0}, "b": {0: 4.0, 1: 3.0, 2: 9.0}})
        >>> both = probability_of_improvement(of=of, over=over, higher_is_better=True)
        >>> round(both.value, 3), [round(end, 2) for end in both.interval]
        (0.625, [0.23, 0.9])
    """
    check_confidence(confidence)
    if alone := set(of.by_cell) ^ set(over.by_cell):
        raise ValueError(f"both methods must have the same cells; leave out {', '.join(sorted(map(str, alone)))}")
    pairs = list(zip(of.samples, over.samples, strict=True))
    compared = [_compare(first, second, higher_is_better=higher_is_better) for first, second in pairs]
    p = float(np.mean([share for share, _, _ in compared]))
    samples = [*of.samples, *over.samples]
    n = min(map(len, samples))
    if n < 2:
        return MeanOverCells(p, None)
    parts = [*(first for _, first, _ in compared), *(second for _, _, second in compared)]
    linked = blocks([dict(zip(sample, part, strict=True)) for sample, part in zip(samples, parts, strict=True)])
    variances = [float(np.sum(np.nansum(block.values, axis=0) ** 2)) / len(pairs) ** 2 for block in linked]
    t = student(variances, [block.least for block in linked], confidence)
    return MeanOverCells(p, _score_interval(p, sum(variances), n, t))


def _score_interval(p: float, variance: float, n: int, t: float) -> Interval:
    """Return the interval of `probability_of_improvement` from its estimate p̂ (`p`), variance V, n and t."""
    prior = _PRIOR / 4 / (n * (n + _PRIOR))
    reach = t * t / n * (variance + prior) / (p * (1 - p) / n + prior)
    centre, half = p + reach / 2, math.sqrt(reach * (p * (1 - p) + reach / 4))
    return (max(0.0, (centre - half) / (1 + reach)), min(1.0, (centre + half) / (1 + reach)))


def _compare(first: Sample, second: Sample, *, higher_is_better: bool) -> tuple[float, Floats, Floats]:
    """Return the share of pairs that the first wins, ties half, and the influences; raise ValueError without pairs."""
    sign = 1.0 if higher_is_better else -1.0
    a, b = ({seed: sign * value for seed, value in sample.items()} for sample in (first, second))
    of_a, of_b = _better_than(a, b), _better_than(b, a)
    won, pairs = of_a.sum(axis=1)
    if not pairs:
        raise ValueError("each cell needs two trials with different seeds, but one has a single seed")
    p = won / pairs
    return float(p), _parts(of_a, p), -_parts(of_b, 1 - p)


def _better_than(sample: Sample, others: Sample) -> Floats:
    """For each value, count the others' values with another seed: the lower ones (ties half), and all; [2, values]."""
    ordered = np.sort(list(others.values()))
    values = np.array(list(sample.values()))
    won = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    same = np.array([seed in others for seed in sample], np.float64)
    won -= [_beats(value, others[seed]) if seed in others else 0.0 for seed, value in sample.items()]
    return np.array([won, len(others) - same])


def _beats(value: float, other: float) -> float:
    return 0.5 if value == other else float(value > other)


def _parts(counts: Floats, p: float) -> Floats:
    """Return the influence (a - p)/√(m (m - 1)) of each trial from the counts of `_better_than`; 0 for one trial."""
    won, pairs = counts
    m = won.size
    shares = np.divide(won, pairs, out=np.full(m, p), where=pairs > 0)
    return np.asarray((shares - p) / math.sqrt(m * (m - 1)) if m > 1 else np.zeros(m))
