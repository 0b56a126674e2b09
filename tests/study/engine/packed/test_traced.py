"""Recorded updates have the bits of those that Python computes anew, and what can't be recorded isn't."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from study.engine.packed import members as members_module
from study.engine.packed.members import PackLayout, SideBySide
from study.engine.packed.recipe import L1, Recipe, Sparsity
from study.engine.packed.traced import recorded
from study.stream.stream import Purpose
from study.stream.trial_stream import Draw, Dropout
from tests.study.engine.packed.spirals import Spirals, members, recipe
from units import UNITS


def units(*, first: str, second: str) -> nn.Module:
    return nn.Sequential(UNITS[first](2, 3), UNITS[second](3, 2))


@dataclass(frozen=True)
class Fixed(Spirals):
    """Spirals in which each trial has points of its own."""

    def setup(self, stream):
        return stream.normal(self.batch_size, 2)

    def draw(self, stream, *setup):
        x, label = super().draw(stream)
        return x + 0.1 * setup[0], label


RECIPES = {
    "mlp": recipe(),
    "dropout": recipe(middle=Dropout),
    "setup": recipe(Fixed()),
    "NAU, NMU": Recipe(
        task=Spirals(),
        model=units,
        hyperparameters={"first": "NAU", "second": "NMU"},
        sparsity=Sparsity(0.1, start=1, end=4),
    ),
    "L1": Recipe(task=Spirals(), model=units, hyperparameters={"first": "RealNPU", "second": "NAU"}, l1=L1(0.01, 0.1)),
    "NALU": recipe(model=units, first="NALU", second="NALU"),
    "aligned": recipe(hidden=5),
}


def trained(pack: SideBySide, updates: int) -> dict[str, np.ndarray]:
    pack.update(updates)
    return pack.evaluate() | pack.state()


@pytest.mark.parametrize("name", RECIPES)
def test_bits_are_those_of_a_pack_that_is_not_recorded(name, monkeypatch):
    """After 12 updates, of which the last 9 are recorded, all bits are those of 12 updates that aren't."""
    layout = PackLayout(is_aligned=name == "aligned")
    eager = trained(SideBySide(RECIPES[name], members(1, 2, 3), layout=layout), 12)
    monkeypatch.setattr(members_module, "_RECORDED_AFTER", 3)
    pack = SideBySide(RECIPES[name], members(1, 2, 3), layout=layout)
    repeated = trained(pack, 12)
    assert pack.is_recorded
    for key, array in eager.items():
        assert array.tobytes() == repeated[key].tobytes(), key


def test_what_asks_for_numbers_is_not_recorded(monkeypatch):
    """A computation that reads a tensor's value can't be repeated for others, and goes on as it is."""
    assert recorded(lambda x: {"y": x * float(x.sum())}, {"y": 2 * torch.ones(2)}, torch.ones(2)) is None
    monkeypatch.setattr(members_module, "recorded", lambda *_: None)
    monkeypatch.setattr(members_module, "_RECORDED_AFTER", 1)
    pack = SideBySide(recipe(), members(1, 2))
    pack.update(3)
    assert not pack.is_recorded


def test_what_repeats_with_other_bits_is_not_recorded():
    """A computation that gives something else each time isn't taken for its recording."""
    calls = []

    def moody(x):
        calls.append(x)
        return {"y": x + len(calls)}

    assert recorded(moody, moody(torch.ones(2)), torch.ones(2)) is None
    assert recorded(lambda x: {"y": x + 1}, {"y": 2 * torch.ones(2)}, torch.ones(2)) is not None
    assert recorded(lambda x: {"y": x + 1}, {"y": 3 * torch.ones(2)}, torch.ones(2)) is None


def test_every_draw_is_made_again(monkeypatch):
    """Recorded or not, the same numbers are drawn in each iteration, of data and of noise."""
    monkeypatch.setattr(members_module, "_RECORDED_AFTER", 0)
    pack = SideBySide(RECIPES["dropout"], members(1, 2))
    pack.update()
    rows = Spirals.batch_size
    assert pack.draws == {
        Purpose.TRAIN: [Draw("integers", (rows,), 2), Draw("uniform", (rows,)), Draw("normal", (rows, 2))],
        Purpose.NOISE: [Draw("uniform", (rows, 4))],
    }
