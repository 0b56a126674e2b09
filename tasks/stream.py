"""The counter-based random stream: what a trial sees is a pure function of its seed and the iteration.

Philox4x32-10 turns a 128-bit counter and a 64-bit key into four 32-bit words. Here

    key     = (seed mod 2**32, seed div 2**32)
    counter = (row, feature div 4, iteration, purpose)
    number  = word[feature mod 4]

so any number of any trial can be made alone, in any order, on any device, with the same bits; a larger batch only
adds rows. A word w becomes an input by float32 operations with one rounding each, and never a fused multiply-add:

    x = low_k + width * ((w div 2**8) * 2**-24),    k = w mod 2 picks the interval when there are two

Source: Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from enum import IntEnum

import numba as nb
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

EVALUATION_SEED = 0x5EED_0F_E7A1
"""Key of the validation and test rows, which all trials share."""


class Purpose(IntEnum):
    """What a number is drawn for: the last word of the counter."""

    TRAIN = 0
    VALIDATION = 1
    TEST = 2
    INITIAL = 3
    OFFSET = 4


_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF
_ROUNDS = 10

_M0, _M1 = np.uint64(_MULTIPLIERS[0]), np.uint64(_MULTIPLIERS[1])
_W0, _W1 = np.uint32(_WEYL[0]), np.uint32(_WEYL[1])
_HALF_WORD = np.uint64(32)
_LOW_WORD = np.uint64(_MASK)
_DROPPED_BITS = np.uint32(8)
_STEP = np.float32(2.0**-24)


def philox(counter: tuple[Tensor, ...], key: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Encrypt counters with Philox4x32-10, on any device: the reference for every faster version.

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
    for _ in range(_ROUNDS):
        # The 64-bit products wrap as signed numbers; their bits, and so both halves, are right.
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            ((p1 >> 32) & _MASK) ^ c1 ^ k0,
            p1 & _MASK,
            ((p0 >> 32) & _MASK) ^ c3 ^ k1,
            p0 & _MASK,
        )
        k0, k1 = (k0 + _WEYL[0]) & _MASK, (k1 + _WEYL[1]) & _MASK
    return c0, c1, c2, c3


def words(seeds: Tensor, features: int, rows: int, iteration: int, purpose: Purpose) -> Tensor:
    """Draw the raw words of one iteration, on the device of `seeds`.

    Args:
        seeds: int64 [trials].
        features: numbers a row, n.
        rows: rows.
        iteration: 0 <= iteration < 2**32.
        purpose: what they are for.

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
    """Draw one iteration's inputs on any device.

    Args:
        seeds: int64 [trials].
        low: float32 [trials, 2], where each of the two intervals starts (twice the same for one interval).
        width: float32 [trials], the intervals' width.
        features: numbers a row, n.
        rows: rows, usually the batch size.
        iteration: 0 <= iteration < 2**32.
        purpose: what they are for.

    Returns:
        float32 [trials, features, rows].

    Example:
        >>> one = torch.tensor([1.0])
        >>> x = inputs(torch.tensor([7]), one.expand(1, 2), one, 4, 128, 0, Purpose.TRAIN)
        >>> x.shape, bool((x >= 1).all()), bool((x <= 2).all())
        (torch.Size([1, 4, 128]), True, True)
    """
    drawn = words(seeds, features, rows, iteration, purpose)
    uniform = (drawn >> 8).to(torch.float32) * float(_STEP)
    first, second = low[:, 0, None, None], low[:, 1, None, None]
    return torch.where((drawn & 1).bool(), second, first) + width[:, None, None] * uniform


@nb.njit(cache=True, inline="always")
def _words4(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    for _ in range(_ROUNDS):
        p0 = np.uint64(c0) * _M0
        p1 = np.uint64(c2) * _M1
        c0, c1, c2, c3 = (
            np.uint32(p1 >> _HALF_WORD) ^ c1 ^ k0,
            np.uint32(p1),
            np.uint32(p0 >> _HALF_WORD) ^ c3 ^ k1,
            np.uint32(p0),
        )
        k0 = np.uint32(k0 + _W0)
        k1 = np.uint32(k1 + _W1)
    return c0, c1, c2, c3


@nb.njit(cache=True, inline="always")
def _input(word, low, high_low, width):  # type: ignore[no-untyped-def]
    # int32 because the conversion of signed integers vectorises everywhere; 24 bits fit.
    uniform = np.float32(np.int32(word >> _DROPPED_BITS)) * _STEP
    start = high_low if word & np.uint32(1) else low
    return start + width * uniform


@nb.njit(cache=True, nogil=True)
def _fill(out, seeds, low, width, iteration, purpose):  # type: ignore[no-untyped-def]
    trials, features, rows = out.shape
    spare = np.empty((4, rows), np.float32)
    for s in range(trials):
        k0, k1 = np.uint32(seeds[s] & _LOW_WORD), np.uint32(seeds[s] >> _HALF_WORD)
        low_s, second_s, width_s = low[s, 0], low[s, 1], width[s]
        for block in range((features + 3) // 4):
            kept = min(4, features - 4 * block)
            # Words past the last feature are made all the same, into a place nobody reads.
            x0 = out[s, 4 * block]
            x1 = out[s, 4 * block + 1] if kept > 1 else spare[1]
            x2 = out[s, 4 * block + 2] if kept > 2 else spare[2]
            x3 = out[s, 4 * block + 3] if kept > 3 else spare[3]
            for row in range(rows):
                w0, w1, w2, w3 = _words4(np.uint32(row), np.uint32(block), iteration, purpose, k0, k1)
                x0[row] = _input(w0, low_s, second_s, width_s)
                x1[row] = _input(w1, low_s, second_s, width_s)
                x2[row] = _input(w2, low_s, second_s, width_s)
                x3[row] = _input(w3, low_s, second_s, width_s)


def fill_inputs(
    out: npt.NDArray[np.float32],
    seeds: npt.NDArray[np.uint64],
    low: npt.NDArray[np.float32],
    width: npt.NDArray[np.float32],
    iteration: int,
    purpose: Purpose,
) -> None:
    """Fill `out` with one iteration's inputs: the bits of `inputs`, at the speed of the processor.

    Args:
        out: float32 [trials, features, rows], contiguous; written.
        seeds: uint64 [trials].
        low: float32 [trials, 2].
        width: float32 [trials].
        iteration: 0 <= iteration < 2**32.
        purpose: what they are for.
    """
    _fill(out, seeds, low, width, np.uint32(iteration), np.uint32(int(purpose)))


def uniforms(
    seeds: npt.NDArray[np.uint64], count: int, iteration: int, purpose: Purpose
) -> npt.NDArray[np.float64]:
    """Draw numbers strictly between 0 and 1, (w + 1/2) / 2**32: for initial weights and offsets.

    Args:
        seeds: uint64 [trials].
        count: numbers a trial.
        iteration: tells draws of one purpose apart, such as the index of a parameter.
        purpose: what they are for.

    Returns:
        float64 [trials, count].

    Example:
        >>> uniforms(np.array([7], np.uint64), 3, 0, Purpose.OFFSET).round(3).tolist()
        [[0.095, 0.786, 0.009]]
    """
    drawn = words(torch.from_numpy(seeds.astype(np.int64)), count, 1, iteration, purpose)
    return (drawn[:, :, 0].numpy() + 0.5) / 2.0**32
