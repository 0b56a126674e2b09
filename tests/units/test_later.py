"""The later units: exact weights, plain formulas, and numerical corner cases."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from units import UNITS
from units.golden import GOLDEN_RATIO, golden_gate_values, golden_weight
from units.inalu import INALU, PrimerINALU, inalu, inalu_mul
from units.npu import EPSILON, NPU, ModifiedRealNPU, RealNPU, npu, real_npu
from units.reciprocal import NMRU, NRU, nmru, nru, with_reciprocals
from units.sparsity import sparsity_error

X = torch.tensor([[2.0, -3.0, 0.75, 7.0], [5.0, 0.5, -4.0, 3.0], [-1.0, -11.0, -6.0, 0.25], [0.0, 2.0, 3.0, -5.0]])
LATER = ("NPU", "RealNPU", "RealNPU-modified", "NRU", "NMRU", "iNALU", "iNALU-Primer", "G-NALU")
both_modes = pytest.mark.parametrize("is_training", [True, False])


def choices(*values: float) -> Tensor:
    """Return all rows of four weights from the given values."""
    return torch.tensor(list(itertools.product(values, repeat=4)))


def quotients(x: Tensor, weight: Tensor) -> Tensor:
    """Return products of inputs raised to the weights, in double precision."""
    return (x.double().unsqueeze(1) ** weight.double()).prod(-1)


def assert_close(y: Tensor, expected: Tensor, rtol: float = 2e-6) -> None:
    """Assert that single-precision numbers equal double-precision ones up to rounding."""
    torch.testing.assert_close(y.double(), expected, rtol=rtol, atol=0)


def test_npus_multiply_and_divide_with_signs() -> None:
    """With weights in {-1, 0, 1} and open gates, both NPUs give products and quotients of inputs of any sign."""
    x, weight, gate = X[:3], choices(-1.0, 0.0, 1.0), torch.ones(1, 4)
    expected = quotients(x, weight)
    assert (expected < 0).any()
    assert_close(real_npu(x, weight, gate), expected)
    assert_close(npu(x, weight, torch.zeros_like(weight), gate), expected)


def test_a_closed_gate_ignores_an_input() -> None:
    """Inputs with gates at or below 0 are factors of exactly 1, whatever their weights."""
    weight, gate = torch.tensor([[1.0, -0.7, 3.0, -1.0]]), torch.tensor([[1.0, 0.0, -2.0, 5.0]])
    alone = real_npu(X[:, [0, 3]], weight[:, [0, 3]], torch.ones(1, 2))
    assert torch.equal(real_npu(X, weight, gate), alone)


def test_npu_is_the_real_part_of_a_complex_power() -> None:
    """With open gates, the NPU is Re prod_i (|x_i| + ε, turned by π if negative)^(R + iI)."""
    generator = torch.Generator().manual_seed(0)
    real, imaginary = torch.rand(2, 5, 4, generator=generator, dtype=torch.float64) - 0.5
    x = X.double()
    base = torch.polar(x.abs() + EPSILON, math.pi * (x < 0).double())
    expected = (base.unsqueeze(1) ** torch.complex(real, imaginary)).prod(-1).real
    torch.testing.assert_close(npu(x, real, imaginary, torch.ones(1, 4).double()), expected, rtol=1e-12, atol=1e-12)


@both_modes
def test_nru_multiplies_and_divides(is_training: bool) -> None:
    """With weights in {-1, 0, 1}, the NRU gives products and quotients, the same in training and in evaluation."""
    x, weight = X[:3], choices(-1.0, 0.0, 1.0)
    assert_close(nru(x, weight, is_training), quotients(x, weight))
    assert torch.equal(nru(x, weight, True), nru(x, weight, False))


@both_modes
def test_nmru_multiplies_and_divides(is_training: bool) -> None:
    """With weights in {0, 1}, the NMRU gives products and quotients; in training, up to its ε."""
    x = X[:3]
    weight = torch.cat([choices(0.0, 1.0), choices(0.0, 1.0).flip(0)], -1)  # each input or its reciprocal
    signs = weight[:, :4] - weight[:, 4:]
    assert_close(nmru(x, weight, is_training), quotients(x, signs), rtol=1e-5 if is_training else 5e-6)


def test_nmru_cancels_an_input_by_its_reciprocal() -> None:
    """Weights of 1 for an input and its reciprocal cancel the input."""
    weight = torch.tensor([[1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    assert_close(nmru(X[:3], weight, False), X[:3, 1:2].double())


@pytest.mark.parametrize("unit", [NRU, NMRU])
def test_training_and_evaluation_differ(unit: type[NRU] | type[NMRU]) -> None:
    """The unit's function changes with torch's `train` and `eval`."""
    layer = unit(4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    function = nru if unit is NRU else nmru
    x = X[:3].double()
    assert torch.equal(layer.train()(x), function(x, layer.weight, True))
    assert torch.equal(layer.eval()(x), function(x, layer.weight, False))
    assert not torch.equal(layer.train()(x), layer.eval()(x))


def test_inalu_multiplies_and_divides_with_signs() -> None:
    """With weights in {-1, 0, 1}, the iNALU's product has the right sign and size; 0 counts as 1e-7 with sign 0."""
    weight = choices(-1.0, 0.0, 1.0)
    assert_close(inalu_mul(X[:3], weight), quotients(X[:3], weight))
    assert torch.equal(inalu_mul(X[3:], weight)[0] == 0, weight[:, 0] != 0)


