"""Trials of one seed in one block: each has the bits of a trial alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.records import Cell, Trial
from tasks.arithmetic.engine.gpu.arrays import GpuArrays
from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks
from tasks.arithmetic.engine.gpu.groups import deal, same_rows
from tests.tasks.arithmetic.engine.gpu.test_phases import CELLS, cell_of

# Cells whose shape `make test` compiles for other tests, too.
_QUICK = {"NMU, hidden 10", "gated-NAU-NMU"}

Bits = dict[str, npt.NDArray[Any]]


def cells_of(name: str) -> list[Cell]:
    """Return five cells of one shape with different training; the last cell has other rows."""
    cell = cell_of(name).replace(sparsity_start=5, sparsity_end=15)
    return [
        cell, cell.replace(sparsity_strength=0.0), cell.replace(learning_rate=0.01), cell.replace(sparsity_end=25),
        cell.replace(interpolation_range=((1.1, 1.2),)),
    ]  # fmt: skip


def trained(trials: Sequence[Trial], most: int, *, backwards: bool = False) -> Bits:
    """Train trials in blocks of at most `most`; the first trial stops after 12 of 20 updates."""
    arrays = GpuArrays(trials, None, partial(EmulatedBlocks, most=most, backwards=backwards))
    indices = np.arange(len(trials))
    arrays.update(indices, 0, 12)
    arrays.update(indices[1:], 12, 8)
    return arrays.state() | arrays.evaluate(indices)()


def assert_same(actual: Bits, expected: Bits, order: Sequence[int]) -> None:
    """Compare bits: trial number k of the first pack is number order[k] of the second."""
    for name, value in actual.items():
        assert value.tobytes() == expected[name][list(order)].tobytes(), name


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in _QUICK else pytest.mark.slow) for n in CELLS])
def test_a_trial_has_the_same_bits_in_a_block_and_alone(name):
    """Trials of five cells and three seeds have the same bits in blocks of several trials as alone."""
    trials = [Trial(cell, seed) for seed in range(3) for cell in cells_of(name)]
    alone = trained(trials, 1)
    assert_same(trained(trials, 4), alone, range(len(trials)))
    order = [0, *np.random.default_rng(7).permutation(np.arange(1, len(trials))).tolist()]
    assert_same(trained([trials[k] for k in order], 3, backwards=True), alone, order)


def test_nan_in_one_trial_of_a_block_touches_no_other():
    """A trial with NaN weights doesn't change the trials that share its rows."""
    trials = [Trial(cell, 3) for cell in cells_of("NMU, hidden 10")[:4]]
    indices, states = np.arange(4), []
    for poisoned in (False, True):
        arrays = GpuArrays(trials, None, EmulatedBlocks)
        state = arrays.state()
        if poisoned:
            for array in state.values():
                array[1] = np.nan
        arrays = GpuArrays(trials, state, EmulatedBlocks)
        arrays.update(indices, 0, 10)
        states.append(arrays.state() | arrays.evaluate(indices)())
    assert states[1]["has_nan"].tolist() == [0, 1, 0, 0]
    for name in states[0].keys() - {"has_nan"}:
        assert states[0][name][[0, 2, 3]].tobytes() == states[1][name][[0, 2, 3]].tobytes(), name


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(1, 5), st.randoms())
def test_each_trial_is_in_one_block_with_its_rows(rows, most, random):
    """Each trial is in one block; blocks have equal rows and at most `most` trials, and are as few as possible."""
    row_numbers = np.array(rows, np.int64)
    indices = np.array(random.sample(range(len(rows)), random.randint(1, len(rows))), np.uint64)
    dealt = deal(indices, row_numbers, most)
    blocks = [block.tolist() for array in dealt for block in array]
    assert sorted(place for block in blocks for place in block) == sorted(indices.tolist())
    assert all(len(block) <= most and len({rows[place] for place in block}) == 1 for block in blocks)
    counts = np.unique(row_numbers[indices.astype(np.int64)], return_counts=True)[1]
    assert len(blocks) == sum(-(-count // most) for count in counts.tolist())
    assert len({array.shape[1] for array in dealt}) == len(dealt) <= most


def test_rows_are_the_same_for_equal_seeds_and_ranges_only():
    """Trials have different rows if their ranges or any bits of their seeds differ."""
    low, two_intervals = ((1.0, 2.0),), ((-2.0, -1.0), (1.0, 2.0))
    seeds = np.array([1, 1, 1, 1 + (1 << 32)], np.uint64)
    assert same_rows(seeds, [low, low, two_intervals, low]).tolist() == [0, 0, 1, 2]
