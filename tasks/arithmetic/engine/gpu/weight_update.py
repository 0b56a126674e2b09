"""Weights of the fused GPU engine: effective weights and update steps.

Each function is made for one unit; its numbers lie in small arrays of the thread that owns the weight.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tasks.arithmetic.engine.compiled.codes import GATED, NAC, NALU, NOTHING, SQUASHED, Code
from tasks.arithmetic.engine.compiled.formulas import (
    adam,
    clamp,
    clamp_back,
    clip,
    momentum_step,
    nac_factors,
    nac_weight_back,
    out_of_bounds_slope,
    sgd,
    sparsity_slope,
    squash,
    squash_back,
)
from tasks.arithmetic.engine.gpu.compile import inline
from tasks.arithmetic.engine.gpu.row_math import ONE, ZERO
from tasks.arithmetic.engine.gpu.shape import ParameterRule, Shape, factors, has_bias, parameters
from tasks.arithmetic.engine.shared.update_rule import ADAM, MOMENTUM

_MINUS_ONE = np.float32(-1)


class Weight(NamedTuple):
    """A thread's work on its weight number j, 0 <= j < `Layout.rounds`; in the second layer j is 0.

        effective(p, f, j) -> sum, gate, product
        move(j, p, m, v, f, of_sum, of_gate, of_product, how)

    `effective` computes the factors of the inputs in the sum, in the gate's sum and in the product, each float32, 0 if
    the unit lacks it; it stores data for `move` in f. `move` takes the gradients of these three, and writes the
    weight's parameters and moments. Parameters are p[j * parameters:], factors f[j * factors:]; see `Phases`.
    """

    effective: Any
    move: Any


class Step(NamedTuple):
    """The constants of an update at one iteration: numbers of the trial, and choices of the pack.

    Args:
        strength: λ of the sparsity regulariser, float32 >= 0.
        out_strength: weight of the out-of-bounds regulariser, float32 >= 0.
        rate: step size, float32; for ADAM times its first bias correction.
        correction: ADAM's second bias correction, float32 >= 1.
        momentum: coefficient of MOMENTUM, float32.
        optimizer: ADAM, SGD or MOMENTUM.
        squared: True if the sparsity regulariser is squared.
        out_squared: True if the out-of-bounds regulariser is squared.
    """

    strength: Any
    out_strength: Any
    rate: Any
    correction: Any
    momentum: Any
    optimizer: Any
    squared: Any
    out_squared: Any


def new_step(rule: ParameterRule) -> Any:
    """Make the step of one parameter: regularise, move, clip.

        step(k, p, m, v, slope, how)

    It writes p[k], and the moments m[k] and v[k] that the optimiser has, given the loss's slope, float32, and a `Step`.
    """
    share, of_nau = np.float32(rule.share), rule.of_nau
    regularised, bounded = rule.share != 0, math.isfinite(rule.high)
    low, high = np.float32(rule.low), np.float32(rule.high)

    @inline
    def step(k, p, m, v, slope, how):
        w = p[k]
        if regularised:
            push, out = how.strength * share, how.out_strength * share
            if push != ZERO:
                slope = slope + push * sparsity_slope(w, of_nau, how.squared)
            if out != ZERO:
                slope = slope + out * out_of_bounds_slope(w, of_nau, how.out_squared)
        if how.optimizer == ADAM:
            w, m[k], v[k] = adam(w, slope, m[k], v[k], how.rate, how.correction)
        elif how.optimizer == MOMENTUM:
            w, m[k] = momentum_step(w, slope, m[k], how.rate, how.momentum)
        else:
            w = sgd(w, slope, how.rate)
        p[k] = clip(w, low, high) if bounded else w

    return step


def new_weights(shape: Shape) -> tuple[Weight, Weight]:
    """Make the weight functions of the first and the second layer."""
    middle = parameters(shape.first)
    return (
        _new_weight(shape.first, shape.rules[:middle]),
        _new_weight(shape.second, shape.rules[middle + has_bias(shape.first) :]),
    )


def _new_weight(code: Code, rules: tuple[ParameterRule, ...]) -> Weight:
    if code.family == NOTHING:
        return _no_weight()
    if code.family == GATED:
        return _gated_weight(code, rules)
    if code.weights == NAC:
        return _nac_weight(code, rules)
    return _single_weight(code, rules[0])


def _no_weight() -> Weight:
    """Make the no-op weight of an absent layer."""

    @inline
    def effective(p, f, j):
        return ZERO, ZERO, ZERO

    @inline
    def move(j, p, m, v, f, of_sum, of_gate, of_product, how):
        pass

    return Weight(effective, move)


def _single_weight(code: Code, rule: ParameterRule) -> Weight:
    squashed, clamped = code.weights == SQUASHED, math.isfinite(code.high)
    low, high, step = np.float32(code.low), np.float32(code.high), new_step(rule)

    @inline
    def effective(p, f, j):
        if squashed:
            f[j] = squash(p[j])
            return f[j], ZERO, ZERO
        return clamp(p[j], low, high) if clamped else p[j], ZERO, ZERO

    @inline
    def move(j, p, m, v, f, of_sum, of_gate, of_product, how):
        slope = of_sum
        if squashed:
            slope = squash_back(f[j], of_sum)
        if clamped:
            slope = clamp_back(p[j], low, high, of_sum)
        step(j, p, m, v, slope, how)

    return Weight(effective, move)


def _gated_weight(code: Code, rules: tuple[ParameterRule, ...]) -> Weight:
    clamped = math.isfinite(code.high)
    step_sum, step_product, step_gate = (new_step(rule) for rule in rules[:3])

    @inline
    def effective(p, f, j):
        k = 3 * j
        if clamped:
            return clamp(p[k], _MINUS_ONE, ONE), p[k + 2], clamp(p[k + 1], ZERO, ONE)
        return p[k], p[k + 2], p[k + 1]

    @inline
    def move(j, p, m, v, f, of_sum, of_gate, of_product, how):
        k = 3 * j
        if clamped:
            of_sum = clamp_back(p[k], _MINUS_ONE, ONE, of_sum)
            of_product = clamp_back(p[k + 1], ZERO, ONE, of_product)
        step_sum(k, p, m, v, of_sum, how)
        step_product(k + 1, p, m, v, of_product, how)
        step_gate(k + 2, p, m, v, of_gate, how)

    return Weight(effective, move)


def _nac_weight(code: Code, rules: tuple[ParameterRule, ...]) -> Weight:
    kinds, stored = parameters(code), factors(code)
    gated, step = code.family == NALU, new_step(rules[0])
    separate = gated and not code.shared

    @inline
    def effective(p, f, j):
        k, c = kinds * j, stored * j
        f[c], f[c + 1] = nac_factors(p[k], p[k + 1])
        of_sum = f[c] * f[c + 1]
        if separate:
            f[c + 2], f[c + 3] = nac_factors(p[k + 2], p[k + 3])
            return of_sum, p[k + 4], f[c + 2] * f[c + 3]
        if gated:
            return of_sum, p[k + 2], of_sum
        return of_sum, ZERO, ZERO

    @inline
    def move(j, p, m, v, f, of_sum, of_gate, of_product, how):
        k, c = kinds * j, stored * j
        if gated and not separate:
            of_sum = of_sum + of_product
        of_size, of_mask = nac_weight_back(f[c], f[c + 1], of_sum)
        step(k, p, m, v, of_size, how)
        step(k + 1, p, m, v, of_mask, how)
        if separate:
            of_size, of_mask = nac_weight_back(f[c + 2], f[c + 3], of_product)
            step(k + 2, p, m, v, of_size, how)
            step(k + 3, p, m, v, of_mask, how)
        if gated:
            step(k + kinds - 1, p, m, v, of_gate, how)

    return Weight(effective, move)
