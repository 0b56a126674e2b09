"""Loss of one observation over two weights, for NAC• and NMU after a sum, and its zeros.

The first layer adds: s_j = w1 sum_i P_ji x_i, with P of zeros and ones. The second layer has one output, and all its
weights are w2. The loss is (z - t)², without a regulariser.

Source: Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020, figures 1 and 2, and its draft. The captions say RMS;
    the published program plots the square.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

EPSILONS = (1e-7, 0.1, 1.0)
"""Values of ε of NAC• that the figures compare."""


@dataclass(frozen=True)
class Observation:
    """One input and its target, with the sums that the first layer may learn.

    Args:
        inputs: x.
        subsets: P, two rows of zeros and ones, each as long as x: the inputs that each hidden unit adds.
        target: t, the product of the sums at w1 = 1.
    """

    inputs: tuple[float, ...]
    subsets: tuple[tuple[int, ...], tuple[int, ...]]
    target: float

    @property
    def sums(self) -> tuple[float, float]:
        """The two sums at w1 = 1.

        Raises:
            ValueError: if a row of P isn't as long as x.
        """
        first, second = (sum(p * x for p, x in zip(row, self.inputs, strict=True)) for row in self.subsets)
        return first, second


DRAFT = Observation((1.0, 1.5, 2.0, 2.0), ((1, 1, 0, 0), (1, 1, 1, 0)), 11.25)
"""The observation of the draft's figure: (x1 + x2) (x1 + x2 + x3)."""
FINAL = Observation((1.0, 1.2, 1.8, 2.0), ((1, 1, 0, 0), (1, 1, 1, 1)), 13.2)
"""The observation of the paper's figure: (x1 + x2) (x1 + x2 + x3 + x4)."""


def nac_mul_loss(w1: npt.ArrayLike, w2: npt.ArrayLike, observation: Observation, epsilon: float = 1e-7) -> Floats:
    """Compute the loss with NAC• as the second layer: (exp(w2 sum_j log(|s_j| + ε)) - t)².

    Args:
        w1: value of all nonzero weights of the first layer, any shape.
        w2: value of both weights of the second layer; its shape must broadcast with w1's.
        observation: x, t and the subsets.
        epsilon: ε > 0.

    Returns:
        The loss, of the broadcast shape.

    Raises:
        ValueError: unless epsilon > 0, the shapes broadcast, and the rows of P are as long as x.

    Example:
        >>> nac_mul_loss([0.5, 1.0], 1.0, DRAFT, 1.0).round(4).tolist()
        [15.5039, 64.0]
    """
    _require_epsilon(epsilon)
    logs = sum(np.log(np.abs(total * np.asarray(w1, dtype=np.float64)) + epsilon) for total in observation.sums)
    return np.asarray((np.exp(np.asarray(w2) * logs) - observation.target) ** 2)


def nmu_loss(w1: npt.ArrayLike, w2: npt.ArrayLike, observation: Observation) -> Floats:
    """Compute the loss with an NMU as the second layer: (prod_j (w2 s_j + 1 - w2) - t)².

    Args:
        w1: value of all nonzero weights of the first layer, any shape.
        w2: value of both weights of the second layer, in [0, 1]; its shape must broadcast with w1's.
        observation: x, t and the subsets.

    Returns:
        The loss, of the broadcast shape.

    Raises:
        ValueError: unless 0 <= w2 <= 1, the shapes broadcast, and the rows of P are as long as x.

    Example:
        >>> nmu_loss([1.0, -1.0, 0.5], 1.0, DRAFT).round(4).tolist()
        [0.0, 0.0, 71.1914]
    """
    second = np.asarray(w2, dtype=np.float64)
    if not ((second >= 0) & (second <= 1)).all():
        raise ValueError(f"w2={w2!r} was given, but 0 <= w2 <= 1 must hold for every weight of an NMU")
    first, last = (second * total * np.asarray(w1, dtype=np.float64) + 1 - second for total in observation.sums)
    return np.asarray((first * last - observation.target) ** 2)


def nac_mul_exact(w2: npt.ArrayLike, observation: Observation, epsilon: float = 1e-7) -> Floats:
    """Solve (|w1| S_1 + ε) (|w1| S_2 + ε) = t^(1 / w2), NAC•'s loss of zero, for |w1|.

    S_1 and S_2 are the sums at w1 = 1; both must be positive, which isn't checked. The loss is even in w1, so -w1 is a
    solution, too. Only solutions with w1 > 0 and w2 > 0 are desired. With w2 < 0, NAC• reaches the target by dividing
    by small sums instead of multiplying.

    Args:
        w2: value of both weights of the second layer, not 0, any shape.
        observation: x, t and the subsets.
        epsilon: ε > 0.

    Returns:
        |w1|, of w2's shape; NaN without a solution, infinity if t^(1 / w2) overflows, and wrongly 0 or NaN if only
            4 S_1 S_2 t^(1 / w2) does.

    Raises:
        ValueError: unless epsilon > 0, w2 != 0, and the rows of P are as long as x.

    Example:
        >>> nac_mul_exact([1.0, -1.0], DRAFT, 0.1).round(4).tolist(), nac_mul_exact(-1.0, DRAFT, 1.0).tolist()
        ([0.9689, 0.0582], nan)
    """
    _require_epsilon(epsilon)
    second = np.asarray(w2, dtype=np.float64)
    if not (second != 0).all():
        raise ValueError(f"w2={w2!r} was given, but w2 != 0 must hold: with w2 = 0 the loss doesn't depend on w1")
    first, last = observation.sums
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.exp(np.log(observation.target) / second)
        slope = epsilon * (first + last)
        root = np.sqrt((epsilon * (first - last)) ** 2 + 4 * first * last * product)
        w1 = 2 * (product - epsilon**2) / (slope + root)  # without the cancellation of (root - slope) / (2 S_1 S_2)
        return np.asarray(np.where(np.isinf(product), np.inf, np.where(product >= epsilon**2, w1, np.nan)))


def nmu_exact(w2: npt.ArrayLike, observation: Observation) -> Floats:
    """Solve (w2 w1 S_1 + 1 - w2) (w2 w1 S_2 + 1 - w2) = t, an NMU's loss of zero, for both w1.

    S_1 and S_2 are the sums at w1 = 1; both must be positive, which isn't checked. At w2 = 1 the solutions are w1 = 1
    and the undesired w1 = -1, since t = S_1 S_2. For w2 < 1 and sums above 1, both are outside of [-1, 1].

    Args:
        w2: value of both weights of the second layer, 0 < w2 <= 1, any shape.
        observation: x, t and the subsets.

    Returns:
        The lower and the upper w1, along a new last axis.

    Raises:
        ValueError: unless 0 < w2 <= 1, and the rows of P are as long as x.

    Example:
        >>> nmu_exact([1.0, 0.5], DRAFT).round(4).tolist()
        [[-1.0, 1.0], [-2.3131, 1.6909]]
    """
    second = np.asarray(w2, dtype=np.float64)
    if not ((second > 0) & (second <= 1)).all():
        raise ValueError(f"w2={w2!r} was given, but 0 < w2 <= 1 must hold")
    first, last = observation.sums
    complement = 1 - second
    root = np.sqrt((complement * (first - last)) ** 2 + 4 * first * last * observation.target)
    ends = [(sign * root - complement * (first + last)) / (2 * first * last * second) for sign in (-1, 1)]
    return np.stack(ends, axis=-1)


def _require_epsilon(epsilon: float) -> None:
    if not epsilon > 0:
        raise ValueError(f"epsilon={epsilon} was given, but epsilon > 0 must hold: a sum of 0 has no logarithm")
