"""Initial weights of a pack's trials, each drawn from the trial's own stream."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tasks.stream import Purpose, uniforms
from units import Unit


def initial_weights(
    layers: Iterable[tuple[str, type[Unit], tuple[int, int]]],
    seeds: npt.NDArray[np.uint64],
    variances: Sequence[float | None],
) -> dict[str, npt.NDArray[np.float32]]:
    """Draw every parameter of every trial; each parameter of the network has a counter of its own.

    Args:
        layers: name, unit, and numbers in and out of each layer.
        seeds: uint64 [trials].
        variances: wanted of each trial's initial weights; None for the units' own.

    Returns:
        Name of the layer, a dot, name of the parameter: float32 [trials, ...].
    """
    weights: dict[str, npt.NDArray[np.float32]] = {}
    for layer, unit, sizes in layers:
        before = len(weights)
        numbers: dict[int, Tensor] = {}  # of all trials at once: a call of the stream costs as much for one

        def uniform(
            trial: int,
            index: int,
            shape: Sequence[int],
            before: int = before,
            numbers: dict[int, Tensor] = numbers,
        ) -> Tensor:
            if index not in numbers:
                drawn = uniforms(seeds, math.prod(shape), before + index, Purpose.INITIAL)
                numbers[index] = torch.from_numpy(drawn)
            return numbers[index][trial].reshape(tuple(shape))

        drawn = [
            unit.initial(*sizes, lambda i, shape, t=trial, u=uniform: u(t, i, shape), init_variance=variance)  # type: ignore[misc]
            for trial, variance in enumerate(variances)
        ]
        for name in drawn[0]:
            weights[f"{layer}.{name}"] = torch.stack([values[name] for values in drawn]).numpy()
    return weights
