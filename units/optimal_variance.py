"""Variance of an NMU's initial weights that preserves the variance of outputs, or of gradients.

H is the number of multiplied inputs. Inputs have mean 0, and inputs and outputs have variance v. Weights have mean 1/2
and variance V: at most 1/4 in [0, 1], and at most 1/12 if uniform (`units.variance.LARGEST_NMU_VARIANCE`).

Source: Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020, appendix on the NMU's initialisation, and its draft.
"""

from __future__ import annotations

import math

from units.moments import require
from units.variance import bisect

_HIGH = 16.0  # above 14, the largest result for any H >= 2


def nmu_forward_optimum(hidden: int, input_variance: float) -> float:
    """Compute the V that preserves variance through an NMU: ((1 + v)^-H v + (4 + 4v)^-H)^(1/H) - 1/4.

    Args:
        hidden: H >= 1.
        input_variance: v > 0.

    Returns:
        V; negative, so not a solution, for v above `largest_input_variance`.

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
    """Compute the V that preserves the variance of gradients through an NMU: ((1 + v)^(1 - H) / H_l)^(1/H) - 1/4.

    Args:
        hidden: H >= 1.
        input_variance: v >= 0.
        outputs: H_l >= 1, number of the layer's outputs.

    Returns:
        V; negative if no V is a solution.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> [round(nmu_backward_optimum(hidden, 1.0, 2), 4) for hidden in (1, 2, 10)]
        [0.25, 0.25, 0.25]
    """
    _require_hidden(hidden)
    require("input_variance", input_variance, 0 <= input_variance < math.inf, "0 <= input_variance < infinity")
    require("outputs", outputs, outputs >= 1, "outputs >= 1")
    return float((1 + input_variance) ** (1 / hidden - 1) / outputs ** (1 / hidden) - 0.25)


def misprinted_forward_optimum(hidden: int) -> float:
    """Compute the misprint of `nmu_forward_optimum` at v = 1 in the paper's appendix: ((4^H + 1)^H - 2) / 8.

    It has the exponent H instead of 1/H; with 1/H, both are equal.

    Args:
        hidden: 1 <= H <= 22; for more, the result exceeds every float.

    Raises:
        ValueError: unless 1 <= hidden <= 22.

    Example:
        >>> misprinted_forward_optimum(1), misprinted_forward_optimum(2)
        (0.375, 35.875)
    """
    require("hidden", hidden, 1 <= hidden <= 22, "1 <= hidden <= 22")
    return float(((4**hidden + 1) ** hidden - 2) / 8)


def largest_input_variance(hidden: int) -> float:
    """Compute the largest v that a V >= 0 preserves: the v > 0 with (1 + v)^H = 1 + 4^H v.

    The published limit, v = 4 for every H, is wrong for each H. With one input, every v has a V. With many inputs, the
    largest v tends to 3.

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
        """Return log(((1 + v)^H - 1) / v), which increases in v, without computing the power, which overflows."""
        power = hidden * math.log1p(v)
        return power + math.log(-math.expm1(-power)) - math.log(v)

    return bisect(log_slope, hidden * math.log(4), _HIGH)


def _require_hidden(hidden: int) -> None:
    require("hidden", hidden, hidden >= 1, "hidden >= 1")
