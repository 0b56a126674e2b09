"""One layer of the fused engine, of any unit: from parameters to output, and from gradient to gradient.

Choosing the unit costs a few comparisons a block of rows; in exchange one compilation serves all models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from study.engine.compiled.cache import forced, inlined, internal
from study.engine.compiled.codes import AFFINE, GATED, NAC, NAC_MUL, NALU, NMU, SQUASHED
from study.engine.compiled.formulas import PLAIN, discrete_distance, larger
from study.engine.cpu.gradients import (
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
from study.engine.cpu.simd import matrix, vector
from tasks.stream_simd import LANES, padded


class Layer(NamedTuple):
    """Weights, gradients and scratch of one layer.

    In one array: each array costs a dozen instructions at every call, more than the arithmetic of a small layer. One
    after the other lie

        3 of [in, rows] and 5 of [out, rows]: scratch,      [1, rows]: scratch,      [1, rows]: ones,
        3 of [out, in]: effective weights, which is up to the unit,      3 of [out, in]: their gradients,
        4 of [out, in]: tanh and σ of a NAC's weights, and again if the unit has two of them,
        2 of [1, out]: bias and its gradient.

    Args:
        numbers: all of these; where weights and biases start, on whole vectors.
        inputs: in.
        outputs: out.
        rows: of a block.
    """

    numbers: npt.NDArray[np.float32]
    inputs: int
    outputs: int
    rows: int


_INNER, _OUTER = 3, 5
_WEIGHT, _GRADIENT, _FACTOR, _BIAS = 0, 3, 6, 10


def new_layer(inputs: int, outputs: int, rows: int) -> Layer:
    """Allocate a layer for blocks of that many rows."""
    by_row = (_INNER * inputs + _OUTER * outputs + 1) * rows
    of_weights = _BIAS * padded(inputs * outputs, LANES) + 2 * padded(outputs, LANES)
    numbers = np.zeros(by_row + rows + of_weights, np.float32)
    numbers[by_row : by_row + rows] = 1
    return Layer(numbers, inputs, outputs, rows)


@inlined
def _inner(layer, k):  # type: ignore[no-untyped-def]
    return matrix(layer.numbers, k * layer.inputs * layer.rows, layer.inputs, layer.rows)


@inlined
def _outer(layer, k):  # type: ignore[no-untyped-def]
    return matrix(layer.numbers, (_INNER * layer.inputs + k * layer.outputs) * layer.rows, layer.outputs, layer.rows)


@inlined
def _row(layer, k):  # type: ignore[no-untyped-def]
    before = _INNER * layer.inputs + _OUTER * layer.outputs
    return matrix(layer.numbers, (before + k) * layer.rows, 1, layer.rows)


@forced
def _start(layer, k):  # type: ignore[no-untyped-def]
    before = (_INNER * layer.inputs + _OUTER * layer.outputs + 2) * layer.rows
    return before + k * padded(layer.inputs * layer.outputs, LANES)


@inlined
def _matrix(layer, k):  # type: ignore[no-untyped-def]
    return matrix(layer.numbers, _start(layer, k), layer.outputs, layer.inputs)


@inlined
def _flat(layer, k):  # type: ignore[no-untyped-def]
    return vector(layer.numbers, _start(layer, k), layer.inputs * layer.outputs)


@inlined
def _bias(layer, k):  # type: ignore[no-untyped-def]
    start = _start(layer, _BIAS) + k * padded(layer.outputs, LANES)
    return matrix(layer.numbers, start, 1, layer.outputs)


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
    size = layer.inputs * layer.outputs
    first, second, third = _flat(layer, _WEIGHT), _flat(layer, _WEIGHT + 1), _flat(layer, _WEIGHT + 2)
    minus_one, zero, one = np.float32(-1), np.float32(0), np.float32(1)
    if code.family == GATED:
        if code.high < np.inf:
            clamp_weight_forward(p[:size], minus_one, one, first)
            clamp_weight_forward(p[size : 2 * size], zero, one, second)
        else:
            _copy(p[:size], first)
            _copy(p[size : 2 * size], second)
        _copy(p[2 * size :], third)
    elif code.weights == NAC:
        tanh_1, sigma_1 = _flat(layer, _FACTOR), _flat(layer, _FACTOR + 1)
        nac_weight_forward(p[:size], p[size : 2 * size], tanh_1, sigma_1, first)
        if code.family == NALU:
            if not code.shared:
                hats = p[2 * size : 4 * size]
                tanh_2, sigma_2 = _flat(layer, _FACTOR + 2), _flat(layer, _FACTOR + 3)
                nac_weight_forward(hats[:size], hats[size:], tanh_2, sigma_2, second)
            _copy(p[len(p) - size :], third)
    elif code.weights == SQUASHED:
        sigmoid_weight_forward(p, first)
    elif code.high < np.inf:
        clamp_weight_forward(p, code.low, code.high, first)
    else:
        _copy(p[:size], first)
        if code.activation != PLAIN:
            _copy(p[size:], _bias(layer, 0)[0])


@internal
def clear_gradients(code, layer):  # type: ignore[no-untyped-def]
    """Zero the gradients of the effective weights."""
    _clear(_flat(layer, _GRADIENT))
    if code.family >= NALU:
        _clear(_flat(layer, _GRADIENT + 1))
        _clear(_flat(layer, _GRADIENT + 2))
    if code.activation != PLAIN:
        _clear(_bias(layer, 1)[0])


@internal
def get_gradients(code, layer, p, p_grad):  # type: ignore[no-untyped-def]
    """Compute the gradients of the parameters from those of the effective weights; written."""
    size = layer.inputs * layer.outputs
    first, second, third = _flat(layer, _GRADIENT), _flat(layer, _GRADIENT + 1), _flat(layer, _GRADIENT + 2)
    minus_one, zero, one = np.float32(-1), np.float32(0), np.float32(1)
    if code.family == GATED:
        if code.high < np.inf:
            clamp_weight_backward(p[:size], minus_one, one, first, p_grad[:size])
            clamp_weight_backward(p[size : 2 * size], zero, one, second, p_grad[size : 2 * size])
        else:
            _copy(first, p_grad[:size])
            _copy(second, p_grad[size : 2 * size])
        _copy(third, p_grad[2 * size :])
    elif code.weights == NAC:
        tanh_1, sigma_1 = _flat(layer, _FACTOR), _flat(layer, _FACTOR + 1)
        nac_weight_backward(tanh_1, sigma_1, first, p_grad[:size], p_grad[size : 2 * size])
        if code.family == NALU:
            if not code.shared:
                hats_grad = p_grad[2 * size : 4 * size]
                tanh_2, sigma_2 = _flat(layer, _FACTOR + 2), _flat(layer, _FACTOR + 3)
                nac_weight_backward(tanh_2, sigma_2, second, hats_grad[:size], hats_grad[size:])
            _copy(third, p_grad[len(p) - size :])
    elif code.weights == SQUASHED:
        sigmoid_weight_backward(_flat(layer, _WEIGHT), first, p_grad)
    elif code.high < np.inf:
        clamp_weight_backward(p, code.low, code.high, first, p_grad)
    else:
        _copy(first, p_grad[:size])
        if code.activation != PLAIN:
            _copy(_bias(layer, 1)[0], p_grad[size:])


@internal
def forward(code, layer, x, has_logs, y):  # type: ignore[no-untyped-def]
    """Compute a layer's output from its inputs, both [features, rows]; `has_logs` if the last call had this very x."""
    w, side = _matrix(layer, _WEIGHT), _inner(layer, 0)
    a, m, g = _outer(layer, 0), _outer(layer, 1), _outer(layer, 2)
    if code.family == AFFINE:
        affine_forward(w, _bias(layer, 0), code.activation, x, a, y)
    elif code.family == NMU:
        nmu_forward(w, x, side, y)
    elif code.family == NAC_MUL:
        nac_mul_forward(w, x, has_logs, side, y)
    elif code.family == NALU:
        w_mul, w_gate = _matrix(layer, _WEIGHT if code.shared else _WEIGHT + 1), _matrix(layer, _WEIGHT + 2)
        nalu_forward(w, w_mul, w_gate, x, has_logs, side, a, m, g, y)
    else:
        gated_forward(w, _matrix(layer, _WEIGHT + 1), _matrix(layer, _WEIGHT + 2), x, side, a, m, g, y)


