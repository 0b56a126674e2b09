"""The phase that takes rows from their sums to gradients, or only to their errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from study.engine.compiled.formulas import ADD, MUL, asked, fold
from study.engine.gpu.compile import inline
from study.engine.gpu.draw import new_sums
from study.engine.gpu.instructions import load4
from study.engine.gpu.layout import Layout
from study.engine.gpu.row_math import ONE, ZERO, first_rows, second_rows

_ONE = np.uint64(1)


def new_rows(layout: Layout) -> tuple[Any, Any]:
    """Make the phase that takes rows from sums to gradients, thread = row; and that which only finds their errors."""
    rows, batch, slices, sums = layout.rows, layout.shape.batch, layout.slices, layout.sums
    hidden, products, quads = layout.shape.hidden, layout.products, layout.quads
    at_partial, at_products = layout.at_partial, layout.at_products
    subset_sums, subsets, totals = layout.subset_sums, layout.shape.subsets, layout.totals
    # A compiler finds a function by its name alone.
    (first_forward, first_backward), (second_forward, second_backward) = (
        first_rows(layout),
        second_rows(layout),
    )
    scale = np.float32(2 / batch)
    add_quad, logs = new_sums(layout), layout.logs

    @inline
    def target(a, operation):
        found = asked(operation, a[subset_sums], a[subset_sums + subsets - 1])
        if operation in (ADD, MUL):
            for j in range(1, subsets):
                found = fold(operation, found, a[subset_sums + j])
        return found

    @inline
    def collect(t, x, a):
        for part in range(slices - 1):
            at = np.uint64(at_partial + part * sums * rows) + t
            for k in range(sums):
                a[k] = a[k] + x[at + np.uint64(k * rows)]
        if products:
            for part in range(1, slices):
                at = np.uint64(at_products + part * hidden * rows) + t
                for o in range(hidden):
                    a[sums + o] = a[sums + o] * x[at + np.uint64(o * rows)]

    @inline
    def backward_rows(t, x, a, u, u_grad, m, g, left, z, turn, operation):
        if t < np.uint64(rows):
            collect(t, x, a)
            wanted = target(a, operation)
            first_forward(x, a, u, m, g)
            y, total, made, share = second_forward(x, u, left)
            slope = (y - wanted) * scale
            slope = slope if np.uint64(turn) * np.uint64(rows) + t < np.uint64(batch) else slope * ZERO
            second_backward(x, u, left, slope, y, total, made, share, u_grad, z)
            first_backward(x, t, a, u, u_grad, m, g, z)

    @inline
    def look(x, a, u, m, g, left, evaluated, at_row, row_stride, plane, operation):
        """Give the squared error of an evaluation row: quads lie `row_stride` apart, logarithms `plane` further on."""
        for k in range(sums):
            a[k] = ZERO
        for k in range(sums, totals):
            a[k] = ONE
        quad = np.uint64(0)
        while quad < np.uint64(quads):
            at = at_row + quad * row_stride
            f0, f1, f2, f3 = load4(evaluated, at)
            if logs:
                l0, l1, l2, l3 = load4(evaluated, at + plane)
                add_quad(x, quad, a, f0, f1, f2, f3, l0, l1, l2, l3)
            else:
                add_quad(x, quad, a, f0, f1, f2, f3, f0, f1, f2, f3)
            quad += _ONE
        wanted = target(a, operation)
        first_forward(x, a, u, m, g)
        y, _, _, _ = second_forward(x, u, left)
        return (y - wanted) * (y - wanted)

    return backward_rows, look
