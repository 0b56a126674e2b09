"""Vectors in compiled code: building blocks of the fused engine's products, and views without bounds checks.

All matrices are C-contiguous, float32 or float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import core, extending
from numba.core import types
from numba.np import arrayobj as np_arrayobj

from study.stream.stream_simd import LANES

# These have no usable types.
cgutils: Any = core.cgutils
arrayobj: Any = np_arrayobj
intrinsic: Any = extending.intrinsic

INT = ir.IntType(64)
"""The type of an index in machine code."""


# --- views ----------------------------------------------------------------------------------------------------


@intrinsic  # type: ignore[untyped-decorator]
def vector(typing: Any, numbers: Any, start: Any, length: Any) -> Any:
    """View `length` numbers of a one-dimensional array, from `start` on, without bounds checks."""
    kind = types.Array(numbers.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers_, start_, *shape = arguments
        return _view(context, builder, kind, signature.args[0], numbers_, start_, shape)

    return kind(numbers, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def matrix(typing: Any, numbers: Any, start: Any, rows: Any, columns: Any) -> Any:
    """View a one-dimensional array from `start` on as [rows, columns]; numpy's reshape would cost a call."""
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


class Matrix:
    """A two-dimensional numba array argument inside an intrinsic: loads and stores at [row, column]."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        self._builder, self._data = builder, array.data
        self.stride = cgutils.unpack_tuple(builder, array.shape, 2)[1]
        self.element = context.get_data_type(kind.dtype)
        self.kind = ir.VectorType(self.element, LANES)

    def _pointer(self, row: Any, column: Any, lanes: int) -> Any:
        builder = self._builder
        at = builder.add(builder.mul(row, self.stride), column)
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
        nothing = ir.Constant(self.kind, ir.Undefined)
        single = self._builder.insert_element(nothing, self.load(row, column), index(0))
        return self._builder.shuffle_vector(single, nothing, mask([0] * LANES))


def index(number: int) -> Any:
    """Return a lane's number as an int32 constant of machine code."""
    return ir.Constant(ir.IntType(32), number)


def mask(lanes: Sequence[int]) -> Any:
    """Return a shuffle mask, the lanes to take from two vectors; lanes of the second follow those of the first."""
    return ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), [index(lane) for lane in lanes])


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute ab + c with one rounding, lane by lane."""
    letter = "f32" if isinstance(a.type.element, ir.FloatType) else "f64"
    kind = ir.FunctionType(a.type, [a.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}{letter}")
    return builder.call(function, [a, b, c])


def fold(builder: Any, first: Any, second: Any) -> Any:
    """Add neighbouring lanes: in each group of four lanes, first two sums of `first`, then two of `second`."""
    quarters = range(0, LANES, 4)
    even = [lane for q in quarters for lane in (q, q + 2, LANES + q, LANES + q + 2)]
    return builder.fadd(
        builder.shuffle_vector(first, second, mask(even)),
        builder.shuffle_vector(first, second, mask([lane + 1 for lane in even])),
    )


def halves(builder: Any, vector: Any) -> Any:
    """Return the sum of a vector's lower and upper half, a vector of half the length."""
    half = vector.type.count // 2
    low, high = mask(range(half)), mask(range(half, 2 * half))
    return builder.fadd(builder.shuffle_vector(vector, vector, low), builder.shuffle_vector(vector, vector, high))


def four_sums(builder: Any, four: Sequence[Any]) -> Any:
    """Sum the lanes of four vectors into a vector of four sums."""
    folded = fold(builder, fold(builder, four[0], four[1]), fold(builder, four[2], four[3]))
    return halves(builder, halves(builder, folded))


def one_sum(builder: Any, vector: Any) -> Any:
    """Sum the lanes of one vector, in the order of `four_sums`."""
    return builder.extract_element(four_sums(builder, [vector] * 4), index(0))


def accumulators(builder: Any, kind: Any, count: int) -> list[Any]:
    """Allocate vectors of sums, set to zero; the compiler keeps them in registers."""
    places = [cgutils.alloca_once(builder, kind) for _ in range(count)]
    for place in places:
        builder.store(ir.Constant(kind, [0.0] * LANES), place)
    return places
