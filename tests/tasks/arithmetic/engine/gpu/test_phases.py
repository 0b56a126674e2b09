"""The fused GPU engine's phases, run on the CPU: agreement with the other engines, in any order of threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numba as nb
import numpy as np
import pytest
import torch

from study.records import Cell, Trial
from study.stream.stream import Purpose, inputs
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.engine.compiled.formulas import sparsity_strength_in_float32
from tasks.arithmetic.engine.cpu.arrays import CpuArrays
from tasks.arithmetic.engine.gpu.arrays import GpuArrays, round_keys
from tasks.arithmetic.engine.gpu.draw import BlockStream, new_draw
from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks
from tasks.arithmetic.engine.gpu.layout import Layout, new_layout
from tasks.arithmetic.engine.gpu.shape import Shape
from tasks.arithmetic.engine.shared.update_rule import new_update_rule
from tasks.arithmetic.engine.torch.step import sparsity_strengths
from tests.study.builders import small_cell

ONE_LAYER: dict[str, Any] = {"task": "single-module", "hidden_size": None}
# Every family of first and second layers and every kind of weight; two passes over a batch, and slices of a row.
# The default sizes are those of the contract of all engines, and are compiled once.
CELLS: dict[str, dict[str, Any]] = {
    "NMU": {"input_size": 100, "batch_size": 128, "hidden_size": 2},
    "NMU, hidden 10": {"input_size": 37, "batch_size": 70, "hidden_size": 10},
    "NALU": {},
    "NALU-separate": {},
    "gated-NAU-NMU": {},
    "NAC-mul-sigma": {},
    "linear": {},
    "SELU": {},
    "NMU, one layer": ONE_LAYER | {"input_size": 10},
    "NMU, one layer of 37": ONE_LAYER | {"input_size": 37},
    "NAC-mul, one layer": ONE_LAYER | {"input_size": 10, "operation": "div"},
    "NALU, one layer": ONE_LAYER | {"input_size": 10},
    "NAU, one layer": ONE_LAYER | {"input_size": 10, "operation": "add"},
}


def cell_of(name: str) -> Cell:
    changes = dict(CELLS[name])
    if changes.get("input_size", 4) != 4 and "task" not in changes:
        changes |= {"task": "arithmetic", "subset_ratio": 0.25, "overlap_ratio": 0.5}
    built: Cell = small_cell(name.split(",")[0], **changes)
    return built


# Compiling a shape takes twelve seconds: `make test` has each family of a first layer, and two passes over a batch.
_COMPILED_FIRST = {
    "NMU, hidden 10", "NALU-separate", "gated-NAU-NMU", "NAC-mul-sigma", "linear", "NMU, one layer",
    "NAC-mul, one layer",
}  # fmt: skip


@pytest.fixture(
    params=[pytest.param(name, marks=() if name in _COMPILED_FIRST else pytest.mark.slow) for name in CELLS]
)
def cell(request: pytest.FixtureRequest) -> Cell:
    """Return a cell of each kind in turn."""
    return cell_of(request.param)


def test_an_update_is_that_of_the_fused_engine(cell):
    """Evaluation, gradient and update agree with those of the fused CPU engine up to the last bits."""
    trials = [Trial(cell, seed) for seed in range(3)]
    gpu_arrays, cpu_arrays, indices = GpuArrays(trials, None, EmulatedBlocks), CpuArrays(trials), np.arange(3)
    metrics = gpu_arrays.evaluate(indices)()
    assert not metrics.pop("has_nan").any()
    for name, value in cpu_arrays.evaluate(indices).items():
        np.testing.assert_allclose(metrics[name], value, rtol=2e-6, err_msg=name)
    gpu_arrays.update(indices, 20, 1)
    cpu_arrays.update(indices, 20, 1)
    for name, value in cpu_arrays.state().items():
        largest = float(np.abs(value).max())
        np.testing.assert_allclose(gpu_arrays.state()[name], value, rtol=0, atol=2e-4 * largest, err_msg=name)


def test_the_order_of_threads_is_of_no_consequence(cell):
    """Threads in reverse order give the same bits, since no phase reads other threads' writes of the same phase."""
    trials, indices, states = [Trial(cell, seed) for seed in range(2)], np.arange(2), []
    for backwards in (False, True):
        arrays = GpuArrays(trials, None, partial(EmulatedBlocks, backwards=backwards))
        arrays.update(indices, 0, 25)
        states.append(arrays.state() | arrays.evaluate(indices)())
    for name, value in states[0].items():
        assert value.tobytes() == states[1][name].tobytes(), name


