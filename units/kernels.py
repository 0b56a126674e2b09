"""Operations that give a trial the same bits alone and in a pack.

An element's value must not depend on its place in memory. On the CPU this holds for most of torch's operations; the
others are replaced here. It holds for none of them on several threads, so torch must be restricted to one thread.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

# BLAS's rounding depends on a matrix's alignment, equal for all trials if their rows fill whole cache lines.
_ALIGNED_ROWS = 16


def contract(weight: Tensor, x: Tensor) -> Tensor:
    """Multiply a batch by a weight matrix, trial by trial.

        y_bo = sum_i W_oi x_bi

    In memory the batch is the result's innermost axis, [..., out, batch], whatever the layout of `x`. An `x` of that
    layout isn't copied, unless there are trials and the batch isn't a multiple of 16: then it is padded.

    Args:
        weight: shape [..., out, in].
        x: shape [..., batch, in]; with a weight of shape [trials, out, in], [trials, batch, in], or [batch, in] if all
            trials share it.

    Returns:
        Shape [..., batch, out].

    Example:
        >>> contract(torch.tensor([[1.0, -1.0]]), torch.tensor([[5.0, 3.0], [2.0, 2.0]]))
        tensor([[2.],
                [0.]])
    """
    columns = x.mT
    if weight.dim() != 3:
        return torch.matmul(weight, columns).mT
    # Not matmul: it folds a shared x into one big product, whose rounding depends on the number of trials.
    columns = columns.expand(weight.shape[0], -1, -1)
    if weight.shape[-1] == 1:  # BLAS has another algorithm for the gradient of a single column
        return (weight * columns).mT
    rows = columns.shape[-1]
    excess = -rows % _ALIGNED_ROWS
    if not excess:
        return _rows(torch.bmm(weight, columns))
    padded = nn.functional.pad(columns, (0, excess))
    return _rows(torch.bmm(weight, padded)[..., :rows].contiguous())


def _rows(columns: Tensor) -> Tensor:
    # The stride of an axis of length 1 means nothing, but BLAS chooses its algorithm by it, and in a gradient it
    # differs between one trial and many. Removing the axis and inserting it again resets the stride.
    return columns.squeeze(-2).unsqueeze(-1) if columns.shape[-2] == 1 else columns.mT


class _Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.neg().exp_().add_(1).reciprocal_()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.ops.aten.sigmoid_backward(grad, y)  # type: ignore[no-any-return]


def sigmoid(x: Tensor) -> Tensor:
    """Squash to [0, 1]: σ(x) = 1 / (1 + exp(-x)).

    `torch.sigmoid` uses other instructions for the last few elements of an array, so their last bits depend on its
    length. The gradient, y (1 - y), is finite everywhere.

    Args:
        x: any shape.

    Example:
        >>> sigmoid(torch.tensor([-1e3, 0.0, 1e3]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    return _Sigmoid.apply(x)  # type: ignore[no-any-return, no-untyped-call]


def elu(x: Tensor) -> Tensor:
    """Compute the ELU: x for x > 0, exp(x) - 1 below.

    The bits of `torch.nn.functional.elu` and `selu` depend on an array's length, as those of `torch.sigmoid`.

    Source: Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units", 2016.

    Args:
        x: any shape.

    Example:
        >>> elu(torch.tensor([-50.0, 0.0, 2.0]))
        tensor([-1.,  0.,  2.])
    """
    return torch.where(x > 0, x, torch.expm1(x.clamp(max=0)))


def mix(gate: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Mix two outputs: g ⊙ first + (1 - g) ⊙ second.

    Args:
        gate: g in [0, 1], shape [..., batch, out].
        first: same shape.
        second: same shape.

    Example:
        >>> mix(torch.tensor([1.0, 0.25]), torch.tensor([3.0, 4.0]), torch.tensor([5.0, 8.0]))
        tensor([3., 7.])
    """
    return gate * first + (1 - gate) * second
