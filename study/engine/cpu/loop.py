"""The compiled loops of the fused engine: thousands of iterations of a trial without returning to Python.

A trial is trained from one evaluation to the next before its neighbour gets its turn, so that all it needs stays
in the first two levels of cache. A batch is processed in blocks of rows small enough for the first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from study.engine.arithmetic.update_rule import ADAM, MOMENTUM
from study.engine.compiled.cache import entry, inlined, internal
from study.engine.compiled.codes import Network
from study.engine.compiled.formulas import (
    ADD,
    DIV,
    ROOT,
    SQUARED,
    SUB,
    adam,
    clip,
    combine,
    fold,
    larger,
    momentum_step,
    out_of_bounds_slope,
    sgd,
    sparsity_slope,
    sparsity_strength,
)
from study.engine.cpu.layers import (
    Layer,
    backward,
    clear_gradients,
    forward,
    get_gradients,
    new_layer,
    set_weights,
    sparsity_error,
)
from study.engine.cpu.simd import add_squares, multiply
from tasks import stream_simd

# --- inputs and targets ---------------------------------------------------------------------------------------


@internal
def draw(x, seed, low, second, width, iteration, purpose, first, rows):  # type: ignore[no-untyped-def]
    """Fill x [features, block] with the stream's rows first, first + 1, ...; beyond the last, copies of the first.

    A copy overflows only where its original does too, so that it spoils nothing.
    """
    block = x.shape[1]
    stream_simd.draw(x, seed, low, second, width, iteration, purpose, first)
    if first + block > rows:
        for i in range(x.shape[0]):
            for b in range(rows - first, block):
                x[i, b] = x[i, 0]


@internal
def fill_targets(target, s, x, ones, sums, result):  # type: ignore[no-untyped-def]
    """Write the targets of one trial's rows into result [block]; `sums` is scratch, [subsets, block]."""
    operation = target.operation
    for j in range(sums.shape[0]):
        multiply(sums[j : j + 1], ones, x, target.starts[s, j], target.stops[s, j])
    first, last = sums[0], sums[sums.shape[0] - 1]
    # A loop for each, as for activations: see `gradients`.
    if operation == SUB:
        _combine_each(SUB, first, last, result)
    elif operation == DIV:
        _combine_each(DIV, first, last, result)
    elif operation == SQUARED:
        _combine_each(SQUARED, first, last, result)
    elif operation == ROOT:
        _combine_each(ROOT, first, last, result)
    else:
        _combine_each(ADD, first, last, result)
        for j in range(1, sums.shape[0]):
            other = sums[j]
            for b in range(len(result)):
                result[b] = fold(operation, result[b], other[b])


@inlined
def _combine_each(operation, first, last, result):  # type: ignore[no-untyped-def]
    for b in range(len(result)):
        result[b] = combine(operation, first[b], last[b])


# --- the update -------------------------------------------------------------------------------------------------


@internal
def _regularise(w, g, push, out, of_nau, squared, out_squared):  # type: ignore[no-untyped-def]
    if push != np.float32(0):
        for k in range(len(w)):
            g[k] += push * sparsity_slope(w[k], of_nau, squared)
    if out != np.float32(0):
        for k in range(len(w)):
            g[k] += out * out_of_bounds_slope(w[k], of_nau, out_squared)


@internal
def _adam(w, g, m, v, rate, c2):  # type: ignore[no-untyped-def]
    for k in range(len(w)):
        w[k], m[k], v[k] = adam(w[k], g[k], m[k], v[k], rate, c2)


@internal
def _update(rule, s, iteration, c1, c2, w, g, m, v):  # type: ignore[no-untyped-def]
    """Make one step of one trial's parameters."""
    strength = np.float32(
        sparsity_strength(iteration, rule.start[s], rule.length[s], rule.strength[s], rule.exponential[s])
    )
    at = 0
    for p in range(len(rule.ends)):
        end, share = rule.ends[p], rule.share[p]
        if share != np.float32(0):
            _regularise(
                w[at:end], g[at:end], strength * share, rule.out_strength[s] * share, rule.of_nau[p],
                rule.squared, rule.out_squared,
            )  # fmt: skip
        at = end
    if rule.optimizer == ADAM:
        _adam(w, g, m, v, rule.rate[s] * c1, c2)
    elif rule.optimizer == MOMENTUM:
        rate, momentum = rule.rate[s], rule.momentum
        for k in range(len(w)):
            w[k], m[k] = momentum_step(w[k], g[k], m[k], rate, momentum)
    else:
        rate = rule.rate[s]
        for k in range(len(w)):
            w[k] = sgd(w[k], g[k], rate)
    at = 0
    for p in range(len(rule.ends)):
        end, low, high = rule.ends[p], rule.low[p], rule.high[p]
        if high < np.inf:
            part = w[at:end]  # from 0 on: an index that could be negative keeps a loop from being vectorised
            for k in range(len(part)):
                part[k] = clip(part[k], low, high)
        at = end


# --- training ---------------------------------------------------------------------------------------------------


class Scratch(NamedTuple):
    """Arrays to work in, for blocks of so many rows; see `new_scratch`.

    Args:
        front: the first layer.
        back: the second layer.
        x: inputs, float32 [features, rows], where features are n rounded up to a multiple of 4.
        h: hidden units, [hidden, rows].
        h_grad: their gradients, the same shape.
        x_grad: the gradient of the inputs, which nobody needs, [0, rows].
        y: outputs, [1, rows].
        y_grad: their gradients, the same shape.
        sums: of the subsets, [subsets, rows].
        targets: [rows].
        ones: [1, n].
        gradient: of a trial's parameters, [parameters].
    """

    front: Layer
    back: Layer
    x: Any
    h: Any
    h_grad: Any
    x_grad: Any
    y: Any
    y_grad: Any
    sums: Any
    targets: Any
    ones: Any
    gradient: Any


