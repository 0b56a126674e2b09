"""The single-module task: rows, thresholds, its layer, and valid studies."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from study.records import Cell
from study.spec.cells import canonical_cell
from tasks.arithmetic import MODELS, model_of, single_task
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.models import SINGLE_LAYERS
from tasks.arithmetic.module_threshold import module_threshold
from tasks.arithmetic.networks import Network
from tasks.arithmetic.own_family import ARITHMETIC
from tasks.arithmetic.threshold import Range

OPERATIONS = ("add", "sub", "mul", "div")

# Test ranges, and the Primer's thresholds for +, -, for × and for ÷, with two inputs.
PUBLISHED: dict[Range, tuple[float, float, float]] = {
    ((-40.0, -20.0),): (3.667e-7, 3.484e-4, 4.667e-10),
    ((-6.0, -2.0),): (6.667e-9, 1.202e-7, 5.778e-10),
    ((-6.1, -1.2),): (5.729e-9, 9.392e-8, 8.373e-10),
    ((-2.0, -0.2),): (5.380e-10, 8.762e-10, 1.480e-9),
    ((-6.0, -2.0), (2.0, 6.0)): (6.667e-9, 1.202e-7, 5.778e-10),
    ((0.2, 2.0),): (5.380e-10, 8.762e-10, 1.480e-9),
    ((2.0, 6.0),): (6.667e-9, 1.202e-7, 5.778e-10),
    ((1.2, 6.0),): (5.568e-9, 8.856e-8, 8.267e-10),
    ((20.0, 40.0),): (3.667e-7, 3.484e-4, 4.667e-10),
}


@pytest.mark.parametrize("range_", PUBLISHED)
def test_thresholds_are_the_published_ones(range_: Range) -> None:
    """With two inputs, thresholds agree to the four digits of a million samples."""
    add, mul, div = PUBLISHED[range_]
    ours = [f"{module_threshold(name, 2, range_, 1e-5):.3e}" for name in OPERATIONS]
    assert ours == [f"{published:.3e}" for published in (add, add, mul, div)]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("range_", [((0.5, 2.0),), ((-3.0, -1.0),), ((-2.0, -1.0), (1.0, 2.0))])
@pytest.mark.parametrize("inputs", [2, 5])
def test_a_threshold_is_the_mean_of_samples(operation: str, range_: Range, inputs: int) -> None:
    """A threshold is the mean error over samples of the right layer with weights off by ε, here a large ε."""
    random, epsilon = np.random.default_rng(7), 0.05
    interval = np.array(range_)[random.integers(0, len(range_), (400_000, inputs))]
    x = random.uniform(interval[..., 0], interval[..., 1])
    others = np.prod(1 - epsilon * abs(x[:, 2:]), axis=1)
    if operation in ("add", "sub"):
        error = epsilon * abs(x).sum(1)
    elif operation == "mul":
        error = x[:, 0] * x[:, 1] * ((1 - epsilon) ** 2 * others - 1)
    else:
        error = x[:, 0] / x[:, 1] * ((1 - epsilon) / (1 + epsilon) * others - 1)
    expected, spread = (error**2).mean(), (error**2).std() / len(error) ** 0.5
    assert abs(module_threshold(operation, inputs, range_, epsilon) - expected) < 5 * spread


def test_thresholds_that_do_not_exist_are_refused() -> None:
    """A threshold requires a non-zero divisor and a small ε; two intervals beside 0 have one."""
    with pytest.raises(ValueError, match="divisor can be 0"):
        single_task(operation="div", extrapolation_range=((-2.0, 2.0),)).threshold()
    for operation in ("mul", "div"):
        with pytest.raises(ValueError, match="times the numbers' mean size must be below 1"):
            single_task(operation=operation, extrapolation_range=((1e5, 1e6),)).threshold()
    with pytest.raises(ValueError, match=r"0 < epsilon < 0\.5"):
        single_task().threshold(0.5)
    assert single_task(operation="div", extrapolation_range=((-6.0, -2.0), (2.0, 6.0))).threshold() > 0


def test_two_neighbours_are_combined() -> None:
    """Two neighbours at any place are combined, in their order."""
    task = single_task(operation="div", input_size=10)
    assert sorted({task.offset(u / 100) for u in range(100)}) == list(range(9))
    masks = task.masks(task.offset(0.4))
    assert masks.argmax(1).tolist() == [3, 4]
    assert masks.sum(1).tolist() == [1, 1]
    x = torch.arange(1.0, 11)[:, None]
    assert task.target(torch.from_numpy(masks) @ x).item() == pytest.approx(4 / 5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"operation": "squared", "subsets": 1}, "must be one of add, sub, mul, div, reciprocal in the single"),
        ({"subsets": 3}, "2 subsets of one number each, or for 'reciprocal' 1"),
        ({"input_size": 1}, "no more than input_size"),
        ({"subset_ratio": 0.5}, "no ratios"),
    ],
)
def test_impossible_tasks_are_refused(changed: dict[str, Any], message: str) -> None:
    """Tasks that one layer of two neighbours can't solve are refused."""
    with pytest.raises(ValueError, match=re.escape(message)):
        single_task(**changed)


