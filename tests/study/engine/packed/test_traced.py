"""Recorded updates: they have the bits of eager ones, and unrecordable computations stay eager."""

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
    """Spirals shifted by random offsets of each trial."""

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
def test_recorded_updates_have_the_bits_of_eager_ones(name, monkeypatch):
    """12 updates, the last 9 of them recorded, have the bits of 12 eager updates."""
    layout = PackLayout(is_aligned=name == "aligned")
    eager = trained(SideBySide(RECIPES[name], members(1, 2, 3), layout=layout), 12)
    monkeypatch.setattr(members_module, "_RECORDED_AFTER", 3)
    pack = SideBySide(RECIPES[name], members(1, 2, 3), layout=layout)
    recorded_state = trained(pack, 12)
    assert pack.is_recorded
    for key, array in eager.items():
        assert array.tobytes() == recorded_state[key].tobytes(), key


def test_reading_a_value_prevents_recording(monkeypatch):
    """A computation that reads a tensor's value isn't recorded, and runs eagerly."""
    assert recorded(lambda x: {"y": x * float(x.sum())}, {"y": 2 * torch.ones(2)}, torch.ones(2)) is None
    monkeypatch.setattr(members_module, "recorded", lambda *_: None)
    monkeypatch.setattr(members_module, "_RECORDED_AFTER", 1)
    pack = SideBySide(recipe(), members(1, 2))
    pack.update(3)
    assert not pack.is_recorded


def test_unrepeatable_computations_are_not_recorded():
    """A computation whose values differ from its recording's isn't recorded."""
    calls = []

    def moody(x):
        calls.append(x)
        return {"y": x + len(calls)}

    assert recorded(moody, moody(torch.ones(2)), torch.ones(2)) is None
    assert recorded(lambda x: {"y": x + 1}, {"y": 2 * torch.ones(2)}, torch.ones(2)) is not None
    assert recorded(lambda x: {"y": x + 1}, {"y": 3 * torch.ones(2)}, torch.ones(2)) is None


def test_draws_are_repeated(monkeypatch):
    """Recorded or not, each iteration draws the same numbers, of data and of noise."""
    monkeypatch.setattr(members_module, "_RECORDED_AFTER", 0)
    pack = SideBySide(RECIPES["dropout"], members(1, 2))
    pack.update()
    rows = Spirals.batch_size
    assert pack.draws == {
        Purpose.TRAIN: [Draw("integers", (rows,), 2), Draw("uniform", (rows,)), Draw("normal", (rows, 2))],
        Purpose.NOISE: [Draw("uniform", (rows, 4))],
    }
