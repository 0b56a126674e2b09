"""Networks of units for the arithmetic tasks, input -> hidden -> output."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from tasks.arithmetic.models import Model
from tasks.arithmetic.own_units import class_of
from units import Unit
from units.unit import Bounds


class Network(nn.Module):
    """A network that computes second(first(x)), input -> hidden -> 1; with one layer first(x), input -> 1.

    Args:
        model: its units.
        input_size: numbers in one input row, >= 1.
        hidden_size: hidden units, >= 1; 1 for a one-layer model.
        trials: size of the leading axis of every parameter, one network a trial; None for one network without that
            axis.
        init_variance: variance of both layers' initial weights; None for each unit's own default.
        bounds: ``clipped`` or ``regularized``, see `units.unit.Unit`.
        generator: source of the initial weights; None for torch's default generator.
        dtype: of the parameters; None for torch's default.

    Raises:
        ValueError: if a size is below 1, or the variance or `bounds` is impossible.
        KeyError: if a unit is unknown, or its code isn't available.

    Example:
        >>> from tasks.arithmetic import MODELS
        >>> Network(MODELS["NMU"], 100, 2, trials=3)(torch.ones(128, 100)).shape
        torch.Size([3, 128, 1])
    """

    def __init__(
        self,
        model: Model,
        input_size: int,
        hidden_size: int,
        *,
        trials: int | None = None,
        init_variance: float | None = None,
        bounds: Bounds = "clipped",
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        sizes = model.sizes(input_size, hidden_size)
        layers = {
            layer: class_of(unit)(
                *sizes[layer], trials=trials, init_variance=init_variance, bounds=bounds, generator=generator,
                dtype=dtype
            )
            for layer, unit in model.layers.items()
        }  # fmt: skip
        self.first: Unit = layers["first"]
        self.second: Unit | None = layers.get("second")

    @property
    def layers(self) -> list[Unit]:
        """The layers, first to last."""
        return [self.first] if self.second is None else [self.first, self.second]

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output.

        Args:
            x: shape [..., batch, input_size]; with `trials`, [trials, batch, input_size], or [batch, input_size] if all
                trials share it.

        Returns:
            Shape [..., batch, 1]; with `trials`, [trials, batch, 1].
        """
        output: Tensor = self.first(x)
        return output if self.second is None else cast("Tensor", self.second(output))
