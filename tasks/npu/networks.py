"""Layers and initial values of the tasks of neural power units."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from units import UNITS, Unit
from units.inalu import INALU
from units.initialize import Draw, Sizes, within, xavier_reach
from units.nau import NAU, nau
from units.nmu import NMU
from units.npu import NPU, RealNPU
from units.traits import Traits

# Var U[0, 1].
_UNIFORM_VARIANCE = 1 / 12
_LARGEST_INITIAL = 0.1
# Parameters that aren't drawn like weights. A gate computed from the input, such as a NALU's, is a weight.
_NOT_WEIGHTS = ("weight_imaginary", "bias")
_WITH_SEPARATE_GATE = (NPU, RealNPU, INALU)


class FreeNAU(NAU):
    """NAU with unbounded weights: y_o = sum_i W_oi x_i, with Xavier uniform initial weights.

    Source: the layer before or after the units of Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020.

    Args: as for `Unit`; `init_variance` has no effect.

    Example:
        >>> FreeNAU(6, 4)(torch.ones(5, 6)).shape, FreeNAU(6, 4).limits
        (torch.Size([5, 4]), {})
    """

    traits = Traits()

    def forward(self, x: Tensor) -> Tensor:
        return nau(x, self.weight)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        return {"weight": within(uniform(0), 0.0, xavier_reach(*sizes))}

    def effective_weights(self) -> list[Tensor]:
        return [self.weight]


def free_layer(unit: type[Unit], input_size: int, output_size: int) -> Unit:
    """Build a layer with these tasks' bounds: none for an NAU, a clamp in the forward pass only for an NMU.

    An NAU becomes a `FreeNAU`. An NMU's initial weights are from U[0, 1]; the gradient of a clamped weight is zero.
    Other units have their usual bounds and initial weights.

    Example:
        >>> free_layer(UNITS["NMU"], 2, 6), free_layer(UNITS["NAU"], 6, 4)
        (NMU(2, 6, bounds='regularized'), FreeNAU(6, 4))
    """
    if issubclass(unit, NAU):
        return FreeNAU(input_size, output_size)
    if issubclass(unit, NMU):
        return unit(input_size, output_size, init_variance=_UNIFORM_VARIANCE, bounds="regularized")
    return unit(input_size, output_size)


def only_adds(unit: type[Unit]) -> bool:
    """Return True if a unit only adds: an NAU or a NAC+.

    Example:
        >>> only_adds(UNITS["NAU"]), only_adds(UNITS["NALU"])
        (True, False)
    """
    return unit in (UNITS["NAU"], UNITS["NAC-add"])


@torch.no_grad()
def start_positive(network: nn.Module) -> None:
    """Draw all weights of the units in a network from U[0, 0.1], and set the gates of NPUs to 1.

    Imaginary parts, biases, and the gates of RealNPUs and iNALUs aren't changed. A gate matrix that multiplies the
    input, such as a NALU's, counts as weights.

    Source: the published program of Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020.

    Args:
        network: network of units; modified in place.

    Example:
        >>> network = nn.Sequential(UNITS["NPU"](3, 1))
        >>> start_positive(network)
        >>> network[0].gate.tolist(), bool((network[0].weight >= 0).all())
        ([[1.0, 1.0, 1.0]], True)
    """
    for unit in (part for part in network.modules() if isinstance(part, Unit)):
        for name, parameter in unit.named_parameters():
            if name in _NOT_WEIGHTS or (name == "gate" and isinstance(unit, _WITH_SEPARATE_GATE)):
                continue
            parameter.uniform_(0, _LARGEST_INITIAL)
        if isinstance(unit, NPU):
            unit.gate.fill_(1)
