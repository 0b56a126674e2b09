"""The networks of the arithmetic task, input -> hidden -> 1, made of a model's two units."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tasks.models import Model
from units import UNITS, Unit
from units.unit import Bounds


class Network(nn.Module):
    """Compute second(first(x)), input -> hidden -> 1.

    Args:
        model: which units.
        input_size: numbers in one input row, >= 1.
        hidden_size: hidden units, >= 1.
        trials: None for one network; otherwise every parameter has a leading axis of that many trials.
        init_variance: variance of both layers' initial weights; None for each unit's own default.
        bounds: ``clipped`` or ``regularized``, see `units.unit.Unit`.
        generator: source of the initial weights; None for torch's default generator.
        dtype: of the parameters; None for torch's default.

    Raises:
        ValueError: if a size is below 1 or the variance is impossible.

    Example:
        >>> from tasks import MODELS
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
        first, second = (
            UNITS[unit](
                *sizes, trials=trials, init_variance=init_variance, bounds=bounds, generator=generator, dtype=dtype
            )
            for unit, sizes in ((model.first, (input_size, hidden_size)), (model.second, (hidden_size, 1)))
        )
        self.first: Unit = first
        self.second: Unit = second

    @property
    def layers(self) -> list[Unit]:
        """Both layers, first to last."""
        return [self.first, self.second]

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output.

        Args:
            x: shape [..., batch, input_size].

        Returns:
            Shape [..., batch, 1].
        """
        hidden: Tensor = self.first(x)
        output: Tensor = self.second(hidden)
        return output
