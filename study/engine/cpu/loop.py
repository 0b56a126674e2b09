"""The compiled loops of the fused engine: thousands of iterations of a trial without returning to Python.

A trial is trained from one evaluation to the next before its neighbour gets its turn, so that all it needs stays
in the first two levels of cache. A batch is worked off in blocks of rows small enough for the first.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from study.engine.compiled.cache import entry, inlined, internal
from study.engine.compiled.codes import ADAM, MOMENTUM, SETTLED, Network
from study.engine.compiled.formulas import (
    ADD,
    BETA_1,
    BETA_2,
    DIV,
    ROOT,
    SQUARED,
    SUB,
    adam,
    asked,
    clip,
    fold,
    momentum_step,
    out_of_bounds_slope,
    sgd,
    sparsity_slope,
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
    """Fill x [features, block] with the stream's rows first, first + 1, ...; past the end stands a copy of the first.

    Copies, because whatever they overflow to, their original does too: they spoil nothing that wasn't spoilt.
    """
    block = x.shape[1]
    stream_simd.draw(x, seed, low, second, width, iteration, purpose, first)
    if first + block > rows:
        for i in range(x.shape[0]):
            for b in range(rows - first, block):
                x[i, b] = x[i, 0]


@internal
def target(question, s, x, ones, sums, result):  # type: ignore[no-untyped-def]
    """Write the targets of one trial's rows into result [block]; `sums` is scratch, [subsets, block]."""
    operation = question.operation
    for j in range(sums.shape[0]):
        multiply(sums[j : j + 1], ones, x, question.starts[s, j], question.stops[s, j])
    first, last = sums[0], sums[sums.shape[0] - 1]
    # A loop for each, as for activations: see `gradients`.
    if operation == SUB:
        _ask_each(SUB, first, last, result)
    elif operation == DIV:
        _ask_each(DIV, first, last, result)
    elif operation == SQUARED:
        _ask_each(SQUARED, first, last, result)
    elif operation == ROOT:
        _ask_each(ROOT, first, last, result)
    else:
        _ask_each(ADD, first, last, result)
        for j in range(1, sums.shape[0]):
            other = sums[j]
            for b in range(len(result)):
                result[b] = fold(operation, result[b], other[b])


@inlined
def _ask_each(operation, first, last, result):  # type: ignore[no-untyped-def]
    for b in range(len(result)):
        result[b] = asked(operation, first[b], last[b])


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
def _update(moves, s, iteration, c1, c2, w, g, m, v):  # type: ignore[no-untyped-def]
    """Make one step of one trial's parameters."""
    ramp = (iteration - moves.start[s]) / moves.length[s]
    ramp = min(max(ramp, 0.0), 1.0)
    if moves.exponential[s]:
        ramp = -math.expm1(-1e-5 * iteration)
    strength = np.float32(moves.strength[s] * ramp)
    at = 0
    for p in range(len(moves.ends)):
        end, share = moves.ends[p], moves.share[p]
        if share != np.float32(0):
            _regularise(
                w[at:end], g[at:end], strength * share, moves.out_strength[s] * share, moves.of_nau[p],
                moves.squared, moves.out_squared,
            )  # fmt: skip
        at = end
    if moves.optimizer == ADAM:
        _adam(w, g, m, v, moves.rate[s] * c1, c2)
    elif moves.optimizer == MOMENTUM:
        rate, momentum = moves.rate[s], moves.momentum
        for k in range(len(w)):
            w[k], m[k] = momentum_step(w[k], g[k], m[k], rate, momentum)
    else:
        rate = moves.rate[s]
        for k in range(len(w)):
            w[k] = sgd(w[k], g[k], rate)
    at = 0
    for p in range(len(moves.ends)):
        end, low, high = moves.ends[p], moves.low[p], moves.high[p]
        if high < np.inf:
            part = w[at:end]  # from 0 on: an index that could be negative keeps a loop from being vectorised
            for k in range(len(part)):
                part[k] = clip(part[k], low, high)
        at = end


@internal
def _corrections(iteration, found):  # type: ignore[no-untyped-def]
    """Write Adam's bias corrections of some iterations into found, [count, 2] ones."""
    for j in range(len(found)):
        t = iteration + j + 1
        if t < SETTLED:
            found[j, 0] = 1 / (1 - math.pow(BETA_1, float(t)))
            found[j, 1] = 1 / math.sqrt(1 - math.pow(BETA_2, float(t)))


# --- training ---------------------------------------------------------------------------------------------------


