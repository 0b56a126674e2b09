"""What a script says of a network's layers: their classes, their weights, and how these begin."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tasks.arithmetic_cell import ArithmeticCell
from units.traits import TRAITS
from units.variance import nac_reach, sigmoid_std

_LOWEST = {"NAU": -1, "NMU": 0}


@dataclass(frozen=True)
class ScriptLayer:
    """A layer of a script.

    Args:
        name: its class.
        parameters: how many it has.
        weights: what its effective weights are in the script, with {} for the layer.
        bounded: its bounded parameters, with the lowest value of each; the highest is 1.
        spread: what no short formula gives: the reach of a NAC's initial parameters, or the standard deviation of those
            that a sigmoid makes weights of; None for other units.
    """

    name: str
    parameters: int
    weights: str
    bounded: tuple[tuple[str, int], ...]
    spread: float | None


def layers(cell: ArithmeticCell) -> dict[str, ScriptLayer]:
    """Describe the layers of a cell's network, under their names, ``first`` and, if there are two, ``second``."""
    sizes = cell.network.sizes(cell.input_size, cell.hidden_size)
    return {name: _layer(unit, sizes[name], cell) for name, unit in cell.network.layers.items()}


def _layer(unit: str, sizes: tuple[int, int], cell: ArithmeticCell) -> ScriptLayer:
    import torch  # takes long to import

    from units import UNITS
    from units.initialize import generator_uniform

    class_ = UNITS[unit]
    parameters = list(class_.initial(1, 1, generator_uniform(torch.Generator())))
    bounded = tuple((name, _LOWEST[kind]) for name, kind in TRAITS[unit].bounded.items())
    if len(class_.paths) > 1:
        weights = "*{}.weights()"
    elif bounded:
        weights = "{}.weight" + (f".clamp({bounded[0][1]}, 1)" if cell.bounds == "regularized" else "")
    else:
        weights = "{}.weight" if "weight" in parameters else "{}.weight()"
    return ScriptLayer(
        class_.__name__, len(parameters), weights, bounded, _spread(parameters, sizes, cell.init_variance)
    )


def _spread(parameters: list[str], sizes: tuple[int, int], variance: float | None) -> float | None:
    if any(name.startswith("mask_hat") for name in parameters):
        return nac_reach(2 / max(sum(sizes), 5) if variance is None else variance)
    if parameters == ["weight_hat"]:
        return math.sqrt(2 / sum(sizes)) if variance is None else sigmoid_std(variance)
    return None
