"""Models and tasks in a form for compiled code: numbers, and tuples without strings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tasks.arithmetic.cell import ArithmeticCell
from tasks.arithmetic.engine.compiled.formulas import ELU, LINEAR, PLAIN, RELU, RELU6, SELU, SIGMOID, SOFTSIGN, TANH

AFFINE, NMU, NAC_MUL, NALU, GATED = range(5)
"""Families of units, by the formula of their output."""

NOTHING = -1
"""The family of an absent layer: its output is its input."""

FREE, NAC, SQUASHED = range(3)
"""Formulas of weights from parameters: FREE, the parameters; NAC, tanh ⊙ σ; SQUASHED, σ."""


class Code(NamedTuple):
    """The unit of a layer, for compiled code.

    Args:
        family: AFFINE, NMU, NAC_MUL, NALU, GATED or NOTHING.
        weights: FREE, NAC or SQUASHED.
        activation: activation of an affine layer, as in `formulas`; PLAIN for a unit without activation and bias.
        shared: True if a NALU's sum and product have the same weights.
        low: lower bound to which weights are clamped in the forward pass.
        high: upper bound; both are infinite if the parameter itself is clipped, or free.
    """

    family: int
    weights: int = FREE
    activation: int = PLAIN
    shared: bool = False
    low: np.float32 = np.float32(-np.inf)
    high: np.float32 = np.float32(np.inf)


CODES: dict[str, Code] = {
    "NAC-add": Code(AFFINE, NAC),
    "NAC-mul": Code(NAC_MUL, NAC),
    "NAC-mul-sigma": Code(NAC_MUL, SQUASHED),
    "NAC-mul-NMU": Code(NAC_MUL),
    "NALU": Code(NALU, NAC, shared=True),
    "NALU-separate": Code(NALU, NAC),
    "NAU": Code(AFFINE),
    "NMU": Code(NMU),
    "gated-NAU-NMU": Code(GATED),
    "linear": Code(AFFINE, activation=LINEAR),
    "ReLU": Code(AFFINE, activation=RELU),
    "ReLU6": Code(AFFINE, activation=RELU6),
    "tanh": Code(AFFINE, activation=TANH),
    "sigmoid": Code(AFFINE, activation=SIGMOID),
    "softsign": Code(AFFINE, activation=SOFTSIGN),
    "SELU": Code(AFFINE, activation=SELU),
    "ELU": Code(AFFINE, activation=ELU),
}
"""The units that the fused engines support, by their name in `units.UNITS`."""


NO_LAYER = Code(NOTHING)
"""The code of the second layer of one-layer networks."""


def find_unsupported(cell: ArithmeticCell) -> str | None:
    """Return the first reason why no fused engine can train a cell; None without one.

    An engine may have limits of its own besides.

    Raises:
        KeyError: if the model is neither built in nor a registered unit.
    """
    units = cell.network.layers.values()
    if unknown := next((name for name in units if name not in CODES), None):
        return f"it has no gradient for the unit {unknown}"
    if cell.distribution is not None:
        return f"it draws only uniform inputs, not the distribution {cell.distribution}"
    if cell.operation == "reciprocal":
        return "it doesn't have the operation reciprocal"
    if cell.relative_error:
        return "it doesn't measure the relative error"
    if cell.l1_strength is not None:
        return "it has no L1 penalty"
    if cell.clip_norm is not None or cell.clip_value is not None:
        return "it has no gradient limits"
    return None


class Network(NamedTuple):
    """The network shared by all trials of a pack.

    Args:
        inputs: numbers in a row, n.
        hidden: hidden units.
        first: unit of the first layer.
        second: unit of the second layer, or `NO_LAYER`.
        parameters: number of first-layer parameters; the second layer's follow them in a trial's row.
    """

    inputs: int
    hidden: int
    first: Code
    second: Code
    parameters: int


class Target(NamedTuple):
    """The target of trials: an operation on the sums of subsets of their inputs.

    Args:
        operation: ADD, SUB, MUL, DIV, SQUARED or ROOT.
        starts: first input of each subset, int64 [trials, subsets].
        stops: the input after each subset's last, the same shape.
    """

    operation: int
    starts: Any
    stops: Any


class InputStream(NamedTuple):
    """The source of inputs.

    Args:
        purpose: a `study.stream.stream.Purpose`.
        seeds: uint64 [trials].
        low: start of each of two intervals, float32 [trials, 2]; equal for a single interval.
        width: width of an interval, float32 [trials].
    """

    purpose: int
    seeds: Any
    low: Any
    width: Any
