"""Microseconds per trial-iteration of larger networks: packs in torch, packs compiled by XLA, and JAX.

    python -m benchmarks.larger [--networks CNN LSTM transformer] [--packs 16] [--out benchmarks/results/larger.csv]

The networks are a CNN for images of 8 x 8 pixels, an LSTM of 32 units over 10 steps, and a transformer of two layers of
width 32 over 10 steps; batch 128, Adam, on one core, without evaluation. The JAX version is written by hand and trains
the same number of seeds: seeds by vmap, updates by scan. All draw rows of the same data. Prints a row for each network
and pack size, and writes it with `--out`: median times, and the compiled packs' speed-up over torch and over JAX.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import torch
from jax import lax, random
from jax import numpy as jnp
from torch import Tensor, nn

from benchmarks.jax_peer import adam_step, updates_of_seeds
from benchmarks.measure import BATCH, finish, in_turns, one_core, parser, ratio
from benchmarks.packed import AT_ONCE, pack_of, timed
from study.engine.device import reproducible
from study.engine.packed.recipe import Recipe
from study.interface.declarations import Metric
from study.interface.task import Task
from tasks.shared.cells import LSTM

_ROWS, _CLASSES, _STEPS, _WIDTH, _HEADS, _LAYERS = 1797, 10, 10, 32, 2, 2
_RATE = 1e-3
_LABELS = torch.randint(_CLASSES, (_ROWS,), generator=torch.Generator().manual_seed(0))
_IMAGES = torch.rand(_ROWS, 1, 8, 8, generator=torch.Generator().manual_seed(1))
_SERIES = torch.rand(_ROWS, _STEPS, _WIDTH, generator=torch.Generator().manual_seed(2))


@dataclass(frozen=True)
class Classes(Task):
    """A classification of rows."""

    is_series: bool = False
    metrics: ClassVar[Mapping[str, Metric]] = {"validation_loss": Metric()}

    def draw(self, stream):
        """Draw rows, series if `is_series`, else images, and their classes, [batch]."""
        at = stream.integers(_ROWS, BATCH)
        return (_SERIES if self.is_series else _IMAGES)[at], _LABELS[at]

    def loss(self, outputs, batch):
        """Compute the mean cross-entropy."""
        return nn.functional.cross_entropy(outputs, batch[1])


def cnn() -> nn.Module:
    """Build two layers of convolutions with pooling, and a linear one."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, _CLASSES),
    )


class Recurrent(nn.Module):
    """An LSTM that reads a series, and a linear layer of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.last = LSTM(_WIDTH, _WIDTH), nn.Linear(_WIDTH, _CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits, [batch, classes]."""
        state = self.cell.start(x)
        for step in range(_STEPS):
            state = self.cell(x[:, step], state)
        logits: Tensor = self.last(self.cell.hidden(state))
        return logits


class Block(nn.Module):
    """A layer of a transformer, normalised before attention and before its network."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)])
        self.parts, self.joined = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
        self.network = nn.Sequential(nn.Linear(_WIDTH, 4 * _WIDTH), nn.ReLU(), nn.Linear(4 * _WIDTH, _WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Compute the next states, [batch, steps, width]."""
        parts = self.parts(self.norms[0](x)).chunk(3, -1)
        heads = [part.unflatten(-1, (_HEADS, -1)).transpose(1, 2) for part in parts]
        attended = nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        x = x + self.joined(attended)
        states: Tensor = x + self.network(self.norms[1](x))
        return states


class Transformer(nn.Module):
    """Blocks, and a linear layer of the mean of their states."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(_LAYERS)))
        self.last = nn.Linear(_WIDTH, _CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits, [batch, classes]."""
        logits: Tensor = self.last(self.blocks(x).mean(1))
        return logits


Weights = dict[str, Any]
Logits = Callable[[Weights, Any], Any]


def jax_cnn(p: Weights, x: Any) -> Any:
    """Return the logits of `cnn`."""
    for name in ("0", "3"):
        x = lax.conv_general_dilated(x, p[f"{name}.weight"], (1, 1), "SAME")
        x = jax.nn.relu(x + p[f"{name}.bias"][:, None, None])
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(len(x), -1) @ p["7.weight"].T + p["7.bias"]


