"""The random stream in vectors, for compiled engines: Philox4x32-10 for 32 rows at a time.

Each of the ten rounds multiplies words by constants, and needs both halves of the 64-bit products. A vector of 32-bit
words is read as 64-bit numbers twice: once for the words in even places and once, shifted down, for those in odd ones.
Two shuffles sort the halves of the products.

Rows (counter word 0) and features (word 1) vary; iteration and purpose don't, and words mix slowly. Five of the six
products of the first three rounds depend on the row alone, on the feature alone or on neither, and are computed once
for each. That leaves 15 of 20 products for each row and feature. With AVX-512 this is 1.7 times as fast as ten rounds
that the compiler vectorises, with AVX2 1.4 times. 32 rows are faster than 16 on both, though they take several
registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import core, extending
from numba.core import types

import study.stream.stream
from study.stream.compile import cached, digest
from study.stream.stream import MULTIPLIERS, ROUNDS, WEYL

# Neither has suitable types.
cgutils: Any = core.cgutils
_intrinsic: Any = extending.intrinsic

_STAMP = digest((Path(study.stream.stream.__file__), Path(__file__)))

LANES = 16
"""Length of a vector; the number of rows is a multiple of it."""

_WIDE_ROWS = 2 * LANES
_MASK = 0xFFFFFFFF
_WORD, _DOUBLE, _FLOAT, _PLACE = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.IntType(64)
_STEP = np.float32(2.0**-24)
_HALF_WORD, _LOW_WORD = np.uint64(32), np.uint64(_MASK)


class _Words:
    """Operations of Philox on words: vectors of `lanes` words, or single words that are the same in all lanes."""

    def __init__(self, builder: Any, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes
        self.kind = ir.VectorType(_WORD, lanes)
        self._double = ir.VectorType(_DOUBLE, lanes // 2)
        pairs = range(lanes // 2)
        self._low = self._mask([place for k in pairs for place in (2 * k, lanes + 2 * k)])
        self._high = self._mask([place for k in pairs for place in (2 * k + 1, lanes + 2 * k + 1)])

    def _mask(self, places: Sequence[int]) -> Any:
        return ir.Constant(ir.VectorType(_WORD, len(places)), list(places))

    def splat(self, number: Any) -> Any:
        kind = ir.VectorType(number.type, self.lanes)
        first = self.builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(_WORD, 0))
        return self.builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), self._mask([0] * self.lanes))

    def count(self, first: Any) -> Any:
        """Return a vector of first, first + 1, ..., one number per lane."""
        return self.builder.add(self.splat(first), ir.Constant(self.kind, list(range(self.lanes))))

    def xor(self, *operands: Any) -> Any:
        is_vector = [isinstance(operand.type, ir.VectorType) for operand in operands]
        result = None
        for operand, vector in zip(operands, is_vector, strict=True):
            word = self.splat(operand) if any(is_vector) and not vector else operand
            result = word if result is None else self.builder.xor(result, word)
        return result

    def product(self, word: Any, factor: int) -> tuple[Any, Any]:
        """Return the upper and the lower halves of the products of words and a factor."""
        builder = self.builder
        if not isinstance(word.type, ir.VectorType):
            full_product = builder.mul(builder.zext(word, _DOUBLE), ir.Constant(_DOUBLE, factor))
            high = builder.lshr(full_product, ir.Constant(_DOUBLE, 32))
            return builder.trunc(high, _WORD), builder.trunc(full_product, _WORD)
        count = self.lanes // 2
        factors = ir.Constant(self._double, [factor] * count)
        doubles = builder.bitcast(word, self._double)
        even = builder.mul(builder.and_(doubles, ir.Constant(self._double, [_MASK] * count)), factors)
        odd = builder.mul(builder.lshr(doubles, ir.Constant(self._double, [32] * count)), factors)
        even, odd = builder.bitcast(even, self.kind), builder.bitcast(odd, self.kind)
        return builder.shuffle_vector(even, odd, self._high), builder.shuffle_vector(even, odd, self._low)

    def round(self, state: Sequence[Any], keys: tuple[Any, Any]) -> list[Any]:
        high_0, low_0 = self.product(state[0], MULTIPLIERS[0])
        high_1, low_1 = self.product(state[2], MULTIPLIERS[1])
        return [self.xor(high_1, state[1], keys[0]), low_1, self.xor(high_0, state[3], keys[1]), low_0]

    def number(self, word: Any, low: Any, second: Any | None, scale: Any) -> Any:
        """Convert words to inputs: start + scale * (word div 2**8), rounded after each of the two operations.

        The start is `low`; for odd words, it is `second` if that is given.
        """
        builder = self.builder
        shifted = builder.lshr(word, ir.Constant(self.kind, [8] * self.lanes))
        uniform = builder.sitofp(shifted, ir.VectorType(_FLOAT, self.lanes))
        start = low
        if second is not None:
            last_bit = builder.trunc(word, ir.VectorType(ir.IntType(1), self.lanes))
            start = builder.select(last_bit, second, low)
        return builder.fadd(start, builder.fmul(scale, uniform))


def _strip(lanes: int, *, two: bool) -> Any:
    """Build the numba intrinsic that draws the inputs of `lanes` rows into x[:, column:column + lanes].

    `two` tells whether they lie in two intervals.
    """

    @_intrinsic  # type: ignore[untyped-decorator]
    def strip(
        typing: Any, x: Any, column: Any, row: Any, k0: Any, k1: Any, iteration: Any, purpose: Any, low: Any,
        second: Any, scale: Any,
    ) -> Any:  # fmt: skip
        word, number = types.uint32, types.float32
        signature = types.void(x, types.int64, word, word, word, word, word, number, number, number)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
            features, stride = cgutils.unpack_tuple(builder, array.shape, 2)
            column_, row_, k0_, k1_, iteration_, purpose_, low_, second_, scale_ = arguments[1:]
            words = _Words(builder, lanes)
            keys = [
                tuple(
                    builder.add(key, ir.Constant(_WORD, n * weyl & _MASK))
                    for key, weyl in zip((k0_, k1_), WEYL, strict=True)
                )
                for n in range(ROUNDS)
            ]
            low_v, second_v, scale_v = (words.splat(value) for value in (low_, second_, scale_))
            # Before the loop over features, since it depends on the row alone; LLVM moves other such operations there.
            rows = words.count(row_)
            with cgutils.for_range_slice(builder, ir.Constant(_PLACE, 0), features, ir.Constant(_PLACE, 4)) as (
                feature,
                _,
            ):
                block = builder.trunc(builder.lshr(feature, ir.Constant(_PLACE, 2)), _WORD)
                state = [rows, block, iteration_, purpose_]
                for n in range(ROUNDS):
                    state = words.round(state, keys[n])
                for k, drawn in enumerate(state):
                    value = words.number(drawn, low_v, second_v if two else None, scale_v)
                    at = builder.add(builder.mul(builder.add(feature, ir.Constant(_PLACE, k)), stride), column_)
                    pointer = builder.gep(array.data, [at])
                    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=4)
            return context.get_dummy_value()

        return signature, generate

    return strip


_wide, _wide_two = _strip(_WIDE_ROWS, two=False), _strip(_WIDE_ROWS, two=True)
_narrow, _narrow_two = _strip(LANES, two=False), _strip(LANES, two=True)


@cached(_STAMP, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)
def draw(x, rows, seed, low, second, width, iteration, purpose, first):  # type: ignore[no-untyped-def]
    """Draw the inputs of rows first, first + 1, ... of one trial into `x`, in compiled code.

    Args:
        x: float32 [features, rows or more], contiguous; features a multiple of 4; written.
        rows: number of rows, a multiple of `LANES`.
        seed: the trial's seed, uint64.
        low: float32, the start of the interval.
        second: float32, the start of the second interval; equal to `low` for a single interval.
        width: float32, the intervals' width.
        iteration: 0 <= iteration < 2**32.
        purpose: a `Purpose`, or another last word of the counter.
        first: number of the first row.
    """
    k0, k1 = np.uint32(seed & _LOW_WORD), np.uint32(seed >> _HALF_WORD)
    count, use = np.uint32(iteration), np.uint32(purpose)
    # `study.stream.stream` multiplies the 24 bits by 2**-24 and then by the width, here by both at once: a power of two
    # changes the exponent only, so the bits are the same.
    scale = width * _STEP
    wide = rows - rows % _WIDE_ROWS
    if low == second:
        for b in range(0, wide, _WIDE_ROWS):
            _wide(x, b, np.uint32(first + b), k0, k1, count, use, low, second, scale)
        for b in range(wide, rows, LANES):
            _narrow(x, b, np.uint32(first + b), k0, k1, count, use, low, second, scale)
    else:
        for b in range(0, wide, _WIDE_ROWS):
            _wide_two(x, b, np.uint32(first + b), k0, k1, count, use, low, second, scale)
        for b in range(wide, rows, LANES):
            _narrow_two(x, b, np.uint32(first + b), k0, k1, count, use, low, second, scale)


@cached(_STAMP, nogil=True)
def _fill(out, spare, seeds, low, width, iterations, purpose):  # type: ignore[no-untyped-def]
    """Draw the inputs of each trial in turn, through `spare` unless it has the shape of a trial's part of `out`.

    Arguments are as for `fill_inputs`; `spare` is float32 [features, rows], padded to multiples of 4 and `LANES`, and
    `iterations` is uint32 [trials].
    """
    trials, features, rows = out.shape
    direct = spare.shape == (features, rows)
    for s in range(trials):
        x = out[s] if direct else spare
        draw(x, x.shape[1], seeds[s], low[s, 0], low[s, 1], width[s], iterations[s], purpose, 0)
        if not direct:  # loops, since numba compiles error messages for copies of slices, which takes 2 s
            for i in range(features):
                for b in range(rows):
                    out[s, i, b] = spare[i, b]


def fill_inputs(
    out: npt.NDArray[np.float32],
    seeds: npt.NDArray[np.uint64],
    low: npt.NDArray[np.float32],
    width: npt.NDArray[np.float32],
    iteration: int | npt.NDArray[np.integer[Any]],
    purpose: int,
) -> None:
    """Fill `out` with inputs of one iteration, or of one iteration per trial, by compiled code.

    The bits are those of `study.stream.stream.inputs`.

    Args:
        out: float32 [trials, features, rows], contiguous; written.
        seeds: uint64 [trials].
        low: float32 [trials, 2], the starts of the two intervals (equal for a single interval).
        width: float32 [trials], the intervals' width.
        iteration: 0 <= iteration < 2**32; of all trials, or [trials].
        purpose: the use of the numbers, a `Purpose` or another last word of the counter.

    Raises:
        ValueError: if `out` isn't contiguous.

    Example:
        >>> from study.stream.stream import Purpose
        >>> out = np.empty((1, 4, 128), np.float32)
        >>> one = np.ones((1, 2), np.float32)
        >>> fill_inputs(out, np.array([7], np.uint64), one, one[:, 0], 0, Purpose.TRAIN)
        >>> bool((out >= 1).all()), bool((out <= 2).all())
        (True, True)
    """
    if not out.flags.c_contiguous:
        raise ValueError(f"out must be contiguous, but has strides {out.strides} for shape {out.shape}")
    if len(seeds) == 0:
        return
    _, features, rows = out.shape
    padded_shape = (padded(features, 4), padded(rows, LANES))
    # Words past the last feature or row are drawn into memory that isn't read.
    spare = out[0] if padded_shape == (features, rows) else np.empty(padded_shape, np.float32)
    iterations = np.full(len(seeds), iteration, np.uint32)
    _fill(out, spare, seeds, low, width, iterations, np.uint32(purpose))


def padded(count: int, multiple: int) -> int:
    """Round a count up to a multiple, also in compiled code.

    Example:
        >>> padded(100, 16)
        112
    """
    return -(-count // multiple) * multiple


extending.register_jitable(padded)
