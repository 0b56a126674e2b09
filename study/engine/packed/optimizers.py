"""Optimisers as functions over the trials of a pack, with a learning rate and a schedule for each trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

# Numbers of each array that fit into a core's L2 cache, since an optimiser passes over them several times.
_BLOCK_NUMBERS = 32 * 1024


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A trial's learning rate by iteration.

        rate(t) = rate * min(1, (t + 1) / warmup) * decay(t),    s = clip((t - warmup) / (iterations - warmup), 0, 1)

    where decay(t) is 1 if constant, 1 - s if linear, and (1 + cos(pi s)) / 2 if cosine.

    Source: Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, for cosine.

    Args:
        learning_rate: the highest rate, > 0.
        warmup: iterations until the rate has grown to it, >= 0.
        decay: form of the decrease afterwards.
        iterations: iteration at which the rate has fallen to 0, > warmup; not needed for a constant rate.

    Raises:
        ValueError: if an argument is out of range.
    """

    learning_rate: float = 1e-3
    warmup: int = 0
    decay: Literal["constant", "linear", "cosine"] = "constant"
    iterations: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f"learning_rate must be finite and > 0, but got {self.learning_rate}")
        if self.warmup < 0:
            raise ValueError(f"warmup >= 0 must hold, but got {self.warmup}")
        if self.decay not in ("constant", "linear", "cosine"):
            raise ValueError(f"decay must be constant, linear or cosine, but got {self.decay!r}")
        if self.decay != "constant" and (self.iterations is None or self.iterations <= self.warmup):
            raise ValueError(
                f"decay {self.decay} needs iterations > warmup, but got {self.iterations} and {self.warmup}"
            )


