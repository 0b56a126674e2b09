"""The models of the arithmetic task: their two units, and the published schedules of their regulariser.

Names and numbers only; `tasks.networks` makes networks of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from units.traits import TRAITS


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model: the units of a network, and the schedule of its regulariser.

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
    def has_bounds(self) -> bool:
        """Whether a layer has bounded weights, which are clipped or regularised, and drawn to discrete values."""
        return any(TRAITS[unit].bounded for unit in (self.first, self.second))

    @property
    def largest_init_variance(self) -> float:
        """The largest variance that the initial weights of both layers can have; infinity without a limit.

        Example:
            >>> round(MODELS["NMU"].largest_init_variance, 4)
            0.0833
        """
        return min(TRAITS[unit].largest_init_variance for unit in (self.first, self.second))


def _same(name: str) -> Model:
    return Model(name=name, first=name, second=name)


def _activation(name: str) -> Model:
    return Model(name=name, first=name, second="linear")


def _late(name: str, first: str, second: str) -> Model:
    schedule = {"sparsity_start": 1_000_000, "sparsity_end": 2_000_000}
    return Model(name=name, first=first, second=second, sparsity_strength=10.0, **schedule)


_ALL = (
    _late("NMU", "NAU", "NMU"),
    Model(name="NAU", first="NAU", second="NAU", sparsity_strength=0.01, sparsity_start=5_000, sparsity_end=50_000),
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
