"""Hand-derived gradients against automatic differentiation of the units, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from tasks.arithmetic.engine.compiled.formulas import ELU, LINEAR, PLAIN, RELU, RELU6, SELU, SIGMOID, SOFTSIGN, TANH
from tasks.arithmetic.engine.cpu import gates as of_gates
from tasks.arithmetic.engine.cpu import gradients as g
from tasks.arithmetic.engine.cpu import weights as of_weights
from units.gated import gated
from units.kernels import elu, sigmoid
from units.linear import linear, selu
from units.nac import nac_mul, nac_weight
from units.nalu import nalu
from units.nau import nau
from units.nmu import nmu

# Outputs, inputs, rows: corners, and some at random.
_RNG = np.random.default_rng(0)
SHAPES = [(1, 1, 16), (1, 2, 32), (2, 4, 48), (3, 7, 16), (5, 10, 64)]
SHAPES += [(int(_RNG.integers(1, 9)), int(_RNG.integers(1, 33)), 16 * int(_RNG.integers(1, 9))) for _ in range(5)]
ACTIVATIONS = {
    LINEAR: lambda z: z,
    RELU: torch.relu,
    RELU6: functional.relu6,
    TANH: torch.tanh,
    SIGMOID: sigmoid,
    SOFTSIGN: functional.softsign,
    SELU: selu,
    ELU: elu,
}


class Drawn:
    """Arrays of a random layer with corner cases: a zero input, and weights at the ends of their range."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.out, self.inputs, self.batch = shape
        self.rng = np.random.default_rng(sum(shape))
        self.x = self.rng.uniform(-3, 3, (self.inputs, self.batch))
        self.x[0, 0] = 0
        self.y, self.y_grad = self.rows(self.out), self.rng.normal(size=(self.out, self.batch))
        self.x_grad = self.rng.normal(size=self.x.shape)
        self.x_grad_before = self.x_grad.copy()
        self.ones = np.ones((1, self.batch))

    def rows(self, count: int) -> Any:
        return np.full((count, self.batch), np.nan)

    def weight(self, low: float = -1.0, high: float = 1.0) -> Any:
        weight = self.rng.uniform(low, high, (self.out, self.inputs))
        weight.flat[0] = high
        weight.flat[-1] = low
        return weight

    def check(self, function: Any, *parameters: tuple[Any, Any]) -> None:
        """Compare the output and every gradient with autograd's; parameters' gradients were added to ones."""
        tensors = [torch.tensor(value, requires_grad=True) for value, _ in parameters]
        x = torch.tensor(self.x.T.copy(), requires_grad=True)
        expected = function(x, *tensors)
        expected.backward(torch.tensor(self.y_grad.T.copy()))
        close(self.y, expected.detach().numpy().T)
        for tensor, (_, gradient) in zip(tensors, parameters, strict=True):
            close(gradient - 1, tensor.grad.numpy())
        close(self.x_grad - self.x_grad_before, x.grad.numpy().T)


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * max(1, abs(expected).max()))


@pytest.fixture(params=SHAPES, ids=str)
def d(request: pytest.FixtureRequest) -> Drawn:
    """Draw a layer of each shape."""
    return Drawn(request.param)


def test_nau(d):
    """NAU, and NAC+ with given weights, have the gradients of a sum."""
    w = d.weight()
    w_grad, bias = np.ones_like(w), np.zeros((1, d.out))
    g.affine_forward(w, bias, PLAIN, d.x, d.rows(d.out), d.y)
    g.affine_backward(w, PLAIN, d.x, d.rows(d.out), d.y, d.y_grad, d.ones, w_grad, bias, d.x_grad)
    d.check(nau, (w, w_grad))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_affine(d, activation):
    """An affine layer has autograd's gradients with each activation."""
    w, bias, z = d.weight(-3, 3), d.rng.normal(size=(1, d.out)), d.rows(d.out)
    w_grad, bias_grad = np.ones_like(w), np.ones_like(bias)
    g.affine_forward(w, bias, activation, d.x, z, d.y)
    g.affine_backward(w, activation, d.x, z, d.y, d.y_grad, d.ones, w_grad, bias_grad, d.x_grad)
    d.check(lambda x, w, b: ACTIVATIONS[activation](linear(x, w, b[0])), (w, w_grad), (bias, bias_grad))


def test_nmu(d):
    """An NMU has the gradients of a product, also at a zero factor (W = 1 and x = 0)."""
    w, before = d.weight(0, 1), d.rows(d.inputs)
    d.x[-1, 1] = 0
    w_grad = np.ones_like(w)
    g.nmu_forward(w, d.x, before, d.y)
    g.nmu_backward(
        w, d.x, before, d.y, d.y_grad, d.ones, d.rows(1), d.rows(d.inputs), w_grad, d.x_grad
    )  # fmt: skip
    d.check(nmu, (w, w_grad))


def test_nac_mul(d):
    """A product in log space has autograd's gradients, also at x = 0."""
    w, logs = d.weight(), d.rows(d.inputs)
    w_grad = np.ones_like(w)
    g.nac_mul_forward(w, d.x, False, logs, d.y)
    g.nac_mul_backward(w, d.x, logs, d.y, d.y_grad, d.rows(d.out), d.rows(d.inputs), w_grad, d.x_grad)
    d.check(nac_mul, (w, w_grad))


