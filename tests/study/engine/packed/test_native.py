"""Units in a user's task: they train side by side, stay within bounds, and repeat their bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study.errors import InputError
from study.plan.plan import Plan
from study.records import Pack
from tasks.arithmetic import MODELS
from tests.study.engine.packed.test_engine import planned, trained

PRODUCTS = {"name": "mylab.tasks:Products"}


def products(folder: Path, root: Path, *models: str, **changed: Any) -> tuple[Any, Plan]:
    """Plan a study of models that learn to multiply, at a rate that drives weights out of bounds."""
    content = {"task": PRODUCTS, "models": list(models), "grid": None, "fixed": {"learning_rate": 0.1}, "success": None}
    return planned(folder, root, **(content | changed))


# All units, and one of torch's activations: the other activations are elementwise, too.
TRAINED = MODELS.keys() - {"ReLU6", "tanh", "sigmoid", "softsign", "SELU", "ELU"}


@pytest.mark.parametrize("model", [*sorted(TRAINED), "mylab.models:Shifted", "mylab.models:mixed"])
def test_a_unit_trains_side_by_side(packed_lab: Path, tmp_path: Path, model: str) -> None:
    """Each model's layout is proven, and results, curves and weights don't depend on the pack."""
    engine, plan = products(packed_lab, tmp_path, model)
    (layout,) = engine.layouts.values()
    assert "reason" not in layout
    packed = trained(engine, plan.trials)
    assert trained(engine, plan.trials[::-1]) == packed[::-1]
    assert trained(engine, plan.trials[1:2]) == packed[1:2]
    assert all(np.isfinite(row[0].metrics["test_loss"]) for row in packed)


def test_bounded_weights_stay_within_bounds(packed_lab: Path, tmp_path: Path) -> None:
    """Bounded weights are clamped after each step in any module; other weights aren't."""
    protocol = {"iterations": 60, "evaluate_every": 20}
    engine, plan = products(
        packed_lab, tmp_path, "NMU", "mylab.models:mixed", protocol=protocol, fixed={"learning_rate": 1.0}
    )
    limits = {"NMU": {"0.weight": -1.0, "1.weight": 0.0}, "mylab.models:mixed": {"2.weight": -1.0, "3.weight": 0.0}}
    for cell in plan.cells:
        trials = tuple(trial for trial in plan.trials if trial.cell == cell)
        training = engine.start(Pack(trials), device="cpu")
        training.advance(1e9)
        _, _, weights = training.finish()
        arrays = {name: np.stack([row.arrays[name] for row in weights]) for name in weights[0].arrays}
        for name, low in limits[cell.model].items():
            assert low <= arrays[name].min() <= arrays[name].max() <= 1.0
        assert any(np.isin(arrays[name], (low, 1.0)).any() for name, low in limits[cell.model].items())
        if cell.model != "NMU":
            assert np.abs(arrays["0.weight"]).max() > 1.0


def test_hidden_size_is_a_hyperparameter_of_units(packed_lab: Path, tmp_path: Path) -> None:
    """Built-in models and user units have a hidden size; the task gives input and output sizes."""
    models = ["NMU", "mylab.models:Shifted"]
    engine, plan = products(packed_lab, tmp_path, *models, task=PRODUCTS | {"size": 3}, grid={"hidden_size": [4]})
    shapes = {}
    for cell in plan.cells:
        training = engine.start(Pack(tuple(trial for trial in plan.trials if trial.cell == cell)), device="cpu")
        training.advance(1e9)
        shapes[cell.model] = [array.shape for array in training.finish()[2][0].arrays.values()]
    assert shapes == {model: [(4, 3), (1, 4)] for model in models}


def test_a_task_without_sizes_is_refused(packed_lab: Path, tmp_path: Path) -> None:
    """A task without sizes is refused: labels don't determine a model's output size."""
    with pytest.raises(InputError, match=r"line \d+: models\[1\]: task Spirals must define sizes"):
        planned(packed_lab, tmp_path, models=["NAU"], grid=None)
