"""Both layers of the fused GPU engine as functions of a row of the batch.

They use the formulas of `cpu.gradients`, which works on blocks of rows. Each function is made for one unit and one
layout; its numbers lie in the thread's small arrays, which become registers, and in shared memory w. All numbers are
float32; arguments are as in `gpu.phases.Phases` unless stated otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tasks.arithmetic.engine.compiled.codes import AFFINE, GATED, NAC_MUL, NALU, NMU, NOTHING
from tasks.arithmetic.engine.compiled.formulas import (
    activate,
    activate_back,
    gate,
    logarithm,
    logarithm_back,
    mix,
    mix_back,
)
from tasks.arithmetic.engine.compiled.intrinsics import multiply_add
from tasks.arithmetic.engine.compiled.math import exp
from tasks.arithmetic.engine.gpu.compile import inline
from tasks.arithmetic.engine.gpu.layout import Layout
from tasks.arithmetic.engine.gpu.shape import has_bias

ONE, ZERO = np.float32(1), np.float32(0)


# --- between the first layer's sums and the hidden units ------------------------------------------------------


class RowLayer(NamedTuple):
    """A thread's work on its row in one layer; see `first_layer` and `second_layer`."""

    forward: Any
    backward: Any


def first_layer(layout: Layout) -> RowLayer:
    """Make the first layer's functions of a row, from its sums to hidden units and back.

        forward(w, a, u, mul, gates)
        backward(w, row, a, u, u_grad, mul, gates, z)

    `forward` adds biases to the sums a, and computes hidden units u from them; with gates, it stores products and gates
    for `backward`. `backward` writes the gradients of the sums of row number `row`, uint64, 0 <= row < layout.rows, to
    shared memory, and adds the biases' gradients to z.
    """
    code, hidden = layout.shape.first, layout.shape.hidden
    at_slopes, stride, log_slopes = layout.at_slopes, layout.slope_stride, layout.log_slopes
    if code.family == AFFINE:
        return _affine_first(layout)
    if code.family in (NMU, NAC_MUL):
        return _product_first(layout)
    gate_sums, mixed, is_product = layout.gates, layout.input_sums, code.family == GATED
    product_slopes = layout.outputs * layout.groups

    @inline
    def forward(w, a, u, mul, gates):
        for o in range(hidden):
            mul[o] = a[mixed + o] if is_product else exp(a[mixed + o])
            gates[o] = gate(a[gate_sums + o])
            u[o] = mix(gates[o], a[o], mul[o])

    @inline
    def backward(w, row, a, u, u_grad, mul, gates, z):
        to = np.uint64(at_slopes) + row * np.uint64(stride)
        for o in range(hidden):
            a_grad, m_grad, gate_grad = mix_back(u_grad[o], a[o], mul[o], gates[o])
            w[to + np.uint64(o)] = a_grad
            w[to + np.uint64(hidden + o)] = gate_grad
            if is_product:
                w[to + np.uint64(product_slopes + o)] = m_grad
            else:
                w[to + np.uint64(log_slopes + o)] = m_grad * mul[o]

    return RowLayer(forward, backward)


def _affine_first(layout: Layout) -> RowLayer:
    code, hidden = layout.shape.first, layout.shape.hidden
    at_slopes, stride = layout.at_slopes, layout.slope_stride
    biased, activation = has_bias(code), code.activation
    at_bias, bias_sum = layout.at_first_bias, layout.first_bias

    @inline
    def forward(w, a, u, mul, gates):
        for o in range(hidden):
            if biased:
                a[o] = a[o] + w[np.uint64(at_bias + o)]
                u[o] = activate(a[o], activation)
            else:
                u[o] = a[o]

    @inline
    def backward(w, row, a, u, u_grad, mul, gates, z):
        to = np.uint64(at_slopes) + row * np.uint64(stride)
        for o in range(hidden):
            if biased:
                slope = activate_back(a[o], u[o], u_grad[o], activation)
                z[bias_sum + o] += slope
                w[to + np.uint64(o)] = slope
            else:
                w[to + np.uint64(o)] = u_grad[o]

    return RowLayer(forward, backward)