@internal
def backward(code, layer, x, y, y_grad, x_grad):  # type: ignore[no-untyped-def]
    """Add to the gradients of the effective weights, and to that of the inputs if it has rows."""
    w, d = _matrix(layer, _WEIGHT), _matrix(layer, _GRADIENT)
    side, others, spare = _inner(layer, 0), _inner(layer, 1), _inner(layer, 2)
    a, m, g, a_grad, m_grad = (_outer(layer, 0), _outer(layer, 1), _outer(layer, 2), _outer(layer, 3), _outer(layer, 4))
    after, ones = _row(layer, 0), _row(layer, 1)
    if code.family == AFFINE:
        affine_backward(w, code.activation, x, a, y, y_grad, ones, d, _bias(layer, 1), x_grad)
    elif code.family == NMU:
        nmu_backward(w, x, side, y, y_grad, ones, after, others, d, x_grad)
    elif code.family == NAC_MUL:
        nac_mul_backward(w, x, side, y, y_grad, a_grad, spare, d, x_grad)
    elif code.family == NALU:
        second = 0 if code.shared else 1
        nalu_backward(
            w, _matrix(layer, _WEIGHT + second), _matrix(layer, _WEIGHT + 2), x, side, a, m, g, y_grad, a_grad, m_grad,
            spare, d, _matrix(layer, _GRADIENT + second), _matrix(layer, _GRADIENT + 2), x_grad
        )  # fmt: skip
    else:
        gated_backward(
            w, _matrix(layer, _WEIGHT + 1), _matrix(layer, _WEIGHT + 2), x, side, a, m, g, y_grad, ones, a_grad, m_grad,
            after, others, d, _matrix(layer, _GRADIENT + 1), _matrix(layer, _GRADIENT + 2), x_grad
        )  # fmt: skip


@internal
def sparsity_error(code, layer):  # type: ignore[no-untyped-def]
    """Find the largest distance of an effective weight from -1, 0 or 1; NaN if one is."""
    worst = _largest_distance(_flat(layer, _WEIGHT))
    if code.family == GATED or (code.family == NALU and not code.shared):
        other = _largest_distance(_flat(layer, _WEIGHT + 1))
        worst = larger(worst, other)
    return worst


@internal
def _largest_distance(w):  # type: ignore[no-untyped-def]
    worst = np.float32(0)
    for k in range(len(w)):
        worst = larger(discrete_distance(w[k]), worst)
    return worst
