"""Networks of arithmetic units in JAX: seeds and cells by vmap, updates by scan, all in one program.

Layers, loss, regulariser, Adam and clipping are those of `benchmarks.plain`. Rows come from JAX's own generator.
Groups of four seeds train one after another: with 100 inputs that takes half the time of 64 seeds in one vmap, whose
rows don't fit into the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax import lax, nn, random
from jax import numpy as jnp

from benchmarks.jax_peer import adam_step, repeated
from benchmarks.measure import BATCH
from study.records import Cell
from tasks.arithmetic import MODELS
from tasks.arithmetic.cell import task_of, typed_cell
from tasks.arithmetic.networks import Network
from units.regularize import LIMITS
from units.traits import TRAITS

_GROUP = 4
"""Seeds in one vmap."""

Parameters = Mapping[str, Any]
"""A layer's arrays by the names of `units.UNITS`."""


def _nac_weight(p: Parameters) -> Any:
    return jnp.tanh(p["weight_hat"]) * nn.sigmoid(p["mask_hat"])


def _nalu(p: Parameters, x: Any) -> Any:
    weight, gate = _nac_weight(p), nn.sigmoid(x @ p["gate"].T)
    return gate * (x @ weight.T) + (1 - gate) * jnp.exp(jnp.log(jnp.abs(x) + 1e-7) @ weight.T)


FORWARD: dict[str, Callable[[Parameters, Any], Any]] = {
    "NAC-add": lambda p, x: x @ _nac_weight(p).T,
    "NALU": _nalu,
    "NAU": lambda p, x: x @ p["weight"].T,
    "NMU": lambda p, x: jnp.prod(x[:, None, :] * p["weight"] + 1 - p["weight"], -1),
}
"""Outputs of a unit, from its parameters and x [batch, in]."""

KNOWN = tuple(name for name, model in MODELS.items() if set(model.layers.values()) <= set(FORWARD))
"""The models made of these layers only."""


def output(units: tuple[str, ...], layers: Any, x: Any) -> Any:
    """Compute the network's output, [batch, 1], from x [batch, in].

    `units` names each layer's unit, a key of `FORWARD`; `layers` has its parameters.
    """
    for unit, parameters in zip(units, layers, strict=True):
        x = FORWARD[unit](parameters, x)
    return x


def penalty(units: tuple[str, ...], layers: Any) -> Any:
    """Compute the linear sparsity regulariser, the sum of the layers' means of min(|w|, |1 - w|) over bounded weights.

    For an NAU the second term is |1 - |w||. Without bounded weights it is 0.
    """
    total: Any = 0.0
    for unit, parameters in zip(units, layers, strict=True):
        for name, kind in TRAITS[unit].bounded.items():
            weight, size = parameters[name], jnp.abs(parameters[name])
            total += jnp.minimum(size, jnp.abs(1 - (size if kind == "NAU" else weight))).mean()
    return total


def clipped(units: tuple[str, ...], layers: Any) -> Any:
    """Return the layers with bounded weights clipped to their limits."""
    return tuple(
        {
            name: jnp.clip(weight, *LIMITS[kind]) if (kind := TRAITS[unit].bounded.get(name)) else weight
            for name, weight in parameters.items()
        }
        for unit, parameters in zip(units, layers, strict=True)
    )


def initial_layers(cell: Cell, seeds: int, cells: int) -> Any:
    """Draw each layer's weights from its unit's initial distribution: arrays [seeds, cells, out, in] by name.

    They come from torch's default generator.
    """
    network = Network(MODELS[cell.model], cell.value("input_size"), cell.value("hidden_size"), trials=seeds * cells)
    return tuple(
        {
            name: jnp.asarray(p.detach().numpy()).reshape(seeds, cells, *p.shape[1:])
            for name, p in layer.named_parameters()
        }
        for layer in network.layers
    )


def update_of_cell(cell: Cell) -> Callable[..., Any]:
    """Return a function that updates a trial: from state, step size, iteration, rows and targets to the next state.

    A state is the layers and both moments of Adam; rows are [batch, in], targets [batch, 1]. The cell's model is one of
    `KNOWN`.
    """
    units = tuple(MODELS[cell.model].layers.values())
    strength, start, end = (cell.value(f"sparsity_{name}") for name in ("strength", "start", "end"))

    def loss(layers: Any, i: Any, x: Any, target: Any) -> Any:
        error = jnp.square(output(units, layers, x) - target).mean()
        if not strength:
            return error
        return error + strength * jnp.clip((i - start) / (end - start), 0, 1) * penalty(units, layers)

    def update(state: Any, rate: Any, i: Any, x: Any, target: Any) -> Any:
        layers, *moments = adam_step(state, jax.grad(loss)(state[0], i, x, target), i, rate)
        return clipped(units, layers), *moments

    return update


def jax_network_updates(cell: Cell, seeds: int, cells: int, at_once: int) -> Callable[[], object]:
    """Return a function that makes `at_once` updates of all trials; each seed's rows are drawn once for its cells.

    Args:
        cell: cell of the arithmetic task with operation ``mul``, one range, clipped weights, and a model of `KNOWN`.
            Its batch size is ignored: batches have `BATCH` rows.
        seeds: number of seeds.
        cells: number of cells of each seed, which differ in their step size.
        at_once: updates of one call.
    """
    task = task_of(typed_cell(cell))
    offsets = np.random.default_rng(0).uniform(size=seeds)
    masks = jnp.asarray(np.stack([task.masks(task.offset(uniform)) for uniform in offsets]))
    keys = random.split(random.key(0), seeds)
    low, high = cell.value("interpolation_range")[0]
    rates = cell.value("learning_rate") * (1 + jnp.arange(cells) / 1000)
    layers = initial_layers(cell, seeds, cells)
    of_cells = jax.vmap(update_of_cell(cell), (0, 0, None, None, None))

    def run(state: Any, first: Any) -> Any:
        def train_seed(seed: Any) -> Any:
            state, key, subsets = seed

            def step(state: Any, i: Any) -> Any:
                x = random.uniform(random.fold_in(key, i), (BATCH, cell.value("input_size")), minval=low, maxval=high)
                sums = x @ subsets.T
                return of_cells(state, rates, i, x, sums[:, :1] * sums[:, 1:]), None

            return lax.scan(step, state, first + jnp.arange(at_once))[0]

        return lax.map(train_seed, (state, keys, masks), batch_size=min(_GROUP, seeds))

    return repeated(run, layers, at_once)
