"""The matrix products of the fused engine, with sums in a fixed order.

A compiler may vectorise a sum of floats only if it may reorder it, and then the bits depend on the processor. Here the
order and the fused multiply-adds are part of the definition:

    W x       over features, one after the other
    g x^T     over rows, one after the other, for all whole vectors of features; for the features that are left,
              sixteen partial sums over the rows of a block, added up as a tree
Each sum has its own lane, or sixteen, so it doesn't depend on the matrices multiplied beside it: matrices of many
trials are stacked and multiplied at once. Every processor gives the same bits: where registers are narrower, a vector
takes several of them, and tiles are smaller.

Sums over rows use a transposed copy of the rows, so that a vector holds separate sums. Adding up lanes of a vector
would cost as much as the products.

All matrices are C-contiguous, float32 or float64. Except weights and their gradients, they have rows of a multiple of
`LANES` numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from study.stream.stream_simd import LANES
from tasks.arithmetic.engine.compiled.cache import HAS_AVX512, compiled
from tasks.arithmetic.engine.cpu.simd import (
    INT,
    Matrix,
    accumulators,
    cgutils,
    four_sums,
    intrinsic,
    mask,
    multiply_add,
    one_sum,
)

# Tile sizes, chosen so that the sums and their operands just fit into the registers: AVX2 has sixteen, and a vector
# takes two. With fewer than eight registers of sums, additions would wait for each other.
_TALL, _PAIR, _SINGLE = (2, 4, 8) if HAS_AVX512 else (1, 2, 4)
_DEEP_FEATURES = 4 if HAS_AVX512 else 2
_SQUARE = 8


def _numbers(builder: Any, first: Any, count: int, step: int = 1) -> list[Any]:
    """Return the `count` indices first, first + step, first + 2 step, ..."""
    return [builder.add(first, ir.Constant(INT, step * k)) for k in range(count)]


# --- W x ------------------------------------------------------------------------------------------------------


def _tile(outputs: int, vectors: int) -> Callable[..., Any]:
    """Make the kernel tile(z, w, x, o, b, start, stop): z_ob = sum over start <= i < stop of W_oi x_ib, written.

    It takes `outputs` rows from o on, and `vectors` * LANES columns from b on.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, z: Any, w: Any, x: Any, o: Any, b: Any, start: Any, stop: Any) -> Any:
        signature = types.void(z, w, x, types.int64, types.int64, types.int64, types.int64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            z_, w_, x_ = (Matrix(context, builder, signature.args[k], arguments[k]) for k in range(3))
            o_, b_, start_, stop_ = arguments[3:]
            rows, columns = _numbers(builder, o_, outputs), _numbers(builder, b_, vectors, LANES)
            places = accumulators(builder, z_.kind, outputs * vectors)
            with cgutils.for_range_slice(builder, start_, stop_, ir.Constant(INT, 1)) as (i, _):
                inputs = [x_.load(i, column, LANES) for column in columns]
                _add_products(builder, places, [w_.splat(row, i) for row in rows], inputs)
            _store(builder, places, z_, rows, columns)
            return context.get_dummy_value()

        return signature, generate

    return tile  # type: ignore[no-any-return]


def _add_products(builder: Any, places: Sequence[Any], left: Sequence[Any], right: Sequence[Any]) -> None:
    """Add a b to the sum in each of `places`, for every vector a of `left` and, innermost, every b of `right`."""
    pairs = [(a, b) for a in left for b in right]
    for place, (a, b) in zip(places, pairs, strict=True):
        builder.store(multiply_add(builder, a, b, builder.load(place)), place)


def _store(builder: Any, places: Sequence[Any], to: Matrix, rows: Sequence[Any], columns: Sequence[Any]) -> None:
    at = [(row, column) for row in rows for column in columns]
    for place, (row, column) in zip(places, at, strict=True):
        to.store(builder.load(place), row, column, LANES)


_tile_6, _tile_4, _tile_2, _tile_1 = _tile(6, _TALL), _tile(4, _TALL), _tile(2, _PAIR), _tile(1, _SINGLE)
_tile_6_rest, _tile_4_rest, _tile_2_rest, _tile_1_rest = _tile(6, 1), _tile(4, 1), _tile(2, 1), _tile(1, 1)


@compiled
def multiply(z, w, x, start, stop):  # type: ignore[no-untyped-def]
    """Multiply over some of the features: z_ob = sum over start <= i < stop of W_oi x_ib, for all columns b of z.

    z is [outputs, rows], written; W [outputs, stop or more], x [stop or more, rows or more].
    """
    outputs, columns = z.shape
    six = outputs - outputs % 6
    four = six + (outputs - six) // 4 * 4
    two = four + (outputs - four) // 2 * 2
    # Columns are the outer loop: those of x stay in the first-level cache while all outputs pass.
    wide = columns - columns % (_TALL * LANES)
    for b in range(0, wide, _TALL * LANES):
        for o in range(0, six, 6):
            _tile_6(z, w, x, o, b, start, stop)
        for o in range(six, four, 4):
            _tile_4(z, w, x, o, b, start, stop)
    for b in range(wide, columns, LANES):
        for o in range(0, six, 6):
            _tile_6_rest(z, w, x, o, b, start, stop)
        for o in range(six, four, 4):
            _tile_4_rest(z, w, x, o, b, start, stop)
    for o in range(four, two, 2):
        wide = columns - columns % (_PAIR * LANES)
        for b in range(0, wide, _PAIR * LANES):
            _tile_2(z, w, x, o, b, start, stop)
        for b in range(wide, columns, LANES):
            _tile_2_rest(z, w, x, o, b, start, stop)
    for o in range(two, outputs):
        wide = columns - columns % (_SINGLE * LANES)
        for b in range(0, wide, _SINGLE * LANES):
            _tile_1(z, w, x, o, b, start, stop)
        for b in range(wide, columns, LANES):
            _tile_1_rest(z, w, x, o, b, start, stop)


# --- g x^T, from a transposed copy of x ---------------------------------------------------------------------------


def _deep(outputs: int, vectors: int) -> Callable[..., Any]:
    """Make the kernel deep(d, g, transposed, o, i): d_oi += sum_b g_ob transposed_bi.

    It takes `outputs` rows from o on, and `vectors` * LANES features from i on.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def deep(typing: Any, d: Any, g: Any, transposed: Any, o: Any, i: Any) -> Any:
        signature = types.void(d, g, transposed, types.int64, types.int64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            d_, g_, x_ = (Matrix(context, builder, signature.args[k], arguments[k]) for k in range(3))
            rows, columns = _numbers(builder, arguments[3], outputs), _numbers(builder, arguments[4], vectors, LANES)
            places = accumulators(builder, d_.kind, outputs * vectors)
            at = [(row, column) for row in rows for column in columns]
            for place, (row, column) in zip(places, at, strict=True):
                builder.store(d_.load(row, column, LANES), place)
            with cgutils.for_range_slice(builder, ir.Constant(INT, 0), g_.stride, ir.Constant(INT, 1)) as (b, _):
                inputs = [x_.load(b, column, LANES) for column in columns]
                _add_products(builder, places, [g_.splat(row, b) for row in rows], inputs)
            _store(builder, places, d_, rows, columns)
            return context.get_dummy_value()

        return signature, generate

    return deep  # type: ignore[no-any-return]


_deep_6, _deep_4, _deep_2, _deep_1 = _deep(6, _TALL), _deep(4, _TALL), _deep(2, _PAIR), _deep(1, _SINGLE)
_deep_6_rest, _deep_4_rest, _deep_2_rest, _deep_1_rest = _deep(6, 1), _deep(4, 1), _deep(2, 1), _deep(1, 1)


@compiled
def add_outer(d, g, x, transposed):  # type: ignore[no-untyped-def]
    """Add the gradient of a product with respect to its weights: d_oi += sum_b g_ob x_ib.

    Args:
        d: [outputs, features].
        g: [outputs, rows].
        x: [features or more, rows or more].
        transposed: `transpose` of the first features of x, [rows, a multiple of `LANES`].
    """
    outputs, features = d.shape[0], transposed.shape[1]
    six = outputs - outputs % 6
    four = six + (outputs - six) // 4 * 4
    two = four + (outputs - four) // 2 * 2
    wide = features - features % (_TALL * LANES)
    for i in range(0, wide, _TALL * LANES):
        for o in range(0, six, 6):
            _deep_6(d, g, transposed, o, i)
        for o in range(six, four, 4):
            _deep_4(d, g, transposed, o, i)
    for i in range(wide, features, LANES):
        for o in range(0, six, 6):
            _deep_6_rest(d, g, transposed, o, i)
        for o in range(six, four, 4):
            _deep_4_rest(d, g, transposed, o, i)
    for o in range(four, two, 2):
        wide = features - features % (_PAIR * LANES)
        for i in range(0, wide, _PAIR * LANES):
            _deep_2(d, g, transposed, o, i)
        for i in range(wide, features, LANES):
            _deep_2_rest(d, g, transposed, o, i)
    for o in range(two, outputs):
        wide = features - features % (_SINGLE * LANES)
        for i in range(0, wide, _SINGLE * LANES):
            _deep_1(d, g, transposed, o, i)
        for i in range(wide, features, LANES):
            _deep_1_rest(d, g, transposed, o, i)
    add_dots(d, g, x, features)


@intrinsic  # type: ignore[untyped-decorator]
def _transpose_square(typing: Any, to: Any, x: Any, i: Any, b: Any) -> Any:
    """Write the 8 x 8 square of x that starts at [i, b] to [b, i], transposed in registers."""
    signature = types.void(to, x, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to_, x_ = (Matrix(context, builder, signature.args[k], arguments[k]) for k in range(2))
        features, rows = (_numbers(builder, arguments[k], _SQUARE) for k in (2, 3))
        both, half = mask(range(_SQUARE)), _SQUARE // 2
        lows, highs = mask([0, 8, 1, 9, 4, 12, 5, 13]), mask([2, 10, 3, 11, 6, 14, 7, 15])
        even, odd = mask([0, 1, 8, 9, 4, 5, 12, 13]), mask([2, 3, 10, 11, 6, 7, 14, 15])
        for first in (0, half):
            # Features four apart are in the two halves of a vector, so that no lane crosses between halves.
            quarters = [[x_.load(features[k + h], rows[first], half) for h in (0, half)] for k in range(half)]
            a, b, c, d = (builder.shuffle_vector(low, high, both) for low, high in quarters)
            pairs = [(builder.shuffle_vector(a, b, part), builder.shuffle_vector(c, d, part)) for part in (lows, highs)]
            fours = [builder.shuffle_vector(left, right, part) for left, right in pairs for part in (even, odd)]
            for k, four in enumerate(fours):
                to_.store(four, rows[first + k], features[0], _SQUARE)
        return context.get_dummy_value()

    return signature, generate


@compiled
def transpose(to, x):  # type: ignore[no-untyped-def]
    """Write the transpose of x [features or more, rows or more] to `to` [rows, features], both multiples of 8."""
    rows, features = to.shape
    for b in range(0, rows, _SQUARE):
        for i in range(0, features, _SQUARE):
            _transpose_square(to, x, i, b)


# --- g x^T, from x itself ---------------------------------------------------------------------------------------


def _dots(outputs: int, features: int) -> Callable[..., Any]:
    """Make the kernel dots(d, g, x, o, i, g_row, x_row): d[o + m, i + k] += sum_b g[g_row + m, b] x[x_row + k, b].

    It takes m < outputs and k < features; these pairs must be 1 or a multiple of 4.
    """
    pairs = outputs * features

    @intrinsic  # type: ignore[untyped-decorator]
    def dots(typing: Any, d: Any, g: Any, x: Any, o: Any, i: Any, g_row: Any, x_row: Any) -> Any:
        signature = types.void(d, g, x, types.int64, types.int64, types.int64, types.int64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            d_, g_, x_ = (Matrix(context, builder, signature.args[k], arguments[k]) for k in range(3))
            o_, i_, g_row_, x_row_ = arguments[3:]
            places = accumulators(builder, g_.kind, pairs)
            zero, step = ir.Constant(INT, 0), ir.Constant(INT, LANES)
            with cgutils.for_range_slice(builder, zero, g_.stride, step) as (b, _):
                left = [g_.load(row, b, LANES) for row in _numbers(builder, g_row_, outputs)]
                right = [x_.load(row, b, LANES) for row in _numbers(builder, x_row_, features)]
                _add_products(builder, places, left, right)
            sums = [builder.load(place) for place in places]
            if pairs == 1:
                d_.store(builder.fadd(d_.load(o_, i_), one_sum(builder, sums[0])), o_, i_)
                return context.get_dummy_value()
            fours = [four_sums(builder, sums[k : k + 4]) for k in range(0, pairs, 4)]
            for m, row in enumerate(_numbers(builder, o_, outputs)):
                four, first = divmod(m * features, 4)
                mine = builder.shuffle_vector(fours[four], fours[four], mask(range(first, first + features)))
                d_.store(builder.fadd(d_.load(row, i_, features), mine), row, i_, features)
            return context.get_dummy_value()

        return signature, generate

    return dots  # type: ignore[no-any-return]


_dots_2_deep, _dots_1x4, _dots_1x1 = _dots(2, _DEEP_FEATURES), _dots(1, 4), _dots(1, 1)


@compiled
def add_dots(d, g, x, first):  # type: ignore[no-untyped-def]
    """Add d_oi += sum_b g_ob x_ib for i >= first, like `add_outer` but without a transposed copy of x.

    d is [outputs, features], g [outputs, rows], x [features or more, rows or more].
    """
    outputs, features = d.shape
    tiled = features - (features - first) % _DEEP_FEATURES
    # Features are the outer loop: g's few rows stay in the first-level cache, x's may not.
    for i in range(first, tiled, _DEEP_FEATURES):
        for o in range(0, outputs - 1, 2):
            _dots_2_deep(d, g, x, o, i, o, i)
    for i in range(tiled, features):
        for o in range(outputs - outputs % 2):
            _dots_1x1(d, g, x, o, i, o, i)
    if outputs % 2:
        _add_row(d, outputs - 1, g, outputs - 1, x, first)


@compiled
def _add_row(d, o, g, row, x, first):  # type: ignore[no-untyped-def]
    """Add the inner products of a row of g with the rows of x from `first` on: d_oi += sum_b g_row,b x_ib."""
    features = d.shape[1]
    fours = features - (features - first) % 4
    for i in range(first, fours, 4):
        _dots_1x4(d, g, x, o, i, row, i)
    for i in range(fours, features):
        _dots_1x1(d, g, x, o, i, row, i)


@compiled
def add_sums(d, o, ones, g):  # type: ignore[no-untyped-def]
    """Add the sums of g's rows to a row of d: d_oi += sum_b g_ib; `ones` is a row of ones."""
    _add_row(d, o, ones, 0, g, 0)


@compiled
def add_squares(d, g):  # type: ignore[no-untyped-def]
    """Add the sum of the squares of g's first row to d_00."""
    _dots_1x1(d, g, g, 0, 0, 0, 0)
