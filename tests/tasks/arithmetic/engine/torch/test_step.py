"""Agreement of the compiled optimiser step, the portable one and torch's own, and of their schedules of λ."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.engine.shared.update_rule import ADAM, MOMENTUM, SGD, UpdateRule, new_update_rule
from tasks.arithmetic.engine.torch.step import Flat, sparsity_strengths, step_compiled, step_torch
from tests.study.builders import small_cell
from units.regularize import sparsity

SIZES = (6, 3)
TRIALS = 5


def rule(optimizer: int, *, squared: bool = False, bounded: bool = True) -> UpdateRule:
    edge = 1.0 if bounded else np.inf
    nothing = np.zeros(TRIALS)
    return UpdateRule(
        optimizer=optimizer,
        momentum=np.float32(0.9),
        rate=np.linspace(1e-3, 0.3, TRIALS).astype(np.float32),
        squared=squared,
        strength=nothing,
        start=nothing,
        length=nothing,
        exponential=nothing,
        out_strength=nothing,
        out_squared=False,
        ends=np.cumsum(SIZES),
        share=np.array([1 / 6, 1 / 3], np.float32) * bounded,
        low=np.array([-edge, 0.0 if bounded else -np.inf], np.float32),
        high=np.array([edge, edge], np.float32),
        of_nau=np.array([True, False]),
    )


def flat(seed: int) -> Flat:
    generator = torch.Generator().manual_seed(seed)
    total = TRIALS * sum(SIZES)
    weight = torch.rand(total, generator=generator)
    weight[:4] = torch.tensor([0.0, 1.0, 0.5, torch.nan])  # the kinks, and a NaN
    return Flat(weight, torch.zeros(total), torch.zeros(total), torch.zeros(total))


@pytest.mark.parametrize("optimizer", [ADAM, SGD, MOMENTUM])
@pytest.mark.parametrize("squared", [False, True])
def test_compiled_equals_portable(optimizer, squared):
    """In 50 steps with the regulariser, compiled and portable step give the same bits, also at kinks and for NaN.

    Adam's weights are an exception: torch's square root isn't rounded correctly on the CPU.
    """
    ours, theirs = flat(0), flat(0)
    generator = torch.Generator().manual_seed(1)
    strength = np.linspace(0, 2, TRIALS).astype(np.float32)
    the_rule = rule(optimizer, squared=squared)
    for iteration in range(50):
        gradient = torch.randn(len(ours.weight), generator=generator)
        gradient[ours.weight.isnan()] = torch.nan
        for state, step in ((ours, step_compiled), (theirs, step_torch)):
            state.gradient.add_(gradient)
            step(the_rule, state, iteration, strength)
            assert not state.gradient.any()
        for name in ("first", "second") if optimizer == ADAM else ("weight", "first"):
            np.testing.assert_array_equal(getattr(ours, name).numpy(), getattr(theirs, name).numpy())
        torch.testing.assert_close(ours.weight, theirs.weight, rtol=2e-7, atol=6e-8, equal_nan=True)
        theirs.weight.copy_(ours.weight)


def test_adam_is_torchs():
    """Without bounds and regulariser, 100 steps follow torch.optim.Adam."""
    state, the_rule = flat(0), rule(ADAM, bounded=False)
    state.weight[3] = 0.1
    rates = [float(rate) for _ in SIZES for rate in the_rule.rate]
    ends = np.cumsum([size for size in SIZES for _ in range(TRIALS)])
    pieces = [torch.nn.Parameter(p.clone()) for p in torch.tensor_split(state.weight, ends[:-1].tolist())]
    optimizer = torch.optim.Adam([{"params": [p], "lr": lr} for p, lr in zip(pieces, rates, strict=True)])
    generator = torch.Generator().manual_seed(1)
    for iteration in range(100):
        gradient = torch.randn(len(state.weight), generator=generator)
        state.gradient.add_(gradient)
        step_compiled(the_rule, state, iteration, np.zeros(TRIALS, np.float32))
        for p, g in zip(pieces, torch.tensor_split(gradient, ends[:-1].tolist()), strict=True):
            p.grad = g
        optimizer.step()
    torch.testing.assert_close(state.weight, torch.cat([p.detach() for p in pieces]), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("shape", ["linear", "squared"])
def test_the_regularisers_slope_is_autograds(shape):
    """With plain gradient descent, a step moves the weights by the gradient of λ times the unit's regulariser."""
    state, strength = flat(0), np.full(TRIALS, 0.01, np.float32)
    state.weight[3] = 0.1
    the_rule = rule(SGD, squared=shape == "squared")
    before = state.weight.clone().requires_grad_()
    cut = TRIALS * SIZES[0]
    first = sparsity(before[:cut].view(TRIALS, 1, SIZES[0]), "NAU", shape)
    second = sparsity(before[cut:].view(TRIALS, 1, SIZES[1]), "NMU", shape)
    (0.01 * (first + second)).sum().backward()
    step_compiled(the_rule, state, 0, strength)
    rate = torch.cat([torch.from_numpy(the_rule.rate).repeat_interleave(size) for size in SIZES])
    expected = (before.detach() - rate * before.grad).clamp(0, 1)
    torch.testing.assert_close(state.weight, expected, rtol=1e-6, atol=1e-7)


def test_weights_stay_inside_their_bounds():
    """A step of any size leaves bounded weights inside their bounds."""
    state, the_rule = flat(0), rule(SGD)
    state.weight[3] = 0.1
    state.gradient.add_(torch.linspace(-100, 100, len(state.weight)))
    step_compiled(the_rule, state, 0, np.zeros(TRIALS, np.float32))
    assert state.weight.min() == -1
    assert state.weight[TRIALS * SIZES[0] :].min() == 0
    assert state.weight.max() <= 1


@pytest.mark.parametrize("scaling", ["linear", "exponential"])
def test_the_schedule_is_as_defined(scaling):
    """λ of each trial is λ̂ clip((t - start) / (end - start), 0, 1), or λ̂ (1 - exp(-1e-5 t))."""
    linear = scaling == "linear"
    changes = {} if linear else {"sparsity_start": None, "sparsity_end": None}
    cells = [small_cell(sparsity_scaling=scaling, sparsity_strength=full, **changes) for full in (10.0, 0.3, 0.0)]
    rule = new_update_rule([typed_cell(cell) for cell in cells], {})
    for t in (0, 9, 10, 11, 20, 30, 31, 5_000_000):
        ramp = min(max((t - 10) / 20, 0), 1) if linear else 1 - np.exp(-1e-5 * t)
        expected = np.float32([10.0 * ramp, 0.3 * ramp, 0.0])
        np.testing.assert_allclose(sparsity_strengths(rule, t), expected, rtol=1e-6)
