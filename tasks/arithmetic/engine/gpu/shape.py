"""Compile-time constants of a kernel: a cell's sizes, its units, and the update rule of each parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tasks.arithmetic.engine.compiled.codes import GATED, NAC, NALU, NOTHING, SQUASHED, Code, Network
from tasks.arithmetic.engine.compiled.formulas import PLAIN
from tasks.arithmetic.engine.shared.update_rule import UpdateRule


class ParameterRule(NamedTuple):
    """The update rule of one parameter, a column of `UpdateRule`.

    Args:
        share: 1 / its size if it is regularised, else 0.
        low: lower clipping bound, or -inf.
        high: upper clipping bound, or inf.
        of_nau: True if its bounds are a NAU's, False if they are an NMU's.
    """

    share: float
    low: float
    high: float
    of_nau: bool


@dataclass(frozen=True)
class Shape:
    """The compile-time constants of a kernel.

    Args:
        inputs: n, 1 to `layout.MOST_INPUTS`.
        hidden: hidden units, 1 to `layout.MOST_HIDDEN`.
        batch: rows of a batch, >= 1.
        subsets: number of subsets of the target, >= 1.
        first: unit of the first layer.
        second: unit of the second layer, or `NO_LAYER`.
        rules: rules of the parameters: the first layer's, then the second's.
    """

    inputs: int
    hidden: int
    batch: int
    subsets: int
    first: Code
    second: Code
    rules: tuple[ParameterRule, ...]


def new_shape(network: Network, rule: UpdateRule, batch: int, subsets: int) -> Shape:
    """Make the shape of a pack's kernel.

    Args:
        network: the pack's network.
        rule: the pack's update rule.
        batch: rows of a batch.
        subsets: number of subsets of the target.
    """
    columns = (rule.share, rule.low, rule.high, rule.of_nau)
    rules = tuple(
        ParameterRule(float(share), float(low), float(high), bool(of_nau))
        for share, low, high, of_nau in zip(*columns, strict=True)
    )
    return Shape(network.inputs, network.hidden, batch, subsets, network.first, network.second, rules)


def parameters(code: Code) -> int:
    """Count the weight matrices that a unit learns, without a bias: 1 to 5, or 0 without a layer."""
    if code.family == NOTHING:
        return 0
    if code.family == GATED:
        return 3
    if code.family == NALU:
        return 3 if code.shared else 5
    return 2 if code.weights == NAC else 1


def effective(code: Code) -> int:
    """Count the matrices that multiply a unit's inputs: 1, sum or product; 2, sum and gate; 3, all; 0, no layer."""
    if code.family == NOTHING:
        return 0
    if code.family == GATED:
        return 3
    if code.family == NALU:
        return 2 if code.shared else 3
    return 1


def factors(code: Code) -> int:
    """Count the numbers that a thread stores for the gradient of each weight, 0 to 4."""
    if code.weights == NAC:
        return 4 if code.family == NALU and not code.shared else 2
    return 1 if code.weights == SQUASHED else 0


def has_bias(code: Code) -> bool:
    """Return True if a unit has a bias."""
    return code.activation != PLAIN
