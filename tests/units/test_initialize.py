"""Initial weights and their variances."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from units.initialize import normal
from units.variance import (
    largest_nac_variance,
    largest_sigmoid_variance,
    nac_reach,
    nac_variance,
    sigmoid_std,
    sigmoid_variance,
)


@pytest.mark.parametrize("reach", [1e-4, 9.99e-4, 1.001e-3, 0.1, 1.0, 5.0, 80.0])
def test_nac_variance_holds(reach: float) -> None:
    """The closed form equals the variance of tanh(Ŵ) σ(M̂) by quadrature over both uniforms."""
    nodes, weights = np.polynomial.legendre.leggauss(500)
    hat = reach * nodes
    mean_square = weights @ np.tanh(hat) ** 2 / 2 * (weights @ (1 / (1 + np.exp(-hat))) ** 2 / 2)
    assert nac_variance(reach) == pytest.approx(mean_square, rel=1e-6)


@pytest.mark.parametrize("std", [0.01, 0.5, 1.9, 2.1, 10.0, 400.0])
def test_sigmoid_variance_holds(std: float) -> None:
    """The variance of σ(Ŵ) by the trapezoid rule equals a fine sum over the normal's quantiles."""
    quantiles = (torch.arange(2_000_000, dtype=torch.float64) + 0.5) / 2_000_000
    value = torch.sigmoid(normal(quantiles, std)).var(correction=0)
    assert sigmoid_variance(std) == pytest.approx(float(value), rel=1e-4)


@given(st.floats(1e-6, 1.0))
def test_reach_and_std_invert_the_variances(share: float) -> None:
    """Range and standard deviation, found by bisection, give back any possible variance."""
    for largest, solve, variance in (
        (largest_nac_variance(), nac_reach, nac_variance),
        (largest_sigmoid_variance(), sigmoid_std, sigmoid_variance),
    ):
        assert variance(solve(share * largest)) == pytest.approx(share * largest, rel=1e-6)


def test_normal_is_finite_at_zero() -> None:
    """A uniform number of exactly 0 gives a finite normal number, in the lower tail of probability 2^-33."""
    ends = normal(torch.tensor([0.0, 0.5, math.nextafter(1, 0)], dtype=torch.float64), 1.0)
    assert ends.isfinite().all()
    assert float(ends[0]) == pytest.approx(-6.3379, abs=1e-4)
    assert float(ends[1]) == 0
