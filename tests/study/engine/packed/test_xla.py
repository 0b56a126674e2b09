"""Updates compiled by XLA: they agree with torch up to rounding, and a trial's bits don't depend on its pack."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from study.driver.own_engine import own_engine, proven, training_notices
from study.engine import engine_for
from study.engine.packed import engine as engine_module
from study.engine.packed import proof as proof_module
from study.engine.packed.engine import PackedEngine, as_layout, proof_of
from study.engine.packed.members import PackLayout, SideBySide
from study.engine.packed.optimizers import Optimizer
from study.engine.packed.proof import Proof, prove, start
from study.engine.packed.recipe import Member, Recipe
from study.engine.packed.traced import LoweringError, drawn, drawn_ahead
from study.errors import InputError
from study.interface.declarations import Metric
from study.interface.packed_family import recipe_text
from study.interface.task import Task
from study.plan.plan import make_plan
from study.records import Pack, Trial
from study.stream.stream import Purpose
from study.stream.trial_stream import Draw
from tests.study.engine.packed.spirals import members, recipe
from tests.study.engine.packed.test_engine import GRID, MLP, comparable
from tests.study.engine.packed.test_traced import RECIPES
from tests.study.lab import packed_study

lowering = pytest.importorskip("study.engine.packed.lowering", reason="JAX isn't installed")
xla = pytest.importorskip("study.engine.packed.xla", reason="JAX isn't installed")

XLA = PackLayout(multiple=16, backend="xla")


@dataclass(frozen=True)
class Patterns(Task):
    """Classification of random arrays."""

    shape: tuple[int, ...] = (1, 8, 8)
    metrics: ClassVar[Mapping[str, Metric]] = {"validation_loss": Metric()}

    def draw(self, stream):
        return stream.uniform(8, *self.shape), stream.integers(3, 8)

    def loss(self, outputs, batch):
        return nn.functional.cross_entropy(outputs, batch[1])


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 2, stride=2, dilation=1),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(24, 3),
    )


class Recurrent(nn.Module):
    """An LSTM, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.last = nn.Linear(3 + 5, 20), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = memory = x.new_zeros(len(x), 5)
        for at in range(x.shape[1]):
            enter, keep, new, leave = self.gates(torch.cat([x[:, at], state], -1)).chunk(4, -1)
            memory = keep.sigmoid() * memory + enter.sigmoid() * new.tanh()
            state = leave.sigmoid() * memory.tanh()
        output: Tensor = self.last(state)
        return output


class Attention(nn.Module):
    """A transformer block with an embedding of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(7, 8), nn.LayerNorm(8)
        self.parts, self.last = nn.Linear(8, 24), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        states = self.words((x[..., 0] * 7).long())
        heads = [part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.parts(self.norm(states)).chunk(3, -1)]
        attended = nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        output: Tensor = self.last((states + attended).mean(1))
        return output


MODELS = RECIPES | {
    "convolutions": recipe(Patterns(), convolutions),
    "LSTM": recipe(Patterns(shape=(4, 3)), Recurrent),
    # The gradient of the keys' bias is 0 but for rounding, which Adam would turn into a full step.
    "attention": Recipe(task=Patterns(shape=(4, 3)), model=Attention, optimizer=Optimizer(name="sgd")),
    **{
        name: Recipe(task=recipe().task, model=recipe().model, optimizer=Optimizer(name=name, clip_norm=0.5))
        for name in ("sgd", "momentum", "adam", "adamw", "rmsprop")
    },
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", MODELS)
def test_updates_agree_with_torch_up_to_rounding(name: str) -> None:
    """Weights, moments and buffers after five updates are near those of torch, for every kind of model."""
    made = replace(MODELS[name], programs={})
    layout = replace(XLA, is_aligned=name == "aligned")
    compiled, plain = xla.XlaSideBySide(made, members(1, 2, 3), layout=layout), SideBySide(made, members(1, 2, 3))
    for pack in (compiled, plain):
        pack.update(5)
    expected = plain.state()
    assert compiled.state().keys() == expected.keys()
    for key, values in compiled.state().items():
        np.testing.assert_allclose(values, expected[key], rtol=1e-2, atol=1e-4, err_msg=key)


@pytest.mark.parametrize("name", ["mlp", "setup", "NALU"])
def test_bits_do_not_depend_on_the_pack(name: str) -> None:
    """A trial has the same bits alone, among 80, at another position, after a resume, and beside one with NaN."""
    proof = prove(replace(MODELS[name], programs={}), is_compiled=True)
    assert (proof.uncompiled, proof.reason) == ("", "")
    assert proof.layout is not None
    assert proof.layout.backend == "xla"


def test_bits_do_not_depend_on_the_updates_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single updates, and more updates than a program makes at once, leave the same state."""
    monkeypatch.setattr(xla, "_MOST_UPDATES", 4)
    made = replace(recipe(), programs={})
    together, one_by_one = (xla.XlaSideBySide(made, members(1, 2), layout=XLA) for _ in range(2))
    together.update(10)
    for _ in range(10):
        assert one_by_one.update_for(most=1, for_s=1e9) == 1
    for key, values in together.state().items():
        assert values.tobytes() == one_by_one.state()[key].tobytes(), key


def test_gradients_are_computed_without_an_update() -> None:
    """Computing gradients doesn't change the state."""
    made = replace(recipe(), programs={})
    compiled, plain = xla.XlaSideBySide(made, members(1, 2), layout=XLA), SideBySide(made, members(1, 2))
    before = compiled.state()
    for name, values in compiled.gradients().items():
        np.testing.assert_allclose(values, plain.gradients()[name], atol=1e-6)
    assert all(values.tobytes() == before[key].tobytes() for key, values in compiled.state().items())