class Scratch(NamedTuple):
    """Arrays to work in, for blocks of so many rows; see `new_scratch`."""

    front: Layer
    back: Layer
    x: Any
    h: Any
    h_grad: Any
    unwanted: Any
    y: Any
    y_grad: Any
    sums: Any
    wanted: Any
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
    network, question, source, moves, batch, which, weight, first, second, iteration, scratch, corrections
):
    """Make some updates of each trial in `which`, from `iteration` on.

    Args:
        network: `Network`.
        question: `Question`.
        source: `Draw` of the training inputs.
        moves: `Moves`.
        batch: rows a batch.
        which: places of the trials, int64.
        weight: parameters, float32 [trials, parameters]; written, as are the next two.
        first: of the optimiser, the same shape.
        second: the same.
        iteration: updates made so far.
        scratch: `Scratch`; a batch is worked off in blocks of its rows.
        corrections: ones, float32 [updates to make, 2]; written.
    """
    front, back, x, h, h_grad, y, y_grad = (
        scratch.front, scratch.back, scratch.x, scratch.h, scratch.h_grad, scratch.y, scratch.y_grad
    )  # fmt: skip
    sums, wanted, ones, gradient = scratch.sums, scratch.wanted, scratch.ones, scratch.gradient
    middle, block = network.parameters, x.shape[1]
    _corrections(iteration, corrections)
    scale = np.float32(2 / batch)
    guess, slope = y[0], y_grad[0]
    for s in which:
        w, m, v = weight[s], first[s], second[s]
        w_front, w_back, g_front, g_back = w[:middle], w[middle:], gradient[:middle], gradient[middle:]
        seed, low, high_low, width = source.seeds[s], source.low[s, 0], source.low[s, 1], source.width[s]
        for j in range(len(corrections)):
            set_weights(network.first, front, w_front)
            set_weights(network.second, back, w_back)
            clear_gradients(network.first, front)
            clear_gradients(network.second, back)
            for row in range(0, batch, block):
                draw(x, seed, low, high_low, width, iteration + j, source.purpose, row, batch)
                target(question, s, x, ones, sums, wanted)
                forward(network.first, front, x, False, h)
                forward(network.second, back, h, False, y)
                for b in range(block):
                    slope[b] = (guess[b] - wanted[b]) * scale
                for b in range(batch - row, block):
                    slope[b] = 0
                for o in range(h_grad.shape[0]):
                    to = h_grad[o]
                    for b in range(block):
                        to[b] = 0
                backward(network.second, back, h, y, y_grad, h_grad)
                backward(network.first, front, x, h, h_grad, scratch.unwanted)
            get_gradients(network.first, front, w_front, g_front)
            get_gradients(network.second, back, w_back, g_back)
            _update(moves, s, iteration + j, corrections[j, 0], corrections[j, 1], w, gradient, m, v)


# --- evaluation -------------------------------------------------------------------------------------------------


@entry
def fill_rows(rows, source, iteration, count):  # type: ignore[no-untyped-def]
    """Fill evaluation rows [ranges, blocks, features, block]; `source` has one seed and range for each range."""
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            first = c * rows.shape[3]
            draw(
                rows[r, c],
                source.seeds[r],
                source.low[r, 0],
                source.low[r, 1],
                source.width[r],
                iteration,
                source.purpose,
                first,
                count,
            )


@entry
def mean_squared_errors(network, question, rows, of_range, count, which, weight, scratch, part, total):  # type: ignore[no-untyped-def]
    """Add the squared errors of each trial in `which` over `count` rows to total, float64 [which]; part is [1, 1]."""
    front, back, h, y, sums, wanted = (
        scratch.front, scratch.back, scratch.h, scratch.y, scratch.sums, scratch.wanted
    )  # fmt: skip
    middle, block = network.parameters, rows.shape[3]
    guess = y[0]
    for c in range(rows.shape[1]):
        for k in range(len(which)):
            s = which[k]
            x = rows[of_range[s], c]
            set_weights(network.first, front, weight[s, :middle])
            set_weights(network.second, back, weight[s, middle:])
            target(question, s, x, scratch.ones, sums, wanted)
            known = k > 0 and of_range[s] == of_range[which[k - 1]]
            forward(network.first, front, x, known, h)
            forward(network.second, back, h, False, y)
            for b in range(block):
                guess[b] -= wanted[b]
            for b in range(count - c * block, block):
                guess[b] = 0
            part[0, 0] = 0
            add_squares(part, y)
            total[k] += part[0, 0]


@entry
def sparsity_errors(network, which, weight, scratch, found):  # type: ignore[no-untyped-def]
    """Write the sparsity error of each trial in `which` into found, float32 [which]."""
    front, back = scratch.front, scratch.back
    middle = network.parameters
    for k in range(len(which)):
        set_weights(network.first, front, weight[which[k], :middle])
        set_weights(network.second, back, weight[which[k], middle:])
        one, other = sparsity_error(network.first, front), sparsity_error(network.second, back)
        found[k] = one if one > other or one != one else other
