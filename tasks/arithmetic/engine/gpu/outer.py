"""The phases that multiply rows' gradients with inputs, for the gradients of the first layer's weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tasks.arithmetic.engine.compiled.intrinsics import multiply_add
from tasks.arithmetic.engine.gpu.compile import inline
from tasks.arithmetic.engine.gpu.instructions import load4, store4
from tasks.arithmetic.engine.gpu.layout import Layout
from tasks.arithmetic.engine.gpu.row_math import ONE, ZERO

_U1, _U2, _U3, _U4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


def new_outer(layout: Layout) -> tuple[Any, Any]:
    """Make the phase that sums slopes times inputs, and the phase that writes the sums to shared memory.

        outer(t, x, w, d, turn)
        parts(t, s, w, d, z)

    A thread takes 4 features, some outputs and some rows. In the first pass `outer` sets d, in later passes it adds to
    d. After the last pass, `parts` writes d over the inputs, and z of each row, t < layout.rows, to its own place.
    Arguments are as in `gpu.phases.Phases`.
    """
    quads, groups, outputs, parts = layout.quads, layout.groups, layout.outputs, layout.parts
    input_groups, plane, stride, rows = layout.input_groups, layout.plane, layout.stride, layout.rows
    at_slopes, slope_stride, features = layout.at_slopes, layout.slope_stride, layout.features
    at_inputs = layout.at_inputs

    @inline
    def add(x, w, d, at, slopes, row):
        x0, x1, x2, x3 = load4(x, at + row * np.uint64(stride))
        for k in range(outputs):
            slope = w[slopes + row * np.uint64(slope_stride) + np.uint64(k)]
            d[4 * k] = multiply_add(slope, x0, d[4 * k])
            d[4 * k + 1] = multiply_add(slope, x1, d[4 * k + 1])
            d[4 * k + 2] = multiply_add(slope, x2, d[4 * k + 2])
            d[4 * k + 3] = multiply_add(slope, x3, d[4 * k + 3])

    @inline
    def outer(t, x, w, d, turn):
        if turn == 0:
            for k in range(4 * outputs):
                d[k] = ZERO
        quad, share = t % np.uint64(quads), t // np.uint64(quads)
        group, part = share % np.uint64(max(groups, 1)), share // np.uint64(max(groups, 1))
        if outputs > 0 and part < np.uint64(parts):
            at = np.uint64(at_inputs + plane) if group >= np.uint64(input_groups) else np.uint64(at_inputs)
            at += _U4 * quad
            slopes = np.uint64(at_slopes) + group * np.uint64(outputs)
            j = np.uint64(0)
            while j < np.uint64(rows // parts):
                add(x, w, d, at, slopes, part + j * np.uint64(parts))
                j += _U1
            last = part + np.uint64(rows // parts * parts)
            if last < np.uint64(rows):
                add(x, w, d, at, slopes, last)

    at_sums, row_sums = layout.at_row_sums, layout.row_sums

    @inline
    def write_parts(t, s, w, d, z):
        quad, share = t % np.uint64(quads), t // np.uint64(quads)
        if share < np.uint64(groups * parts):
            to = share * np.uint64(outputs * features) + _U4 * quad
            for k in range(outputs):
                store4(s, to + np.uint64(k * features), d[4 * k], d[4 * k + 1], d[4 * k + 2], d[4 * k + 3])
        if t < np.uint64(rows):
            for k in range(row_sums):
                w[np.uint64(at_sums + k * rows) + t] = z[k]

    return outer, write_parts


def new_products(layout: Layout) -> tuple[Any, Any]:
    """Make the two phases of the gradient of products of factors, for one hidden unit o, 0 <= o < hidden, at a time.

        spread(t, x, w, o)
        gather(t, w, o, turn)

    A thread of `spread` takes a row and a slice. It writes slope (x - 1) times the product of the other factors to the
    trial's own plane. A thread of `gather` takes features t, t + threads, ..., and adds the plane's rows to the sums of
    earlier passes. Arguments are as in `gpu.phases.Phases`.
    """
    rows, slices, hidden = layout.rows, layout.slices, layout.shape.hidden
    at_inputs, at_factors = layout.at_inputs, layout.at_factors
    slice_quads, quads, stride, features = layout.slice_quads, layout.quads, layout.stride, layout.features
    at_products, at_sums, threads = layout.at_products, layout.at_product_sums, layout.threads
    at_slopes = layout.at_slopes + layout.outputs * layout.groups
    slope_stride = layout.slope_stride
    at_weights, quad_stride = layout.at_weights + 4 * layout.input_sums, 4 * layout.weight_rows

    @inline
    def spread(t, x, w, o):
        row, part = t % np.uint64(rows), t // np.uint64(rows)
        before, after = ONE, w[np.uint64(at_slopes) + row * np.uint64(slope_stride) + np.uint64(o)]
        for k in range(slices):
            product = w[np.uint64(at_products + k * hidden * rows) + np.uint64(o) * np.uint64(rows) + row]
            if np.uint64(k) < part:
                before = before * product
            if np.uint64(k) > part:
                after = after * product
        start = _U4 * part * np.uint64(slice_quads)
        end = min(start + np.uint64(4 * slice_quads), np.uint64(4 * quads))
        at = np.uint64(at_inputs) + row * np.uint64(stride)
        to = np.uint64(at_factors) + row * np.uint64(stride)
        of_unit = np.uint64(at_weights) + _U4 * np.uint64(o)
        i = start
        while i < end:
            w[to + i] = before
            weight_ = w[of_unit + (i >> _U2) * np.uint64(quad_stride) + (i & _U3)]
            before = before * multiply_add(weight_, x[at + i] - ONE, ONE)
            i += _U1
        while i > start:
            i -= _U1
            weight_, shifted = w[of_unit + (i >> _U2) * np.uint64(quad_stride) + (i & _U3)], x[at + i] - ONE
            w[to + i] = w[to + i] * after * shifted
            after = after * multiply_add(weight_, shifted, ONE)

    @inline
    def gather(t, w, o, turn):
        i = t
        while i < np.uint64(features):
            to = np.uint64(at_sums) + np.uint64(o) * np.uint64(features) + i
            total = w[to] if turn > 0 else ZERO
            row = np.uint64(0)
            while row < np.uint64(rows):
                total = total + w[np.uint64(at_factors) + row * np.uint64(stride) + i]
                row += _U1
            w[to] = total
            i += np.uint64(threads)

    return spread, gather
