"""Outputs and hand-written gradients of the units of the fused engine.

Each unit has a pair of functions, `*_forward` and `*_backward`. Arrays are batch-innermost: x [in, batch], y [out,
batch], W [out, in]; the batch is a multiple of `LANES`. A backward function reads the scratch arguments that its
forward function filled. Gradients are added to: weight gradients since a batch may be split into blocks. The inputs'
gradient may have no rows if it isn't needed. The same code runs in float32 and float64. Below, ȳ stands for dL/dy.

The parts between a unit's products have their own functions, `*_of_sums` and `*_to_sums`, since the first layers of
many trials share their products (`stacks`).
"""

from __future__ import annotations

from tasks.arithmetic.engine.compiled.cache import apart, compiled, forced, inlined, internal
from tasks.arithmetic.engine.compiled.formulas import (
    ELU,
    LINEAR,
    PLAIN,
    RELU,
    RELU6,
    SELU,
    SIGMOID,
    SOFTSIGN,
    TANH,
    activate,
    activate_back,
    logarithm,
    logarithm_back,
)
from tasks.arithmetic.engine.compiled.math import exp
from tasks.arithmetic.engine.cpu.products import add_dots, add_sums, multiply

# --- NAU, NAC+, linear and its activations -------------------------------------------------------------------


# Each activation has its own loop. A single loop with the choice inside would compute all of them for each number, or
# none in vectors: 208 rows of ReLU took five to ten times as long.


@forced
def _activate(z, y, activation):  # type: ignore[no-untyped-def]
    if activation == LINEAR:
        _activate_each(z, y, LINEAR)
    elif activation == RELU:
        _activate_each(z, y, RELU)
    elif activation == RELU6:
        _activate_each(z, y, RELU6)
    elif activation == TANH:
        _activate_each(z, y, TANH)
    elif activation == SIGMOID:
        _activate_each(z, y, SIGMOID)
    elif activation == SOFTSIGN:
        _activate_each(z, y, SOFTSIGN)
    elif activation == SELU:
        _activate_each(z, y, SELU)
    elif activation == ELU:
        _activate_each(z, y, ELU)


@apart
def _activate_each(z, y, activation):  # type: ignore[no-untyped-def]
    for b in range(len(z)):
        y[b] = activate(z[b], activation)


@forced
def _activate_back(z, y, y_grad, activation, z_grad):  # type: ignore[no-untyped-def]
    if activation == LINEAR:
        _activate_back_each(z, y, y_grad, LINEAR, z_grad)
    elif activation == RELU:
        _activate_back_each(z, y, y_grad, RELU, z_grad)
    elif activation == RELU6:
        _activate_back_each(z, y, y_grad, RELU6, z_grad)
    elif activation == TANH:
        _activate_back_each(z, y, y_grad, TANH, z_grad)
    elif activation == SIGMOID:
        _activate_back_each(z, y, y_grad, SIGMOID, z_grad)
    elif activation == SOFTSIGN:
        _activate_back_each(z, y, y_grad, SOFTSIGN, z_grad)
    elif activation == SELU:
        _activate_back_each(z, y, y_grad, SELU, z_grad)
    elif activation == ELU:
        _activate_back_each(z, y, y_grad, ELU, z_grad)


@forced
def _activate_back_each(z, y, y_grad, activation, z_grad):  # type: ignore[no-untyped-def]
    for b in range(len(z)):
        z_grad[b] = activate_back(z[b], y[b], y_grad[b], activation)


@compiled
def affine_of_sums(bias, activation, z, y):  # type: ignore[no-untyped-def]
    """Compute y = f(z + b) from the sums z = Wx, and leave z + b in z. For PLAIN there is nothing to compute.

    Args:
        bias: [1, out].
        activation: f, not PLAIN.
        z: [out, batch]; overwritten.
        y: written, [out, batch].
    """
    for o in range(z.shape[0]):
        row, shift = z[o], bias[0, o]
        for b in range(len(row)):
            row[b] += shift
        _activate(row, y[o], activation)


@compiled
def affine_to_sums(activation, z, y, y_grad, ones, bias_grad, z_grad):  # type: ignore[no-untyped-def]
    """Differentiate y = f(z): z̄ = ȳ f'(z), dL/db = sum z̄; not for PLAIN, where z̄ is ȳ.

    Args:
        activation: f, not PLAIN.
        z: as `affine_of_sums` left it.
        y: result of `affine_of_sums`.
        y_grad: ȳ, [out, batch].
        ones: [1, batch].
        bias_grad: added to, [1, out].
        z_grad: z̄, written, [out, batch]; may be z.
    """
    for o in range(z.shape[0]):
        _activate_back(z[o], y[o], y_grad[o], activation, z_grad[o])
    add_sums(bias_grad, 0, ones, z_grad)


