"""A score is what it says: in percent of the mean of untrained networks, the same in any pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from study.engine.packed.members import SideBySide
from study.engine.packed.optimizers import Schedule
from study.engine.packed.proof import prove
from study.engine.packed.recipe import Member
from study.engine.packed.untrained import scored, untrained_means
from study.interface.declarations import Metric
from tests.study.engine.packed.spirals import Spirals, members, recipe


@dataclass(frozen=True)
class Scored(Spirals):
    metrics: ClassVar[Mapping[str, Metric]] = {**Spirals.metrics, "test_loss": Metric(), "test_score": Metric()}

    def scores(self):
        return {"test_score": "test_loss"}


def test_untrained_networks_score_a_hundred_on_average():
    """The mean of the scores of the very networks that make the 100 % is 100; a trained one has less."""
    made = recipe(Scored())
    proof = prove(made)
    means = untrained_means(made, proof, ["test_loss"])
    some = SideBySide(made, [Member(seed=2**62 + i, schedule=Schedule(learning_rate=0.01)) for i in range(100)])
    scores = scored(some.evaluate(), made.task.scores(), means)["test_score"]
    assert scores.mean() == pytest.approx(100)
    assert scores.std() > 1
    some.update(50)
    assert scored(some.evaluate(), made.task.scores(), means)["test_score"].mean() < 99


def test_the_mean_is_that_of_the_recipe_alone():
    """Computed again, it has the same bits; another model has another."""
    made, other = recipe(Scored()), recipe(Scored(), hidden=7)
    proof = prove(made)
    means = [untrained_means(one, proof, ["test_loss"])["test_loss"] for one in (made, made, other)]
    assert means[0] == means[1] != means[2]


def test_a_score_is_no_metric_that_the_task_measures():
    """Members leave scores out, and know all other metrics."""
    pack = SideBySide(recipe(Scored()), members(1, 2))
    assert list(pack.evaluate()) == ["validation_loss", "test_accuracy", "test_loss"]
    assert np.isfinite(pack.evaluate()["test_loss"]).all()
