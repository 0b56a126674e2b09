"""The success threshold of the single-module task: the test MSE of one layer whose weights are off by ε.

    threshold = E[(f(W^ε) - f(W*))²]

    add, sub   ε² E[(sum_k |x_k|)²]                          all n weights are off, each in the worst direction
    mul        E[x²]² E[((1 - ε)² P - 1)²]                   P = prod (1 - ε |x_k|) over the n - 2 other inputs
    div        E[x²] E[1/x²] E[((1 - ε) / (1 + ε) P - 1)²]

Factors near 1 are stored as their difference from 1, since the threshold is its square, about 1e-10.

Source: Mistry, Farrahi & Hare, "A Primer for Neural Arithmetic Logic Modules", JMLR 2022, who estimate these means from
1e6 samples of two inputs, where P is 1.
"""

from __future__ import annotations

import math

from tasks.arithmetic.threshold import Range


def module_threshold(operation: str, inputs: int, range_: Range, epsilon: float) -> float:
    """Compute the test MSE that a one-layer trial must undercut.

    Args:
        operation: ``add``, ``sub``, ``mul`` or ``div``.
        inputs: numbers in a row, n >= 2.
        range_: the range of the numbers.
        epsilon: 0 < ε < 1/2.

    Returns:
        The MSE; infinite or NaN if a product or a sum overflows in float64.

    Raises:
        ValueError: if epsilon is out of range, the mean doesn't exist (``div`` with a divisor that can be 0), or,
            except for sums, ε E|x| >= 1.
        ArithmeticError: if a power or an exponential overflows, or a divisor underflows, in float64.

    Example:
        >>> [f"{module_threshold(name, 2, ((2.0, 6.0),), 1e-5):.4g}" for name in ("add", "mul", "div")]
        ['6.667e-09', '1.202e-07', '5.778e-10']
    """
    if not 0 < epsilon < 0.5:
        raise ValueError(f"0 < epsilon < 0.5 must hold, but got {epsilon}")
    size, square = _mean_size(range_), _mean_square(range_)
    if operation in ("add", "sub"):
        return epsilon**2 * (inputs * (square - size**2) + (inputs * size) ** 2)
    if epsilon * size >= 1:
        raise ValueError(
            f"operation {operation!r} has no success threshold over {range_}: {epsilon:g} times the numbers' mean size "
            "must be below 1; take a smaller extrapolation_range, or give success.threshold"
        )
    others = inputs - 2
    off = math.log1p(-epsilon) * 2 if operation == "mul" else math.log1p(-epsilon) - math.log1p(epsilon)
    mean = others * math.log1p(-epsilon * size)
    mean_square = others * math.log1p(epsilon * (epsilon * square - 2 * size))
    # E[(cP - 1)²] = c² E[P²] - 2 c E[P] + 1; each term is near 1.
    distance = math.expm1(2 * off + mean_square) - 2 * math.expm1(off + mean)
    return (square if operation == "mul" else _mean_inverse_square(range_)) * square * distance


def _mean_size(range_: Range) -> float:
    """Compute E|x| of a number x, uniform on the range's intervals."""
    return sum((_signed_square(high) - _signed_square(low)) / (2 * (high - low)) for low, high in range_) / len(range_)


def _signed_square(x: float) -> float:
    return x * abs(x)


def _mean_square(range_: Range) -> float:
    """Compute E[x²] of a number x, uniform on the range's intervals."""
    return sum((high * high + high * low + low * low) / 3 for low, high in range_) / len(range_)


def _mean_inverse_square(range_: Range) -> float:
    """Compute E[1 / x²] of a number x, uniform on the range's intervals; raise ValueError if x can be 0."""
    if any(low <= 0 <= high for low, high in range_):
        raise ValueError(
            f"operation 'div' has no success threshold where the divisor can be 0, as in {range_}; take an "
            "extrapolation_range without 0, or give success.threshold"
        )
    return sum(1 / (low * high) for low, high in range_) / len(range_)
