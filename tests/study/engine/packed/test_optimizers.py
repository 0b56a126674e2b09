"""Optimisers that follow torch's for each trial, and schedules that follow their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from study.engine.packed.optimizers import MOMENTS, Optimizer, Rates, Schedule

RATES = np.array([1e-3, 0.3, 1e-2])
SIZE = 37
TORCHS = {
    "sgd": lambda p, rate: torch.optim.SGD([p], lr=rate),
    "momentum": lambda p, rate: torch.optim.SGD([p], lr=rate, momentum=0.9),
    "adam": lambda p, rate: torch.optim.Adam([p], lr=rate, foreach=False),
    "adamw": lambda p, rate: torch.optim.AdamW([p], lr=rate, foreach=False),
    "rmsprop": lambda p, rate: torch.optim.RMSprop([p], lr=rate, foreach=False),
}
# torch's SGD adds rate * g with one rounding, this package's SGD with two.
SAME_BITS = {"adam", "adamw"}


@pytest.mark.parametrize("name", TORCHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_optimisers_agree_with_torch(name, dtype):
    """After 50 steps, each trial's weights are those of torch.optim: bit for bit for Adam and AdamW."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(3, SIZE, generator=generator, dtype=dtype)
    own = [torch.nn.Parameter(row.clone()) for row in weight]
    theirs = [TORCHS[name](p, float(rate)) for p, rate in zip(own, RATES, strict=True)]
    moments = [torch.zeros_like(weight) for _ in range(MOMENTS[name])]
    optimizer = Optimizer(name=name)
    for step in range(50):
        gradient = torch.randn(3, SIZE, generator=generator, dtype=dtype)
        optimizer.step(weight, gradient, moments, RATES, step)
        for p, g, other in zip(own, gradient, theirs, strict=True):
            p.grad = g.clone()
            other.step()
    expected = torch.stack([p.detach() for p in own])
    if name in SAME_BITS:
        assert torch.equal(weight, expected)
    torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", TORCHS)
def test_a_step_does_not_depend_on_the_pack(name):
    """A trial's bits don't depend on other trials, even with NaN, or on the rows per block."""
    generator = torch.Generator().manual_seed(0)
    size = 20_000  # one row per block
    weights = [torch.randn(4, size, generator=generator)]
    weights.append(weights[0][1:2].clone())
    weights[0][0] = torch.nan
    gradient = torch.randn(4, size, generator=generator)
    for weight, rows in zip(weights, (slice(None), slice(1, 2)), strict=True):
        moments = [torch.zeros_like(weight) for _ in range(MOMENTS[name])]
        for step in range(3):
            Optimizer(name=name).step(weight, gradient[rows], moments, np.full(len(weight), 0.1), step)
    assert torch.equal(weights[0][1], weights[1][0])
    assert weights[0][0].isnan().all()


def test_schedules_follow_their_formulas():
    """Each trial's rate grows during warm-up and then falls by its decay."""
    schedules = [
        Schedule(learning_rate=1.0),
        Schedule(learning_rate=2.0, warmup=4),
        Schedule(learning_rate=1.0, decay="linear", iterations=10),
        Schedule(learning_rate=1.0, warmup=2, decay="cosine", iterations=12),
    ]
    rates = Rates(schedules)
    np.testing.assert_allclose(rates.at(0), [1, 0.5, 1, 0.5])
    np.testing.assert_allclose(rates.at(3), [1, 2, 0.7, (1 + math.cos(math.pi / 10)) / 2])
    np.testing.assert_allclose(rates.at(7), [1, 2, 0.3, 0.5])
    np.testing.assert_allclose(rates.at(99), [1, 2, 0, 0], atol=1e-15)


@pytest.mark.parametrize("scheduler", ["linear", "cosine"])
def test_decays_agree_with_torch(scheduler):
    """Without a warm-up, the rates are those of torch's schedulers."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    theirs = {
        "linear": lambda: torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=20),
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20),
    }[scheduler]()
    rates = Rates([Schedule(learning_rate=0.1, decay=scheduler, iterations=20)])
    for iteration in range(20):
        assert rates.at(iteration)[0] == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
        optimizer.step()
        theirs.step()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schedule(learning_rate=0.0), "learning_rate must be finite and > 0"),
        (lambda: Schedule(warmup=-1), "warmup >= 0 must hold"),
        (lambda: Schedule(decay="cosine"), "needs iterations > warmup, but got None"),
        (lambda: Schedule(decay="steps"), "decay must be constant, linear or cosine"),
        (lambda: Optimizer(name="lion"), "must be one of sgd, momentum, adam, adamw"),
        (lambda: Optimizer(beta_2=1.0), "0 <= beta_2 < 1 must hold"),
        (lambda: Optimizer(epsilon=0.0), "epsilon > 0"),
    ],
)
def test_invalid_numbers_are_refused(make, message):
    """The error names the parameter and the rule."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("norm", [0.5, 100.0])
def test_gradients_are_clipped_by_the_norm_of_a_trial(norm):
    """Each trial moves as with torch's clip_grad_norm_, independent of other trials' norms."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(3, SIZE, generator=generator)
    gradient = torch.randn(3, SIZE, generator=generator) * torch.tensor([[1e-3], [1.0], [1e3]])
    own = [torch.nn.Parameter(row.clone()) for row in weight]
    for p, g, rate in zip(own, gradient, RATES, strict=True):
        p.grad = g.clone()
        torch.nn.utils.clip_grad_norm_([p], norm)
        torch.optim.SGD([p], lr=float(rate)).step()
    Optimizer(name="sgd", clip_norm=norm).step(weight, gradient, [], RATES, 0)
    torch.testing.assert_close(weight, torch.stack([p.detach() for p in own]), rtol=1e-5, atol=1e-6)


def test_a_norm_must_be_above_zero():
    """A norm that allows no step is refused."""
    with pytest.raises(ValueError, match="clip_norm > 0 must hold, but got 0"):
        Optimizer(clip_norm=0.0)
