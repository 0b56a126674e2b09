"""The power unit, and two networks of equal size: one with it, one without."""

import torch
from torch import Tensor, nn

from ratios.task import INPUTS
from study import seeded


class PowerUnit(nn.Module):
    """A unit that multiplies powers of positive inputs: y_o = prod_i x_i^W_oi; W = 1 multiplies, and W = -1 divides."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs))  # the study has seeded torch from the trial's seed

    def forward(self, x: Tensor) -> Tensor:
        """Compute exp(W log x), [rows, outputs], from x [rows, inputs]; NaN where a number of the row is negative."""
        return torch.exp(torch.log(x) @ self.weight.mT)


@seeded
def power(hidden: int = 2) -> nn.Module:
    """Build a network of `hidden` power units and a linear layer that sums them."""
    return nn.Sequential(PowerUnit(INPUTS, hidden), nn.Linear(hidden, 1))


@seeded
def mlp(hidden: int = 2) -> nn.Module:
    """Build a network of `hidden` ReLUs and a linear layer that sums them."""
    return nn.Sequential(nn.Linear(INPUTS, hidden), nn.ReLU(), nn.Linear(hidden, 1))
