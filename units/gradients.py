"""Gradients clipped by norm or by value, for each trial of a pack by itself."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

# What torch.nn.utils.clip_grad_norm_ adds to a norm before it divides by it.
_EPSILON = 1e-6


def clip_by_norm(gradients: Sequence[Tensor], largest: float, has_trials: bool = False) -> list[Tensor]:
    """Scale gradients down to a norm: g min(1, c / (|g| + 1e-6)), |g| over all gradients of a trial together.

    torch.nn.utils.clip_grad_norm_ does the same to one network; in a pack it would take one norm for all trials.

    Source: Pascanu, Mikolov & Bengio, "On the difficulty of training recurrent neural networks", ICML 2013.

    Args:
        gradients: of all parameters, at least one.
        largest: c > 0.
        has_trials: whether the first axis of each is that of trials, which then are clipped by norms of their own.

    Returns:
        As many new tensors; NaN in one trial stays in it.

    Raises:
        ValueError: if there is no gradient, or c isn't above 0.

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
        gradients: of all parameters, with or without a leading axis of trials.
        largest: c > 0.

    Returns:
        As many new tensors.

    Raises:
        ValueError: if there is no gradient, or c isn't above 0.

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
        raise ValueError(f"largest={largest:g} was given, but largest > 0 must hold; don't clip for no limit")
