"""What a study would take: packs, memory, and time from a short calibration."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from study.driver.options import Options
from study.driver.outline import outline, outline_search, sizes
from study.driver.own_engine import own_engine, prove_packs, trained_one_by_one
from study.driver.resources import at_once_on, device_of, fitted, passed_over_by
from study.engine import Engine, engine_for
from study.engine.function import FunctionEngine
from study.plan.packs import AtOnce, make_bundles, make_packs, shape_key
from study.plan.plan import Plan
from study.records import Cell, Pack, Trial
from study.words import duration, show_value, title

_CALIBRATION_S = 1.0
_UNKNOWN = "how long a call takes isn't known before the first has ended"


def preview(plan: Plan, options: Options) -> RenderableType:
    """Describe what running a study would do, without writing anything.

    The time is measured: the largest pack of each shape trains here for about a second.

    Args:
        plan: what the study asks for.
        options: where and how it would run.
    """
    summary = outline(plan, options.root)
    plan, pending = summary.plan, summary.pending
    if not pending:
        return Group(*summary.parts)
    options = fitted(plan, options)
    if isinstance(own_engine(plan.spec), FunctionEngine):
        return Group(*summary.parts, Text(_UNKNOWN))
    prove_packs(plan, options.root)
    on_gpu = device_of(options) == "cuda"
    at_once = at_once_on(plan, replace(options, local=True)) if on_gpu else None
    slots = 1 if on_gpu else options.cpus or os.cpu_count() or 1
    packs = make_packs(pending, slots=slots, size=options.pack_size, at_once=at_once, family=plan.spec.family)
    return Group(*summary.parts, *_pending(plan, packs, slots, options, at_once))


def _pending(
    plan: Plan, packs: list[Pack], slots: int, options: Options, at_once: AtOnce | None
) -> Iterable[RenderableType]:
    device, own = device_of(options), own_engine(plan.spec)
    noun = "pack" if len(packs) == 1 else "packs"
    table = Table(title=f"{sum(len(p.trials) for p in packs):,} trials in {len(packs):,} {noun} on {device}")
    for column in ("model", *map(title, sizes(plan.spec.family)), "engine"):
        table.add_column(column)
    for column in ("packs", "trials", "memory", "µs per trial-iteration", "core time"):
        table.add_column(column, justify="right")
    shapes = Counter(shape_key(pack.trials[0].cell) for pack in packs)
    seconds: dict[str, float] = {}
    for shape, count in shapes.items():
        of_shape = [pack for pack in packs if shape_key(pack.trials[0].cell) == shape]
        largest = max(of_shape, key=lambda pack: len(pack.trials))
        cell = largest.trials[0].cell
        engine = engine_for(options.engine, cell, device, own)
        trial_iteration_s = calibrate(largest, engine, device)
        trials = sum(len(pack.trials) for pack in of_shape)
        trial_s = trial_iteration_s * (cell.iterations + 1)
        seconds |= {pack.id: trial_s * len(pack.trials) for pack in of_shape}
        table.add_row(
            cell.model,
            *(show_value(name, cell.value(name)) for name in sizes(plan.spec.family)),
            engine.name,
            f"{count:,}",
            f"{trials:,}",
            f"{engine.memory_mb(largest):,.0f} MiB",
            f"{trial_iteration_s * 1e6:.1f}",
            duration(trial_s * trials),
        )
    yield table
    for reason in (*passed_over_by(plan, options), *trained_one_by_one(plan)):
        yield Text(reason)
    # On a GPU the packs of a bundle train side by side, so a bundle takes as long as its longest pack.
    bundles = make_bundles(packs, slots=slots, at_once=at_once if own is None else None)
    total_s = sum(max(seconds[pack.id] for pack in bundle) for bundle in bundles)
    busy = min(slots, len(bundles))
    where = "one GPU" if at_once else f"{busy} cores"
    yield Text(f"about {duration(total_s / busy)} on {where}, by a calibration of a second a shape")


def calibrate(pack: Pack, engine: Engine, device: str) -> float:
    """Measure how many seconds a pack takes per trial-iteration, evaluation included.

    Args:
        pack: what to train for about a second.
        engine: trains it.
        device: ``cpu`` or ``cuda``.
    """
    cell = pack.trials[0].cell
    engine.start(pack, device=device).advance(0.0)  # compiles whatever has to be compiled
    training = engine.start(pack, device=device)
    training.advance(0.0)
    first = training.checkpoint()  # after one evaluation and as few updates as the engine does at a time
    training.advance(_CALIBRATION_S)
    last = training.checkpoint()
    update_s = (last.training_s - first.training_s) / max(1, last.iteration - first.iteration)
    evaluation_s = max(0.0, first.training_s - update_s * first.iteration) / cell.value("evaluate_every")
    return float(update_s + evaluation_s) / len(pack.trials)


# Each shape takes a second or two to measure, so of more shapes those in between are left out.
_MOST_SHAPES = 8


def preview_search(plan: Plan, options: Options) -> RenderableType:
    """Describe what a search would do, without writing anything.

    Args:
        plan: what the search begins with: cells at the ends of its ranges.
        options: where and how it would run.
    """
    search = plan.spec.search
    assert search is not None
    head = outline_search(plan, options.root)
    options = fitted(plan, options)
    if isinstance(own_engine(plan.spec), FunctionEngine):
        return Group(head, Text(_UNKNOWN))
    prove_packs(plan, options.root)
    return Group(head, *_times(plan, options, search.trials + search.confirm_seeds))


def _times(plan: Plan, options: Options, trials: int) -> tuple[Table, Text]:
    device, own = device_of(options), own_engine(plan.spec)
    shapes: dict[object, Cell] = {shape_key(cell): cell for cell in plan.cells}
    cells = list(shapes.values())
    sample = cells if len(cells) <= _MOST_SHAPES else [*cells[: _MOST_SHAPES - 1], cells[-1]]
    table = Table(title="at the ends of the ranges", title_justify="left")
    for column in ("model", *map(title, sizes(plan.spec.family)), "engine"):
        table.add_column(column)
    for column in ("µs per trial-iteration", "core time a trial"):
        table.add_column(column, justify="right")
    seconds = []
    for cell in sample:
        pack = Pack(tuple(Trial(cell, seed) for seed in plan.spec.first_seeds[:16]))
        engine = engine_for(options.engine, cell, device, own)
        trial_iteration_s = calibrate(pack, engine, device)
        seconds.append(trial_iteration_s * (cell.iterations + 1))
        values = (show_value(name, cell.value(name)) for name in sizes(plan.spec.family))
        took = (f"{trial_iteration_s * 1e6:.1f}", f"{seconds[-1]:.3g} s")
        table.add_row(cell.model, *values, engine.name, *took)
    slots = 1 if device == "cuda" else options.cpus or os.cpu_count() or 1
    where = "one GPU" if device == "cuda" else f"{slots} cores"
    low, high = (duration(trials * s / slots) for s in (min(seconds), max(seconds)))
    span = low if low == high else f"{low} to {high}"
    total = f"about {span} on {where} for {trials:,} trials, one candidate's confirmation among them"
    return table, Text(f"{total}; by a calibration of a second a shape")
