"""The arrays of the fused GPU engine, and its interface to a device: train, evaluate, return the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from study.records import Range, Trial
from study.stream.stream import ROUNDS, WEYL, Purpose
from study.stream.stream_simd import fill_inputs, padded
from tasks.arithmetic.engine.compiled.cache import entry
from tasks.arithmetic.engine.compiled.codes import NAC_MUL, NALU
from tasks.arithmetic.engine.compiled.formulas import logarithm
from tasks.arithmetic.engine.compiled.pack import Arrays, PackArrays
from tasks.arithmetic.engine.gpu.groups import same_rows
from tasks.arithmetic.engine.gpu.layout import EVALUATED_ROWS
from tasks.arithmetic.engine.gpu.shape import Shape, new_shape
from tasks.arithmetic.engine.shared.evaluation_rows import evaluation_keys, range_arrays

# Columns of a trial's numbers: starts of its intervals, their width times 2**-24, step size, λ̂, 1 / (iterations of λ's
# growth), and the out-of-bounds regulariser's weight.
INTERVAL, SECOND_INTERVAL, SCALE, RATE, STRENGTH, LENGTH, OUT_STRENGTH, NUMBERS = range(8)

_LOW_WORD = 0xFFFFFFFF


class Choices(NamedTuple):
    """Values that all trials of a pack share and that don't affect the layout of a block.

    Args:
        operation: ADD, SUB, MUL, DIV, SQUARED or ROOT.
        two: True if any trial draws from two intervals.
        exponential: True if λ grows exponentially.
        optimizer: ADAM, SGD or MOMENTUM.
        momentum: coefficient of MOMENTUM.
        squared: True if the sparsity regulariser is squared.
        out_squared: True if the out-of-bounds regulariser is squared.
    """

    operation: int
    two: bool
    exponential: bool
    optimizer: int
    momentum: np.float32
    squared: bool
    out_squared: bool


@dataclass(frozen=True)
class Tables:
    """The trials' data on a device, one row a trial.

    Args:
        keys: Philox's round keys, uint32 [trials, 2, 10].
        spans: the first input of each subset, and the one after its last, uint64 [trials, subsets, 2].
        start: iteration at which λ starts to grow, uint64 [trials].
        numbers: float32 [trials, NUMBERS].
        corrections: Adam's bias corrections from iteration 0 until they are 1, float32 [iterations, 2].
        evaluated: evaluation rows, float32 [sets, planes, features / 4, rows, 4]; a second plane holds logarithms.
        sets: the validation set and the test set of each trial, uint64 [trials, 2].
        rows: equal numbers for trials that see the same rows in training, int64 [trials]; see `gpu.groups`.
    """

    keys: npt.NDArray[np.uint32]
    spans: npt.NDArray[np.uint64]
    start: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.float32]
    corrections: npt.NDArray[np.float32]
    evaluated: npt.NDArray[np.float32]
    sets: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]


class Evaluation(NamedTuple):
    """The measurements of an evaluation of some trials.

    Args:
        errors: sum of squared errors of each chunk of validation and test rows, float64 [trials, 2, chunks].
        weights: sparsity error of a trial's weights, and 1 if one is NaN, else 0; float32 [trials, 2].
    """

    errors: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float32]


class Blocks(ABC):
    """A pack's trials on a device, in blocks of threads. Calls are asynchronous."""

    @abstractmethod
    def train(self, which: npt.NDArray[np.uint64], iteration: int, count: int) -> None:
        """Update some trials.

        Args:
            which: their places in the pack, [1 to trials].
            iteration: number of updates they have made, >= 0.
            count: number of updates to make, >= 1.
        """

    @abstractmethod
    def evaluate(self, which: npt.NDArray[np.uint64]) -> Callable[[], Evaluation]:
        """Start to evaluate some trials in their current state.

        Args:
            which: their places in the pack, [1 to trials].

        Returns:
            A function that waits for the results and returns them.
        """

    @abstractmethod
    def read(self) -> list[npt.NDArray[np.float32]]:
        """Wait for all updates, and copy weights, first and second moments, each [trials, parameters]."""

    @abstractmethod
    def wait(self, left: int) -> None:
        """Wait until at most `left` calls of `train` are unfinished."""


Devices = Callable[[Shape, Choices, Tables, Sequence[npt.NDArray[np.float32]]], Blocks]
"""Constructor of a pack's blocks from shape, choices, tables, and weights and moments, each [trials, parameters]."""


