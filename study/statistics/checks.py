"""Checks that reject impossible observations, with the same messages everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

Values = Sequence[float] | npt.NDArray[np.floating] | npt.NDArray[np.integer]
Flags = Sequence[bool] | npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def normal_quantile(confidence: float) -> float:
    """Return z with P(abs(Z) <= z) = confidence, for a standard normal Z; z² is the quantile of χ²₁.

    Raises:
        ValueError: if the confidence is not in (0, 1).

    Example:
        >>> round(normal_quantile(0.95), 4)
        1.96
    """
    check_confidence(confidence)
    return float(special.ndtri((1 + confidence) / 2))


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"0 < confidence < 1 must hold, but got {confidence}")


def check_count(successes: int, n: int) -> None:
    """Raise ValueError unless 0 <= successes <= n."""
    if not 0 <= successes <= n:
        raise ValueError(f"0 <= successes <= n must hold, but got (successes={successes}, n={n})")


def finite(values: Values) -> Floats:
    """Return the values as an array of floats; raise ValueError if one is NaN or infinite."""
    x = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(x)):
        raise ValueError("values must be finite, but NaN or infinity is among them: drop or count them first")
    return x


def not_negative(values: Values, distribution: str) -> Floats:
    """Return the values as an array of floats; raise ValueError if one isn't finite, or < 0.

    The message of a negative value has the distribution's name.
    """
    x = finite(values)
    if x.size and x.min() < 0:
        raise ValueError(f"values must be >= 0 for a {distribution} distribution, but the smallest is {x.min():g}")
    return x


def too_close(least: Floats, greatest: Floats) -> npt.NDArray[np.bool_]:
    """Return a mask of the samples whose least and greatest values, >= 0, agree to six digits."""
    return np.asarray(greatest - least <= 1e-6 * greatest)
