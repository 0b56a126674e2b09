"""The models of the arithmetic task: their two units, and the published schedules of their regulariser.

Names and numbers only; `tasks.networks` makes networks of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from units.traits import TRAITS

SINGLE_MODULE = "single-module"
"""The task of one layer."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model: the units of a network, and the schedule of its regulariser.

    Args:
        name: key in `MODELS`, plain ASCII.
        first: unit of the first layer, key in `units.UNITS`.
        second: unit of the second layer; None if there is but one.
        sparsity_strength: published λ̂; None for a model without the regulariser.
        sparsity_start: iteration at which λ starts to grow.
        sparsity_end: iteration at which λ reaches λ̂.
    """

    name: str
    first: str
    second: str | None
    sparsity_strength: float | None = None
    sparsity_start: int | None = None
    sparsity_end: int | None = None

    @property
    def has_bounds(self) -> bool:
        """Whether a layer has bounded weights, which are clipped or regularised, and drawn to discrete values."""
        return any(TRAITS[unit].bounded for unit in self.layers.values())

    @property
    def largest_init_variance(self) -> float:
        """The largest variance that the initial weights of both layers can have; infinity without a limit.

        Example:
            >>> round(MODELS["NMU"].largest_init_variance, 4)
            0.0833
        """
        return min(TRAITS[unit].largest_init_variance for unit in self.layers.values())

    @property
    def layers(self) -> dict[str, str]:
        """The unit of each layer, under the layer's name, ``first`` or ``second``.

        Example:
            >>> MODELS["NMU"].layers, single_layer("NMU").layers
            ({'first': 'NAU', 'second': 'NMU'}, {'first': 'NMU'})
        """
        named = {"first": self.first, "second": self.second}
        return {layer: unit for layer, unit in named.items() if unit is not None}

    def sizes(self, input_size: int, hidden_size: int) -> dict[str, tuple[int, int]]:
        """Give the numbers in and the numbers out of each layer.

        Args:
            input_size: numbers in one input row.
            hidden_size: hidden units; 1, the output, if there is but one layer.

        Example:
            >>> MODELS["NMU"].sizes(100, 2), single_layer("NMU").sizes(100, 1)
            ({'first': (100, 2), 'second': (2, 1)}, {'first': (100, 1)})
        """
        of_layers = {"first": (input_size, hidden_size), "second": (hidden_size, 1)}
        return {layer: of_layers[layer] for layer in self.layers}


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
"""The models of two layers, by name."""

SINGLE_LAYERS = tuple(model.name for model in _ALL if model.second != "linear" or model.first == "linear")
"""The models whose second unit can stand alone as what they are; an activation's second layer is linear."""


def single_layer(name: str, input_size: int = 2) -> Model:
    """Return the model of one layer that a model's second unit is, with the schedule of the single-module task.

    What is named after its second unit has another in the first layer, which only selects: alone, it is the second.

    Args:
        name: key in `MODELS`.
        input_size: numbers in one input row; with more than two, the regulariser comes later.

    Source: Mistry, Farrahi & Hare, "A Primer for Neural Arithmetic Logic Modules", JMLR 2022.

    Example:
        >>> model = single_layer("NMU", 10)
        >>> model.layers, model.sparsity_start, model.sparsity_end
        ({'first': 'NMU'}, 50000, 75000)
    """
    model = MODELS[name]
    start, end = (20_000, 35_000) if input_size <= 2 else (50_000, 75_000)
    schedule = {} if model.sparsity_strength is None else {"sparsity_start": start, "sparsity_end": end}
    return Model(name=name, first=str(model.second), second=None, sparsity_strength=model.sparsity_strength, **schedule)


def model_of(task: str, name: str, input_size: int = 2) -> Model:
    """Return the model that is trained on a task of the arithmetic family.

    Args:
        task: name in `tasks.TASKS`.
        name: key in `MODELS`.
        input_size: numbers in one input row.

    Example:
        >>> model_of("arithmetic", "NMU").layers, model_of("single-module", "NMU").layers
        ({'first': 'NAU', 'second': 'NMU'}, {'first': 'NMU'})
    """
    return single_layer(name, input_size) if task == SINGLE_MODULE else MODELS[name]
