"""The counter-based random stream: a trial's numbers are a pure function of its seed and the iteration.

Philox4x32-10 turns a 128-bit counter and a 64-bit key into four 32-bit words. Here

    key     = (seed mod 2**32, seed div 2**32)
    counter = (row, feature div 4, iteration, purpose)
    number  = word[feature mod 4]

So any number of any trial can be computed alone, in any order, on any device, with the same bits; a larger batch only
adds rows. A word w becomes an input by float32 operations with one rounding each, never by a fused multiply-add:

    x = low_k + width * ((w div 2**8) * 2**-24),    k = w mod 2 picks the interval when there are two

Source: Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

EVALUATION_SEED = 0x5EED_0F_E7A1
"""Key of the validation and test rows, which all trials share."""


class Purpose(IntEnum):
    """The use of a number: the last word of the counter."""

    TRAIN = 0
    VALIDATION = 1
    TEST = 2
    INITIAL = 3
    OFFSET = 4
    NOISE = 5
    EVALUATION_NOISE = 6
    SETUP = 7
    RESTART = 8


MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
_MASK = 0xFFFFFFFF
_STEP = 2.0**-24


def philox(counter: tuple[Tensor, ...], key: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Encrypt counters with Philox4x32-10, on any device: the reference for the faster `study.stream.stream_simd`.

    Args:
        counter: four int64 tensors that broadcast together, each 0 <= c < 2**32.
        key: two int64 tensors that broadcast with them, each 0 <= k < 2**32.

    Returns:
        Four int64 tensors of words, each 0 <= w < 2**32.

    Example:
        >>> zero = torch.tensor(0)
        >>> [hex(int(word)) for word in philox((zero,) * 4, (zero,) * 2)]
        ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        # The 64-bit products overflow as signed numbers; their bits, and so both halves, are right.
        p0, p1 = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1 = ((p1 >> 32) & _MASK) ^ c1 ^ k0, p1 & _MASK
        c2, c3 = ((p0 >> 32) & _MASK) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + WEYL[0]) & _MASK, (k1 + WEYL[1]) & _MASK
    return c0, c1, c2, c3


def words(seeds: Tensor, features: int, rows: int, iteration: int, purpose: Purpose) -> Tensor:
    """Draw the raw words of one iteration, on the device of `seeds`.

    Args:
        seeds: int64 [trials].
        features: numbers per row, n.
        rows: number of rows.
        iteration: 0 <= iteration < 2**32.
        purpose: the use of the numbers.

    Returns:
        int64 [trials, features, rows], each 0 <= w < 2**32.
    """
    device = seeds.device
    blocks = -(-features // 4)
    key = (seeds & _MASK, (seeds >> 32) & _MASK)
    counter = (
        torch.arange(rows, device=device),
        torch.arange(blocks, device=device)[:, None],
        torch.tensor(iteration, device=device),
        torch.tensor(int(purpose), device=device),
    )
    drawn = torch.stack(philox(counter, (key[0][:, None, None], key[1][:, None, None])), dim=2)
    return drawn.reshape(len(seeds), 4 * blocks, rows)[:, :features]


def inputs(
    seeds: Tensor, low: Tensor, width: Tensor, features: int, rows: int, iteration: int, purpose: Purpose
) -> Tensor:
    """Draw one iteration's inputs, uniform on one interval or two of equal width, on the device of `seeds`.

    Args:
        seeds: int64 [trials].
        low: float32 [trials, 2], the starts of the two intervals (equal for a single interval).
        width: float32 [trials], the intervals' width.
        features: numbers per row, n.
        rows: number of rows, usually the batch size.
        iteration: 0 <= iteration < 2**32.
        purpose: the use of the numbers.

    Returns:
        float32 [trials, features, rows].

    Example:
        >>> one = torch.tensor([1.0])
        >>> x = inputs(torch.tensor([7]), one.expand(1, 2), one, 4, 128, 0, Purpose.TRAIN)
        >>> x.shape, bool((x >= 1).all()), bool((x <= 2).all())
        (torch.Size([1, 4, 128]), True, True)
    """
    drawn = words(seeds, features, rows, iteration, purpose)
    uniform = (drawn >> 8).to(torch.float32) * _STEP
    first, second = low[:, 0, None, None], low[:, 1, None, None]
    return torch.where((drawn & 1).bool(), second, first) + width[:, None, None] * uniform


def uniforms(seeds: npt.NDArray[np.uint64], count: int, iteration: int, purpose: Purpose) -> npt.NDArray[np.float64]:
    """Draw numbers strictly between 0 and 1, (w + 1/2) / 2**32, for initial weights and offsets.

    Args:
        seeds: uint64 [trials].
        count: numbers per trial.
        iteration: distinguishes draws of one purpose, such as the index of a parameter.
        purpose: the use of the numbers.

    Returns:
        float64 [trials, count].

    Example:
        >>> uniforms(np.array([7], np.uint64), 3, 0, Purpose.OFFSET).round(3).tolist()
        [[0.095, 0.786, 0.009]]
    """
    drawn = words(torch.from_numpy(seeds.astype(np.int64)), count, 1, iteration, purpose)
    return (drawn[:, :, 0].numpy() + 0.5) / 2.0**32
