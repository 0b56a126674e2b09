"""Stacks of a group's trials, whose first layers are multiplied at once, and each trial's work between the products."""

from __future__ import annotations

from typing import NamedTuple

from tasks.arithmetic.engine.compiled.cache import forced, inlined, internal
from tasks.arithmetic.engine.cpu.first_layers import Rows, from_sums, hidden_slopes, hidden_values, to_sums
from tasks.arithmetic.engine.cpu.inputs import fill_targets
from tasks.arithmetic.engine.cpu.layers import backward, clear_gradients, forward, set_weights
from tasks.arithmetic.engine.cpu.products import add_outer, multiply
from tasks.arithmetic.engine.cpu.scratch import inputs_of, layer_of, transposed_of
from tasks.arithmetic.engine.cpu.simd import matrix, vector


@forced
def set_weights_of(tables, groups, scratch, weight, first, last):  # type: ignore[no-untyped-def]
    """Write to `scratch` the effective weights of the trials at positions first <= t < last of the groups' order.

    `weight` has the parameters of all trials, flat.
    """
    for t in range(first, last):
        s = groups.order[t]
        k = tables.shape[s]
        p = vector(weight, tables.at[s], tables.shapes[k].parameters)
        middle = tables.shapes[k].middle
        set_weights(tables.codes[k, 0], layer_of(tables, groups.places, scratch, s, 0), p[:middle])
        set_weights(tables.codes[k, 1], layer_of(tables, groups.places, scratch, s, 1), p[middle:])


@forced
def clear_gradients_of(tables, groups, scratch, first, last):  # type: ignore[no-untyped-def]
    """Zero the gradients of the effective weights of the trials at positions first <= t < last of the groups' order."""
    for t in range(first, last):
        s = groups.order[t]
        codes = tables.codes[tables.shape[s]]
        clear_gradients(codes[0], layer_of(tables, groups.places, scratch, s, 0))
        clear_gradients(codes[1], layer_of(tables, groups.places, scratch, s, 1))


class Stack(NamedTuple):
    """Trials of a group whose sums are computed at once.

    Args:
        first: position of the first trial, in the order of the groups.
        last: position after the last trial.
        sums: rows of sums with inputs.
        log_sums: rows of sums with logarithms, which follow.
    """

    first: int
    last: int
    sums: int
    log_sums: int


@forced
def next_stack(groups, first, end, most):  # type: ignore[no-untyped-def]
    """Return the next `Stack` of the trials at positions first <= t < end of the groups' order.

    It has as many trials from `first` on as have at most `most` rows of sums together, but at least one.
    """
    last, sums, log_sums = first, 0, 0
    while last < end:
        s = groups.order[last]
        more, more_logs = groups.stacked[s, 0], groups.stacked[s, 1]
        if last > first and sums + log_sums + more + more_logs > most:
            break
        sums, log_sums, last = sums + more, log_sums + more_logs, last + 1
    return Stack(first, last, sums, log_sums)


@forced
def multiply_stack(tables, groups, scratch, stack, x, logs):  # type: ignore[no-untyped-def]
    """Write the sums W x of all trials of a stack to `scratch.room`, [rows of sums, block], then those with logarithms.

    x and its logarithms are [n or more, block or more].
    """
    n, block = tables.inputs, scratch.block
    s = groups.order[stack.first]
    w = matrix(scratch.weights, groups.sums[s] * n, stack.sums, n)
    multiply(matrix(scratch.room, 0, stack.sums, block), w, x, 0, n)
    if stack.log_sums:
        w = matrix(scratch.weights, groups.logs_at + groups.log_sums[s] * n, stack.log_sums, n)
        multiply(matrix(scratch.room, stack.sums * block, stack.log_sums, block), w, logs, 0, n)


@forced
def add_stack(tables, groups, scratch, stack):  # type: ignore[no-untyped-def]
    """Add to the stacked weights' gradients of all trials of a stack: dL/dW += z̄ xᵀ, from the sums' gradients z̄."""
    n, block = tables.inputs, scratch.block
    s = groups.order[stack.first]
    d = matrix(scratch.gradients, groups.sums[s] * n, stack.sums, n)
    g = matrix(scratch.room, scratch.stacked * block, stack.sums, block)
    add_outer(d, g, inputs_of(scratch, scratch.x, n), transposed_of(scratch, scratch.x_transposed, n))
    if stack.log_sums:
        d = matrix(scratch.gradients, groups.logs_at + groups.log_sums[s] * n, stack.log_sums, n)
        g = matrix(scratch.room, (scratch.stacked + stack.sums) * block, stack.log_sums, block)
        add_outer(d, g, inputs_of(scratch, scratch.logs, n), transposed_of(scratch, scratch.logs_transposed, n))


@inlined
def rows_of(groups, scratch, stack, s):  # type: ignore[no-untyped-def]
    """Return the places of a trial's sums, gradients and spare rows in a stack, as `Rows`."""
    first = groups.order[stack.first]
    return Rows(
        scratch.room, scratch.block, groups.sums[s] - groups.sums[first],
        stack.sums + groups.log_sums[s] - groups.log_sums[first], scratch.stacked, scratch.spare,
    )  # fmt: skip


@internal
def predict(first, second, front, back, rows, at, x, y):  # type: ignore[no-untyped-def]
    """Compute a trial's outputs from its sums.

    Args:
        first: unit of the first layer.
        second: unit of the second layer.
        front: first `Layer`.
        back: second `Layer`.
        rows: `Rows` of the first layer.
        at: place of the second layer's rows in their room.
        x: inputs, [n or more, block or more].
        y: outputs, [1, block]; written.
    """
    from_sums(first, front, rows, x)
    forward(second, back, hidden_values(first, rows, front.outputs), False, rows.room, at, y)


@internal
def back_of(first, second, front, back, rows, at, x, y, y_grad, ones):  # type: ignore[no-untyped-def]
    """Compute the gradients of a trial's sums from those of its outputs, and add to its other weights' gradients.

    Args: as for `predict`, with the gradients of the outputs, and ones, [1, block].
    """
    h, slopes = hidden_values(first, rows, front.outputs), hidden_slopes(first, rows, front.outputs)
    for o in range(front.outputs):
        to = slopes[o]
        for b in range(len(to)):
            to[b] = 0
    backward(second, back, h, rows.room, at, ones, y, y_grad, slopes)
    to_sums(first, front, rows, x, ones)


@forced
def targets_of(tables, groups, scratch, t, first, x):  # type: ignore[no-untyped-def]
    """Write the targets of the trial at position t of the groups to `scratch.targets`, given the inputs x.

    A no-op if they equal those of its predecessor in its group, which starts at position `first`.
    """
    s = groups.order[t]
    if t == first or groups.target[s] != groups.target[groups.order[t - 1]]:
        kind = tables.shapes[tables.shape[s]]
        starts, stops = tables.starts[s, : kind.subsets], tables.stops[s, : kind.subsets]
        fill_targets(kind.operation, starts, stops, x, scratch.ones_of_inputs, scratch.subset_sums, scratch.targets)
