"""The rows of iNALU's own experiment: seven distributions of two numbers, and what the four operations make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from study.stream.stream import Purpose, words

Floats = npt.NDArray[np.float64]

ROWS = 64_000
BATCH = 64
_STDS = 3
"""The interval of a truncated normal distribution reaches so many standard deviations to either side."""
_DISTRIBUTION_BITS = 32


def truncated_normal(uniform: Floats, low: float, high: float) -> Floats:
    """Turn uniforms into normals of mean (low + high) / 2 and sd (high - low) / 6, given that they are within.

    Args:
        uniform: numbers in (0, 1), any shape.
        low: the least value.
        high: the largest value.

    Example:
        >>> truncated_normal(np.array([1e-9, 0.5, 1 - 1e-9]), -2.0, 4.0).round(3).tolist()
        [-2.0, 1.0, 4.0]
    """
    below = ndtr(-_STDS)
    z = ndtri(below + uniform * (1 - 2 * below))
    # The inverse may round a number next to a bound to the other side of it.
    values: Floats = (low + high) / 2 + z * (high - low) / (2 * _STDS)
    return values.clip(low, high)


def interval(uniform: Floats, low: float, high: float) -> Floats:
    """Spread uniforms over [low, high].

    Example:
        >>> interval(np.array([0.25]), -10.0, -6.0).tolist()
        [-9.0]
    """
    return low + (high - low) * uniform


def exponential(uniform: Floats, scale: float) -> Floats:
    """Turn uniforms into exponentials of that mean: -scale log u.

    Example:
        >>> exponential(np.exp([-2.0]), 0.5).tolist()
        [1.0]
    """
    return -scale * np.log(uniform)


class Distribution(NamedTuple):
    """What both numbers of a row are drawn from, in training and where extrapolation is tested."""

    values: Callable[..., Floats]
    train: tuple[float, ...]
    test: tuple[float, ...]


DISTRIBUTIONS = {
    "N(-3, 3)": Distribution(truncated_normal, (-3, 3), (8, 10)),
    "N(-2, 4)": Distribution(truncated_normal, (-2, 4), (8, 10)),
    "N(-4, 2)": Distribution(truncated_normal, (-4, 2), (8, 10)),
    "U(-1, 1)": Distribution(interval, (-1, 1), (-10, -5)),
    "U(-5, 5)": Distribution(interval, (-5, 5), (-10, -5)),
    "E(0.2)": Distribution(exponential, (0.2,), (0.5,)),
    "E(0.8)": Distribution(exponential, (0.8,), (0.5,)),
}
"""By the interval of a normal or uniform distribution, or the scale, which is the mean, of an exponential one."""

OPERATIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
}


class Key(NamedTuple):
    """A trial but for its arm and operation: trials of one key see the same rows."""

    distribution: str
    seed: int

    def number(self) -> int:
        """Return the key of the trial's random stream: seeds of different distributions share no numbers.

        Example:
            >>> Key("N(-3, 3)", 5).number(), Key("N(-2, 4)", 5).number() - 2**32
            (5, 5)
        """
        return (list(DISTRIBUTIONS).index(self.distribution) << _DISTRIBUTION_BITS) + self.seed


class Rows(NamedTuple):
    """Rows of all trials by batches, the batch innermost, as the units' kernels read it.

    Args:
        x: float32 [batches, trials, 2, batch].
        y: float32 [batches, trials, 1, batch].
    """

    x: Tensor
    y: Tensor

    def batch(self, number: int) -> tuple[Tensor, Tensor]:
        """Return a batch, counted on through the epochs: x [trials, batch, 2] and y [trials, batch, 1]."""
        place = number % len(self.x)
        return self.x[place].mT, self.y[place].mT


def all_keys(seeds: int) -> list[Key]:
    """List all distributions with that many seeds each.

    Example:
        >>> len(all_keys(10))
        70
    """
    return [Key(name, seed) for name in DISTRIBUTIONS for seed in range(seeds)]


def numbers_of(keys: Sequence[Key], *, is_test: bool = False, rows: int = ROWS) -> Floats:
    """Draw the numbers of trials.

    Args:
        keys: of the trials.
        is_test: whether they are those where extrapolation is tested.
        rows: a multiple of the size of a batch, 64.

    Returns:
        Shape [trials, 2, rows].

    Example:
        >>> numbers_of(all_keys(2), rows=128).shape
        (14, 2, 128)
    """
    purpose = Purpose.TEST if is_test else Purpose.TRAIN
    numbers = np.empty((len(keys), 2, rows))
    for place, key in enumerate(keys):
        of = DISTRIBUTIONS[key.distribution]
        drawn = words(torch.tensor([key.number()]), 2, rows, 0, purpose)[0].numpy()
        numbers[place] = of.values((drawn + 0.5) / 2.0**32, *(of.test if is_test else of.train))
    return numbers


def rows_of(numbers: Floats, operation: str) -> Rows:
    """Compute targets in float64, round all to float32, and cut it into batches.

    Args:
        numbers: shape [trials, 2, rows].
        operation: add, sub, mul or div.

    Example:
        >>> rows = rows_of(numbers_of(all_keys(2), rows=128), "mul")
        >>> rows.x.shape, rows.y.shape
        (torch.Size([2, 14, 2, 64]), torch.Size([2, 14, 1, 64]))
    """
    targets = OPERATIONS[operation](numbers[:, 0], numbers[:, 1])[:, None]
    return Rows(*(_batches(values) for values in (numbers, targets)))


def side_by_side(parts: Sequence[Rows]) -> Rows:
    """Put the trials of several rows side by side."""
    return Rows(torch.cat([part.x for part in parts], 1), torch.cat([part.y for part in parts], 1))


def _batches(values: Floats) -> Tensor:
    trials, columns, rows = values.shape
    cut = values.astype(np.float32).reshape(trials, columns, rows // BATCH, BATCH)
    return torch.from_numpy(np.ascontiguousarray(cut.transpose(2, 0, 1, 3)))
