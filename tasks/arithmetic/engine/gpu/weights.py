"""The phases that load, use, update and store weights: each weight belongs to one thread.

A thread owns weights t, t + threads, ... of the first layer, counted [hidden, features]. Of the second layer's weights
and the biases, it owns at most one: thread o < hidden the second layer's weight o, thread hidden that layer's bias,
thread hidden + 1 + o the first layer's bias o. Arguments are described in `Phases`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tasks.arithmetic.engine.compiled.codes import GATED, NALU
from tasks.arithmetic.engine.gpu.compile import inline
from tasks.arithmetic.engine.gpu.layout import SUMMANDS, Layout
from tasks.arithmetic.engine.gpu.row_math import ONE, ZERO
from tasks.arithmetic.engine.gpu.shape import effective, has_bias, parameters
from tasks.arithmetic.engine.gpu.weight_update import Weight, new_step, new_weights

_U2, _U3, _U4 = np.uint64(2), np.uint64(3), np.uint64(4)


class WeightPhases(NamedTuple):
    """The phases of this file; see `new_weight_phases`."""

    load: Any
    put: Any
    put_subsets: Any
    own: Any
    second: Any
    store: Any


def new_weight_phases(layout: Layout) -> WeightPhases:
    """Make the phases of the weights.

        load(t, values, at, p, p2)               loads the thread's parameters, or one of their moments
        put(t, w, p, f, p2, f2)                  writes effective weights to shared memory
        put_subsets(b, x, spans, span, threads)  writes subsets there as weights of 0 and 1, with the block's threads
        own(t, s, w, p, m, v, f, how)            updates the first layer's weights, and writes them
        second(t, w, p2, m2, v2, f2, how)        updates the second layer's weights and the biases, and writes them
        store(t, values, at, p, p2)              stores the values of `load`

    `values` are the parameters of all trials, or one of their moments, float32 [trials * parameters] in global memory,
    and `at` is the trial's start. `spans` are starts and stops of the subsets of all trials, uint64 [trials * subsets *
    2], those of the block's trials from `span` on. `b` is the thread's number in the block, which has `threads`
    threads, both uint64. `own` also adds up the first parts of sums over rows, which `second` reads after the barrier.
    """
    first, second = new_weights(layout.shape)
    put_first, put_small = _new_put_first(layout), _new_put_small(layout, second)
    load, store = _new_load_and_store(layout)
    return WeightPhases(
        load,
        _new_put(layout, first, put_first, put_small),
        _new_put_subsets(layout),
        _new_own(layout, first, put_first),
        _new_second(layout, second, put_small),
        store,
    )


# --- global memory ------------------------------------------------------------------------------------------------


def _new_load_and_store(layout: Layout) -> tuple[Any, Any]:
    shape, threads, rounds, features = layout.shape, layout.threads, layout.rounds, layout.features
    n, hidden, kinds, kinds_2 = shape.inputs, shape.hidden, parameters(shape.first), parameters(shape.second)
    bias_1, bias_2, second_slots = has_bias(shape.first), has_bias(shape.second), layout.second_slots
    # Start of each group of a trial's parameters: first layer, its bias, second layer, its bias.
    of_bias = kinds * hidden * n
    of_second = of_bias + bias_1 * hidden
    of_bias_2 = of_second + kinds_2 * hidden

    @inline
    def place(t):
        """Return the place of the thread's second-layer weight or bias among a trial's parameters."""
        if t < np.uint64(hidden):
            return np.uint64(of_second) + t
        if t == np.uint64(hidden):
            return np.uint64(of_bias_2)
        return np.uint64(of_bias) + t - np.uint64(hidden + 1)

    @inline
    def owned(t):
        """Count the parameters of the thread's second-layer weight, 1 for a bias, and 0 for neither."""
        if t < np.uint64(hidden):
            return kinds_2
        if bias_2 and t == np.uint64(hidden):
            return 1
        if bias_1 and t > np.uint64(hidden) and t <= np.uint64(2 * hidden):
            return 1
        return 0

    @inline
    def load(t, values, at, p, p2):
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            o, i = e // np.uint64(features), e % np.uint64(features)
            for k in range(kinds):
                p[kinds * j + k] = ZERO
                if o < np.uint64(hidden) and i < np.uint64(n):
                    p[kinds * j + k] = values[at + np.uint64(k * hidden * n) + o * np.uint64(n) + i]
        for k in range(second_slots):
            p2[k] = ZERO
            if k < owned(t):
                p2[k] = values[at + place(t) + np.uint64(k * hidden)]

    @inline
    def store(t, values, at, p, p2):
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            o, i = e // np.uint64(features), e % np.uint64(features)
            if o < np.uint64(hidden) and i < np.uint64(n):
                for k in range(kinds):
                    values[at + np.uint64(k * hidden * n) + o * np.uint64(n) + i] = p[kinds * j + k]
        for k in range(second_slots):
            if k < owned(t):
                values[at + place(t) + np.uint64(k * hidden)] = p2[k]

    return load, store


