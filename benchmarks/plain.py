"""The baseline without a service: one trial, plain PyTorch, autograd, torch.optim.Adam.

Layers, regulariser and clipping use torch's own operations. The project's units would be slower here: they keep a
trial's bits independent of its pack, which a single trial doesn't need. A test holds both to the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.measure import BATCH, Measure
from study.records import Cell
from tasks.arithmetic import MODELS
from tasks.arithmetic.cell import task_of, typed_cell
from tasks.arithmetic.networks import Network
from units import Unit
from units.regularize import LIMITS

Forward = Callable[[Unit, Tensor], Tensor]


def _nac_weight(weight_hat: Tensor, mask_hat: Tensor) -> Tensor:
    return torch.tanh(weight_hat) * torch.sigmoid(mask_hat)


def _power(x: Tensor, weight: Tensor) -> Tensor:
    return torch.exp(functional.linear(torch.log(torch.abs(x) + 1e-7), weight))


def _product(x: Tensor, weight: Tensor) -> Tensor:
    return torch.prod(x.unsqueeze(-2) * weight + 1 - weight, -1)


def _normalized(x: Tensor, weight: Tensor) -> Tensor:
    c = x.std()
    return _product(x / c, weight) * c ** weight.sum(-1)


def _nalu(x: Tensor, weight_add: Tensor, weight_mul: Tensor, gate: Tensor) -> Tensor:
    g = torch.sigmoid(functional.linear(x, gate))
    return g * functional.linear(x, weight_add) + (1 - g) * _power(x, weight_mul)


def _shared_nalu(u: Unit, x: Tensor) -> Tensor:
    weight = _nac_weight(u.weight_hat, u.mask_hat)
    return _nalu(x, weight, weight, u.gate)


def _separate_nalu(u: Unit, x: Tensor) -> Tensor:
    add = _nac_weight(u.weight_hat_add, u.mask_hat_add)
    return _nalu(x, add, _nac_weight(u.weight_hat_mul, u.mask_hat_mul), u.gate)


def _gated(u: Unit, x: Tensor) -> Tensor:
    g = torch.sigmoid(functional.linear(x, u.gate))
    return g * functional.linear(x, u.weight_add) + (1 - g) * _product(x, u.weight_mul)


def _activated(activation: Callable[[Tensor], Tensor]) -> Forward:
    return lambda u, x: activation(functional.linear(x, u.weight, u.bias))


FORWARD: dict[str, Forward] = {
    "NAC-add": lambda u, x: functional.linear(x, _nac_weight(u.weight_hat, u.mask_hat)),
    "NAC-mul": lambda u, x: _power(x, _nac_weight(u.weight_hat, u.mask_hat)),
    "NAC-mul-sigma": lambda u, x: _power(x, torch.sigmoid(u.weight_hat)),
    "NAC-mul-NMU": lambda u, x: _power(x, u.weight),
    "NALU": _shared_nalu,
    "NALU-separate": _separate_nalu,
    "NAU": lambda u, x: functional.linear(x, u.weight),
    "NMU": lambda u, x: _product(x, u.weight),
    "NMU-normalized": lambda u, x: _normalized(x, u.weight),
    "gated-NAU-NMU": _gated,
    "linear": lambda u, x: functional.linear(x, u.weight, u.bias),
    "ReLU": _activated(functional.relu),
    "ReLU6": _activated(functional.relu6),
    "tanh": _activated(torch.tanh),
    "sigmoid": _activated(torch.sigmoid),
    "softsign": _activated(functional.softsign),
    "SELU": _activated(functional.selu),
    "ELU": _activated(functional.elu),
}
"""Output of a unit from its parameters and x [batch, in], by its name in `units.UNITS`."""


KNOWN = tuple(name for name, model in MODELS.items() if set(model.layers.values()) <= set(FORWARD))
"""The models made of the layers above only."""


def output(network: Network, x: Tensor) -> Tensor:
    """Compute the network's output, [batch, 1], from x [batch, in], by the layers of `FORWARD`.

    Raises:
        KeyError: if `FORWARD` lacks a layer of the model.
    """
    hidden = FORWARD[network.model.first](network.first, x)
    return FORWARD[network.model.second](network.second, hidden)


def penalty(network: Network) -> Tensor | None:
    """Compute the linear sparsity regulariser: the sum of the means of min(|w|, |1 - w|) of each bounded weight array.

    For an NAU's weights the second term is |1 - |w||. Without bounded weights it is None.
    """
    found = None
    for layer in network.layers:
        for name, kind in layer.traits.bounded.items():
            weight = getattr(layer, name)
            size = torch.abs(weight)
            term = torch.minimum(size, torch.abs(1 - (size if kind == "NAU" else weight))).mean()
            found = term if found is None else found + term
    return found


def plain_loop(cell: Cell, device: str = "cpu") -> Measure:
    """Warm the loop up, and return a function that measures microseconds an iteration.

    They are CPU time on the CPU, and wall-clock time with CUDA.

    Args:
        cell: cell of the arithmetic task with operation ``mul``, one range, clipped weights, and a model of `KNOWN`.
        device: ``cpu`` or ``cuda``.
    """
    torch.manual_seed(0)
    network = Network(MODELS[cell.model], cell.value("input_size"), cell.value("hidden_size")).to(device)
    clipped = [
        (getattr(layer, name), *LIMITS[kind]) for layer in network.layers for name, kind in layer.traits.bounded.items()
    ]
    optimizer = torch.optim.Adam(network.parameters(), lr=cell.value("learning_rate"))
    first, second = torch.from_numpy(task_of(typed_cell(cell)).masks(0)).to(device)
    low, high = cell.value("interpolation_range")[0]
    iteration = 0
    # CPU time excludes other processes on the machine, but also a GPU's work.
    clock = time.perf_counter if device == "cuda" else time.process_time

    def step() -> Tensor:
        x = torch.empty(BATCH, cell.value("input_size"), device=device).uniform_(low, high)
        target = ((x @ first) * (x @ second))[:, None]
        loss = functional.mse_loss(output(network, x), target)
        if cell.value("sparsity_strength"):
            start, end = cell.value("sparsity_start"), cell.value("sparsity_end")
            ramp = min(max((iteration - start) / (end - start), 0.0), 1.0)
            loss = loss + cell.value("sparsity_strength") * ramp * penalty(network)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for weight, least, most in clipped:
                weight.clamp_(least, most)
        return loss

    def measure(for_s: float) -> float:
        nonlocal iteration
        before, began, until = iteration, clock(), time.perf_counter() + for_s
        loss = step()
        iteration += 1
        while time.perf_counter() < until:
            loss = step()
            iteration += 1
        loss.item()  # waits for the device
        return (clock() - began) / (iteration - before) * 1e6

    measure(0.1)
    return measure