@compiled
def affine_forward(w, bias, activation, x, z, y):  # type: ignore[no-untyped-def]
    """Compute y = f(Wx + b); for PLAIN, y = Wx: NAU and, with its weights, NAC+.

    Args:
        w: [out, in].
        bias: [1, out].
        activation: f.
        x: [in or more, batch].
        z: scratch, [out, batch].
        y: written, [out, batch].
    """
    if activation == PLAIN:
        multiply(y, w, x, 0, w.shape[1])
        return
    multiply(z, w, x, 0, w.shape[1])
    affine_of_sums(bias, activation, z, y)


@compiled
def affine_backward(w, activation, x, z, y, y_grad, ones, w_grad, bias_grad, x_grad):  # type: ignore[no-untyped-def]
    """Differentiate y = f(z), z = Wx + b: z̄ = ȳ f'(z), dL/dW = z̄ xᵀ, dL/db = sum z̄, dL/dx = Wᵀ z̄.

    Args:
        w: [out, in].
        activation: f.
        x: as given to `affine_forward`.
        z: result of `affine_forward`; overwritten, but not used for PLAIN.
        y: result of `affine_forward`.
        y_grad: ȳ, [out, batch].
        ones: [1, batch].
        w_grad: added to, [out, in].
        bias_grad: added to, [1, out]; unchanged for PLAIN.
        x_grad: added to, [in, batch]; [0, batch] if not needed.
    """
    z_grad = y_grad
    if activation != PLAIN:
        affine_to_sums(activation, z, y, y_grad, ones, bias_grad, z)
        z_grad = z
    add_dots(w_grad, z_grad, x, 0)
    back_to_inputs(w, z_grad, x_grad)


@apart
def copy(source, to):  # type: ignore[no-untyped-def]
    """Copy the first len(to) numbers of `source` to `to`, both one-dimensional."""
    for k in range(len(to)):
        to[k] = source[k]


@internal
def back_to_inputs(w, z_grad, x_grad):  # type: ignore[no-untyped-def]
    """Add Wᵀ z̄ to x_grad [in or 0, batch]; W is [out, in] and z̄, `z_grad`, [out, batch]."""
    for i in range(x_grad.shape[0]):
        for o in range(w.shape[0]):
            _add_times(w[o, i], z_grad[o], x_grad[i])


@apart
def _add_times(factor, row, to):  # type: ignore[no-untyped-def]
    for b in range(len(to)):
        to[b] += factor * row[b]


# --- NMU --------------------------------------------------------------------------------------------------------


@compiled
def nmu_forward(w, x, before, y):  # type: ignore[no-untyped-def]
    """Compute y_o = prod_i z_oi, z_oi = W_oi (x_i - 1) + 1.

    Args:
        w: [out, in].
        x: [in or more, batch].
        before: scratch, [in, batch].
        y: written, [out, batch].
    """
    for o in range(w.shape[0]):
        _products(w, o, x, before, y[o])


@inlined
def _products(w, o, x, before, product):  # type: ignore[no-untyped-def]
    """Multiply the factors W_oi (x_i - 1) + 1 of output o: all into `product` [batch], those before i into `before`[i].

    W is [out, in], x [in or more, batch], and `before` [in, batch].
    """
    product[:] = w.dtype.type(1)
    for i in range(w.shape[1]):
        _next_product(w[o, i], x[i], before[i], product)


@apart
def _next_product(weight, row, left, product):  # type: ignore[no-untyped-def]
    one = type(weight)(1)
    for b in range(len(product)):
        left[b] = product[b]
        product[b] = product[b] * (weight * (row[b] - one) + one)


@compiled
def nmu_backward(w, x, before, y, y_grad, ones, after, others, w_grad, x_grad):  # type: ignore[no-untyped-def]
    """Differentiate the product by products of the factors before and after each; this is also right at z = 0.

        dL/dW_oi = sum_b ȳ_o (x_i - 1) prod_{j != i} z_oj,   dL/dx_i = sum_o ȳ_o W_oi prod_{j != i} z_oj
    Args:
        w: [out, in].
        x: as given to `nmu_forward`.
        before: result of `nmu_forward`; overwritten if there are several outputs.
        y: result of `nmu_forward`; overwritten by the same numbers.
        y_grad: ȳ, [out, batch].
        ones: [1, batch].
        after: scratch, [1, batch].
        others: scratch, [in, batch].
        w_grad: added to, [out, in].
        x_grad: added to, [in, batch]; [0, batch] if not needed.
    """
    outputs, features = w.shape
    wanted = x_grad.shape[0] > 0
    right = after[0]
    for o in range(outputs):
        if outputs > 1:
            _products(w, o, x, before, y[o])
        copy(y_grad[o], right)
        for i in range(features - 1, -1, -1):
            if wanted:
                _product_back(w[o, i], x[i], before[i], right, others[i], x_grad[i])
            else:
                _weight_back(w[o, i], x[i], before[i], right, others[i])
        add_sums(w_grad, o, ones, others)


