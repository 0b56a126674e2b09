"""Packs on a device other than the CPU: it has all tensors, and numbers agree with the CPU.

Without a GPU, the other device is `tests.far_device`, which tests neither the bits nor the speed of a GPU's kernels.
Tests that need a GPU are skipped without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from study.driver.own_engine import own_engine, proven
from study.engine.packed import engine as engine_module
from study.engine.packed import members as members_module
from study.engine.packed import proof as proof_module
from study.engine.packed.engine import PackedEngine, as_layout
from study.engine.packed.members import OneByOne, PackLayout, SideBySide
from study.engine.packed.proof import Proof, prove
from study.engine.packed.recipe import Member
from study.engine.packed.untrained import untrained_means
from study.errors import DeviceError, InputError
from study.interface.packed_family import recipe_text
from study.plan.plan import Plan, make_plan
from study.records import Pack, Trial
from study.spec import parse_spec
from tests.far_device import FAR, far_device
from tests.study.engine.packed.spirals import Spirals, members, recipe
from tests.study.engine.packed.test_engine import comparable
from tests.study.engine.packed.test_preset_laws import PRESETS, brief, model_names
from tests.study.engine.packed.test_traced import RECIPES

_needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")


SIDE_BY_SIDE = as_layout(Proof(layout=PackLayout()))
QUICK = PRESETS | {"language": "linear"}
OF_PRESETS = [
    pytest.param(preset, model, marks=() if model == quick else pytest.mark.long)
    for preset, quick in QUICK.items()
    for model in model_names(preset)
]


def planned(preset: str, model: str) -> tuple[PackedEngine, Plan]:
    """Plan a short study of a preset's task and a model, whose packs count as proven on the CPU."""
    file = brief(preset)
    file["models"] = [table for table in file["models"] if table["name"] == model]
    plan = make_plan(parse_spec(yaml.safe_dump(file), source=preset))
    engine = own_engine(plan.spec)
    assert isinstance(engine, PackedEngine)
    return replace(engine, layouts={recipe_text(cell): SIDE_BY_SIDE for cell in plan.cells}), plan


def numbers(pack: OneByOne | SideBySide, updates: int) -> dict[str, Any]:
    """Train, and return the metrics and the state."""
    pack.update(updates)
    return pack.evaluate() | pack.state()


def assert_close(actual: dict[str, Any], expected: dict[str, Any], rtol: float) -> None:
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        scale = np.abs(np.where(np.isfinite(values), values, 0)).max(initial=0)
        np.testing.assert_allclose(actual[name], values, rtol=rtol, atol=rtol * scale, err_msg=name)


@pytest.fixture
def as_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record early, and replay without TorchScript: that stores the far device's numbers as CPU constants."""
    monkeypatch.setattr(members_module, "_RECORDED_AFTER", 1)
    monkeypatch.setattr(torch.jit, "trace", lambda graph, *_, **__: graph)


@pytest.mark.parametrize(("preset", "model"), OF_PRESETS)
def test_no_tensor_of_a_task_is_left_on_the_cpu(preset: str, model: str, as_graphs: None) -> None:
    """All tensors and recordings of training are on the device; an evaluation makes one copy to the CPU."""
    engine, plan = planned(preset, model)
    _, made = engine._recipe(plan.cells[-1])
    made = replace(made, task=made.task.for_proof())
    pair = [Member(seed=seed) for seed in (5, 6)]
    expected = numbers(SideBySide(made, pair), 3)
    with far_device() as device:
        pack = SideBySide(made, pair, device=FAR)
        pack.update(3)
        assert pack.is_recorded
        before = device.copied_back
        measured = pack.evaluate()
        assert device.copied_back == before + 1
        assert {array.device.type for array in pack._flat.arrays.values()} == {"far"}
        assert_close(measured | pack.state(), expected, 1e-5)


@pytest.mark.parametrize("way", [SideBySide, OneByOne])
@pytest.mark.parametrize("name", RECIPES)
def test_a_second_device_gives_the_bits_of_the_first(name: str, way: Any) -> None:
    """Weights, buffers, moments and metrics have the CPU's bits; those of NAU and NMU agree up to rounding."""
    expected = numbers(way(RECIPES[name], members(1, 2, 3)), 4)
    with far_device():
        actual = numbers(way(RECIPES[name], members(1, 2, 3), device=FAR), 4)
        resumed = way(RECIPES[name], members(1, 2, 3), state=actual, device=FAR)
        assert resumed.state().keys() <= actual.keys()
        for key, array in resumed.state().items():
            assert array.tobytes() == actual[key].tobytes(), key
    assert_close(actual, expected, 1e-5 if name == "NAU, NMU" else 0.0)


