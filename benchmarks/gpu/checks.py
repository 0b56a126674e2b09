"""Checks of the engine's promises: bits of the emulation, success rates of the CPU, a trial's bits in any pack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.gpu.machine import Machine, each, spread
from benchmarks.gpu.sizes import Model, Sizes
from benchmarks.measure import cores, new_pack, tell
from study.engine import Training
from study.records import Cell, Outcome, Trial
from study.statistics import fisher_exact
from tasks.arithmetic.engine.cpu.engine import FusedEngine
from tasks.arithmetic.engine.gpu.arrays import Devices, GpuArrays
from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks

LEVEL = 1e-3
"""Significance level for a difference of success rates."""

# Several, since a product of many factors may overflow, and a trial of NaN doesn't test anything.
_SEEDS = 3

Bits = dict[str, npt.NDArray[Any]]


def rows(machine: Machine, sizes: Sizes, workers: int) -> Iterator[dict[str, Any]]:
    """Run every check; print and yield a row for each of its shapes, with ``passed`` ``yes`` or ``no``.

    Args:
        machine: the device to check.
        sizes: shapes and numbers of trials and updates.
        workers: processes that compute the emulation for comparison.

    Raises:
        PartlyFailedError: at the end, if a check raised an error, which has been printed.
    """
    kinds = [
        lambda: _bits(machine, sizes, workers),
        lambda: _alone(machine, sizes),
        lambda: _distribution(machine, sizes),
    ]
    yield from each(kinds, lambda check: check())


def _row(check: str, shape: Model, passed: bool, found: str) -> dict[str, Any]:
    row = {
        "check": check,
        "model": shape[0],
        "input_size": shape[1],
        "hidden_size": shape[2],
        "passed": "yes" if passed else "no",
        "found": found,
    }
    tell("  " + " ".join(str(value) for value in row.values()))
    return row


# --- bits -------------------------------------------------------------------------------------------------------


def bits(cells: Sequence[Cell], seeds: int, updates: int, blocks: Devices, *, first: int = 0) -> Bits:
    """Train cells of one shape from the start, and return the weights, moments and evaluation, by name.

    The first axis of each array is the trial: all cells of the first seed, then those of the next.

    Args:
        cells: the cells; each trains with every seed.
        seeds: number of seeds.
        updates: number of updates, at least 1.
        blocks: constructor of the device's blocks.
        first: the first seed.

    Raises:
        DeviceError: if no kernel can be made for the device.
    """
    arrays = GpuArrays([Trial(cell, first + k) for k in range(seeds) for cell in cells], None, blocks)
    which = np.arange(seeds * len(cells))
    arrays.update(which, 0, updates)
    return arrays.state() | arrays.evaluate(which)()


def different(first: Mapping[str, npt.NDArray[Any]], second: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """Return the names of arrays that differ in a bit, the shape or the type; all NaNs are equal.

    If the sets have different names, return only the names that one of them lacks.

    Example:
        >>> zero = np.zeros(2, np.float32)
        >>> different({"a": zero, "b": zero}, {"a": zero, "b": -zero})
        ['b']
    """
    if first.keys() != second.keys():
        return sorted(first.keys() ^ second.keys())
    return [name for name in first if not _same(first[name], second[name])]


def _same(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.dtype.kind != "f":
        return bool((first == second).all())
    words = np.dtype(f"u{first.dtype.itemsize}")
    equal = np.ascontiguousarray(first).view(words) == np.ascontiguousarray(second).view(words)
    return bool((equal | (np.isnan(first) & np.isnan(second))).all())


def _emulated(cell: Cell, updates: int) -> Bits:
    return bits(_sharing(cell), _SEEDS, updates, partial(EmulatedBlocks, most=1))


def _sharing(cell: Cell) -> list[Cell]:
    """Return two cells whose trials see the same rows, and so share a block."""
    return [cell, cell.replace(learning_rate=0.5 * cell.value("learning_rate"))]


def _bits(machine: Machine, sizes: Sizes, workers: int) -> Iterator[dict[str, Any]]:
    """Compare weights, moments and errors after some updates with the emulation's; yield a row for each shape.

    The check fails, too, if all trials have weights of NaN.
    """
    cells = [sizes.checked(shape) for shape in sizes.bits]
    expected = spread(partial(_emulated, updates=sizes.updates), cells, workers)
    for shape, cell, bits_ in zip(sizes.bits, cells, expected, strict=True):
        wrong = different(bits(_sharing(cell), _SEEDS, sizes.updates, machine.blocks()), bits_)
        found = f"differ: {' '.join(wrong)}" if wrong else f"{len(bits_)} arrays are the emulation's"
        nan = int(bits_["has_nan"].sum())
        if nan:
            found += f"; weights are NaN in {nan} of {len(bits_['has_nan'])}"
        yield _row("bits", shape, not wrong and nan < len(bits_["has_nan"]), found)


def _alone(machine: Machine, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Compare a trial's bits alone with those in a large pack; yield a row for each shape."""
    for shape in sizes.alone:
        cell, place = sizes.checked(shape), (2 * sizes.among) // 3
        alone = bits([cell], 1, sizes.updates, machine.blocks(), first=place)
        many = bits([cell], 1 + sizes.among, sizes.updates, machine.blocks())
        wrong = different(alone, {name: array[place : place + 1] for name, array in many.items()})
        found = f"differ: {' '.join(wrong)}" if wrong else f"the same among {sizes.among}"
        yield _row("alone", shape, not wrong, found)


# --- success ----------------------------------------------------------------------------------------------------


def _solved(training: Training) -> int:
    while not training.done:
        training.advance(5.0)
    return sum(result.outcome == Outcome.SOLVED for result in training.finish()[0])


def _distribution(machine: Machine, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Compare the success rate with the fused CPU engine's by Fisher's exact test; yield a row."""
    cell, n = sizes.distribution, sizes.seeds
    pack = new_pack(cell, n)
    here = _solved(machine.start(pack))
    there = _solved(FusedEngine(threads=min(cores(), n)).start(pack, device="cpu"))
    p = fisher_exact(here, n, there, n)
    found = f"solved {here}/{n}; fused {there}/{n}; p {p:.3g}"
    yield _row("distribution", (cell.model, cell.value("input_size"), cell.value("hidden_size")), p >= LEVEL, found)
