"""Training options of units: L1 that grows in steps, clipped gradients, and the options of the iNALU."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from study.engine.penalties import l1, stepwise
from units import UNITS
from units.gradients import clip_by_norm, clip_by_value
from units.inalu import INALU, PrimerINALU
from units.inalu_training import ORIGINAL, PRIMER, INALUTraining, outward, outward_sum
from units.initialize import generator_uniform


def gradients_of(trials: int, seed: int = 0) -> list[Tensor]:
    """Draw gradients of three parameters, [trials, ...]."""
    generator = torch.Generator().manual_seed(seed)
    scale = 10.0 ** torch.arange(-3, trials - 3)
    shapes = [(2, 100), (1, 7), (5, 3)]
    return [torch.randn(trials, *shape, generator=generator) * scale.reshape(-1, 1, 1) for shape in shapes]


@pytest.mark.parametrize("name", UNITS)
def test_l1_is_the_sum_of_all_parameters(name: str) -> None:
    """L1 sums over every parameter, including gates, with the same bits in a pack and alone."""
    pack = UNITS[name](100, 2, trials=3, generator=torch.Generator().manual_seed(0))
    together = l1(pack.parameters(), has_trials=True)
    assert together.shape == (3,)
    for trial in range(3):
        values = [value.detach()[trial] for value in pack.parameters()]
        assert torch.equal(l1([value.unsqueeze(0) for value in values], has_trials=True)[0], together[trial])
        assert torch.equal(l1(values), together[trial])
        plain = sum(float(value.double().abs().sum()) for value in values)
        assert float(together[trial].detach()) == pytest.approx(plain, rel=1e-5)


def test_l1_needs_a_parameter() -> None:
    """L1 of an empty list of parameters is refused."""
    with pytest.raises(ValueError, match="at least one"):
        l1([])


def test_l1_grows_by_ten_every_ten_thousand() -> None:
    """L1's strength has exactly the published values at the published iterations."""
    for first, last, expected in ((1e-7, 1e-5, [1e-7, 1e-6, 1e-5, 1e-5]), (1e-9, 1e-7, [1e-9, 1e-8, 1e-7, 1e-7])):
        assert [stepwise(iteration, first, last) for iteration in (0, 10_000, 20_000, 30_000)] == expected
        assert [stepwise(iteration, first, last) for iteration in (9_999, 19_999, 29_999, 10**9)] == expected


