"""The phases that load, use, move and store weights, each of which belongs to one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from study.engine.gpu.compile import inline
from study.engine.gpu.layout import SUMMANDS, Layout, effective, has_bias, parameters
from study.engine.gpu.row_math import ONE, ZERO
from study.engine.gpu.weight_update import bias, weight

_U2, _U3, _U4 = np.uint64(2), np.uint64(3), np.uint64(4)


def new_owners(layout: Layout) -> tuple[Any, Any, Any, Any, Any]:
    """Make the phases that load, use, move and store weights: each belongs to one thread.

    A thread owns weights t, t + threads, ... of the first layer, counted [hidden, features], and one of the second
    layer, or a bias.
    """
    shape, threads = layout.shape, layout.threads
    n, hidden, features, rounds = shape.inputs, shape.hidden, layout.features, layout.rounds
    kinds, kinds_2 = parameters(shape.first), parameters(shape.second)
    first_effective, first_move = weight(shape.first, shape.rules[:kinds])
    bias_1, bias_2 = has_bias(shape.first), has_bias(shape.second)
    second_effective, second_move = weight(shape.second, shape.rules[kinds + bias_1 :])
    step_1 = bias(shape.rules[kinds]) if bias_1 else bias(shape.rules[0])
    step_2 = bias(shape.rules[-1])
    # Where a trial's parameters start: the first layer's, its bias, the second's, its bias.
    of_bias = kinds * hidden * n
    of_second = of_bias + bias_1 * hidden
    of_bias_2 = of_second + kinds_2 * hidden
    own_products, gates, matrices = layout.own_products, shape.first.family != 0, effective(shape.second)
    at_weights, weight_rows, input_sums = layout.at_weights, layout.weight_rows, layout.input_sums
    at_second, at_bias, at_bias_2 = layout.at_second, layout.at_first_bias, layout.at_second_bias
    subset_sums, subsets = layout.subset_sums, shape.subsets
    parts, virtual = layout.parts, layout.groups * layout.outputs
    logs, log_slopes, products, at_product_sums = (
        layout.logs,
        layout.log_slopes,
        layout.products,
        layout.at_product_sums,
    )
    at_partial, row_sums, at_row_sums, rows = (
        layout.at_partial,
        layout.row_sums,
        layout.at_row_sums,
        layout.rows,
    )
    second_bias, first_bias = layout.second_bias, layout.first_bias

    @inline
    def put_first(x, e, of_sum, of_gate, of_product):
        o, i = e // np.uint64(features), e % np.uint64(features)
        to = np.uint64(at_weights) + (i >> _U2) * np.uint64(4 * weight_rows) + (i & _U3) + _U4 * o
        x[to] = of_sum
        if gates:
            x[to + np.uint64(4 * hidden)] = of_gate
        if own_products:
            x[to + np.uint64(4 * input_sums)] = of_product

    @inline
    def put_second(x, o, of_sum, of_gate, of_product):
        x[np.uint64(at_second) + o] = of_sum
        if matrices > 1:
            x[np.uint64(at_second + hidden) + o] = of_gate
        if matrices > 2:
            x[np.uint64(at_second + 2 * hidden) + o] = of_product

    @inline
    def place(t):
        """Find the first of the thread's parameters among those of the second layer and the biases."""
        if t < np.uint64(hidden):
            return np.uint64(of_second) + t
        if t == np.uint64(hidden):
            return np.uint64(of_bias_2)
        return np.uint64(of_bias) + t - np.uint64(hidden + 1)

    @inline
    def owned(t):
        """Count the parameters of the second layer, or biases, that a thread owns."""
        if t < np.uint64(hidden):
            return kinds_2
        if bias_2 and t == np.uint64(hidden):
            return 1
        if bias_1 and t > np.uint64(hidden) and t <= np.uint64(2 * hidden):
            return 1
        return 0

    @inline
    def load(t, values, at, p, p2):
        """Load the thread's parameters, or a moment of them, from a trial's in global memory."""
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            o, i = e // np.uint64(features), e % np.uint64(features)
            for k in range(kinds):
                p[kinds * j + k] = ZERO
                if o < np.uint64(hidden) and i < np.uint64(n):
                    p[kinds * j + k] = values[at + np.uint64(k * hidden * n) + o * np.uint64(n) + i]
        for k in range(kinds_2):
            p2[k] = ZERO
            if k < owned(t):
                p2[k] = values[at + place(t) + np.uint64(k * hidden)]

    @inline
    def store(t, values, at, p, p2):
        """Store what `load` loads."""
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            o, i = e // np.uint64(features), e % np.uint64(features)
            if o < np.uint64(hidden) and i < np.uint64(n):
                for k in range(kinds):
                    values[at + np.uint64(k * hidden * n) + o * np.uint64(n) + i] = p[kinds * j + k]
        for k in range(kinds_2):
            if k < owned(t):
                values[at + place(t) + np.uint64(k * hidden)] = p2[k]

    @inline
    def put(t, x, p, f, p2, f2, spans, span):
        """Put effective weights and the subsets, as weights of 0 and 1, into shared memory."""
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            if e < np.uint64(hidden * features):
                of_sum, of_gate, of_product = first_effective(p, f, j)
                if e % np.uint64(features) < np.uint64(n):
                    put_first(x, e, of_sum, of_gate, of_product)
                else:
                    put_first(x, e, ZERO, ZERO, ZERO)
        i = t
        while i < np.uint64(features):
            to = np.uint64(at_weights) + (i >> _U2) * np.uint64(4 * weight_rows) + (i & _U3)
            for j in range(subsets):
                inside = spans[span + np.uint64(2 * j)] <= i and i < spans[span + np.uint64(2 * j + 1)]
                x[to + np.uint64(4 * (subset_sums + j))] = ONE if inside else ZERO
            i += np.uint64(threads)
        put_small(t, x, p2, f2)

    @inline
    def put_small(t, x, p2, f2):
        if t < np.uint64(hidden):
            of_sum, of_gate, of_product = second_effective(p2, f2, 0)
            put_second(x, t, of_sum, of_gate, of_product)
        elif bias_2 and t == np.uint64(hidden):
            x[np.uint64(at_bias_2)] = p2[0]
        elif bias_1 and t <= np.uint64(2 * hidden):
            x[np.uint64(at_bias) + t - np.uint64(hidden + 1)] = p2[0]

    @inline
    def summed(x, e, row):
        """Add up the parts of a weight's gradient: of a row of slopes, weight e of the hidden units' first."""
        at = np.uint64(row * features) + e
        total = x[at]
        for k in range(1, parts):
            total = total + x[at + np.uint64(k * virtual * features)]
        return total

    @inline
    def own(t, x, p, m, v, f, how):
        """Move the first layer's weights; and add up the first parts of sums over rows."""
        u = t
        while u < np.uint64(SUMMANDS * row_sums):
            at = np.uint64(at_row_sums) + u * np.uint64(rows // SUMMANDS)
            total = x[at]
            for k in range(1, rows // SUMMANDS):
                total = total + x[at + np.uint64(k)]
            x[np.uint64(at_partial) + u] = total
            u += np.uint64(threads)
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            if e < np.uint64(hidden * features) and e % np.uint64(features) < np.uint64(n):
                of_sum, of_gate, of_product = summed(x, e, 0), ZERO, ZERO
                if gates:
                    of_gate = summed(x, e, hidden)
                if logs:
                    of_product = summed(x, e, log_slopes)
                if products:
                    of_product = x[np.uint64(at_product_sums) + e]
                first_move(j, p, m, v, f, of_sum, of_gate, of_product, how)
                of_sum, of_gate, of_product = first_effective(p, f, j)
                put_first(x, e, of_sum, of_gate, of_product)

    @inline
    def over_rows(x, k):
        at = np.uint64(at_partial) + k * np.uint64(SUMMANDS)
        total = x[at]
        for part in range(1, SUMMANDS):
            total = total + x[at + np.uint64(part)]
        return total

    @inline
    def move_small(t, x, p2, m2, v2, f2, how):
        """Move the second layer's weights, and biases."""
        if t < np.uint64(hidden):
            of_sum, of_gate, of_product = over_rows(x, t), ZERO, ZERO
            if matrices > 1:
                of_gate = over_rows(x, t + np.uint64(hidden))
            if matrices > 2:
                of_product = over_rows(x, t + np.uint64(2 * hidden))
            second_move(0, p2, m2, v2, f2, of_sum, of_gate, of_product, how)
        elif bias_2 and t == np.uint64(hidden):
            step_2(0, p2, m2, v2, over_rows(x, np.uint64(second_bias)), how)
        elif bias_1 and t <= np.uint64(2 * hidden):
            step_1(0, p2, m2, v2, over_rows(x, np.uint64(first_bias) + t - np.uint64(hidden + 1)), how)
        put_small(t, x, p2, f2)

    return load, put, own, move_small, store
