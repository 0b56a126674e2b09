"""The gradient of a product in corner cases."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from units.product import product


def plain(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply factor by factor, so that autograd's derivative is right at zeros."""
    result = torch.ones(())
    for i in range(x.shape[-1]):
        part = weight[..., i]
        result = result * (x[..., i : i + 1] * part.unsqueeze(-2) + 1 - part.unsqueeze(-2))
    return result


@pytest.mark.parametrize("features", [1, 2, 3, 4, 7, 10])
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("outputs", [1, 2])
def test_gradient_is_right_at_zero_factors(features: int, zeros: int, outputs: int) -> None:
    """With zero, one or several factors of exactly 0, gradients equal those of a chain of products."""
    generator = torch.Generator().manual_seed(features)
    x = 3 * torch.rand(3, 5, features, generator=generator, dtype=torch.float64) - 1
    weight = torch.rand(3, outputs, features, generator=generator, dtype=torch.float64)
    x[1, 2, :zeros], weight[1, 0, :zeros] = 0, 1  # the factor is W x + 1 - W
    x.requires_grad_()
    weight.requires_grad_()
    grad = torch.rand(3, 5, outputs, generator=generator, dtype=torch.float64)
    ours = torch.autograd.grad(product(x, weight), (x, weight), grad)
    theirs = torch.autograd.grad(plain(x, weight), (x, weight), grad)
    for actual, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-14)


def test_nan_in_one_trial_hides_no_zero_in_another() -> None:
    """If one trial is NaN and its neighbour has a zero factor, the neighbour's gradient is still right."""
    x = torch.tensor([[[torch.nan, 2.0, 3.0]], [[0.0, 2.0, 3.0]]], requires_grad=True)
    (grad,) = torch.autograd.grad(product(x, torch.ones(2, 1, 3)).sum(), x)
    assert grad[1].tolist() == [[6.0, 0.0, 0.0]]


@pytest.mark.parametrize("features", [3, 10])
def test_gradient_survives_underflow(features: int) -> None:
    """Gradients are right even if the whole product underflows."""
    x = torch.full((1, features), 2.0)
    x[0, :2] = 1e-25
    weight = torch.ones(1, features)
    x.requires_grad_()
    y = product(x, weight)
    assert float(y.detach()) == 0
    (grad,) = torch.autograd.grad(y, x, torch.ones(1, 1))
    assert float(grad[0, 0]) == pytest.approx(1e-25 * 2.0 ** (features - 2), rel=1e-5)