@apart
def _product_back(weight, row, left, right, result, to):  # type: ignore[no-untyped-def]
    one = type(weight)(1)
    for b in range(len(right)):
        shifted = row[b] - one
        other = left[b] * right[b]
        result[b] = other * shifted
        right[b] = right[b] * (weight * shifted + one)
        to[b] += other * weight


@apart
def _weight_back(weight, row, left, right, result):  # type: ignore[no-untyped-def]
    one = type(weight)(1)
    for b in range(len(right)):
        shifted = row[b] - one
        result[b] = left[b] * right[b] * shifted
        right[b] = right[b] * (weight * shifted + one)


# --- NAC•, NAC•,σ, NAC•,NMU -------------------------------------------------------------------------------------


@compiled
def logarithms(x, features, rows, logs):  # type: ignore[no-untyped-def]
    """Write l = log(|x| + 1e-7) to `logs`, of the first `features` and `rows` of x [features or more, rows or more]."""
    for i in range(features):
        row, to = x[i], logs[i]
        for b in range(rows):
            to[b] = logarithm(row[b])


@inlined
def logarithms_back(x, w, z_grad, spare, x_grad):  # type: ignore[no-untyped-def]
    """Add Wᵀ z̄ sign(x) / (|x| + 1e-7) to x_grad.

    W is [out, in], z̄ [out, batch]; x, x_grad and the scratch `spare` are [in, batch].
    """
    spare[:] = 0
    back_to_inputs(w, z_grad, spare)
    for i in range(x_grad.shape[0]):
        row, slope, to = x[i], spare[i], x_grad[i]
        for b in range(len(row)):
            to[b] += logarithm_back(row[b], slope[b])


@compiled
def exponentials(y):  # type: ignore[no-untyped-def]
    """Overwrite sums y [out, batch] by exp(y)."""
    for o in range(y.shape[0]):
        row = y[o]
        for b in range(len(row)):
            row[b] = exp(row[b])


@compiled
def times(y_grad, y, z_grad):  # type: ignore[no-untyped-def]
    """Differentiate y = exp(z): z̄ = ȳ y, written; all [out, batch], and z̄ may be ȳ."""
    for o in range(y.shape[0]):
        to, slope, row = z_grad[o], y_grad[o], y[o]
        for b in range(len(to)):
            to[b] = slope[b] * row[b]


@compiled
def nac_mul_forward(w, x, has_logs, logs, y):  # type: ignore[no-untyped-def]
    """Compute y = exp(Wl), l = log(|x| + 1e-7).

    Args:
        w: [out, in].
        x: [in or more, batch].
        has_logs: True if `logs` already holds the logarithms of this x.
        logs: l, scratch, [in, batch].
        y: written, [out, batch].
    """
    if not has_logs:
        logarithms(x, w.shape[1], x.shape[1], logs)
    multiply(y, w, logs, 0, w.shape[1])
    exponentials(y)


@compiled
def nac_mul_backward(w, x, logs, y, y_grad, z_grad, spare, w_grad, x_grad):  # type: ignore[no-untyped-def]
    """Differentiate y = exp(z), z = Wl: z̄ = ȳ y, dL/dW = z̄ lᵀ, dL/dx = Wᵀ z̄ sign(x) / (|x| + 1e-7).

    Args:
        w: [out, in].
        x: as given to `nac_mul_forward`.
        logs: result of `nac_mul_forward`.
        y: result of `nac_mul_forward`.
        y_grad: ȳ, [out, batch].
        z_grad: scratch, [out, batch].
        spare: scratch, [in, batch].
        w_grad: added to, [out, in].
        x_grad: added to, [in, batch]; [0, batch] if not needed.
    """
    times(y_grad, y, z_grad)
    add_dots(w_grad, z_grad, logs, 0)
    if x_grad.shape[0]:
        logarithms_back(x, w, z_grad, spare, x_grad)
