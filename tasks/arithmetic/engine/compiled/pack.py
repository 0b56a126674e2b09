"""The state of a pack's trials in the compiled engines, and the constants of their loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from study.records import Trial
from study.stream.stream import Purpose
from tasks.arithmetic import OPERATIONS
from tasks.arithmetic.cell import task_of, typed_cell
from tasks.arithmetic.engine.compiled.codes import CODES, NO_LAYER, Code, InputStream, Network, Target
from tasks.arithmetic.engine.compiled.formulas import SETTLED, bias_corrections
from tasks.arithmetic.engine.shared.evaluation_rows import range_arrays
from tasks.arithmetic.engine.shared.initial_weights import KINDS, PREFIX, initial_state, under
from tasks.arithmetic.engine.shared.task import masks_of
from tasks.arithmetic.engine.shared.update_rule import UpdateRule, new_update_rule
from units.regularize import LIMITS
from units.traits import TRAITS

Arrays = Mapping[str, npt.NDArray[Any]]


class PackArrays:
    """The arrays of a pack's trials: parameters and optimiser moments, one row a trial, and their update rule.

    Args:
        trials: trials of equal tensor shape.
        state: the result of `state` for these trials; None to draw initial weights.
    """

    def __init__(self, trials: Sequence[Trial], state: Arrays | None = None) -> None:
        self._cells = [typed_cell(trial.cell) for trial in trials]
        cell = self._cell = self._cells[0]
        self._data_seeds = np.array([trial.sources.data for trial in trials], np.uint64)
        initial = initial_state(trials)
        self._shapes = {name: array.shape[1:] for name, array in under(initial, PREFIX + "weight/").items()}
        self._arrays = {kind: np.zeros((len(trials), self._count()), np.float32) for kind in KINDS}
        for name, view in self._views().items():
            view[:] = (initial if state is None else state)[name].reshape(view.shape)
        self._network = self._new_network()
        self._rule = new_update_rule(self._cells, self._shapes)
        self._corrections = corrections(cell.iterations + 1)
        self._target = self._new_target()
        ranges = range_arrays([c.interpolation_range for c in self._cells])
        self._source = InputStream(int(Purpose.TRAIN), self._data_seeds, *ranges)

    @property
    def network(self) -> Network:
        """The trials' network."""
        return self._network

    @property
    def target(self) -> Target:
        """The trials' targets."""
        return self._target

    @property
    def rule(self) -> UpdateRule:
        """The update rule of the parameters."""
        return self._rule

    @property
    def parameters(self) -> int:
        """The number of a trial's parameters."""
        return self._count()

    def _count(self) -> int:
        return sum(math.prod(shape) for shape in self._shapes.values())

    def _views(self) -> dict[str, npt.NDArray[np.float32]]:
        views, at = {}, 0
        for name, shape in self._shapes.items():
            end = at + math.prod(shape)
            for kind in KINDS:
                views[f"{PREFIX}{kind}/{name}"] = self._arrays[kind][:, at:end]
            at = end
        return views

    def _new_network(self) -> Network:
        cell, model = self._cell, self._cell.network
        first, second = (_code(unit, regularized=cell.bounds == "regularized") for unit in (model.first, model.second))
        middle = sum(math.prod(shape) for name, shape in self._shapes.items() if name.startswith("first."))
        return Network(cell.input_size, cell.hidden_size, first, second, middle)

    def _new_target(self) -> Target:
        task = task_of(self._cell)
        masks = masks_of(task, self._data_seeds)
        starts = masks.argmax(-1)
        # Subsets are contiguous, so their ends define them.
        return Target(OPERATIONS.index(task.operation), starts, starts + masks.sum(-1).astype(np.int64))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy weights and optimiser state out; each array's first axis is the trial."""
        trials = len(self._cells)
        return {
            name: view.reshape(trials, *self._shapes[name.rsplit("/", 1)[1]]).copy()
            for name, view in self._views().items()
        }

    def move_to(self, arrays: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Move parameters and moments into other arrays, and use these from then on.

        Args:
            arrays: float32 [trials, parameters or more], for each of `KINDS`; the first columns are written.
        """
        for kind, array in arrays.items():
            place = array[:, : self._count()]
            place[:] = self._arrays[kind]
            self._arrays[kind] = place

    def parameters_by_name(self) -> dict[str, npt.NDArray[np.float32]]:
        """Copy the parameters out, [trials, ...] by name."""
        return under(self.state(), f"{PREFIX}weight/")

    def has_nan(self) -> npt.NDArray[np.bool_]:
        """Return True for each trial with a parameter that is NaN, bool [trials]."""
        return np.asarray(np.isnan(self._arrays["weight"]).any(1))


@lru_cache(maxsize=8)
def corrections(iterations: int) -> npt.NDArray[np.float32]:
    """Tabulate Adam's bias corrections of every iteration, or until both are 1; the last row then holds from there on.

    Args:
        iterations: number of iterations, >= 1.

    Returns:
        Float32 [min(iterations, `SETTLED`), 2], read-only.

    Example:
        >>> corrections(5_000_001)[[0, -1]].tolist()
        [[10.0, 31.622776...], [1.0, 1.0]]
    """
    steps = range(1, min(iterations, SETTLED) + 1)
    table = np.array([bias_corrections(step) for step in steps], np.float32)
    table.flags.writeable = False
    return table


def _code(unit: str | None, *, regularized: bool) -> Code:
    """Return a unit's `Code`, or `NO_LAYER` for None, with its bounds if ``regularized`` and all fields' types fixed.

    Fixed types avoid recompilation.
    """
    code, bounded = (NO_LAYER, {}) if unit is None else (CODES[unit], TRAITS[unit].bounded)
    low, high = LIMITS[next(iter(bounded.values()))] if regularized and bounded else (code.low, code.high)
    return Code(code.family, code.weights, code.activation, bool(code.shared), np.float32(low), np.float32(high))
