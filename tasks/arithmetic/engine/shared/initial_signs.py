"""Signs of an NMU's first-layer weights that make two of its factors start negative."""

from __future__ import annotations

import torch
from torch import Tensor


def two_negative(first: Tensor, second: Tensor, mean: Tensor) -> Tensor:
    """Multiply rows of first-layer weights by -1 so that two factors of the second layer start negative.

    The factor of hidden unit i is W2_i (z_i - 1) + 1, evaluated with every input at the inputs' mean. Rows get the sign
    for which z_i >= 0, except two: those whose factors with the other sign, 1 - W2_i (|z_i| + 1), are lowest.

    With the other sign, a factor is negative only if W2_i (|z_i| + 1) > 1; otherwise it just starts smaller.

    An NMU keeps the number of its negative factors, and with four or more is never solved
    (tasks/docs/results/hidden-size/README.md).

    Args:
        first: [trials, hidden, inputs].
        second: [trials, 1, hidden], in [0, 1].
        mean: mean of the inputs, [trials].

    Returns:
        `first` with changed signs; a single hidden unit gets the other sign.

    Example:
        >>> first = torch.tensor([[[0.5, 0.5], [1.0, 1.0], [-2.0, -1.0], [-0.1, 0.0]]])
        >>> two_negative(first, torch.full((1, 1, 4), 0.5), torch.tensor([1.5]))[0, :, 0]
        tensor([ 0.5000, -1.0000, -2.0000,  0.1000])
    """
    sums = mean.double()[:, None] * first.double().sum(dim=2)
    factors = 1 - second[:, 0].double() * (sums.abs() + 1)
    lowest = factors.argsort(dim=1, stable=True)[:, :2]
    signs = torch.where(sums < 0, -1.0, 1.0)
    signs = signs.scatter(1, lowest, -signs.gather(1, lowest))
    return first * signs[:, :, None].to(first.dtype)
