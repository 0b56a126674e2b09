"""Vector micro-kernels of the fused engine: matrix products whose sums are taken in a fixed order.

A compiler may vectorise a sum of floats only if it may reorder it, and then the bits depend on the processor. Here the
order is part of the definition, and so are the fused multiply-adds: sixteen partial sums over a row, added up as a
tree; sums over features one after the other. Any processor gives the same bits: one with narrower registers takes
several for a vector, and tiles are cut so that the sums of a tile fit into the registers there are.

All matrices are C-contiguous, rows of a multiple of `LANES` numbers, float32 or float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import core, extending
from numba.core import types
from numba.np import arrayobj as np_arrayobj

from study.engine.compiled.cache import HAS_AVX512, compiled
from tasks.stream_simd import LANES

# None of these has types that fit.
cgutils: Any = core.cgutils
arrayobj: Any = np_arrayobj
_intrinsic: Any = extending.intrinsic

# Of a tile, so that its sums fit into the registers: vectors of rows, and features.
_WIDE_VECTORS = _DEEP_FEATURES = 4 if HAS_AVX512 else 2
_INT = ir.IntType(64)


# --- views ----------------------------------------------------------------------------------------------------


@_intrinsic  # type: ignore[untyped-decorator]
def vector(typing: Any, numbers: Any, start: Any, length: Any) -> Any:
    """View a part of an array of one dimension, without a look at its bounds."""
    kind = types.Array(numbers.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers_, start_, *shape = arguments
        return _view(context, builder, kind, signature.args[0], numbers_, start_, shape)

    return kind(numbers, types.int64, types.int64), generate


@_intrinsic  # type: ignore[untyped-decorator]
def matrix(typing: Any, numbers: Any, start: Any, rows: Any, columns: Any) -> Any:
    """View a part of an array of one dimension as a matrix; numpy's own reshape costs a call."""
    kind = types.Array(numbers.dtype, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers_, start_, *shape = arguments
        return _view(context, builder, kind, signature.args[0], numbers_, start_, shape)

    return kind(numbers, types.int64, types.int64, types.int64), generate


def _view(context: Any, builder: Any, kind: Any, of_kind: Any, numbers: Any, start: Any, shape: Sequence[Any]) -> Any:
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(length, strides[0]))
    source = cgutils.create_struct_proxy(of_kind)(context, builder, value=numbers)
    made = arrayobj.make_array(kind)(context, builder)
    arrayobj.populate_array(
        made, data=builder.gep(source.data, [start]), shape=list(shape), strides=strides, itemsize=size, meminfo=None
    )
    return made._getvalue()


# --- building blocks of the machine code --------------------------------------------------------------------


