"""The L1 penalty of all parameters, and its stepwise growing strength."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from torch import Tensor


def l1(parameters: Iterable[Tensor], has_trials: bool = False) -> Tensor:
    """Sum the absolute values of all parameters, gates included: sum |θ|.

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020.

    Args:
        parameters: at least one, of any shape; with `has_trials`, of at least two axes.
        has_trials: whether the first axis of each is the trial.

    Returns:
        Shape [trials], or [] without trials.

    Raises:
        ValueError: if no parameter is given.
        IndexError: with `has_trials`, if a parameter has fewer than two axes.

    Example:
        >>> import torch
        >>> l1([torch.tensor([[1.0, -2.0]]), torch.tensor([[0.5]])])
        tensor(3.5000)
    """
    sums = [parameter.abs().flatten(int(has_trials)).sum(-1) for parameter in parameters]
    if not sums:
        raise ValueError("no parameter was given, but L1 is a sum over at least one")
    return sum(sums[1:], sums[0])


def stepwise(iteration: int, first: float, last: float, every: int = 10_000, factor: int = 10) -> float:
    """Compute a strength that grows in steps: β = min(β_0 factor^floor(t / every), β_1).

    Steps are exact in decimals: the first step from 1e-7 gives the float 1e-6.

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020. For one layer, Mistry et al., 2022, used 1e-7 to
    1e-5 for products and 1e-9 to 1e-7 for quotients.

    Args:
        iteration: t, the number of updates made, >= 0.
        first: β_0, > 0.
        last: β_1, >= β_0.
        every: updates between two steps, >= 1.
        factor: growth factor of each step, >= 2.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> [stepwise(iteration, 1e-7, 1e-5) for iteration in (0, 9_999, 10_000, 20_000, 1_000_000)]
        [1e-07, 1e-07, 1e-06, 1e-05, 1e-05]
    """
    if not (iteration >= 0 and 0 < first <= last < float("inf") and every >= 1 and factor >= 2):
        raise ValueError(
            f"iteration={iteration}, first={first:g}, last={last:g}, every={every}, factor={factor} were given, but "
            "iteration >= 0, 0 < first <= last < infinity, every >= 1 and factor >= 2 must hold"
        )
    strength, limit = Decimal(repr(float(first))), Decimal(repr(float(last)))
    for _ in range(iteration // every):
        if strength >= limit:
            break
        strength *= factor
    return float(min(strength, limit))
