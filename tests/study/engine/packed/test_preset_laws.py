"""The contract of all engines, for every model of the presets' tasks that train in packs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from study.driver.own_engine import own_engine, proven
from study.engine.packed import members, proof
from study.engine.packed.engine import PackedEngine
from study.plan.plan import make_plan
from study.plugins.presets import preset_text
from study.records import Pack, Trial
from study.spec import Spec, parse_spec
from tests.study.engine.packed.test_engine import comparable, trained

# Updates are recorded after the first three, so that trials have both recorded and eager updates.
RECORDED_AFTER, ITERATIONS, EVALUATE_EVERY = 3, 8, 4
SHORT = {
    **{"test_lengths": [1, 2], "train_length": 2, "test_orders": 1, "evaluation_rows": 16, "batch_size": 8},
    **{"train_times": [1, 2], "test_times": [2, 3], "far_times": [3], "extra_steps": 1},
}
RAMP = {"sparsity_start": 1, "sparsity_end": 6}

PRESETS = {
    "digits-addition": "NAC-add",
    "digits-counting": "GRU",
    "digits-product": "NMU",
    "digits-sum": "NAU",
    "identity": "SELU",
    "language": "linear",
    "npu-large": "NPU",
    "npu-simple": "RealNPU",
    "recurrent": "LSTM",
    "tabular": "mlp",
    "time-tracking": "NAU",
}
"""The presets, with the model that is tested for every commit."""


def brief(preset: str) -> dict[str, Any]:
    """Return a preset's study file as a dict, cut to a few short iterations and three seeds, with models as tables."""
    file: dict[str, Any] = yaml.safe_load(preset_text(preset))
    task_names = load(preset).family.hyperparameters
    file["task"] |= {name: value for name, value in SHORT.items() if name in task_names}
    file["models"] = [{"name": model} if isinstance(model, str) else model for model in file["models"]]
    for table in (file.get("fixed", {}), *(model.get("fixed", {}) for model in file["models"])):
        for name in SHORT.keys() & table.keys():
            del table[name]
        table |= {name: value for name, value in RAMP.items() if name in table}
    file["protocol"] = {"iterations": ITERATIONS, "evaluate_every": EVALUATE_EVERY}
    return {name: value for name, value in file.items() if name not in ("success", "references")} | {"seeds": 3}


def load(preset: str) -> Spec:
    return parse_spec(preset_text(preset), source=preset)


def model_names(preset: str) -> list[str]:
    return list(dict.fromkeys(model.name for model in load(preset).model_tables))


def marks_of(preset: str, *, is_first: bool) -> list[pytest.MarkDecorator]:
    if is_first:
        return [pytest.mark.slow] if preset == "language" else []
    return [pytest.mark.long]


@pytest.mark.parametrize(
    ("preset", "model"),
    [
        pytest.param(preset, model, marks=marks_of(preset, is_first=model == first))
        for preset, first in PRESETS.items()
        for model in model_names(preset)
    ],
)
def test_bits_do_not_depend_on_the_pack(
    preset: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial's bits depend on its seed, but not on its pack, its position or a resume."""
    monkeypatch.setattr(members, "_RECORDED_AFTER", RECORDED_AFTER)
    file = brief(preset)
    file["models"] = [table for table in file["models"] if table["name"] == model]
    plan = make_plan(parse_spec(yaml.safe_dump(file), source=preset))
    engine = proven(own_engine(plan.spec), plan, tmp_path)
    assert isinstance(engine, PackedEngine)
    trials = tuple(Trial(plan.cells[-1], seed) for seed in range(3))
    packed = trained(engine, trials)
    assert len({str(row[3]) for row in packed}) == len(trials)
    assert trained(engine, trials[::-1]) == packed[::-1]
    assert trained(engine, trials[1:2]) == packed[1:2]
    training = engine.start(Pack(trials), device="cpu")
    training.advance(0.0)
    checkpoint = training.checkpoint()
    resumed = engine.start(Pack(trials), device="cpu", checkpoint=checkpoint)
    while not resumed.done:
        resumed.advance(1e9)
    assert comparable(resumed.finish()) == packed


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_breaks_the_contract(preset: str) -> None:
    """No preset has a part that makes a trial depend on others, including tasks with a setup."""
    plan = make_plan(load(preset))
    engine = own_engine(plan.spec)
    assert isinstance(engine, PackedEngine)
    _, recipe = engine._recipe(plan.cells[0])
    assert proof._culprits(recipe) == ""
