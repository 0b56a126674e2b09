"""The first layers of trials that see the same rows: one shared product, then operations on each trial's sums.

A first layer multiplies its weights with the inputs, their logarithms or factors of them, and then processes the sums
row by row. Weights multiplied with the same numbers are stacked: one matrix holds a few rows of each trial, and so do
the sums and their gradients. A sum doesn't depend on the rest of the stack (`products`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tasks.arithmetic import Model
from tasks.arithmetic.engine.compiled.cache import forced, inlined, internal
from tasks.arithmetic.engine.compiled.codes import AFFINE, CODES, GATED, NAC_MUL, NALU, NMU
from tasks.arithmetic.engine.compiled.formulas import PLAIN
from tasks.arithmetic.engine.cpu.gates import mix_of_sums, mix_to_sums
from tasks.arithmetic.engine.cpu.gradients import (
    affine_of_sums,
    affine_to_sums,
    exponentials,
    nmu_backward,
    nmu_forward,
    times,
)
from tasks.arithmetic.engine.cpu.layers import bias, bias_gradient
from tasks.arithmetic.engine.cpu.simd import matrix

PRODUCTS = {AFFINE: (1, 0, 0), NMU: (0, 0, 1), NAC_MUL: (0, 1, 0), NALU: (2, 1, 0), GATED: (2, 0, 1)}
"""Numbers of first-layer matrices multiplied with inputs, logarithms and factors, by family."""


def planes_of(models: Iterable[Model]) -> int:
    """Count the planes of evaluation rows: 1, or 2 with logarithms, if a model's first layer multiplies them.

    Raises:
        KeyError: if the fused engines don't support the unit of a first layer.

    Example:
        >>> from tasks.arithmetic import MODELS
        >>> planes_of([MODELS["NMU"], MODELS["NAC-mul"]]), planes_of([MODELS["NMU"], MODELS["NALU"]])
        (1, 2)
    """
    return 2 if any(PRODUCTS[CODES[model.first].family][1] for model in models) else 1


class Rows(NamedTuple):
    """The places of a first layer's rows in a scratch array, [rows, columns] flattened.

    Args:
        room: the array, float32.
        columns: rows of a block of inputs.
        sums: first row of the sums with inputs; a gate's sums follow after `outputs`.
        log_sums: first row of the sums with logarithms.
        slopes: offset from the rows of sums to those of their gradients.
        spare: first of the `spare_rows` rows that every first layer uses in turn.
    """

    room: Any
    columns: int
    sums: int
    log_sums: int
    slopes: int
    spare: int


def spare_rows(inputs: int, outputs: int) -> int:
    """Count the rows that first layers use in turn.

    These are hidden values, products and the gradients of both, [outputs] each; factors before and without each input,
    [inputs] each; and one more.
    """
    return 4 * outputs + 2 * inputs + 1


@inlined
def _view(rows, first, count):  # type: ignore[no-untyped-def]
    return matrix(rows.room, first * rows.columns, count, rows.columns)


@forced
def _hidden_row(code, rows):  # type: ignore[no-untyped-def]
    """Return the hidden values' first row: that of the sums that they equal or overwrite, else a spare one."""
    if code.family == AFFINE and code.activation == PLAIN:
        return rows.sums
    if code.family == NAC_MUL:
        return rows.log_sums
    return rows.spare


@forced
def _slope_row(code, rows, outputs):  # type: ignore[no-untyped-def]
    """Return the first row of the hidden values' gradients."""
    at = _hidden_row(code, rows)
    return at + outputs if at == rows.spare else at + rows.slopes


@inlined
def hidden_values(code, rows, outputs):  # type: ignore[no-untyped-def]
    """View a first layer's outputs, [outputs, columns]."""
    return _view(rows, _hidden_row(code, rows), outputs)


@inlined
def hidden_slopes(code, rows, outputs):  # type: ignore[no-untyped-def]
    """View the gradients of a first layer's outputs, [outputs, columns]."""
    return _view(rows, _slope_row(code, rows, outputs), outputs)


