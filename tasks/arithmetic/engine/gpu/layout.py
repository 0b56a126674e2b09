"""Who does what in a block of threads, and where it lies in shared memory: from a cell's shape alone.

A block trains one or several trials that see the same rows. Each trial has threads of its own; all of them together
draw the rows. A trial's threads share the work of an iteration differently in each phase (`gpu.phases`):

    thread = (row, 4 features), any       draws inputs, for all trials of the block
    thread = (row, slice of features)     multiplies inputs with the weights
    thread = row                          everything between the first layer's sums and their gradients
    thread = (4 features, some outputs)   multiplies gradients with inputs, summed over rows
    thread = weight                       owns the weight and its optimiser state, in registers

Nothing here depends on the device or on the block's other trials: the order of sums, and so the last bits, follow from
the layout.
"""

from __future__ import annotations

import math
from functools import cache

from study.stream.stream_simd import padded
from tasks.arithmetic.engine.compiled.codes import AFFINE, GATED, NAC_MUL, NALU, NMU
from tasks.arithmetic.engine.gpu.shape import Shape, effective, factors, has_bias, parameters

# Four warps a block, so that many blocks share a multiprocessor and hide each other's barriers.
_THREADS, _THREADS_IF_WIDE, _WIDE_QUADS = 128, 256, 64

MOST_INPUTS = 512
MOST_HIDDEN = (_THREADS - 1) // 2

# Every device from compute capability 7.0 on gives a block this much by default.
_MOST_BYTES = 48 * 1024
# Up to this, four blocks share a multiprocessor that has 164 KB, as those of A100 and H100 have, and more.
_GOOD_BYTES = 40 * 1024
_MOST_ROWS, _LEAST_ROWS = 128, 16
MOST_TOGETHER = 4
"""Trials that a block trains at most: beyond that, drawing costs each less than a tenth of its instructions."""

SUMMANDS = 16
"""Parts in which sums over rows are added up."""

EVALUATED_ROWS = 1024
"""Evaluation rows of a block."""


@cache
def refusal(shape: Shape) -> str | None:
    """Say why no block can train a shape, or None if one can.

    Example:
        >>> from tasks.arithmetic.engine.compiled.codes import CODES
        >>> refusal(Shape(1000, 2, 128, 2, CODES["NAU"], CODES["NMU"], ()))
        'it trains up to 512 inputs, not 1000'
    """
    if shape.inputs > MOST_INPUTS:
        return f"it trains up to {MOST_INPUTS} inputs, not {shape.inputs}"
    if shape.hidden > MOST_HIDDEN:
        return f"it trains up to {MOST_HIDDEN} hidden units, not {shape.hidden}"
    needed = 4 * Layout(shape, _LEAST_ROWS).compact
    if needed > _MOST_BYTES:
        return f"a trial needs {needed / 1024:.0f} KiB of shared memory, and a block has {_MOST_BYTES // 1024}"
    return None


@cache
def new_layout(shape: Shape) -> Layout:
    """Lay a block out: as many rows at a time as there are threads and memory for, 16 to 128."""
    most = max(_LEAST_ROWS, 1 << (shape.batch - 1).bit_length())
    rows = min(_MOST_ROWS, most)
    while rows > _LEAST_ROWS and 4 * Layout(shape, rows).compact > _GOOD_BYTES:
        rows //= 2
    return Layout(shape, rows)


