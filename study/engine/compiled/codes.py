"""What compiled code knows of a model, its optimiser and its task: numbers and tuples instead of texts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from study.engine.compiled.formulas import ELU, LINEAR, PLAIN, RELU, RELU6, SELU, SIGMOID, SOFTSIGN, TANH
from tasks import MODELS

AFFINE, NMU, NAC_MUL, NALU, GATED = range(5)


FREE, NAC, SQUASHED = range(3)


class Code(NamedTuple):
    """Which unit a layer is, as compiled code has it.

    Args:
        family: how the output comes from weights and inputs.
        weights: how the weights come from parameters: FREE, NAC (tanh ⊙ σ) or SQUASHED (σ).
        activation: of an affine layer.
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


def no_gradient(model: str) -> str | None:
    """Say which unit of a model the fused engines don't know, or None if they know both."""
    units = (MODELS[model].first, MODELS[model].second)
    return next((f"it has no gradient for the unit {name}" for name in units if name not in CODES), None)


ADAM, SGD, MOMENTUM = range(3)


SETTLED = 60_000
"""Updates after which both of Adam's bias corrections are exactly 1."""


class Network(NamedTuple):
    """What all trials of a pack share of the network: sizes and units."""

    inputs: int
    hidden: int
    first: Code
    second: Code
    parameters: int


class Question(NamedTuple):
    """What trials are asked: the operation, and of each trial where its subsets start and stop, [trials, subsets]."""

    operation: int
    starts: Any
    stops: Any


class Draw(NamedTuple):
    """Where inputs come from: the purpose, seeds, uint64 [trials], and ranges, float32 [trials, 2] and [trials]."""

    purpose: int
    seeds: Any
    low: Any
    width: Any


class Moves(NamedTuple):
    """How parameters move.

    Args:
        optimizer: ADAM, SGD or MOMENTUM.
        momentum: coefficient.
        rate: step size, float32 [trials].
        squared: whether the sparsity regulariser is.
        strength: λ̂, [trials].
        start: iteration at which λ starts to grow, [trials].
        length: iterations it grows for, [trials].
        exponential: whether it grows that way, [trials].
        out_strength: weight of the out-of-bounds regulariser, float32 [trials].
        out_squared: whether that regulariser is.
        ends: where each parameter ends in a trial's row, [parameters].
        share: 1 / its size if it is bounded, else 0, float32.
        low: where it is clipped, or -inf, float32.
        high: the same, or inf, float32.
        of_nau: whether its bounds are those of a NAU.
    """

    optimizer: int
    momentum: np.float32
    rate: Any
    squared: bool
    strength: Any
    start: Any
    length: Any
    exponential: Any
    out_strength: Any
    out_squared: bool
    ends: Any
    share: Any
    low: Any
    high: Any
    of_nau: Any