@given(st.integers(0, 10**6), st.floats(1e-12, 1), st.floats(1, 1e6), st.integers(1, 10**5), st.integers(2, 12))
def test_steps_are_a_function_of_the_iteration(
    iteration: int, first: float, ratio: float, every: int, factor: int
) -> None:
    """The strength never falls: it is the first one times a power of the factor, up to the last one."""
    last = first * ratio
    strength = stepwise(iteration, first, last, every, factor)
    assert first <= strength <= last
    assert strength <= stepwise(iteration + 1, first, last, every, factor)
    exact = Decimal(repr(first)) * Decimal(factor) ** min(iteration // every, 400)
    assert strength == min(float(exact), last) or strength == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize(
    "wrong", [{"iteration": -1}, {"first": 0.0}, {"first": 2.0}, {"every": 0}, {"factor": 1}, {"last": math.inf}]
)
def test_impossible_steps_are_refused(wrong: dict[str, float]) -> None:
    """Impossible steps are errors that state the values and the rule."""
    with pytest.raises(ValueError, match="must hold"):
        stepwise(**{"iteration": 0, "first": 0.1, "last": 1.0, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("trials", [1, 3, 16])
def test_a_trials_gradient_is_clipped_by_its_own_norm(trials: int) -> None:
    """Each trial of a pack is clipped as torch clips it alone, with the same bits in the pack and alone."""
    gradients = gradients_of(trials)
    together = clip_by_norm(gradients, 1.0, has_trials=True)
    for trial in range(trials):
        own = [gradient[trial] for gradient in gradients]
        for alone, packed in zip(clip_by_norm([value.unsqueeze(0) for value in own], 1.0, True), together, strict=True):
            assert torch.equal(alone[0], packed[trial])
        parameters = [torch.zeros_like(value).requires_grad_() for value in own]
        for parameter, value in zip(parameters, own, strict=True):
            parameter.grad = value.clone()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for parameter, packed, plain in zip(parameters, together, clip_by_norm(own, 1.0), strict=True):
            torch.testing.assert_close(packed[trial], parameter.grad, rtol=1e-5, atol=0)
            assert torch.equal(plain, packed[trial])


def test_small_gradients_are_unchanged() -> None:
    """A gradient with a norm below the limit keeps its bits; a larger norm becomes the limit."""
    gradients = gradients_of(6)
    clipped = clip_by_norm(gradients, 1.0, has_trials=True)
    for trial in range(6):
        before, after = (
            math.sqrt(sum(float(value[trial].double().square().sum()) for value in values))
            for values in (gradients, clipped)
        )
        assert after == pytest.approx(min(before, 1.0), rel=1e-5)
        unchanged = [torch.equal(own[trial], limited[trial]) for own, limited in zip(gradients, clipped, strict=True)]
        assert all(unchanged) == (before < 1)


def test_nan_in_one_gradient_touches_no_other_trial() -> None:
    """Clipping by norm makes a trial's gradient all NaN if one number is, and changes no bit of other trials."""
    gradients = gradients_of(3)
    before = clip_by_norm(gradients, 1e-3, has_trials=True)
    gradients[1][1, 0, 2] = math.nan
    for unclipped, clipped in zip(before, clip_by_norm(gradients, 1e-3, has_trials=True), strict=True):
        assert torch.equal(unclipped[[0, 2]], clipped[[0, 2]])
        assert clipped[1].isnan().all()


def test_values_are_clipped_one_by_one() -> None:
    """Every number of a gradient is clamped separately, and NaN stays NaN."""
    gradient = torch.tensor([[-0.3, 0.05, math.nan, 0.1, math.inf]])
    (clipped,) = clip_by_value([gradient], 0.1)
    torch.testing.assert_close(clipped, torch.tensor([[-0.1, 0.05, math.nan, 0.1, 0.1]]), equal_nan=True)


def test_impossible_clipping_is_refused() -> None:
    """A limit of zero or NaN, and missing gradients, are refused."""
    for clip in (clip_by_norm, clip_by_value):
        for largest in (0.0, -1.0, math.nan):
            with pytest.raises(ValueError, match=f"largest={largest:g} was given"):
                clip([torch.ones(2)], largest)
        with pytest.raises(ValueError, match="at least one"):
            clip([], 1.0)


def test_outward_pushes_to_twenty() -> None:
    """The regulariser falls linearly to 0 at ±20, and its gradient points inward everywhere below."""
    theta = torch.tensor([[-30.0, -20.0, -5.0, 0.5, 19.0, 40.0]], requires_grad=True)
    value = outward(theta)
    assert float(value.detach()) == pytest.approx((15 + 19.5 + 1) / 6)
    value.backward()
    assert theta.grad is not None
    assert theta.grad[0].sign().tolist() == [0, 0, 1, -1, -1, 0]


def test_outward_sum_counts_all_parameters_once() -> None:
    """The outward sum is the sum of the five parameters' means, with the same bits alone and in a pack."""
    pack = INALU(7, 3, trials=3, generator=torch.Generator().manual_seed(0))
    alone = INALU(7, 3, trials=1)
    alone.load_state_dict({key: value[1:2] for key, value in pack.state_dict().items()})
    assert torch.equal(outward_sum(alone)[0], outward_sum(pack)[1])
    pack = INALU(7, 3, dtype=torch.float64)
    expected = sum(float((20 - value.detach().abs()).mean()) for value in pack.parameters())
    assert float(outward_sum(pack).detach()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("training", "first"), [(ORIGINAL, 11_000), (PRIMER, 10_001)])
def test_outward_begins_late_and_where_the_error_is_small(training: INALUTraining, first: int) -> None:
    """The outward regulariser is on from the published iteration, in trials with an MSE below 1 only."""
    mse = torch.tensor([0.5, 1.0, 3.0, math.nan])
    assert training.outward_strengths(first - 1, mse).tolist() == [0, 0, 0, 0]
    torch.testing.assert_close(training.outward_strengths(first, mse), torch.tensor([0.05, 0, 0, 0]))


def test_restarts_are_checked_at_the_published_iterations() -> None:
    """The original checks every batch of epochs 10, 20, ...; the Primer every tenth iteration."""
    losses = [5.0] * 10_001
    assert [ORIGINAL.restarts(at, losses) for at in (0, 500, 9_999, 10_000, 10_999, 11_000, 20_500)] == [
        False, False, False, True, True, False, True
    ]  # fmt: skip
    assert [PRIMER.restarts(at, losses) for at in (0, 5, 10, 15, 20)] == [False, False, True, False, True]


@pytest.mark.parametrize(("training", "memory"), [(ORIGINAL, 10_000), (PRIMER, 5_000)])
def test_only_high_losses_that_do_not_fall_restart(training: INALUTraining, memory: int) -> None:
    """A short history, a low loss, a falling loss and NaN don't restart a trial; a fall within the deviation does."""
    half = memory // 2 + 1
    assert not training.restarts(10_000, [5.0] * memory)
    assert training.restarts(10_000, [5.0] * (memory + 1))
    assert not training.restarts(10_000, [1.0] * (memory + 1))
    assert not training.restarts(10_000, [5.0] * half + [4.0] * half)
    assert training.restarts(10_000, [4.0] * half + [5.0] * half)
    assert training.restarts(10_000, [5.0] * half + [3.1, 5.1] * (half // 2) + [5.1] * (half % 2))
    assert not training.restarts(10_000, [math.nan] + [5.0] * 2 * half)


@given(st.lists(st.floats(0, 5, width=32), min_size=2, max_size=12))
def test_the_rule_is_its_formula(losses: list[float]) -> None:
    """The restart rule is the published inequality, with the population's standard deviation."""
    early, late = losses[: len(losses) // 2], losses[len(losses) // 2 :]
    expected = np.mean(early) <= np.mean(late) + np.std(late) and np.mean(late) > 1
    assert replace(PRIMER, restart_memory=1).restarts(10, losses) == expected


def test_restarts_have_the_settings_distribution() -> None:
    """The original restarts from U[-2, 2] in all parameters, the Primer from its own start, gates included."""
    generator = torch.Generator().manual_seed(0)
    unit = PrimerINALU(50, 80, trials=2, generator=generator)
    wide = ORIGINAL.new_values(unit, generator_uniform(generator))
    same = PRIMER.new_values(unit, generator_uniform(generator))
    for key, value in unit.named_parameters():
        assert wide[key].shape == same[key].shape == value.shape[1:]
        assert wide[key].dtype == same[key].dtype == value.dtype
        assert 1.5 < float(wide[key].abs().max()) <= 2
        assert float(same[key].std()) == pytest.approx(0.2, rel=0.3)
    assert float(wide["mask_hat_mul"].var()) == pytest.approx(4 / 3, rel=0.05)
