"""The phases that draw inputs and compute rows' sums: by weights, subsets, logarithms and products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from study.stream.stream import MULTIPLIERS, ROUNDS
from tasks.arithmetic.engine.compiled.formulas import logarithm
from tasks.arithmetic.engine.compiled.intrinsics import multiply_add
from tasks.arithmetic.engine.gpu.compile import inline
from tasks.arithmetic.engine.gpu.instructions import load4, product, store4
from tasks.arithmetic.engine.gpu.layout import Layout
from tasks.arithmetic.engine.gpu.row_math import ONE, ZERO

_M0, _M1 = (np.uint32(factor) for factor in MULTIPLIERS)
_EIGHT, _BIT, _ZERO_WORD = np.uint32(8), np.uint32(1), np.uint32(0)
_ONE, _FOUR = np.uint64(1), np.uint64(4)
_WARP_THREADS = 32
_WARP = np.uint64(_WARP_THREADS)


class BlockStream(NamedTuple):
    """The source of a block's inputs.

    Args:
        first_keys: Philox's round keys, the first of each pair, uint32 [10].
        second_keys: the second of each pair, uint32 [10].
        low: start of the interval, float32.
        second_low: start of the second interval, float32.
        scale: width of an interval times 2**-24, float32.
        two: True if there are two intervals.
    """

    first_keys: Any
    second_keys: Any
    low: Any
    second_low: Any
    scale: Any
    two: Any


@inline
def _four_words(row, quad, iteration, stream):
    """Encrypt (row, quad, iteration, TRAIN), all uint32, to four uint32, as `study.stream.stream` does."""
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
    """Convert a word to an input, float32, as `study.stream.stream` does."""
    low = stream.low
    if stream.two:
        low = stream.second_low if word & _BIT else low
    return low + stream.scale * np.float32(np.int32(word >> _EIGHT))


def new_sums(layout: Layout) -> tuple[Any, Any]:
    """Make the functions that add four features of a row to its sums, and to its sums over subsets.

        add_quad(w, quad, a, f0, f1, f2, f3, l0, l1, l2, l3)
        add_subsets(x, quad, e, f0, f1, f2, f3)

    `add_quad` also multiplies the row's products by the factors of the four features. Features f and their logarithms l
    are float32; quad, uint64, 0 <= quad < layout.quads, is the number of the four features; other arguments are as in
    `gpu.phases.Phases`.
    """
    hidden, logs, products = layout.shape.hidden, layout.logs, layout.products
    at_weights, quad_stride, input_sums = layout.at_weights, 4 * layout.weight_rows, layout.input_sums
    sums, of_product = layout.sums, layout.input_sums if layout.own_products else 0
    at_subsets, subsets = layout.at_subsets, layout.shape.subsets

    @inline
    def add_quad(w, quad, a, f0, f1, f2, f3, l0, l1, l2, l3):
        at = np.uint64(at_weights) + quad * np.uint64(quad_stride)
        for k in range(input_sums):
            w0, w1, w2, w3 = load4(w, at + np.uint64(4 * k))
            a[k] = multiply_add(w3, f3, multiply_add(w2, f2, multiply_add(w1, f1, multiply_add(w0, f0, a[k]))))
        if logs:
            for o in range(hidden):
                w0, w1, w2, w3 = load4(w, at + np.uint64(4 * (of_product + o)))
                k = input_sums + o
                a[k] = multiply_add(w3, l3, multiply_add(w2, l2, multiply_add(w1, l1, multiply_add(w0, l0, a[k]))))
        if products:
            for o in range(hidden):
                w0, w1, w2, w3 = load4(w, at + np.uint64(4 * (of_product + o)))
                k = sums + o
                a[k] = a[k] * multiply_add(w0, f0 - ONE, ONE)
                a[k] = a[k] * multiply_add(w1, f1 - ONE, ONE)
                a[k] = a[k] * multiply_add(w2, f2 - ONE, ONE)
                a[k] = a[k] * multiply_add(w3, f3 - ONE, ONE)

    @inline
    def add_subsets(x, quad, e, f0, f1, f2, f3):
        at = np.uint64(at_subsets) + quad * np.uint64(4 * subsets)
        for j in range(subsets):
            w0, w1, w2, w3 = load4(x, at + np.uint64(4 * j))
            e[j] = multiply_add(w3, f3, multiply_add(w2, f2, multiply_add(w1, f1, multiply_add(w0, f0, e[j]))))

    return add_quad, add_subsets


def new_draw(layout: Layout) -> Any:
    """Make the phase that draws inputs; all threads of a block share the quads of each row.

        draw(b, x, turn, iteration, stream, trials)

    It writes a pass's inputs to shared memory, with logarithms if the layout has them. A row past the batch's end is a
    copy of the first, which overflows only if the first does. `b` is the thread's number in the block, uint64, 0 <= b <
    trials * threads; `iteration`: 0 <= iteration < 2**32; `stream`: `BlockStream`; `trials`, uint64, is the block's
    number of trials; other arguments are as in `gpu.phases.Phases`.
    """
    rows, batch, stride, plane = layout.rows, layout.shape.batch, layout.stride, layout.plane
    slices, quads, logs, at_inputs = layout.slices, layout.quads, layout.logs, layout.at_inputs

    @inline
    def draw(b, x, turn, iteration, stream, trials):
        row, quad = b % np.uint64(rows), b // np.uint64(rows)
        number = np.uint64(turn) * np.uint64(rows) + row
        number = number if number < np.uint64(batch) else np.uint64(0)
        to = np.uint64(at_inputs) + row * np.uint64(stride)
        while quad < np.uint64(quads):
            c0, c1, c2, c3 = _four_words(np.uint32(number), np.uint32(quad), np.uint32(iteration), stream)
            f0, f1, f2, f3 = (_number(c0, stream), _number(c1, stream), _number(c2, stream), _number(c3, stream))
            at = to + _FOUR * quad
            store4(x, at, f0, f1, f2, f3)
            if logs:
                store4(x, np.uint64(plane) + at, logarithm(f0), logarithm(f1), logarithm(f2), logarithm(f3))
            quad += np.uint64(slices) * trials

    return draw


def new_multiply(layout: Layout) -> tuple[Any, Any]:
    """Make two phases that sum the features of each row: by weights, and over the task's subsets.

        multiply(t, x, w, a)
        subsets(t, x, e, trial, trials)

    In both, a thread takes a row and a slice of its features. `multiply` keeps the sums by weights of a row's first
    slice in the thread; it writes those of other slices, and all products, to shared memory. `subsets` writes all its
    sums there. A block's trials share the sums over subsets, so each trial's threads compute some of them: `trial`,
    uint64, 0 <= trial < trials, is the number of the thread's trial. Other arguments are as in `gpu.phases.Phases`.
    """
    rows, stride, plane, at_inputs = layout.rows, layout.stride, layout.plane, layout.at_inputs
    slice_quads, quads, logs, products = layout.slice_quads, layout.quads, layout.logs, layout.products
    sums, totals, hidden, subset_count = layout.sums, layout.totals, layout.shape.hidden, layout.shape.subsets
    at_partial, at_products, at_subset_sums = layout.at_partial, layout.at_products, layout.at_subset_sums
    add_quad, add_subsets = new_sums(layout)
    warps = layout.threads // _WARP_THREADS

    # Loops of constant length need no end test, which would take a third of their instructions.
    least_quads = max(0, quads - (layout.slices - 1) * slice_quads)

    @inline
    def add(x, w, a, at_row, quad):
        at = at_row + _FOUR * quad
        f0, f1, f2, f3 = load4(x, at)
        if logs:
            l0, l1, l2, l3 = load4(x, np.uint64(plane) + at)
            add_quad(w, quad, a, f0, f1, f2, f3, l0, l1, l2, l3)
        else:
            add_quad(w, quad, a, f0, f1, f2, f3, f0, f1, f2, f3)

    @inline
    def add_to_subsets(x, e, at_row, quad):
        f0, f1, f2, f3 = load4(x, at_row + _FOUR * quad)
        add_subsets(x, quad, e, f0, f1, f2, f3)

    @inline
    def multiply(t, x, w, a):
        row, part = t % np.uint64(rows), t // np.uint64(rows)
        for k in range(sums):
            a[k] = ZERO
        for k in range(sums, totals):
            a[k] = ONE
        first, at = part * np.uint64(slice_quads), np.uint64(at_inputs) + row * np.uint64(stride)
        j = np.uint64(0)
        while j < np.uint64(least_quads):
            add(x, w, a, at, first + j)
            j += _ONE
        for k in range(least_quads, slice_quads):
            if first + np.uint64(k) < np.uint64(quads):
                add(x, w, a, at, first + np.uint64(k))
        if part > np.uint64(0):
            to = np.uint64(at_partial) + (part - _ONE) * np.uint64(sums * rows) + row
            for k in range(sums):
                w[to + np.uint64(k * rows)] = a[k]
        if products:
            to = np.uint64(at_products) + part * np.uint64(hidden * rows) + row
            for o in range(hidden):
                w[to + np.uint64(o * rows)] = a[sums + o]

    @inline
    def subsets(t, x, e, trial, trials):
        # A full warp at a time, so that its threads don't diverge; divisors are compile-time constants.
        if (t // _WARP) * trials // np.uint64(warps) == trial:
            row, part = t % np.uint64(rows), t // np.uint64(rows)
            for j in range(subset_count):
                e[j] = ZERO
            first, at = part * np.uint64(slice_quads), np.uint64(at_inputs) + row * np.uint64(stride)
            k = np.uint64(0)
            while k < np.uint64(least_quads):
                add_to_subsets(x, e, at, first + k)
                k += _ONE
            for j in range(least_quads, slice_quads):
                if first + np.uint64(j) < np.uint64(quads):
                    add_to_subsets(x, e, at, first + np.uint64(j))
            to = np.uint64(at_subset_sums) + part * np.uint64(subset_count * rows) + row
            for j in range(subset_count):
                x[to + np.uint64(j * rows)] = e[j]

    return multiply, subsets
