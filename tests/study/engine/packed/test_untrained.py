"""Scores in percent of the mean of untrained networks, the same in any pack."""

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


def test_untrained_networks_have_a_mean_score_of_100():
    """The networks that define 100 % have a mean score of 100; trained ones have less."""
    made = recipe(Scored())
    proof = prove(made)
    means = untrained_means(made, proof, ["test_loss"])
    pack = SideBySide(made, [Member(seed=2**62 + i, schedule=Schedule(learning_rate=0.01)) for i in range(100)])
    scores = scored(pack.evaluate(), made.task.scores(), means)["test_score"]
    assert scores.mean() == pytest.approx(100)
    assert scores.std() > 1
    pack.update(50)
    assert scored(pack.evaluate(), made.task.scores(), means)["test_score"].mean() < 99


def test_the_mean_depends_only_on_the_recipe():
    """A second computation has the same bits; another model has a different mean."""
    made, other = recipe(Scored()), recipe(Scored(), hidden=7)
    proof = prove(made)
    means = [untrained_means(candidate, proof, ["test_loss"])["test_loss"] for candidate in (made, made, other)]
    assert means[0] == means[1] != means[2]


def test_scores_are_not_measured_by_the_task():
    """A pack's evaluation has all declared metrics except the scores."""
    pack = SideBySide(recipe(Scored()), members(1, 2))
    assert list(pack.evaluate()) == ["validation_loss", "test_accuracy", "test_loss"]
    assert np.isfinite(pack.evaluate()["test_loss"]).all()