def jax_lstm(p: Weights, x: Any) -> Any:
    """Return the logits of `Recurrent`."""

    def step(state: Any, row: Any) -> Any:
        hidden, memory = state
        gates = jnp.concatenate([row, hidden], -1) @ p["cell.weight"].T + p["cell.bias"]
        enter, keep, leave = jnp.split(jax.nn.sigmoid(gates[:, : 3 * _WIDTH]), 3, -1)
        memory = keep * memory + enter * jnp.tanh(gates[:, 3 * _WIDTH :])
        return (leave * jnp.tanh(memory), memory), None

    start = jnp.zeros((len(x), _WIDTH))
    (hidden, _), _ = lax.scan(step, (start, start), x.swapaxes(0, 1))
    return hidden @ p["last.weight"].T + p["last.bias"]


def jax_transformer(p: Weights, x: Any) -> Any:
    """Return the logits of `Transformer`."""

    def linear(name: str, x: Any) -> Any:
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    def norm(name: str, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
        return scaled * p[f"{name}.weight"] + p[f"{name}.bias"]

    for block in range(_LAYERS):
        at = f"blocks.{block}"
        parts = jnp.split(linear(f"{at}.parts", norm(f"{at}.norms.0", x)), 3, -1)
        query, key, value = (part.reshape(*part.shape[:2], _HEADS, -1) for part in parts)
        shares = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key) * (_WIDTH // _HEADS) ** -0.5, -1)
        attended = jnp.einsum("bhqk,bkhd->bqhd", shares, value).reshape(x.shape)
        x = x + linear(f"{at}.joined", attended)
        hidden = jax.nn.relu(linear(f"{at}.network.0", norm(f"{at}.norms.1", x)))
        x = x + linear(f"{at}.network.2", hidden)
    return linear("last", x.mean(1))


NETWORKS: Mapping[str, tuple[Callable[[], nn.Module], bool, Logits]] = {
    "CNN": (cnn, False, jax_cnn),
    "LSTM": (Recurrent, True, jax_lstm),
    "transformer": (Transformer, True, jax_transformer),
}
"""Each network in torch, whether it reads series, and its logits in JAX from torch's named parameters."""


def parameters(build: Callable[[], nn.Module], seeds: int) -> Weights:
    """Return the initial parameters of `seeds` networks, at least one, as arrays [seeds, ...] by name."""
    networks = [dict(build().named_parameters()) for _ in range(seeds)]
    return {
        name: jnp.stack([jnp.asarray(network[name].detach().numpy()) for network in networks]) for name in networks[0]
    }


def jax_updates(name: str, seeds: int, at_once: int) -> Callable[[], object]:
    """Return a function that makes `at_once` updates of all seeds of a network, a key of `NETWORKS`."""
    build, is_series, logits = NETWORKS[name]
    rows, labels = jnp.asarray((_SERIES if is_series else _IMAGES).numpy()), jnp.asarray(_LABELS.numpy())
    keys, weights = random.split(random.key(0), seeds), parameters(build, seeds)

    def loss(weights: Weights, x: Any, label: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits(weights, x)), label[:, None], -1).mean()

    def step(state: Any, i: Any, key: Any) -> Any:
        at = random.randint(random.fold_in(key, i), (BATCH,), 0, _ROWS)
        return adam_step(state, jax.grad(loss)(state[0], rows[at], labels[at]), i, _RATE)

    return updates_of_seeds(step, weights, keys, at_once)


def recipe_of(name: str) -> Recipe:
    """Return the recipe of a network, a key of `NETWORKS`: its task and its model."""
    build, is_series, _ = NETWORKS[name]
    return Recipe(task=Classes(is_series=is_series), model=build, hyperparameters={})


def main(words: Sequence[str] | None = None) -> None:
    """Measure packs in torch, compiled packs and JAX; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=5, seconds=0.3)
    options.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    options.add_argument("--packs", type=int, nargs="+", default=[16])
    arguments = options.parse_args(words)
    rows = []
    with one_core(), reproducible("cpu"):
        for name in arguments.networks:
            for trials in arguments.packs:
                recipe = recipe_of(name)
                ways = {
                    "packed": pack_of(recipe, trials),
                    "compiled": pack_of(recipe, trials, is_compiled=True),
                    "jax": timed(jax_updates(name, trials, AT_ONCE), trials * AT_ONCE, warm_up=2),
                }
                us = in_turns(ways, rounds=arguments.rounds, seconds=arguments.seconds)
                rows.append(
                    {"network": name, "pack": trials}
                    | {f"us_{way}": f"{statistics.median(us[way]):.1f}" for way in ways}
                    | {"times_torch": f"{ratio(us['compiled'], us['packed']):.2f}"}
                    | {"times_jax": f"{ratio(us['compiled'], us['jax']):.2f}"}
                )
    finish(rows, arguments)


if __name__ == "__main__":
    main()
