"""What the compiled engines know of a pack: its trials' state, and what their loops need of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from study.engine.compiled import codes
from study.engine.compiled.codes import CODES, Code
from study.engine.evaluation_rows import range_arrays
from study.engine.initial_weights import initial_weights
from study.engine.task import task_of
from study.records import Trial
from tasks import MODELS, OPERATIONS
from tasks.stream import Purpose, uniforms
from units import UNITS
from units.regularize import LIMITS

_OPTIMIZERS = {"adam": codes.ADAM, "sgd": codes.SGD, "momentum": codes.MOMENTUM}
_KINDS = ("weight", "first", "second")
PREFIX = "part/"

Arrays = Mapping[str, npt.NDArray[Any]]


class PackArrays:
    """The arrays of a pack's trials: parameters and the optimiser's moments, a row a trial, and what moves them.

    Args:
        trials: of equal tensor shape.
        state: what `state` gave of these trials; None to draw initial weights.
    """

    def __init__(self, trials: Sequence[Trial], state: Arrays | None = None) -> None:
        self._cells = [trial.cell for trial in trials]
        cell = self._cell = self._cells[0]
        self._seeds = np.array([trial.seed for trial in trials], np.uint64)
        self._units = [UNITS[name] for name in (MODELS[cell.model].first, MODELS[cell.model].second)]
        self._sizes = ((cell.input_size, cell.hidden_size), (cell.hidden_size, 1))
        initial = self._initial()
        self._shapes = {name: array.shape[1:] for name, array in initial.items()}
        self._arrays = {kind: np.zeros((len(trials), self._count()), np.float32) for kind in _KINDS}
        self._load(initial if state is None else state, state is not None)
        self._network = self._new_network()
        self._moves = self._new_moves()
        self._question = self._new_question()
        self._source = codes.Draw(
            int(Purpose.TRAIN), self._seeds, *range_arrays([c.interpolation_range for c in self._cells])
        )

    def _initial(self) -> dict[str, npt.NDArray[np.float32]]:
        layers = zip(("first", "second"), self._units, self._sizes, strict=True)
        return initial_weights(layers, self._seeds, [cell.init_variance for cell in self._cells])

    def _count(self) -> int:
        return sum(math.prod(shape) for shape in self._shapes.values())

    def _views(self) -> dict[str, npt.NDArray[np.float32]]:
        views, at = {}, 0
        for name, shape in self._shapes.items():
            end = at + math.prod(shape)
            for kind in _KINDS:
                views[f"{kind}/{name}"] = self._arrays[kind][:, at:end]
            at = end
        return views

    def _load(self, values: Arrays, whole: bool) -> None:
        for name, view in self._views().items():
            if whole:
                view[:] = values[PREFIX + name].reshape(view.shape)
            elif name.startswith("weight/"):
                view[:] = values[name.removeprefix("weight/")].reshape(view.shape)

    def _new_network(self) -> codes.Network:
        cell, model = self._cell, MODELS[self._cell.model]
        layers = []
        for name, unit in zip((model.first, model.second), self._units, strict=True):
            code = CODES[name]
            if cell.bounds == "regularized" and unit.traits.bounded:
                low, high = LIMITS[next(iter(unit.traits.bounded.values()))]
                code = code._replace(low=np.float32(low), high=np.float32(high))
            layers.append(_typed(code))
        first = sum(math.prod(shape) for name, shape in self._shapes.items() if name.startswith("first."))
        return codes.Network(cell.input_size, cell.hidden_size, layers[0], layers[1], first)

    def _new_moves(self) -> codes.Moves:
        cell, cells = self._cell, self._cells
        sizes, share, low, high, of_nau = [], [], [], [], []
        for name, shape in self._shapes.items():
            layer, parameter = name.split(".")
            kind = self._units[layer == "second"].traits.bounded.get(parameter)
            bounds = LIMITS[kind] if kind and cell.bounds == "clipped" else (-np.inf, np.inf)
            sizes.append(math.prod(shape))
            share.append(1 / sizes[-1] if kind else 0)
            low.append(bounds[0])
            high.append(bounds[1])
            of_nau.append(kind == "NAU")
        start = np.array([c.sparsity_start or 0 for c in cells], np.float64)
        end = np.array([c.sparsity_end or 1 for c in cells], np.float64)
        regularized = cell.bounds == "regularized"
        return codes.Moves(
            optimizer=_OPTIMIZERS[cell.optimizer],
            momentum=np.float32(cell.momentum or 0),
            rate=np.array([c.learning_rate for c in cells], np.float32),
            squared=any(c.sparsity_shape == "squared" for c in cells),
            strength=np.array([c.sparsity_strength or 0.0 for c in cells]),
            start=start,
            length=np.maximum(end - start, 1),
            exponential=np.array([c.sparsity_scaling == "exponential" for c in cells]),
            out_strength=np.array(
                [(c.out_of_bounds_strength or 0.0) if regularized else 0.0 for c in cells], np.float32
            ),
            out_squared=cell.out_of_bounds_shape == "squared",
            ends=np.cumsum(sizes),
            share=np.array(share, np.float32),
            low=np.array(low, np.float32),
            high=np.array(high, np.float32),
            of_nau=np.array(of_nau),
        )

    def _new_question(self) -> codes.Question:
        task = task_of(self._cell)
        places = uniforms(self._seeds, 1, 0, Purpose.OFFSET)[:, 0]
        masks = np.stack([task.masks(task.offset(float(place))) for place in places])
        starts = masks.argmax(-1)
        # Subsets are without gaps: their ends say all.
        return codes.Question(
            OPERATIONS.index(task.operation), starts, starts + masks.sum(-1).astype(np.int64)
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy weights and optimiser state out; each array's first axis is the trial."""
        trials = len(self._cells)
        return {
            PREFIX + name: view.reshape(trials, *self._shapes[name.split("/", 1)[1]]).copy()
            for name, view in self._views().items()
        }


def _typed(code: Code) -> Code:
    """Give all fields the types compiled code expects, so that it is compiled once."""
    return Code(
        code.family,
        code.weights,
        code.activation,
        bool(code.shared),
        np.float32(code.low),
        np.float32(code.high),
    )
