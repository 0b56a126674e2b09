"""An upper bound of a trial's median cost, for costs without a maximum."""

from __future__ import annotations

import math

import numpy as np

from study.statistics.checks import Values, check_confidence, check_count, finite
from study.statistics.solved_at import median_rank


def upper_median(costs: Values, n: int, confidence: float = 0.95) -> float:
    """Bound the median cost of a trial from above, for any distribution of the costs.

    The bound U is the r-th greatest of n costs, failed trials having infinite cost. r is the greatest number for which
    P(B < r) < (1 - confidence)/2, B binomial with n and 1/2, but at least 1. That is the upper end of the interval of
    `median_intervals`. If the sample is too small for that interval, U is the greatest cost, which is below the median
    in 2⁻ⁿ of all samples.

    *Monotone.* r grows with n, and by at most 1 with each trial. So U doesn't grow when a trial costs less, when one of
    the failed trials gets a cost, when a trial is added that costs no more than U, and when every trial is repeated.

    Args:
        costs: shape [m], of the trials that did not fail.
        n: the number of trials, >= m.
        confidence: in (0, 1): that of the two-sided interval.

    Returns:
        The bound; infinite without trials, or if at least r of them failed.

    Raises:
        ValueError: if a cost is NaN or infinite, there are more costs than trials, or the confidence is out of range.

    Example:
        >>> [upper_median([3.0, 1.0, 2.0, 4.0, 9.0, 5.0], n) for n in (6, 7)]
        [9.0, inf]
        >>> upper_median(range(40), 40), upper_median(range(30), 40)
        (26.0, 26.0)
    """
    check_count(len(costs), n)
    check_confidence(confidence)
    place = n - max(1, median_rank(n, confidence))
    x = np.sort(finite(costs))
    return float(x[place]) if 0 <= place < x.size else math.inf
