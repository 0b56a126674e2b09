"""The compiled loops of the fused engine: thousands of iterations of a group of trials without returning to Python.

A block of rows is drawn and passes through all trials of the group: one product for their first layers, then each
trial from its sums to the loss and back, then one product for the gradients of the first layers. All that a group needs
stays in the second-level cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from study.engine.compiled.cache import apart, entry, forced, inlined, internal
from study.engine.compiled.formulas import ADD, DIV, ROOT, SQUARED, SUB, combine, fold, larger
from study.engine.cpu.first_layers import Rows, from_sums, hidden_slopes, hidden_values, to_sums
from study.engine.cpu.gradients import logarithms
from study.engine.cpu.groups import Sizes
from study.engine.cpu.layers import (
    Layer,
    backward,
    clear_gradients,
    forward,
    get_gradients,
    set_weights,
    sparsity_error,
)
from study.engine.cpu.products import add_outer, add_squares, multiply, transpose
from study.engine.cpu.simd import matrix, vector
from study.engine.cpu.tables import Tables
from study.engine.cpu.update import update
from tasks import stream_simd
from tasks.stream_simd import LANES, padded

# --- inputs and targets ---------------------------------------------------------------------------------------


# Rows that are drawn and transposed at a time, if any are: both copies of them stay in the first-level cache meanwhile.
_STRIP = 32


@internal
def draw(x, transposed, n, block, seed, low, second, width, iteration, purpose, first, rows):  # type: ignore[no-untyped-def]
    """Draw a block of rows from `first` on; beyond the last stand copies of the first.

    A copy overflows only where its original does too, so that it spoils nothing.

    Args:
        x: inputs, [features, block or more] flattened, where features are n rounded up to a multiple of 4; written.
        transposed: the first features, rounded down to whole vectors, [block, features] flattened; written.
        n: numbers in a row.
        block: rows.
        seed: of the trial, as are the next three: see `stream_simd.draw`.
        low: see there.
        second: see there.
        width: see there.
        iteration: see there.
        purpose: see there.
        first: number of the first row.
        rows: of the batch.
    """
    features, deep = padded(n, 4), n - n % LANES
    stride = len(x) // features
    most = _STRIP if deep else block
    for b in range(0, block, most):
        strip = matrix(x, b, features, stride)
        count = min(most, block - b)
        stream_simd.draw(strip, count, seed, low, second, width, iteration, purpose, first + b)
        if first + b + count > rows:
            for i in range(features):
                for k in range(max(rows - first - b, 0), count):
                    x[i * stride + b + k] = x[i * stride]
        transpose(matrix(transposed, b * deep, count, deep), strip)


@internal
def fill_targets(operation, starts, stops, x, ones, sums, result):  # type: ignore[no-untyped-def]
    """Write the targets of one trial's rows into result [block].

    Args:
        operation: of the sums of the subsets.
        starts: first input of each subset, [subsets].
        stops: the input after its last, [subsets].
        x: inputs, [features, block or more].
        ones: [1, features].
        sums: scratch, [subsets or more, block].
        result: written.
    """
    subsets = len(starts)
    for j in range(subsets):
        multiply(sums[j : j + 1], ones, x, starts[j], stops[j])
    first, last = sums[0], sums[subsets - 1]
    # A loop for each, as for activations: see `gradients`.
    if operation == SUB:
        _combine_each(SUB, first, last, result)
    elif operation == DIV:
        _combine_each(DIV, first, last, result)
    elif operation == SQUARED:
        _combine_each(SQUARED, first, last, result)
    elif operation == ROOT:
        _combine_each(ROOT, first, last, result)
    else:
        _combine_each(ADD, first, last, result)
        for j in range(1, subsets):
            other = sums[j]
            for b in range(len(result)):
                result[b] = fold(operation, result[b], other[b])


@inlined
def _combine_each(operation, first, last, result):  # type: ignore[no-untyped-def]
    for b in range(len(result)):
        result[b] = combine(operation, first[b], last[b])


# --- arrays to work in ------------------------------------------------------------------------------------------


class Scratch(NamedTuple):
    """Arrays to work in, for blocks of so many rows; see `new_scratch`.

    Args:
        block: rows.
        stacked: rows of sums that are computed at a time.
        x: inputs, float32 [features, block and a vector more] flattened; features are n rounded up to a multiple of 4.
        x_transposed: most of them, [block, n rounded down to whole vectors] flattened.
        logs: their logarithms, as the inputs.
        logs_transposed: most of them, as of the inputs.
        weights: of a group, and more: see `Layer`.
        gradients: of these.
        room: sums, their gradients, and what layers use in turn: [rows, block] flattened.
        spare: first of the rows that first layers use in turn.
        back: first of the rows that second layers use in turn.
        y: outputs, [1, block].
        y_grad: their gradients, the same shape.
        subset_sums: [subsets, block].
        targets: [block].
        ones: [1, block].
        ones_of_inputs: [1, n].
        gradient: of a trial's parameters, and 0 up to a whole vector.
    """

    block: int
    stacked: int
    x: Any
    x_transposed: Any
    logs: Any
    logs_transposed: Any
    weights: Any
    gradients: Any
    room: Any
    spare: int
    back: int
    y: Any
    y_grad: Any
    subset_sums: Any
    targets: Any
    ones: Any
    ones_of_inputs: Any
    gradient: Any


def new_scratch(tables: Tables, sizes: Sizes, block: int) -> Scratch:
    """Make arrays to work in: nothing in them outlives a call."""
    n, subsets = tables.inputs, tables.starts.shape[1]
    # A row more than a block is a cache line more: rows of a power of two would share few places in a cache.
    inputs, transposed = padded(n, 4) * (block + LANES), block * (n - n % LANES)
    spare = 2 * sizes.stacked
    return Scratch(
        block=block,
        stacked=sizes.stacked,
        x=zeros(inputs),
        x_transposed=zeros(transposed),
        logs=zeros(inputs),
        logs_transposed=zeros(transposed),
        weights=zeros(sizes.numbers),
        gradients=zeros(sizes.numbers),
        room=zeros((spare + sizes.spare + sizes.room) * block),
        spare=spare,
        back=spare + sizes.spare,
        y=zeros(1, block),
        y_grad=zeros(1, block),
        subset_sums=zeros(subsets, block),
        targets=zeros(block),
        ones=np.ones((1, block), np.float32),
        ones_of_inputs=np.ones((1, n), np.float32),
        gradient=zeros(padded(int(tables.shapes["parameters"].max()), LANES)),
    )


def zeros(*shape: int) -> Any:
    """Make an array of zeros that begins with a cache line: vectors that cross two take twice as long."""
    count = int(np.prod(shape))
    numbers = np.zeros(count + LANES, np.float32)
    first = -(numbers.ctypes.data // numbers.itemsize) % LANES
    return numbers[first : first + count].reshape(shape)


@inlined
def _inputs(scratch, numbers, n):  # type: ignore[no-untyped-def]
    return matrix(numbers, 0, padded(n, 4), scratch.block + LANES)


@inlined
def _transposed(scratch, numbers, n):  # type: ignore[no-untyped-def]
    return matrix(numbers, 0, scratch.block, n - n % LANES)


@inlined
def _layer(tables, places, scratch, s, layer):  # type: ignore[no-untyped-def]
    k = 5 * layer
    hidden = tables.shapes[tables.shape[s]].hidden
    return Layer(
        scratch.weights, scratch.gradients,
        places[s, k], places[s, k + 1], places[s, k + 2], places[s, k + 3], places[s, k + 4],
        hidden if layer else tables.inputs, 1 if layer else hidden,
    )  # fmt: skip


@forced
def _set_weights(tables, groups, scratch, weight, first, last):  # type: ignore[no-untyped-def]
    """Compute the effective weights of some trials of a group."""
    for t in range(first, last):
        s = groups.order[t]
        k = tables.shape[s]
        p = vector(weight, tables.at[s], tables.shapes[k].parameters)
        middle = tables.shapes[k].middle
        set_weights(tables.codes[k, 0], _layer(tables, groups.places, scratch, s, 0), p[:middle])
        set_weights(tables.codes[k, 1], _layer(tables, groups.places, scratch, s, 1), p[middle:])


@forced
def _clear_gradients(tables, groups, scratch, first, last):  # type: ignore[no-untyped-def]
    for t in range(first, last):
        s = groups.order[t]
        codes = tables.codes[tables.shape[s]]
        clear_gradients(codes[0], _layer(tables, groups.places, scratch, s, 0))
        clear_gradients(codes[1], _layer(tables, groups.places, scratch, s, 1))


# --- some trials of a group -----------------------------------------------------------------------------------------


class Stack(NamedTuple):
    """Trials of a group whose sums are computed at a time.

    Args:
        first: of them, in the order of the groups.
        last: the one after their last.
        sums: rows of sums with inputs.
        log_sums: rows of sums with logarithms, which follow.
    """

    first: int
    last: int
    sums: int
    log_sums: int


@forced
def _next_stack(groups, first, end, most):  # type: ignore[no-untyped-def]
    """Take as many trials as fit, at least one."""
    last, sums, log_sums = first, 0, 0
    while last < end:
        s = groups.order[last]
        more, more_logs = groups.stacked[s, 0], groups.stacked[s, 1]
        if last > first and sums + log_sums + more + more_logs > most:
            break
        sums, log_sums, last = sums + more, log_sums + more_logs, last + 1
    return Stack(first, last, sums, log_sums)


@forced
def _multiply_stack(tables, groups, scratch, stack, x, logs):  # type: ignore[no-untyped-def]
    """Compute the sums of all trials of a stack."""
    n, block = tables.inputs, scratch.block
    s = groups.order[stack.first]
    w = matrix(scratch.weights, groups.sums[s] * n, stack.sums, n)
    multiply(matrix(scratch.room, 0, stack.sums, block), w, x, 0, n)
    if stack.log_sums:
        w = matrix(scratch.weights, groups.logs_at + groups.log_sums[s] * n, stack.log_sums, n)
        multiply(matrix(scratch.room, stack.sums * block, stack.log_sums, block), w, logs, 0, n)


@forced
def _add_stack(tables, groups, scratch, stack):  # type: ignore[no-untyped-def]
    """Add to the gradients of the stacked weights of all trials of a stack."""
    n, block = tables.inputs, scratch.block
    s = groups.order[stack.first]
    d = matrix(scratch.gradients, groups.sums[s] * n, stack.sums, n)
    g = matrix(scratch.room, scratch.stacked * block, stack.sums, block)
    add_outer(d, g, _inputs(scratch, scratch.x, n), _transposed(scratch, scratch.x_transposed, n))
    if stack.log_sums:
        d = matrix(scratch.gradients, groups.logs_at + groups.log_sums[s] * n, stack.log_sums, n)
        g = matrix(scratch.room, (scratch.stacked + stack.sums) * block, stack.log_sums, block)
        add_outer(d, g, _inputs(scratch, scratch.logs, n), _transposed(scratch, scratch.logs_transposed, n))


@inlined
def _rows(groups, scratch, stack, s):  # type: ignore[no-untyped-def]
    first = groups.order[stack.first]
    return Rows(
        scratch.room, scratch.block, groups.sums[s] - groups.sums[first],
        stack.sums + groups.log_sums[s] - groups.log_sums[first], scratch.stacked, scratch.spare,
    )  # fmt: skip


@internal
def _predict(first, second, front, back, rows, at, x, y):  # type: ignore[no-untyped-def]
    """Compute a trial's outputs from its sums.

    Args:
        first: unit of the first layer.
        second: unit of the second layer.
        front: first `Layer`.
        back: second `Layer`.
        rows: `Rows` of the first layer.
        at: where in their room second layers have theirs.
        x: inputs.
        y: outputs, [1, block]; written.
    """
    from_sums(first, front, rows, x)
    forward(second, back, hidden_values(first, rows, front.outputs), False, rows.room, at, y)


@internal
def _back(first, second, front, back, rows, at, x, y, y_grad, ones):  # type: ignore[no-untyped-def]
    """Compute the gradients of a trial's sums from those of its outputs, and add to those of its other weights.

    Args: as for `_predict`, with the gradients of the outputs, and [1, block] ones.
    """
    h, slopes = hidden_values(first, rows, front.outputs), hidden_slopes(first, rows, front.outputs)
    for o in range(front.outputs):
        to = slopes[o]
        for b in range(len(to)):
            to[b] = 0
    backward(second, back, h, rows.room, at, ones, y, y_grad, slopes)
    to_sums(first, front, rows, x, ones)


@forced
def _targets_of(tables, groups, scratch, t, first, x):  # type: ignore[no-untyped-def]
    """Write the targets of a trial, unless its neighbour in the group had the same of these rows."""
    s = groups.order[t]
    if t == first or groups.target[s] != groups.target[groups.order[t - 1]]:
        kind = tables.shapes[tables.shape[s]]
        starts, stops = tables.starts[s, : kind.subsets], tables.stops[s, : kind.subsets]
        fill_targets(kind.operation, starts, stops, x, scratch.ones_of_inputs, scratch.subset_sums, scratch.targets)


# --- training -------------------------------------------------------------------------------------------------------


@forced
def _draw(tables, groups, scratch, g, source, iteration, row, batch):  # type: ignore[no-untyped-def]
    """Draw a block of rows for a group, and transpose it; take logarithms if a trial multiplies them."""
    s = groups.order[groups.ends[g] - 1]
    low, second, width = source.low[s, 0], source.low[s, 1], source.width[s]
    n, block = tables.inputs, scratch.block
    seed, purpose = source.seeds[s], source.purpose
    draw(scratch.x, scratch.x_transposed, n, block, seed, low, second, width, iteration, purpose, row, batch)
    if groups.has_logs[g]:
        logs = _inputs(scratch, scratch.logs, n)
        logarithms(_inputs(scratch, scratch.x, n), n, block, logs)
        transpose(_transposed(scratch, scratch.logs_transposed, n), logs)


@apart
def _slopes(guess, targets, scale, slope):  # type: ignore[no-untyped-def]
    for b in range(len(slope)):
        slope[b] = (guess[b] - targets[b]) * scale


@forced
def _learn(tables, groups, scratch, first, last, row, batch):  # type: ignore[no-untyped-def]
    """Add to the gradients of a group's trials what a block of rows gives."""
    x, logs = _inputs(scratch, scratch.x, tables.inputs), _inputs(scratch, scratch.logs, tables.inputs)
    slope = scratch.y_grad[0]
    scale = np.float32(2 / batch)
    at_back = scratch.back * scratch.block
    at = first
    while at < last:
        stack = _next_stack(groups, at, last, scratch.stacked)
        _multiply_stack(tables, groups, scratch, stack, x, logs)
        for t in range(stack.first, stack.last):
            s = groups.order[t]
            one, two = tables.codes[tables.shape[s], 0], tables.codes[tables.shape[s], 1]
            front, back = _layer(tables, groups.places, scratch, s, 0), _layer(tables, groups.places, scratch, s, 1)
            rows = _rows(groups, scratch, stack, s)
            _targets_of(tables, groups, scratch, t, first, x)
            _predict(one, two, front, back, rows, at_back, x, scratch.y)
            _slopes(scratch.y[0], scratch.targets, scale, slope)
            for b in range(batch - row, len(slope)):
                slope[b] = 0
            _back(one, two, front, back, rows, at_back, x, scratch.y, scratch.y_grad, scratch.ones)
        _add_stack(tables, groups, scratch, stack)
        at = stack.last