# --- shared memory ------------------------------------------------------------------------------------------------


def _new_put_first(layout: Layout) -> Any:
    """Make put_first(w, e, of_sum, of_gate, of_product), which writes a first-layer weight to shared memory.

    It is weight e, 0 <= e < hidden * features; the other numbers are its effective values, see `Weight`.
    """
    hidden, features, input_sums = layout.shape.hidden, layout.features, layout.input_sums
    gates, own_products = layout.shape.first.family in (NALU, GATED), layout.own_products
    at_weights, weight_rows = layout.at_weights, layout.weight_rows

    @inline
    def put_first(w, e, of_sum, of_gate, of_product):
        o, i = e // np.uint64(features), e % np.uint64(features)
        to = np.uint64(at_weights) + (i >> _U2) * np.uint64(4 * weight_rows) + (i & _U3) + _U4 * o
        w[to] = of_sum
        if gates:
            w[to + np.uint64(4 * hidden)] = of_gate
        if own_products:
            w[to + np.uint64(4 * input_sums)] = of_product

    return put_first


def _new_put_small(layout: Layout, second: Weight) -> Any:
    """Make put_small(t, w, p2, f2), which writes the thread's second-layer weight or bias to shared memory."""
    shape, hidden, matrices = layout.shape, layout.shape.hidden, effective(layout.shape.second)
    bias_1, bias_2 = has_bias(shape.first), has_bias(shape.second)
    at_second, at_bias, at_bias_2 = layout.at_second, layout.at_first_bias, layout.at_second_bias
    second_effective = second.effective

    @inline
    def put_second(w, o, of_sum, of_gate, of_product):
        if matrices > 0:
            w[np.uint64(at_second) + o] = of_sum
        if matrices > 1:
            w[np.uint64(at_second + hidden) + o] = of_gate
        if matrices > 2:
            w[np.uint64(at_second + 2 * hidden) + o] = of_product

    @inline
    def put_small(t, w, p2, f2):
        if t < np.uint64(hidden):
            of_sum, of_gate, of_product = second_effective(p2, f2, 0)
            put_second(w, t, of_sum, of_gate, of_product)
        elif bias_2 and t == np.uint64(hidden):
            w[np.uint64(at_bias_2)] = p2[0]
        elif bias_1 and t <= np.uint64(2 * hidden):
            w[np.uint64(at_bias) + t - np.uint64(hidden + 1)] = p2[0]

    return put_small


def _new_put(layout: Layout, first: Weight, put_first: Any, put_small: Any) -> Any:
    """Make the phase `put`; see `new_weight_phases`."""
    n, hidden = layout.shape.inputs, layout.shape.hidden
    threads, rounds, features = layout.threads, layout.rounds, layout.features
    first_effective = first.effective

    @inline
    def put(t, w, p, f, p2, f2):
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            if e < np.uint64(hidden * features):
                of_sum, of_gate, of_product = first_effective(p, f, j)
                if e % np.uint64(features) < np.uint64(n):
                    put_first(w, e, of_sum, of_gate, of_product)
                else:
                    put_first(w, e, ZERO, ZERO, ZERO)
        put_small(t, w, p2, f2)

    return put


def _new_put_subsets(layout: Layout) -> Any:
    """Make the phase `put_subsets`; see `new_weight_phases`."""
    subsets, features, at_subsets = layout.shape.subsets, layout.features, layout.at_subsets

    @inline
    def put_subsets(b, x, spans, span, threads):
        i = b
        while i < np.uint64(features):
            to = np.uint64(at_subsets) + (i >> _U2) * np.uint64(4 * subsets) + (i & _U3)
            for j in range(subsets):
                inside = spans[span + np.uint64(2 * j)] <= i and i < spans[span + np.uint64(2 * j + 1)]
                x[to + np.uint64(4 * j)] = ONE if inside else ZERO
            i += threads

    return put_subsets


