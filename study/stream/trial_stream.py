"""The random numbers that a task and a model draw, written as for one trial.

The numbers of all trials of a pack are drawn in one call; inside `torch.func.vmap` each trial sees its own row. A
number is a pure function of its trial's seed, the iteration, the purpose and the call's number:

    counter = (row, feature div 4, iteration, purpose + 2**8 call)

with rows along the first axis of the drawn array, features along the others, and calls counted from 0 in each
iteration. So a larger batch only adds rows, and the first call of an iteration has the bits of `study.stream.stream`.
Numbers are drawn on the CPU and then moved to the device in use (`study.stream.device`), so that they have the same
bits on every device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from study.stream.device import current_device
from study.stream.sobol import sobol_points
from study.stream.stream import EVALUATION_SEED, Purpose
from study.stream.stream_simd import fill_inputs

_CALL_BITS = 24
_STEP = 2.0**-24


@dataclass(frozen=True)
class Draw:
    """One call of a stream.

    Args:
        kind: the name of the stream's method.
        shape: shape of the numbers of one trial.
        high: for integers and places, one more than the largest.
    """

    kind: Literal["uniform", "normal", "integers", "permutation", "batch", "sobol"]
    shape: tuple[int, ...]
    high: int = 0


BY_ROW = ("uniform", "normal", "integers", "permutation")
"""The kinds of draws that depend on the iteration only through the counter of each trial's numbers."""


