"""Batches shared by trials: drawn once, with the bits of each trial alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from study.records import Cell, Pack, Trial
from tasks.arithmetic import MODELS
from tasks.arithmetic.cell import task_of, typed_cell
from tasks.arithmetic.engine.shared import evaluation_rows
from tasks.arithmetic.engine.shared.task import masks_of
from tasks.arithmetic.engine.torch.batches import Batches
from tests.engines import ENGINES
from tests.study.builders import small_cell

RATES = [small_cell(learning_rate=rate) for rate in (1e-3, 2e-3, 3e-3)]
FAR = small_cell(interpolation_range=((-2.0, -1.0), (1.0, 2.0)))
# Trials, and the number of draws in an iteration.
PACKS = {
    "of one seed": ([Trial(cell, 5) for cell in RATES], 1),
    "cell by cell": ([Trial(cell, seed) for cell in RATES for seed in (0, 1, 5)], 3),
    "seed by seed": ([Trial(cell, seed) for seed in (5, 0, 1) for cell in RATES], 3),
    "of two ranges": ([Trial(cell, seed) for seed in (5, 0, 1) for cell in (*RATES, FAR)], 6),
    "with few to share": ([Trial(cell, seed) for cell in RATES[:2] for seed in (0, 1)] + [Trial(FAR, 0)], 5),
    "of one cell": ([Trial(RATES[0], seed) for seed in range(4)], 4),
}


def new_batches(trials: Sequence[Trial]) -> Batches:
    cells = [typed_cell(trial.cell) for trial in trials]
    seeds, task = np.array([trial.seed for trial in trials], np.uint64), task_of(cells[0])
    return Batches(cells, seeds, torch.from_numpy(masks_of(task, seeds)), task)


@pytest.mark.parametrize("name", PACKS)
def test_each_trial_has_the_same_rows_as_alone(name):
    """Inputs and targets of a trial are the same bits in any pack, in every iteration."""
    trials, _ = PACKS[name]
    together, alone = new_batches(trials), [new_batches([trial]) for trial in trials]
    for iteration in (0, 1, 4_999_999):
        x, target = together.inputs(iteration), together.targets()
        assert len(x) == len(target) == len(trials)
        for k, single in enumerate(alone):
            assert torch.equal(x[k], single.inputs(iteration)[0])
            assert torch.equal(target[k], single.targets()[0])


@pytest.mark.parametrize("name", PACKS)
def test_a_seed_is_drawn_once(name, monkeypatch):
    """Trials of one seed and range draw once, if that saves at least half of the draws."""
    trials, draws = PACKS[name]
    drawn = []

    def count(out, seeds, *others):
        drawn.append(len(seeds))
        fill_inputs(out, seeds, *others)

    fill_inputs = evaluation_rows.fill_inputs
    monkeypatch.setattr(evaluation_rows, "fill_inputs", count)
    new_batches(trials).inputs(0)
    assert drawn == [draws]


def weights_of(*trials: Trial) -> list[dict[str, bytes]]:
    training = ENGINES["torch"].start(Pack(trials), device="cpu")
    while not training.done:
        training.advance(1e9)
    return [{name: array.tobytes() for name, array in weights.arrays.items()} for weights in training.finish()[2]]


@pytest.mark.parametrize("model", MODELS)
def test_sharing_changes_no_weight(model):
    """Every model's trials have the same bits alone and at any place in a pack with shared seeds."""
    cells = [small_cell(model, learning_rate=rate) for rate in (1e-3, 2e-3)]
    trials = [Trial(cell, seed) for cell in cells for seed in (0, 1, 2)]
    together = weights_of(*trials)
    assert weights_of(*reversed(trials)) == together[::-1]
    for k in (0, 4):
        assert weights_of(trials[k]) == [together[k]]


def test_remaining_trials_share_after_others_end():
    """After other trials end, the remaining trials have the same inputs as alone, shared or not."""

    def cell(rate: float) -> Cell:
        return small_cell("linear", learning_rate=rate, stop="when_decided")

    for rates in ((1e-3, 1e30), (1e-3, 1e-4, 1e30)):
        trials = [Trial(cell(rate), seed) for rate in rates for seed in (0, 1, 2)]
        for trial, weights in zip(trials, weights_of(*trials), strict=True):
            assert weights_of(trial) == [weights]
