"""Regularisers and the sparsity error."""

from __future__ import annotations

import pytest
import torch

from units.regularize import LIMITS, Kind, Shape, out_of_bounds, sparsity
from units.sparsity import sparsity_error

both_kinds = pytest.mark.parametrize("kind", ["NAU", "NMU"])
both_shapes = pytest.mark.parametrize("shape", ["linear", "squared"])
DISCRETE = {"NAU": (-1.0, 0.0, 1.0), "NMU": (0.0, 1.0)}
# Every kink, both sides of it, and points in general position.
POINTS = torch.arange(-200, 201, dtype=torch.float64) / 80


@both_kinds
@both_shapes
def test_sparsity_is_zero_exactly_at_discrete_weights(kind: Kind, shape: Shape) -> None:
    """The regulariser is zero at discrete weights, and positive at other weights."""
    values = sparsity(POINTS[:, None, None], kind, shape)
    discrete = torch.isin(POINTS, torch.tensor(DISCRETE[kind], dtype=torch.float64))
    assert discrete.sum() == len(DISCRETE[kind])
    assert torch.equal(values == 0, discrete)
    assert (values >= 0).all()


@both_kinds
@both_shapes
def test_out_of_bounds_is_zero_exactly_within(kind: Kind, shape: Shape) -> None:
    """The regulariser is zero within the bounds, and the excess or its square outside."""
    low, high = LIMITS[kind]
    excess = (POINTS - POINTS.clamp(low, high)).abs()
    expected = excess if shape == "linear" else excess**2
    torch.testing.assert_close(out_of_bounds(POINTS[:, None, None], kind, shape), expected)


@both_kinds
@both_shapes
def test_value_is_a_mean_per_trial(kind: Kind, shape: Shape) -> None:
    """Each trial's value is the mean over its own weights."""
    weight = torch.linspace(-2, 2, 24, dtype=torch.float64).reshape(4, 2, 3)
    for function in (sparsity, out_of_bounds):
        each = torch.stack([function(w.reshape(-1, 1, 1), kind, shape).mean() for w in weight])
        torch.testing.assert_close(function(weight, kind, shape), each)


def test_squared_values() -> None:
    """The squared shapes have the draft's values."""
    weight = torch.tensor([[-0.5]])
    assert float(sparsity(weight, "NAU", "squared")) == 0.25**2
    assert float(sparsity(weight, "NMU", "squared")) == 0.75**2
    assert float(sparsity(weight, "NMU", "linear")) == 0.5


def test_sparsity_error_is_the_worst_weight() -> None:
    """The error is the largest distance from -1, 0 or 1, over all layers, per trial, and keeps NaN."""
    first = torch.tensor([[[1.0, 0.0]], [[-0.9, 0.25]], [[1.0, torch.nan]]])
    second = torch.tensor([[[0.5]], [[1.0]], [[1.0]]])
    error = sparsity_error([first, second])
    assert error[:2].tolist() == [0.5, 0.25]
    assert error[2].isnan()