class _Matrix:
    """A numba array argument inside an intrinsic: loads, stores and adds at [row, column]."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        self._builder, self._data = builder, array.data
        self._stride = cgutils.unpack_tuple(builder, array.shape, 2)[1]
        self.element = context.get_data_type(kind.dtype)

    def _pointer(self, row: Any, column: Any, lanes: int) -> Any:
        builder = self._builder
        at = builder.add(builder.mul(row, self._stride), column)
        pointer = builder.gep(self._data, [at])
        if lanes == 1:
            return pointer
        return builder.bitcast(pointer, ir.VectorType(self.element, lanes).as_pointer())

    def _align(self) -> int:
        return 4 if isinstance(self.element, ir.FloatType) else 8

    def load(self, row: Any, column: Any, lanes: int = 1) -> Any:
        return self._builder.load(self._pointer(row, column, lanes), align=self._align())

    def store(self, value: Any, row: Any, column: Any, lanes: int = 1) -> None:
        self._builder.store(value, self._pointer(row, column, lanes), align=self._align())

    def splat(self, row: Any, column: Any) -> Any:
        """Load one number into all lanes."""
        builder, kind = self._builder, ir.VectorType(self.element, LANES)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), self.load(row, column), _index(0))
        return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), _mask([0] * LANES))


def _index(number: int) -> Any:
    return ir.Constant(ir.IntType(32), number)


def _mask(lanes: Sequence[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), [_index(lane) for lane in lanes])


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute ab + c with one rounding, lane by lane."""
    letter = "f32" if isinstance(a.type.element, ir.FloatType) else "f64"
    kind = ir.FunctionType(a.type, [a.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}{letter}")
    return builder.call(function, [a, b, c])


def _fold(builder: Any, first: Any, second: Any) -> Any:
    """Add neighbouring lanes of both, within each quarter of a vector."""
    quarters = range(0, LANES, 4)
    even = [lane for q in quarters for lane in (q, q + 2, LANES + q, LANES + q + 2)]
    return builder.fadd(
        builder.shuffle_vector(first, second, _mask(even)),
        builder.shuffle_vector(first, second, _mask([lane + 1 for lane in even])),
    )


def _halves(builder: Any, vector: Any) -> Any:
    """Add the lower and the upper half of a vector."""
    half = vector.type.count // 2
    low, high = _mask(range(half)), _mask(range(half, 2 * half))
    return builder.fadd(builder.shuffle_vector(vector, vector, low), builder.shuffle_vector(vector, vector, high))


def _four_sums(builder: Any, four: Sequence[Any]) -> Any:
    """Add up the lanes of four vectors: a vector of four sums."""
    folded = _fold(builder, _fold(builder, four[0], four[1]), _fold(builder, four[2], four[3]))
    return _halves(builder, _halves(builder, folded))


def _one_sum(builder: Any, vector: Any) -> Any:
    """Add up the lanes of one vector, in the order of `_four_sums`."""
    return builder.extract_element(_four_sums(builder, [vector] * 4), _index(0))


def _accumulators(context: Any, builder: Any, kind: Any, count: int) -> list[Any]:
    places = [cgutils.alloca_once(builder, kind) for _ in range(count)]
    for place in places:
        builder.store(ir.Constant(kind, [0.0] * LANES), place)
    return places


# --- W x ------------------------------------------------------------------------------------------------------


def _tile(outputs: int, vectors: int) -> Callable[..., Any]:
    """Make the kernel for some outputs and vectors of columns: z[o:, b:] = sum over i in [start, stop) of W x."""

    @_intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, z: Any, w: Any, x: Any, o: Any, b: Any, start: Any, stop: Any) -> Any:
        signature = types.void(z, w, x, types.int64, types.int64, types.int64, types.int64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            z_, w_, x_ = (_Matrix(context, builder, signature.args[k], arguments[k]) for k in range(3))
            o_, b_, start_, stop_ = arguments[3:]
            rows = [builder.add(o_, ir.Constant(_INT, m)) for m in range(outputs)]
            columns = [builder.add(b_, ir.Constant(_INT, LANES * v)) for v in range(vectors)]
            kind = ir.VectorType(z_.element, LANES)
            places = _accumulators(context, builder, kind, outputs * vectors)
            with cgutils.for_range_slice(builder, start_, stop_, ir.Constant(_INT, 1)) as (i, _):
                inputs = [x_.load(i, column, LANES) for column in columns]
                for m, row in enumerate(rows):
                    weight = w_.splat(row, i)
                    for v, value in enumerate(inputs):
                        place = places[m * vectors + v]
                        builder.store(_multiply_add(builder, weight, value, builder.load(place)), place)
            for m, row in enumerate(rows):
                for v, column in enumerate(columns):
                    z_.store(builder.load(places[m * vectors + v]), row, column, LANES)
            return context.get_dummy_value()

        return signature, generate

    return tile  # type: ignore[no-any-return]


_tile_2_wide, _tile_1_wide, _tile_2, _tile_1 = (
    _tile(2, _WIDE_VECTORS),
    _tile(1, _WIDE_VECTORS),
    _tile(2, 1),
    _tile(1, 1),
)


@compiled
def multiply(z, w, x, start, stop):  # type: ignore[no-untyped-def]
    """Multiply, over some of the features: z_ob = sum over start <= i < stop of W_oi x_ib."""
    outputs, columns = z.shape
    wide = _WIDE_VECTORS * LANES
    for b in range(0, columns - columns % wide, wide):
        for o in range(0, outputs - 1, 2):
            _tile_2_wide(z, w, x, o, b, start, stop)
        if outputs % 2:
            _tile_1_wide(z, w, x, outputs - 1, b, start, stop)
    for b in range(columns - columns % wide, columns, LANES):
        for o in range(0, outputs - 1, 2):
            _tile_2(z, w, x, o, b, start, stop)
        if outputs % 2:
            _tile_1(z, w, x, outputs - 1, b, start, stop)


# --- g x^T ------------------------------------------------------------------------------------------------------


def _dots(outputs: int, features: int) -> Callable[..., Any]:
    """Make the kernel for some rows of g and some of x, 1 or a multiple of 4 pairs: adds their inner products to d.

    d gets them from [o, i] on. Rows of g count from g_row, rows of x from x_row.
    """
    pairs = [(m, k) for m in range(outputs) for k in range(features)]

    @_intrinsic  # type: ignore[untyped-decorator]
    def dots(typing: Any, d: Any, g: Any, x: Any, o: Any, i: Any, g_row: Any, x_row: Any) -> Any:
        signature = types.void(d, g, x, types.int64, types.int64, types.int64, types.int64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            d_, g_, x_ = (_Matrix(context, builder, signature.args[k], arguments[k]) for k in range(3))
            o_, i_, g_row_, x_row_ = arguments[3:]
            kind = ir.VectorType(g_.element, LANES)
            places = _accumulators(context, builder, kind, len(pairs))
            zero, step = ir.Constant(_INT, 0), ir.Constant(_INT, LANES)
            with cgutils.for_range_slice(builder, zero, g_._stride, step) as (b, _):
                left = [g_.load(builder.add(g_row_, ir.Constant(_INT, m)), b, LANES) for m in range(outputs)]
                right = [x_.load(builder.add(x_row_, ir.Constant(_INT, k)), b, LANES) for k in range(features)]
                for place, (m, k) in zip(places, pairs, strict=True):
                    builder.store(_multiply_add(builder, left[m], right[k], builder.load(place)), place)
            sums = [builder.load(place) for place in places]
            if len(pairs) == 1:
                d_.store(builder.fadd(d_.load(o_, i_), _one_sum(builder, sums[0])), o_, i_)
                return context.get_dummy_value()
            fours = [_four_sums(builder, sums[k : k + 4]) for k in range(0, len(pairs), 4)]
            for m in range(outputs):
                row = builder.add(o_, ir.Constant(_INT, m))
                four, first = divmod(m * features, 4)
                mine = builder.shuffle_vector(fours[four], fours[four], _mask(range(first, first + features)))
                d_.store(builder.fadd(d_.load(row, i_, features), mine), row, i_, features)
            return context.get_dummy_value()

        return signature, generate

    return dots  # type: ignore[no-any-return]


_dots_2_deep, _dots_1x4, _dots_1x1 = _dots(2, _DEEP_FEATURES), _dots(1, 4), _dots(1, 1)


@compiled
def add_outer(d, g, x):  # type: ignore[no-untyped-def]
    """Add the gradient of a product with respect to its weights: d_oi += sum_b g_ob x_ib."""
    outputs, features = d.shape
    tiled = features - features % _DEEP_FEATURES
    # Features outside: g's rows are few and stay in the first-level cache, x's may not.
    for i in range(0, tiled, _DEEP_FEATURES):
        for o in range(0, outputs - 1, 2):
            _dots_2_deep(d, g, x, o, i, o, i)
    for i in range(tiled, features):
        for o in range(outputs - outputs % 2):
            _dots_1x1(d, g, x, o, i, o, i)
    if outputs % 2:
        add_row(d, outputs - 1, g, outputs - 1, x)


@compiled
def add_row(d, o, g, row, x):  # type: ignore[no-untyped-def]
    """Add the inner products of one row of g with all of x to one of d: d_oi += sum_b g_row,b x_ib."""
    features = d.shape[1]
    fours = features - features % 4
    for i in range(0, fours, 4):
        _dots_1x4(d, g, x, o, i, row, i)
    for i in range(fours, features):
        _dots_1x1(d, g, x, o, i, row, i)


@compiled
def add_sums(d, o, ones, g):  # type: ignore[no-untyped-def]
    """Add the sums of rows to a row of d: d_oi += sum_b g_ib; `ones` is one row of ones."""
    add_row(d, o, ones, 0, g)


@compiled
def add_squares(d, g):  # type: ignore[no-untyped-def]
    """Add the squares of the first row of g to d_00."""
    _dots_1x1(d, g, g, 0, 0, 0, 0)
