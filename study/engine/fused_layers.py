"""One layer of the fused engine, whichever unit it is: from parameters to output, and from gradient to gradient.

Choosing the unit costs a few comparisons a block of rows; in exchange one compilation serves all models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from study.engine.fused_compile import inlined, internal
from study.engine.gradients import (
    ELU,
    LINEAR,
    PLAIN,
    RELU,
    RELU6,
    SELU,
    SIGMOID,
    SOFTSIGN,
    TANH,
    affine_backward,
    affine_forward,
    clamp_weight_backward,
    clamp_weight_forward,
    gated_backward,
    gated_forward,
    nac_mul_backward,
    nac_mul_forward,
    nac_weight_backward,
    nac_weight_forward,
    nalu_backward,
    nalu_forward,
    nmu_backward,
    nmu_forward,
    sigmoid_weight_backward,
    sigmoid_weight_forward,
)

AFFINE, NMU, NAC_MUL, NALU, GATED = range(5)
FREE, NAC, SQUASHED = range(3)


class Code(NamedTuple):
    """Which unit a layer is, as compiled code has it.

    Args:
        family: how the output comes from weights and inputs.
        weights: how the weights come from parameters: FREE, NAC (tanh ⊙ σ) or SQUASHED (σ).
        activation: of an affine layer.
        shared: whether a NALU's sum and product have the same weights.
        low: bound to which weights are clamped in the forward pass.
        high: the other bound; both are infinite if the parameter itself is clipped, or free.
    """

    family: int
    weights: int = FREE
    activation: int = PLAIN
    shared: bool = False
    low: np.float32 = np.float32(-np.inf)
    high: np.float32 = np.float32(np.inf)


CODES: dict[str, Code] = {
    "NAC-add": Code(AFFINE, NAC),
    "NAC-mul": Code(NAC_MUL, NAC),
    "NAC-mul-sigma": Code(NAC_MUL, SQUASHED),
    "NAC-mul-NMU": Code(NAC_MUL),
    "NALU": Code(NALU, NAC, shared=True),
    "NALU-separate": Code(NALU, NAC),
    "NAU": Code(AFFINE),
    "NMU": Code(NMU),
    "gated-NAU-NMU": Code(GATED),
    "linear": Code(AFFINE, activation=LINEAR),
    "ReLU": Code(AFFINE, activation=RELU),
    "ReLU6": Code(AFFINE, activation=RELU6),
    "tanh": Code(AFFINE, activation=TANH),
    "sigmoid": Code(AFFINE, activation=SIGMOID),
    "softsign": Code(AFFINE, activation=SOFTSIGN),
    "SELU": Code(AFFINE, activation=SELU),
    "ELU": Code(AFFINE, activation=ELU),
}
"""The units that the fused engine knows, by their name in `units.UNITS`."""


class Layer(NamedTuple):
    """Weights, gradients and scratch of one layer, in as few arrays as can be: each costs something at every call.

    Args:
        w: effective weights, [3, out, in]; what the three are is up to the unit.
        d: their gradients.
        flat_w: the numbers of w, [3, out * in].
        flat_d: the numbers of d.
        factors: tanh and σ of each of a NAC's weights, and again if the unit has two of them, [4, out * in].
        bias: [1, out].
        d_bias: its gradient.
        inner: scratch, [3, in, rows].
        outer: scratch, [5, out, rows].
        row: scratch and ones, [2, 1, rows].
    """

    w: npt.NDArray[np.float32]
    d: npt.NDArray[np.float32]
    flat_w: npt.NDArray[np.float32]
    flat_d: npt.NDArray[np.float32]
    factors: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    d_bias: npt.NDArray[np.float32]
    inner: npt.NDArray[np.float32]
    outer: npt.NDArray[np.float32]
    row: npt.NDArray[np.float32]


def new_layer(inputs: int, outputs: int, rows: int) -> Layer:
    """Make a layer for blocks of that many rows."""
    w, d, inner, outer = (
        np.zeros(shape, np.float32)
        for shape in ((3, outputs, inputs), (3, outputs, inputs), (3, inputs, rows), (5, outputs, rows))
    )
    bias, d_bias, row = (np.zeros(shape, np.float32) for shape in ((1, outputs), (1, outputs), (2, 1, rows)))
    row[1] = 1
    factors = np.zeros((4, outputs * inputs), np.float32)
    return Layer(w, d, w.reshape(3, -1), d.reshape(3, -1), factors, bias, d_bias, inner, outer, row)


@inlined
def _copy(source, to):  # type: ignore[no-untyped-def]
    for k in range(len(to)):
        to[k] = source[k]


@inlined
def _clear(to):  # type: ignore[no-untyped-def]
    for k in range(len(to)):
        to[k] = 0


@internal
def set_weights(code, layer, p):  # type: ignore[no-untyped-def]
    """Compute a layer's effective weights from its parameters p, in the order of the unit's own."""
    size = layer.flat_w.shape[1]
    minus_one, zero, one = np.float32(-1), np.float32(0), np.float32(1)
    if code.family == GATED:
        if code.high < np.inf:
            clamp_weight_forward(p[:size], minus_one, one, layer.flat_w[0])
            clamp_weight_forward(p[size : 2 * size], zero, one, layer.flat_w[1])
        else:
            _copy(p[:size], layer.flat_w[0])
            _copy(p[size : 2 * size], layer.flat_w[1])
        _copy(p[2 * size :], layer.flat_w[2])
    elif code.weights == NAC:
        factors = layer.factors
        nac_weight_forward(p[:size], p[size : 2 * size], factors[0], factors[1], layer.flat_w[0])
        if code.family == NALU:
            if not code.shared:
                hats = p[2 * size : 4 * size]
                nac_weight_forward(hats[:size], hats[size:], factors[2], factors[3], layer.flat_w[1])
            _copy(p[len(p) - size :], layer.flat_w[2])
    elif code.weights == SQUASHED:
        sigmoid_weight_forward(p, layer.flat_w[0])
    elif code.high < np.inf:
        clamp_weight_forward(p, code.low, code.high, layer.flat_w[0])
    else:
        _copy(p[:size], layer.flat_w[0])
        if code.activation != PLAIN:
            _copy(p[size:], layer.bias[0])


@internal
def clear_gradients(code, layer):  # type: ignore[no-untyped-def]
    """Zero the gradients of the effective weights."""
    _clear(layer.flat_d[0])
    if code.family >= NALU:
        _clear(layer.flat_d[1])
        _clear(layer.flat_d[2])
    if code.activation != PLAIN:
        _clear(layer.d_bias[0])


@internal
def get_gradients(code, layer, p, p_grad):  # type: ignore[no-untyped-def]
    """Turn the gradients of the effective weights into those of the parameters; written."""
    size = layer.flat_w.shape[1]
    minus_one, zero, one = np.float32(-1), np.float32(0), np.float32(1)
    if code.family == GATED:
        if code.high < np.inf:
            clamp_weight_backward(p[:size], minus_one, one, layer.flat_d[0], p_grad[:size])
            clamp_weight_backward(p[size : 2 * size], zero, one, layer.flat_d[1], p_grad[size : 2 * size])
        else:
            _copy(layer.flat_d[0], p_grad[:size])
            _copy(layer.flat_d[1], p_grad[size : 2 * size])
        _copy(layer.flat_d[2], p_grad[2 * size :])
    elif code.weights == NAC:
        factors = layer.factors
        nac_weight_backward(factors[0], factors[1], layer.flat_d[0], p_grad[:size], p_grad[size : 2 * size])
        if code.family == NALU:
            if not code.shared:
                hats_grad = p_grad[2 * size : 4 * size]
                nac_weight_backward(
                    factors[2], factors[3], layer.flat_d[1], hats_grad[:size], hats_grad[size:]
                )
            _copy(layer.flat_d[2], p_grad[len(p) - size :])
    elif code.weights == SQUASHED:
        sigmoid_weight_backward(layer.flat_w[0], layer.flat_d[0], p_grad)
    elif code.high < np.inf:
        clamp_weight_backward(p, code.low, code.high, layer.flat_d[0], p_grad)
    else:
        _copy(layer.flat_d[0], p_grad[:size])
        if code.activation != PLAIN:
            _copy(layer.d_bias[0], p_grad[size:])


@internal
def forward(code, layer, x, known, y):  # type: ignore[no-untyped-def]
    """Compute a layer's output from its inputs, both [features, rows]; `known` if the last call had this very x."""
    w, side = layer.w[0], layer.inner[0]
    a, m, g = layer.outer[0], layer.outer[1], layer.outer[2]
    if code.family == AFFINE:
        affine_forward(w, layer.bias, code.activation, x, a, y)
    elif code.family == NMU:
        nmu_forward(w, x, side, y)
    elif code.family == NAC_MUL:
        nac_mul_forward(w, x, known, side, y)
    elif code.family == NALU:
        nalu_forward(w, layer.w[0 if code.shared else 1], layer.w[2], x, known, side, a, m, g, y)
    else:
        gated_forward(w, layer.w[1], layer.w[2], x, side, a, m, g, y)


