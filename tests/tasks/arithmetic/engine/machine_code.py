"""A program that prints the machine code of a compiled function's callee."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from study.stream.compile import is_on_disk
from tasks.arithmetic.engine.compiled.cache import entry, internal

_BYTES = 128


@intrinsic
def _own_address(typing_context: Any) -> Any:
    """Return the address of the enclosing function, without inlining it into its callers."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return builder.ptrtoint(builder.function, ir.IntType(64))

    return types.uint64(), lower


@internal
def part(x):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        x[i] = x[i] * x[i] - x[i]
    return _own_address()


@entry
def whole(x):  # type: ignore[no-untyped-def]
    return part(x)


def main() -> None:
    """Print if the function was on disk, if it was loaded or compiled, and its code with addresses set to 0."""
    was_on_disk = is_on_disk(whole)
    address = whole(np.ones(1, np.float32))
    code = ctypes.string_at(address, _BYTES).replace(address.to_bytes(8, "little"), bytes(8))
    print("kept" if was_on_disk else "new", "loaded" if whole.stats.cache_hits else "compiled", code.hex())


if __name__ == "__main__":
    main()