class Stream:
    """A stream of random numbers for one trial, or for the trials of a pack side by side.

    Its methods draw on the CPU, and return tensors on the device in use. They raise ValueError if a size is negative,
    or after 2**24 calls in an iteration.

    Args:
        seeds: the seeds of the pack's trials.
        iteration: 0 <= iteration < 2**32; or one per trial, if all draws are of kinds in `BY_ROW`.
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
        iteration: int | npt.NDArray[np.uint32],
        purpose: Purpose,
        *,
        trial: Tensor | None = None,
    ) -> None:
        self._seeds = np.asarray(seeds, np.uint64)
        self._iteration: Any = iteration
        self._purpose = int(purpose)
        self._trial = trial
        self._calls = 0

    def uniform(self, *shape: int) -> Tensor:
        """Draw float32 numbers of a shape, uniform on [0, 1): multiples of 2**-24.

        Raises:
            ValueError: if a size is negative, or after 2**24 calls in an iteration.
        """
        return self.draw(Draw("uniform", shape))

    def normal(self, *shape: int) -> Tensor:
        """Draw float32 numbers of a shape from the standard normal distribution.

            z = sqrt(-2 ln(1 - u)) cos(2 pi v)

        Source: Box & Muller, "A note on the generation of random normal deviates", 1958.

        Raises:
            ValueError: if a size is negative, or after 2**24 calls in an iteration.
        """
        return self.draw(Draw("normal", shape))

    def integers(self, high: int, *shape: int) -> Tensor:
        """Draw int64 numbers of a shape, each of 0..high - 1 equally likely to within high / 2**48.

        Raises:
            ValueError: unless 1 <= high <= 2**32, if a size is negative, or after 2**24 calls in an iteration.
        """
        if not 1 <= high <= 2**32:
            raise ValueError(f"1 <= high <= 2**32 must hold, but got {high}")
        return self.draw(Draw("integers", shape, high))

    def permutation(self, n: int) -> Tensor:
        """Draw an order of 0..n - 1, int64 [n].

        Raises:
            ValueError: if n is negative, or after 2**24 calls in an iteration.
        """
        return self.draw(Draw("permutation", (n,)))

    def batch(self, n: int, size: int) -> Tensor:
        """Draw the places of this iteration's batch in a data set: each place at most once an epoch, int64 [size].

        An epoch has n // size iterations and its own order; the n mod size last places in that order are left out.

        Raises:
            ValueError: unless 1 <= size <= n, or after 2**24 calls in an iteration.
        """
        if not 1 <= size <= n:
            raise ValueError(f"a batch must have 1 ... {n} of the {n} places, but size is {size}")
        return self.draw(Draw("batch", (size,), n))

    def sobol(self, *shape: int) -> Tensor:
        """Draw float32 numbers of a shape that fill [0, 1) evenly: each row is a point of the Sobol sequence, shifted.

            number = (x_n xor s) * 2**-24,    n = iteration * rows + row

        The trial's seed draws the shift s of each coordinate, the same in all iterations: all trials use the same
        sequence with different shifts.

        Source: Sobol, "On the distribution of points in a cube and the approximate evaluation of integrals", 1967;
        L'Ecuyer & Lemieux, "Recent advances in randomized quasi-Monte Carlo methods", 2002, for the shift.

        Raises:
            ValueError: if a size is negative, the sequence, of 2**30 points, ends earlier, a row doesn't have 1 to
                21,201 numbers, or after 2**24 calls in an iteration.
        """
        return self.draw(Draw("sobol", shape))

    def draw(self, draw: Draw) -> Tensor:
        """Draw the numbers of the next call, of its shape, for the stream's `trial`, or else for the first seed.

        `draw.high` and the size of a batch aren't checked: they must be valid for the method that `draw.kind` names.

        Raises:
            ValueError: as that method, for its other reasons.
        """
        numbers = self.of_all(draw)
        if self._trial is None:
            return numbers[0]
        return numbers.index_select(0, self._trial.reshape(1)).squeeze(0)

    def of_all(self, draw: Draw) -> Tensor:
        """Draw the numbers of the next call for all trials of the pack, ``[trials, *shape]``.

        `draw.high` and the size of a batch aren't checked: they must be valid for the method that `draw.kind` names.

        Raises:
            ValueError: as that method, for its other reasons.
        """
        numbers, device = self._on_cpu(draw), current_device()
        return numbers if device is None else numbers.to(device)

    def _on_cpu(self, draw: Draw) -> Tensor:
        numbers = getattr(self, f"_{draw.kind}")(draw)
        return numbers.mT.reshape(len(self._seeds), *draw.shape)  # type: ignore[no-any-return]

    # --- numbers by kind, [trials, features, rows] ---------------------------------------------------------

    def _uniform(self, draw: Draw) -> Tensor:
        return self._words(draw.shape, 1)

    def _normal(self, draw: Draw) -> Tensor:
        pairs = self._words(draw.shape, 2)
        radius = torch.log(1 - pairs[:, 0::2]).mul_(-2).sqrt_()
        return torch.cos(pairs[:, 1::2] * (2 * math.pi)).mul_(radius)

    def _integers(self, draw: Draw) -> Tensor:
        return (self._fine(draw.shape) * draw.high).long().clamp_(max=draw.high - 1)

    def _permutation(self, draw: Draw) -> Tensor:
        return torch.argsort(self._fine(draw.shape), dim=-1, stable=True)

    def _batch(self, draw: Draw) -> Tensor:
        (size,) = draw.shape
        epoch, place = divmod(self._iteration, draw.high // size)
        order = _order(self._seeds.tobytes(), epoch, self._purpose, self._calls, draw.high)
        self._calls += 1
        return order[:, :, place * size : (place + 1) * size]

    def _sobol(self, draw: Draw) -> Tensor:
        rows, features = draw.shape[0] if draw.shape else 1, math.prod(draw.shape[1:])
        shift = _shift(self._seeds.tobytes(), self._purpose, self._calls, features)
        self._calls += 1
        return (sobol_points(self._iteration * rows, rows, features).T ^ shift) * _STEP

    def _fine(self, shape: Sequence[int]) -> Tensor:
        """Draw float64 numbers on [0, 1) that are multiples of 2**-48, [trials, features, rows]."""
        pairs = self._words(shape, 2).double()
        return pairs[:, 0::2] + pairs[:, 1::2] * _STEP

    def _words(self, shape: Sequence[int], numbers: int) -> Tensor:
        """Draw `numbers` uniform numbers on [0, 1) a place of a shape, float32 [trials, numbers * features, rows].

        Raises ValueError if a size is negative, or after 2**24 calls.
        """
        if any(size < 0 for size in shape):
            raise ValueError(f"every size of a shape must be 0 or more, but got {tuple(shape)}")
        if self._calls >= 2**_CALL_BITS:
            raise ValueError(f"a stream can be called {2**_CALL_BITS:,} times an iteration; draw larger arrays")
        trials = len(self._seeds)
        rows, features = shape[0] if shape else 1, math.prod(shape[1:])
        out = torch.empty(trials, numbers * features, rows, device="cpu")
        low, width = np.zeros((trials, 2), np.float32), np.ones(trials, np.float32)
        fill_inputs(out.numpy(), self._seeds, low, width, self._iteration, self._purpose + (self._calls << 8))
        self._calls += 1
        return out


@lru_cache(maxsize=4)
def _order(seeds: bytes, epoch: int, purpose: int, calls: int, n: int) -> Tensor:
    """Draw each trial's order of an epoch, int64 [trials, 1, n]; the epoch's number takes the iteration's place.

    `seeds` are the bytes of uint64 [trials], and `calls` is the number of earlier calls.
    """
    stream = Stream(np.frombuffer(seeds, np.uint64), epoch, Purpose(purpose))
    stream._calls = calls
    return stream._on_cpu(Draw("permutation", (n,)))[:, None]


@lru_cache(maxsize=4)
def _shift(seeds: bytes, purpose: int, calls: int, features: int) -> Tensor:
    """Draw the shift of each trial's Sobol points, the same in all iterations, int32 [trials, features, 1].

    Arguments are as for `_order`.
    """
    stream = Stream(np.frombuffer(seeds, np.uint64), 0, Purpose(purpose))
    stream._calls = calls
    return (stream._words((1, features), 1) / _STEP).to(torch.int32)


def evaluation_stream(purpose: Purpose) -> Stream:
    """Return the stream of a purpose's evaluation set, the same for all trials."""
    return Stream([EVALUATION_SEED], 0, purpose)


_STREAM: ContextVar[Stream | None] = ContextVar("stream", default=None)


@contextmanager
def noise_from(stream: Stream) -> Iterator[None]:
    """Let models draw noise from a stream within the context."""
    token = _STREAM.set(stream)
    try:
        yield
    finally:
        _STREAM.reset(token)


def noise() -> Stream | None:
    """Return the stream of a model's noise; None outside of `noise_from`."""
    return _STREAM.get()


class Dropout(nn.Module):
    """A layer that sets each number to 0 with probability p in training, and scales the others by 1 / (1 - p).

    It draws from the trial's own stream, so that models with it train in packs. `torch.nn.Dropout` draws from a global
    generator, so models with it don't. Outside of a study it is `torch.nn.functional.dropout`.

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014.

    Args:
        p: 0 <= p < 1.

    Raises:
        ValueError: if p is out of range.

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
        """Drop numbers of a tensor of any shape in training, and scale the others; return it unchanged otherwise."""
        if not self.training or self.p == 0:
            return x
        stream = noise()
        if stream is None:
            return nn.functional.dropout(x, self.p)
        return x * ((stream.uniform(*x.shape) >= self.p) / (1 - self.p))
