"""Script text of a network's layers: classes, weights and initial weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tasks.arithmetic.cell import ArithmeticCell
from units.traits import TRAITS
from units.variance import nac_reach, sigmoid_std

_LOWEST = {"NAU": -1, "NMU": 0, "sign": -1}
_SIZES = {"first": "INPUT_SIZE, HIDDEN_SIZE", "second": "HIDDEN_SIZE, 1"}
_WITH_MODES = {"NRU", "NMRU"}


@dataclass(frozen=True, kw_only=True)
class ScriptLayer:
    """A layer of a script.

    Args:
        name: its class.
        sizes: its numbers of inputs and outputs, as names in the script.
        parameters: the number of its parameters.
        weights: expression of its effective weights in the script, with {} for the layer.
        has_modes: True if its computation differs between training and evaluation.
        has_mean: True if its sparsity error is the mean of its matrices' errors; False if it is the largest.
        bounded: its bounded parameters, with the lowest value of each; the highest is 1.
        signs: the bounded parameters that the sparsity regulariser draws to -1 and 1, but not to 0.
        spread: the reach of a NAC's initial parameters, or the standard deviation of the initial parameters of sigmoid
            weights; None for other units, which have a short formula.
    """

    name: str
    sizes: str
    parameters: int
    weights: str
    has_modes: bool
    has_mean: bool
    bounded: tuple[tuple[str, int], ...]
    signs: tuple[str, ...]
    spread: float | None


def layers(cell: ArithmeticCell) -> dict[str, ScriptLayer]:
    """Describe the layers of a cell's network, by their names ``first`` and, with two layers, ``second``.

    Raises:
        KeyError: if the model is unknown or user-defined.
    """
    sizes = cell.network.sizes(cell.input_size, cell.hidden_size)
    return {name: _layer(name, unit, sizes[name], cell) for name, unit in cell.network.layers.items()}


def _layer(name: str, unit: str, sizes: tuple[int, int], cell: ArithmeticCell) -> ScriptLayer:
    import torch  # imported late: torch takes seconds to import

    from units import UNITS, Unit
    from units.initialize import generator_uniform

    class_, traits = UNITS[unit], TRAITS[unit]
    has_mean = class_.sparsity_error is not Unit.sparsity_error
    parameters = list(class_.initial(1, 1, generator_uniform(torch.Generator())))
    bounded = tuple((parameter, _LOWEST[kind]) for parameter, kind in traits.bounded.items())
    if has_mean:
        weights = "torch.stack({}.weights())"
    elif len(class_.paths) > 1:
        weights = "*{}.weights()"
    elif bounded:
        weights = "{}.weight" + (f".clamp({bounded[0][1]}, 1)" if cell.bounds == "regularized" else "")
    else:
        weights = "{}.weight" if "weight" in parameters else "{}.weight()"
    return ScriptLayer(
        name=class_.__name__,
        sizes=_SIZES[name],
        parameters=len(parameters),
        weights=weights,
        has_modes=unit in _WITH_MODES,
        has_mean=has_mean,
        bounded=bounded,
        signs=tuple(parameter for parameter, kind in traits.bounded.items() if kind == "sign"),
        spread=_spread(parameters, sizes, cell.init_variance) if traits.largest_init_variance else None,
    )


def _spread(parameters: list[str], sizes: tuple[int, int], variance: float | None) -> float | None:
    if any(name.startswith("mask_hat") for name in parameters):
        return nac_reach(2 / max(sum(sizes), 5) if variance is None else variance)
    if parameters == ["weight_hat"]:
        return math.sqrt(2 / sum(sizes)) if variance is None else sigmoid_std(variance)
    return None
