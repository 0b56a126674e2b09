"""The phase from a row's sums to its gradients, and the computation of its error alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tasks.arithmetic.engine.compiled.formulas import ADD, MUL, combine, fold
from tasks.arithmetic.engine.gpu.compile import inline
from tasks.arithmetic.engine.gpu.draw import new_sums
from tasks.arithmetic.engine.gpu.instructions import load4
from tasks.arithmetic.engine.gpu.layout import Layout
from tasks.arithmetic.engine.gpu.row_math import ONE, ZERO, first_layer, second_layer

_ONE = np.uint64(1)


def new_rows(layout: Layout) -> tuple[Any, Any]:
    """Make the phase from rows' sums to gradients, and the function of a row's error alone.

        rows(t, x, w, a, e, u, u_grad, mul, gates, left, z, turn, operation)

    Thread t < layout.rows takes row t of the pass. It adds up the partial sums of `multiply` and `subsets`, and
    computes hidden units, output and target. It writes the slopes of its sums to shared memory, and adds the gradients
    of the second layer and of the biases to z. A row past the batch's end has slope 0, or NaN if the first row's slope
    isn't finite.

        row_error(x, w, a, e, u, mul, gates, left, evaluated, at_row, row_stride, plane, operation) -> squared error

    `evaluated` are evaluation rows in global memory, as in `gpu.arrays.Tables`: the row's first four features lie at
    `at_row`, each next four after `row_stride`, and logarithms `plane` after the features; all uint64. Other arguments
    are as in `Phases`.
    """
    rows, batch, slices, sums = layout.rows, layout.shape.batch, layout.slices, layout.sums
    hidden, products, quads = layout.shape.hidden, layout.products, layout.quads
    at_partial, at_products = layout.at_partial, layout.at_products
    at_subset_sums, subsets, totals = layout.at_subset_sums, layout.shape.subsets, layout.totals
    # numba resolves functions by name, but not as fields of a tuple.
    first_forward, first_backward = first_layer(layout)
    second_forward, second_backward = second_layer(layout)
    scale = np.float32(2 / batch)
    (add_quad, add_subsets), logs = new_sums(layout), layout.logs

    @inline
    def target(e, operation):
        total = combine(operation, e[0], e[subsets - 1])
        if operation in (ADD, MUL):
            for j in range(1, subsets):
                total = fold(operation, total, e[j])
        return total

    @inline
    def collect(t, x, w, a, e):
        """Sum the slices' sums over subsets into e, and over features into a; multiply their products into a."""
        for j in range(subsets):
            e[j] = x[np.uint64(at_subset_sums + j * rows) + t]
            for part in range(1, slices):
                e[j] = e[j] + x[np.uint64(at_subset_sums + (part * subsets + j) * rows) + t]
        for part in range(slices - 1):
            at = np.uint64(at_partial + part * sums * rows) + t
            for k in range(sums):
                a[k] = a[k] + w[at + np.uint64(k * rows)]
        if products:
            for part in range(1, slices):
                at = np.uint64(at_products + part * hidden * rows) + t
                for o in range(hidden):
                    a[sums + o] = a[sums + o] * w[at + np.uint64(o * rows)]

    @inline
    def backward_rows(t, x, w, a, e, u, u_grad, mul, gates, left, z, turn, operation):
        if t < np.uint64(rows):
            collect(t, x, w, a, e)
            expected = target(e, operation)
            first_forward(w, a, u, mul, gates)
            y, total, product, gate = second_forward(w, u, left)
            slope = (y - expected) * scale
            slope = slope if np.uint64(turn) * np.uint64(rows) + t < np.uint64(batch) else slope * ZERO
            second_backward(w, u, left, slope, y, total, product, gate, u_grad, z)
            first_backward(w, t, a, u, u_grad, mul, gates, z)

    @inline
    def row_error(x, w, a, e, u, mul, gates, left, evaluated, at_row, row_stride, plane, operation):
        for k in range(sums):
            a[k] = ZERO
        for j in range(subsets):
            e[j] = ZERO
        for k in range(sums, totals):
            a[k] = ONE
        quad = np.uint64(0)
        while quad < np.uint64(quads):
            at = at_row + quad * row_stride
            f0, f1, f2, f3 = load4(evaluated, at)
            if logs:
                l0, l1, l2, l3 = load4(evaluated, at + plane)
                add_quad(w, quad, a, f0, f1, f2, f3, l0, l1, l2, l3)
            else:
                add_quad(w, quad, a, f0, f1, f2, f3, f0, f1, f2, f3)
            add_subsets(x, quad, e, f0, f1, f2, f3)
            quad += _ONE
        expected = target(e, operation)
        first_forward(w, a, u, mul, gates)
        y, _, _, _ = second_forward(w, u, left)
        return (y - expected) * (y - expected)

    return backward_rows, row_error
