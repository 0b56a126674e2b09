"""One optimiser step for a whole pack: sparsity gradient, Adam or SGD, clipping, over flat arrays.

All parameters of a pack lie in one flat float32 array, parameter after parameter, each [trials, ...]. `step` is
written twice: `step_compiled` makes one pass over the arrays (on the CPU about 15 calls of torch cost more than all
the arithmetic of a small pack: `benchmarks/`), `step_torch` runs on any device. A test holds them to the same bits.

Source: Kingma & Ba, "Adam: a method for stochastic optimization", ICLR 2015, as torch.optim.Adam computes it:

    m <- m + (1 - b1)(g - m),   v <- b2 v + (1 - b2) g g,
    w <- w - (lr / (1 - b1^t)) m / (sqrt(v) / sqrt(1 - b2^t) + e)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.engine.compiled.formulas import BETA_1, BETA_2, EPSILON

_ADAM, _SGD, _MOMENTUM = 0, 1, 2
_KINDS = {"adam": _ADAM, "sgd": _SGD, "momentum": _MOMENTUM}

_ONE_MINUS_BETA_1 = np.float32(1 - BETA_1)
_BETA_2 = np.float32(BETA_2)
_ONE_MINUS_BETA_2 = np.float32(1 - BETA_2)
_EPSILON = np.float32(EPSILON)
_HALF, _ONE, _TWO, _ZERO = np.float32(0.5), np.float32(1), np.float32(2), np.float32(0)


@dataclass(frozen=True)
class Rule:
    """How a pack's parameters move: equal for all its trials but for the arrays, which are float32.

    Args:
        optimizer: ``adam``, ``sgd`` or ``momentum``.
        momentum: coefficient of ``momentum``.
        squared: whether the sparsity regulariser is the squared one.
        sizes: numbers of each parameter that belong to one trial.
        share: 1 / size where the sparsity regulariser acts on the parameter, else 0; [parameters].
        low: lower bound, or -inf; [parameters].
        high: upper bound, or inf; [parameters].
        learning_rate: [trials].
    """

    optimizer: str
    momentum: float
    squared: bool
    sizes: tuple[int, ...]
    share: npt.NDArray[np.float32]
    low: npt.NDArray[np.float32]
    high: npt.NDArray[np.float32]
    learning_rate: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Flat:
    """A pack's parameters and what the optimiser keeps of them: float32 [sum of trials * sizes], written in place."""

    weight: Tensor
    gradient: Tensor
    first: Tensor
    second: Tensor


def corrections(iteration: int) -> tuple[float, float]:
    """Give Adam's bias corrections 1 / (1 - b1^t) and 1 / sqrt(1 - b2^t) at t = iteration + 1."""
    t = iteration + 1
    return 1 / (1 - BETA_1**t), 1 / math.sqrt(1 - BETA_2**t)


@nb.njit(cache=True, inline="always")
def _sparsity_slope(w, squared):  # type: ignore[no-untyped-def]
    """d/dw of min(|w|, |1 - |w||), or of w^2 (1 - |w|)^2, for w within [-1, 1]; 0 at the kinks, as autograd has it."""
    a = abs(w)
    if squared:
        return _TWO * w * (_ONE - a) * (_ONE - _TWO * a)
    if w == _ZERO or a == _HALF or a >= _ONE:
        return w * _ZERO  # keeps NaN
    rising = _ONE if a < _HALF else -_ONE
    return rising if w > _ZERO else -rising