class GpuArrays(PackArrays):
    """A pack's trials on a device.

    Args:
        trials: trials of equal tensor shape.
        state: the result of `state` for these trials; None to draw initial weights.
        new_blocks: constructor of the device's blocks.
    """

    def __init__(self, trials: Sequence[Trial], state: Arrays | None, new_blocks: Devices) -> None:
        super().__init__(trials, state)
        self._keys = evaluation_keys(trials)
        shape = new_shape(self._network, self._rule, self._cell.batch_size, self._target.starts.shape[1])
        self._blocks = new_blocks(shape, self._new_choices(), self._new_tables(), list(self._arrays.values()))

    # --- building -----------------------------------------------------------------------------------------

    def _new_choices(self) -> Choices:
        rule = self._rule
        two = any(len(cell.interpolation_range) > 1 for cell in self._cells)
        return Choices(
            self._target.operation, two, bool(rule.exponential.any()), rule.optimizer, rule.momentum, rule.squared,
            rule.out_squared,
        )  # fmt: skip

    def _new_tables(self) -> Tables:
        evaluated, sets = self._new_rows()
        return Tables(
            keys=round_keys(self._data_seeds),
            spans=np.stack([self._target.starts, self._target.stops], -1).astype(np.uint64),
            start=self._rule.start.astype(np.uint64),
            numbers=self._new_numbers(),
            corrections=self._corrections,
            evaluated=evaluated,
            sets=sets,
            rows=same_rows(self._data_seeds, [cell.interpolation_range for cell in self._cells]),
        )

    def _new_numbers(self) -> npt.NDArray[np.float32]:
        source, rule = self._source, self._rule
        numbers = np.zeros((len(self._cells), NUMBERS), np.float32)
        numbers[:, INTERVAL], numbers[:, SECOND_INTERVAL] = source.low.T
        # Scales the stream's 24-bit numbers to the interval in one factor: a power of two changes only the exponent.
        numbers[:, SCALE] = source.width * np.float32(2.0**-24)
        numbers[:, RATE], numbers[:, OUT_STRENGTH] = rule.rate, rule.out_strength
        numbers[:, STRENGTH], numbers[:, LENGTH] = rule.strength, 1 / rule.length
        return numbers

    def _new_rows(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint64]]:
        """Draw the distinct sets of evaluation rows, and assign them to trials: see `Tables`."""
        pairs = [
            ((cell.interpolation_range, key, Purpose.VALIDATION), (cell.extrapolation_range, key, Purpose.TEST))
            for cell, key in zip(self._cells, self._keys, strict=True)
        ]
        distinct = list(dict.fromkeys(row_set for pair in pairs for row_set in pair))
        x = np.stack([self._draw_rows(*row_set) for row_set in distinct])
        planes = [x, logarithms(x)] if self._network.first.family in (NALU, NAC_MUL) else [x]
        sets = np.array([[distinct.index(row_set) for row_set in pair] for pair in pairs], np.uint64)
        return np.stack(planes, 1), sets

    def _draw_rows(self, range_: Range, key: int, purpose: Purpose) -> npt.NDArray[np.float32]:
        quads, rows = padded(self._cell.input_size, 4) // 4, self._cell.evaluation_rows
        x = np.empty((1, 4 * quads, rows), np.float32)
        fill_inputs(x, np.array([key], np.uint64), *range_arrays([range_]), 0, purpose)
        return x.reshape(quads, 4, rows).transpose(0, 2, 1)

    # --- working ------------------------------------------------------------------------------------------

    def update(self, which: npt.NDArray[np.int64], iteration: int, count: int) -> None:
        """Start `count` updates of the trials at the given places, from `iteration` on."""
        self._blocks.train(which.astype(np.uint64), iteration, count)

    def wait(self, left: int = 0) -> None:
        """Wait until at most `left` calls of `update` are unfinished."""
        self._blocks.wait(left)

    def evaluate(self, which: npt.NDArray[np.int64]) -> Callable[[], dict[str, npt.NDArray[np.float32]]]:
        """Start an evaluation of the trials at the given places.

        Returns:
            A function that waits for the results: validation MSE, test MSE, sparsity error, and ``has_nan``, 1 if a
                parameter is NaN, else 0; each float32 [places].
        """
        pending, rows = self._blocks.evaluate(which.astype(np.uint64)), self._cell.evaluation_rows

        def result() -> dict[str, npt.NDArray[np.float32]]:
            errors, weights = pending()
            mean = (errors.sum(-1) / rows).astype(np.float32)
            return {
                "validation_mse": mean[:, 0], "test_mse": mean[:, 1], "sparsity_error": weights[:, 0],
                "has_nan": weights[:, 1],
            }  # fmt: skip

        return result

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Wait for all updates, and copy weights and optimiser state; each array's first axis is the trial."""
        for array, read in zip(self._arrays.values(), self._blocks.read(), strict=True):
            array[:] = read
        return super().state()


def round_keys(seeds: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """Compute Philox's keys of all rounds, uint32 [trials, 2, 10], from seeds [trials].

    Example:
        >>> [hex(key) for key in round_keys(np.array([7], np.uint64))[0, :, 1]]
        ['0x9e3779c0', '0xbb67ae85']
    """
    halves = np.stack([seeds & np.uint64(_LOW_WORD), seeds >> np.uint64(32)], 1)
    steps = np.array(WEYL, np.uint64)[:, None] * np.arange(ROUNDS, dtype=np.uint64)
    return (halves[:, :, None] + steps).astype(np.uint32)  # modulo 2**32


def chunks(rows: int) -> int:
    """Count the chunks of up to `EVALUATED_ROWS` evaluation rows; each takes a block of threads."""
    return -(-rows // EVALUATED_ROWS)


@entry
def _logarithms(x, logs):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        logs[k] = logarithm(x[k])


def logarithms(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Compute log(|x| + 1e-7) with x's shape, bit for bit as the fused engines' units do."""
    logs = np.empty(x.size, np.float32)
    _logarithms(x.reshape(-1), logs)
    return logs.reshape(x.shape)
