"""Updates of iNALU's own experiment: TensorFlow's RMSProp with clipped gradients, and the regulariser's gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from units.gradients import clip_by_value

RATE = 1e-2
DECAY = 0.9
EPSILON = 1e-10
"""The defaults of TensorFlow 1's RMSProp, whose mean square starts at 1: torch has 0.99, 1e-8 and 0."""
_LARGEST = 20.0


class Group:
    """Parameters that are updated together, with the mean squares of their gradients.

        s <- 0.9 s + 0.1 g²,   θ <- θ - 0.01 g / sqrt(s + 1e-10),   s = 1 at first

    Args:
        parameters: each of shape [trials, rows, columns].
        clip_value: gradients are clipped to ± this first.

    Example:
        >>> parameter = nn.Parameter(torch.zeros(2, 1, 1))
        >>> group = Group([parameter], 0.1)
        >>> group.update([torch.tensor([[[7.0]], [[-0.05]]])])
        >>> parameter.flatten().tolist()  # -0.01 * 0.1 / sqrt(0.901), 0.01 * 0.05 / sqrt(0.90025)
        [-0.00105..., 0.000526...]
    """

    def __init__(self, parameters: Sequence[nn.Parameter], clip_value: float) -> None:
        self.parameters = list(parameters)
        self._clip_value = clip_value
        self._sizes = [parameter[0].numel() for parameter in parameters]
        self._shares = torch.tensor([1 / size for size in self._sizes for _ in range(size)])
        self._squares = torch.ones(len(parameters[0]), sum(self._sizes))

    @torch.no_grad()
    def update(self, gradients: Sequence[Tensor]) -> None:
        """Update all trials by the gradients of a loss, one a parameter and of its shape."""
        self._put(*self._move(_flat(gradients)))

    @torch.no_grad()
    def push(self, strengths: Tensor) -> None:
        """Update the trials that have a strength by the gradients of that times the sum of `outward`.

            g = -λ sgn(θ) / n where |θ| < 20, else 0

        See `units.inalu_training.outward`; n is the number of a parameter's elements.

        Args:
            strengths: λ, shape [trials]; where it is 0, neither parameters nor mean squares change.

        Example:
            >>> parameter = nn.Parameter(torch.tensor([[[1.0, -1.0]], [[1.0, -1.0]]]))
            >>> Group([parameter], 0.1).push(torch.tensor([0.05, 0.0]))
            >>> parameter.flatten(1)
            tensor([[ 1.0003, -1.0003],
                    [ 1.0000, -1.0000]], grad_fn=...)
        """
        values, has_strength = _flat(self.parameters), (strengths > 0)[:, None]
        slopes = values.sign() * (values.abs() < _LARGEST) * self._shares
        new_values, new_squares = self._move(slopes * -strengths[:, None])
        self._put(torch.where(has_strength, new_values, values), torch.where(has_strength, new_squares, self._squares))

    def _move(self, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Compute new values and mean squares, by operations of one rounding each.

        Those that do two things at once, such as `addcmul`, round an element by its place in memory.
        """
        [gradient] = clip_by_value([gradient], self._clip_value)
        squares = self._squares * DECAY + gradient * gradient * (1 - DECAY)
        return _flat(self.parameters) - gradient * RATE / (squares + EPSILON).sqrt(), squares

    def _put(self, values: Tensor, squares: Tensor) -> None:
        self._squares = squares
        for parameter, value in zip(self.parameters, torch.split(values, self._sizes, 1), strict=True):
            parameter.copy_(value.view_as(parameter))


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten(1) for tensor in tensors], 1)