def new_scratch(network: Network, subsets: int, rows: int, parameters: int) -> Scratch:
    """Make arrays to work in: nothing in them outlives a call."""
    n, hidden = network.inputs, network.hidden
    shapes = (
        (stream_simd.padded(n, 4), rows),
        (hidden, rows),
        (hidden, rows),
        (0, rows),
        (1, rows),
        (1, rows),
        (subsets, rows),
    )
    arrays = [np.zeros(shape, np.float32) for shape in (*shapes, (rows,))]
    arrays += [np.ones((1, n), np.float32), np.zeros(parameters, np.float32)]
    return Scratch(new_layer(n, hidden, rows), new_layer(hidden, 1, rows), *arrays)


@entry
def train(  # type: ignore[no-untyped-def]
    network, target, source, rule, batch, which, weight, first, second, iteration, count, scratch, corrections
):
    """Make some updates of each trial in `which`, from `iteration` on.

    Args:
        network: `Network`.
        target: `Target`.
        source: `InputStream` of the training inputs.
        rule: `UpdateRule`.
        batch: rows a batch.
        which: places of the trials, int64.
        weight: parameters, float32 [trials, parameters]; written, as are the next two.
        first: of the optimiser, the same shape.
        second: the same.
        iteration: updates made so far.
        count: updates to make.
        scratch: `Scratch`; a batch is processed in blocks of its rows.
        corrections: Adam's, of each iteration from 0 on, float32 [iterations, 2]; the last row holds from there on.
    """
    front, back, x, h, h_grad, y, y_grad = (
        scratch.front, scratch.back, scratch.x, scratch.h, scratch.h_grad, scratch.y, scratch.y_grad
    )  # fmt: skip
    sums, targets, ones, gradient = scratch.sums, scratch.targets, scratch.ones, scratch.gradient
    middle, block = network.parameters, x.shape[1]
    settled = len(corrections) - 1
    scale = np.float32(2 / batch)
    guess, slope = y[0], y_grad[0]
    for s in which:
        w, m, v = weight[s], first[s], second[s]
        w_front, w_back, g_front, g_back = w[:middle], w[middle:], gradient[:middle], gradient[middle:]
        seed, low, high_low, width = source.seeds[s], source.low[s, 0], source.low[s, 1], source.width[s]
        for i in range(iteration, iteration + count):
            set_weights(network.first, front, w_front)
            set_weights(network.second, back, w_back)
            clear_gradients(network.first, front)
            clear_gradients(network.second, back)
            for row in range(0, batch, block):
                draw(x, seed, low, high_low, width, i, source.purpose, row, batch)
                fill_targets(target, s, x, ones, sums, targets)
                forward(network.first, front, x, False, h)
                forward(network.second, back, h, False, y)
                for b in range(block):
                    slope[b] = (guess[b] - targets[b]) * scale
                for b in range(batch - row, block):
                    slope[b] = 0
                for o in range(h_grad.shape[0]):
                    to = h_grad[o]
                    for b in range(block):
                        to[b] = 0
                backward(network.second, back, h, y, y_grad, h_grad)
                backward(network.first, front, x, h, h_grad, scratch.x_grad)
            get_gradients(network.first, front, w_front, g_front)
            get_gradients(network.second, back, w_back, g_back)
            c1, c2 = corrections[min(i, settled), 0], corrections[min(i, settled), 1]
            _update(rule, s, i, c1, c2, w, gradient, m, v)


# --- evaluation -------------------------------------------------------------------------------------------------


@entry
def add_squared_errors(network, target, rows, of_range, count, which, weight, scratch, part, total):  # type: ignore[no-untyped-def]
    """Add up the squared errors of each trial in `which`.

    Args:
        network: `Network`.
        target: `Target`.
        rows: evaluation rows, float32 [ranges, blocks, features, block].
        of_range: which range is each trial's, int64 [trials].
        count: evaluation rows.
        which: places of the trials, int64.
        weight: parameters, float32 [trials, parameters].
        scratch: `Scratch` for blocks of these rows.
        part: scratch, float32 [1, 1].
        total: added to, float64 [which].
    """
    front, back, h, y, sums, targets = (
        scratch.front, scratch.back, scratch.h, scratch.y, scratch.sums, scratch.targets
    )  # fmt: skip
    middle, block = network.parameters, rows.shape[3]
    guess = y[0]
    for c in range(rows.shape[1]):
        for k in range(len(which)):
            s = which[k]
            x = rows[of_range[s], c]
            set_weights(network.first, front, weight[s, :middle])
            set_weights(network.second, back, weight[s, middle:])
            fill_targets(target, s, x, scratch.ones, sums, targets)
            has_logs = k > 0 and of_range[s] == of_range[which[k - 1]]
            forward(network.first, front, x, has_logs, h)
            forward(network.second, back, h, False, y)
            for b in range(block):
                guess[b] -= targets[b]
            for b in range(count - c * block, block):
                guess[b] = 0
            part[0, 0] = 0
            add_squares(part, y)
            total[k] += part[0, 0]


@entry
def sparsity_errors(network, which, weight, scratch, errors):  # type: ignore[no-untyped-def]
    """Write the sparsity error of each trial in `which` into errors, float32 [which]."""
    front, back = scratch.front, scratch.back
    middle = network.parameters
    for k in range(len(which)):
        set_weights(network.first, front, weight[which[k], :middle])
        set_weights(network.second, back, weight[which[k], middle:])
        errors[k] = larger(sparsity_error(network.first, front), sparsity_error(network.second, back))
