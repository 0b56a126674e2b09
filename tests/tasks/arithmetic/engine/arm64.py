"""Machine code of compiled functions for arm64, made by LLVM's cross-compilation on any machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba as nb
from numba import types

from study.stream import stream_simd
from study.stream.compile import IntoLibrary, Library, cached
from tasks.arithmetic.engine.compiled import math
from tasks.arithmetic.engine.cpu import products

ROOT = Path(__file__).parents[4]
TRIPLE = "aarch64-unknown-linux-gnu"

_njit: Any = nb.njit
_FLOAT, _WORD, _PLACE = types.float32, types.uint32, types.int64
_VECTOR, _MATRIX = types.Array(_FLOAT, 1, "C"), types.Array(_FLOAT, 2, "C")

PRODUCTS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "multiply": (products.multiply, (_MATRIX, _MATRIX, _MATRIX, _PLACE, _PLACE)),
    "add_outer": (products.add_outer, (_MATRIX, _MATRIX, _MATRIX, _MATRIX)),
    "add_dots": (products.add_dots, (_MATRIX, _MATRIX, _MATRIX, _PLACE)),
}
"""Functions whose innermost loops are fused multiply-adds, with the types of their arguments."""

DRAW = (stream_simd.draw, (_MATRIX, _PLACE, types.uint64, _FLOAT, _FLOAT, _FLOAT, _WORD, _WORD, _PLACE))


def _over_an_array(function: Any) -> tuple[Any, tuple[Any, ...]]:
    @cached("", made_for=function.__name__, error_model="numpy", _nrt=False)
    def each(x, y):  # type: ignore[no-untyped-def]
        for k in range(len(x)):
            y[k] = function(x[k])

    return each, (_VECTOR, _VECTOR)


FORMULAS = {function.__name__: _over_an_array(function) for function in (math.exp, math.expm1, math.log, math.tanh)}
"""Loops over an array with a formula for each number."""


class Code(NamedTuple):
    """A function's optimised code, as LLVM's intermediate language and as assembly."""

    llvm: str
    assembly: str


def code_of(function: Any, arguments: Sequence[Any]) -> Code:
    """Compile a function and its callees for arm64, with numba's own optimisation passes.

    Args:
        function: a function from `study.stream.compile.cached`.
        arguments: numba's types of its arguments.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(opt=3)
    compiled: list[Code] = []

    class Arm64Library(Library):  # type: ignore[misc]
        def _optimize_final_module(self) -> None:
            # At this point all parts are linked, and vectorisation hasn't run yet.
            own_target: Any = (self._final_module, self._codegen._tm)
            text = re.sub(r"^target (triple|datalayout) = .*$", "", str(self._final_module), flags=re.MULTILINE)
            module = llvm.parse_assembly(text)
            module.triple, module.data_layout = TRIPLE, str(machine.target_data)
            for part in module.functions:
                if part.linkage == llvm.Linkage.linkonce_odr:  # otherwise inlined functions are kept
                    part.linkage = llvm.Linkage.internal
            try:
                self._final_module, self._codegen._tm = module, machine
                super()._optimize_final_module()
                compiled.append(Code(str(module), machine.emit_assembly(module)))
            finally:
                self._final_module, self._codegen._tm = own_target

    class Arm64Compiler(IntoLibrary):
        library_class = Arm64Library

    options = function.targetoptions | {
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": True,
        "pipeline_class": Arm64Compiler,
    }
    options.pop("nopython", None)
    # Compile anew, because numba has only machine code of a function loaded from disk.
    _njit(**options)(function.py_func).compile(tuple(arguments))
    return compiled[0]


def innermost_loops(assembly: str) -> list[list[str]]:
    """Return the instructions of each loop that has no inner loops."""
    lines = [line.rstrip() for line in assembly.splitlines() if line.strip() and not line.startswith("\t.")]
    place = {line.removesuffix(":"): at for at, line in enumerate(lines) if line.endswith(":")}
    ends: dict[int, int] = {}
    for at, line in enumerate(lines):
        branch = re.match(r"\t(?:b|b\.\w+|cbn?z|tbn?z)\t(?:.*, )?(\.L\w+)$", line)
        if branch and place[branch[1]] <= at:
            ends[place[branch[1]]] = at
    return [
        [line.strip() for line in lines[first : last + 1] if line.startswith("\t")]
        for first, last in ends.items()
        if not any(other != first and first <= other and end <= last for other, end in ends.items())
    ]


def calls(instructions: Sequence[str]) -> set[str]:
    """Return the names of called functions; for calls by register, the register."""
    return {line.split()[1] for line in instructions if line.startswith(("bl\t", "blr\t"))}


# A processor without x86's extensions, since these determine the tiles of products.
_PROCESS = """
import llvmlite.binding as llvm
llvm.get_host_cpu_features = llvm.FeatureMap
from tests.tasks.arithmetic.engine.arm64 import main
main()
"""


def kernels() -> dict[str, Code]:
    """Return the code of products, stream and formulas, compiled in a process without this processor's features."""
    completed = subprocess.run([sys.executable, "-c", _PROCESS], cwd=ROOT, check=True, capture_output=True, text=True)
    return {name: Code(*code) for name, code in json.loads(completed.stdout).items()}


def main() -> None:
    """Print the code of all functions as JSON."""
    functions = PRODUCTS | {"draw": DRAW} | FORMULAS
    print(json.dumps({name: code_of(*function) for name, function in functions.items()}))
