"""An iteration of the fused GPU engine as phases: each a function of one thread, with a barrier after it.

A kernel calls each phase once in every thread, with a barrier in between (`gpu.kernels`); on the CPU a compiled loop
calls it for all threads in turn (`gpu.emulated`): one source, and the same bits. A phase writes only what no other
thread reads or writes before the barrier, so that the order of the threads doesn't matter; a test reverses it.

Phases are functions inside of functions, not methods of classes: what a phase takes from the function around it, such
as the layout's numbers, is a constant to numba. So loops have known lengths and are unrolled, branches that a unit
doesn't take are left out, and a thread's arrays become registers. numba compiles no methods of Python objects, and the
attributes of its own classes are loaded from memory at run time.

Places and counters are uint64: as Python has it, signed ones would be checked for being negative.
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

    The first argument is the thread, which follows from its number in the block; what lies in shared memory comes next,
    then what the thread has to itself, in registers on a GPU. Unless said otherwise, numbers are float32.

        t            number of the thread among those of its trial, uint64, 0 <= t < threads
        x            shared memory of the block, [size]: what its trials have in common
        w            the trial's part of it, [own]: its weights and slopes
        s            where its inputs were, the trial's part of that, [part_sums]: parts of sums over rows
        e            sums of the thread's row over subsets of its features, [subsets]
        a            sums of the thread's row over its features, and products, [totals]
        u, u_grad    hidden units of the thread's row, and their gradients, [hidden]
        mul, gates   of each hidden unit: what its product gives, and its gate in [0, 1], [hidden]
        left         scratch of the second layer, [hidden]
        d            slopes times inputs, summed over the thread's rows: of some outputs and 4 features, [outer_slots]
        z            the thread's part of the sums over rows, [row_slots]
        p, m, v      parameters of the thread's weights of the first layer, and their moments, [slots]
        f            what their gradients need, [factor_slots]
        p2, m2, v2   parameters of the thread's weight of the second layer, or its bias, and moments, [second_slots]
        f2           what its gradient needs, [second_factor_slots]
        turn         number of the pass over the batch, 0 <= turn < passes
        operation    of the task: ADD, SUB, MUL, DIV, SQUARED or ROOT
        how          a `gpu.weight_update.Step`

    Args:
        load: see `gpu.weights.new_weight_phases`.
        put: see there.
        put_subsets: see there.
        draw: see `gpu.draw.new_draw`.
        multiply: see `gpu.draw.new_multiply`.
        subsets: see there.
        rows: see `gpu.backward.new_rows`.
        outer: see `gpu.outer.new_outer`.
        spread: see `gpu.outer.new_products`.
        gather: see there.
        parts: see `gpu.outer.new_outer`.
        own: see `gpu.weights.new_weight_phases`.
        second: see there.
        store: see there.
        row_error: see `gpu.backward.new_rows`.
        error_sum: see `gpu.evaluate.new_error_sum`.
        distance: see `gpu.evaluate.new_distances`.
        furthest: see there.
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
