"""The weights of a pack's trials in one array; the parameters are views of it.

Each row of the array is a trial. Each parameter begins on a cache line of its row, since BLAS rounds depending on where
a matrix begins in memory. One optimiser step passes over the whole array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

_ALIGNED = 16


class FlatWeights:
    """The trainable parameters of a model, and arrays of the same layout.

    Args:
        module: a module with these parameters; all trials have the same shapes.
        trials: number of rows.
        moments: names of the optimiser's arrays.
        device: device of the arrays.

    Raises:
        ValueError: unless the module has trainable parameters, all float32 or all float64.

    Example:
        >>> flat = FlatWeights(nn.Linear(3, 2), 5, ["first"])
        >>> {name: tuple(part.shape) for name, part in flat.parts("weight").items()}
        {'weight': (5, 2, 3), 'bias': (5, 2)}
        >>> flat.arrays["first"].shape
        torch.Size([5, 32])
    """

    def __init__(self, module: nn.Module, trials: int, moments: list[str], *, device: str = "cpu") -> None:
        parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
        dtypes = {p.dtype for p in parameters.values()}
        if len(dtypes) != 1 or not dtypes <= {torch.float32, torch.float64}:
            given = ", ".join(sorted(map(str, dtypes))) or "none"
            raise ValueError(f"a model's trainable parameters must be all float32 or all float64, but it has {given}")
        starts = np.cumsum([0, *(-(-p.numel() // _ALIGNED) * _ALIGNED for p in parameters.values())]).tolist()
        self._places = {name: (at, p.shape) for at, (name, p) in zip(starts, parameters.items(), strict=False)}
        self.arrays: dict[str, Tensor] = {
            kind: torch.zeros(trials, starts[-1], dtype=next(iter(dtypes)), device=device)
            for kind in ("weight", "gradient", *moments)
        }
        self.moments = moments
        self.leaves = {name: part.detach().requires_grad_() for name, part in self.parts("weight").items()}
        """The parameters as leaves of autograd; they share the memory of the weights."""
        self._gradients = self.parts("gradient")

    def parts(self, kind: str) -> dict[str, Tensor]:
        """Return each parameter's part of the named array, [trials, *shape], by name.

        Raises:
            KeyError: if there is no array of this name.
        """
        return self.parts_of(self.arrays[kind])

    def copied(self, kind: str, rows: int) -> dict[str, npt.NDArray[Any]]:
        """Copy out each parameter's part of the named array's first rows, by name: [rows, *shape].

        Raises:
            KeyError: if there is no array of this name.
        """
        parts = self.parts_of(self.arrays[kind][:rows].cpu())
        return {name: part.numpy().copy() for name, part in parts.items()}

    def parts_of(self, array: Tensor) -> dict[str, Tensor]:
        """Return each parameter's part of an array with this layout, [trials, *shape], by name."""
        return {
            name: array[:, at : at + shape.numel()].view(len(array), *shape)
            for name, (at, shape) in self._places.items()
        }

    def set_gradient(self, gradients: Mapping[str, Tensor | None], row: slice | int = slice(None)) -> None:
        """Copy gradients by parameter, of all rows or one, into the array ``gradient``; a missing one or None is 0."""
        fill({name: part[row] for name, part in self._gradients.items()}, gradients)


def fill(parts: Mapping[str, Tensor], gradients: Mapping[str, Tensor | None]) -> None:
    """Copy gradients into the parts of an array by name; a gradient that is missing or None is 0."""
    for name, part in parts.items():
        gradient = gradients.get(name)
        if gradient is None:
            part.zero_()
        else:
            part.copy_(gradient)
