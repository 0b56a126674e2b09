"""What compiled code knows of a model and its task: numbers, and tuples without strings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tasks.arithmetic.cell import ArithmeticCell
from tasks.arithmetic.engine.compiled.formulas import ELU, LINEAR, PLAIN, RELU, RELU6, SELU, SIGMOID, SOFTSIGN, TANH

AFFINE, NMU, NAC_MUL, NALU, GATED = range(5)
"""Families of units: how the output comes from weights and inputs."""

NOTHING = -1
"""The family of a layer that isn't there: its output is its input."""

FREE, NAC, SQUASHED = range(3)
"""How weights come from parameters: FREE, as they are; NAC, tanh ⊙ σ; SQUASHED, σ."""


class Code(NamedTuple):
    """Which unit a layer is, as compiled code has it.

    Args:
        family: AFFINE, NMU, NAC_MUL, NALU, GATED or NOTHING.
        weights: FREE, NAC or SQUASHED.
        activation: of an affine layer, as in `formulas`; PLAIN for a unit without activation and bias.
        shared: whether a NALU's sum and product have the same weights.
        low: bound to which weights are clamped in the forward pass.
        high: the other bound; both are infinite if the parameter itself is clipped, or free.
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
"""The units that the fused engines know, by their name in `units.UNITS`."""


NO_LAYER = Code(NOTHING)
"""The code of a second layer where there is but one."""


def what_is_unknown(cell: ArithmeticCell) -> str | None:
    """Say what of a cell the fused engines don't know, a unit or a part of the training; None if they know all."""
    units = cell.network.layers.values()
    if unknown := next((name for name in units if name not in CODES), None):
        return f"it has no gradient for the unit {unknown}"
    if cell.distribution is not None:
        return f"it draws uniform inputs, but not of the distribution {cell.distribution}"
    if cell.operation == "reciprocal":
        return "it doesn't know the operation reciprocal"
    if cell.relative_error:
        return "it measures no relative error"
    if cell.l1_strength is not None:
        return "it has no L1 penalty"
    if cell.clip_norm is not None or cell.clip_value is not None:
        return "it limits no gradients"
    return None


class Network(NamedTuple):
    """What all trials of a pack share of the network.

    Args:
        inputs: numbers in a row, n.
        hidden: hidden units.
        first: unit of the first layer.
        second: unit of the second layer, or `NO_LAYER`.
        parameters: of the first layer; the second layer's follow them in a trial's row.
    """

    inputs: int
    hidden: int
    first: Code
    second: Code
    parameters: int


class Target(NamedTuple):
    """What trials are to compute: an operation of the sums of subsets of their inputs.

    Args:
        operation: ADD, SUB, MUL, DIV, SQUARED or ROOT.
        starts: first input of each subset, int64 [trials, subsets].
        stops: the input after its last, the same shape.
    """

    operation: int
    starts: Any
    stops: Any


class InputStream(NamedTuple):
    """Where inputs come from.

    Args:
        purpose: a `study.stream.stream.Purpose`.
        seeds: uint64 [trials].
        low: where each of the two intervals starts, float32 [trials, 2]; twice the same for one interval.
        width: of an interval, float32 [trials].
    """

    purpose: int
    seeds: Any
    low: Any
    width: Any
