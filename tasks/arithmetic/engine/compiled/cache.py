"""How compiled functions are compiled: once, cached on disk, and again when any of their sources changes.

No flag lets the compiler assume that numbers are finite or reorder a sum. Compiled functions own no memory, all
arrays come from Python: otherwise each call would count references to each of its arrays, atomically, which costs
more than the arithmetic of a small network.
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
"""The files that compiled functions are made of."""

_STAMP = digest(SOURCES)

HAS_AVX512 = bool(llvm.get_host_cpu_features().get("avx512f"))
"""Whether registers hold sixteen float32; only how fast it goes depends on it."""


class _PartLibrary(Library):  # type: ignore[misc]
    """A part's machine code, as it was lowered."""

    def _optimize_final_module(self) -> None:
        pass


class _PartCompiler(IntoLibrary):
    """Leaves optimisation to the functions that Python enters by.

    A function is linked into each that calls it and optimised with it, again at every level of the nesting. To optimise
    a part by itself too, which only others call, would be useless and take a third of the time of compiling.
    """

    library_class = _PartLibrary


class _ApartCompiler(_PartCompiler):
    """Tells the compiler that arrays of a function don't overlap.

    It can't know, and asks before each loop whether they do: views of one array, that is, whether the loop may be
    vectorised. If it asks of too much at once, such as of whole matrices instead of rows, it isn't.
    """

    def __init__(self, typing: Any, target: Any, library: Any, arguments: Any, returned: Any, flags: Any, *rest: Any):
        flags = flags.copy()
        flags.noalias = True
        super().__init__(typing, target, library, arguments, returned, flags, *rest)


_cached = partial(cached, _STAMP, error_model="numpy", _nrt=False)
compiled = _cached(no_cfunc_wrapper=True, pipeline_class=_PartCompiler)
"""Compile a function that Python may call too."""

# A wrapper for Python takes as long to compile as the function.
_part = partial(_cached, no_cfunc_wrapper=True, no_cpython_wrapper=True)
internal = _part(pipeline_class=_PartCompiler)
"""Compile a function that only compiled code calls."""

entry = _cached(no_cfunc_wrapper=True, nogil=True)
"""Compile a function that Python calls, and that lets other threads of Python run."""

forced = _part(forceinline=True, pipeline_class=_PartCompiler)
"""Compile a function of numbers that becomes part of the loop that calls it, which can then be vectorised."""

apart = _part(forceinline=True, pipeline_class=_ApartCompiler)
"""Compile a function whose arrays don't overlap, which becomes part of its caller."""

_njit: Any = nb.njit
inlined: Decorator = _njit(error_model="numpy", _nrt=False, inline="always")
"""Make a function's code part of its caller's, before it is compiled."""
