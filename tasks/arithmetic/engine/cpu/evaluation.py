"""The compiled loops that evaluate trials: squared errors on shared rows, and sparsity errors."""

from __future__ import annotations

from tasks.arithmetic.engine.compiled.cache import entry
from tasks.arithmetic.engine.compiled.formulas import larger
from tasks.arithmetic.engine.cpu.gradients import logarithms
from tasks.arithmetic.engine.cpu.layers import sparsity_error
from tasks.arithmetic.engine.cpu.products import add_squares
from tasks.arithmetic.engine.cpu.scratch import layer_of
from tasks.arithmetic.engine.cpu.stacks import multiply_stack, next_stack, predict, rows_of, set_weights_of, targets_of


@entry
def add_squared_errors(tables, groups, rows, of_range, count, weight, scratch, part, total):  # type: ignore[no-untyped-def]
    """Add the squared errors of the trials of some groups to `total`.

    Args:
        tables: `PackTables`.
        groups: `Groups` of trials with the same evaluation rows.
        rows: evaluation rows, float32 [ranges, planes, blocks, n, block or more]; a second plane has their logarithms.
        of_range: index of each trial's range, int64 [trials].
        count: number of evaluation rows.
        weight: parameters of all trials, flat, float32.
        scratch: `Scratch` for blocks of these rows.
        part: scratch, float32 [1, 1].
        total: added to, float64 [trials].
    """
    guess, block, begin = scratch.y[0], scratch.block, 0
    for g in range(len(groups.ends)):
        end = groups.ends[g]
        set_weights_of(tables, groups, scratch, weight, begin, end)
        of_group = rows[of_range[groups.order[begin]]]
        for c in range(of_group.shape[1]):
            x, logs = of_group[0, c], of_group[of_group.shape[0] - 1, c]
            at = begin
            while at < end:
                stack = next_stack(groups, at, end, scratch.stacked)
                multiply_stack(tables, groups, scratch, stack, x, logs)
                for t in range(stack.first, stack.last):
                    s = groups.order[t]
                    codes = tables.codes[tables.shape[s]]
                    front = layer_of(tables, groups.places, scratch, s, 0)
                    back = layer_of(tables, groups.places, scratch, s, 1)
                    targets_of(tables, groups, scratch, t, begin, x)
                    rows_of_s = rows_of(groups, scratch, stack, s)
                    predict(codes[0], codes[1], front, back, rows_of_s, scratch.back * block, x, scratch.y)
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
    """Write the sparsity error of each trial of some groups into `errors`, float32 [trials].

    It is the larger of both layers' `sparsity_error`, NaN if one is NaN.
    """
    begin = 0
    for g in range(len(groups.ends)):
        end = groups.ends[g]
        set_weights_of(tables, groups, scratch, weight, begin, end)
        for t in range(begin, end):
            s = groups.order[t]
            codes = tables.codes[tables.shape[s]]
            front, back = layer_of(tables, groups.places, scratch, s, 0), layer_of(tables, groups.places, scratch, s, 1)
            errors[s] = larger(sparsity_error(codes[0], front), sparsity_error(codes[1], back))
        begin = end


@entry
def take_logarithms(x, logs):  # type: ignore[no-untyped-def]
    """Write the logarithms of evaluation rows into `logs`, both [blocks, n, block or more]."""
    for c in range(x.shape[0]):
        logarithms(x[c], x.shape[1], x.shape[2], logs[c])