@forced
def _move(tables, groups, scratch, begin, end, iteration, corrections, weight, first, second):  # type: ignore[no-untyped-def]
    """Make a step of the parameters of a group's trials."""
    settled = min(iteration, len(corrections) - 1)
    c1, c2 = corrections[settled, 0], corrections[settled, 1]
    for t in range(begin, end):
        s = groups.order[t]
        k = tables.shape[s]
        middle, last = tables.shapes[k].middle, tables.shapes[k].parameters
        count = padded(last, LANES)
        w, gradient = vector(weight, tables.at[s], count), vector(scratch.gradient, 0, count)
        m, v = vector(first, tables.at[s], count), vector(second, tables.at[s], count)
        front, back = _layer(tables, groups.places, scratch, s, 0), _layer(tables, groups.places, scratch, s, 1)
        get_gradients(tables.codes[k, 0], front, w[:middle], gradient[:middle])
        get_gradients(tables.codes[k, 1], back, w[middle:last], gradient[middle:last])
        for p in range(last, count):
            gradient[p] = 0
        update(tables.rules, k, s, iteration, c1, c2, w, gradient, m, v)


@entry
def train(  # type: ignore[no-untyped-def]
    tables, groups, source, batch, weight, first, second, iteration, count, scratch, corrections
):
    """Make some updates of the trials of some groups, from `iteration` on.

    Args:
        tables: `Tables`.
        groups: `Groups` of trials that see the same rows.
        source: `InputStream` of the training inputs.
        batch: rows a batch.
        weight: parameters of all trials, float32; written, as are the next two.
        first: of the optimiser, the same shape.
        second: the same.
        iteration: updates made so far.
        count: updates to make.
        scratch: `Scratch`; a batch is processed in blocks of its rows.
        corrections: Adam's, of each iteration from 0 on, float32 [iterations, 2]; the last row holds from there on.
    """
    begin = 0
    for g in range(len(groups.ends)):
        end = groups.ends[g]
        for i in range(iteration, iteration + count):
            _set_weights(tables, groups, scratch, weight, begin, end)
            _clear_gradients(tables, groups, scratch, begin, end)
            for row in range(0, batch, scratch.block):
                _draw(tables, groups, scratch, g, source, i, row, batch)
                _learn(tables, groups, scratch, begin, end, row, batch)
            _move(tables, groups, scratch, begin, end, i, corrections, weight, first, second)
        begin = end


