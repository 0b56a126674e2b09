"""The torch engine's penalties and gradient limits, against a plain loop of one trial."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from study.records import Cell, Pack, Trial
from tasks.arithmetic.cell import task_of, typed_cell
from tasks.arithmetic.engine.shared.initial_weights import PREFIX, initial_state
from tasks.arithmetic.engine.shared.task import masks_of
from tasks.arithmetic.engine.torch.batches import Batches
from tasks.arithmetic.engine.torch.penalties import Penalties
from tasks.arithmetic.engine.torch.tensors import TorchTensors
from tasks.arithmetic.networks import Network
from tests.engines import ENGINES
from tests.study.builders import small_cell

MODULE: dict[str, Any] = {"task": "single-module", "input_size": 3, "hidden_size": None, "operation": "div"}
UPDATES = 41


def plain_trial(cell: Cell, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Train one trial by torch's own optimiser and the published loss, and return the first layer's weights."""
    typed, trial = typed_cell(cell), Trial(cell, seed)
    task = task_of(typed)
    masks = torch.from_numpy(masks_of(task, np.array([seed], np.uint64)))
    batches = Batches([typed], np.array([seed], np.uint64), masks, task)
    network = Network(typed.network, typed.input_size, 1)
    start = initial_state([trial])
    network.load_state_dict(
        {name: torch.from_numpy(start[f"{PREFIX}weight/{name}"][0]) for name in network.state_dict()}
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=typed.learning_rate)
    for iteration in range(UPDATES):
        x = batches.inputs(iteration)[0].mT
        loss = (network(x) - batches.targets()[0]).square().mean()
        loss = loss + sparsity_of(typed, network.first, iteration)
        if typed.l1_strength is not None:
            loss = loss + typed.l1_strength * sum(parameter.abs().sum() for parameter in network.parameters())
        if typed.outward_strength is not None and iteration >= typed.outward_start:
            far = sum(torch.relu(20 - parameter.abs()).mean() for parameter in network.parameters())
            loss = loss + typed.outward_strength * far
        optimizer.zero_grad()
        loss.backward()
        if typed.clip_norm is not None:
            nn.utils.clip_grad_norm_(network.parameters(), typed.clip_norm)
        if typed.clip_value is not None:
            nn.utils.clip_grad_value_(network.parameters(), typed.clip_value)
        optimizer.step()
        for layer in network.layers:
            layer.clip_()
    return {f"layer_1.{name}": value.detach().numpy() for name, value in network.first.named_parameters()}


def sparsity_of(cell: Any, layer: nn.Module, iteration: int) -> Tensor:
    """Return a unit's published regulariser times its strength at an iteration; 0 for units without bounds."""
    if not cell.network.has_bounds:
        return torch.zeros(())
    share = np.clip((iteration - cell.sparsity_start) / (cell.sparsity_end - cell.sparsity_start), 0, 1)
    weight = layer.weight
    if cell.model == "RealNPU-modified":
        gate = layer.gate
        regulariser = (1 - weight.abs()).abs().mean() + torch.minimum(gate.abs(), (1 - gate).abs()).mean()
    elif cell.model == "NMRU":
        regulariser = torch.minimum(weight.abs(), (1 - weight).abs()).mean()
    else:
        regulariser = torch.minimum(weight.abs(), (1 - weight.abs()).abs()).mean()
    return float(cell.sparsity_strength * share) * regulariser


CELLS: dict[str, Cell] = {
    "RealNPU": small_cell("RealNPU", **MODULE, learning_rate=5e-3, l1_strength=0.3, l1_first_strength=0.3),
    "NPU": small_cell("NPU", **MODULE, learning_rate=5e-3, l1_strength=0.3, l1_first_strength=0.3, clip_norm=0.5),
    "RealNPU-modified": small_cell("RealNPU-modified", **MODULE, sparsity_strength=3.0, learning_rate=5e-3),
    "NRU": small_cell("NRU", **MODULE, learning_rate=1e-2),
    "NMRU": small_cell("NMRU", **MODULE, learning_rate=1e-2, clip_norm=1.0),
    "NMRU, by value": small_cell("NMRU", **MODULE, learning_rate=1e-2, clip_value=0.1),
    "iNALU-Primer": small_cell(
        "iNALU-Primer", **MODULE, clip_value=0.1, outward_strength=5.0, outward_start=20, learning_rate=1e-2
    ),
    "G-NALU": small_cell("G-NALU", **MODULE, learning_rate=1e-2, l1_strength=0.1, l1_first_strength=0.1),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_trial_moves_as_in_a_plain_loop(name):
    """After 41 updates, weights equal those of torch's own optimiser on the published loss."""
    cell = CELLS[name]
    if name == "iNALU-Primer":  # set the last error so that the push is on
        cell = cell.replace(interpolation_range=((1.0, 1.1),))
    training = ENGINES["torch"].start(Pack(tuple(Trial(cell, seed) for seed in range(3))), device="cpu")
    training.advance(1e9)
    _, curves, weights = training.finish()
    if name == "iNALU-Primer":
        assert all((curve.metrics["validation_mse"] < 1).all() for curve in curves)
    for seed, trained in enumerate(weights):
        for parameter, expected in plain_trial(cell, seed).items():
            np.testing.assert_allclose(trained.arrays[parameter], expected, rtol=2e-3, atol=2e-4)


def penalties_of(cell: Cell) -> Penalties:
    return TorchTensors([Trial(cell, seed) for seed in range(2)], "cpu")._penalties


def test_the_strength_of_l1_is_the_published_one():
    """The strength of the L1 penalty grows tenfold every ten thousand iterations, as published."""
    cell = small_cell("RealNPU", **MODULE, l1_strength=1e-7, l1_first_strength=1e-9)
    penalties, none = penalties_of(cell), np.zeros(2, np.float32)
    for iteration, expected in ((0, 1e-9), (9_999, 1e-9), (10_000, 1e-8), (20_000, 1e-7), (10**6, 1e-7)):
        ((_, strengths),) = penalties.terms(iteration, none, None)
        assert strengths.tolist() == pytest.approx([expected] * 2, rel=1e-6)


def test_only_learned_trials_are_pushed_outward():
    """A trial is pushed outward from the first iteration of the push, if its last validation MSE is below 1."""
    cell = small_cell("iNALU", **MODULE, outward_strength=0.05, outward_start=100)
    penalties, none = penalties_of(cell), np.zeros(2, np.float32)
    mse = np.array([0.5, 1.5], np.float32)
    assert penalties.terms(99, none, mse) == []
    ((_, strengths),) = penalties.terms(100, none, mse)
    assert strengths.tolist() == pytest.approx([0.05, 0.0])


def test_gradients_are_limited_per_trial():
    """A trial's gradient is limited by its own norm, and keeps its direction."""
    tensors = TorchTensors([Trial(CELLS["NMRU"], seed) for seed in range(3)], "cpu")
    (parameter,) = tensors._network.parameters()
    assert parameter.grad is not None
    parameter.grad.copy_(torch.tensor([0.1, 1.0, 10.0])[:, None, None].expand(3, 1, 6))
    before = parameter.grad.clone()
    tensors._penalties.limit_gradients()
    norms = parameter.grad.flatten(1).norm(dim=1)
    assert norms.tolist() == pytest.approx([float(before[0].norm()), 1.0, 1.0], rel=1e-4)
    torch.testing.assert_close(parameter.grad[0], before[0])