@pytest.mark.parametrize("kind", ["uniform", "normal", "integers", "permutation", "batch", "sobol"])
def test_draws_ahead_equal_single_draws(kind: Any) -> None:
    """Draws made ahead have the bits of each iteration's own draw."""
    shape = {"permutation": (6,), "batch": (3,)}.get(kind, (5, 2))
    draws = {Purpose.TRAIN: [Draw(kind, shape, high=6), Draw("uniform", ())], Purpose.NOISE: []}
    seeds = np.array([3, 2**63 + 1], np.uint64)
    ahead = drawn_ahead(draws, seeds, range(7, 11))
    for place, iteration in enumerate(range(7, 11)):
        single = drawn(draws, seeds, iteration)
        for many, alone in zip(ahead[Purpose.TRAIN], single[Purpose.TRAIN], strict=True):
            assert torch.equal(many[place], alone)
    assert ahead[Purpose.NOISE] == []


class Inverse(nn.Module):
    """A model with an operation that has no XLA counterpart."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) @ torch.linalg.inv(torch.eye(2) + 0.01 * self.linear.weight)


def test_an_unsupported_operation_is_left_to_torch() -> None:
    """The operation is named, and torch trains the trials side by side."""
    made = recipe(model=Inverse)
    with pytest.raises(LoweringError, match=r"no XLA counterpart is implemented for .*aten\.linalg_inv_ex"):
        xla.XlaSideBySide(made, members(1, 2), layout=XLA).update()
    proof = prove(made, is_compiled=True)
    assert proof.packs
    assert "aten.linalg_inv_ex" in proof.uncompiled
    assert proof_of(as_layout(proof)) == proof


def test_a_long_compilation_is_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network with too many operations is refused with their number."""
    monkeypatch.setattr(lowering, "_MOST_OPERATIONS", 20)
    with pytest.raises(LoweringError, match=r"minutes to compile the \d+ operations of an update"):
        xla.XlaSideBySide(recipe(), members(1, 2), layout=XLA).update()


def test_starting_a_program_gives_no_jax_warning() -> None:
    """Starting a program gives no JAX warning about forks, since such a fork executes a program at once."""
    xla.XlaSideBySide(recipe(), members(1, 2), layout=XLA).update()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subprocess.run([sys.executable, "-c", ""], preexec_fn=os.getpid, check=True)
    assert [warning for warning in caught if "JAX" in str(warning.message)] == []


def test_missing_jax_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without JAX can't resume trials that XLA trains, since their bits would differ."""
    monkeypatch.setattr(proof_module, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'seeded-study\[xla\]'"):
        start(recipe(), [Member(seed=1)], Proof(layout=XLA))


def planned(folder: Path, root: Path, iterations: int) -> tuple[PackedEngine, Any]:
    protocol = {"iterations": iterations, "evaluate_every": 20}
    spec = packed_study(folder, models=[MLP], grid=GRID, fixed=None, protocol=protocol)
    plan = make_plan(spec)
    engine = proven(own_engine(spec), plan, root)
    assert isinstance(engine, PackedEngine)
    return engine, plan


def test_long_trainings_are_compiled(packed_lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a number of iterations on, trainings are compiled; ids stay the same, and a resume has the same bits."""
    engine, plan = planned(packed_lab, tmp_path, 40)
    assert {proof_of(layout).layout.backend for layout in engine.layouts.values()} == {"torch"}
    ids = [trial.id for trial in plan.trials]
    monkeypatch.setattr(engine_module, "_COMPILED_FROM", 40)
    engine, plan = planned(packed_lab, tmp_path, 40)
    assert [trial.id for trial in plan.trials] == ids
    assert {proof_of(layout).layout.backend for layout in engine.layouts.values()} == {"xla"}
    assert training_notices(plan.cells, engine) == []

    def trained(trials: tuple[Trial, ...], for_s: float, checkpoint: Any = None) -> list[tuple[Any, ...]]:
        training = engine.start(Pack(trials), device="cpu", checkpoint=checkpoint)
        while not training.done:
            training.advance(for_s)
        return comparable(training.finish())

    packed = trained(plan.trials, 1e9)
    assert {row[0].engine for row in packed} == {"packed-xla"}
    assert engine_for("packed-xla", plan.cells[0], "cpu", engine) is engine
    assert trained(plan.trials[3:4], 0.0) == packed[3:4]
    training = engine.start(Pack(plan.trials), device="cpu")
    training.advance(0.0)
    assert trained(plan.trials, 1e9, training.checkpoint()) == packed


def test_packs_share_compiled_programs(packed_lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that the proof or an earlier pack compiled aren't compiled again."""
    monkeypatch.setattr(engine_module, "_COMPILED_FROM", 40)
    engine, plan = planned(packed_lab, tmp_path, 40)

    def refuse(*_: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr(xla, "lowered", refuse)
    for trials in (plan.trials[:2], plan.trials[2:4]):
        engine.start(Pack(trials), device="cpu").advance(1e9)


def test_proven_layouts_stay(packed_lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that was first trained by torch stays with torch, even once JAX is installed."""
    engine, plan = planned(packed_lab, tmp_path, 40)
    monkeypatch.setattr(engine_module, "_COMPILED_FROM", 40)
    before = {recipe_text(cell): '{"multiple": 1, "is_aligned": false}' for cell in plan.cells}
    assert replace(engine, layouts={}).proven(plan.cells, before).layouts == before