# --- evaluation -----------------------------------------------------------------------------------------------------


@entry
def add_squared_errors(tables, groups, rows, of_range, count, weight, scratch, part, total):  # type: ignore[no-untyped-def]
    """Add up the squared errors of the trials of some groups.

    Args:
        tables: `Tables`.
        groups: `Groups` of trials that have the same evaluation rows.
        rows: these, float32 [ranges, planes, blocks, n, block or more]; a second plane has their logarithms.
        of_range: which range is each trial's, int64 [trials].
        count: evaluation rows.
        weight: parameters of all trials.
        scratch: `Scratch` for blocks of these rows.
        part: scratch, float32 [1, 1].
        total: added to, float64 [trials].
    """
    guess, block, begin = scratch.y[0], scratch.block, 0
    for g in range(len(groups.ends)):
        end = groups.ends[g]
        _set_weights(tables, groups, scratch, weight, begin, end)
        of_group = rows[of_range[groups.order[begin]]]
        for c in range(of_group.shape[1]):
            x, logs = of_group[0, c], of_group[of_group.shape[0] - 1, c]
            at = begin
            while at < end:
                stack = _next_stack(groups, at, end, scratch.stacked)
                _multiply_stack(tables, groups, scratch, stack, x, logs)
                for t in range(stack.first, stack.last):
                    s = groups.order[t]
                    codes = tables.codes[tables.shape[s]]
                    front = _layer(tables, groups.places, scratch, s, 0)
                    back = _layer(tables, groups.places, scratch, s, 1)
                    _targets_of(tables, groups, scratch, t, begin, x)
                    rows_of_s = _rows(groups, scratch, stack, s)
                    _predict(codes[0], codes[1], front, back, rows_of_s, scratch.back * block, x, scratch.y)
                    for b in range(block):
                        guess[b] -= scratch.targets[b]
                    for b in range(count - c * block, block):
                        guess[b] = 0
                    part[0, 0] = 0
                    add_squares(part, scratch.y)
                    total[s] += part[0, 0]
                at = stack.last
        begin = end


@entry
def sparsity_errors(tables, groups, weight, scratch, errors):  # type: ignore[no-untyped-def]
    """Write the sparsity error of each trial of some groups into errors, float32 [trials]."""
    begin = 0
    for g in range(len(groups.ends)):
        end = groups.ends[g]
        _set_weights(tables, groups, scratch, weight, begin, end)
        for t in range(begin, end):
            s = groups.order[t]
            codes = tables.codes[tables.shape[s]]
            front, back = _layer(tables, groups.places, scratch, s, 0), _layer(tables, groups.places, scratch, s, 1)
            errors[s] = larger(sparsity_error(codes[0], front), sparsity_error(codes[1], back))
        begin = end


@entry
def take_logarithms(x, logs):  # type: ignore[no-untyped-def]
    """Write the logarithms of evaluation rows, both [blocks, n, block or more]."""
    for c in range(x.shape[0]):
        logarithms(x[c], x.shape[1], x.shape[2], logs[c])
