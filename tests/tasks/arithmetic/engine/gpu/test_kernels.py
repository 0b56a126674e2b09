"""The CUDA kernels, compiled for old and new devices, without instructions that would change the CPU's bits."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from study.records import Trial
from tasks.arithmetic.engine.gpu import device, emulated, kernels
from tasks.arithmetic.engine.gpu.arrays import Choices, GpuArrays
from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks
from tasks.arithmetic.engine.gpu.layout import new_layout
from tasks.arithmetic.engine.gpu.shape import Shape
from tests.study.builders import small_cell

# Each cell has another family of units; half of them are compiled for the oldest device.
_ALONE = {"task": "single-module", "input_size": 10, "hidden_size": None}
_CELLS: dict[str, tuple[str, dict[str, Any], tuple[int, int]]] = {
    **{model: (model, {}, (9, 0)) for model in ("NMU", "linear")},
    **{model: (model, {}, (7, 0)) for model in ("NALU", "gated-NAU-NMU")},
    "NMU, one layer": ("NMU", _ALONE, (7, 0)),
    "NAC-mul, one layer": ("NAC-mul", _ALONE | {"operation": "div"}, (9, 0)),
}
_QUICK = ("NMU", "NALU", "NMU, one layer")


def asked(cell: Any) -> tuple[Shape, Choices]:
    """Return the shape and choices that the engine compiles for a cell."""

    class Asked(EmulatedBlocks):
        def __init__(self, shape: Shape, choices: Choices, *others: Any) -> None:
            self.asked = shape, choices

    blocks: Any = GpuArrays([Trial(cell, 0)], None, Asked)._blocks
    request: tuple[Shape, Choices] = blocks.asked
    return request


@cache
def compiled(name: str) -> tuple[dict[str, str], Any]:
    """Compile a cell's kernels for a missing device, and return their PTX and their machine code."""
    model, changes, capability = _CELLS[name]
    shape, choices = asked(small_cell(model, **changes))
    ptx_by_name: dict[str, str] = {}
    to_ptx = kernels.to_ptx

    def recorded(kernel: Any, name: str, *others: Any) -> str:
        ptx_by_name[name] = to_ptx(kernel, name, *others)
        return ptx_by_name[name]

    with pytest.MonkeyPatch.context() as patch:
        current_device = SimpleNamespace(
            compute_capability=capability
        )  # numba reads the capability from the current device
        patch.setattr("numba.cuda.dispatcher.get_current_device", lambda: current_device)
        patch.setattr(kernels, "to_ptx", recorded)
        return ptx_by_name, kernels.compile_kernels(new_layout(shape), choices, capability)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in _QUICK else pytest.mark.slow) for n in _CELLS])
def test_kernels_compile_without_instructions_that_change_bits(name):
    """Kernels have no fused multiply-adds, no calls, and no float64 in training, so that bits equal the CPU's."""
    ptx_by_name, codes = compiled(name)
    assert all(len(code.code) > 0 for code in codes)
    for kernel, ptx in ptx_by_name.items():
        assert f".entry {kernel}(" in ptx
        assert not re.search(r"\b(add|sub|mul)\.f32\b", ptx), "a contraction is left to the assembler"
        assert not re.search(r"\.approx|\.ftz|\bcall\b", ptx)
    assert ".f64" not in ptx_by_name["train"]
    assert ptx_by_name["train"].count(".param .u64") == len(kernels.TRAIN_TYPES)
    assert ptx_by_name["evaluate"].count(".param .u64") == len(kernels.EVALUATE_TYPES)


def test_machine_code_is_kept_on_disk(tmp_path, monkeypatch):
    """Compiled code is found again by its key; with a read-only disk it is compiled each time."""
    codes = compiled("NMU")[1]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert device._read_cache(b"one") is None
    cached_code = device._write_cache(b"one", codes)
    assert device._read_cache(b"one") == cached_code == tuple(bytes(code.code) for code in codes)
    assert device._read_cache(b"two") is None
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert device._write_cache(b"one", codes) == cached_code
    assert device._read_cache(b"one") is None


_PHASES = {
    "load", "put", "put_subsets", "draw", "multiply", "subsets", "rows", "outer", "spread", "gather", "parts", "own",
    "second", "store",
}  # fmt: skip


def _called(node: ast.AST) -> list[str]:
    """List the phases called in a syntax tree, with "|" for each barrier and each end of a loop over threads."""
    calls: list[str] = []
    for child in ast.iter_child_nodes(node):
        calls += _called(child)
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _PHASES:
            calls.append(name)
        if name == "syncthreads":
            calls.append("|")
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id == "order":
        calls.append("|")
    return calls


def test_barriers_follow_the_emulations_loops_over_threads():
    """The kernel calls the phases in the emulation's order, with a barrier after each of its loops over threads."""

    def calls(function: Any) -> list[str]:
        module = ast.parse(inspect.getsource(function))
        inner = next(n for n in ast.walk(module) if isinstance(n, ast.FunctionDef) and n.name == "train")
        return _called(inner)

    kernel, loop = calls(kernels.new_train), calls(emulated._train)
    assert kernel.count("|") >= 10
    # Around an iteration's phases, threads use only their own numbers.
    body = slice(kernel.index("draw"), kernel.index("store"))
    assert kernel[body] == loop[loop.index("draw") : loop.index("store")]
    assert kernel[: body.start][-1] == "|"
