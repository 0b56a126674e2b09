"""The formulas of units, regularisers and optimisers, each written once, for single numbers.

The fused engines' loops call them for each element, on the CPU and in CUDA kernels; `inlined` makes them part of the
caller's loop, which can then be vectorised. A derivative is called `*_back`: it takes the slope dL/dy of the result, ȳ
below, and returns that of the argument. Formulas are generic in float32 and float64 unless stated otherwise:
`type(x)(1)` is a 1 of x's type.
"""

from __future__ import annotations

import math

import numpy as np

from tasks.arithmetic.engine.compiled.cache import inlined
from tasks.arithmetic.engine.compiled.intrinsics import root, where
from tasks.arithmetic.engine.compiled.math import exp, expm1, log, tanh

PLAIN, LINEAR, RELU, RELU6, TANH, SIGMOID, SOFTSIGN, SELU, ELU = range(9)
"""Activations of an affine layer; PLAIN has no bias either."""

ADD, SUB, MUL, DIV, SQUARED, ROOT = range(6)
"""Operations of the arithmetic task."""

_LOG_EPSILON = 1e-7
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_STEEP = _SELU_SCALE * 1.6732632423543772848170429916717

_EXPONENTIAL_RATE = 1e-5
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's constants."""

SETTLED = 60_000
"""Number of updates after which both of Adam's bias corrections are exactly 1."""


# --- sigmoid ----------------------------------------------------------------------------------------------------


@inlined
def squash(weight_hat):  # type: ignore[no-untyped-def]
    """Compute σ(Ŵ) = 1 / (1 + exp(-Ŵ))."""
    one = type(weight_hat)(1)
    return one / (one + exp(-weight_hat))


@inlined
def squash_back(w, w_grad):  # type: ignore[no-untyped-def]
    """Differentiate W = σ(Ŵ): dL/dŴ = W̄ W (1 - W)."""
    one = type(w)(1)
    return w_grad * ((one - w) * w)


gate = squash
"""Compute g = σ(s) from a gate's weighted sum s."""


# --- effective weights ------------------------------------------------------------------------------------------


@inlined
def nac_factors(weight_hat, mask_hat):  # type: ignore[no-untyped-def]
    """Compute tanh(Ŵ) and σ(M̂), the factors of W."""
    return tanh(weight_hat), squash(mask_hat)


@inlined
def nac_weight_back(size, mask, w_grad):  # type: ignore[no-untyped-def]
    """Differentiate W = s m, s = tanh(Ŵ), m = σ(M̂): dL/dŴ = W̄ m (1 - s²),  dL/dM̂ = W̄ s m (1 - m); size is s."""
    one = type(size)(1)
    return w_grad * mask * (one - size * size), squash_back(mask, w_grad * size)


@inlined
def clamp(w, low, high):  # type: ignore[no-untyped-def]
    """Move w into [low, high]; NaN stays NaN."""
    at_least = low if w < low else w
    return high if at_least > high else at_least


@inlined
def clamp_back(w, low, high, w_grad):  # type: ignore[no-untyped-def]
    """Differentiate the clamp: W̄ within the bounds and on them, 0 outside."""
    outside = (w < low) | (w > high)
    return type(w_grad)(0) if outside else w_grad


# --- activations ------------------------------------------------------------------------------------------------


@inlined
def activate(z, activation):  # type: ignore[no-untyped-def]
    """Compute y = f(z), with f by its number, such as RELU; PLAIN and LINEAR are the identity."""
    one, zero, six = type(z)(1), type(z)(0), type(z)(6)
    if activation == RELU:
        return zero if z < zero else z
    if activation == RELU6:
        positive = zero if z < zero else z
        return six if positive > six else positive
    if activation == TANH:
        return tanh(z)
    if activation == SIGMOID:
        return squash(z)
    if activation == SOFTSIGN:
        return z / (one + abs(z))
    if activation == SELU:
        low = expm1(zero if z > zero else z)
        return type(z)(_SELU_SCALE) * z if z > zero else type(z)(_SELU_STEEP) * low
    if activation == ELU:
        low = expm1(zero if z > zero else z)
        return z if z > zero else low
    return z  # PLAIN, LINEAR


