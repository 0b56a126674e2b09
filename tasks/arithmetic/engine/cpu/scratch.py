"""Scratch arrays of the compiled loops, for a group of trials and a block of rows."""

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
    """Scratch arrays for blocks of rows; see `new_scratch`.

    Args:
        block: rows of a block.
        stacked: rows of sums computed at a time.
        x: inputs, float32 [features, block and a vector more] flattened; features are n rounded up to a multiple of 4.
        x_transposed: transposed inputs, [block, n rounded down to full vectors] flattened.
        logs: their logarithms, like the inputs.
        logs_transposed: transposed logarithms, like those of the inputs.
        weights: a group's weights and factors: see `Layer`.
        gradients: their gradients.
        room: sums, their gradients, and scratch of layers: [rows, block] flattened.
        spare: first of the rows that first layers use in turn.
        back: first of the rows that second layers use in turn.
        y: outputs, [1, block].
        y_grad: their gradients, the same shape.
        subset_sums: [subsets, block].
        targets: [block].
        ones: [1, block].
        ones_of_inputs: [1, n].
        gradient: gradient of a trial's parameters, padded with 0 to a full vector.
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
    """Make the scratch arrays of one call of the loops, for groups of these sizes and blocks of `block` rows."""
    n, subsets = tables.inputs, tables.starts.shape[1]
    # A row is a cache line longer than a block: rows of a power of two would compete for a few places of the cache.
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
    """Make a float32 array of zeros aligned to a cache line: vectors that cross two lines take twice as long."""
    count = int(np.prod(shape))
    numbers = np.zeros(count + LANES, np.float32)
    first = -(numbers.ctypes.data // numbers.itemsize) % LANES
    return numbers[first : first + count].reshape(shape)


@inlined
def inputs_of(scratch, numbers, n):  # type: ignore[no-untyped-def]
    """View inputs, or their logarithms, as [features padded to a multiple of 4, block + LANES]."""
    return matrix(numbers, 0, padded(n, 4), scratch.block + LANES)


@inlined
def transposed_of(scratch, numbers, n):  # type: ignore[no-untyped-def]
    """View the transposed inputs, or their logarithms, as [block, n rounded down to a multiple of `LANES`]."""
    return matrix(numbers, 0, scratch.block, n - n % LANES)


@inlined
def layer_of(tables, places, scratch, s, layer):  # type: ignore[no-untyped-def]
    """Return a trial's first layer, 0, or its second, 1, as a `Layer`."""
    k = 5 * layer
    hidden = tables.shapes[tables.shape[s]].hidden
    return Layer(
        scratch.weights, scratch.gradients,
        places[s, k], places[s, k + 1], places[s, k + 2], places[s, k + 3], places[s, k + 4],
        hidden if layer else tables.inputs, 1 if layer else hidden,
    )  # fmt: skip
