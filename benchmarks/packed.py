"""Microseconds per trial-iteration of a user's network: packs of trials, a plain loop in torch, and JAX.

    python -m benchmarks.packed [--hidden 2 32 128] [--packs 16 64] [--out benchmarks/results/packed.csv]
    python -m benchmarks.packed --device cuda --packs 64 512 --out packed-gpu.csv

Two spirals, batch 128, a network 2 -> hidden -> 1 with tanh, Adam, on one core, without evaluation. The plain loop
draws the same batches of the same stream for one trial, and uses `torch.optim.Adam`. Packs are measured in torch and
compiled by XLA. The JAX version is written by hand (`jax_peer`), and trains the same number of seeds. With `--device
cuda`, packs train on the GPU in torch, and the plain loop stays on the core. Prints a row for each hidden size and pack
size, and writes it with `--out`: median times, and the speed-up over the plain loop beside its goal.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import nn

from benchmarks.jax_peer import jax_updates
from benchmarks.measure import BATCH, Measure, finish, in_turns, one_core, parser, ratio
from study.engine.device import check_device, reproducible
from study.engine.packed.proof import prove, start
from study.engine.packed.recipe import Member, Recipe
from study.interface.declarations import Metric
from study.interface.task import Task
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream

_WARM_UP = 20
AT_ONCE = 64
"""Updates of one call that is compiled."""
_GOALS = {2: 20, 32: 8, 128: 3}


@dataclass(frozen=True)
class Spirals(Task):
    """A classification of two spirals."""

    metrics: ClassVar[Mapping[str, Metric]] = {"validation_loss": Metric()}

    def draw(self, stream):
        """Draw points of both spirals, and the spiral of each."""
        label, radius = stream.integers(2, BATCH), stream.uniform(BATCH)
        angle = torch.pi * (2 * radius + label)
        return torch.stack([radius * angle.cos(), radius * angle.sin()], -1), label.float()

    def loss(self, outputs, batch):
        """Compute the mean cross-entropy."""
        return nn.functional.binary_cross_entropy_with_logits(outputs[..., 0], batch[1])


def mlp(hidden: int) -> nn.Module:
    """Build the network 2 -> hidden -> 1 with tanh."""
    return nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))


def timed(
    update: Callable[[], object], trials: int, wait: Callable[[], object] = lambda: None, *, warm_up: int = _WARM_UP
) -> Measure:
    """Warm `update` up, and return a function that measures microseconds per trial-iteration, by wall-clock time.

    Args:
        update: updates all trials.
        trials: number of trial-iterations of an update.
        wait: waits until all updates are done.
        warm_up: number of updates before the measurement.
    """
    for _ in range(warm_up):
        update()
    wait()

    def measure(for_s: float) -> float:
        updates, began = 0, time.perf_counter()
        while not updates or time.perf_counter() - began < for_s:
            update()
            updates += 1
        wait()
        return (time.perf_counter() - began) / updates / trials * 1e6

    return measure


def plain_loop(hidden: int) -> Measure:
    """Warm a plain loop up, and return a function that measures its microseconds per iteration of one trial."""
    task, network = Spirals(), mlp(hidden)
    optimizer = torch.optim.Adam(network.parameters())
    iteration = 0

    def update() -> None:
        nonlocal iteration
        batch = task.draw(Stream([0], iteration, Purpose.TRAIN))
        optimizer.zero_grad()
        task.loss(network(batch[0]), batch).backward()
        optimizer.step()
        iteration += 1

    return timed(update, 1)


def pack(hidden: int, trials: int, device: str = "cpu", *, is_compiled: bool = False) -> Measure:
    """Return a function that measures a pack's microseconds per trial-iteration, in the layout that the proof selects.

    Raises:
        ValueError: as for `pack_of`, such as if the network can't be compiled with `is_compiled`.
        torch.OutOfMemoryError: if the GPU has no room for the pack.
    """
    recipe = Recipe(task=Spirals(), model=mlp, hyperparameters={"hidden": hidden})
    return pack_of(recipe, trials, device, is_compiled=is_compiled)


def pack_of(recipe: Recipe, trials: int, device: str = "cpu", *, is_compiled: bool = False) -> Measure:
    """Return a function that measures microseconds per trial-iteration of a pack, in the layout that the proof selects.

    Raises:
        ValueError: if the recipe can't train in packs, can't be compiled with `is_compiled`, or isn't repeatable.
        torch.OutOfMemoryError: if the GPU has no room for the pack.
        Exception: the error of the recipe's task or model.
    """
    sizes = (2, 5, 8) if device == "cpu" else (2, 5, 8, trials)
    proof = prove(recipe, sizes=sizes, device=device, is_compiled=is_compiled)
    if proof.layout is None or (is_compiled and proof.uncompiled):
        raise ValueError(f"the network must train in packs, but {proof.reason or proof.uncompiled}")
    training = start(recipe, [Member(seed=seed) for seed in range(trials)], proof, device=device)
    update = partial(training.update, AT_ONCE) if is_compiled else training.update
    wait = training.is_finite if device == "cuda" else lambda: None
    return timed(update, trials * (AT_ONCE if is_compiled else 1), wait, warm_up=2 if is_compiled else _WARM_UP)


def main(words: Sequence[str] | None = None) -> None:
    """Measure the plain loop, packs and, on the CPU, JAX; print the table, and write it with `--out`.

    Raises:
        DeviceError: if there is no GPU for ``--device cuda``.
        torch.OutOfMemoryError: if the GPU has no room for a pack.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=9, seconds=0.3)
    options.add_argument("--hidden", type=int, nargs="+", default=list(_GOALS))
    options.add_argument("--packs", type=int, nargs="+", default=[16, 64])
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    arguments = options.parse_args(words)
    check_device(arguments.device)
    rows = []
    with one_core(), reproducible(arguments.device):
        for hidden in arguments.hidden:
            for trials in arguments.packs:
                ways = {"plain_loop": plain_loop(hidden), "packed": pack(hidden, trials, arguments.device)}
                if arguments.device == "cpu":
                    ways["compiled"] = pack(hidden, trials, is_compiled=True)
                    ways["jax"] = timed(jax_updates(hidden, trials, BATCH, AT_ONCE), trials * AT_ONCE)
                us = in_turns(ways, rounds=arguments.rounds, seconds=arguments.seconds)
                best = us.get("compiled", us["packed"])
                rows.append(
                    {"hidden_size": hidden, "pack": trials}
                    | {f"us_{way}": f"{statistics.median(us[way]):.1f}" for way in ways}
                    | {"times_the_plain_loop": f"{ratio(us['plain_loop'], best):.1f}", "goal": _GOALS.get(hidden, "")}
                    | ({"times_jax": f"{ratio(best, us['jax']):.2f}"} if "jax" in us else {})
                )
    finish(rows, arguments)


if __name__ == "__main__":
    main()
