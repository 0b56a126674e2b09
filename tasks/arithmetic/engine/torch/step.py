"""One optimiser step for a full pack over flat arrays: sparsity, Adam, momentum or SGD, clipping.

All parameters of a pack lie in one flat float32 array, parameter after parameter, each [trials, ...]. There are two
versions of the step. `step_compiled` makes one pass over the arrays, with the formulas shared by all compiled engines:
on the CPU about 15 calls of torch cost more than all the arithmetic of a small pack (`benchmarks/`). `step_torch` runs
on any device, with torch's own form of these formulas. A test checks that they give the same bits, except for Adam's
square root, which torch doesn't round correctly on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.stream.compile import cached, digest
from tasks.arithmetic.engine.compiled.cache import SOURCES
from tasks.arithmetic.engine.compiled.formulas import (
    BETA_1,
    BETA_2,
    EPSILON,
    adam,
    bias_corrections,
    clip,
    momentum_step,
    sgd,
    sparsity_slope,
    sparsity_strength,
)
from tasks.arithmetic.engine.shared.update_rule import ADAM, MOMENTUM, UpdateRule

_compiled = cached(digest((*SOURCES, Path(__file__))), error_model="numpy", nogil=True, _nrt=False)


@dataclass(frozen=True)
class Flat:
    """A pack's parameters and optimiser state: float32 [sum of trials * sizes], written in place."""

    weight: Tensor
    gradient: Tensor
    first: Tensor
    second: Tensor


@_compiled
def _fill_strengths(iteration, start, length, full, exponential, strengths):  # type: ignore[no-untyped-def]
    for s in range(len(strengths)):
        strengths[s] = sparsity_strength(iteration, start[s], length[s], full[s], exponential[s])


def sparsity_strengths(rule: UpdateRule, iteration: int) -> npt.NDArray[np.float32]:
    """Compute each trial's λ of the sparsity regulariser at an iteration, float32 [trials]."""
    strengths = np.empty(len(rule.strength), np.float32)
    _fill_strengths(iteration, rule.start, rule.length, rule.strength, rule.exponential, strengths)
    return strengths


@_compiled
def compiled_step(  # type: ignore[no-untyped-def]
    optimizer, weight, gradient, first, second, ends, share, low, high, rate, strength, squared, momentum, c1, c2
):  # fmt: skip
    """Make the step of `step_compiled` on flat arrays: move weights and moments in place, and zero the gradients.

    Numbers lie parameter by parameter, then trial by trial; `ends`, `share`, `low` and `high` are [parameters], `rate`
    and `strength` [trials].
    """
    trials = len(rate)
    at = 0
    for p in range(len(ends)):
        size = ends[p] - (ends[p - 1] if p > 0 else 0)
        low_p, high_p = low[p], high[p]
        for s in range(trials):
            rate_s = rate[s] * c1 if optimizer == ADAM else rate[s]
            push = strength[s] * share[p]
            for i in range(at, at + size):
                w, g = weight[i], gradient[i]
                if push != np.float32(0):
                    # Clipped weights of an NMU aren't negative, so a NAU's formula also holds for them.
                    g = g + push * sparsity_slope(w, True, squared)
                if optimizer == ADAM:
                    w, first[i], second[i] = adam(w, g, first[i], second[i], rate_s, c2)
                elif optimizer == MOMENTUM:
                    w, first[i] = momentum_step(w, g, first[i], rate_s, momentum)
                else:
                    w = sgd(w, g, rate_s)
                weight[i] = clip(w, low_p, high_p)
                gradient[i] = 0
            at += size


def step_compiled(rule: UpdateRule, flat: Flat, iteration: int, strength: npt.NDArray[np.float32]) -> None:
    """Make one step on the CPU: regularise, move parameters and moments, clip, and zero the gradient.

    Args:
        rule: their update rule; its `share` must be 0 for parameters that aren't clipped.
        flat: CPU tensors; written.
        iteration: number of updates made before this one.
        strength: λ of the sparsity regulariser at this iteration, float32 [trials].
    """
    arrays = (array.numpy() for array in (flat.weight, flat.gradient, flat.first, flat.second))
    c1, c2 = bias_corrections(iteration + 1)
    compiled_step(
        rule.optimizer, *arrays, rule.ends, rule.share, rule.low, rule.high, rule.rate, strength, rule.squared,
        rule.momentum, np.float32(c1), np.float32(c2),
    )  # fmt: skip


def step_torch(rule: UpdateRule, flat: Flat, iteration: int, strength: npt.NDArray[np.float32]) -> None:
    """Make one step on any device, as `step_compiled` does; arguments as there, except that `flat` may be on a GPU."""
    w, g = flat.weight, flat.gradient
    if strength.any() and rule.share.any():
        g.add_(_spread(rule, rule.share, strength, w.device) * _sparsity_slope(w, squared=rule.squared))
    rate = torch.as_tensor(rule.rate, device=w.device)
    if rule.optimizer == ADAM:
        c1, c2 = (float(np.float32(c)) for c in bias_corrections(iteration + 1))
        flat.first.add_((g - flat.first) * _rounded(1 - BETA_1))
        flat.second.mul_(_rounded(BETA_2)).add_((g * g) * _rounded(1 - BETA_2))
        move = flat.first / (flat.second.sqrt() * c2 + _rounded(EPSILON))
        rate = rate * c1
    elif rule.optimizer == MOMENTUM:
        flat.first.mul_(float(rule.momentum)).add_(g)
        move = flat.first
    else:
        move = g
    ones, trials = np.ones(len(rule.ends), np.float32), np.ones(len(rule.rate), np.float32)
    w.sub_(_spread(rule, ones, rate, w.device) * move)
    low, high = (_spread(rule, bound, trials, w.device) for bound in (rule.low, rule.high))
    torch.clamp(w, low, high, out=w)
    g.zero_()


def _spread(rule: UpdateRule, of_parameter: npt.NDArray[np.float32], of_trial: Any, device: torch.device) -> Tensor:
    """Repeat the product of_parameter[p] of_trial[s] for each number of parameter p of trial s, as a flat array."""
    of_trial = torch.as_tensor(of_trial, device=device)
    sizes = np.diff(rule.ends, prepend=0).tolist()
    parts = [
        (of_trial * float(number))[:, None].expand(-1, size).reshape(-1)
        for number, size in zip(of_parameter, sizes, strict=True)
    ]
    return torch.cat(parts)


def _rounded(number: float) -> float:
    """Round to float32, as compiled code does with its constants."""
    return float(np.float32(number))


def _sparsity_slope(w: Tensor, *, squared: bool) -> Tensor:
    """Differentiate min(|w|, 1 - |w|), or w² (1 - |w|)² if squared, for clipped weights w of any shape."""
    a = w.abs()
    if squared:
        return 2 * w * (1 - a) * (1 - 2 * a)
    return w.sign() * (0.5 - a).sign() * (a < 1)
