"""Checks that refuse what can't be an observation, in one wording."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

Values = Sequence[float] | npt.NDArray[np.floating] | npt.NDArray[np.integer]
Flags = Sequence[bool] | npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def normal_quantile(confidence: float) -> float:
    """Give z with P(abs(Z) <= z) = confidence, Z standard normal; z² is the quantile of χ²₁.

    Raises:
        ValueError: if the confidence is not in (0, 1).

    Example:
        >>> round(normal_quantile(0.95), 4)
        1.96
    """
    check_confidence(confidence)
    return float(special.ndtri((1 + confidence) / 2))


def check_confidence(confidence: float) -> None:
    """Refuse what is no confidence."""
    if not 0 < confidence < 1:
        raise ValueError(f"0 < confidence < 1 must hold, but got {confidence}")


def check_count(successes: int, n: int) -> None:
    """Refuse a count of successes that n trials can't have."""
    if not 0 <= successes <= n:
        raise ValueError(f"0 <= successes <= n must hold, but got (successes={successes}, n={n})")


def check_positive(*counts: int) -> None:
    """Refuse counts below zero."""
    if min(counts) < 0:
        raise ValueError(f"counts must be >= 0, but got {', '.join(map(str, counts))}")


def finite(values: Values) -> Floats:
    """Give values as floats, after refusing NaN and infinity."""
    x = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(x)):
        raise ValueError("values must be finite, but NaN or infinity is among them: drop or count them first")
    return x


def not_negative(values: Values, law: str) -> Floats:
    """Give values as floats, after refusing what a law of positive numbers can't have."""
    x = finite(values)
    if x.size and x.min() < 0:
        raise ValueError(f"values must be >= 0 for a {law} law, but the smallest is {x.min():g}")
    return x


def nearly_equal(x: Floats) -> bool:
    """Say whether values differ by less than a millionth: too little to estimate a spread from."""
    return bool(too_close(x.min(), x.max()))


def too_close(least: Floats, greatest: Floats) -> npt.NDArray[np.bool_]:
    """Say the same of many samples by their least and greatest values."""
    return np.asarray(greatest - least <= 1e-6 * greatest)
