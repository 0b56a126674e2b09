"""Compilation of functions with a cache on disk, renewed when any of their sources changes.

No flag lets the compiler assume finite numbers or reorder a sum. Compiled functions don't allocate: all arrays come
from Python. Otherwise each call would count references to its arrays atomically, which costs more than the arithmetic
of a small network.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba as nb

import study.stream.stream
import study.stream.stream_simd
from study.stream.compile import Decorator, IntoLibrary, Library, cached, digest

_HERE = Path(__file__).parent
SOURCES = (
    *sorted(_HERE.glob("*.py")),
    *sorted((_HERE.parent / "cpu").glob("*.py")),
    Path(study.stream.stream.__file__),
    Path(study.stream.stream_simd.__file__),
)
"""The source files of compiled functions."""

_STAMP = digest(SOURCES)

HAS_AVX512 = bool(llvm.get_host_cpu_features().get("avx512f"))
"""True if registers hold sixteen float32; it affects only the speed."""


class _PartLibrary(Library):  # type: ignore[misc]
    """The unoptimised machine code of a part."""

    def _optimize_final_module(self) -> None:
        pass


class _PartCompiler(IntoLibrary):
    """Compiler that leaves optimisation to the functions that Python calls.

    A function is linked into each of its callers and optimised with it, again at every level of nesting. Optimising an
    inner part by itself as well would add a third to the compile time without effect.
    """

    library_class = _PartLibrary


class _ApartCompiler(_PartCompiler):
    """Compiler of functions whose array arguments don't overlap.

    The compiler doesn't know this, so it checks for overlap before each loop to decide whether the loop may be
    vectorised. It doesn't vectorise a loop that needs many checks, such as over matrices instead of rows.
    """

    def __init__(self, typing: Any, target: Any, library: Any, arguments: Any, returned: Any, flags: Any, *more: Any):
        flags = flags.copy()
        flags.noalias = True
        super().__init__(typing, target, library, arguments, returned, flags, *more)


_cached = partial(cached, _STAMP, error_model="numpy", _nrt=False)
compiled = _cached(no_cfunc_wrapper=True, pipeline_class=_PartCompiler)
"""Compile a function that Python may also call."""

# A wrapper for Python takes as long to compile as the function itself.
_part = partial(_cached, no_cfunc_wrapper=True, no_cpython_wrapper=True)
internal = _part(pipeline_class=_PartCompiler)
"""Compile a function that only compiled code calls."""

entry = _cached(no_cfunc_wrapper=True, nogil=True)
"""Compile a function that Python calls and that releases the GIL."""

forced = _part(forceinline=True, pipeline_class=_PartCompiler)
"""Compile a function of numbers and inline it into its calling loop, which can then be vectorised."""

apart = _part(forceinline=True, pipeline_class=_ApartCompiler)
"""Compile a function with arrays that don't overlap and inline it into its caller."""

_njit: Any = nb.njit
inlined: Decorator = _njit(error_model="numpy", _nrt=False, inline="always")
"""Inline a function's source into its caller before compilation."""
