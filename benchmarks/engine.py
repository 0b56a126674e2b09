"""Microseconds per trial-iteration on one core: packs of the engines and of JAX, beside a plain loop of one trial.

    python -m benchmarks.engine [--models NMU NALU] [--packs 1 16 64] [--cells 1 9 45]
                                [--out benchmarks/results/engine.csv]
    python -m benchmarks.engine --models NMU NAC-add NALU --inputs 100 --packs 16 64
                                --cells 1 9 --out benchmarks/results/engine_peers.csv

Each round measures every row of a shape in turn. Prints a row for each model, size, engine, pack size and number of
cells that share a seed, and writes it with `--out`: the median time over rounds, and the speed as a multiple of the
plain loop's, torch's and JAX's in the same round. JAX trains the models of `jax_networks.KNOWN` on the CPU, if it is
installed.
"""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

from benchmarks.measure import (
    PACK,
    Measure,
    finish,
    in_turns,
    new_pack,
    one_core,
    parser,
    published_cell,
    ratio,
    repeated,
    tell,
    training,
)
from benchmarks.plain import KNOWN, plain_loop
from study.engine import engine_named
from study.plugins.families import family_of
from study.records import Cell


class Way(NamedTuple):
    """A way to train a cell: the plain loop, an engine or JAX, with the trials of a pack and the cells of a seed."""

    name: str
    pack: int
    cells: int


PLAIN = Way("plain loop", 1, 1)
JAX = "JAX"
_AT_ONCE = 64
"""Updates of one call of JAX."""


def ways(cell: Cell, packs: Sequence[int], cells: Sequence[int], device: str) -> list[Way]:
    """List the ways to train a cell: the plain loop, and packs of each able engine and, on the CPU, of JAX.

    JAX is left out if it isn't installed, or if `jax_networks` lacks the cell's model.

    Args:
        cell: the cell.
        packs: numbers of trials in a pack.
        cells: numbers of cells that share a seed.
        device: ``cpu`` or ``cuda``.

    Raises:
        ValueError: if no family has the cell's task.
        InputError: if an engine of the family can't be imported.
    """
    engines = [(name, engine_named(name)) for name in family_of(cell).engines]
    able = [name for name, engine in engines if device in engine.devices and engine.refuses(cell) is None]
    if device == "cpu" and find_spec("jax") is not None:
        from benchmarks import jax_networks

        able += [JAX] if cell.model in jax_networks.KNOWN else []
    return [PLAIN, *(Way(name, pack, of_seed) for name in able for pack in packs for of_seed in cells)]


def measurement(cell: Cell, way: Way, device: str) -> Measure:
    """Start to train a cell in this way, and return the function that measures microseconds per trial-iteration.

    They are CPU time on the CPU, and wall-clock time with CUDA.

    Raises:
        InputError: if there is no such engine, or it can't train the cell on this device.
        KeyError: if the plain loop or JAX lacks a layer of the cell's model.
        RuntimeError: for the plain loop, if there is no GPU for the device ``cuda``.
        AssertionError: for the plain loop on ``cuda``, if torch was built without CUDA.
    """
    if way == PLAIN:
        return plain_loop(cell, device)
    if way.name == JAX:
        from benchmarks import jax_networks

        seeds = -(-way.pack // way.cells)
        update = jax_networks.jax_network_updates(cell, seeds, way.cells, _AT_ONCE)
        return repeated(lambda units: update(), _AT_ONCE * seeds * way.cells)
    clock = time.perf_counter if device == "cuda" else time.process_time
    return training(engine_named(way.name), new_pack(cell, way.pack, way.cells), device, clock=clock)


def times(measured: Mapping[Way, Sequence[float]], way: Way, other: str, middle: Callable[[list[float]], float]) -> str:
    """Summarise the speed-up of `way` over the way named `other` with the same pack and cells, by `middle` over rounds.

    Returns:
        The speed-up with two decimals; an empty text if the other way wasn't measured.
    """
    beside = measured.get(way._replace(name=other))
    return "" if beside is None else f"{middle([a / b for a, b in zip(beside, measured[way], strict=True)]):.2f}"


def rows_of(cell: Cell, arguments: Namespace) -> list[dict[str, Any]]:
    """Measure all ways to train a cell in turns, and return a row for each.

    Args:
        cell: the cell.
        arguments: `packs`, `cells`, `device`, `rounds` and `seconds`: the options of `main`.

    Raises:
        ValueError: if no family has the cell's task.
        InputError: if an engine of the family can't be imported.
        KeyError: if the plain loop lacks a layer of the cell's model.
        RuntimeError: if there is no GPU for the device ``cuda``.
        AssertionError: if torch was built without CUDA, for the device ``cuda``.
    """
    found = ways(cell, arguments.packs, arguments.cells, arguments.device)
    measures = {way: measurement(cell, way, arguments.device) for way in found}
    measured = in_turns(measures, rounds=arguments.rounds, seconds=arguments.seconds)
    return [
        {
            "model": cell.model,
            "input_size": cell.value("input_size"),
            "hidden_size": cell.value("hidden_size"),
            "engine": way.name,
            "pack": way.pack,
            "cells_a_seed": way.cells,
            "us_per_trial_iteration": f"{statistics.median(us):.2f}",
            "times_the_plain_loop": f"{ratio(measured[PLAIN], us):.2f}",
            "times_torch": times(measured, way, "torch", statistics.median),
            "times_jax": times(measured, way, JAX, statistics.median),
            "times_jax_least": times(measured, way, JAX, min),
            "times_jax_most": times(measured, way, JAX, max),
        }
        for way, us in measured.items()
    ]


def main(words: Sequence[str] | None = None) -> None:
    """Measure all ways to train each shape; print the table, and write it with `--out`.

    Raises:
        ValueError: if a number of inputs is too small for the task's subsets.
        InputError: if an engine can't be imported.
        KeyError: if `--models` has a model that the plain loop lacks.
        RuntimeError: if there is no GPU for ``--device cuda``.
        AssertionError: if torch was built without CUDA, for ``--device cuda``.
        OSError: if the table can't be written.
    """
    known = parser(__doc__, rounds=5, seconds=0.4, models=list(KNOWN))
    known.add_argument("--inputs", nargs="+", type=int, default=[4, 100], metavar="N")
    known.add_argument("--hidden", nargs="+", type=int, default=[2, 10], metavar="N")
    known.add_argument("--packs", nargs="+", type=int, default=[PACK], metavar="N", help="trials in a pack")
    known.add_argument("--cells", nargs="+", type=int, default=[1, 9, 45], metavar="N", help="cells that share a seed")
    known.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    arguments = known.parse_args(words)
    shapes = [(m, n, h) for m in arguments.models for n in arguments.inputs for h in arguments.hidden]
    table = []
    with one_core():
        for number, shape in enumerate(shapes, 1):
            rows = rows_of(published_cell(*shape), arguments)
            table += rows
            tell(
                f"{number}/{len(shapes)} {' '.join(map(str, shape))}: "
                + ", ".join(f"{r['engine']}, {r['cells_a_seed']}: {r['us_per_trial_iteration']} us" for r in rows)
            )
    finish(table, arguments, jax=version("jax") if find_spec("jax") is not None else None)


if __name__ == "__main__":
    main()