@internal
def backward(code, layer, x, y, y_grad, x_grad):  # type: ignore[no-untyped-def]
    """Add to the gradients of the effective weights, and to that of the inputs if it has rows."""
    w, d = layer.w[0], layer.d[0]
    side, others, spare = layer.inner[0], layer.inner[1], layer.inner[2]
    a, m, g, a_grad, m_grad = layer.outer[0], layer.outer[1], layer.outer[2], layer.outer[3], layer.outer[4]
    after, ones = layer.row[0], layer.row[1]
    if code.family == AFFINE:
        affine_backward(w, code.activation, x, a, y, y_grad, ones, d, layer.d_bias, x_grad)
    elif code.family == NMU:
        nmu_backward(w, x, side, y, y_grad, ones, after, others, d, x_grad)
    elif code.family == NAC_MUL:
        nac_mul_backward(w, x, side, y, y_grad, a_grad, spare, d, x_grad)
    elif code.family == NALU:
        second = 0 if code.shared else 1
        nalu_backward(
            w, layer.w[second], layer.w[2], x, side, a, m, g, y_grad, a_grad, m_grad, spare, d, layer.d[second],
            layer.d[2], x_grad
        )  # fmt: skip
    else:
        gated_backward(
            w, layer.w[1], layer.w[2], x, side, a, m, g, y_grad, ones, a_grad, m_grad, after, others, d, layer.d[1],
            layer.d[2], x_grad
        )  # fmt: skip


@internal
def sparsity_error(code, layer):  # type: ignore[no-untyped-def]
    """Find the largest distance of an effective weight from -1, 0 or 1; NaN if one is."""
    worst = _largest_distance(layer.flat_w[0])
    if code.family == GATED or (code.family == NALU and not code.shared):
        other = _largest_distance(layer.flat_w[1])
        worst = worst if worst > other or worst != worst else other
    return worst


@internal
def _largest_distance(w):  # type: ignore[no-untyped-def]
    worst = np.float32(0)
    for k in range(len(w)):
        size = abs(w[k])
        rest = abs(np.float32(1) - size)
        distance = size if size < rest or size != size else rest
        if distance > worst or distance != distance:
            worst = distance
            if worst != worst:
                break
    return worst
