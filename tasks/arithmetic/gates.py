"""Effective weights and mean gate openness of trained networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from study.engine.device import one_thread
from study.interface.family import Content
from study.stream.stream import Purpose
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.engine.shared.evaluation_rows import draw_rows
from tasks.arithmetic.networks import Network
from units.nalu import GatedUnit
from units.npu import NPU, RealNPU

Arrays = Mapping[str, npt.NDArray[np.float32]]

# Rows, and hidden values, processed at a time. With chunks of 2000 rows, the NMU's product of 100 inputs leaves the
# caches: gated units take 3 times as long, NALU 0.7 times. Much smaller chunks take at least twice as long.
_ROWS = 400
_HIDDEN_VALUES = 64 * 1024


def effective_weights(cell: Content, arrays: Arrays) -> dict[str, npt.NDArray[np.float32]]:
    """Compute each layer's effective weights: W of every path, and a gate's parameter G, without biases.

    Args:
        cell: the trials' cell.
        arrays: arrays of one trial's `Weights`, or of several trials stacked.

    Returns:
        Float32 [..., out, in], for an NMRU [..., out, 2 in], by display name, such as ``layer 1, W``. A unit with two
            paths has one matrix for each, such as ``layer 1, NAU`` and ``layer 1, NMU``. A gate's matrix is
            ``layer 1, G``; an iNALU's is ĝ, [..., 1, out]. The gates of an NPU's inputs, clamped to [0, 1], are
            ``layer 2, g``, [..., 1, in].

    Raises:
        ValueError: if the arrays don't fit the cell's network.
        KeyError: if a unit is unknown, or its code isn't available.

    Example:
        >>> from study.spec.cells import canonical_cell
        >>> names = ("weight_hat", "mask_hat", "gate")
        >>> zeros = {f"layer_1.{name}": np.zeros((2, 4), np.float32) for name in names}
        >>> zeros |= {f"layer_2.{name}": np.zeros((1, 2), np.float32) for name in names}
        >>> matrices = effective_weights(canonical_cell("simple", "NALU", {}), zeros)
        >>> {name: matrix.shape for name, matrix in matrices.items()}
        {'layer 1, W': (2, 4), 'layer 1, G': (2, 4), 'layer 2, W': (1, 2), 'layer 2, G': (1, 2)}
    """
    network, _ = _network(cell, arrays)
    matrices: dict[str, Tensor] = {}
    for number, layer in enumerate(network.layers, start=1):
        for path, weight in zip(layer.paths, layer.effective_weights(), strict=True):
            matrices[f"layer {number}, {path}"] = weight
        if isinstance(layer, GatedUnit):
            matrices[f"layer {number}, G"] = layer.gate
        elif isinstance(layer, NPU | RealNPU):
            matrices[f"layer {number}, g"] = layer.gate.clamp(0, 1)
    return {name: matrix.detach().numpy() for name, matrix in matrices.items()}


def mean_gates(cell: Content, arrays: Arrays, rows: int | None = None) -> dict[str, npt.NDArray[np.float32]]:
    """Compute the mean openness of each gate: the mean of g = σ(Gx) over the validation rows.

    The rows are those of trials without an evaluation seed, also for trials that have one.

    x is the layer's input: the rows in layer 1, the output of layer 1 in layer 2. A gate of 1 adds, a gate of 0
    multiplies. An iNALU's gate is g = σ(ĝ), without x. The gates of an NPU's inputs aren't included.

    Args:
        cell: the trials' cell.
        arrays: arrays of one trial's `Weights`, or of several trials stacked.
        rows: number of validation rows to use, from the first, >= 1; None for all.

    Returns:
        ``layer 1`` and ``layer 2``, if they have gates: float32 [..., out], NaN where weights or inputs are NaN.

    Raises:
        ValueError: if the arrays don't fit the cell's network.
        KeyError: if a unit is unknown, or its code isn't available.

    Example:
        >>> from study.spec.cells import canonical_cell
        >>> names = ("weight_hat", "mask_hat", "gate")
        >>> zeros = {f"layer_1.{name}": np.zeros((2, 4), np.float32) for name in names}
        >>> zeros |= {f"layer_2.{name}": np.zeros((1, 2), np.float32) for name in names}
        >>> mean_gates(canonical_cell("simple", "NALU", {}), zeros)
        {'layer 1': array([0.5, 0.5], dtype=float32), 'layer 2': array([0.5], dtype=float32)}
    """
    network, is_stacked = _network(cell, arrays)
    typed = typed_cell(cell)
    if not is_stacked:
        stacked = mean_gates(cell, {name: array[None] for name, array in arrays.items()}, rows)
        return {name: gates[0] for name, gates in stacked.items()}
    if not any(isinstance(layer, GatedUnit) for layer in network.layers):
        return {}
    x = torch.from_numpy(draw_rows([typed.trained_on], typed, Purpose.VALIDATION)[0])[:, :rows]
    trials = len(next(iter(arrays.values())))
    size = max(1, _HIDDEN_VALUES // (_ROWS * typed.hidden_size))
    chunks = []
    with one_thread(), torch.no_grad():
        for first in range(0, trials, size):
            _bind(network, {name: array[first : first + size] for name, array in arrays.items()})
            chunks.append(_sums(network, x))
    return {name: (torch.cat([sums[name] for sums in chunks]) / x.shape[1]).float().numpy() for name in chunks[0]}


def _sums(network: Network, x: Tensor) -> dict[str, Tensor]:
    """Sum each layer's gates over all rows of x, [features, rows]: float64 [trials, out]."""
    sums: dict[str, Tensor] = {}
    for rows in torch.split(x, _ROWS, dim=1):
        values = rows.mT
        for number, layer in enumerate(network.layers, start=1):
            if isinstance(layer, GatedUnit):
                name, part = f"layer {number}", layer.gates(values).sum(-2, dtype=torch.float64)
                sums[name] = sums[name] + part if name in sums else part
            values = layer(values)
    return sums


def _network(cell: Content, arrays: Arrays) -> tuple[Network, bool]:
    """Return the cell's network with these parameters, and True if they have an axis of trials.

    Raises:
        ValueError: if the arrays don't fit the network.
        KeyError: if a unit is unknown, or its code isn't available.
    """
    typed = typed_cell(cell)
    network = Network(
        typed.network,
        typed.input_size,
        typed.hidden_size,
        bounds="regularized" if typed.bounds == "regularized" else "clipped",
        generator=torch.Generator(),  # a generator of its own: torch's default one must stay unchanged
    )
    wanted = {name: tuple(parameter.shape) for name, parameter in _parameters(network)}
    given = {name: array.shape for name, array in arrays.items()}
    leading = {given[name][: -len(shape)] for name, shape in wanted.items() if name in given}
    lead = leading.pop() if len(leading) == 1 else ()
    if len(lead) > 1 or given != {name: lead + shape for name, shape in wanted.items()}:
        raise ValueError(
            f"the arrays of a trial of {cell.model} must have the shapes {wanted}, those of several "
            f"trials one more axis in front, but got {given}"
        )
    _bind(network, arrays)
    return network.eval(), bool(lead)


def _bind(network: Network, arrays: Arrays) -> None:
    for name, parameter in _parameters(network):
        parameter.data = torch.tensor(arrays[name])


def _parameters(network: Network) -> Iterator[tuple[str, nn.Parameter]]:
    for number, layer in enumerate(network.layers, start=1):
        for name, parameter in layer.named_parameters():
            yield f"layer_{number}.{name}", parameter
