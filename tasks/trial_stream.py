"""The random numbers that a task and a model draw, written as for one trial.

The numbers of all trials of a pack are drawn in one call, and inside `torch.func.vmap` each trial sees its own row. A
number is a pure function of its trial's seed, the iteration, the purpose and which call of the stream it was:

    counter = (row, feature div 4, iteration, purpose + 2**8 call)

with rows along the first axis of what is drawn, features along the others, and calls counted from 0 in each iteration.
So a larger batch only adds rows, and the first call of an iteration sees the bits of `tasks.stream`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tasks.stream import EVALUATION_SEED, Purpose
from tasks.stream_simd import fill_inputs

_CALL_BITS = 24
_STEP = 2.0**-24


class Stream:
    """Draw random numbers for one trial, or for the trials of a pack side by side.

    Args:
        seeds: of the pack's trials.
        iteration: 0 <= iteration < 2**32.
        purpose: the use of the numbers.
        trial: inside `torch.func.vmap`, the trial's place in the pack, an int64 scalar; None for one trial alone.

    Example:
        >>> stream = Stream([7], 0, Purpose.TRAIN)
        >>> stream.uniform(3), stream.integers(10, 2, 2).shape, sorted(stream.permutation(3).tolist())
        (tensor([0.9546, 0.4070, 0.0061]), torch.Size([2, 2]), [0, 1, 2])
        >>> places = torch.arange(2)
        >>> torch.func.vmap(lambda trial: Stream([7, 8], 0, Purpose.TRAIN, trial=trial).uniform(3))(places)[0]
        tensor([0.9546, 0.4070, 0.0061])
    """

    def __init__(
        self,
        seeds: Sequence[int] | npt.NDArray[np.uint64],
        iteration: int,
        purpose: Purpose,
        *,
        trial: Tensor | None = None,
    ) -> None:
        self._seeds = np.asarray(seeds, np.uint64)
        self._iteration = iteration
        self._purpose = int(purpose)
        self._trial = trial
        self._calls = 0

    def uniform(self, *shape: int) -> Tensor:
        """Draw float32 numbers of a shape, uniform on [0, 1): multiples of 2**-24."""
        return self._of_trial(self._words(shape, 1), shape)

    def normal(self, *shape: int) -> Tensor:
        """Draw float32 numbers of a shape from the standard normal distribution.

            z = sqrt(-2 ln(1 - u)) cos(2 pi v)

        Source: Box & Muller, "A note on the generation of random normal deviates", 1958.
        """
        pairs = self._words(shape, 2)
        radius = torch.log(1 - pairs[:, 0::2]).mul_(-2).sqrt_()
        return self._of_trial(torch.cos(pairs[:, 1::2] * (2 * math.pi)).mul_(radius), shape)

    def integers(self, high: int, *shape: int) -> Tensor:
        """Draw int64 numbers of a shape, each of 0..high - 1 equally likely to within high / 2**48.

        Raises:
            ValueError: if not 1 <= high <= 2**32.
        """
        if not 1 <= high <= 2**32:
            raise ValueError(f"1 <= high <= 2**32 must hold, but got {high}")
        return self._of_trial((self._fine(shape) * high).long().clamp_(max=high - 1), shape)

    def permutation(self, n: int) -> Tensor:
        """Draw an order of 0..n - 1, int64 [n]."""
        return self._of_trial(torch.argsort(self._fine((n,)), dim=-1, stable=True), (n,))

    def _fine(self, shape: Sequence[int]) -> Tensor:
        """Draw float64 numbers that are multiples of 2**-48, [trials, features, rows]."""
        pairs = self._words(shape, 2).double()
        return pairs[:, 0::2] + pairs[:, 1::2] * _STEP

    def _words(self, shape: Sequence[int], numbers: int) -> Tensor:
        """Draw that many numbers for each place of a shape, float32 [trials, numbers * features, rows]."""
        if any(size < 0 for size in shape):
            raise ValueError(f"every size of a shape must be 0 or more, but got {tuple(shape)}")
        if self._calls >= 2**_CALL_BITS:
            raise ValueError(f"a stream can be called {2**_CALL_BITS:,} times an iteration; draw larger arrays")
        trials = len(self._seeds)
        rows, features = shape[0] if shape else 1, math.prod(shape[1:])
        out = np.empty((trials, numbers * features, rows), np.float32)
        low, width = np.zeros((trials, 2), np.float32), np.ones(trials, np.float32)
        fill_inputs(out, self._seeds, low, width, self._iteration, self._purpose + (self._calls << 8))
        self._calls += 1
        return torch.from_numpy(out)

    def _of_trial(self, numbers: Tensor, shape: Sequence[int]) -> Tensor:
        """Return the trial's row of numbers, [trials, features, rows], in the shape that was asked for."""
        laid_out = numbers.mT.reshape(len(self._seeds), *shape)
        if self._trial is None:
            return laid_out[0]
        return laid_out.index_select(0, self._trial.reshape(1)).squeeze(0)


def evaluation_stream(purpose: Purpose) -> Stream:
    """Return the stream that validation and test sets are drawn from, the same for all trials."""
    return Stream([EVALUATION_SEED], 0, purpose)


_STREAM: ContextVar[Stream | None] = ContextVar("stream", default=None)


@contextmanager
def noise_from(stream: Stream) -> Iterator[None]:
    """Let models draw noise from a stream."""
    token = _STREAM.set(stream)
    try:
        yield
    finally:
        _STREAM.reset(token)


def noise() -> Stream | None:
    """Return the stream that a model draws its noise from; None outside of a study's training."""
    return _STREAM.get()


class Dropout(nn.Module):
    """Set each number to 0 with probability p in training, and scale the others by 1 / (1 - p).

    It draws from the trial's own stream, so that models with it train in packs; `torch.nn.Dropout` draws from a global
    generator, and so they don't. Outside of a study it is `torch.nn.functional.dropout`.

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014.

    Args:
        p: 0 <= p < 1.

    Raises:
        ValueError: if p is not.

    Example:
        >>> with noise_from(Stream([7], 0, Purpose.NOISE)):
        ...     Dropout(0.5)(torch.ones(6))
        tensor([2., 0., 0., 0., 0., 2.])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"0 <= p < 1 must hold, but got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop numbers of any shape."""
        if not self.training or self.p == 0:
            return x
        stream = noise()
        if stream is None:
            return nn.functional.dropout(x, self.p)
        return x * ((stream.uniform(*x.shape) >= self.p) / (1 - self.p))
