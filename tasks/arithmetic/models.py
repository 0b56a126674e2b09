"""The models of the arithmetic task: their two units, and their published regulariser schedules.

It has names and numbers only; `tasks.arithmetic.networks` builds the networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tasks.arithmetic.module_training import BOUNDED, MODULE_TRAININGS, ModuleTraining
from tasks.arithmetic.own_units import is_own, traits_of
from units.traits import TRAITS

if TYPE_CHECKING:
    from units import Unit

SINGLE_MODULE = "single-module"
"""The name of the one-layer task."""

INALUS = ("iNALU", "iNALU-Primer")
"""The units trained with an outward regulariser and restarts."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model: the units of a network, and the schedule of its regulariser.

    Args:
        name: key in `MODELS`, plain ASCII.
        first: unit of the first layer, key in `units.UNITS`.
        second: unit of the second layer; None for one layer.
        sparsity_strength: published λ̂; None for a model without the regulariser.
        sparsity_start: iteration at which λ starts to grow.
        sparsity_end: iteration at which λ reaches λ̂.
        training: published values of other hyperparameters, by name.
    """

    name: str
    first: str
    second: str | None
    sparsity_strength: float | None = None
    sparsity_start: int | None = None
    sparsity_end: int | None = None
    training: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def has_bounds(self) -> bool:
        """True if a layer has bounded weights: clipped or regularised, and with a sparsity regulariser."""
        return any(traits_of(unit).bounded for unit in self.layers.values())

    @property
    def has_nmu(self) -> bool:
        """True if a layer is an NMU, the only unit whose initial weights take an `init_range`."""
        return "NMU" in self.layers.values()

    @property
    def multiplies_sums(self) -> bool:
        """True if an NMU multiplies the outputs of an NAU, so that first-layer rows may have either sign."""
        return self.layers == {"first": "NAU", "second": "NMU"}

    @property
    def pushes_outward(self) -> bool:
        """True if a layer is an iNALU; it has its own regulariser and restarts."""
        return any(unit in INALUS for unit in self.layers.values())

    @property
    def largest_init_variance(self) -> float:
        """The largest variance possible for the initial weights of all layers.

        It is infinity without a limit, and 0 if it can't be chosen.

        Example:
            >>> round(MODELS["NMU"].largest_init_variance, 4)
            0.0833
        """
        return min(traits_of(unit).largest_init_variance for unit in self.layers.values())

    @property
    def layers(self) -> dict[str, str]:
        """The unit of each layer, by the layer's name, ``first`` or ``second``.

        Example:
            >>> MODELS["NMU"].layers, single_layer("NMU").layers
            ({'first': 'NAU', 'second': 'NMU'}, {'first': 'NMU'})
        """
        named = {"first": self.first, "second": self.second}
        return {layer: unit for layer, unit in named.items() if unit is not None}

    def sizes(self, input_size: int, hidden_size: int) -> dict[str, tuple[int, int]]:
        """Return the numbers of inputs and outputs of each layer.

        Args:
            input_size: numbers in one input row.
            hidden_size: hidden units; 1, the output, for one layer.

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
    start, end = 1_000_000, 2_000_000
    return Model(name=name, first=first, second=second, sparsity_strength=10.0, sparsity_start=start, sparsity_end=end)


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
    _late("NPU", "NAU", "NPU"),
    _late("RealNPU", "NAU", "RealNPU"),
    _late("RealNPU-modified", "NAU", "RealNPU-modified"),
    _late("NRU", "NAU", "NRU"),
    _late("NMRU", "NAU", "NMRU"),
    _same("iNALU"),
    _same("iNALU-Primer"),
    _same("G-NALU"),
    _activation("tanh"),
    _activation("sigmoid"),
    _activation("softsign"),
    _activation("SELU"),
    _activation("ELU"),
)

MODELS: dict[str, Model] = {model.name: model for model in _ALL}
"""The two-layer models, by name."""


class NetworksOfUnits:
    """The two-layer models as networks for any task."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(MODELS)

    def layers(self, name: str) -> tuple[type[Unit], type[Unit]]:
        """Return the classes of a model's units, first and second layer.

        Raises:
            KeyError: if the model is unknown.
        """
        from units import UNITS

        return UNITS[MODELS[name].first], UNITS[str(MODELS[name].second)]


NETWORKS_OF_UNITS = NetworksOfUnits()
"""The models as a `study.plugins.packed_tasks.ModelSet`."""

SINGLE_LAYERS = tuple(model.name for model in _ALL if model.second != "linear" or model.first == "linear")
"""The models whose second unit is meaningful as a single layer; an activation's second layer is linear."""


def single_layer(name: str, input_size: int = 2) -> Model:
    """Return the one-layer model of a model's second unit, as trained on the single-module task.

    Where a model is named after its second unit, its first layer only selects inputs.

    Args:
        name: key in `MODELS`.
        input_size: numbers in one input row; with more than two, other published values apply to some models, such as
            a later start of the regulariser.

    Raises:
        KeyError: if the model is unknown.

    Source: see `tasks.arithmetic.module_training`.

    Example:
        >>> model = single_layer("NMU", 10)
        >>> model.layers, model.sparsity_start, model.sparsity_end
        ({'first': 'NMU'}, 50000, 75000)
    """
    model = MODELS[name]
    is_bounded = model.second in TRAITS and bool(TRAITS[model.second].bounded)
    training = MODULE_TRAININGS.get(name, BOUNDED if is_bounded else ModuleTraining()).at(input_size)
    strength = training.pop("sparsity_strength", model.sparsity_strength if is_bounded else None)
    ramp = {end: training.pop(end, None) for end in ("sparsity_start", "sparsity_end")}
    return Model(name=name, first=str(model.second), second=None, sparsity_strength=strength, **ramp, training=training)


def model_of(task: str, name: str, input_size: int = 2) -> Model:
    """Return the model to be trained on a task of the arithmetic family.

    Args:
        task: name in `tasks.arithmetic.TASKS`.
        name: key in `MODELS`, or the key of a registered user-defined unit.
        input_size: numbers in one input row.

    Raises:
        KeyError: if the model is neither built in nor a registered unit.

    Example:
        >>> model_of("arithmetic", "NMU").layers, model_of("single-module", "NMU").layers
        ({'first': 'NAU', 'second': 'NMU'}, {'first': 'NMU'})
    """
    if is_own(name):
        return own_model(name, 1 if task == SINGLE_MODULE else 2)
    return single_layer(name, input_size) if task == SINGLE_MODULE else MODELS[name]


def own_model(unit: str, layers: int) -> Model:
    """Return the model of a user-defined unit in one or two layers.

    The default start and end of its sparsity regulariser are the NMU's; there is no default strength.

    Args:
        unit: its key in `tasks.arithmetic.own_units`.
        layers: 1 or 2.
    """
    ramp: dict[str, Any] = {"sparsity_start": MODELS["NMU"].sparsity_start, "sparsity_end": MODELS["NMU"].sparsity_end}
    return Model(name=unit, first=unit, second=unit if layers == 2 else None, **ramp)