@pytest.mark.parametrize("name", RECIPES)
def test_recordings_are_on_the_device(name: str, as_graphs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded operations and constants repeat on the device with the bits of unrecorded updates."""
    with far_device():
        with monkeypatch.context() as patch:
            patch.setattr(members_module, "_RECORDED_AFTER", 10**9)
            expected = numbers(SideBySide(RECIPES[name], members(1, 2, 3), device=FAR), 6)
        pack = SideBySide(RECIPES[name], members(1, 2, 3), device=FAR)
        assert_close(numbers(pack, 6), expected, 0.0)
        assert pack.is_recorded


def test_untrained_networks_are_measured_on_the_device() -> None:
    with far_device():
        far_means = untrained_means(recipe(), Proof(layout=PackLayout()), ["validation_loss"], device=FAR)
    assert far_means == untrained_means(recipe(), Proof(layout=PackLayout()), ["validation_loss"])


OF_THE_CPU = torch.tensor([0.5, 2.0])


@dataclass(frozen=True)
class Stranded(Spirals):
    """Spirals that are scaled by a tensor made at import of the module."""

    def draw(self, stream):
        x, label = super().draw(stream)
        return x * OF_THE_CPU, label


class Sheltered(nn.Linear):
    """A layer that keeps a tensor as a buffer."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x):
        return super().forward(x * self.scale)


def test_a_tensor_of_the_cpu_is_refused_and_a_buffer_is_moved() -> None:
    """A tensor made at import stays on the CPU and fails the proof; a model's buffers are moved."""
    with far_device():
        with pytest.raises(RuntimeError, match="must be on one device"):
            prove(recipe(Stranded()), sizes=(2,), device=FAR)
        assert prove(recipe(model=Sheltered), sizes=(2,), device=FAR).packs


@pytest.fixture
def nothing_proven(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Any, Proof]]:
    proven: dict[Any, Proof] = {}
    monkeypatch.setattr(engine_module, "_proven", proven)
    return proven


def trained_on(
    device: str, engine: PackedEngine, trials: tuple[Trial, ...], *, for_s: float = 1e9, checkpoint: Any = None
) -> list[tuple[Any, ...]]:
    training = engine.start(Pack(trials), device=device, checkpoint=checkpoint)
    while not training.done:
        training.advance(for_s)
    return comparable(training.finish())