@nb.njit(cache=True, nogil=True)
def compiled_step(  # type: ignore[no-untyped-def]
    kind, weight, gradient, first, second, sizes, share, low, high, rate, strength, squared, momentum, c1, c2
):
    trials = len(rate)
    at = 0
    for p in range(len(sizes)):
        size, low_p, high_p = sizes[p], low[p], high[p]
        for s in range(trials):
            rate_s = rate[s] * c1 if kind == _ADAM else rate[s]
            push = strength[s] * share[p]
            for i in range(at, at + size):
                w, g = weight[i], gradient[i]
                if push != _ZERO:
                    g = g + push * _sparsity_slope(w, squared)
                if kind == _ADAM:
                    m = first[i] + _ONE_MINUS_BETA_1 * (g - first[i])
                    v = _BETA_2 * second[i] + _ONE_MINUS_BETA_2 * (g * g)
                    first[i], second[i] = m, v
                    w = w - rate_s * (m / (np.sqrt(v) * c2 + _EPSILON))
                elif kind == _MOMENTUM:
                    m = momentum * first[i] + g
                    first[i] = m
                    w = w - rate_s * m
                else:
                    w = w - rate_s * g
                if w < low_p:
                    w = low_p
                if w > high_p:
                    w = high_p
                weight[i] = w
                gradient[i] = _ZERO
            at += size


def step_compiled(rule: Rule, flat: Flat, iteration: int, strength: npt.NDArray[np.float32]) -> None:
    """Move the parameters by one step on the CPU, and zero the gradient.

    Args:
        rule: how they move.
        flat: CPU tensors; written.
        iteration: updates made before this one.
        strength: λ of the sparsity regulariser now, float32 [trials].
    """
    c1, c2 = corrections(iteration)
    compiled_step(
        _KINDS[rule.optimizer],
        flat.weight.numpy(),
        flat.gradient.numpy(),
        flat.first.numpy(),
        flat.second.numpy(),
        np.asarray(rule.sizes),
        rule.share,
        rule.low,
        rule.high,
        rule.learning_rate,
        strength,
        rule.squared,
        np.float32(rule.momentum),
        np.float32(c1),
        np.float32(c2),
    )


def step_torch(rule: Rule, flat: Flat, iteration: int, strength: npt.NDArray[np.float32]) -> None:
    """Move the parameters by one step on any device: what `step_compiled` does, in torch."""
    w, g = flat.weight, flat.gradient
    if strength.any() and rule.share.any():
        g.add_(_spread(rule, rule.share, strength, w.device) * _slope(w, squared=rule.squared))
    rate = torch.as_tensor(rule.learning_rate, device=w.device)
    if rule.optimizer == "adam":
        c1, c2 = corrections(iteration)
        flat.first.add_((g - flat.first) * float(_ONE_MINUS_BETA_1))
        flat.second.mul_(float(_BETA_2)).add_((g * g) * float(_ONE_MINUS_BETA_2))
        move = flat.first / (flat.second.sqrt() * float(np.float32(c2)) + float(_EPSILON))
        rate = rate * float(np.float32(c1))
    elif rule.optimizer == "momentum":
        flat.first.mul_(float(np.float32(rule.momentum))).add_(g)
        move = flat.first
    else:
        move = g
    ones = np.ones(len(rule.sizes), np.float32)
    w.sub_(_spread(rule, ones, rate, w.device) * move)
    trials = np.ones(len(rule.learning_rate), np.float32)
    torch.clamp(
        w, _spread(rule, rule.low, trials, w.device), _spread(rule, rule.high, trials, w.device), out=w
    )
    g.zero_()


def _spread(rule: Rule, of_parameter: npt.NDArray[np.float32], of_trial: Any, device: torch.device) -> Tensor:
    """Lay a number of each parameter times a number of each trial out along the flat arrays."""
    of_trial = torch.as_tensor(of_trial, device=device)
    parts = [
        (of_trial * float(number))[:, None].expand(-1, size).reshape(-1)
        for number, size in zip(of_parameter, rule.sizes, strict=True)
    ]
    return torch.cat(parts)


def _slope(w: Tensor, *, squared: bool) -> Tensor:
    a = w.abs()
    if squared:
        return 2 * w * (1 - a) * (1 - 2 * a)
    return w.sign() * (0.5 - a).sign() * (a < 1)
