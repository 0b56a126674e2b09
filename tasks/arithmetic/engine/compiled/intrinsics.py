"""Operations on single numbers that Python lacks, as instructions of the CPU and of CUDA.

NumPy functions don't compile in a CUDA kernel. None of these operations is a call or a branch, so loops around them can
be vectorised.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending
from numba.core import cgutils, types

# These have no usable types.
_cgutils: Any = cgutils
_intrinsic: Any = extending.intrinsic


@_intrinsic  # type: ignore[untyped-decorator]
def bits_of(typing: Any, x: Any) -> Any:
    """Read the bits of a float32 as an int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


@_intrinsic  # type: ignore[untyped-decorator]
def float_of(typing: Any, bits: Any) -> Any:
    """Read an int32 as the bits of a float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@_intrinsic  # type: ignore[untyped-decorator]
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute ab + c in float32 with one rounding."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


@_intrinsic  # type: ignore[untyped-decorator]
def floor(typing: Any, x: Any) -> Any:
    """Round a float32 down to an integer."""
    return types.float32(types.float32), _in_float32("llvm.floor.f32")


@_intrinsic  # type: ignore[untyped-decorator]
def root(typing: Any, x: Any) -> Any:
    """Compute the square root of a float32, correctly rounded; NaN below 0."""
    return types.float32(types.float32), _in_float32("llvm.sqrt.f32")


@_intrinsic  # type: ignore[untyped-decorator]
def where(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """Select a if the condition holds, else b; it computes both, since a branch would prevent vectorisation."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return a(types.boolean, a, a), generate


def _in_float32(name: str) -> Any:
    """Return the code generator of an intrinsic that calls LLVM's own function `name` of a float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.FloatType(), [ir.FloatType()])
        return builder.call(_cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return generate
