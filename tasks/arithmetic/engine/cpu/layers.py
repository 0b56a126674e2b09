"""A trial's layer of any unit: effective weights, outputs and gradients.

Choosing the unit costs a few comparisons for each block of rows, but one compilation serves all models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.arithmetic.engine.compiled.cache import inlined, internal
from tasks.arithmetic.engine.compiled.codes import AFFINE, GATED, NAC, NAC_MUL, NALU, NMU, NOTHING, SQUASHED
from tasks.arithmetic.engine.compiled.formulas import PLAIN, discrete_distance, larger
from tasks.arithmetic.engine.cpu.gates import gated_backward, gated_forward, nalu_backward, nalu_forward
from tasks.arithmetic.engine.cpu.gradients import (
    affine_backward,
    affine_forward,
    copy,
    nac_mul_backward,
    nac_mul_forward,
    nmu_backward,
    nmu_forward,
)
from tasks.arithmetic.engine.cpu.simd import matrix, vector
from tasks.arithmetic.engine.cpu.weights import (
    clamp_weight_backward,
    clamp_weight_forward,
    nac_weight_backward,
    nac_weight_forward,
    sigmoid_weight_backward,
    sigmoid_weight_forward,
)


class Layer(NamedTuple):
    """The places of a layer's numbers, among those of other layers and trials.

    All are in one array, since each array argument costs a dozen instructions a call, more than the arithmetic of a
    small layer.

    Args:
        weights: effective weights, biases and a NAC's factors, float32.
        gradients: their gradients, at the same places.
        first: place of a weight matrix [out, in]; its meaning depends on the unit, see `Code`.
        second: place of a second one, if the unit has it.
        third: place of a third one, if the unit has it.
        factors: place of tanh and σ of a NAC's weights, [out, in] each, twice if the unit has two NACs.
        bias: place of the bias, [1, out].
        inputs: number of inputs.
        outputs: number of outputs.
    """

    weights: npt.NDArray[np.float32]
    gradients: npt.NDArray[np.float32]
    first: int
    second: int
    third: int
    factors: int
    bias: int
    inputs: int
    outputs: int


@inlined
def _weight(layer, at):  # type: ignore[no-untyped-def]
    return matrix(layer.weights, at, layer.outputs, layer.inputs)


@inlined
def _gradient(layer, at):  # type: ignore[no-untyped-def]
    return matrix(layer.gradients, at, layer.outputs, layer.inputs)


@inlined
def _flat(layer, at):  # type: ignore[no-untyped-def]
    return vector(layer.weights, at, layer.inputs * layer.outputs)


@inlined
def _flat_gradient(layer, at):  # type: ignore[no-untyped-def]
    return vector(layer.gradients, at, layer.inputs * layer.outputs)


@inlined
def _factor(layer, k):  # type: ignore[no-untyped-def]
    size = layer.inputs * layer.outputs
    return vector(layer.weights, layer.factors + k * size, size)


@inlined
def bias(layer):  # type: ignore[no-untyped-def]
    """View the bias, [1, out]."""
    return matrix(layer.weights, layer.bias, 1, layer.outputs)


@inlined
def bias_gradient(layer):  # type: ignore[no-untyped-def]
    """View the gradient of the bias, [1, out]."""
    return matrix(layer.gradients, layer.bias, 1, layer.outputs)


@inlined
def _clear(to):  # type: ignore[no-untyped-def]
    for k in range(len(to)):
        to[k] = 0


@internal
def set_weights(code, layer, p):  # type: ignore[no-untyped-def]
    """Write a layer's effective weights, bias and factors, given its parameters p in the unit's own order.

    A no-op for NOTHING.
    """
    if code.family == NOTHING:
        return
    size = layer.inputs * layer.outputs
    first = _flat(layer, layer.first)
    minus_one, zero, one = np.float32(-1), np.float32(0), np.float32(1)
    if code.family == GATED:
        second = _flat(layer, layer.second)
        if code.high < np.inf:
            clamp_weight_forward(p[:size], minus_one, one, first)
            clamp_weight_forward(p[size : 2 * size], zero, one, second)
        else:
            copy(p[:size], first)
            copy(p[size : 2 * size], second)
        copy(p[2 * size :], _flat(layer, layer.third))
    elif code.weights == NAC:
        nac_weight_forward(p[:size], p[size : 2 * size], _factor(layer, 0), _factor(layer, 1), first)
        if code.family == NALU:
            second = _flat(layer, layer.second)
            if code.shared:
                copy(first, second)
            else:
                hats = p[2 * size : 4 * size]
                nac_weight_forward(hats[:size], hats[size:], _factor(layer, 2), _factor(layer, 3), second)
            copy(p[len(p) - size :], _flat(layer, layer.third))
    elif code.weights == SQUASHED:
        sigmoid_weight_forward(p, first)
    elif code.high < np.inf:
        clamp_weight_forward(p, code.low, code.high, first)
    else:
        copy(p[:size], first)
        if code.activation != PLAIN:
            copy(p[size:], bias(layer)[0])


@internal
def clear_gradients(code, layer):  # type: ignore[no-untyped-def]
    """Zero the gradients of a layer's effective weights and bias; a no-op for NOTHING."""
    if code.family == NOTHING:
        return
    _clear(_flat_gradient(layer, layer.first))
    if code.family >= NALU:
        _clear(_flat_gradient(layer, layer.second))
        _clear(_flat_gradient(layer, layer.third))
    if code.activation != PLAIN:
        _clear(bias_gradient(layer)[0])


