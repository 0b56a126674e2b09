"""What a kernel is compiled for: a cell's sizes, its units, and how each of their parameters moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tasks.arithmetic.engine.compiled.codes import GATED, NAC, NALU, NOTHING, SQUASHED, Code, Network
from tasks.arithmetic.engine.compiled.formulas import PLAIN
from tasks.arithmetic.engine.shared.update_rule import UpdateRule


class ParameterRule(NamedTuple):
    """How one parameter moves: a column of `UpdateRule`.

    Args:
        share: 1 / its size if it is regularised, else 0.
        low: where it is clipped, or -inf.
        high: the same, or inf.
        of_nau: whether its bounds are those of a NAU and not those of an NMU.
    """

    share: float
    low: float
    high: float
    of_nau: bool


@dataclass(frozen=True)
class Shape:
    """What a kernel is compiled for.

    Args:
        inputs: n, 1 to `layout.MOST_INPUTS`.
        hidden: hidden units, 1 to `layout.MOST_HIDDEN`.
        batch: rows of a batch, >= 1.
        subsets: whose sums the target is made of, >= 1.
        first: unit of the first layer.
        second: unit of the second layer, or `NO_LAYER`.
        rules: of each parameter: the first layer's, then the second's.
    """

    inputs: int
    hidden: int
    batch: int
    subsets: int
    first: Code
    second: Code
    rules: tuple[ParameterRule, ...]


def new_shape(network: Network, rule: UpdateRule, batch: int, subsets: int) -> Shape:
    """Collect what a pack's kernel is compiled for.

    Args:
        network: of the pack.
        rule: of the pack.
        batch: rows of a batch.
        subsets: whose sums the target is made of.
    """
    columns = (rule.share, rule.low, rule.high, rule.of_nau)
    rules = tuple(
        ParameterRule(float(share), float(low), float(high), bool(of_nau))
        for share, low, high, of_nau in zip(*columns, strict=True)
    )
    return Shape(network.inputs, network.hidden, batch, subsets, network.first, network.second, rules)


def parameters(code: Code) -> int:
    """Count the weight matrices that a unit learns, 1 to 5, or 0 where there is no layer; a bias is not one."""
    if code.family == NOTHING:
        return 0
    if code.family == GATED:
        return 3
    if code.family == NALU:
        return 3 if code.shared else 5
    return 2 if code.weights == NAC else 1


def effective(code: Code) -> int:
    """Count the matrices that a unit multiplies its inputs with: 1, sum or product; 2, sum and gate; 3, and product."""
    if code.family == NOTHING:
        return 0
    if code.family == GATED:
        return 3
    if code.family == NALU:
        return 2 if code.shared else 3
    return 1


def factors(code: Code) -> int:
    """Count the numbers that a thread stores of each weight for its gradient, 0 to 4."""
    if code.weights == NAC:
        return 4 if code.family == NALU and not code.shared else 2
    return 1 if code.weights == SQUASHED else 0


def has_bias(code: Code) -> bool:
    """Tell whether a unit has a bias."""
    return code.activation != PLAIN
