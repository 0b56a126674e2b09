"""Base class of all units: layers with known initial weights, bounds, regularisers and sparsity error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from units.initialize import Draw, Sizes, Uniform, generator_uniform
from units.regularize import LIMITS, Kind, Shape, out_of_bounds, sparsity
from units.sparsity import sparsity_error
from units.traits import Traits

Bounds = Literal["clipped", "regularized"]


class Unit(nn.Module, ABC):
    """A layer of neural arithmetic, for one trial or for many at once.

    Args:
        in_features: number of inputs, >= 1.
        out_features: number of outputs, >= 1.
        trials: None for a plain layer; otherwise every parameter has a leading axis of that many trials.
        init_variance: variance of the initial effective weights; None for the unit's default. Gates don't depend on it.
        bounds: ``clipped``: call `clip_` after every optimiser step; ``regularized``: bounded weights are
            clamped in the forward pass only, with zero gradient outside, and `out_of_bounds` belongs in the
            loss.
        generator: source of the initial weights; None for torch's default generator.
        dtype: dtype of the parameters; None for torch's default.

    Raises:
        ValueError: if a size is below 1, `bounds` isn't one of these two, or the weights can't have the variance.

    Example:
        >>> from units import UNITS
        >>> unit = UNITS["NMU"](2, 1)
        >>> _ = unit.load_state_dict({"weight": torch.tensor([[1.0, 0.0]])})
        >>> unit(torch.tensor([[3.0, 7.0]])).item()
        3.0
    """

    traits: ClassVar[Traits] = Traits()
    """Bounded parameters, and the largest variance of initial weights."""

    paths: ClassVar[tuple[str, ...]] = ("W",)
    """Display names of the `effective_weights`, in the same order."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        trials: int | None = None,
        init_variance: float | None = None,
        bounds: Bounds = "clipped",
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, size in (("in_features", in_features), ("out_features", out_features), ("trials", trials)):
            if size is not None and size < 1:
                raise ValueError(f"{name}={size} was given, but {name} >= 1 must hold")
        if bounds not in get_args(Bounds):
            raise ValueError(f"bounds={bounds!r} was given, but it must be 'clipped' or 'regularized'")
        self.in_features = in_features
        self.out_features = out_features
        self.trials = trials
        self.bounds: Bounds = bounds
        uniform = generator_uniform(generator)
        dtype = dtype or torch.get_default_dtype()
        by_trial = [
            self.initial(in_features, out_features, uniform, init_variance=init_variance, dtype=dtype)
            for _ in range(trials or 1)
        ]
        for name, first in by_trial[0].items():
            value = first if trials is None else torch.stack([values[name] for values in by_trial])
            self.register_parameter(name, nn.Parameter(value))

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Compute the output.

        Args:
            x: shape [..., batch, in_features]; with `trials`, [trials, batch, in_features], or
                [batch, in_features] if all trials share it.

        Returns:
            Shape [..., batch, out_features]; in memory the batch is the innermost axis.
        """

    @classmethod
    def initial(
        cls,
        in_features: int,
        out_features: int,
        uniform: Uniform,
        *,
        init_variance: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> dict[str, Tensor]:
        """Compute the initial value of every parameter of one trial, as a pure function of uniform numbers.

        Args:
            in_features: number of inputs.
            out_features: number of outputs.
            uniform: returns float64 numbers uniform on [0, 1) for a parameter's index and shape.
            init_variance: as for the unit.
            dtype: dtype of the result; the computation is in float64.

        Returns:
            Each parameter's value by name, without a trial axis.

        Raises:
            ValueError: if the unit's weights can't have that variance, or their variance can't be chosen.
        """
        shape = (out_features, in_features)
        values = cls.initial_values(shape[::-1], lambda index: uniform(index, shape), init_variance)
        return {name: value.to(dtype) for name, value in values.items()}

    @classmethod
    @abstractmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        """Compute the values of `initial` before their conversion to `dtype`.

        Args:
            sizes: numbers of inputs and outputs.
            uniform: returns float64 numbers uniform on [0, 1), shape [out, in], for a parameter's index from 0 on.
            init_variance: as for the unit.

        Returns:
            Each parameter's value by name, in the parameters' order.

        Raises:
            ValueError: if the unit's weights can't have that variance, or their variance can't be chosen.
        """

    @abstractmethod
    def effective_weights(self) -> list[Tensor]:
        """Return the effective weights W, no gates or biases, each [..., out, in]; for an NMRU [..., out, 2 in]."""

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Parameters to clamp after each optimiser step, with their bounds; empty when ``regularized``."""
        if self.bounds == "regularized":
            return {}
        return {name: LIMITS[kind] for name, kind in self.traits.bounded.items()}

    @property
    def regularisers(self) -> dict[str, Callable[[Tensor], Tensor]]:
        """Linear sparsity regulariser of each bounded parameter, by name; see `units.regularize.sparsity`."""
        return {name: partial(sparsity, kind=kind, shape="linear") for name, kind in self.traits.bounded.items()}

    @torch.no_grad()
    def clip_(self) -> None:
        """Clamp the bounded parameters in place, a no-op when ``regularized``; NaN stays NaN."""
        for name, (low, high) in self.limits.items():
            self._tensor(name).clamp_(low, high)

    def sparsity(self, shape: Shape = "linear") -> Tensor | None:
        """Measure the distance of the bounded parameters from discrete values; see `units.regularize.sparsity`.

        Args:
            shape: ``linear`` or ``squared``.

        Returns:
            The sum over the bounded parameters, not multiplied by a strength: shape [...], one value per trial. None
            if the unit has no bounded parameter.
        """
        return self._sum(sparsity, shape)

    def out_of_bounds(self, shape: Shape = "linear") -> Tensor | None:
        """Measure the excess of the bounded parameters over their bounds; see `units.regularize.out_of_bounds`.

        Args:
            shape: ``linear`` or ``squared``.

        Returns:
            As for `sparsity`; zero after `clip_` when ``clipped``.
        """
        return self._sum(out_of_bounds, shape)

    @torch.no_grad()
    def sparsity_error(self) -> Tensor:
        """Return each trial's largest distance of an effective weight from the nearest of -1, 0 and 1, [...].

        It is NaN if a weight is NaN. Some units override it by the mean of their matrices' errors.
        """
        return sparsity_error(self.effective_weights())

    def extra_repr(self) -> str:
        """Return the sizes, the trials if given, and the bounds if a parameter is bounded, for the repr."""
        text = f"{self.in_features}, {self.out_features}"
        text += f", trials={self.trials}" if self.trials is not None else ""
        return text + (f", bounds={self.bounds!r}" if self.traits.bounded else "")

    def _sum(self, regulariser: Callable[[Tensor, Kind, Shape], Tensor], shape: Shape) -> Tensor | None:
        values = [regulariser(self._tensor(name), kind, shape) for name, kind in self.traits.bounded.items()]
        return sum(values[1:], values[0]) if values else None

    def _tensor(self, name: str) -> Tensor:
        # Not get_parameter: torch.func.functional_call replaces the parameter by a plain tensor.
        tensor: Tensor = getattr(self, name)
        return tensor

    def _within_bounds(self, name: str) -> Tensor:
        parameter = self._tensor(name)
        return parameter.clamp(*LIMITS[self.traits.bounded[name]]) if self.bounds == "regularized" else parameter
