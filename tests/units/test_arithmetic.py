"""Units at discrete weights, and against plain formulas."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from units.gated import gated
from units.linear import selu
from units.nac import nac_add, nac_mul, nac_weight
from units.nalu import nalu
from units.nau import nau
from units.nmu import nmu, nmu_normalized

X = torch.tensor([[2.0, -3.0, 0.0, 7.0], [5.0, 0.5, -4.0, 3.0], [-1.0, 11.0, 6.0, 0.25]])


def choices(*values: float) -> Tensor:
    """Return all rows of four weights from the given values."""
    return torch.tensor(list(itertools.product(values, repeat=4)))


def test_nmu_multiplies_selected_inputs() -> None:
    """With weights in {0, 1}, the NMU gives exactly the product of the chosen inputs."""
    weight = choices(0.0, 1.0)
    y = nmu(X, weight)
    for row, x in enumerate(X):
        for out, chosen in enumerate(weight.bool()):
            assert y[row, out] == x[chosen].prod()


def test_normalized_nmu_multiplies_selected_inputs() -> None:
    """With weights in {0, 1}, the normalised NMU gives the product of the chosen inputs: its scale cancels."""
    weight = choices(0.0, 1.0)
    torch.testing.assert_close(nmu_normalized(X, weight), nmu(X, weight))


def test_normalized_nmu_accepts_equal_inputs() -> None:
    """Inputs without variance aren't scaled; output and gradient equal the plain unit's."""
    x = torch.full((3, 2), 4.0, requires_grad=True)
    weight = torch.tensor([[1.0, 0.5]], requires_grad=True)
    y = nmu_normalized(x, weight)
    assert torch.equal(y, nmu(x, weight))
    for actual, expected in zip(
        torch.autograd.grad(y.sum(), (x, weight)), torch.autograd.grad(nmu(x, weight).sum(), (x, weight)), strict=True
    ):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("unit", [nau, nac_add])
def test_nau_adds_and_subtracts_selected_inputs(unit: type) -> None:
    """With weights in {-1, 0, 1}, sums and differences are exact."""
    weight = choices(-1.0, 0.0, 1.0)
    y = unit(X, weight)
    for row, x in enumerate(X):
        for out, signs in enumerate(weight):
            assert y[row, out] == sum(float(sign * value) for sign, value in zip(signs, x, strict=True))


def test_nac_multiplies_and_divides() -> None:
    """With weights in {-1, 0, 1}, NAC• gives products and quotients of positive inputs."""
    x = X.abs() + 0.5
    weight = choices(-1.0, 0.0, 1.0)
    expected = (x.double().unsqueeze(1) ** weight.double()).prod(-1)
    torch.testing.assert_close(nac_mul(x, weight).double(), expected, rtol=2e-5, atol=0)


def test_nac_weights_saturate() -> None:
    """Large Ŵ and M̂ give weights of -1, 0 and 1."""
    big = torch.tensor([-50.0, 0.0, 50.0])
    assert nac_weight(big, torch.full((3,), 50.0)).tolist() == [-1, 0, 1]
    assert nac_weight(big, torch.full((3,), -200.0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("gate", "path"), [(60.0, 0), (-60.0, 1)])
def test_gates_choose(gate: float, path: int) -> None:
    """In both gated units, an open gate gives the sum, a closed gate the product."""
    x = X.abs() + 1
    weight = torch.ones(1, 4)
    open_ = torch.full((1, 4), gate)
    torch.testing.assert_close(nalu(x, weight, weight, open_), (nac_add, nac_mul)[path](x, weight))
    torch.testing.assert_close(gated(x, weight, weight, open_), (nau, nmu)[path](x, weight))


def test_selu_is_torchs() -> None:
    """The placement-invariant SELU agrees with torch's to the last bits."""
    x = torch.linspace(-20, 5, 101)
    torch.testing.assert_close(selu(x), torch.nn.functional.selu(x))
