"""Layout of a block: the threads' work and the places in shared memory, from a cell's shape alone.

A block trains one or several trials that see the same rows. Each trial has its own threads; all of a block's threads
draw the rows. A trial's threads share the work of an iteration differently in each phase (`gpu.phases`):

    thread = (row, 4 features), any       draws inputs, for all trials of the block
    thread = (row, slice of features)     multiplies inputs with the weights
    thread = row                          everything between the first layer's sums and their gradients
    thread = (4 features, some outputs)   multiplies gradients with inputs, summed over rows
    thread = weight                       owns the weight and its optimiser state, in registers

The layout doesn't depend on the device or on the block's other trials, and it determines the order of sums, and so the
last bits.
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

# The default on every device from compute capability 7.0 on.
_MOST_BYTES = 48 * 1024
# Up to this, four blocks share a multiprocessor with at least 164 KB, as on A100 and H100.
_GOOD_BYTES = 40 * 1024
_MOST_ROWS, _LEAST_ROWS = 128, 16
MOST_TOGETHER = 4
"""The most trials of a block: with more, drawing costs each less than a tenth of its instructions."""

SUMMANDS = 16
"""Parts in which sums over rows are added up."""

EVALUATED_ROWS = 1024
"""Evaluation rows of a block."""


@cache
def refusal(shape: Shape) -> str | None:
    """Return the reason why a block can't train a shape, or None if it can.

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
    """Choose a block's layout with the most rows at a time, 16 to 128, for which a trial takes up to 40 KiB.

    The rows are a power of two, less than twice the batch if above 16. With 16 rows a trial may take more memory, which
    `refusal` checks.

    Raises:
        ValueError: for some shapes with more inputs than `MOST_INPUTS`.
    """
    most = max(_LEAST_ROWS, 1 << (shape.batch - 1).bit_length())
    rows = min(_MOST_ROWS, most)
    while rows > _LEAST_ROWS and 4 * Layout(shape, rows).compact > _GOOD_BYTES:
        rows //= 2
    return Layout(shape, rows)


class Layout:
    """The constants of phases. Places, ``at_...``, count float32 numbers in shared memory.

    Shared memory begins with the data that all trials of a block share; the last of these are the inputs. Then comes
    each trial's own data. Places of shared data count from the block's start, those of own data from the trial's start.

    Args:
        shape: the shape to train.
        rows: rows of the batch processed at a time, a power of two, 16 to 128.

    Attributes:
        threads: threads of a trial.
        passes: passes over a batch, of `rows` rows each.
        quads: groups of four features; `features` is n rounded up to a multiple of four.
        stride: numbers from one row of inputs to the next.
        plane: numbers of all rows of inputs.
        slices: parts of a row, one for each multiplying thread; a slice has up to `slice_quads` quads.
        logs: True if the first layer takes logarithms of its inputs.
        products: True if the first layer multiplies factors of its inputs.
        sums: number of a row's sums over features, of inputs and of logarithms; `totals` counts its products, too.
        weight_rows: rows of the weights that multiply a feature.
        outputs: slopes that a thread multiplies with its four inputs, in one of `groups` groups; 0 for none.
        outer_slots: numbers in which the thread adds up these products.
        parts: parts of the rows in sums over rows, one for each thread.
        rounds: the most first-layer weights of a thread.
        slots: parameters of these weights; `factor_slots` are the numbers stored for their gradients.
        second_slots: parameters of a second-layer weight; `second_factor_slots` correspondingly.
        row_sums: sums over rows: of the second layer's weights, its bias and the first layer's biases.
        row_slots: numbers in which a thread adds these up.
        parameters: parameters of a trial.
        planes: planes of inputs: two with logarithms, else one.
        input_room: least size of the inputs' part of shared memory.
        part_sums: numbers of the parts of a trial's sums over rows.
        own: numbers of a trial's own shared memory.
        compact: numbers of shared memory of a trial that doesn't share a block; it determines `rows`, so that bits
            don't depend on the layout of shared blocks.
    """

    def __init__(self, shape: Shape, rows: int) -> None:
        self.shape, self.rows = shape, rows
        first, second, hidden = shape.first, shape.second, shape.hidden
        self.quads = math.ceil(shape.inputs / 4)
        self.features = 4 * self.quads
        # With an odd number of quads between rows, neither a row's nor a column's quads collide in the 32 banks.
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
        # A thread's arrays can't have length 0.
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
        """Set the shares of outputs and rows that minimise the work of the slowest thread, given the sums of inputs.

        Raises:
            ValueError: if no share fits the threads; see `new_layout`.
        """
        hidden = self.shape.hidden
        if not on_inputs and not self.logs:  # no weight gradient is a product of slopes and inputs
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
        # An evaluation stores two numbers of each thread there.
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
        # A single trial doesn't need the first slice's sums in shared memory, and its parts can overlap all planes.
        inputs = max(self.plane * (self.planes + self.products), self.part_sums, 2 * self.threads)
        partial = max((self.slices - 1) * (self.sums + shape.subsets) * rows, SUMMANDS * self.row_sums)
        self.compact = (
            padded(inputs, 4) + self.at_subset_sums + self.own - (self.at_slopes - self.at_factors)
            + padded(partial, 4) - (self.at_products - self.at_partial)
        )  # fmt: skip

    def at_trial(self, trial: int, trials: int) -> int:
        """Return the place of a trial's own numbers, 0 <= trial < trials, in its block.

        The parts of sums over rows overwrite the inputs, which are no longer needed then.
        """
        return self.at_inputs + max(self.input_room, trials * self.part_sums) + trial * self.own

    def size(self, trials: int) -> int:
        """Count the numbers of shared memory of a block with a number of trials."""
        return self.at_trial(trials, trials)

    def most_together(self, memory_bytes: int, registers: int) -> int:
        """Count the trials that a block can train, 1 to `MOST_TOGETHER`; 1 even if a single one doesn't fit.

        Args:
            memory_bytes: limit of a block's shared memory.
            registers: limit of a block's threads, by its registers.
        """
        fitting = [
            trials
            for trials in range(1, MOST_TOGETHER + 1)
            if 4 * self.size(trials) <= memory_bytes and trials * self.threads <= registers
        ]
        return max(fitting, default=1)