@inlined
def activate_back(z, y, y_grad, activation):  # type: ignore[no-untyped-def]
    """Differentiate y = f(z), f by its number: z̄ = ȳ f'(z); 0 at the kinks of ReLU and ReLU6."""
    one, zero, six = type(z)(1), type(z)(0), type(z)(6)
    if activation == RELU:
        return zero if z <= zero else y_grad
    if activation == RELU6:
        return zero if (z <= zero) | (z >= six) else y_grad
    if activation == TANH:
        return y_grad * (one - y * y)
    if activation == SIGMOID:
        return squash_back(y, y_grad)
    if activation == SOFTSIGN:
        below = one + abs(z)
        return y_grad / (below * below)
    if activation == SELU:
        return y_grad * (type(z)(_SELU_SCALE) if z > zero else y + type(z)(_SELU_STEEP))
    if activation == ELU:
        return y_grad if z > zero else y_grad * (y + one)
    return y_grad  # PLAIN, LINEAR


# --- logarithms and gates ---------------------------------------------------------------------------------------


@inlined
def logarithm(x):  # type: ignore[no-untyped-def]
    """Compute l = log(|x| + 1e-7)."""
    return log(abs(x) + type(x)(_LOG_EPSILON))


@inlined
def logarithm_back(x, slope):  # type: ignore[no-untyped-def]
    """Differentiate l = log(|x| + 1e-7): dL/dx = l̄ sign(x) / (|x| + 1e-7), where l̄ is `slope`.

    At x = 0 the result is 0, or NaN if l̄ / 1e-7 isn't finite.
    """
    zero = type(x)(0)
    share = slope / (abs(x) + type(x)(_LOG_EPSILON))
    share = where(x < zero, -share, share)
    return where(x == zero, share * zero, share)


@inlined
def mix(g, a, m):  # type: ignore[no-untyped-def]
    """Compute y = g a + (1 - g) m."""
    return g * a + (type(g)(1) - g) * m


@inlined
def mix_back(y_grad, a, m, g):  # type: ignore[no-untyped-def]
    """Differentiate y = g a + (1 - g) m, g = σ(s): ā = ȳ g,  m̄ = ȳ (1 - g),  dL/ds = ȳ (a - m) g (1 - g)."""
    return y_grad * g, y_grad * (type(g)(1) - g), squash_back(g, y_grad * a - y_grad * m)


# --- regularisers, in float32 -----------------------------------------------------------------------------------


@inlined
def _sign(x):  # type: ignore[no-untyped-def]
    one, zero = np.float32(1), np.float32(0)
    return one if x > zero else (-one if x < zero else zero)


@inlined
def sparsity_slope(w, of_nau, squared):  # type: ignore[no-untyped-def]
    """Differentiate min(|s|, |1 - s|), or w² (1 - s)² if squared; s = |w| for NAU, else w; float32.

    It is 0 at kinks and, unless squared, for NaN.
    """
    half, one, two = np.float32(0.5), np.float32(1), np.float32(2)
    size = abs(w) if of_nau else w
    if squared:
        return two * w * (one - size) * (one - two * size)
    return _sign(w) * _sign(size - half) * _sign(size - one)


@inlined
def out_of_bounds_slope(w, of_nau, squared):  # type: ignore[no-untyped-def]
    """Differentiate relu(|w - c| - r), or its square; 0 within the bounds c - r and c + r, and for NaN; float32.

    c = 0 and r = 1 for NAU, else c = r = 1/2.
    """
    half, one, two, zero = np.float32(0.5), np.float32(1), np.float32(2), np.float32(0)
    offset = w if of_nau else w - half
    excess = abs(offset) - (one if of_nau else half)
    steep = two * excess if squared else one
    return _sign(offset) * steep if excess > zero else zero


# --- sparsity error ---------------------------------------------------------------------------------------------


@inlined
def discrete_distance(w):  # type: ignore[no-untyped-def]
    """Compute the distance of w from the nearest of -1, 0 and 1: min(|w|, |1 - |w||); NaN for NaN."""
    size = abs(w)
    to_one = abs(type(w)(1) - size)
    return size if size < to_one or size != size else to_one


