"""The arrays that compiled loops work in, for a group of trials and a block of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from study.stream.stream_simd import LANES, padded
from tasks.arithmetic.engine.compiled.cache import inlined
from tasks.arithmetic.engine.cpu.groups import Sizes
from tasks.arithmetic.engine.cpu.layers import Layer
from tasks.arithmetic.engine.cpu.simd import matrix
from tasks.arithmetic.engine.cpu.tables import PackTables


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


def new_scratch(tables: PackTables, sizes: Sizes, block: int) -> Scratch:
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
def inputs_of(scratch, numbers, n):  # type: ignore[no-untyped-def]
    """View inputs, or their logarithms: [features, block and a vector more]."""
    return matrix(numbers, 0, padded(n, 4), scratch.block + LANES)


@inlined
def transposed_of(scratch, numbers, n):  # type: ignore[no-untyped-def]
    """View the transposed copy of most of them: [block, features]."""
    return matrix(numbers, 0, scratch.block, n - n % LANES)


@inlined
def layer_of(tables, places, scratch, s, layer):  # type: ignore[no-untyped-def]
    """Find a trial's first layer, 0, or its second, 1."""
    k = 5 * layer
    hidden = tables.shapes[tables.shape[s]].hidden
    return Layer(
        scratch.weights, scratch.gradients,
        places[s, k], places[s, k + 1], places[s, k + 2], places[s, k + 3], places[s, k + 4],
        hidden if layer else tables.inputs, 1 if layer else hidden,
    )  # fmt: skip