class Rates:
    """The learning rates of a pack's trials.

    Args:
        schedules: the schedule of each trial.

    Example:
        >>> rates = Rates([Schedule(learning_rate=0.1), Schedule(learning_rate=0.1, decay="linear", iterations=10)])
        >>> rates.at(5).tolist()
        [0.1, 0.05]
    """

    def __init__(self, schedules: Sequence[Schedule]) -> None:
        self._peak: npt.NDArray[np.float64] = np.array([schedule.learning_rate for schedule in schedules], float)
        self._warmup = np.array([schedule.warmup for schedule in schedules])
        self._length = np.array(
            [(schedule.iterations or schedule.warmup + 1) - schedule.warmup for schedule in schedules]
        )
        self._linear = np.array([schedule.decay == "linear" for schedule in schedules])
        self._cosine = np.array([schedule.decay == "cosine" for schedule in schedules])
        self._constant = not (self._warmup.any() or self._linear.any() or self._cosine.any())

    def at(self, iteration: int) -> npt.NDArray[np.float64]:
        """Return each trial's rate at an iteration, float64 [trials]."""
        if self._constant:
            return self._peak
        rise = np.minimum(1.0, (iteration + 1) / np.maximum(self._warmup, 1))
        share = np.clip((iteration - self._warmup) / self._length, 0.0, 1.0)
        fall = np.where(self._linear, 1 - share, np.where(self._cosine, (1 + np.cos(np.pi * share)) / 2, 1.0))
        rates: npt.NDArray[np.float64] = self._peak * rise * fall
        return rates


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """An optimiser: the update of weights w along a gradient g, at the rate of each trial's schedule.

        sgd:       w <- w - rate g
        momentum:  m <- momentum m + g;   w <- w - rate m
        adam:      m <- m + (1 - b1) (g - m);   v <- b2 v + (1 - b2) g²
                   w <- w - rate / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + epsilon)
        adamw:     w <- (1 - rate weight_decay) w;   then as adam
        rmsprop:   v <- a v + (1 - a) g²;   w <- w - rate g / (sqrt(v) + epsilon)

    All m and v begin at 0, and t is 1 in the first update. With a `clip_norm` c, g is first scaled to
    g min(1, c / |g|), with the norm over all of a trial's weights.

    Source: Kingma & Ba, "Adam: a method for stochastic optimization", ICLR 2015; Loshchilov & Hutter, "Decoupled weight
    decay regularization", ICLR 2019; Sutskever et al., "On the importance of initialization and momentum in deep
    learning", ICML 2013, in the form of `torch.optim.SGD`; Tieleman & Hinton, "Lecture 6.5 - RMSProp", 2012; Pascanu et
    al., "On the difficulty of training recurrent neural networks", ICML 2013, for the norm.

    Args:
        name: the optimiser's name.
        momentum: 0 <= momentum < 1.
        beta_1: b1, 0 <= b1 < 1.
        beta_2: b2, 0 <= b2 < 1.
        alpha: a, 0 <= a < 1, of RMSprop.
        epsilon: > 0.
        weight_decay: >= 0, of AdamW.
        clip_norm: c > 0; None for no clipping.

    Raises:
        ValueError: if an argument is out of range.
    """

    name: Literal["sgd", "momentum", "adam", "adamw", "rmsprop"] = "adam"
    momentum: float = 0.9
    beta_1: float = 0.9
    beta_2: float = 0.999
    alpha: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        if self.name not in MOMENTS:
            raise ValueError(f"the optimiser must be one of {', '.join(MOMENTS)}, but got {self.name!r}")
        for name in ("momentum", "beta_1", "beta_2", "alpha"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"0 <= {name} < 1 must hold, but got {getattr(self, name)}")
        if not (self.epsilon > 0 and self.weight_decay >= 0):
            raise ValueError(
                f"epsilon > 0 and weight_decay >= 0 must hold, but got {self.epsilon} and {self.weight_decay}"
            )
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"clip_norm > 0 must hold, but got {self.clip_norm}")

    def step(
        self, weight: Tensor, gradient: Tensor, moments: Sequence[Tensor], rate: npt.NDArray[np.float64], updates: int
    ) -> None:
        """Move a pack's weights by one step.

        Args:
            weight: [trials, numbers]; written.
            gradient: the same shape; written if its norm is clipped.
            moments: those of the arrays m and v that the optimiser has, in this order (their number is in `MOMENTS`),
                of the same shape, 0 before the first step; written.
            rate: [trials].
            updates: updates made before this one.
        """
        factors = {name: _column(factor, weight) for name, factor in self.factors(rate, updates).items()}
        rows = max(1, _BLOCK_NUMBERS // max(1, weight.shape[1])) if weight.is_cpu else len(weight)
        self.move(weight, gradient, moments, factors, rows)

    def factors(self, rate: npt.NDArray[np.float64], updates: int) -> dict[str, npt.NDArray[np.float64]]:
        """Return the factors of a step that depend on the rate and on the number of updates.

        Args:
            rate: [trials].
            updates: updates made before this one.

        Returns:
            Factors by name, each [trials], with t = `updates` + 1:

            - ``rate``
            - for Adam and AdamW ``by_first``, -rate / (1 - b1^t), and ``root``, sqrt(1 - b2^t)
            - for AdamW ``decay``, 1 - rate weight_decay
        """
        factors = {"rate": rate}
        if self.name.startswith("adam"):
            factors["by_first"] = -rate / (1 - self.beta_1 ** (updates + 1))
            factors["root"] = np.full_like(rate, math.sqrt(1 - self.beta_2 ** (updates + 1)))
        if self.name == "adamw":
            factors["decay"] = 1 - rate * self.weight_decay
        return factors

    def move(
        self,
        weight: Tensor,
        gradient: Tensor,
        moments: Sequence[Tensor],
        factors: Mapping[str, Tensor],
        rows: int | None = None,
    ) -> None:
        """Move a pack's weights by one step, given its factors.

        Args:
            weight: [trials, numbers]; written.
            gradient: the same shape; written if its norm is clipped.
            moments: those of the arrays m and v that the optimiser has, in this order (their number is in `MOMENTS`),
                of the same shape, 0 before the first step; written.
            factors: the factors from `factors`, each [trials, 1].
            rows: trials that are moved at once; None for all.
        """
        if self.clip_norm is not None:
            norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
            gradient.mul_((self.clip_norm / norm).clamp_(max=1))
        rows = rows or len(weight)
        for start in range(0, len(weight), rows):
            block = slice(start, start + rows)
            w, g, block_moments = weight[block], gradient[block], [moment[block] for moment in moments]
            by = {name: factor[block] for name, factor in factors.items()}
            if self.name == "sgd":
                w.sub_(g * by["rate"])
            elif self.name == "momentum":
                w.sub_(block_moments[0].mul_(self.momentum).add_(g) * by["rate"])
            elif self.name == "rmsprop":
                root = block_moments[0].mul_(self.alpha).addcmul_(g, g, value=1 - self.alpha).sqrt().add_(self.epsilon)
                w.sub_(g.div(root).mul_(by["rate"]))
            else:
                if self.name == "adamw":
                    w.mul_(by["decay"])
                self._adam(w, g, block_moments, by)

    def _adam(self, w: Tensor, g: Tensor, moments: Sequence[Tensor], by: Mapping[str, Tensor]) -> None:
        first, second = moments
        first.lerp_(g, 1 - self.beta_1)
        second.mul_(self.beta_2).addcmul_(g, g, value=1 - self.beta_2)
        root = second.sqrt().div_(by["root"]).add_(self.epsilon)
        w.add_((first * by["by_first"]).div_(root))


def _column(numbers: npt.NDArray[np.float64], weight: Tensor) -> Tensor:
    """Return one number per trial as a column beside the weights, rounded on the CPU."""
    column = torch.from_numpy(numbers).to(weight.dtype)[:, None]
    return column if weight.is_cpu else column.to(weight.device)


MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2, "rmsprop": 1}
"""Number of arrays of the weights' size that each optimiser needs."""
