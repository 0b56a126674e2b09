"""The variance of an NMU's initial weights that keeps the variance of its outputs, or of its gradients.

H is the number of inputs that are multiplied, v their variance and that of the output; their mean is 0. Weights have
the mean 1/2 and the variance V, of which weights in [0, 1] have at most 1/4, and uniform ones at most 1/12
(`units.variance.LARGEST_NMU_VARIANCE`).

Source: Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020, appendix on the NMU's initialisation, and its draft.
"""

from __future__ import annotations

import math

from units.moments import require
from units.variance import bisect

_HIGH = 16.0  # above 14, the largest of all H >= 2


def nmu_forward_optimum(hidden: int, input_variance: float) -> float:
    """Compute the V that keeps the variance of what passes an NMU: ((1 + v)^-H v + (4 + 4v)^-H)^(1/H) - 1/4.

    Args:
        hidden: H >= 1.
        input_variance: v > 0.

    Returns:
        V; negative, and so no solution, for v above `largest_input_variance`.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> [round(nmu_forward_optimum(hidden, 1.0), 4) for hidden in (1, 2, 10)]
        [0.375, 0.2654, 0.25]
    """
    _require_hidden(hidden)
    require("input_variance", input_variance, 0 < input_variance < math.inf, "0 < input_variance < infinity")
    return float((input_variance + 4.0**-hidden) ** (1 / hidden) / (1 + input_variance) - 0.25)


def nmu_backward_optimum(hidden: int, input_variance: float, outputs: int = 1) -> float:
    """Compute the V that keeps the variance of gradients through an NMU: ((1 + v)^(1 - H) / H_l)^(1/H) - 1/4.

    Args:
        hidden: H >= 1.
        input_variance: v >= 0.
        outputs: H_l >= 1.

    Returns:
        V; negative where there is no solution.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> [round(nmu_backward_optimum(hidden, 1.0, 2), 4) for hidden in (1, 2, 10)]
        [0.25, 0.25, 0.25]
    """
    _require_hidden(hidden)
    require("input_variance", input_variance, 0 <= input_variance < math.inf, "0 <= input_variance < infinity")
    require("outputs", outputs, outputs >= 1, "outputs >= 1")
    return float(((1 + input_variance) ** (1 - hidden) / outputs) ** (1 / hidden) - 0.25)


def misprinted_forward_optimum(hidden: int) -> float:
    """Compute what the paper's appendix prints for `nmu_forward_optimum` at v = 1: ((4^H + 1)^H - 2) / 8.

    The exponent H stands where 1/H belongs; with it, both are equal.

    Args:
        hidden: 1 <= H <= 22; for more, the number exceeds every float.

    Raises:
        ValueError: unless 1 <= hidden <= 22.

    Example:
        >>> misprinted_forward_optimum(1), misprinted_forward_optimum(2)
        (0.375, 35.875)
    """
    require("hidden", hidden, 1 <= hidden <= 22, "1 <= hidden <= 22")
    return float(((4**hidden + 1) ** hidden - 2) / 8)


def largest_input_variance(hidden: int) -> float:
    """Compute the largest v for which a V >= 0 keeps the variance: the v > 0 with (1 + v)^H = 1 + 4^H v.

    That there is no solution beyond v = 4 is said for every H, and is true of none: for one input there always is a V,
    and for many inputs the largest v tends to 3.

    Args:
        hidden: H >= 1.

    Returns:
        v; infinity for hidden = 1.

    Raises:
        ValueError: unless hidden >= 1.

    Example:
        >>> [round(largest_input_variance(hidden), 2) for hidden in (1, 2, 3, 10)]
        [inf, 14.0, 6.45, 3.54]
    """
    _require_hidden(hidden)
    if hidden == 1:
        return math.inf

    def log_slope(v: float) -> float:
        """Return log(((1 + v)^H - 1) / v), which increases; the power itself overflows."""
        power = hidden * math.log1p(v)
        return power + math.log(-math.expm1(-power)) - math.log(v)

    return bisect(log_slope, hidden * math.log(4), _HIGH)


def _require_hidden(hidden: int) -> None:
    require("hidden", hidden, hidden >= 1, "hidden >= 1")
