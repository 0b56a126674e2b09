"""The networks of the arithmetic task, input -> hidden -> 1: two units and their published schedule."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from units import UNITS, Unit
from units.unit import Bounds


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a network is made of.

    Args:
        name: key in `MODELS`, plain ASCII.
        first: unit of the first layer, key in `units.UNITS`.
        second: unit of the second layer.
        sparsity_strength: published λ̂; None for a model without the regulariser.
        sparsity_start: iteration at which λ starts to grow.
        sparsity_end: iteration at which λ reaches λ̂.
    """

    name: str
    first: str
    second: str
    sparsity_strength: float | None = None
    sparsity_start: int | None = None
    sparsity_end: int | None = None

    @property
    def units(self) -> tuple[type[Unit], type[Unit]]:
        """The units of both layers."""
        return UNITS[self.first], UNITS[self.second]

    @property
    def has_bounds(self) -> bool:
        """Say whether any layer has bounded weights, to be clipped or regularised."""
        return any(unit.bounded for unit in self.units)

    @property
    def has_sparsity(self) -> bool:
        """Say whether any layer has a sparsity regulariser: the bounded weights do."""
        return self.has_bounds


def _same(name: str) -> Model:
    return Model(name=name, first=name, second=name)


def _activation(name: str) -> Model:
    return Model(name=name, first=name, second="linear")


def _late(name: str, first: str, second: str) -> Model:
    schedule = {"sparsity_start": 1_000_000, "sparsity_end": 2_000_000}
    return Model(name=name, first=first, second=second, sparsity_strength=10.0, **schedule)


_ALL = (
    _late("NMU", "NAU", "NMU"),
    Model(
        name="NAU",
        first="NAU",
        second="NAU",
        sparsity_strength=0.01,
        sparsity_start=5_000,
        sparsity_end=50_000,
    ),
    _same("NALU"),
    _same("NAC-add"),
    Model(name="NAC-mul", first="NAC-add", second="NAC-mul"),
    Model(name="NAC-mul-sigma", first="NAC-add", second="NAC-mul-sigma"),
    _late("NAC-mul-NMU", "NAU", "NAC-mul-NMU"),
    _late("gated-NAU-NMU", "gated-NAU-NMU", "gated-NAU-NMU"),
    _same("linear"),
    _activation("ReLU"),
    _activation("ReLU6"),
    _same("NALU-separate"),
    _late("NMU-normalized", "NAU", "NMU-normalized"),
    _activation("tanh"),
    _activation("sigmoid"),
    _activation("softsign"),
    _activation("SELU"),
    _activation("ELU"),
)

MODELS: dict[str, Model] = {model.name: model for model in _ALL}


def largest_init_variance(model: Model, input_size: int, hidden_size: int) -> float:
    """Give the largest variance that the initial weights of both layers can have.

    Args:
        model: one of `MODELS`.
        input_size: numbers in one input row.
        hidden_size: hidden units.

    Returns:
        The smaller of both layers' limits; infinity if neither has one.

    Example:
        >>> round(largest_init_variance(MODELS["NMU"], 100, 2), 4)
        0.0833
    """
    first, second = model.units
    return min(
        first.largest_init_variance(input_size, hidden_size), second.largest_init_variance(hidden_size, 1)
    )


class Network(nn.Module):
    """Compute second(first(x)), input -> hidden -> 1.

    Args:
        model: which units.
        input_size: numbers in one input row, >= 1.
        hidden_size: hidden units, >= 1.
        trials: None for one network; otherwise every parameter has a leading axis of that many trials.
        init_variance: variance of both layers' initial weights; None for each unit's own default.
        bounds: ``clipped`` or ``regularized``, see `units.unit.Unit`.
        generator: where the initial weights come from; None for torch's default generator.
        dtype: of the parameters; None for torch's default.

    Raises:
        ValueError: if a size is below 1 or the variance is impossible.

    Example:
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
            unit(
                *sizes,
                trials=trials,
                init_variance=init_variance,
                bounds=bounds,
                generator=generator,
                dtype=dtype,
            )
            for unit, sizes in zip(model.units, ((input_size, hidden_size), (hidden_size, 1)), strict=True)
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