class Layout:
    """The numbers that phases are made of. Places, ``at_...``, count float32 numbers in shared memory.

    Shared memory holds what all trials of a block have in common, which ends with the inputs, and then what each trial
    has to itself. Places of the first kind count from the block's start, those of the second from the trial's.

    Args:
        shape: what is trained.
        rows: of the batch that are processed at a time, a power of two, 16 to 128.

    Attributes:
        threads: of a trial.
        passes: in which a batch is processed, `rows` at a time.
        quads: groups of four features; `features` are theirs, n rounded up.
        stride: numbers from a row of inputs to the next.
        plane: numbers of all rows of inputs.
        slices: parts of a row, each multiplied by a thread; a slice has up to `slice_quads` quads.
        logs: whether the first layer takes logarithms of its inputs.
        products: whether it multiplies factors of its inputs.
        sums: of a row over its features: by weights, of logarithms; its products follow, `totals` in all.
        weight_rows: rows of the weights that a feature is multiplied with.
        outputs: slopes that a thread multiplies with its four inputs, in one of `groups` groups; 0 if there are none.
        outer_slots: numbers that it adds these up in.
        parts: in which sums over rows are shared among threads.
        rounds: weights of the first layer that a thread owns, at most.
        slots: parameters of these, and `factor_slots` the numbers stored for their gradients.
        second_slots: parameters of a weight of the second layer; `second_factor_slots` correspondingly.
        row_sums: sums over rows: of the second layer's weights, of its bias, of the first layer's biases.
        row_slots: numbers that a thread adds these up in.
        parameters: of a trial.
        planes: of inputs: with logarithms, two.
        input_room: numbers of shared memory where inputs lie, at least.
        part_sums: numbers that the parts of a trial's sums over rows take.
        own: numbers of shared memory that a trial has to itself.
        compact: numbers of shared memory that a trial alone could do with, if nothing were laid out for others; rows
            are chosen by them, so that bits don't depend on what is laid out for groups.
    """

    def __init__(self, shape: Shape, rows: int) -> None:
        self.shape, self.rows = shape, rows
        first, second, hidden = shape.first, shape.second, shape.hidden
        self.quads = math.ceil(shape.inputs / 4)
        self.features = 4 * self.quads
        # Rows a quad apart modulo all 32 banks: neither a row's nor a column's quads collide.
        self.stride = self.features if self.features % 8 == 4 else self.features + 4
        self.passes = math.ceil(shape.batch / rows)
        self.threads = _THREADS if self.quads <= _WIDE_QUADS else _THREADS_IF_WIDE
        self.slices = self.threads // rows
        self.slice_quads = math.ceil(self.quads / self.slices)

        # Sums over features, of each row: by weights; of logarithms; products.
        self.logs, self.products = first.family in (NALU, NAC_MUL), first.family in (GATED, NMU)
        on_inputs = {AFFINE: hidden, NALU: 2 * hidden, GATED: 2 * hidden}.get(first.family, 0)
        self.gates = hidden
        self.input_sums = on_inputs
        self.sums = self.input_sums + (hidden if self.logs else 0)
        self.totals = self.sums + (hidden if self.products else 0)
        self.own_products = effective(first) == 3
        self.weight_rows = max(hidden, self.input_sums + (hidden if self.own_products else 0))

        self._share_outer(on_inputs)
        self.slope_stride = self.outputs * self.groups + (hidden if self.products else 0)
        self.rounds = math.ceil(hidden * self.features / self.threads)
        # No array of a thread has length 0.
        self.slots, self.second_slots = self.rounds * parameters(first), max(1, parameters(second))
        self.outer_slots = max(1, 4 * self.outputs)
        self.factor_slots = self.rounds * max(1, factors(first))
        self.second_factor_slots = max(1, factors(second))

        # Sums over rows: of the second layer's weights, its bias, the first layer's.
        self.second_bias = effective(second) * hidden
        self.first_bias = self.second_bias + has_bias(second)
        self.row_sums = self.first_bias + hidden * has_bias(first)
        self.row_slots = max(1, self.row_sums)
        self.parameters = hidden * (parameters(first) * shape.inputs + has_bias(first) + parameters(second)) + has_bias(
            second
        )
        self._place()

    def _share_outer(self, on_inputs: int) -> None:
        """Share outputs and rows out among the threads so that the slowest has as little to do as possible."""
        hidden = self.shape.hidden
        if not on_inputs and not self.logs:  # no weight has a gradient that is slopes times inputs
            self.outputs = self.input_groups = self.groups = self.log_slopes = 0
            self.parts = 1
            return
        choices = []
        for outputs in range(1, max(on_inputs, hidden) + 1):
            of_inputs = math.ceil(on_inputs / outputs)
            groups = of_inputs + (math.ceil(hidden / outputs) if self.logs else 0)
            if groups * self.quads > self.threads:
                continue
            parts = max(1, min(self.threads // (self.quads * groups), SUMMANDS, self.rows))
            work = math.ceil(self.rows / parts) * (3 + 5 * outputs) + 8 * parts
            choices.append((work, outputs, of_inputs, groups, parts))
        _, self.outputs, self.input_groups, self.groups, self.parts = min(choices)
        self.log_slopes = self.input_groups * self.outputs

    def _place(self) -> None:
        shape, hidden, rows = self.shape, self.shape.hidden, self.rows
        self.plane, self.planes = rows * self.stride, 1 + self.logs
        # An evaluation leaves two numbers of each thread there.
        self.input_room = padded(max(self.plane * self.planes, 2 * self.threads), 4)
        self.part_sums = self.parts * self.groups * self.outputs * self.features
        at = 0

        def take(count: int) -> int:
            nonlocal at
            place = at
            at += padded(count, 4)
            return place

        self.at_subsets = take(self.quads * shape.subsets * 4)
        self.at_subset_sums = take(self.slices * shape.subsets * rows)
        self.at_inputs = at
        at = 0
        self.at_weights = take(self.quads * self.weight_rows * 4)
        self.at_factors = take(self.plane if self.products else 0)
        self.at_slopes = take(rows * self.slope_stride)
        self.at_partial = take(max((self.slices - 1) * self.sums * rows, SUMMANDS * self.row_sums))
        self.at_products = take(self.slices * hidden * rows if self.products else 0)
        self.at_product_sums = take(hidden * self.features if self.products else 0)
        self.at_row_sums = take(self.row_sums * rows)
        self.at_second = take(effective(shape.second) * hidden)
        self.at_second_bias = take(1)
        self.at_first_bias = take(hidden)
        self.own = at
        # A trial alone needs no sums of the first slice in shared memory, and its parts can lie over all planes.
        inputs = max(self.plane * (self.planes + self.products), self.part_sums, 2 * self.threads)
        partial = max((self.slices - 1) * (self.sums + shape.subsets) * rows, SUMMANDS * self.row_sums)
        self.compact = (
            padded(inputs, 4) + self.at_subset_sums + self.own - (self.at_slopes - self.at_factors)
            + padded(partial, 4) - (self.at_products - self.at_partial)
        )  # fmt: skip

    def at_trial(self, trial: int, trials: int) -> int:
        """Count the numbers before those that a trial has to itself, number 0 <= trial < trials of its block.

        The parts of sums over rows lie where the inputs were, which are no longer needed then.
        """
        return self.at_inputs + max(self.input_room, trials * self.part_sums) + trial * self.own

    def size(self, trials: int) -> int:
        """Count the numbers of shared memory of a block of so many trials."""
        return self.at_trial(trials, trials)

    def most_together(self, memory_bytes: int, registers: int) -> int:
        """Count the trials that a block can train, 1 to `MOST_TOGETHER`.

        Args:
            memory_bytes: of shared memory that a block may have.
            registers: threads for which a multiprocessor has registers.
        """
        fitting = [
            trials
            for trials in range(1, MOST_TOGETHER + 1)
            if 4 * self.size(trials) <= memory_bytes and trials * self.threads <= registers
        ]
        return max(fitting, default=1)