def test_inalu_is_bounded() -> None:
    """A product above e^20 is e^20 with its sign."""
    y = inalu_mul(torch.tensor([[1e8, -1e8]]), torch.ones(1, 2))
    assert y.item() == pytest.approx(-math.exp(20), rel=1e-6)


@pytest.mark.parametrize(("gate", "path"), [(60.0, 0), (-120.0, 1)])
def test_inalu_gate_chooses(gate: float, path: int) -> None:
    """An open gate gives the sum by its own weights, a closed gate the product by its own weights."""
    add, mul = choices(-1.0, 0.0, 1.0), choices(-1.0, 0.0, 1.0).flip(0)
    y = inalu(X, add, mul, torch.full((1, len(add)), gate))
    torch.testing.assert_close(y, (X @ add.T, inalu_mul(X, mul))[path])


def test_golden_functions_are_those_of_their_base() -> None:
    """Weights and gates equal the formulas with powers of φ, even where those would overflow."""
    hat = torch.linspace(-30, 30, 121, dtype=torch.float64)
    phi = torch.tensor(GOLDEN_RATIO, dtype=torch.float64)
    tanh = (phi ** (2 * hat) - 1) / (phi ** (2 * hat) + 1)
    torch.testing.assert_close(golden_weight(hat, hat), tanh / (1 + phi**-hat), rtol=1e-12, atol=1e-14)
    gates = golden_gate_values(hat.unsqueeze(-1), torch.ones(1, 1, dtype=torch.float64))
    torch.testing.assert_close(gates, 1 / (1 + phi ** -hat.unsqueeze(-1)), rtol=1e-12, atol=0)
    big = torch.tensor([-1e4, 0.0, 1e4])
    assert golden_weight(big, big.abs()).tolist() == [-1, 0, 1]


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("is_training", [True, False])
def test_gradients_are_finite_at_kinks(name: str, is_training: bool) -> None:
    """At x = 0, with discrete and other weights and gates, outputs and gradients are finite."""
    unit = UNITS[name](3, 2).train(is_training)
    x = torch.tensor([[0.0, 0.0, 0.0], [0.0, 2.0, -3.0], [1.5, -0.0, 2.0]], requires_grad=True)
    for weight, gate in itertools.product((-1.0, 0.0, 0.5, 1.0), (0.0, 0.5, 1.0)):
        with torch.no_grad():
            for key, parameter in unit.named_parameters():
                parameter.fill_(gate if key == "gate" else weight)
        unit.clip_()
        y = unit(x)
        gradients = torch.autograd.grad(y.sum(), [x, *unit.parameters()])
        assert all(value.isfinite().all() for value in (y, *gradients)), (weight, gate)


