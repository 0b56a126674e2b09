"""Update rules of a pack's parameters: optimiser, regularisers, and the bounds of each parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tasks.arithmetic.cell import ArithmeticCell
from tasks.arithmetic.own_units import traits_of
from units.regularize import LIMITS

ADAM, SGD, MOMENTUM = range(3)
_OPTIMIZERS = {"adam": ADAM, "sgd": SGD, "momentum": MOMENTUM}


class UpdateRule(NamedTuple):
    """The update rule of a pack's parameters, as numbers and arrays that compiled code accepts.

    Args:
        optimizer: ADAM, SGD or MOMENTUM.
        momentum: coefficient of MOMENTUM, float32.
        rate: step size, float32 [trials].
        squared: True if the sparsity regulariser is squared.
        strength: λ̂ of that regulariser, float64 [trials].
        start: iteration at which λ starts to grow, float64 [trials].
        length: iterations of its growth, >= 1, float64 [trials].
        exponential: True for exponential growth without start and length, bool [trials].
        out_strength: weight of the out-of-bounds regulariser, float32 [trials].
        out_squared: True if that regulariser is squared.
        ends: end of each parameter in a trial's row, int64 [parameters].
        share: factor of a regulariser's slope, which is a mean: 1 / the parameter's size, or 0 if it isn't regularised,
            float32 [parameters].
        low: lower clipping bound, or -inf, float32 [parameters].
        high: upper clipping bound, or inf, float32 [parameters].
        of_nau: True if a parameter's bounds are a NAU's, False if they are an NMU's, bool [parameters].
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


def new_update_rule(cells: Sequence[ArithmeticCell], shapes: Mapping[str, Sequence[int]]) -> UpdateRule:
    """Make the update rule of some trials' parameters.

    Args:
        cells: the trials' cells, of equal tensor shape.
        shapes: shapes of one trial's parameters, by their names ``first.PARAMETER`` and ``second.PARAMETER``.

    Raises:
        KeyError: if a unit is unknown.

    Example:
        >>> from tasks.arithmetic.canonical import canonical
        >>> cell = canonical("simple", "NMU", {"sparsity_start": 10, "sparsity_end": 30})
        >>> rule = new_update_rule([cell], {"first.weight": (2, 4), "second.weight": (1, 2)})
        >>> rule.ends.tolist(), rule.share.tolist(), rule.low.tolist(), rule.of_nau.tolist()
        ([8, 10], [0.125, 0.5], [-1.0, 0.0], [True, False])
        >>> rule.strength.tolist(), rule.start.tolist(), rule.length.tolist()
        ([10.0], [10.0], [20.0])
    """
    cell = cells[0]
    regularized = cell.bounds == "regularized"
    bounded = {
        f"{layer}.{name}": kind
        for layer, unit in cell.network.layers.items()
        for name, kind in traits_of(unit).bounded.items()
    }
    kinds = [bounded.get(name) for name in shapes]
    sizes = [math.prod(shape) for shape in shapes.values()]
    limits = [LIMITS[kind] if kind and cell.bounds == "clipped" else (-np.inf, np.inf) for kind in kinds]
    start = np.array([c.sparsity_start or 0 for c in cells], np.float64)
    end = np.array([c.sparsity_end or 1 for c in cells], np.float64)
    out_strengths = [(c.out_of_bounds_strength or 0.0) if regularized else 0.0 for c in cells]
    return UpdateRule(
        optimizer=_OPTIMIZERS[cell.optimizer],
        momentum=np.float32(cell.momentum or 0),
        rate=np.array([c.learning_rate for c in cells], np.float32),
        squared=any(c.sparsity_shape == "squared" for c in cells),
        strength=np.array([c.sparsity_strength or 0.0 for c in cells]),
        start=start,
        length=np.maximum(end - start, 1),
        exponential=np.array([c.sparsity_scaling == "exponential" for c in cells]),
        out_strength=np.array(out_strengths, np.float32),
        out_squared=cell.out_of_bounds_shape == "squared",
        ends=np.cumsum(sizes),
        share=np.array([1 / size if kind else 0 for size, kind in zip(sizes, kinds, strict=True)], np.float32),
        low=np.array([low for low, _ in limits], np.float32),
        high=np.array([high for _, high in limits], np.float32),
        of_nau=np.array([kind == "NAU" for kind in kinds]),
    )