@pytest.mark.parametrize("ranges", [((1.1, 1.2),), ((-2.0, -1.0), (1.0, 2.0))])
def test_inputs_are_the_bits_of_the_stream(ranges):
    """Drawn rows have the portable stream's bits, also with 64-bit seeds; rows past the end repeat the first row."""
    cell = small_cell(
        "NALU", task="arithmetic", subset_ratio=0.25, overlap_ratio=0.5, input_size=37, batch_size=70,
        interpolation_range=ranges,
    )  # fmt: skip
    seed, iteration = (123 << 32) + 7, 4_000_000_000
    low, width = [ranges[0][0], ranges[-1][0]], ranges[0][1] - ranges[0][0]
    interval = torch.tensor([low], dtype=torch.float32), torch.tensor([width], dtype=torch.float32)
    expected = inputs(torch.tensor([seed]), *interval, 40, 70, iteration, Purpose.TRAIN)[0].numpy().T
    layout, has_two_intervals = _layout_of(cell), len(ranges) > 1
    for trials in (1, 3):
        passes = [
            _drawn(layout, seed, np.float32(low), np.float32(width), iteration, turn, has_two_intervals, trials)
            for turn in range(layout.passes)
        ]
        rows = np.concatenate(passes)
        assert rows[:70].tobytes() == expected.tobytes()
        assert (rows[70:] == expected[0]).all()


def _layout_of(cell: Cell) -> Layout:
    class Asked(EmulatedBlocks):
        def __init__(self, shape: Shape, *others: Any) -> None:
            self.layout = new_layout(shape)

    blocks: Any = GpuArrays([Trial(cell, 0)], None, Asked)._blocks
    layout: Layout = blocks.layout
    return layout


def _drawn(
    layout: Layout,
    seed: int,
    low: Any,
    width: np.float32,
    iteration: int,
    turn: int,
    has_two_intervals: bool,
    trials: int,
) -> np.ndarray:
    """Run the drawing phase for all threads, and return the inputs, [rows, features]."""
    draw, threads = new_draw(layout), layout.threads

    @nb.njit(error_model="numpy")  # type: ignore[untyped-decorator]
    def run(x, turn, iteration, stream, trials):  # type: ignore[no-untyped-def]
        for b in range(trials * threads):
            draw(np.uint64(b), x, turn, iteration, stream, np.uint64(trials))

    keys = round_keys(np.array([seed], np.uint64))[0]
    x = np.zeros(layout.size(trials), np.float32)
    run(
        x,
        turn,
        iteration,
        BlockStream(keys[0], keys[1], low[0], low[1], width * np.float32(2.0**-24), has_two_intervals),
        trials,
    )
    inputs = x[layout.at_inputs : layout.at_inputs + layout.plane]
    return inputs.reshape(layout.rows, layout.stride)[:, : layout.features]


@pytest.mark.parametrize("scaling", ["linear", "exponential"])
def test_the_schedule_is_that_of_the_other_engines(scaling):
    """λ is 0 up to its start, exact from its end on, and equal up to float32's rounding in between."""
    linear = scaling == "linear"
    changes = {"sparsity_start": 1_000_003, "sparsity_end": 2_000_000} if linear else {}
    cell = small_cell(sparsity_scaling=scaling, **{"sparsity_start": None, "sparsity_end": None, **changes})
    start, length = np.uint64(1_000_003), np.float32(1 / 999_997)

    @nb.njit  # type: ignore[untyped-decorator]
    def strength(iteration, exponential):  # type: ignore[no-untyped-def]
        return sparsity_strength_in_float32(np.uint64(iteration), start, length, np.float32(10), exponential)

    rule = new_update_rule([typed_cell(cell)], {})
    for iteration in (0, 1, 1_000_003, 1_000_004, 1_500_000, 2_000_000, 2_000_001, 4_999_999):
        np.testing.assert_allclose(
            strength(iteration, not linear), sparsity_strengths(rule, iteration)[0], rtol=3e-7, atol=1e-12
        )
    if linear:
        assert strength(1_000_003, False) == 0
        assert strength(2_000_001, False) == 10