@inlined
def larger(a, b):  # type: ignore[no-untyped-def]
    """Return the larger of two numbers; NaN counts as the largest."""
    return a if a > b or a != a else b


# --- strength of the sparsity regulariser -----------------------------------------------------------------------


@inlined
def sparsity_strength(iteration, start, length, full, exponential):  # type: ignore[no-untyped-def]
    """Compute λ(t) = λ̂ clip((t - start) / length, 0, 1), or λ̂ (1 - exp(-1e-5 t)) if exponential; float64.

    t is `iteration`, and λ̂ is `full`.
    """
    return _scaled_strength(full, min(max((iteration - start) / length, 0.0), 1.0), iteration, exponential)


@inlined
def sparsity_strength_in_float32(iteration, start, inverse_length, full, exponential):  # type: ignore[no-untyped-def]
    """Compute λ as `sparsity_strength` does, in a CUDA kernel, with 1 / length as `inverse_length`.

    `iteration` and `start` are uint64, `exponential` is bool, the other arguments and the result are float32.
    While λ grows, it differs from `sparsity_strength` by float32 rounding, so replacing one by the other would
    change results. Kernels avoid float64: many GPUs compute it at 1/32 of the speed of float32 or slower.
    """
    ramp, one = np.float32(0), np.float32(1)
    if iteration > start:
        ramp = min(np.float32(iteration - start) * inverse_length, one)
    return _scaled_strength(full, ramp, iteration, exponential)


@inlined
def _scaled_strength(full, ramp, iteration, exponential):  # type: ignore[no-untyped-def]
    if exponential:
        return full * -expm1(type(full)(-_EXPONENTIAL_RATE) * type(full)(iteration))
    return full * ramp


# --- optimisers, in float32 -------------------------------------------------------------------------------------


def bias_corrections(step: int) -> tuple[float, float]:
    """Compute Adam's bias corrections in step t = 1, 2, ...: 1 / (1 - β₁ᵗ) and 1 / sqrt(1 - β₂ᵗ).

    Example:
        >>> bias_corrections(1), bias_corrections(SETTLED)
        ((10.000000000000002, 31.622776601683782), (1.0, 1.0))
    """
    return 1 / (1 - BETA_1**step), 1 / math.sqrt(1 - BETA_2**step)


@inlined
def adam(w, g, m, v, rate, c2):  # type: ignore[no-untyped-def]
    """Make one step of Adam; return w, m and v.

        m <- m + (1 - β₁)(g - m),   v <- β₂ v + (1 - β₂) g²,   w <- w - rate m / (sqrt(v) c₂ + ε)
    c₁ and c₂ are the `bias_corrections`; `rate` is the learning rate times c₁.

    Source: Kingma & Ba, "Adam: a method for stochastic optimization", ICLR 2015, as in torch.optim.Adam.
    """
    first = m + np.float32(1 - BETA_1) * (g - m)
    second = np.float32(BETA_2) * v + np.float32(1 - BETA_2) * (g * g)
    return w - rate * (first / (root(second) * c2 + np.float32(EPSILON))), first, second


@inlined
def momentum_step(w, g, m, rate, momentum):  # type: ignore[no-untyped-def]
    """Make one step of gradient descent with momentum: m <- momentum m + g,  w <- w - rate m; return w and m."""
    moved = momentum * m + g
    return w - rate * moved, moved


@inlined
def sgd(w, g, rate):  # type: ignore[no-untyped-def]
    """Make one step of gradient descent: return w - rate g."""
    return w - rate * g


clip = clamp
"""Move a parameter back into its bounds."""


# --- the task, in float32 ---------------------------------------------------------------------------------------


@inlined
def combine(operation, first, last):  # type: ignore[no-untyped-def]
    """Compute a - b, a / b, a² or sqrt(a) of the first and last subset's sums; for ADD and MUL a, to start `fold`."""
    if operation == SUB:
        return first - last
    if operation == DIV:
        return first / last
    if operation == SQUARED:
        return first * first
    if operation == ROOT:
        return root(first)
    return first


@inlined
def fold(operation, total, other):  # type: ignore[no-untyped-def]
    """Add the sum of another subset to the total for ADD, or multiply by it for MUL."""
    return total + other if operation == ADD else total * other
