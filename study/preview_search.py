"""What a search would do: its rounds, how far it is, and time from a short calibration at the ends of its ranges."""

from __future__ import annotations

import os

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from study.engine import engine_for
from study.options import Options
from study.outline import outline_search
from study.plan import Plan, shape_key
from study.preview import calibrate
from study.progress import duration
from study.records import Cell, Pack, Trial
from study.slots import device_of

# Of more shapes, those in between are left out: each takes a second or two.
_MOST_SHAPES = 8


def preview_search(plan: Plan, options: Options) -> RenderableType:
    """Describe what a search would do; nothing is written.

    Args:
        plan: what the search begins with: cells at the ends of its ranges.
        options: where and how it would run.
    """
    search = plan.spec.search
    assert search is not None
    head = outline_search(plan, options.root)
    return Group(head, *_times(plan, options, search.trials + search.confirm_seeds))


def _times(plan: Plan, options: Options, trials: int) -> tuple[Table, Text]:
    device = device_of(options)
    shapes: dict[object, Cell] = {shape_key(cell): cell for cell in plan.cells}
    found = list(shapes.values())
    some = found if len(found) <= _MOST_SHAPES else [*found[: _MOST_SHAPES - 1], found[-1]]
    table = Table(title="at the ends of the ranges", title_justify="left")
    for column in ("model", "hidden", "engine"):
        table.add_column(column)
    for column in ("µs per trial-iteration", "core time a trial"):
        table.add_column(column, justify="right")
    seconds = []
    for cell in some:
        pack = Pack(tuple(Trial(cell, seed) for seed in plan.spec.first_seeds[:16]))
        trial_iteration_s = calibrate(pack, options, device)
        seconds.append(trial_iteration_s * (cell.iterations + 1))
        engine = engine_for(options.engine, cell, device)
        row = (cell.model, str(cell.hidden_size), engine.name, f"{trial_iteration_s * 1e6:.1f}")
        table.add_row(*row, f"{seconds[-1]:.3g} s")
    slots = 1 if device == "cuda" else options.cpus or os.cpu_count() or 1
    where = "one GPU" if device == "cuda" else f"{slots} cores"
    low, high = (duration(trials * s / slots) for s in (min(seconds), max(seconds)))
    span = low if low == high else f"{low} to {high}"
    told = f"about {span} on {where} for {trials:,} trials, one candidate's confirmation among them"
    return table, Text(f"{told}; by a calibration of a second a shape")
