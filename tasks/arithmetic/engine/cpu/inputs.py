"""Inputs and targets in compiled code: rows of the stream with a transposed copy, and the task's results."""

from __future__ import annotations

from study.stream import stream_simd
from study.stream.stream_simd import LANES, padded
from tasks.arithmetic.engine.compiled.cache import inlined, internal
from tasks.arithmetic.engine.compiled.formulas import ADD, DIV, ROOT, SQUARED, SUB, combine, fold
from tasks.arithmetic.engine.cpu.products import multiply, transpose
from tasks.arithmetic.engine.cpu.simd import matrix

# Rows drawn and transposed at a time, if there is a transposed copy: both stay in the first-level cache meanwhile.
_STRIP = 32


@internal
def draw(x, transposed, n, block, seed, low, second, width, iteration, purpose, first, rows):  # type: ignore[no-untyped-def]
    """Draw a block of rows from `first` on; rows past the batch's end are copies of the block's first row.

    A copy overflows only if the original does, so it doesn't affect results.

    Args:
        x: inputs, [features, block or more] flattened, where features are n rounded up to a multiple of 4; written.
        transposed: the first features, rounded down to full vectors, [block, features] flattened; written.
        n: numbers in a row.
        block: rows of the block, a multiple of `LANES`.
        seed: the trial's seed; for this and the arguments up to `purpose`, see `stream_simd.draw`.
        low: start of the first interval.
        second: start of the second interval.
        width: width of the intervals.
        iteration: the iteration.
        purpose: the purpose.
        first: number of the first row.
        rows: rows of the batch.
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
    """Write the targets of a trial's rows into `result` [block].

    Args:
        operation: the operation on the subsets' sums.
        starts: first input of each subset, [subsets].
        stops: the input after each subset's last, [subsets].
        x: inputs, [features, block or more].
        ones: ones, [1, features].
        sums: scratch, [subsets or more, block].
        result: written.
    """
    subsets = len(starts)
    for j in range(subsets):
        multiply(sums[j : j + 1], ones, x, starts[j], stops[j])
    first, last = sums[0], sums[subsets - 1]
    # Each operation has its own loop, as activations do: see `gradients`.
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
