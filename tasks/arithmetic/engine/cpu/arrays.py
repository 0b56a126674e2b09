"""The arrays of the fused engine's compiled loops, for trials of several shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from study.records import Range, Trial
from study.spec import canonical_cell
from study.stream.stream import Purpose
from study.stream.stream_simd import LANES, padded
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.distributions import Source
from tasks.arithmetic.engine.compiled.codes import InputStream
from tasks.arithmetic.engine.compiled.pack import Arrays, PackArrays, corrections
from tasks.arithmetic.engine.cpu.evaluation import add_squared_errors, sparsity_errors, take_logarithms
from tasks.arithmetic.engine.cpu.first_layers import planes_of
from tasks.arithmetic.engine.cpu.groups import Groups, Sizes, distinct, new_groups
from tasks.arithmetic.engine.cpu.loop import train
from tasks.arithmetic.engine.cpu.scratch import new_scratch, zeros
from tasks.arithmetic.engine.cpu.tables import new_tables
from tasks.arithmetic.engine.shared.evaluation_rows import draw_rows, evaluation_keys, range_arrays
from tasks.arithmetic.engine.shared.initial_weights import KINDS, PREFIX, under

# Bytes of the inputs processed at a time: with a transposed copy, they fill part of a second-level cache.
_BLOCK_BYTES = 64 * 1024
_CHUNK_BYTES = 128 * 1024
_MOST_ROWS = 512

# Cached sets of groups; the sets differ in the trials that still train, or in a thread's share of them.
_MOST_MADE = 64

# Float32 numbers of the weights of trials evaluated together on each chunk of rows: they fit into a first-level cache.
_MOST_EVALUATED = 8 * 1024


def block_rows(inputs: int, most_bytes: int, rows: int) -> int:
    """Choose the number of rows to process at a time, a multiple of `LANES`.

    There are as few blocks as possible, of as few rows as possible, at most 512. A block of up to 2 `LANES` rows may
    exceed `most_bytes`. The number depends only on values that a pack's trials share, since some sums are taken block
    by block.

    Args:
        inputs: numbers in a row.
        most_bytes: largest size of a block's inputs.
        rows: number of rows to process, >= 1.

    Example:
        >>> block_rows(100, 64 * 1024, 128), block_rows(400, 64 * 1024, 128)
        (128, 32)
    """
    most = min(max(2 * LANES, most_bytes // (4 * padded(inputs, 4)) // LANES * LANES), _MOST_ROWS)
    return padded(math.ceil(rows / math.ceil(rows / most)), LANES)


class CpuArrays:
    """A pack's trials, with the arrays and scratch memory of the loops.

    Args:
        trials: trials of equal input size, batch size and protocol.
        state: the result of `state` for these trials; None to draw initial weights.
    """

    def __init__(self, trials: Sequence[Trial], state: Arrays | None = None) -> None:
        self._cells = [typed_cell(trial.cell) for trial in trials]
        cell = self._cell = self._cells[0]
        shape = distinct([c.shape for c in self._cells])
        self._places = [np.flatnonzero(shape == k) for k in range(int(shape.max()) + 1)]
        self._parts = [
            PackArrays([trials[int(place)] for place in places], _part_state(state, part))
            for part, places in enumerate(self._places)
        ]
        at = self._lay_out(len(trials))
        self._tables = new_tables(self._parts, self._places, at)
        self._corrections = corrections(cell.iterations + 1)
        ranges = [c.interpolation_range for c in self._cells]
        seeds = np.array([trial.sources.data for trial in trials], np.uint64)
        self._source = InputStream(int(Purpose.TRAIN), seeds, *range_arrays(ranges))
        self._same_rows = distinct([(trial.sources.data, range_) for trial, range_ in zip(trials, ranges, strict=True)])
        self._block = block_rows(cell.input_size, _BLOCK_BYTES, cell.batch_size)
        keys = evaluation_keys(trials)
        self._validation = self._rows(ranges, keys, Purpose.VALIDATION)
        self._test = self._rows([c.extrapolation_range for c in self._cells], keys, Purpose.TEST)
        self._groups_cache: dict[tuple[str, bytes], tuple[Groups, Sizes]] = {}

    def _lay_out(self, trials: int) -> npt.NDArray[np.int64]:
        """Move all parameters and moments into flat arrays, and return each trial's start in them, int64 [trials]."""
        at, total = np.empty(trials, np.int64), 0
        steps = [padded(part.parameters, LANES) for part in self._parts]  # each trial starts at a full vector
        for places, step in zip(self._places, steps, strict=True):
            at[places] = total + step * np.arange(len(places))
            total += step * len(places)
        self._flat = {kind: zeros(total) for kind in KINDS}
        for part, places, step in zip(self._parts, self._places, steps, strict=True):
            first = at[places[0]]
            part.move_to({k: a[first : first + step * len(places)].reshape(-1, step) for k, a in self._flat.items()})
        return at

    def _rows(
        self, ranges: Sequence[Range], keys: Sequence[int], purpose: Purpose
    ) -> tuple[Any, npt.NDArray[np.int64], int]:
        """Draw the distinct sets of rows, cut into blocks, and assign them to trials.

        Returns:
            The rows, float32 [sets, planes, blocks, n, block or more], with a second plane of logarithms if a trial
                multiplies them; each trial's set; and the rows of a block.
        """
        sets = list(zip(ranges, keys, strict=True))
        cell, which = self._cell, distinct(sets)
        firsts = list(dict.fromkeys(sets))
        count = cell.evaluation_rows
        block = block_rows(cell.input_size, _CHUNK_BYTES, count)
        blocks = math.ceil(count / block)
        # The last block is padded with copies of its first row, which overflow only if that row does.
        places = np.where(np.arange(blocks * block) < count, np.arange(blocks * block), (blocks - 1) * block)
        sources, of_sources = [Source(range_) for range_, _ in firsts], [key for _, key in firsts]
        drawn = draw_rows(sources, cell, purpose, of_sources)[:, :, places].reshape(
            len(firsts), cell.input_size, blocks, block
        )
        planes = planes_of(c.network for c in self._cells)
        # Each row is a cache line longer than a block, as for training.
        x = np.zeros((len(firsts), planes, blocks, cell.input_size, block + LANES), np.float32)
        x[:, 0, :, :, :block] = drawn.transpose(0, 2, 1, 3)
        if planes > 1:
            for of_range in x:
                take_logarithms(of_range[0], of_range[1])
        return x, which, block

    def _groups(self, name: str, which: npt.NDArray[np.int64], same_rows: Any, *most: int) -> tuple[Groups, Sizes]:
        """Return the groups of the trials at the places `which` and their arrays' sizes, cached by name and places."""
        key = (name, which.tobytes())
        groups = self._groups_cache.get(key)
        if groups is None:
            groups = new_groups(self._tables, which, same_rows, *most)
            # Threads call this concurrently for different trials: replacing the dictionary, not changing it, keeps
            # their results.
            self._groups_cache = {} if len(self._groups_cache) >= _MOST_MADE else self._groups_cache | {key: groups}
        return groups

    def update(self, which: npt.NDArray[np.int64], iteration: int, count: int) -> None:
        """Make `count` updates of the trials at the given places, from `iteration` on."""
        groups, sizes = self._groups("train", which, self._same_rows)
        train(
            self._tables, groups, self._source, self._cell.batch_size, *self._flat.values(), iteration, count,
            new_scratch(self._tables, sizes, self._block), self._corrections,
        )  # fmt: skip

    def evaluate(self, which: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float32]]:
        """Compute validation MSE, test MSE and sparsity error of the trials at the given places, float32 [places]."""
        weight, rows, trials = self._flat["weight"], self._cell.evaluation_rows, len(self._cells)
        metrics = {}
        for name, (x, of_range, block) in (("validation_mse", self._validation), ("test_mse", self._test)):
            groups, sizes = self._groups(name, which, of_range, _MOST_EVALUATED)
            scratch = new_scratch(self._tables, sizes, block)
            total, part = np.zeros(trials), np.zeros((1, 1), np.float32)
            add_squared_errors(self._tables, groups, x, of_range, rows, weight, scratch, part, total)
            metrics[name] = (total[which] / rows).astype(np.float32)
        errors = np.empty(trials, np.float32)
        sparsity_errors(self._tables, groups, weight, scratch, errors)
        return metrics | {"sparsity_error": errors[which]}

    def has_nan(self, which: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return True for each trial at the given places with a parameter that is NaN, bool [places]."""
        has_nan = np.empty(len(self._cells), np.bool_)
        for part, places in zip(self._parts, self._places, strict=True):
            has_nan[places] = part.has_nan()
        return has_nan[which]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy weights and optimiser state by name; an array holds the trials of one shape, along its first axis."""
        return {
            name: array
            for k, part in enumerate(self._parts)
            for name, array in under(part.state(), PREFIX, _prefix(k)).items()
        }

    def weights(self) -> list[dict[str, npt.NDArray[Any]]]:
        """Copy each trial's parameters, by name."""
        weights: list[dict[str, npt.NDArray[Any]]] = [{} for _ in self._cells]
        for part, places in zip(self._parts, self._places, strict=True):
            for name, array in part.parameters_by_name().items():
                for row, place in zip(array, places, strict=True):
                    weights[place][name] = row
        return weights


def compile_training() -> None:
    """Compile the training loop, or load it from disk, by one update of an example."""
    _example_trial().update(np.array([0]), 0, 1)


def compile_evaluation() -> None:
    """Compile the evaluation loops, or load them from disk, by the evaluation of an example."""
    _example_trial().evaluate(np.array([0]))


def _example_trial() -> CpuArrays:
    """Make the arrays of one trial; their types are those of every trial."""
    return CpuArrays([Trial(canonical_cell("simple", "NMU", {"operation": "mul"}), 0)])


def _prefix(part: int) -> str:
    """Return the prefix of a part's arrays; the first part has the same prefix as a pack of a single shape."""
    return PREFIX if part == 0 else f"part{part}/"


def _part_state(state: Arrays | None, part: int) -> Arrays | None:
    return None if state is None else under(state, _prefix(part), PREFIX)