def _product_first(layout: Layout) -> RowLayer:
    """Make the first layer of an NMU, where `a` has its products, or of a NAC•, where `a` has their logarithms."""
    code, hidden = layout.shape.first, layout.shape.hidden
    at_slopes, stride, is_power = layout.at_slopes, layout.slope_stride, code.family == NAC_MUL

    @inline
    def forward(w, a, u, mul, gates):
        for o in range(hidden):
            u[o] = exp(a[o]) if is_power else a[o]

    @inline
    def backward(w, row, a, u, u_grad, mul, gates, z):
        to = np.uint64(at_slopes) + row * np.uint64(stride)
        for o in range(hidden):
            w[to + np.uint64(o)] = u_grad[o] * u[o] if is_power else u_grad[o]

    return RowLayer(forward, backward)


# --- the second layer -----------------------------------------------------------------------------------------


def second_layer(layout: Layout) -> RowLayer:
    """Make the second layer's functions of a row, from hidden units to one output and back.

        forward(w, u, left) -> y, total, product, gate
        backward(w, u, left, slope, y, total, product, gate, u_grad, z)

    `forward` computes the output y from the weighted sum of the hidden units, their product and the gate in [0, 1],
    each 0 if the unit lacks it; without a second layer, y is the only hidden unit. It stores data for `backward` in
    `left`. `backward` takes the loss's slope by y, writes the hidden units' gradients, and adds the gradients of the
    weights and of the bias to z.
    """
    kinds = {NOTHING: _no_second, AFFINE: _affine_second, NMU: _nmu_second, NAC_MUL: _nac_mul_second}
    return kinds.get(layout.shape.second.family, _gated_second)(layout)


def _no_second(layout: Layout) -> RowLayer:
    """Make the no-op second layer of a one-layer network: the only hidden unit is the output."""

    @inline
    def forward(w, u, left):
        return u[0], ZERO, ZERO, ZERO

    @inline
    def backward(w, u, left, slope, y, total, product, gate_, u_grad, z):
        u_grad[0] = slope

    return RowLayer(forward, backward)


def _affine_second(layout: Layout) -> RowLayer:
    code, hidden, at = layout.shape.second, layout.shape.hidden, layout.at_second
    biased, activation = has_bias(code), code.activation
    at_bias, bias_sum = layout.at_second_bias, layout.second_bias

    @inline
    def forward(w, u, left):
        total = ZERO
        for o in range(hidden):
            total = multiply_add(w[np.uint64(at + o)], u[o], total)
        if biased:
            total = total + w[np.uint64(at_bias)]
            return activate(total, activation), total, ZERO, ZERO
        return total, total, ZERO, ZERO

    @inline
    def backward(w, u, left, slope, y, total, product, gate_, u_grad, z):
        if biased:
            slope = activate_back(total, y, slope, activation)
            z[bias_sum] += slope
        for o in range(hidden):
            z[o] = multiply_add(slope, u[o], z[o])
            u_grad[o] = w[np.uint64(at + o)] * slope

    return RowLayer(forward, backward)


def _nmu_second(layout: Layout) -> RowLayer:
    forward_product, backward_product = _product(layout.shape.hidden, layout.at_second, 0, add=False)

    @inline
    def forward(w, u, left):
        y = forward_product(w, u, left)
        return y, ZERO, y, ZERO

    @inline
    def backward(w, u, left, slope, y, total, product, gate_, u_grad, z):
        backward_product(w, u, left, slope, u_grad, z)

    return RowLayer(forward, backward)


