"""The initial state of a pack's trials: weights from each trial's own stream, and moments of 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.records import Trial
from study.stream.stream import Purpose, uniforms
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.distributions import uniform_mean
from tasks.arithmetic.engine.shared.initial_signs import two_negative
from tasks.arithmetic.init_seed import init_seed
from tasks.arithmetic.own_units import class_of
from units import Unit
from units.initialize import Sizes
from units.nmu import NMU, nmu_initial_in

PREFIX = "part/"
"""Prefix of the names of a checkpoint's arrays with weights and optimiser state."""

KINDS = ("weight", "first", "second")
"""The arrays of each parameter: the parameter itself, and the optimiser's two moments."""


def under(arrays: Mapping[str, npt.NDArray[Any]], prefix: str, new: str = "") -> dict[str, npt.NDArray[Any]]:
    """Select the arrays whose names begin with a prefix, and replace the prefix by `new`, or by default remove it.

    Example:
        >>> list(under({"part/weight/first.weight": np.ones(1), "score/best": np.ones(1)}, PREFIX + "weight/"))
        ['first.weight']
    """
    return {new + name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def initial_state(trials: Sequence[Trial]) -> dict[str, npt.NDArray[np.float32]]:
    """Draw every parameter of every trial, with moments of 0; see `two_negative` for cells with `init_signs`.

    Args:
        trials: trials of equal tensor shape.

    Returns:
        Float32 [trials, ...] under ``part/KIND/LAYER.PARAMETER``, where KIND is one of `KINDS` and LAYER is ``first``
            or ``second``; in the order of the network's parameters.

    Raises:
        KeyError: if a unit is unknown, or its code isn't available.
        ValueError: if a unit's weights can't have the cell's `init_variance`.

    Example:
        >>> from study.spec.cells import canonical_cell
        >>> state = initial_state([Trial(canonical_cell("simple", "NMU", {"hidden_size": 3}), seed=7)])
        >>> {name: array.shape for name, array in state.items() if "weight/" in name}
        {'part/weight/first.weight': (1, 3, 4), 'part/weight/second.weight': (1, 1, 3)}
    """
    cell = typed_cell(trials[0].cell)
    sizes = cell.network.sizes(cell.input_size, cell.hidden_size)
    weights: dict[str, Tensor] = {}
    for layer, unit in cell.network.layers.items():
        values = _layer(class_of(unit), sizes[layer], trials, len(weights))
        weights |= {f"{layer}.{name}": value for name, value in values.items()}
    if cell.init_signs is not None:
        means = [uniform_mean(typed_cell(trial.cell).interpolation_range) for trial in trials]
        weights["first.weight"] = two_negative(weights["first.weight"], weights["second.weight"], torch.tensor(means))
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    return {
        f"{PREFIX}{kind}/{name}": array if kind == "weight" else np.zeros_like(array)
        for name, array in arrays.items()
        for kind in KINDS
    }


def _layer(unit: type[Unit], sizes: Sizes, trials: Sequence[Trial], counter: int) -> dict[str, Tensor]:
    """Draw the parameters of a layer; each parameter of the network has its own counter, starting at `counter`."""
    seeds = np.array([init_seed(trial) for trial in trials], np.uint64)

    @cache  # for all trials at once: a call of the stream costs as much for one trial
    def draw(index: int, shape: tuple[int, ...]) -> Tensor:
        numbers = uniforms(seeds, math.prod(shape), counter + index, Purpose.INITIAL)
        return torch.from_numpy(numbers).reshape(-1, *shape)

    def initial(place: int) -> dict[str, Tensor]:
        cell = typed_cell(trials[place].cell)
        if cell.init_range is not None and unit is NMU:
            weight = nmu_initial_in(draw(0, sizes[::-1])[place], *cell.init_range[0])
            return {"weight": weight.to(torch.float32)}
        return unit.initial(*sizes, lambda index, shape: draw(index, shape)[place], init_variance=cell.init_variance)

    values = [initial(place) for place in range(len(trials))]
    return {name: torch.stack([drawn[name] for drawn in values]) for name in values[0]}