@pytest.mark.parametrize("gate", [1.0, 60.0])
@pytest.mark.parametrize("shared", [True, False])
def test_nalu(d, shared, gate):
    """A NALU has autograd's gradients, with shared and separate weights, and with saturated gates."""
    d.x[:] = np.where(d.x == 0, 0, d.x + np.sign(d.x) / 2)  # avoid steep slopes near 0
    w_add, w_gate = d.weight(), gate * d.weight()
    w_mul = w_add if shared else d.weight()
    add_grad, gate_grad = np.ones_like(w_add), np.ones_like(w_gate)
    mul_grad = add_grad if shared else np.ones_like(w_mul)
    logs, sums, products, gates = d.rows(d.inputs), d.rows(d.out), d.rows(d.out), d.rows(d.out)
    of_gates.nalu_forward(w_add, w_mul, w_gate, d.x, False, logs, sums, products, gates, d.y)
    of_gates.nalu_backward(
        w_add, w_mul, w_gate, d.x, logs, sums, products, gates, d.y_grad, d.rows(d.out), d.rows(d.out),
        d.rows(d.inputs), add_grad, mul_grad, gate_grad, d.x_grad,
    )  # fmt: skip
    if shared:
        d.check(lambda x, w, gate: nalu(x, w, w, gate), (w_add, add_grad), (w_gate, gate_grad))
    else:
        d.check(nalu, (w_add, add_grad), (w_mul, mul_grad), (w_gate, gate_grad))


@pytest.mark.parametrize("gate", [1.0, 60.0])
def test_gated(d, gate):
    """A gated NAU/NMU has autograd's gradients, also with saturated gates."""
    w_add, w_mul, w_gate = d.weight(), d.weight(0, 1), gate * d.weight()
    add_grad, mul_grad, gate_grad = (np.ones_like(w_add) for _ in range(3))
    before, sums, products, gates = d.rows(d.inputs), d.rows(d.out), d.rows(d.out), d.rows(d.out)
    of_gates.gated_forward(w_add, w_mul, w_gate, d.x, before, sums, products, gates, d.y)
    of_gates.gated_backward(
        w_add, w_mul, w_gate, d.x, before, sums, products, gates, d.y_grad, d.ones, d.rows(d.out), d.rows(d.out),
        d.rows(1), d.rows(d.inputs), add_grad, mul_grad, gate_grad, d.x_grad,
    )  # fmt: skip
    d.check(gated, (w_add, add_grad), (w_mul, mul_grad), (w_gate, gate_grad))


def test_unwanted_gradients_cost_nothing(d):
    """With an empty array for the inputs' gradient, that gradient is skipped, and the weights' gradient is the same."""
    w, before = d.weight(0, 1), d.rows(d.inputs)
    gradients = []
    for x_grad in (np.zeros_like(d.x), np.zeros((0, d.batch))):
        w_grad = np.zeros_like(w)
        g.nmu_forward(w, d.x, before, d.y)
        g.nmu_backward(w, d.x, before, d.y, d.y_grad, d.ones, d.rows(1), d.rows(d.inputs), w_grad, x_grad)
        gradients.append(w_grad)
    np.testing.assert_array_equal(*gradients)


def test_nac_weights():
    """tanh(Ŵ) ⊙ σ(M̂) has autograd's gradients, also where it is saturated."""
    rng = np.random.default_rng(0)
    values = [np.append(rng.normal(size=20), [0.0, 40.0, -40.0, 8.0]) for _ in range(2)]
    w, w_grad = np.empty(24), rng.normal(size=24)
    gradients = np.empty(24), np.empty(24)
    factors = np.empty(24), np.empty(24)
    of_weights.nac_weight_forward(*values, *factors, w)
    of_weights.nac_weight_backward(*factors, w_grad, *gradients)
    tensors = [torch.tensor(value, requires_grad=True) for value in values]
    expected = nac_weight(*tensors)
    expected.backward(torch.tensor(w_grad))
    close(w, expected.detach().numpy())
    for ours, tensor in zip(gradients, tensors, strict=True):
        close(ours, tensor.grad.numpy())


def test_sigmoid_weights():
    """σ(Ŵ) has autograd's gradient, also where it is saturated."""
    value = np.linspace(-50, 50, 21)
    w, w_grad, gradient = np.empty(21), np.linspace(-1, 2, 21), np.empty(21)
    of_weights.sigmoid_weight_forward(value, w)
    of_weights.sigmoid_weight_backward(w, w_grad, gradient)
    tensor = torch.tensor(value, requires_grad=True)
    expected = sigmoid(tensor)
    expected.backward(torch.tensor(w_grad))
    close(w, expected.detach().numpy())
    close(gradient, tensor.grad.numpy())


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 1.0)])
def test_clamped_weights(low, high):
    """The gradient passes through a clamp within the bounds and on them."""
    value = np.array([-7.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, np.nan])
    w, w_grad, gradient = np.empty(8), np.arange(1.0, 9.0), np.empty(8)
    of_weights.clamp_weight_forward(value, low, high, w)
    of_weights.clamp_weight_backward(value, low, high, w_grad, gradient)
    tensor = torch.tensor(value, requires_grad=True)
    expected = tensor.clamp(low, high)
    expected.backward(torch.tensor(w_grad))
    np.testing.assert_array_equal(w, expected.detach().numpy())
    np.testing.assert_array_equal(gradient[:-1], tensor.grad.numpy()[:-1])