def _product(hidden: int, at: int, at_z: int, *, add: bool) -> tuple[Any, Any]:
    """Make the functions of prod_o (w_o (u_o - 1) + 1) and of its gradient, for weights in shared memory from `at` on.

    The factors o are those of the hidden units, and the weights' gradients are added to z from `at_z` on. With `add`,
    the hidden units' gradients are added to, else written.
    """

    @inline
    def forward(w, u, left):
        product = ONE
        for o in range(hidden):
            left[o] = product
            product = product * multiply_add(w[np.uint64(at + o)], u[o] - ONE, ONE)
        return product

    @inline
    def backward(w, u, left, slope, u_grad, z):
        right = slope
        for k in range(hidden):
            o = hidden - 1 - k
            shifted, weight = u[o] - ONE, w[np.uint64(at + o)]
            others = left[o] * right
            z[at_z + o] = multiply_add(others, shifted, z[at_z + o])
            if add:
                u_grad[o] = multiply_add(others, weight, u_grad[o])
            else:
                u_grad[o] = others * weight
            right = right * multiply_add(weight, shifted, ONE)

    return forward, backward


def _power(hidden: int, at: int, at_z: int, *, add: bool) -> tuple[Any, Any]:
    """Make the functions of exp(sum_o w_o log(|u_o| + 1e-7)) and of its gradient; arguments as for `_product`."""

    @inline
    def forward(w, u, left):
        total = ZERO
        for o in range(hidden):
            left[o] = logarithm(u[o])
            total = multiply_add(w[np.uint64(at + o)], left[o], total)
        return exp(total)

    @inline
    def backward(w, u, left, slope, u_grad, z):
        """Add dL/dw to z, and write or add dL/du to `u_grad`; `slope` is the loss's slope by the exponent."""
        for o in range(hidden):
            z[at_z + o] = multiply_add(slope, left[o], z[at_z + o])
            back = logarithm_back(u[o], w[np.uint64(at + o)] * slope)
            u_grad[o] = u_grad[o] + back if add else back

    return forward, backward


def _nac_mul_second(layout: Layout) -> RowLayer:
    forward_power, backward_power = _power(layout.shape.hidden, layout.at_second, 0, add=False)

    @inline
    def forward(w, u, left):
        y = forward_power(w, u, left)
        return y, ZERO, y, ZERO

    @inline
    def backward(w, u, left, slope, y, total, product, gate_, u_grad, z):
        backward_power(w, u, left, slope * y, u_grad, z)

    return RowLayer(forward, backward)


def _gated_second(layout: Layout) -> RowLayer:
    """Make the second layer of a NALU or a gated NAU/NMU: y = g a + (1 - g) m, a the sum, m the product, g the gate."""
    code, hidden, at = layout.shape.second, layout.shape.hidden, layout.at_second
    is_power = code.family == NALU
    # A NALU with shared weights uses the same weights in its product as in its sum.
    of_product = 0 if is_power and code.shared else 2 * hidden
    make = _power if is_power else _product
    forward_product, backward_product = make(hidden, at + of_product, of_product, add=True)

    @inline
    def forward(w, u, left):
        total, gate_sum = ZERO, ZERO
        for o in range(hidden):
            total = multiply_add(w[np.uint64(at + o)], u[o], total)
            gate_sum = multiply_add(w[np.uint64(at + hidden + o)], u[o], gate_sum)
        product, gate_ = forward_product(w, u, left), gate(gate_sum)
        return mix(gate_, total, product), total, product, gate_

    @inline
    def backward(w, u, left, slope, y, total, product, gate_, u_grad, z):
        a_grad, m_grad, gate_grad = mix_back(slope, total, product, gate_)
        for o in range(hidden):
            z[o] = multiply_add(a_grad, u[o], z[o])
            z[hidden + o] = multiply_add(gate_grad, u[o], z[hidden + o])
            u_grad[o] = multiply_add(w[np.uint64(at + o)], a_grad, w[np.uint64(at + hidden + o)] * gate_grad)
        backward_product(w, u, left, m_grad * product if is_power else m_grad, u_grad, z)

    return RowLayer(forward, backward)
