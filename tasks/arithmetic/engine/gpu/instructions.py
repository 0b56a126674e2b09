"""Operations of kernels beyond arithmetic, equivalent on CPU and GPU; the only file with PTX."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import core, extending
from numba.core import types

# These have no usable types.
cgutils: Any = core.cgutils
_intrinsic: Any = extending.intrinsic
_tuple_of: Any = types.UniTuple
_pointer_to: Any = types.CPointer

_FLOAT, _WORD, _DOUBLE = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_FOUR = ir.VectorType(_FLOAT, 4)
# One instruction; LLVM would generate a 64-bit product and an addition of zero.
_MUL_WIDE = "{\n .reg .u64 p;\n mul.wide.u32 p, $2, $3;\n mov.b64 {$0, $1}, p;\n}"


def _on_gpu(builder: Any) -> bool:
    return "nvptx" in str(builder.module.triple)


@_intrinsic  # type: ignore[untyped-decorator]
def product(typing: Any, word: Any, factor: Any) -> Any:
    """Multiply two uint32 and return the lower and the upper half of the product, uint32 each."""
    signature = _tuple_of(types.uint32, 2)(types.uint32, types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _on_gpu(builder):
            kind = ir.FunctionType(ir.LiteralStructType([_WORD, _WORD]), [_WORD, _WORD])
            asm = ir.InlineAsm(kind, _MUL_WIDE, "=r,=r,r,r", side_effect=False)
            pair = builder.call(asm, arguments)
            halves = [builder.extract_value(pair, k) for k in range(2)]
        else:
            wide = builder.mul(*(builder.zext(argument, _DOUBLE) for argument in arguments))
            halves = [builder.trunc(wide, _WORD), builder.trunc(builder.lshr(wide, ir.Constant(_DOUBLE, 32)), _WORD)]
        return context.make_tuple(builder, signature.return_type, halves)

    return signature, generate


def _four(context: Any, builder: Any, kind: Any, numbers: Any, at: Any) -> tuple[Any, int]:
    """Return a pointer to four neighbours, and its known alignment in bytes."""
    data = numbers
    if isinstance(kind, types.Array):
        data = cgutils.create_struct_proxy(kind)(context, builder, value=numbers).data
    pointer = builder.bitcast(builder.gep(data, [at]), _FOUR.as_pointer())
    return pointer, 16 if _on_gpu(builder) else 4


@_intrinsic  # type: ignore[untyped-decorator]
def from_place(typing: Any, numbers: Any, at: Any) -> Any:
    """Return a pointer into a float32 array at a uint64 place; a slice would check its end at each use."""
    signature = _pointer_to(types.float32)(numbers, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
        return builder.gep(data, [arguments[1]])

    return signature, generate


@_intrinsic  # type: ignore[untyped-decorator]
def load4(typing: Any, numbers: Any, at: Any) -> Any:
    """Load four neighbours of a float32 array or pointer at a uint64 place that is a multiple of 4."""
    signature = _tuple_of(types.float32, 4)(numbers, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, align = _four(context, builder, signature.args[0], *arguments)
        four = builder.load(pointer, align=align)
        items = [builder.extract_element(four, ir.Constant(_WORD, k)) for k in range(4)]
        return context.make_tuple(builder, signature.return_type, items)

    return signature, generate


@_intrinsic  # type: ignore[untyped-decorator]
def store4(typing: Any, numbers: Any, at: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Store four float32 neighbours into an array, or at a pointer, at a uint64 place that is a multiple of 4."""
    signature = types.void(numbers, types.uint64, *[types.float32] * 4)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, align = _four(context, builder, signature.args[0], *arguments[:2])
        four = ir.Constant(_FOUR, ir.Undefined)
        for k in range(4):
            four = builder.insert_element(four, arguments[2 + k], ir.Constant(_WORD, k))
        builder.store(four, pointer, align=align)
        return context.get_dummy_value()

    return signature, generate