@pytest.mark.parametrize("unit", [NPU, RealNPU, ModifiedRealNPU])
def test_the_gates_clip_has_no_gradient_outside(unit: type[NPU] | type[RealNPU]) -> None:
    """Gates outside of [0, 1] have a gradient of zero; gates inside or at the ends don't."""
    layer = unit(5, 2, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        layer.gate.copy_(torch.tensor([[-0.5, 0.0, 0.5, 1.0, 1.5]]))
    layer(torch.full((2, 5), 1.5)).sum().backward()
    assert layer.gate.grad is not None
    assert layer.gate.grad.ne(0).tolist() == [[False, True, True, True, False]]


def test_reciprocals_of_zero_are_finite() -> None:
    """The reciprocal of 0 is 1/ε, in training and in evaluation."""
    x = torch.tensor([[0.0, -EPSILON, 2.0]])
    assert with_reciprocals(x, True)[0, 3:].tolist() == [1 / EPSILON, 1 / EPSILON, pytest.approx(0.5)]
    assert with_reciprocals(x, False)[0, 3:].tolist() == [1 / EPSILON, -1 / EPSILON, 0.5]


@pytest.mark.parametrize(("unit", "reach"), [(RealNPU, math.sqrt(2)), (NPU, math.sqrt(2)), (ModifiedRealNPU, 0.5)])
def test_npus_start_within_their_bounds(unit: type[NPU] | type[RealNPU], reach: float) -> None:
    """With 2 inputs and 1 output, W starts uniform within ± the published bound, and gates start at 1/2."""
    layer = unit(2, 1, trials=4000, generator=torch.Generator().manual_seed(0))
    assert float(layer.weight.detach().abs().max()) == pytest.approx(reach, rel=2e-3)
    assert float(layer.weight.detach().var()) == pytest.approx(reach**2 / 3, rel=0.05)
    assert (layer.gate == 0.5).all()
    assert not isinstance(layer, NPU) or (layer.weight_imaginary == 0).all()


@pytest.mark.parametrize(
    ("unit", "start"),
    [
        (INALU, {"weight_hat": (1, 0.1), "mask_hat": (-1, 0.1), "gate": (0, 0.1)}),
        (PrimerINALU, {"weight_hat": (0.88, 0.2), "mask_hat": (0.5, 0.2), "gate": (0, 0.2)}),
    ],
)
def test_inalus_start_from_the_published_normals(unit: type[INALU], start: dict[str, tuple[float, float]]) -> None:
    """Each parameter starts normally distributed with the published mean and deviation; a variance can't be chosen."""
    layer = unit(100, 4000, generator=torch.Generator().manual_seed(0))
    for key, value in layer.named_parameters():
        mean, std = start[key.removesuffix("_add").removesuffix("_mul")]
        assert float(value.detach().mean()) == pytest.approx(mean, abs=4 * std / math.sqrt(value.numel()))
        assert float(value.detach().std()) == pytest.approx(std, rel=0.05)
    with pytest.raises(ValueError, match=f"init_variance=0.1 was given for {unit.__name__}, .*leave it out"):
        unit(2, 1, init_variance=0.1)


@pytest.mark.parametrize("unit", [NPU, INALU])
def test_two_matrices_errors_are_averaged(unit: type[NPU] | type[INALU]) -> None:
    """The sparsity error is the mean of both matrices' errors, without the gates."""
    layer = unit(3, 2, trials=4, generator=torch.Generator().manual_seed(0))
    if isinstance(layer, NPU):
        layer.weight_imaginary.data.fill_(0.25)
    first, second = (sparsity_error([weight.detach()]) for weight in layer.effective_weights())
    assert not torch.equal(first, second)
    assert torch.equal(layer.sparsity_error(), (first + second) / 2)
    layer.gate.data.fill_(0.3)
    assert torch.equal(layer.sparsity_error(), (first + second) / 2)


def test_the_regulariser_of_the_modified_real_npu() -> None:
    """The modified RealNPU's regulariser is the mean of |1 - |W|| plus the mean distance of gates from 0 or 1."""
    layer = ModifiedRealNPU(2, 1)
    for weight, gate, expected in (
        ([1.0, -1.0], [0.0, 1.0], 0.0), ([0.0, 1.0], [1.0, 1.0], 0.5), ([1.0, 0.5], [0.25, 1.0], 0.25 + 0.125)
    ):  # fmt: skip
        layer.weight.data.copy_(torch.tensor([weight]))
        layer.gate.data.copy_(torch.tensor([gate]))
        assert float(layer.sparsity("linear").detach()) == expected
        assert (float(layer.sparsity("squared").detach()) == 0) == (expected == 0)
