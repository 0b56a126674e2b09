"""An upper bound of a trial's mean cost, where failed trials cost the most."""

from __future__ import annotations

import numpy as np

from study.statistics.checks import Values, check_count, finite
from study.statistics.rates import wilsons


def upper_mean(costs: Values, n: int, most: float, confidence: float = 0.95) -> float:
    """Bound the mean cost of a trial from above, for any distribution of the costs.

    With the m known costs in order, x₁ <= ... <= x_m <= x_{m+1} = `most`, and L_k the lower end of Wilson's interval of
    k successes in n trials, L₀ = 0:

        U = Σ_{k=1..m} (L_k - L_{k-1}) x_k + (1 - L_m) most = most - Σ_{k=1..m} L_k (x_{k+1} - x_k)

    It is the mean of a distribution that has, up to any cost, only the share of trials that Wilson's interval
    guarantees.

    *Monotone.* L grows with k, and with n for a constant k/n. By the second form, U doesn't grow when more trials, or
    the same share of more trials, are within each cost: when a trial costs less, when one of the n - m failed trials
    gets a cost, when a trial is added that costs no more than all others, and when every trial is repeated.

    *Safe.* With the share p(x) of all trials that cost at most x, U exceeds the estimate of the mean by about z/√n ∫
    √(p (1 - p)) dx for many trials, z the normal quantile. That integral is at least the standard deviation of a cost,
    by Cauchy's inequality, since no correlation exceeds 1. So U is below the mean in at most (1 - confidence)/2 of all
    samples, or as often as Wilson's lower end is above a rate: if all costs are 0 or `most`, U/most is 1 minus that
    end.

    Args:
        costs: shape [m], of the trials that did not fail; a cost above `most` counts as `most`.
        n: the number of trials, >= m; without any, the bound is `most`.
        most: the greatest possible cost of a trial, which is that of a failed one.
        confidence: in (0, 1): that of Wilson's two-sided interval.

    Returns:
        The bound, at most `most`.

    Raises:
        ValueError: if a cost or `most` is NaN or infinite, there are more costs than trials, or the confidence is out
            of range.

    Example:
        >>> [round(upper_mean([7.0] * m, n, most=20.0), 2) for m, n in [(0, 5), (5, 5), (36, 40), (40, 40)]]
        [20.0, 12.65, 10.0, 8.14]
    """
    check_count(len(costs), n)
    [end] = finite([most])
    x = np.minimum(np.sort(finite(costs)), end)
    ends = wilsons(range(x.size + 1), [n] * (x.size + 1), confidence)[:, 0]
    return float(min(end, np.diff(ends) @ x + (1 - ends[-1]) * end))
