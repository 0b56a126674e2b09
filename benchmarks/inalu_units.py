"""The units of iNALU's own experiment, where they start, and the iNALU that knows the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from units.inalu import INALU, ORIGINAL_START, inalu
from units.initialize import Draw, Sizes, Uniform, normal
from units.nac import nac_weight
from units.nalu import NALU, GatedUnit
from units.unit import Unit

_EXACT_WEIGHTS = {"add": (1, 1), "sub": (1, -1), "mul": (1, 1), "div": (1, -1)}
_SATURATED = 200.0
"""e^200 is infinite in float32, so that σ is exactly 0 or 1, and so is tanh."""


class SharedINALU(GatedUnit):
    """Add or multiply as `INALU` does, with the same weights W = tanh(Ŵ) ⊙ σ(M̂) for both.

    Source: Schlör, Ring & Hotho, "iNALU: Improved Neural Arithmetic Logic Unit", Frontiers in AI, 2020.

    Args: as for `INALU`.

    Example:
        >>> SharedINALU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    weight_hat: nn.Parameter
    mask_hat: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        (weight,) = self.effective_weights()
        return inalu(x, weight, weight, self.gate)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        shapes = {"weight_hat": sizes[::-1], "mask_hat": sizes[::-1], "gate": (1, sizes[1])}
        return start_values(shapes, lambda index, shape: uniform(index).reshape(-1)[: shape[0] * shape[1]].view(shape))

    def effective_weights(self) -> list[Tensor]:
        return [nac_weight(self.weight_hat, self.mask_hat)]


ARMS: dict[str, Callable[..., Unit]] = {"separate": INALU, "shared": SharedINALU, "NALU": NALU}
"""iNALU with separate and with shared weights, and the NALU. With one output, a gate vector is a gate matrix."""


def start_values(shapes: Mapping[str, tuple[int, ...]], uniform: Uniform) -> dict[str, Tensor]:
    """Draw parameters as all of the authors' experiments do, those with a NALU too: Ŵ, M̂ and ĝ are normal.

    Args:
        shapes: of each parameter by its name, which begins with weight_hat, mask_hat or gate.
        uniform: given a parameter's index and shape, float64 numbers uniform on [0, 1).

    Returns:
        The value of every parameter by its name, float64.

    Example:
        >>> values = start_values({"gate": (1, 2)}, lambda index, shape: torch.full(shape, 0.975, dtype=torch.float64))
        >>> values["gate"].round(decimals=4)
        tensor([[0.1960, 0.1960]], dtype=torch.float64)
    """
    values = {}
    for index, (name, shape) in enumerate(shapes.items()):
        [(mean, std)] = [start for stem, start in ORIGINAL_START.items() if name.startswith(stem)]
        values[name] = mean + normal(uniform(index, shape), std)
    return values


def exact_unit(operations: Sequence[str]) -> INALU:
    """Make iNALUs whose weights are exactly -1 and 1, and whose gate is exactly open or closed.

    Args:
        operations: of each trial: add, sub, mul or div.

    Example:
        >>> exact_unit(["sub", "mul"])(torch.tensor([5.0, 7.0]).expand(2, 1, 2)).detach().round(decimals=4)
        tensor([[[-2.]],
        <BLANKLINE>
                [[35.]]])
    """
    unit = INALU(2, 1, trials=len(operations), generator=torch.Generator())
    signs = torch.tensor([_EXACT_WEIGHTS[operation] for operation in operations])[:, None]
    adds = torch.tensor([operation in ("add", "sub") for operation in operations])[:, None, None]
    values = {"weight_hat": signs, "mask_hat": torch.ones_like(signs), "gate": torch.where(adds, 1, -1)}
    with torch.no_grad():
        for name, parameter in unit.named_parameters():
            [value] = [value for stem, value in values.items() if name.startswith(stem)]
            parameter.copy_(value * _SATURATED)
    return unit
