"""The networks of the tasks of neural power units, in which an NAU isn't bounded."""

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
_WHOLE_INTERVAL = 1 / 12
_LARGEST_START = 0.1
# What isn't drawn with the weights: gates are weights where they see the input, as a NALU's do.
_OTHERWISE = ("weight_imaginary", "bias")
_GATES_OF_THEIR_OWN = (NPU, RealNPU, INALU)


class FreeNAU(NAU):
    """Add and subtract: y_o = sum_i W_oi x_i, where W isn't bounded; it starts Xavier uniform.

    Source: the layer after, or before, the units of Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020.

    Args: as for `Unit`; no variance can be asked for.

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
    """Build a layer as these tasks have it: an NAU isn't bounded, an NMU is clamped in the forward pass only.

    The NMU starts as U[0, 1], and where it is clamped its gradient is zero. Other units are what they are elsewhere.

    Example:
        >>> free_layer(UNITS["NMU"], 2, 6), free_layer(UNITS["NAU"], 6, 4)
        (NMU(2, 6, bounds='regularized'), FreeNAU(6, 4))
    """
    if issubclass(unit, NAU):
        return FreeNAU(input_size, output_size)
    if issubclass(unit, NMU):
        return unit(input_size, output_size, init_variance=_WHOLE_INTERVAL, bounds="regularized")
    return unit(input_size, output_size)


def only_adds(unit: type[Unit]) -> bool:
    """Tell whether a unit adds and does nothing else.

    Example:
        >>> only_adds(UNITS["NAU"]), only_adds(UNITS["NALU"])
        (True, False)
    """
    return unit in (UNITS["NAU"], UNITS["NAC-add"])


@torch.no_grad()
def start_positive(network: nn.Module) -> None:
    """Draw all weights of the units in a network from U[0, 0.1], and open the gates of NPUs.

    Imaginary parts and biases stay at 0, and the gates of a RealNPU at 1/2.

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020, the program.

    Args:
        network: changed in place.

    Example:
        >>> network = nn.Sequential(UNITS["NPU"](3, 1))
        >>> start_positive(network)
        >>> network[0].gate.tolist(), bool((network[0].weight >= 0).all())
        ([[1.0, 1.0, 1.0]], True)
    """
    for unit in (part for part in network.modules() if isinstance(part, Unit)):
        for name, parameter in unit.named_parameters():
            if name in _OTHERWISE or (name == "gate" and isinstance(unit, _GATES_OF_THEIR_OWN)):
                continue
            parameter.uniform_(0, _LARGEST_START)
        if isinstance(unit, NPU):
            unit.gate.fill_(1)
