"""What a search would do: its rounds, how far it is, and time from a short calibration at the ends of its ranges."""

from __future__ import annotations

import os

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from study.engine import engine_for
from study.plan import Plan, shape_key
from study.preview import calibrate
from study.progress import duration
from study.records import Cell, Pack, Trial
from study.search import Record, cost, read_record, rungs
from study.slots import Options, device_of
from study.store import Store

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
    head = Text()
    head.append(f"{plan.spec.study}: {plan.spec.question}\n", style="bold")
    steps = ", ".join(str(n) for n in rungs(search, plan.spec.most_seeds))
    a_round = cost(search, plan.spec.most_seeds, search.candidates)
    head.append(
        f"{search.trials:,} trials to search with, by {search.sampler}, for {' and '.join(search.objective)}: "
        f"rounds of {search.candidates} candidates with {steps} seeds, {a_round:,} trials a round\n"
        f"then {search.confirm_seeds:,} fresh seeds for each candidate of the front, at most "
        f"{search.confirm_candidates}\n"
    )
    record = _record(plan, options)
    if record is not None:
        spent = sum(candidate.seeds for candidate in record.told)
        head.append(f"so far {len(record.told):,} candidates in {spent:,} trials\n")
    return Group(head, *_times(plan, options, search.trials + search.confirm_seeds))


def _record(plan: Plan, options: Options) -> Record | None:
    store = Store(options.root, read_only=True)
    if plan.spec.study not in store.studies():
        return None
    return read_record(plan.spec, store.study(plan.spec.study))


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
