"""The phase that draws inputs and adds up what rows need: by weights, subsets, logarithms, products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from study.engine.compiled.formulas import logarithm
from study.engine.compiled.intrinsics import multiply_add
from study.engine.gpu.compile import inline
from study.engine.gpu.instructions import load4, product, store4
from study.engine.gpu.layout import Layout
from study.engine.gpu.row_math import ONE, ZERO
from tasks.stream import MULTIPLIERS, ROUNDS

_M0, _M1 = (np.uint32(factor) for factor in MULTIPLIERS)
_EIGHT, _BIT, _ZERO_WORD = np.uint32(8), np.uint32(1), np.uint32(0)
_ONE, _FOUR = np.uint64(1), np.uint64(4)


class TrialStream(NamedTuple):
    """Where a trial's inputs come from.

    Args:
        first_keys: Philox's round keys, the first of each pair, uint32 [10].
        second_keys: the second of each pair, uint32 [10].
        low: where the interval starts, float32.
        second_low: where the second interval starts, float32.
        scale: width of an interval times 2**-24, float32.
        two: whether there are two intervals.
    """

    first_keys: Any
    second_keys: Any
    low: Any
    second_low: Any
    scale: Any
    two: Any


@inline
def _four_words(row, quad, iteration, stream):
    """Encrypt (row, quad, iteration, TRAIN), all uint32, as `tasks.stream` has it: four uint32."""
    c0, c1, c2, c3 = row, quad, iteration, _ZERO_WORD
    for n in range(ROUNDS):
        low_0, high_0 = product(c0, _M0)
        low_1, high_1 = product(c2, _M1)
        c0 = high_1 ^ c1 ^ stream.first_keys[n]
        c1 = low_1
        c2 = high_0 ^ c3 ^ stream.second_keys[n]
        c3 = low_0
    return c0, c1, c2, c3


@inline
def _number(word, stream):
    """Turn a word into an input, float32, as `tasks.stream` has it."""
    low = stream.low
    if stream.two:
        low = stream.second_low if word & _BIT else low
    return low + stream.scale * np.float32(np.int32(word >> _EIGHT))


def new_sums(layout: Layout) -> Any:
    """Make what adds four features of one row to its sums, and multiplies its products.

        add_quad(x, quad, a, f0, f1, f2, f3, l0, l1, l2, l3)

    Features f and their logarithms l are float32; quad, uint64, 0 <= quad < layout.quads, says which four they are.
    """
    hidden, logs, products = layout.shape.hidden, layout.logs, layout.products
    at_weights, quad_stride, input_sums = layout.at_weights, 4 * layout.weight_rows, layout.input_sums
    sums, of_product = layout.sums, layout.input_sums if layout.own_products else 0

    @inline
    def add_quad(x, quad, a, f0, f1, f2, f3, l0, l1, l2, l3):
        at = np.uint64(at_weights) + quad * np.uint64(quad_stride)
        for k in range(input_sums):
            w0, w1, w2, w3 = load4(x, at + np.uint64(4 * k))
            a[k] = multiply_add(w3, f3, multiply_add(w2, f2, multiply_add(w1, f1, multiply_add(w0, f0, a[k]))))
        if logs:
            for o in range(hidden):
                w0, w1, w2, w3 = load4(x, at + np.uint64(4 * (of_product + o)))
                k = input_sums + o
                a[k] = multiply_add(w3, l3, multiply_add(w2, l2, multiply_add(w1, l1, multiply_add(w0, l0, a[k]))))
        if products:
            for o in range(hidden):
                w0, w1, w2, w3 = load4(x, at + np.uint64(4 * (of_product + o)))
                k = sums + o
                a[k] = a[k] * multiply_add(w0, f0 - ONE, ONE)
                a[k] = a[k] * multiply_add(w1, f1 - ONE, ONE)
                a[k] = a[k] * multiply_add(w2, f2 - ONE, ONE)
                a[k] = a[k] * multiply_add(w3, f3 - ONE, ONE)

    return add_quad


def new_draw(layout: Layout) -> Any:
    """Make the phase that draws inputs: thread = (row, slice of the features).

        draw(t, x, a, turn, iteration, stream)

    It writes the slice's inputs to shared memory, logarithms too if the layout has them. The slice's part of the sums
    stays in the thread if it is the row's first, and goes to shared memory if not; products always do. A row past the
    batch's end is a copy of the first, which overflows only where that does too. `iteration`: 0 <= iteration < 2**32;
    `stream`: `TrialStream`; others as in `gpu.phases.Phases`.
    """
    rows, batch, stride, plane = layout.rows, layout.shape.batch, layout.stride, layout.plane
    slice_quads, quads, logs, products = layout.slice_quads, layout.quads, layout.logs, layout.products
    sums, totals, hidden = layout.sums, layout.totals, layout.shape.hidden
    at_partial, at_products = layout.at_partial, layout.at_products
    add_quad = new_sums(layout)

    @inline
    def draw(t, x, a, turn, iteration, stream):
        row, part = t % np.uint64(rows), t // np.uint64(rows)
        for k in range(sums):
            a[k] = ZERO
        for k in range(sums, totals):
            a[k] = ONE
        number = np.uint64(turn) * np.uint64(rows) + row
        number = number if number < np.uint64(batch) else np.uint64(0)
        quad = part * np.uint64(slice_quads)
        end = min(quad + np.uint64(slice_quads), np.uint64(quads))
        while quad < end:
            c0, c1, c2, c3 = _four_words(np.uint32(number), np.uint32(quad), np.uint32(iteration), stream)
            f0, f1, f2, f3 = (_number(c0, stream), _number(c1, stream), _number(c2, stream), _number(c3, stream))
            at = row * np.uint64(stride) + _FOUR * quad
            store4(x, at, f0, f1, f2, f3)
            if logs:
                l0, l1, l2, l3 = logarithm(f0), logarithm(f1), logarithm(f2), logarithm(f3)
                store4(x, np.uint64(plane) + at, l0, l1, l2, l3)
                add_quad(x, quad, a, f0, f1, f2, f3, l0, l1, l2, l3)
            else:
                add_quad(x, quad, a, f0, f1, f2, f3, f0, f1, f2, f3)
            quad += _ONE
        if part > np.uint64(0):
            to = np.uint64(at_partial) + (part - _ONE) * np.uint64(sums * rows) + row
            for k in range(sums):
                x[to + np.uint64(k * rows)] = a[k]
        if products:
            to = np.uint64(at_products) + part * np.uint64(hidden * rows) + row
            for o in range(hidden):
                x[to + np.uint64(o * rows)] = a[sums + o]

    return draw