@pytest.mark.parametrize("name", SINGLE_LAYERS)
def test_a_network_is_one_layer(name: str) -> None:
    """The network is the model's second unit over the inputs, with that unit's parameters only."""
    network = Network(model_of("single-module", name), 5, 1)
    (layer,) = network.layers
    assert type(layer) is type(Network(MODELS[name], 5, 2).layers[1])
    assert (layer.in_features, layer.out_features) == (5, 1)
    x = torch.rand(8, 5)
    assert torch.equal(network(x), layer(x))


@pytest.mark.parametrize(
    ("model", "input_size", "schedule"),
    [
        ("NMU", 2, (10.0, 20_000, 35_000, 50_000)),
        ("NMU", 10, (10.0, 50_000, 75_000, 100_000)),
        ("NAU", 2, (0.01, 20_000, 35_000, 50_000)),
        ("NAU", 100, (0.01, 50_000, 75_000, 100_000)),
        ("NAC-mul", 2, (None, None, None, 50_000)),
    ],
)
def test_the_schedule_is_the_published_one(model: str, input_size: int, schedule: tuple[Any, ...]) -> None:
    """A file with only the size has the published strength, start and end of the regulariser, and iterations."""
    stored = canonical_cell("single-module", model, {"input_size": input_size})
    cell = typed_cell(stored)
    assert stored.value("hidden_size") is None
    assert (cell.sparsity_strength, cell.sparsity_start, cell.sparsity_end, cell.iterations) == schedule
    assert (cell.hidden_size, cell.subset_ratio, cell.batch_size, cell.learning_rate) == (1, None, 128, 1e-3)


def test_settings_without_effect_are_reported() -> None:
    """Each hyperparameter without effect, and each impossible value, is reported with the reason."""
    why = ARITHMETIC.why_without_effect
    assert why("hidden_size", "single-module", "NMU", {}) == (
        "the single-module task has one layer, and so no hidden units"
    )
    assert why("subset_ratio", "single-module", "NMU", {}) == "the single-module task has fixed subsets"
    assert why("sparsity_strength", "single-module", "NMU", {}) is None
    assert why("sparsity_strength", "single-module", "NAC-mul", {}) == "NAC-mul has no sparsity regulariser"
    assert "ReLU alone is linear" in str(ARITHMETIC.impossible("single-module", "ReLU", {}))
    assert why("l1_first_strength", "single-module", "NMU", {}) == "l1_strength must be given for that"
    assert why("l1_first_strength", "single-module", "NMU", {"l1_strength": (1e-5,)}) is None
    assert why("l1_first_strength", "single-module", "NPU", {"operation": ("mul",)}) is None
    assert why("l1_first_strength", "single-module", "NPU", {"operation": ("add",)}) is not None
    assert why("outward_start", "single-module", "NMU", {}) == "NMU isn't an iNALU"
    assert why("outward_start", "single-module", "iNALU", {}) is None
    assert why("outward_start", "simple", "iNALU", {}) == "outward_strength must be given for that"
    assert why("outward_start", "simple", "iNALU", {"outward_strength": (0.1,)}) is None
    assert "initial weights are fixed" in str(ARITHMETIC.impossible("simple", "iNALU", {"init_variance": 0.1}))
    too_large = {"l1_strength": 1e-5, "l1_first_strength": 1e-3}
    assert "got 0.001 and 1e-05" in str(ARITHMETIC.impossible("simple", "NMU", too_large))
    assert "start 60000 and end 35000" in str(ARITHMETIC.impossible("single-module", "NMU", {"sparsity_start": 60_000}))
    assert ARITHMETIC.impossible("single-module", "NMU", {"sparsity_start": 60_000, "input_size": 10}) is None


def test_a_cell_differs_from_that_of_two_layers() -> None:
    """The same values on a task with two layers are another cell, with another id."""
    ids = {canonical_cell(task, "NMU", {"input_size": 10}).id for task in ("arithmetic", "single-module")}
    assert len(ids) == 2
    assert isinstance(canonical_cell("single-module", "NMU", {}), Cell)
