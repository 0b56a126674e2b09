"""One update of a trial's parameters: regularisers, optimiser and bounds."""

from __future__ import annotations

import numpy as np

from tasks.arithmetic.engine.compiled.cache import apart, forced
from tasks.arithmetic.engine.compiled.formulas import (
    adam,
    clip,
    momentum_step,
    out_of_bounds_slope,
    sgd,
    sparsity_slope,
    sparsity_strength,
)
from tasks.arithmetic.engine.shared.update_rule import ADAM, MOMENTUM


@apart
def _regularise(w, g, push, out, of_nau, squared, out_squared):  # type: ignore[no-untyped-def]
    if push != np.float32(0):
        for k in range(len(w)):
            g[k] += push * sparsity_slope(w[k], of_nau, squared)
    if out != np.float32(0):
        for k in range(len(w)):
            g[k] += out * out_of_bounds_slope(w[k], of_nau, out_squared)


@apart
def _adam(w, g, m, v, rate, c2):  # type: ignore[no-untyped-def]
    for k in range(len(w)):
        w[k], m[k], v[k] = adam(w[k], g[k], m[k], v[k], rate, c2)


@forced
def update(rules, shape, s, iteration, c1, c2, w, g, m, v):  # type: ignore[no-untyped-def]
    """Make one step of one trial's parameters in place: regularise, move by the optimiser, and clip.

    Args:
        rules: `Rules`.
        shape: index of the trial's shape.
        s: the trial's place.
        iteration: number of updates made so far.
        c1: Adam's first bias correction.
        c2: Adam's second bias correction.
        w: parameters, padded to a multiple of `LANES` with 0; the padding, its gradients and moments stay 0.
        g: their gradients; overwritten.
        m: their first moments; unchanged by SGD.
        v: their second moments; changed by ADAM only.
    """
    strength = np.float32(
        sparsity_strength(iteration, rules.start[s], rules.length[s], rules.strength[s], rules.exponential[s])
    )
    rule = rules.shapes[shape]
    at = 0
    for p in range(rule.parts):
        part = rules.parts[shape, p]
        if part.share != np.float32(0):
            _regularise(
                w[at : part.end], g[at : part.end], strength * part.share, rules.out_strength[s] * part.share,
                part.of_nau, rule.squared, rule.out_squared,
            )  # fmt: skip
        at = part.end
    if rule.optimizer == ADAM:
        _adam(w, g, m, v, rules.rate[s] * c1, c2)
    elif rule.optimizer == MOMENTUM:
        rate, momentum = rules.rate[s], rule.momentum
        for k in range(len(w)):
            w[k], m[k] = momentum_step(w[k], g[k], m[k], rate, momentum)
    else:
        rate = rules.rate[s]
        for k in range(len(w)):
            w[k] = sgd(w[k], g[k], rate)
    at = 0
    for p in range(rule.parts):
        part = rules.parts[shape, p]
        if part.high < np.inf:
            low, high = part.low, part.high
            bounded = w[at : part.end]  # starts at 0: an index that could be negative prevents vectorisation
            for k in range(len(bounded)):
                bounded[k] = clip(bounded[k], low, high)
        at = part.end
