"""Gradient clipping by norm or by value, separately for each trial of a pack."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

# torch.nn.utils.clip_grad_norm_ adds this to a norm before it divides by it.
_EPSILON = 1e-6


def clip_by_norm(gradients: Sequence[Tensor], largest: float, has_trials: bool = False) -> list[Tensor]:
    """Scale gradients down to a norm: g min(1, c / (|g| + 1e-6)), |g| over all gradients of a trial together.

    Like torch.nn.utils.clip_grad_norm_, but with one norm per trial instead of one norm for the whole pack.

    Source: Pascanu, Mikolov & Bengio, "On the difficulty of training recurrent neural networks", ICML 2013.

    Args:
        gradients: gradients of all parameters; at least one.
        largest: c > 0.
        has_trials: True if the first axis of each gradient is the trial; each trial is then clipped by its own norm.

    Returns:
        The clipped gradients, as new tensors. A NaN makes all gradients of its trial NaN, and no others. An infinity
            becomes NaN, and the other numbers of its trial 0. If only a norm overflows, its trial's gradients become 0.

    Raises:
        ValueError: if `gradients` is empty, or c > 0 doesn't hold.
        IndexError: with `has_trials`, if a gradient has fewer than two axes.

    Example:
        >>> import torch
        >>> clip_by_norm([torch.tensor([[[3.0]], [[0.3]]]), torch.tensor([[[4.0]], [[0.4]]])], 1.0, has_trials=True)
        [tensor([[[0.6000]], [[0.3000]]]), tensor([[[0.8000]], [[0.4000]]])]
    """
    _require(gradients, largest)
    leading = int(has_trials)
    squares = [gradient.flatten(leading).square().sum(-1) for gradient in gradients]
    norm = sum(squares[1:], squares[0]).sqrt()
    scale = (largest / (norm + _EPSILON)).clamp_max(1.0)
    return [gradient * scale.reshape(scale.shape + (1,) * (gradient.dim() - leading)) for gradient in gradients]


def clip_by_value(gradients: Sequence[Tensor], largest: float) -> list[Tensor]:
    """Clip every number of every gradient to [-c, c]; NaN stays NaN.

    Args:
        gradients: gradients of all parameters, with or without a leading trial axis.
        largest: c > 0.

    Returns:
        The clipped gradients, as new tensors.

    Raises:
        ValueError: if `gradients` is empty, or c > 0 doesn't hold.

    Example:
        >>> import torch
        >>> clip_by_value([torch.tensor([-3.0, 0.05])], 0.1)
        [tensor([-0.1000,  0.0500])]
    """
    _require(gradients, largest)
    return [gradient.clamp(-largest, largest) for gradient in gradients]


def _require(gradients: Sequence[Tensor], largest: float) -> None:
    if not gradients:
        raise ValueError("no gradient was given, but at least one is needed")
    if not largest > 0:
        raise ValueError(f"largest={largest:g} was given, but largest > 0 must hold; without a limit, leave it out")
