"""Products of NMUs or of given factors, with gradients that are exact at zeros and the same in any pack.

The gradient of `torch.prod` uses another formula for the whole tensor if any factor is zero, so one trial would change
another's bits. The gradient here decides for each element. It is also faster: forward and backward of 60 trials with
batch 128, one output and one thread took 182 instead of 212 us for 2 inputs, and 253 instead of 425 us for 10.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

Saved = tuple[Tensor, Tensor, Tensor, Tensor]

# A zero-dimensional tensor is cheaper to add than a Python number, and works with any dtype and device.
_ONE = torch.ones((), device="cpu")
# Below this, the product of all factors may have lost digits that the product of all but one still has.
_TINY = 2.0**-100


def product_forward(x: Tensor, weight: Tensor) -> tuple[Tensor, Saved]:
    """Compute prod_i (W_oi x_i + 1 - W_oi), and the tensors that its gradient needs.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in], with the same leading axes.

    Returns:
        The product, shape [..., batch, out], and the argument `saved` of `product_backward`.

    Example:
        >>> y, saved = product_forward(torch.tensor([[2.0, 3.0]]), torch.tensor([[1.0, 0.5]]))
        >>> y, *product_backward(torch.ones(1, 1), saved)
        (tensor([[4.]]), tensor([[2., 1.]]), tensor([[2., 4.]]))
    """
    shifted = x.mT - _ONE
    factors = torch.mul(weight.unsqueeze(-1), shifted.unsqueeze(-3)).add_(_ONE)
    product = factors.prod(-2)
    return product.mT, (weight, shifted, factors, product)


def product_backward(grad: Tensor, saved: Saved) -> tuple[Tensor, Tensor]:
    """Compute the gradients with respect to x and W.

        dL/dx_i  = sum_o dL/dy_o W_oi      prod_{j != i} (W_oj x_j + 1 - W_oj)
        dL/dW_oi =       dL/dy_o (x_i - 1) prod_{j != i} (W_oj x_j + 1 - W_oj)

    Args:
        grad: dL/dy, shape [..., batch, out].
        saved: from `product_forward`.

    Returns:
        dL/dx, shape [..., batch, in], and dL/dW, shape [..., out, in].
    """
    weight, shifted, factors, product = saved
    others = _others(grad.mT, factors, product)
    weight_grad = (others * shifted.unsqueeze(-3)).sum(-1)
    x_grad = others.mul_(weight.unsqueeze(-1))
    # The sum over one output is a view: it costs nothing.
    x_grad = x_grad.squeeze(-3) if x_grad.shape[-3] == 1 else x_grad.sum(-3)
    return x_grad.mT, weight_grad


def _others(grad: Tensor, factors: Tensor, product: Tensor) -> Tensor:
    """For each of the factors, [..., out, in, batch], multiply `grad` by the product of the others, in their shape.

    `grad` and `product`, the product of all factors, are [..., out, batch].
    """
    if factors.shape[-2] == 2:
        return factors.flip(-2).mul_(grad.unsqueeze(-2))
    if factors.device.type != "cpu":
        return _others_exactly(grad, factors)  # reading a value would synchronise the device
    if get_proxy_mode() is not None:  # it is being recorded, so operations must not depend on values
        others: Tensor = _others_as_one_operation(grad, factors, product)
        return others
    return _others_divided(grad, factors, product)


def _others_divided(grad: Tensor, factors: Tensor, product: Tensor) -> Tensor:
    others = (grad * product).unsqueeze(-2) / factors
    # `not >=` and not `<`: NaN in one trial must not hide a zero in another.
    if not product.abs().amin().item() >= _TINY:
        tiny = product.abs() < _TINY
        if tiny.any():
            others = torch.where(tiny.unsqueeze(-2), _others_exactly(grad, factors), others)
    return others


@torch.library.custom_op("units::other_factors", mutates_args=())
def _others_as_one_operation(grad: Tensor, factors: Tensor, product: Tensor) -> Tensor:
    """Call `_others_divided` as one custom operation, so that its branches on values aren't recorded."""
    return _others_divided(grad, factors, product)


# A compiler decomposes the operation into this, which must not depend on values.
@torch._decomp.register_decomposition(torch.ops.units.other_factors.default)
def _others_by_products(grad: Tensor, factors: Tensor, product: Tensor) -> Tensor:
    return _others_exactly(grad, factors)


def _others_exactly(grad: Tensor, factors: Tensor) -> Tensor:
    parts = factors.unbind(-2)
    before = [grad]
    for part in parts[:-1]:
        before.append(before[-1] * part)
    results = [before[-1]]
    after: Tensor | None = None
    for part, left in zip(reversed(parts[1:]), reversed(before[:-1]), strict=True):
        after = part if after is None else after * part
        results.append(left * after)
    return torch.stack(results[::-1], -2)


def _differentiable_backward(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    shifted = x.mT - 1
    others = _others_exactly(grad.mT, weight.unsqueeze(-1) * shifted.unsqueeze(-3) + 1)
    return (others * weight.unsqueeze(-1)).sum(-3).mT, (others * shifted.unsqueeze(-3)).sum(-1)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        y, saved = product_forward(x, weight)
        ctx.save_for_backward(x, *saved)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, *saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated again
            return _differentiable_backward(grad, x, saved[0])
        weight, shifted, factors, product = saved
        return product_backward(grad, (weight, shifted, factors, product))


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Compute prod_i (W_oi x_i + 1 - W_oi), differentiably.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in]; leading axes are broadcast.

    Returns:
        Shape [..., batch, out].

    Example:
        >>> product(torch.tensor([[2.0, 3.0, 0.0]]), torch.tensor([[1.0, 1.0, 0.0]]))
        tensor([[6.]])
    """
    if x.shape[:-2] != weight.shape[:-2]:
        leading = torch.broadcast_shapes(x.shape[:-2], weight.shape[:-2])  # type: ignore[no-untyped-call]
        x, weight = x.expand(*leading, *x.shape[-2:]), weight.expand(*leading, *weight.shape[-2:])
    return _Product.apply(x, weight)  # type: ignore[no-any-return, no-untyped-call]


class _ProductOfFactors(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factors: Tensor) -> Tensor:
        product = factors.prod(-2)
        ctx.save_for_backward(factors, product)
        return product

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        factors, product = ctx.saved_tensors
        # Only the exact formula can be differentiated again.
        return _others_exactly(grad, factors) if torch.is_grad_enabled() else _others(grad, factors, product)


def product_of_factors(factors: Tensor) -> Tensor:
    """Multiply given factors, differentiably: prod_i f_oib.

    Args:
        factors: shape [..., out, in, batch].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> product_of_factors(torch.tensor([[[2.0], [3.0], [0.5]]]))
        tensor([[3.]])
    """
    return _ProductOfFactors.apply(factors).mT  # type: ignore[no-any-return, no-untyped-call]
