"""A weight of the fused GPU engine: what inputs are multiplied with, and its step.

A function is made for one unit; the numbers lie in small arrays of the thread that owns the weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from study.engine.compiled.codes import ADAM, GATED, MOMENTUM, NAC, NALU, SQUASHED, Code
from study.engine.compiled.formulas import (
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
from study.engine.compiled.math import expm1
from study.engine.gpu.compile import inline
from study.engine.gpu.layout import Rule, factors, finite, parameters
from study.engine.gpu.row_math import ONE, ZERO

_MINUS_ONE = np.float32(-1)
_EXPONENTIAL_RATE = np.float32(-1e-5)


class Weight(NamedTuple):
    """What a thread does with a weight that it owns.

        effective(p, f, j) -> sum, gate, product          leaves in f what `move` reads
        move(j, p, m, v, f, gradients..., step)

    The weight's parameters are p[j * parameters:], its kept factors f[j * factors:].
    """

    effective: Any
    move: Any


class Step(NamedTuple):
    """What moves a parameter at one iteration: numbers of the trial, and choices of the whole pack."""

    strength: Any
    out_strength: Any
    rate: Any
    correction: Any
    momentum: Any
    optimizer: Any
    squared: Any
    out_squared: Any


def _step(rule: Rule) -> Any:
    """Make the step of one parameter: regularise, move, clip."""
    share, of_nau = np.float32(rule.share), rule.of_nau
    held, bounded = rule.share != 0, finite(rule.high)
    low, high = np.float32(rule.low), np.float32(rule.high)

    @inline
    def step(k, p, m, v, slope, how):
        w = p[k]
        if held:
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


def bias(rule: Rule) -> Any:
    """Make the step of a bias: step(k, p, m, v, slope, how)."""
    return _step(rule)


def weight(code: Code, rules: tuple[Rule, ...]) -> Weight:
    """Make what a thread does with a weight of a unit."""
    kinds = parameters(code)
    if code.family == GATED:
        return _gated_weight(code, rules)
    if code.weights == NAC:
        return _nac_weight(code, rules, kinds)
    return _single_weight(code, rules[0])


def _single_weight(code: Code, rule: Rule) -> Weight:
    squashed, clamped = code.weights == SQUASHED, finite(float(code.high))
    low, high, step = np.float32(code.low), np.float32(code.high), _step(rule)

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


def _gated_weight(code: Code, rules: tuple[Rule, ...]) -> Weight:
    clamped = finite(float(code.high))
    step_sum, step_product, step_gate = (_step(rule) for rule in rules[:3])

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


def _nac_weight(code: Code, rules: tuple[Rule, ...], kinds: int) -> Weight:
    gated, kept, step = code.family == NALU, factors(code), _step(rules[0])
    separate = gated and not code.shared

    @inline
    def effective(p, f, j):
        k, c = kinds * j, kept * j
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
        k, c = kinds * j, kept * j
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


@inline
def sparsity_strength(iteration, start, length, full, exponential):
    """Compute λ of an iteration, as `study.engine.schedule` has it; in float32, `length` being its inverse."""
    if exponential:
        return full * -expm1(_EXPONENTIAL_RATE * np.float32(iteration))
    ramp = ZERO
    if iteration > start:
        ramp = min(np.float32(iteration - start) * length, ONE)
    return full * ramp
