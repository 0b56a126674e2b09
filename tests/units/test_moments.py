"""Equations 8 to 10: their values, their relations, and simulations that contradict the paper."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from units.moments import (
    fan_reach,
    nac_mul_gradient,
    nac_mul_limit,
    nac_mul_mean,
    nac_mul_power,
    nac_mul_variance,
    nmu_gradient,
    nmu_mean,
    nmu_variance,
)
from units.optimal_variance import (
    largest_input_variance,
    misprinted_forward_optimum,
    nmu_backward_optimum,
    nmu_forward_optimum,
)
from units.variance import LARGEST_NMU_VARIANCE, nac_variance

SAMPLES = 200_000
HIDDEN = st.integers(1, 12)
VARIANCES = st.floats(1e-3, 20)


def uniform(rng: np.random.Generator, mean: float, variance: float, hidden: int = 2) -> np.ndarray:
    """Draw uniform numbers with a mean and a variance, in the shape [samples, hidden]."""
    return mean + math.sqrt(3 * variance) * rng.uniform(-1, 1, (SAMPLES, hidden))


# --- equation 8 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fan", "reach"), [(5, 9.4714), (6, 5.4255), (10, 2.5003), (12, 2.0742), (20, 1.3553), (102, 0.5039)]
)
def test_the_reach_of_a_fan_is_equation_8s(fan: int, reach: float) -> None:
    """The reach r of a fan has its known value, and gives Glorot's variance."""
    assert fan_reach(fan) == pytest.approx(reach, abs=6e-5)
    assert nac_variance(fan_reach(fan)) == pytest.approx(2 / fan, rel=1e-12)


def test_weights_of_a_reach_have_equation_8s_variance() -> None:
    """The variance of drawn weights tanh(Ŵ) σ(M̂) equals the formula's within four standard errors."""
    rng = np.random.default_rng(8)
    weight_hat, mask_hat = fan_reach(12) * rng.uniform(-1, 1, (2, SAMPLES))
    squares = (np.tanh(weight_hat) / (1 + np.exp(-mask_hat))) ** 2
    assert abs(squares.mean() - 2 / 12) < 4 * squares.std() / math.sqrt(SAMPLES)


# --- equation 9 -------------------------------------------------------------------------------------------------


def test_equation_9_has_its_values() -> None:
    """At m = 1.5 and at m = 0 the formulas give the values computed by hand."""
    assert nac_mul_mean(2, 0.1, 1.5) == pytest.approx(1.0165, abs=5e-5)
    assert nac_mul_variance(2, 0.1, 1.5) == pytest.approx(0.0336, abs=5e-5)
    assert nac_mul_gradient(2, 0.1, 1.5, 1 / 12) == pytest.approx(0.0527, abs=5e-5)
    assert nac_mul_gradient(2, 0.1, 1.5, 1 / 12, form="draft") == pytest.approx(0.0510, abs=5e-5)
    assert nac_mul_mean(2, 0.1, 0.0) == pytest.approx(195.7, abs=0.05)
    assert nac_mul_variance(2, 0.1, 0.0) == pytest.approx(-35_498, abs=0.5)
    assert nac_mul_limit(0.0) == pytest.approx(0.0154, abs=5e-5)
    assert nac_mul_limit(1 - 1e-7) == math.inf


@given(HIDDEN, st.floats(1e-3, 1), st.floats(-3, 3))
def test_equation_9s_variance_is_negative_beyond_its_limit(hidden: int, variance: float, mean: float) -> None:
    """The variance is negative exactly where V exceeds 4 / log²(|m| + ε), for any H."""
    limit = nac_mul_limit(mean)
    if abs(variance / limit - 1) > 1e-6 and nac_mul_power(1, 1, 1, variance, mean) > 1 + 1e-6:
        assert (nac_mul_variance(hidden, variance, mean) < 0) == (variance > limit)


