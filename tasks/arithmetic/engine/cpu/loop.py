"""The compiled loop of the fused engine: thousands of iterations of many trials in one call.

A block of rows is drawn and passes through all trials of the group: one product for their first layers, then each
trial's forward and backward pass, then one product for the gradients of the first layers. A group's data stays in the
second-level cache.
"""

from __future__ import annotations

import numpy as np

from study.stream.stream_simd import LANES, padded
from tasks.arithmetic.engine.compiled.cache import apart, entry, forced
from tasks.arithmetic.engine.cpu.gradients import logarithms
from tasks.arithmetic.engine.cpu.inputs import draw
from tasks.arithmetic.engine.cpu.layers import get_gradients
from tasks.arithmetic.engine.cpu.products import transpose
from tasks.arithmetic.engine.cpu.scratch import inputs_of, layer_of, transposed_of
from tasks.arithmetic.engine.cpu.simd import vector
from tasks.arithmetic.engine.cpu.stacks import (
    add_stack,
    back_of,
    clear_gradients_of,
    multiply_stack,
    next_stack,
    predict,
    rows_of,
    set_weights_of,
    targets_of,
)
from tasks.arithmetic.engine.cpu.update import update


@forced
def _draw(tables, groups, scratch, g, source, iteration, row, batch):  # type: ignore[no-untyped-def]
    """Draw a block of the batch's rows, from `row` on, for group g, and transpose it into the scratch arrays.

    The same for its logarithms, if a trial of the group multiplies them.
    """
    s = groups.order[groups.ends[g] - 1]
    low, second, width = source.low[s, 0], source.low[s, 1], source.width[s]
    n, block = tables.inputs, scratch.block
    seed, purpose = source.seeds[s], source.purpose
    draw(scratch.x, scratch.x_transposed, n, block, seed, low, second, width, iteration, purpose, row, batch)
    if groups.has_logs[g]:
        logs = inputs_of(scratch, scratch.logs, n)
        logarithms(inputs_of(scratch, scratch.x, n), n, block, logs)
        transpose(transposed_of(scratch, scratch.logs_transposed, n), logs)


@apart
def _slopes(guess, targets, scale, slope):  # type: ignore[no-untyped-def]
    for b in range(len(slope)):
        slope[b] = (guess[b] - targets[b]) * scale


@forced
def _learn(tables, groups, scratch, first, last, row, batch):  # type: ignore[no-untyped-def]
    """Add a block's part of the MSE's gradients to those of the trials at positions first <= t < last of the groups.

    The block has the batch's rows from `row` on; rows past the batch's end have no slope.
    """
    x, logs = inputs_of(scratch, scratch.x, tables.inputs), inputs_of(scratch, scratch.logs, tables.inputs)
    slope = scratch.y_grad[0]
    scale = np.float32(2 / batch)
    at_back = scratch.back * scratch.block
    at = first
    while at < last:
        stack = next_stack(groups, at, last, scratch.stacked)
        multiply_stack(tables, groups, scratch, stack, x, logs)
        for t in range(stack.first, stack.last):
            s = groups.order[t]
            first_code, second_code = tables.codes[tables.shape[s], 0], tables.codes[tables.shape[s], 1]
            front, back = layer_of(tables, groups.places, scratch, s, 0), layer_of(tables, groups.places, scratch, s, 1)
            rows = rows_of(groups, scratch, stack, s)
            targets_of(tables, groups, scratch, t, first, x)
            predict(first_code, second_code, front, back, rows, at_back, x, scratch.y)
            _slopes(scratch.y[0], scratch.targets, scale, slope)
            for b in range(batch - row, len(slope)):
                slope[b] = 0
            back_of(first_code, second_code, front, back, rows, at_back, x, scratch.y, scratch.y_grad, scratch.ones)
        add_stack(tables, groups, scratch, stack)
        at = stack.last


@forced
def _move(tables, groups, scratch, begin, end, iteration, corrections, weight, first, second):  # type: ignore[no-untyped-def]
    """Update once the parameters of the trials at positions begin <= t < end of the groups."""
    settled = min(iteration, len(corrections) - 1)
    c1, c2 = corrections[settled, 0], corrections[settled, 1]
    for t in range(begin, end):
        s = groups.order[t]
        k = tables.shape[s]
        middle, last = tables.shapes[k].middle, tables.shapes[k].parameters
        count = padded(last, LANES)
        w, gradient = vector(weight, tables.at[s], count), vector(scratch.gradient, 0, count)
        m, v = vector(first, tables.at[s], count), vector(second, tables.at[s], count)
        front, back = layer_of(tables, groups.places, scratch, s, 0), layer_of(tables, groups.places, scratch, s, 1)
        get_gradients(tables.codes[k, 0], front, w[:middle], gradient[:middle])
        get_gradients(tables.codes[k, 1], back, w[middle:last], gradient[middle:last])
        for p in range(last, count):
            gradient[p] = 0
        update(tables.rules, k, s, iteration, c1, c2, w, gradient, m, v)


@entry
def train(  # type: ignore[no-untyped-def]
    tables, groups, source, batch, weight, first, second, iteration, count, scratch, corrections
):
    """Make `count` updates of the trials of some groups, from `iteration` on.

    Args:
        tables: `PackTables`.
        groups: `Groups` of trials that see the same rows.
        source: `InputStream` of the training inputs.
        batch: rows of a batch.
        weight: parameters of all trials, float32; written, as are `first` and `second`.
        first: first moments of the optimiser, the same shape.
        second: second moments, the same shape.
        iteration: number of updates made so far.
        count: number of updates to make.
        scratch: `Scratch`; a batch is processed in blocks of its rows.
        corrections: Adam's bias corrections from iteration 0 on, float32 [iterations, 2]; the last row holds from there
            on.
    """
    begin = 0
    for g in range(len(groups.ends)):
        end = groups.ends[g]
        for i in range(iteration, iteration + count):
            set_weights_of(tables, groups, scratch, weight, begin, end)
            clear_gradients_of(tables, groups, scratch, begin, end)
            for row in range(0, batch, scratch.block):
                _draw(tables, groups, scratch, g, source, i, row, batch)
                _learn(tables, groups, scratch, begin, end, row, batch)
            _move(tables, groups, scratch, begin, end, i, corrections, weight, first, second)
        begin = end