@internal
def get_gradients(code, layer, p, p_grad):  # type: ignore[no-untyped-def]
    """Write the gradients of the parameters p to `p_grad`, from those of the effective weights; a no-op for NOTHING.

    Of a NALU with shared weights, the sum of both gradients overwrites the first.
    """
    if code.family == NOTHING:
        return
    size = layer.inputs * layer.outputs
    first = _flat_gradient(layer, layer.first)
    minus_one, zero, one = np.float32(-1), np.float32(0), np.float32(1)
    if code.family == GATED:
        second = _flat_gradient(layer, layer.second)
        if code.high < np.inf:
            clamp_weight_backward(p[:size], minus_one, one, first, p_grad[:size])
            clamp_weight_backward(p[size : 2 * size], zero, one, second, p_grad[size : 2 * size])
        else:
            copy(first, p_grad[:size])
            copy(second, p_grad[size : 2 * size])
        copy(_flat_gradient(layer, layer.third), p_grad[2 * size :])
    elif code.weights == NAC:
        if code.family == NALU:
            second = _flat_gradient(layer, layer.second)
            if code.shared:
                for k in range(size):
                    first[k] += second[k]
            else:
                hats_grad = p_grad[2 * size : 4 * size]
                nac_weight_backward(_factor(layer, 2), _factor(layer, 3), second, hats_grad[:size], hats_grad[size:])
            copy(_flat_gradient(layer, layer.third), p_grad[len(p) - size :])
        nac_weight_backward(_factor(layer, 0), _factor(layer, 1), first, p_grad[:size], p_grad[size : 2 * size])
    elif code.weights == SQUASHED:
        sigmoid_weight_backward(_flat(layer, layer.first), first, p_grad)
    elif code.high < np.inf:
        clamp_weight_backward(p, code.low, code.high, first, p_grad)
    else:
        copy(first, p_grad[:size])
        if code.activation != PLAIN:
            copy(bias_gradient(layer)[0], p_grad[size:])


@internal
def sparsity_error(code, layer):  # type: ignore[no-untyped-def]
    """Compute the largest distance of a weight from the nearest of -1, 0 and 1; NaN if one is NaN, 0 without a layer.

    It takes effective weights, without gates and biases.
    """
    if code.family == NOTHING:
        return np.float32(0)
    worst = _largest_distance(_flat(layer, layer.first))
    if code.family == GATED or (code.family == NALU and not code.shared):
        worst = larger(worst, _largest_distance(_flat(layer, layer.second)))
    return worst


@internal
def _largest_distance(w):  # type: ignore[no-untyped-def]
    worst = np.float32(0)
    for k in range(len(w)):
        worst = larger(discrete_distance(w[k]), worst)
    return worst


# --- a second layer -------------------------------------------------------------------------------------------------

_INNER, _OUTER = 3, 5