# --- the update ---------------------------------------------------------------------------------------------------


def _new_own(layout: Layout, first: Weight, put_first: Any) -> Any:
    """Make the phase `own`; see `new_weight_phases`."""
    n, hidden, threads = layout.shape.inputs, layout.shape.hidden, layout.threads
    rounds, features, rows = layout.rounds, layout.features, layout.rows
    parts, virtual = layout.parts, layout.groups * layout.outputs
    gates, logs, products = layout.shape.first.family in (NALU, GATED), layout.logs, layout.products
    outputs, log_slopes, at_product_sums = layout.outputs, layout.log_slopes, layout.at_product_sums
    at_partial, row_sums, at_row_sums = layout.at_partial, layout.row_sums, layout.at_row_sums
    first_effective, first_move = first

    @inline
    def summed(s, e, row):
        """Sum the gradient of weight e = o features + i over the parts: s[part, row + o, i]."""
        at = np.uint64(row * features) + e
        total = s[at]
        for k in range(1, parts):
            total = total + s[at + np.uint64(k * virtual * features)]
        return total

    @inline
    def own(t, s, w, p, m, v, f, how):
        u = t
        while u < np.uint64(SUMMANDS * row_sums):
            at = np.uint64(at_row_sums) + u * np.uint64(rows // SUMMANDS)
            total = w[at]
            for k in range(1, rows // SUMMANDS):
                total = total + w[at + np.uint64(k)]
            w[np.uint64(at_partial) + u] = total
            u += np.uint64(threads)
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            if e < np.uint64(hidden * features) and e % np.uint64(features) < np.uint64(n):
                of_sum, of_gate, of_product = ZERO, ZERO, ZERO
                if outputs:
                    of_sum = summed(s, e, 0)
                if gates:
                    of_gate = summed(s, e, hidden)
                if gates and logs:
                    of_product = summed(s, e, log_slopes)
                if products:
                    of_product = w[np.uint64(at_product_sums) + e]
                if not outputs:  # only the product has weights
                    of_sum = of_product
                first_move(j, p, m, v, f, of_sum, of_gate, of_product, how)
                of_sum, of_gate, of_product = first_effective(p, f, j)
                put_first(w, e, of_sum, of_gate, of_product)

    return own


def _new_second(layout: Layout, second: Weight, put_small: Any) -> Any:
    """Make the phase `second`; see `new_weight_phases`."""
    shape, hidden, matrices = layout.shape, layout.shape.hidden, effective(layout.shape.second)
    bias_1, bias_2 = has_bias(shape.first), has_bias(shape.second)
    at_partial, first_bias, second_bias = layout.at_partial, layout.first_bias, layout.second_bias
    step_1, step_2 = new_step(shape.rules[parameters(shape.first) * bias_1]), new_step(shape.rules[-1])
    second_move = second.move

    @inline
    def over_rows(w, k):
        """Return sum k over rows (0 <= k < row_sums): add up the parts that `own` left in shared memory."""
        at = np.uint64(at_partial) + k * np.uint64(SUMMANDS)
        total = w[at]
        for part in range(1, SUMMANDS):
            total = total + w[at + np.uint64(part)]
        return total

    @inline
    def move_small(t, w, p2, m2, v2, f2, how):
        if t < np.uint64(hidden):
            of_sum, of_gate, of_product = ZERO, ZERO, ZERO
            if matrices > 0:
                of_sum = over_rows(w, t)
            if matrices > 1:
                of_gate = over_rows(w, t + np.uint64(hidden))
            if matrices > 2:
                of_product = over_rows(w, t + np.uint64(2 * hidden))
            second_move(0, p2, m2, v2, f2, of_sum, of_gate, of_product, how)
        elif bias_2 and t == np.uint64(hidden):
            step_2(0, p2, m2, v2, over_rows(w, np.uint64(second_bias)), how)
        elif bias_1 and t <= np.uint64(2 * hidden):
            step_1(0, p2, m2, v2, over_rows(w, np.uint64(first_bias) + t - np.uint64(hidden + 1)), how)
        put_small(t, w, p2, f2)

    return move_small
