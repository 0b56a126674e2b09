"""Trial-iterations a second: of models, by trials in a pack, by registers a thread."""

from __future__ import annotations

import math
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from benchmarks.gpu.machine import LEAST_SLOTS, SLOTS, Machine, each
from benchmarks.gpu.sizes import Model, Sizes
from benchmarks.measure import PACK, in_turns, new_pack, published_cell, tell, training
from study.engine import Training
from study.records import Cell, Pack, Trial
from tasks.arithmetic.engine.cpu.engine import FusedEngine
from tasks.arithmetic.engine.gpu.layout import MOST_TOGETHER
from tasks.arithmetic.engine.torch.engine import TorchEngine

WANTED = (25e6, 60e6)
"""Goals for the NMU with 100 inputs and 2 hidden units, in trial-iterations a second."""

_WARM_S = 0.1
_LEAST_EVALUATIONS = 3


class Lap(NamedTuple):
    """Updates and evaluations of a pack in a timed interval."""

    seconds: float
    updates: int
    evaluations: int

    @property
    def update_s(self) -> float:
        """Seconds per update, as if evaluations took no time."""
        return self.seconds / self.updates


def laps(training: Training, every: int, *, least: int = 0) -> Callable[[float], Lap]:
    """Warm a pack up, and return a function that trains it for some seconds.

    A lap is longer if it would have too few evaluations or no update.

    Args:
        training: a training that has just been started, and has iterations left for all laps.
        every: iterations from one evaluation to the next.
        least: minimum number of evaluations of a lap.
    """
    training.advance(0.0)  # the evaluation at the start, and compilation
    at = training.advance(_WARM_S).iteration

    def lap(for_s: float) -> Lap:
        nonlocal at
        began, first, looked = time.perf_counter(), at, 0
        while at == first or looked < least:
            at = training.advance(for_s).iteration  # a slice ends when the device is done
            looked = math.ceil(at / every) - math.ceil(first / every)
        return Lap(time.perf_counter() - began, at - first, looked)

    return lap


def evaluation_s(with_evaluations: Lap, update_s: float) -> float:
    """Compute the seconds of an evaluation, at least 0: a lap's time beyond its updates, by its evaluations.

    Raises:
        ZeroDivisionError: if the lap has no evaluation.

    Example:
        >>> evaluation_s(Lap(seconds=2.0, updates=150, evaluations=5), update_s=0.01)
        0.1
    """
    evaluations_s = with_evaluations.seconds - with_evaluations.updates * update_s
    return max(0.0, evaluations_s) / with_evaluations.evaluations


def _of(machine: Machine, cell: Cell, trials: int, registers: int | None = None) -> Callable[[float], Lap]:
    return laps(machine.start(new_pack(cell, trials), registers), cell.value("evaluate_every"))


def _million(per_s: float) -> str:
    return f"{per_s / 1e6:.4f}"


# --- models -----------------------------------------------------------------------------------------------------