def room_rows(inputs: int, outputs: int) -> int:
    """Count the rows of scratch for `forward` and `backward`: 3 of [in], 5 of [out], and one more."""
    return _INNER * inputs + _OUTER * outputs + 1


@inlined
def _inner(layer, room, at, rows, k):  # type: ignore[no-untyped-def]
    return matrix(room, at + k * layer.inputs * rows, layer.inputs, rows)


@inlined
def _outer(layer, room, at, rows, k):  # type: ignore[no-untyped-def]
    return matrix(room, at + (_INNER * layer.inputs + k * layer.outputs) * rows, layer.outputs, rows)


@internal
def forward(code, layer, x, has_logs, room, at, y):  # type: ignore[no-untyped-def]
    """Compute a layer's output.

    Args:
        code: the layer's unit.
        layer: `Layer`.
        x: inputs, [in, rows].
        has_logs: True if the last call had the same x.
        room: scratch, flat.
        at: place in it of this layer's `room_rows` rows.
        y: output, [out, rows]; written.
    """
    rows = x.shape[1]
    w, side = _weight(layer, layer.first), _inner(layer, room, at, rows, 0)
    a, m, g = (
        _outer(layer, room, at, rows, 0), _outer(layer, room, at, rows, 1), _outer(layer, room, at, rows, 2)
    )  # fmt: skip
    if code.family == NOTHING:
        copy(x[0], y[0])
    elif code.family == AFFINE:
        affine_forward(w, bias(layer), code.activation, x, a, y)
    elif code.family == NMU:
        nmu_forward(w, x, side, y)
    elif code.family == NAC_MUL:
        nac_mul_forward(w, x, has_logs, side, y)
    elif code.family == NALU:
        nalu_forward(w, _weight(layer, layer.second), _weight(layer, layer.third), x, has_logs, side, a, m, g, y)
    else:
        gated_forward(w, _weight(layer, layer.second), _weight(layer, layer.third), x, side, a, m, g, y)


@internal
def backward(code, layer, x, room, at, ones, y, y_grad, x_grad):  # type: ignore[no-untyped-def]
    """Add to the gradients of the effective weights and the bias, and to that of the inputs.

    Args:
        code: as given to `forward`, as are `layer`, `x` and `at`.
        layer: as given.
        x: as given.
        room: scratch that `forward` filled.
        at: as given.
        ones: ones, [1, rows].
        y: output.
        y_grad: its gradient, [out, rows].
        x_grad: added to, [in, rows]; for NOTHING overwritten by `y_grad`.
    """
    rows = x.shape[1]
    w, d = _weight(layer, layer.first), _gradient(layer, layer.first)
    w_second, d_second = _weight(layer, layer.second), _gradient(layer, layer.second)
    w_third, d_third = _weight(layer, layer.third), _gradient(layer, layer.third)
    side, others, spare = (
        _inner(layer, room, at, rows, 0), _inner(layer, room, at, rows, 1), _inner(layer, room, at, rows, 2)
    )  # fmt: skip
    a, m, g = (
        _outer(layer, room, at, rows, 0), _outer(layer, room, at, rows, 1), _outer(layer, room, at, rows, 2)
    )  # fmt: skip
    a_grad, m_grad = _outer(layer, room, at, rows, 3), _outer(layer, room, at, rows, 4)
    after = matrix(room, at + (_INNER * layer.inputs + _OUTER * layer.outputs) * rows, 1, rows)
    if code.family == NOTHING:
        copy(y_grad[0], x_grad[0])
    elif code.family == AFFINE:
        affine_backward(w, code.activation, x, a, y, y_grad, ones, d, bias_gradient(layer), x_grad)
    elif code.family == NMU:
        nmu_backward(w, x, side, y, y_grad, ones, after, others, d, x_grad)
    elif code.family == NAC_MUL:
        nac_mul_backward(w, x, side, y, y_grad, a_grad, spare, d, x_grad)
    elif code.family == NALU:
        nalu_backward(
            w, w_second, w_third, x, side, a, m, g, y_grad, a_grad, m_grad, spare, d, d_second, d_third, x_grad
        )
    else:
        gated_backward(
            w, w_second, w_third, x, side, a, m, g, y_grad, ones, a_grad, m_grad, after, others, d, d_second, d_third,
            x_grad
        )  # fmt: skip
