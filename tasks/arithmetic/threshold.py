"""The success threshold of the arithmetic task: the test MSE of the right solution with weights off by ε.

    threshold = E[(f(W^ε) - f(W*))²]

In layer 1, W^ε has 1 - ε where W* has 1, and ε where W* has 0; layer 2 is exact. So a subset's sum a_j becomes a_j + ε
(T - 2 a_j), where T is the sum of all numbers. Numbers in the same subsets are replaced by their sum, whose moments are
all known. The mean is then exact: by a formula for ``add`` and ``sub``, and by a Gauss rule for ``mul`` and
``squared``, which are polynomials of these sums. For ``div`` and ``root`` the Gauss rule has 16 nodes for each sum; its
error is below 1e-9 of the threshold when a subset has at least 4 numbers and none is near 0.

Source: Madsen & Johansen, "Measuring Arithmetic Extrapolation Performance", 2019.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]
Range = tuple[Interval, ...]
"""One interval, or two of equal width; each number is drawn from either with probability 1/2."""

_Reals = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

_NODES = 16
_MOST_POINTS = 2**22
_MOST_NODES = 128  # of a rule; its time grows with their cube, and is 0.5 s here
_DIGITS = 100


def threshold(
    operation: str,
    masks: npt.NDArray[np.float32],
    range_: Range,
    epsilon: float,
    widths: npt.NDArray[np.int64] | None = None,
) -> float:
    """Compute the test MSE that a trial must undercut.

    Args:
        operation: one of `tasks.arithmetic.OPERATIONS` except ``reciprocal``.
        masks: 1 where a number belongs to a subset, else 0, [subsets, n].
        range_: the range of the numbers.
        epsilon: 0 < ε < 1/2.
        widths: how many numbers each column of the masks stands for, int64 [n]; None for one each.

    Returns:
        The MSE; infinite or NaN if it overflows, or for ``root`` of negative sums.

    Raises:
        ValueError: if epsilon is out of range, the mean doesn't exist (``div`` with a divisor that can be 0), or it
            takes too long to compute (``mul`` of many subsets).
        ArithmeticError: if a number overflows, or an interval is too narrow, in float64.

    Example:
        >>> threshold("add", np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.float32), ((2.0, 6.0),), 1e-5)
        2.66666...e-08
    """
    if not 0 < epsilon < 0.5:
        raise ValueError(f"0 < epsilon < 0.5 must hold, but got {epsilon}")
    alone = operation in ("squared", "root")
    subsets = (masks[:1] if alone else masks).astype(np.int64)
    groups, group_of = np.unique(subsets, axis=1, return_inverse=True)
    weights = None if widths is None else widths.astype(np.float64)  # exact below 2**53
    counts = np.bincount(group_of.ravel(), weights).astype(np.int64)
    if operation in ("add", "sub"):
        return epsilon**2 * _linear_mean(operation, groups, counts, range_)
    if operation == "div" and not _one_sided(range_):
        raise ValueError(
            f"operation 'div' has no success threshold where the divisor can be 0, as in {range_}; take an "
            "extrapolation_range on one side of 0, or give success.threshold"
        )
    nodes = {"mul": len(groups) + 1, "squared": 3}.get(operation, _NODES)
    if nodes > _MOST_NODES or nodes ** len(counts) > _MOST_POINTS:
        raise ValueError(
            f"the success threshold of {operation!r} with {len(groups)} overlapping subsets takes too long "
            "to compute; take fewer subsets or overlap_ratio 0, or give success.threshold"
        )
    rules = [_sum_rule(range_, int(count), nodes) for count in counts]
    square = _error(operation, groups, [points for points, _ in rules], epsilon) ** 2
    for _, weights in reversed(rules):
        square = square @ weights
    return float(square)


def _one_sided(range_: Range) -> bool:
    return min(low for low, _ in range_) > 0 or max(high for _, high in range_) < 0


def _linear_mean(operation: str, groups: _Integers, counts: _Integers, range_: Range) -> float:
    """Compute E[(sum_i c_i x_i)²], where sum_i c_i x_i = sum_j ± (T - 2 a_j); - holds for the second of ``sub``.

    T is the sum of all numbers x_i, and a_j that of subset j. `groups` are masks, 0 or 1, [subsets, groups], and
    `counts` how many numbers a group has, [groups].
    """
    signs = np.array([1, -1]) if operation == "sub" else np.ones(len(groups), np.int64)
    coefficients = signs @ (1 - 2 * groups)
    mean = _centre(range_) * float(coefficients @ counts)
    return mean**2 + _variance(range_) * float(coefficients**2 @ counts)


def _error(operation: str, groups: _Integers, points: list[_Reals], epsilon: float) -> _Reals:
    """Compute f(W^ε) - f(W*), the error of weights off by ε, on the grid of the groups' sums, one axis a group.

    `groups` are masks, 0 or 1, [subsets, groups], and `points` are the nodes of each group's sum. Formulas of the
    difference are evaluated, since subtracting two rounded numbers would lose precision.
    """
    sums = np.ix_(*points)
    total = _total(list(sums), points)
    first, *others = (_total([s for s, inside in zip(sums, row, strict=True) if inside], points) for row in groups)
    off = epsilon * (total - 2 * first)
    if operation == "div":
        second = others[0]
        second_off = second + epsilon * (total - 2 * second)
        return np.asarray(epsilon * total * (second - first) / (second * second_off))
    if operation == "root":
        return np.asarray(off / (np.sqrt(first + off) + np.sqrt(first)))
    product, error = first, off
    for factor in [first] if operation == "squared" else others:
        off = epsilon * (total - 2 * factor)
        error = (factor + off) * error + off * product
        product = product * factor
    return error


def _total(sums: list[_Reals], points: list[_Reals]) -> _Reals:
    total = np.zeros([len(p) for p in points])
    for s in sums:
        total += s
    return total


def _centre(range_: Range) -> float:
    return sum(low + high for low, high in range_) / (2 * len(range_))


def _half_gap(range_: Range) -> float:
    """Compute half the distance between the two intervals' centres; 0 for one interval."""
    (low, high), (last_low, last_high) = range_[0], range_[-1]
    return (last_low + last_high - low - high) / 4