def model_rows(machine: Machine, sizes: Sizes, arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Measure each shape of `sizes.speed`; print and yield its rows, of packs that fill the device once and twice.

    After `models_s` seconds of the arguments, further shapes are left out, and their names printed. The torch engine's
    columns are empty for shapes outside `sizes.torch`, and if none of its packs starts, whose errors are printed.

    Raises:
        PartlyFailedError: at the end, if a shape failed; its error has been printed.
    """
    ends = time.perf_counter() + arguments.models_s

    def rows(shape: Model) -> list[dict[str, Any]]:
        if time.perf_counter() > ends:
            tell(f"  left out, since {arguments.models_s:.0f} s are up: {' '.join(map(str, shape))}")
            return []
        _make_room(machine)
        return _model(machine, shape, sizes, arguments)

    yield from each(sizes.speed, rows)


def _model(machine: Machine, shape: Model, sizes: Sizes, arguments: Namespace) -> list[dict[str, Any]]:
    """Measure a shape in packs that fill the device once and twice, beside other engines, and return a row for each."""
    cell, looked = published_cell(*shape), sizes.evaluated(shape)
    at_once = machine.at_once(cell)
    measures: dict[tuple[str, int], Callable[[float], Any]] = {}
    for pack in (at_once, 2 * at_once):
        measures["updates", pack] = _of(machine, cell, pack)
        started = machine.start(new_pack(looked, pack))
        measures["evaluated", pack] = laps(started, looked.value("evaluate_every"), least=_LEAST_EVALUATIONS)
    measures["fused", PACK] = training(FusedEngine(), new_pack(cell, PACK), warm_s=_WARM_S)
    for pack in sizes.torch_packs if shape in sizes.torch else ():
        try:  # only a comparison: its failure doesn't matter
            measures["torch", pack] = training(TorchEngine(), new_pack(cell, pack), machine.device, warm_s=_WARM_S)
        except Exception as error:
            tell(f"  torch has not been measured in packs of {pack}: {error}")
    measured = in_turns(measures, rounds=arguments.rounds, seconds=arguments.seconds)
    others = {
        name: min((statistics.median(us), pack) for (kind, pack), us in measured.items() if kind == name)
        for name in ("fused", "torch")
        if any(kind == name for kind, _ in measured)
    }
    every = looked.value("evaluate_every")
    return [_model_row(shape, pack, at_once, measured, others, every) for pack in (at_once, 2 * at_once)]


def _model_row(
    shape: Model,
    pack: int,
    at_once: int,
    measured: dict[tuple[str, int], list[Any]],
    others: dict[str, tuple[float, int]],
    every: int,
) -> dict[str, Any]:
    """Make and print the row of a pack; evaluations are counted, so that it doesn't matter where a lap ended."""
    update_s = [lap.update_s for lap in measured["updates", pack]]
    looked_s = [evaluation_s(lap, s) / every for lap, s in zip(measured["evaluated", pack], update_s, strict=True)]
    whole_s = [update + look for update, look in zip(update_s, looked_s, strict=True)]
    alone = pack / statistics.median(update_s)
    row: dict[str, Any] = {
        "model": shape[0],
        "input_size": shape[1],
        "hidden_size": shape[2],
        "at_once": at_once,
        "pack": pack,
        "million_per_s": _million(pack / statistics.median(whole_s)),
        "million_per_s_without_evaluation": _million(alone),
        "evaluation_share": f"{statistics.median(a / b for a, b in zip(looked_s, whole_s, strict=True)):.3f}",
    }
    for name, column in (("fused", "fused_one_core"), ("torch", "torch")):
        us, _ = others.get(name, (math.nan, 0))
        row[f"{column}_million_per_s"] = "" if math.isnan(us) else _million(1 / us * 1e6)
        row[f"times_{column}"] = "" if math.isnan(us) else f"{alone * us / 1e6:.2f}"
    row["torch_pack"] = others.get("torch", (0, ""))[1]
    tell("  " + ", ".join(f"{name} {value}" for name, value in row.items() if value != ""))
    return row


def wanted(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return ``reached`` or ``not reached`` for each goal, and the best speed, evaluations included.

    The goals are for the NMU with 100 inputs and 2 hidden units; the result is empty if it wasn't measured.
    """
    found = [
        float(row["million_per_s"])
        for row in rows
        if (row["model"], row["input_size"], row["hidden_size"]) == ("NMU", 100, 2)
    ]
    if not found:
        return {}
    return {
        f"{goal / 1e6:.0f} million/s": "reached" if max(found) * 1e6 >= goal else "not reached" for goal in WANTED
    } | {"found": f"{max(found):.2f} million/s"}


def estimates(machine: Machine) -> list[str]:
    """Return sentences on the speeds that the instruction counts allow on this machine."""
    return [
        f"NMU 100 {hidden}: {machine.estimate(slots) / 1e6:.1f} million/s if every slot is used "
        f"({slots:,} an iteration), {machine.estimate(slots, 0.7) / 1e6:.1f} at 70%; "
        f"{machine.estimate(LEAST_SLOTS[hidden]) / 1e6:.1f} with the fewest conceivable"
        for hidden, slots in SLOTS.items()
    ]


def _make_room(machine: Machine) -> None:
    """Free the GPU memory of earlier packs."""
    if not machine.emulated:
        torch.cuda.empty_cache()


# --- packs ------------------------------------------------------------------------------------------------------


def pack_rows(machine: Machine, sizes: Sizes, arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Measure each shape of `sizes.packs` in packs of `sizes.multiples` trials a multiprocessor; print and yield rows.

    There is a row for each number of trials, ascending; it is rounded, and at least 1. Multiples with the same number
    share a row.

    Raises:
        PartlyFailedError: at the end, if a shape failed; its error has been printed.
    """

    def rows(shape: Model) -> Iterator[dict[str, Any]]:
        _make_room(machine)
        cell = published_cell(*shape)
        counts = sorted({max(1, round(k * machine.multiprocessors)) for k in sizes.multiples})
        measures = {count: _of(machine, cell, count) for count in counts}
        measured = in_turns(measures, rounds=arguments.rounds, seconds=arguments.seconds)
        for count, found in measured.items():
            update_s = statistics.median(lap.update_s for lap in found)
            row = {
                "model": shape[0],
                "input_size": shape[1],
                "hidden_size": shape[2],
                "at_once": machine.at_once(cell),
                "pack": count,
                "pack_of_multiprocessors": f"{count / machine.multiprocessors:.2f}",
                "us_per_iteration": f"{1e6 * update_s:.2f}",
                "million_per_s": _million(count / update_s),
            }
            tell("  " + ", ".join(f"{name} {value}" for name, value in row.items()))
            yield row

    yield from each(sizes.packs, rows)


# --- groups -----------------------------------------------------------------------------------------------------


def group_rows(machine: Machine, sizes: Sizes, arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Measure each shape of `sizes.packs`, four cells a seed, in blocks of at most 1 to 4 trials; print and yield rows.

    A pack has twice the number of trials that the device trains at once, rounded up to whole seeds.

    Raises:
        PartlyFailedError: at the end, if a shape failed; its error has been printed.
    """

    def rows(shape: Model) -> Iterator[dict[str, Any]]:
        _make_room(machine)
        cell = published_cell(*shape)
        cells = [cell.replace(learning_rate=1e-3 * (1 + k)) for k in range(MOST_TOGETHER)]
        seeds = -(-2 * machine.at_once(cell) // MOST_TOGETHER)
        pack = Pack(tuple(Trial(member, seed) for seed in range(seeds) for member in cells))
        measures = {
            most: laps(machine.start(pack, most=most), cell.value("evaluate_every"))
            for most in range(1, MOST_TOGETHER + 1)
        }
        measured = in_turns(measures, rounds=arguments.rounds, seconds=arguments.seconds)
        rates = {
            most: len(pack.trials) / statistics.median(lap.update_s for lap in found)
            for most, found in measured.items()
        }
        for most, rate in rates.items():
            row = {
                "model": shape[0],
                "input_size": shape[1],
                "hidden_size": shape[2],
                "trials_of_a_block": most,
                "pack": len(pack.trials),
                "million_per_s": _million(rate),
                "times_blocks_of_one": f"{rate / rates[1]:.3f}",
            }
            tell("  " + ", ".join(f"{name} {value}" for name, value in row.items()))
            yield row

    yield from each(sizes.packs, rows)


# --- registers --------------------------------------------------------------------------------------------------


def register_rows(machine: Machine, sizes: Sizes, arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Measure each shape of `sizes.registers`, compiled with each limit of registers; print and yield a row for each.

    A pack has twice the number of trials that the device trains at once.

    Raises:
        PartlyFailedError: at the end, if a shape failed; its error has been printed.
    """

    def rows(shape: Model) -> Iterator[dict[str, Any]]:
        _make_room(machine)
        cell = published_cell(*shape)
        packs = {limit: 2 * machine.at_once(cell, limit) for limit in sizes.limits}
        started = {limit: machine.start(new_pack(cell, pack), limit) for limit, pack in packs.items()}
        measures = {limit: laps(begun, cell.value("evaluate_every")) for limit, begun in started.items()}
        measured = in_turns(measures, rounds=arguments.rounds, seconds=arguments.seconds)
        rates = {
            limit: packs[limit] / statistics.median(lap.update_s for lap in found) for limit, found in measured.items()
        }
        for limit, rate in rates.items():
            row = {
                "model": shape[0],
                "input_size": shape[1],
                "hidden_size": shape[2],
                "registers": limit,
                **_compiled(machine, started[limit]),
                "at_once": packs[limit] // 2,
                "million_per_s": _million(rate),
                "of_the_best": f"{rate / max(rates.values()):.3f}",
            }
            tell("  " + ", ".join(f"{name} {value}" for name, value in row.items()))
            yield row

    yield from each(sizes.registers, rows)


def _compiled(machine: Machine, training: Any) -> dict[str, Any]:
    """Return the compiled kernel's registers, bytes of local memory, and blocks that fit on a multiprocessor.

    They are empty texts in the emulation, and where the driver raises an error, which is printed.
    """
    found = {"registers_used": "", "local_bytes": "", "blocks_by_driver": ""}
    if machine.emulated:
        return found
    blocks = training._arrays._blocks
    kernel, layout = blocks._train, blocks._layout
    try:  # useful, but a failure must not cost the measurement
        found["registers_used"] = kernel.attributes.num_regs
        found["local_bytes"] = kernel.attributes.local_size_bytes
        found["blocks_by_driver"] = kernel.occupancy.max_active_blocks_per_multiprocessor(
            layout.threads, 4 * layout.size(1)
        )
    except Exception as error:
        tell(f"  can't read the kernel's attributes: {error}")
    return found
