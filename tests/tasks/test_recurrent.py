"""The recurrent task: sums over a sequence, and networks that read it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from study.plugins.packed_tasks import builder_of
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream
from tasks.arithmetic.task import OPERATIONS, ArithmeticTask
from tasks.recurrent.task import Recurrent
from tasks.shared.cells import GRU, LSTM, UnitCell
from units import UNITS


def masks(task: Recurrent, seed: int) -> torch.Tensor:
    return task.setup(Stream([seed], 0, Purpose.SETUP))


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "reciprocal"])
def test_targets_are_those_of_sums_over_time(operation):
    """Each target is the operation on the sums over all elements of both subsets, computed in float64."""
    task = Recurrent(operation=operation)
    of_trial = masks(task, 3)
    x, y = task.draw(Stream([3], 7, Purpose.TRAIN), of_trial)
    assert x.shape == (128, 10, 10)
    assert 1 <= x.min() < x.max() < 2
    a, b = (x.double() * of_trial[:, None, None].double()).sum((-2, -1))
    exact = {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b, "squared": a**2, "root": a.sqrt()}[operation]
    torch.testing.assert_close(y.squeeze(-1).double(), exact, rtol=1e-5, atol=1e-4)


def test_subsets_are_those_of_the_arithmetic_task():
    """Subsets have three numbers each and share one; trials have all offsets, each trial a fixed one."""
    task = Recurrent()
    places = {tuple(masks(task, seed).flatten().tolist()) for seed in range(60)}
    arithmetic = ArithmeticTask(input_size=10, subset_ratio=0.3, overlap_ratio=0.5)
    assert places == {tuple(arithmetic.masks(offset).flatten().tolist()) for offset in range(6)}


def test_tests_have_each_length():
    """Validation has the training length, tests every test length, with the same numbers for all trials."""
    task = Recurrent(test_lengths=(5, 20), evaluation_rows=4)
    validation = task.evaluation(evaluation_stream(Purpose.VALIDATION), Purpose.VALIDATION, masks(task, 0))
    assert {name: x.shape for name, (x, _) in validation.items()} == {"": (4, 10, 10)}
    test = [task.evaluation(evaluation_stream(Purpose.TEST), Purpose.TEST, masks(task, seed)) for seed in (0, 1)]
    assert {name: x.shape for name, (x, _) in test[0].items()} == {"_at_5": (4, 5, 10), "_at_20": (4, 20, 10)}
    assert torch.equal(test[0]["_at_5"][0], test[1]["_at_5"][0])


def test_metrics_are_as_defined():
    """Each length has its errors; a non-finite one counts as the largest error."""
    task = Recurrent(test_lengths=(5, 20), evaluation_rows=4)
    test = task.evaluation(evaluation_stream(Purpose.TEST), Purpose.TEST, masks(task, 0))
    outputs = {name: y + 2 for name, (_, y) in test.items()}
    outputs["_at_20"] = outputs["_at_20"] * torch.inf
    metrics = {name: value.item() for name, value in task.measure(outputs, test).items()}
    assert metrics == {
        "mse_at_5": pytest.approx(4),
        "mae_at_5": pytest.approx(2),
        "mse_at_20": pytest.approx(1e30),
        "mae_at_20": pytest.approx(1e30),
    }
    measured = {f"test_{name}" for name in metrics} | {"validation_mse", "validation_mae", "test_sparsity_error"}
    assert set(task.measured()) == measured | set(task.scores())


def test_bad_fields_are_refused():
    """Duplicate lengths, and subsets that don't fit, are refused."""
    with pytest.raises(ValueError, match="test_lengths must be one or more distinct lengths, but got"):
        Recurrent(test_lengths=(10, 10))
    with pytest.raises(ValueError, match="need 18 numbers, but input_size is 10"):
        Recurrent(subset_ratio=0.9, overlap_ratio=0.0)


def test_an_exact_network_of_units_has_no_error():
    """A NAU that adds both subsets to its state and an NMU that multiplies them are exact at any length."""
    task = Recurrent(operation="mul", test_lengths=(10, 50), evaluation_rows=8)
    of_trial = masks(task, 5)
    network = builder_of(task, "NMU")()
    with torch.no_grad():
        network.cell.unit.weight.copy_(torch.cat([of_trial, torch.eye(2)], -1))
        network.output.weight.fill_(1)
    test = task.evaluation(evaluation_stream(Purpose.TEST), Purpose.TEST, of_trial)
    outputs = task.predict(network, test)
    for name, (_, y) in test.items():
        torch.testing.assert_close(outputs[name], y, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_gated_cells_are_those_of_torch(name):
    """With the same weights, torch's layer gives the same states."""
    cell = {"LSTM": LSTM, "GRU": GRU}[name](3, 2)
    x = torch.randn(4, 6, 3)
    layer = getattr(nn, name)(3, 2, batch_first=True)
    with torch.no_grad():
        if isinstance(cell, LSTM):
            order = torch.tensor([0, 1, 2, 3, 6, 7, 4, 5])  # torch's gates are in the order i, f, g, o, with two biases
            layer.weight_ih_l0.copy_(cell.weight[order, :3])
            layer.weight_hh_l0.copy_(cell.weight[order, 3:])
            layer.bias_ih_l0.copy_(cell.bias[order])
            layer.bias_hh_l0.zero_()
        else:
            layer.weight_ih_l0.copy_(cell.weight_input)
            layer.weight_hh_l0.copy_(cell.weight_hidden)
            layer.bias_ih_l0.copy_(cell.bias_input)
            layer.bias_hh_l0.copy_(cell.bias_hidden)
    state = cell.start(x[:, 0])
    for t in range(6):
        state = cell(x[:, t], state)
    torch.testing.assert_close(cell.hidden(state), layer(x)[0][:, -1])


def test_models_have_the_size_that_the_file_gives():
    """A cell's inputs are the task's input and its own state; the output layer's input is the state."""
    task = Recurrent()
    for name in ("NAC-add", "NALU", "NAU", "NMU", "NAC-mul", "tanh", "ReLU"):
        network = builder_of(task, name)(hidden_size=3)
        assert isinstance(network.cell, UnitCell)
        assert (network.cell.unit.in_features, network.cell.unit.out_features) == (13, 3)
        assert (network.output.in_features, network.output.out_features) == (3, 1)
    assert isinstance(builder_of(task, "NMU")().cell.unit, UNITS["NAU"])
    assert isinstance(builder_of(task, "LSTM")(hidden_size=5).output, nn.Linear)