def test_a_pack_is_proven_where_it_trains(nothing_proven: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another device needs its own proof per size, and results name the device."""
    monkeypatch.setattr(members_module, "_RECORDED_AFTER", 10**9)
    engine, plan = planned("identity", "ReLU")
    trials = tuple(Trial(plan.cells[0], seed) for seed in range(3))
    with far_device():
        far_rows = trained_on(FAR, engine, trials)
        assert [key[2:] for key in nothing_proven] == [(FAR, 3)]
        training = engine.start(Pack(trials), device=FAR)
        training.advance(0.0)
        checkpoint = training.checkpoint()
        assert trained_on(FAR, engine, trials, checkpoint=checkpoint) == far_rows
        assert [engine.goes_on_from(checkpoint, device) for device in (FAR, "cpu")] == [True, False]
        assert len(nothing_proven) == 1
    assert {row[0].device for row in far_rows} == {FAR}
    (proof,) = nothing_proven.values()
    on_cpu = trained_on("cpu", replace(engine, layouts=dict.fromkeys(engine.layouts, as_layout(proof))), trials)
    assert [row[1:] for row in on_cpu] == [row[1:] for row in far_rows]
    cpu_checkpoint = engine.start(Pack(trials), device="cpu").checkpoint()
    assert [engine.goes_on_from(cpu_checkpoint, device) for device in (FAR, "cpu")] == [False, True]
    assert not engine.goes_on_from(replace(cpu_checkpoint, engine="another"), "cpu")


def test_training_one_by_one_carries_over_to_other_devices(nothing_proven: Any) -> None:
    """If trials train one by one on the CPU, another device only needs proof that a trial repeats itself."""
    engine, plan = planned("identity", "ReLU")
    reason = as_layout(Proof(layout=None, reason="it was said so"))
    engine = replace(engine, layouts=dict.fromkeys(engine.layouts, reason))
    with far_device():
        engine.start(Pack(tuple(Trial(plan.cells[0], seed) for seed in range(3))), device=FAR)
    ((key, proof),) = nothing_proven.items()
    assert (key[3], proof.packs) == (1, False)


def test_a_layout_that_fails_on_a_device_is_noted_once(nothing_proven: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout that holds only on the CPU gives a notice with the first pack on the other device."""
    monkeypatch.setattr(proof_module, "_first_difference", lambda *_: "trials have other bits")
    engine, plan = planned("identity", "ReLU")
    pack = Pack(tuple(Trial(plan.cells[0], seed) for seed in range(3)))
    with far_device():
        notices = [engine.start(pack, device=FAR).notices for _ in range(2)]
    assert notices == [(f"trials of ReLU train one after another on {FAR}: trials have other bits",), ()]
    assert engine.start(pack, device="cpu").notices == ()


def test_out_of_memory_is_not_a_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running out of memory during a proof is raised unchanged, so that the pack can be halved."""

    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(proof_module, "SideBySide", full)
    engine, plan = planned("identity", "ReLU")
    with pytest.raises(torch.OutOfMemoryError):
        engine.prove(plan.cells[0])


def test_an_immovable_model_is_an_error() -> None:
    """An error of user code on a device names the task and the model."""
    engine, plan = planned("identity", "ReLU")

    class Lost(nn.Linear):
        def __init__(self, **_: Any) -> None:
            super().__init__(1, 1)
            self.scale = torch.ones(1)  # neither parameter nor buffer

        def forward(self, x):
            return super().forward(x * self.scale)

    cell = plan.cells[0]
    folder, made = engine._recipe(cell)
    lost = replace(made, model=Lost, hyperparameters={})
    with pytest.MonkeyPatch.context() as patch, far_device():
        patch.setattr(PackedEngine, "_recipe", lambda *_: (folder, lost))
        with pytest.raises(InputError, match=r"(?s)^ReLU can't be trained on identity: .*must be on one device"):
            engine.prove(cell, device=FAR)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_an_error() -> None:
    """Training on a missing GPU is an error that names the option; the number of trials at once is None."""
    engine, plan = planned("identity", "ReLU")
    with pytest.raises(DeviceError, match="--device cpu"):
        engine.start(Pack((Trial(plan.cells[0], 0),)), device="cuda")
    assert engine.trials_at_once(plan.cells[0]) is None


# --- on a GPU -----------------------------------------------------------------------------------------------------


@_needs_gpu
@pytest.mark.parametrize(("preset", "model"), OF_PRESETS)
def test_on_a_gpu_bits_do_not_depend_on_the_pack(preset: str, model: str, tmp_path: Path) -> None:
    """A trial's bits don't depend on its pack, its position, time slices or a resume."""
    engine, plan = planned(preset, model)
    engine = proven(own_engine(plan.spec), plan, tmp_path)
    assert isinstance(engine, PackedEngine)
    trials = tuple(Trial(plan.cells[-1], seed) for seed in range(3))
    packed = trained_on("cuda", engine, trials)
    assert trained_on("cuda", engine, trials[::-1]) == packed[::-1]
    assert trained_on("cuda", engine, trials[1:2]) == packed[1:2]
    training = engine.start(Pack(trials), device="cuda")
    training.advance(0.0)
    assert trained_on("cuda", engine, trials, for_s=0.0, checkpoint=training.checkpoint()) == packed


@_needs_gpu
@pytest.mark.parametrize(("preset", "model"), OF_PRESETS)
def test_on_a_gpu_numbers_are_near_those_of_the_cpu(preset: str, model: str) -> None:
    """Metrics and gradients of the initial weights agree with the CPU up to rounding.

    Weights after updates aren't compared: Adam turns a gradient of mere rounding errors into a full step.
    """
    engine, plan = planned(preset, model)
    _, made = engine._recipe(plan.cells[-1])
    members = [Member(seed=seed) for seed in (5, 6)]
    on_gpu, on_cpu = (SideBySide(made, members, device=device) for device in ("cuda", "cpu"))
    assert_close(on_gpu.evaluate(), on_cpu.evaluate(), 1e-2)
    gradients = on_cpu.gradients()
    largest = max(np.abs(values).max(initial=0) for values in gradients.values())
    for name, values in on_gpu.gradients().items():
        scale = max(np.abs(gradients[name]).max(initial=0), 1e-3 * largest)
        np.testing.assert_allclose(values, gradients[name], rtol=0, atol=1e-2 * scale, err_msg=name)


@_needs_gpu
def test_on_a_gpu_packs_have_a_size() -> None:
    """More than a hundred trials fit in memory, and packs train side by side and recorded."""
    engine, plan = planned("identity", "ReLU")
    assert (engine.trials_at_once(plan.cells[0]) or 0) > 100
    pack = SideBySide(engine._recipe(plan.cells[0])[1], [Member(seed=seed) for seed in range(4)], device="cuda")
    pack.update(70)
    assert pack.is_recorded


@_needs_gpu
def test_on_a_gpu_its_generator_is_seeded() -> None:
    """A model that draws from torch's GPU generator trains one by one, and repeats itself."""
    proof = prove(recipe(middle=nn.Dropout), sizes=(2,), device="cuda")
    assert not proof.packs
    assert "Dropout" in proof.reason
