"""The counting task in packs, and exact accumulators that learn to read from the ends of sequences."""

from __future__ import annotations

import pytest

from study.engine.packed.members import SideBySide
from study.engine.packed.optimizers import Schedule
from study.engine.packed.proof import prove
from study.engine.packed.recipe import Member, Recipe
from study.plugins.packed_tasks import builder_of
from tasks.sequential.counting import Counting

COUNT, SUM = Counting(evaluation_rows=20), Counting(operation="sum", evaluation_rows=20)


@pytest.mark.parametrize("task", [pytest.param(COUNT, id="count"), pytest.param(SUM, id="sum", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["NAC-add", "NAU", "NALU", "LSTM", "GRU", "RNN-tanh", "RNN-ReLU", "reference"])
def test_trials_train_in_packs(task: Counting, name: str) -> None:
    """The proof shows that a trial's bits depend neither on its pack nor on a resume."""
    proof = prove(Recipe(task=task, model=builder_of(task, name)))
    assert proof.packs, proof.reason


def test_an_accumulator_learns_digits() -> None:
    """300 updates on final counts teach an accumulator most digits of unseen images."""
    recipe = Recipe(task=COUNT, model=builder_of(COUNT, "reference"))
    pack = SideBySide(recipe, [Member(seed=seed, schedule=Schedule(learning_rate=3e-3)) for seed in range(3)])
    assert (pack.evaluate()["test_accuracy"] < 0.5).all()
    pack.update(300)
    assert (pack.evaluate()["test_accuracy"] > 0.7).all()