def test_equation_9_holds_roughly_away_from_0_and_fails_at_0() -> None:
    """For uniform weights of variance 0.1, simulation is close at m = 1.5, and finite and positive at m = 0.

    At 0, the mean is a hundredth of the formula's; at 1.5, the gradient's final form is closer than the draft's.
    """
    rng = np.random.default_rng(9)
    weight = uniform(rng, 0.0, 0.1)
    near = np.exp((weight * np.log(abs(uniform(rng, 0.0, 1.0)) + 1e-7)).sum(axis=1))
    assert near.mean() < 2 < 100 < nac_mul_mean(2, 0.1, 0.0)
    assert near.var() > 0 > nac_mul_variance(2, 0.1, 0.0)
    z = uniform(rng, 1.5, 1 / 12)
    away = np.exp((weight * np.log(z)).sum(axis=1))
    assert away.mean() == pytest.approx(nac_mul_mean(2, 0.1, 1.5), abs=0.005)
    assert away.var() == pytest.approx(nac_mul_variance(2, 0.1, 1.5), rel=0.3)
    gradient = np.mean((away * weight[:, 0] / z[:, 0]) ** 2)
    draft, final = (nac_mul_gradient(2, 0.1, 1.5, 1 / 12, form=form) for form in ("draft", "final"))
    assert draft < final < gradient < 1.1 * final


# --- equation 10 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [-1.0, 0.0, 1.5])
@pytest.mark.parametrize("hidden", [1, 2, 3])
def test_the_nmus_moments_are_those_of_drawn_products(hidden: int, mean: float) -> None:
    """Mean, variance and gradient of drawn products are the formulas' within five standard errors, at any m."""
    rng = np.random.default_rng(10)
    z, weight = uniform(rng, mean, 1.0, hidden), uniform(rng, 0.5, 1 / 12, hidden)
    factors = weight * z + 1 - weight
    out, slope = factors.prod(axis=1), weight[:, 0] * factors[:, 1:].prod(axis=1)

    def is_near(values: np.ndarray, expected: float) -> bool:
        return bool(abs(values.mean() - expected) < 5 * values.std() / math.sqrt(SAMPLES))

    assert is_near(out, nmu_mean(hidden, mean))
    assert is_near((out - out.mean()) ** 2, nmu_variance(hidden, 1 / 12, 1.0, mean))
    assert is_near(slope**2, nmu_gradient(hidden, 1 / 12, 1.0, input_mean=mean))
    assert is_near((slope - slope.mean()) ** 2, nmu_gradient(hidden, 1 / 12, 1.0, form="draft", input_mean=mean))


def test_the_drafts_gradient_is_wrong_for_a_product() -> None:
    """The variance of δ ∂z/∂z_1, with δ of mean 0 and variance 1, equals the final form, not the draft's."""
    rng = np.random.default_rng(11)
    z, weight, delta = uniform(rng, 0.0, 1.0), uniform(rng, 0.5, 1 / 12), rng.standard_normal(SAMPLES)
    squares = (delta * weight[:, 0] * (weight[:, 1] * z[:, 1] + 1 - weight[:, 1])) ** 2
    error = squares.std() / math.sqrt(SAMPLES)
    draft, final = (nmu_gradient(2, 1 / 12, 1.0, form=form) for form in ("draft", "final"))
    assert abs(squares.mean() - final) < 4 * error < 40 * error < abs(squares.mean() - draft)


@given(HIDDEN, st.floats(0, 1 / 4), VARIANCES)
def test_equation_10_is_the_extension_at_mean_0(hidden: int, variance: float, input_variance: float) -> None:
    """At m = 0 the extension to any m is equation 10, term by term."""
    second = (variance + 1 / 4) ** hidden * (input_variance + 1) ** hidden
    assert nmu_mean(hidden) == 2.0**-hidden
    assert nmu_variance(hidden, variance, input_variance) == pytest.approx(second - 4.0**-hidden, rel=1e-9, abs=1e-12)
    gradient = nmu_gradient(hidden, variance, input_variance, 3)
    assert gradient == pytest.approx(3 * second / (input_variance + 1), rel=1e-9)
    draft = nmu_gradient(hidden, variance, input_variance, 3, "draft")
    assert draft + 3 * 4.0**-hidden == pytest.approx(gradient, rel=1e-9)


