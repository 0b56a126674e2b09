"""An iteration of the fused GPU engine in phases: functions of one thread, separated by barriers.

A kernel calls each phase once in every thread, with a barrier in between (`gpu.kernels`). On the CPU a compiled loop
calls it for all threads in turn (`gpu.emulated`), with the same source and the same bits. A phase writes only data that
no other thread reads or writes before the barrier, so the order of threads doesn't matter; a test reverses it.

Phases are nested functions, not methods: values of the enclosing function, such as the layout's numbers, are constants
to numba. So loops have known lengths and are unrolled, unused branches are left out, and a thread's arrays become
registers. numba doesn't compile methods of Python objects, and loads attributes of its own classes from memory at run
time.

Places and counters are uint64: signed indices would be checked for negative values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tasks.arithmetic.engine.gpu.backward import new_rows
from tasks.arithmetic.engine.gpu.draw import new_draw, new_multiply
from tasks.arithmetic.engine.gpu.evaluate import new_distances, new_error_sum
from tasks.arithmetic.engine.gpu.layout import Layout
from tasks.arithmetic.engine.gpu.outer import new_outer, new_products
from tasks.arithmetic.engine.gpu.weights import new_weight_phases


class Phases(NamedTuple):
    """The phases of a layout, in the order of an iteration, and those of an evaluation.

    The first argument is the thread's number; shared memory comes next, then the thread's own data, which lie in
    registers on a GPU. Numbers are float32 unless stated otherwise.

        t            number of the thread within its trial, uint64, 0 <= t < threads
        x            shared memory of the block, [size]: data shared by its trials
        w            the trial's own part of it, [own]: its weights and slopes
        s            the trial's part of the inputs' memory, [part_sums]: parts of sums over rows
        e            sums of the thread's row over subsets of its features, [subsets]
        a            sums of the thread's row over its features, and products, [totals]
        u, u_grad    hidden units of the thread's row, and their gradients, [hidden]
        mul, gates   product and gate, in [0, 1], of each hidden unit, [hidden]
        left         scratch of the second layer, [hidden]
        d            slopes times inputs, summed over the thread's rows: of some outputs and 4 features, [outer_slots]
        z            the thread's part of the sums over rows, [row_slots]
        p, m, v      parameters of the thread's weights of the first layer, and their moments, [slots]
        f            numbers stored for their gradients, [factor_slots]
        p2, m2, v2   parameters of the thread's second-layer weight or bias, and their moments, [second_slots]
        f2           numbers stored for its gradient, [second_factor_slots]
        turn         number of the pass over the batch, 0 <= turn < passes
        operation    ADD, SUB, MUL, DIV, SQUARED or ROOT
        how          a `gpu.weight_update.Step`

    Args:
        load: see `gpu.weights.new_weight_phases`, as for the next two.
        put: as `load`.
        put_subsets: as `load`.
        draw: see `gpu.draw.new_draw`.
        multiply: see `gpu.draw.new_multiply`.
        subsets: see `gpu.draw.new_multiply`.
        rows: see `gpu.backward.new_rows`.
        outer: see `gpu.outer.new_outer`.
        spread: see `gpu.outer.new_products`.
        gather: see `gpu.outer.new_products`.
        parts: see `gpu.outer.new_outer`.
        own: see `gpu.weights.new_weight_phases`.
        second: see `gpu.weights.new_weight_phases`.
        store: see `gpu.weights.new_weight_phases`.
        row_error: see `gpu.backward.new_rows`.
        error_sum: see `gpu.evaluate.new_error_sum`.
        distance: see `gpu.evaluate.new_distances`.
        furthest: see `gpu.evaluate.new_distances`.
    """

    load: Any
    put: Any
    put_subsets: Any
    draw: Any
    multiply: Any
    subsets: Any
    rows: Any
    outer: Any
    spread: Any
    gather: Any
    parts: Any
    own: Any
    second: Any
    store: Any
    row_error: Any
    error_sum: Any
    distance: Any
    furthest: Any


def new_phases(layout: Layout) -> Phases:
    """Make the phases of a layout."""
    rows, row_error = new_rows(layout)
    outer, parts = new_outer(layout)
    spread, gather = new_products(layout)
    load, put, put_subsets, own, second, store = new_weight_phases(layout)
    multiply, subsets = new_multiply(layout)
    distance, furthest = new_distances(layout)
    return Phases(
        load, put, put_subsets, new_draw(layout), multiply, subsets, rows, outer, spread, gather, parts, own, second,
        store, row_error, new_error_sum(layout), distance, furthest,
    )  # fmt: skip