def _variance(range_: Range) -> float:
    low, high = range_[0]
    return (high - low) ** 2 / 12 + _half_gap(range_) ** 2


@lru_cache(maxsize=4096)
def _sum_rule(range_: Range, count: int, nodes: int) -> tuple[_Reals, _Reals]:
    """Compute nodes and weights of the Gauss rule for the sum of `count` numbers of the range.

    It is exact for polynomials up to degree 2 nodes - 1. Chebyshev's algorithm computes it from the moments and loses
    about one digit a moment, so it works with 100 digits. All odd moments are 0.

    Source: Gautschi, "Orthogonal Polynomials: Computation and Approximation", 2004, sections 2.1.7 and 3.1.1.
    """
    scale = math.sqrt(count * _variance(range_))
    with localcontext() as context:
        context.prec = _DIGITS
        moments = _sum_moments(range_, count, 2 * nodes, Decimal(scale))
        squares = _recurrence(moments, nodes)
    side = np.sqrt(np.array([float(b) for b in squares]))
    positions, vectors = np.linalg.eigh(np.diag(side, 1) + np.diag(side, -1))
    return count * _centre(range_) + scale * positions, vectors[0] ** 2


def _sum_moments(range_: Range, count: int, degree: int, scale: Decimal) -> list[Decimal]:
    """Compute the central moments 0..degree of the sum, in units of `scale`, by adding the numbers' cumulants."""
    low, high = range_[0]
    half_width = (Decimal(high) - Decimal(low)) / 2 / scale
    half_gap = Decimal(_half_gap(range_)) / scale
    within = [half_width**j / (j + 1) if j % 2 == 0 else Decimal(0) for j in range(degree + 1)]
    between = [half_gap**j if j and j % 2 == 0 else Decimal(j == 0) for j in range(degree + 1)]
    single = [
        sum((math.comb(j, i) * within[i] * between[j - i] for i in range(j + 1)), Decimal(0)) for j in range(degree + 1)
    ]
    cumulants = [Decimal(0)] * (degree + 1)
    for j in range(1, degree + 1):
        lower = (math.comb(j - 1, i - 1) * cumulants[i] * single[j - i] for i in range(1, j))
        cumulants[j] = single[j] - sum(lower, Decimal(0))
    total = [Decimal(1)]
    for j in range(1, degree + 1):
        terms = (math.comb(j - 1, i - 1) * count * cumulants[i] * total[j - i] for i in range(1, j + 1))
        total.append(sum(terms, Decimal(0)))
    return total


def _recurrence(moments: list[Decimal], nodes: int) -> list[Decimal]:
    """Compute β_1..β_{nodes-1} of the polynomials p_{k+1} = x p_k - β_k p_{k-1} that are orthogonal under the moments.

    There are at least 2 nodes moments, the odd ones 0, so the coefficients α of p_k are 0.
    """
    before, now = [Decimal(0)] * len(moments), moments
    beta, squares = Decimal(0), []
    for k in range(1, nodes):
        following = [Decimal(0)] * len(moments)
        for j in range(k, 2 * nodes - k):
            following[j] = now[j + 1] - beta * before[j]
        beta = following[k] / now[k - 1]
        squares.append(beta)
        before, now = now, following
    return squares