# --- the variance that keeps variances --------------------------------------------------------------------------


@given(HIDDEN, st.floats(0.1, 3), st.integers(1, 5))
def test_optimal_variances_keep_the_variance(hidden: int, input_variance: float, outputs: int) -> None:
    """Equation 10 with the optimal V returns the input's variance, forwards and backwards."""
    forward = nmu_forward_optimum(hidden, input_variance)
    assert nmu_variance(hidden, max(0, forward), input_variance) == pytest.approx(input_variance)
    backward = nmu_backward_optimum(hidden, input_variance, outputs)
    if backward >= 0:
        assert nmu_gradient(hidden, backward, input_variance, outputs) == pytest.approx(1)


def test_optimal_variances_have_their_values() -> None:
    """At v = 1, optimal variances have known values, too large for uniform weights and different from the appendix."""
    forward = [nmu_forward_optimum(hidden, 1.0) for hidden in (1, 2, 3, 4, 10)]
    assert forward == pytest.approx([0.375, 0.2654, 0.2526, 0.2505, 0.25], abs=5e-5)
    assert min(forward) > LARGEST_NMU_VARIANCE
    assert [nmu_backward_optimum(hidden, 1.0, 2) for hidden in (1, 2, 3, 10)] == pytest.approx([0.25] * 4)
    with pytest.raises(ValueError, match="a finite input_mean"):
        nmu_gradient(2, 0.1, 1.0, input_mean=math.inf)
    assert nmu_backward_optimum(2000, 1.0) == pytest.approx(0.2502, abs=5e-5)  # 2^-1999 isn't a float
    for hidden in range(1, 8):
        right = ((4**hidden + 1) ** (1 / hidden) - 2) / 8
        assert nmu_forward_optimum(hidden, 1.0) == pytest.approx(right)
        assert (misprinted_forward_optimum(hidden) == pytest.approx(right)) == (hidden == 1)


@pytest.mark.parametrize(
    ("hidden", "largest"), [(1, math.inf), (2, 14), (3, 6.45), (4, 4.98), (5, 4.37), (10, 3.54), (5000, 3)]
)
def test_the_largest_variance_with_a_solution(hidden: int, largest: float) -> None:
    """A V exists up to the known input variance v, and doesn't exist beyond it."""
    assert largest_input_variance(hidden) == pytest.approx(largest, abs=0.006)
    if 1 < hidden < 100:
        end = largest_input_variance(hidden)
        assert nmu_forward_optimum(hidden, 0.999 * end) > 0 > nmu_forward_optimum(hidden, 1.001 * end)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fan_reach(4), "fan=4 was given, but fan > 4"),
        (lambda: nac_mul_mean(0, 0.1, 1.0), "hidden=0 was given, but hidden >= 1"),
        (lambda: nac_mul_variance(2, -0.1, 1.0), "weight_variance=-0.1 was given"),
        (lambda: nac_mul_mean(2, 0.1, math.nan), "input_mean=nan was given"),
        (lambda: nac_mul_mean(2, 0.1, 1.0, epsilon=0), "epsilon=0 was given"),
        (lambda: nac_mul_gradient(2, 0.1, 1.0, 1.0, 0), "outputs=0 was given"),
        (lambda: nmu_gradient(2, 0.1, 1.0, form="first"), "form=first was given"),  # type: ignore[arg-type]
        (lambda: nmu_variance(2, 0.1, -1.0), "input_variance=-1.0 was given"),
        (lambda: nmu_forward_optimum(2, 0.0), "input_variance=0.0 was given"),
        (lambda: misprinted_forward_optimum(23), "hidden=23 was given"),
        (lambda: largest_input_variance(0), "hidden=0 was given"),
    ],
)
def test_arguments_out_of_range_are_refused(call: Callable[[], object], message: str) -> None:
    """Arguments out of range are errors that state the values and the rule."""
    with pytest.raises(ValueError, match=message):
        call()