@internal
def from_sums(code, layer, rows, x):  # type: ignore[no-untyped-def]
    """Write the hidden values, [outputs, columns], from the sums of `stacks.multiply_stack`.

    A no-op for an affine layer without activation, whose sums are its hidden values. Otherwise sums may be overwritten,
    by hidden values or by numbers that `to_sums` needs.

    Args:
        code: the layer's unit.
        layer: `Layer`.
        rows: `Rows`.
        x: inputs, [inputs or more, columns or more], for products of factors.
    """
    h, outputs = hidden_values(code, rows, layer.outputs), layer.outputs
    sums, logs = _view(rows, rows.sums, outputs), _view(rows, rows.log_sums, outputs)
    gates, products = _view(rows, rows.sums + outputs, outputs), _view(rows, rows.spare + 2 * outputs, outputs)
    before = _view(rows, rows.spare + 4 * outputs, layer.inputs)
    if code.family == AFFINE:
        if code.activation != PLAIN:
            affine_of_sums(bias(layer), code.activation, sums, h)
    elif code.family == NMU:
        nmu_forward(matrix(layer.weights, layer.first, outputs, layer.inputs), x, before, h)
    elif code.family == NAC_MUL:
        exponentials(h)
    elif code.family == NALU:
        exponentials(logs)
        mix_of_sums(sums, logs, gates, h)
    else:
        nmu_forward(matrix(layer.weights, layer.second, outputs, layer.inputs), x, before, products)
        mix_of_sums(sums, products, gates, h)


@internal
def to_sums(code, layer, rows, x, ones):  # type: ignore[no-untyped-def]
    """Compute the gradients of the sums from those of the hidden values, and add to those of the bias and NMU weights.

    A no-op for an affine layer without activation, whose sums are its hidden values.

    Args:
        code: the layer's unit.
        layer: `Layer`.
        rows: `Rows`, after `from_sums`.
        x: inputs, as for `from_sums`.
        ones: ones, [1, columns].
    """
    outputs, inputs = layer.outputs, layer.inputs
    h, slopes = hidden_values(code, rows, outputs), hidden_slopes(code, rows, outputs)
    sums, logs = _view(rows, rows.sums, outputs), _view(rows, rows.log_sums, outputs)
    gates, products = _view(rows, rows.sums + outputs, outputs), _view(rows, rows.spare + 2 * outputs, outputs)
    sums_grad, logs_grad = (
        _view(rows, rows.sums + rows.slopes, outputs), _view(rows, rows.log_sums + rows.slopes, outputs)
    )  # fmt: skip
    gates_grad = _view(rows, rows.sums + rows.slopes + outputs, outputs)
    products_grad = _view(rows, rows.spare + 3 * outputs, outputs)
    before, others = (
        _view(rows, rows.spare + 4 * outputs, inputs), _view(rows, rows.spare + 4 * outputs + inputs, inputs)
    )  # fmt: skip
    after = _view(rows, rows.spare + 4 * outputs + 2 * inputs, 1)
    unwanted = _view(rows, 0, 0)
    if code.family == AFFINE:
        if code.activation != PLAIN:
            affine_to_sums(code.activation, sums, h, slopes, ones, bias_gradient(layer), sums_grad)
    elif code.family == NMU:
        w, d = (
            matrix(layer.weights, layer.first, outputs, inputs), matrix(layer.gradients, layer.first, outputs, inputs)
        )  # fmt: skip
        nmu_backward(w, x, before, h, slopes, ones, after, others, d, unwanted)
    elif code.family == NAC_MUL:
        times(slopes, h, slopes)
    elif code.family == NALU:
        mix_to_sums(slopes, sums, logs, gates, sums_grad, logs_grad, gates_grad)
        times(logs_grad, logs, logs_grad)
    else:
        mix_to_sums(slopes, sums, products, gates, sums_grad, products_grad, gates_grad)
        w, d = (
            matrix(layer.weights, layer.second, outputs, inputs),
            matrix(layer.gradients, layer.second, outputs, inputs),
        )
        nmu_backward(w, x, before, products, products_grad, ones, after, others, d, unwanted)
