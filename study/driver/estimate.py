"""Estimates of a study's packs, memory and time, from a short calibration."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from study.console import ConsoleTable
from study.driver.design import DesignNote, design_note
from study.driver.engines import Engines, resolve_to_estimate
from study.driver.first_call import try_first_trial
from study.driver.options import Options
from study.driver.outline import Outline, outline, outline_search
from study.driver.own_engine import as_packed
from study.engine import Engine
from study.engine.calls import CallEngine
from study.errors import InputError, StudyError
from study.plan.costs import count_draws, pack_cost
from study.plan.packs import make_bundles, make_packs, shape_key
from study.plan.plan import Plan
from study.records import Cell, Pack, Trial
from study.summaries.reasons import failure_reason
from study.words import count_of, duration, format_value, title

_CALIBRATION_S = 1.0


@dataclass(frozen=True)
class PacksEstimate:
    """Estimated costs of packs that hold the same kinds of trials.

    Args:
        models: names of the models.
        sizes: values of the hyperparameters that set the models' sizes.
        engine: name of the engine.
        packs: number of packs.
        trials: number of trials in them.
        draws: draws of rows per iteration; a pack draws once for all trials that see the same rows.
        memory_mb: memory of the largest pack, MiB.
        trial_iteration_s: seconds per trial and iteration.
        core_s: seconds on one core, or one GPU, for all packs.
    """

    models: Sequence[str]
    sizes: Mapping[str, Sequence[Any]]
    engine: str
    packs: int
    trials: int
    draws: int
    memory_mb: float
    trial_iteration_s: float
    core_s: float


@dataclass(frozen=True)
class Estimate:
    """A study's outline, and the estimated costs of the trials that are left; rich can print it.

    Args:
        outline: the study's size and progress.
        design: the differences that its seeds can detect; None where nothing is compared by success.
        device: ``cpu`` or ``cuda``.
        kinds: estimates by kind of pack; empty if nothing is left, or the costs are unknown before the first trial
            ends.
        cores: number of cores that train side by side; 0 on a GPU.
        left_s: seconds until all is done; None if unknown.
        notes: reasons for slow training.
    """

    outline: Outline
    design: DesignNote | None = None
    device: str = "cpu"
    kinds: Sequence[PacksEstimate] = ()
    cores: int = 0
    left_s: float | None = None
    notes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the outline, the estimates by kind of pack as ``packs``, and the other fields as JSON data."""
        own = {name: value for name, value in vars(self).items() if name not in ("outline", "design", "kinds")}
        packs = {"packs": [asdict(kind) for kind in self.kinds]}
        return self.outline.as_json() | packs | own | {"design": self.design and self.design.as_json()}

    def __rich__(self) -> RenderableType:
        parts: list[RenderableType] = [*self.outline.parts, *([self.design] if self.design else [])]
        if self.kinds:
            parts += [self._table(), *self._sharing()]
        parts += map(Text, self.notes)
        if self.left_s is not None:
            where = count_of(self.cores, "core") if self.cores else "one GPU"
            parts.append(Text(f"about {duration(self.left_s)} on {where}, calibrated for a second per row"))
        return Group(*parts)

    def _table(self) -> ConsoleTable:
        """List the estimated costs by kind of pack."""
        trials = count_of(sum(kind.trials for kind in self.kinds), "trial")
        packs = count_of(sum(kind.packs for kind in self.kinds), "pack")
        table = ConsoleTable(title=f"{trials} in {packs} on {self.device}", elsewhere="`study plan --json`")
        for column in ("model", *map(title, self.kinds[0].sizes)):
            table.add_column(column)
        table.add_column("engine", rank=2)
        ranks = {"packs": 3, "trials": 1, "memory": 4, "µs per trial-iteration": 5, "core time": 0}
        for column, rank in ranks.items():
            table.add_column(column, justify="right", rank=rank)
        for kind in self.kinds:
            table.add_row(
                _shortened(kind.models),
                *(_shortened([format_value(name, value) for value in values]) for name, values in kind.sizes.items()),
                kind.engine,
                f"{kind.packs:,}",
                f"{kind.trials:,}",
                f"{kind.memory_mb:,.0f} MiB",
                f"{kind.trial_iteration_s * 1e6:.1f}",
                duration(kind.core_s),
            )
        return table

    def _sharing(self) -> list[Text]:
        """Describe the sharing of drawn rows, if there is any."""
        trials, draws = (sum(getattr(kind, name) for kind in self.kinds) for name in ("trials", "draws"))
        if draws == trials:
            return []
        return [Text(f"each draw of rows serves {trials / draws:.3g} trials: cells of a seed train on the same rows")]


# Longer lists are shortened to the first and the last value.
_NAMED = 3


def _shortened(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= _NAMED else f"{values[0]} … {values[-1]}"


def preview(plan: Plan, options: Options, difference: float | None = None) -> Estimate:
    """Estimate the costs of running a study, without writing to the store.

    A training function or a program is tried for a moment. Otherwise the time is measured: the largest pack of each
    kind trains here for about a second. Nothing is tried or measured if no trial is left.

    Args:
        plan: the study's plan.
        options: options of the run.
        difference: a difference of success rates to detect, in (0, 1], or None; the estimate then has the number of
            seeds that it takes.

    Raises:
        InputError: if the first trial of a function or program fails, no engine trains a cell, a model can't be
            trained, or the device isn't available; or as `resolve_to_estimate` raises.
        StudyError: if the store, the study's own results in it, or the published results of an installed package can't
            be read; or if one engine and kind of device gave a trial two different results.
        ValueError: if `difference` is above 1.
        OSError: if the cache of code or data can't be written.
        Exception: an error of an engine that doesn't train packed tasks.
    """
    design = design_note(plan, options.root, difference)
    summary = outline(plan, options.root)
    plan, pending = summary.plan, summary.pending
    if not pending:
        return Estimate(summary, design)
    engines = resolve_to_estimate(plan, options)
    if isinstance(engines.own, CallEngine):
        return Estimate(summary, design, notes=[*engines.missing_ray(), *try_first_trial(engines.own, pending[0])])
    device = engines.device
    at_once = engines.at_once(is_here=True) if device == "cuda" else None
    slots = 1 if device == "cuda" else engines.cores
    key_of, family = engines.key_on([device]), plan.spec.family
    packs = make_packs(pending, slots=slots, size=options.pack_size, at_once=at_once, family=family, key_of=key_of)
    packs_by_kind: dict[object, list[Pack]] = {}
    for pack in packs:
        packs_by_kind.setdefault(key_of(pack.trials[0].cell), []).append(pack)
    kinds, seconds = [], dict[str, float]()
    for kind_packs in packs_by_kind.values():
        costs = {pack.id: pack_cost(pack.trials, family) for pack in kind_packs}
        kind = _estimate(kind_packs, costs, plan, engines)
        kinds.append(kind)
        total_cost = sum(costs.values())
        seconds |= {pack_id: kind.core_s * cost / total_cost for pack_id, cost in costs.items()}
    # On a GPU the packs of a bundle train side by side, so a bundle takes as long as its longest pack.
    bundles = make_bundles(packs, slots=slots, at_once=at_once if engines.own is None else None)
    total_s = sum(max(seconds[pack.id] for pack in bundle) for bundle in bundles)
    busy = min(slots, len(bundles))
    notes = [*engines.missing_ray(), *engines.slow_cells()]
    return Estimate(summary, design, device, kinds, 0 if at_once else busy, total_s / busy, notes)


def _estimate(packs: Sequence[Pack], costs: Mapping[str, float], plan: Plan, engines: Engines) -> PacksEstimate:
    """Estimate the costs of packs of one kind by training the largest one for about a second."""
    family = plan.spec.family
    largest = max(packs, key=lambda pack: costs[pack.id])
    cell = largest.trials[0].cell
    engine = engines.engine(cell)
    with _explained(cell, engine):
        pack_s = calibrate(largest, engine, engines.device) * len(largest.trials) * (cell.iterations + 1)
    trials = [trial for pack in packs for trial in pack.trials]
    core_s = pack_s * sum(costs.values()) / costs[largest.id]
    cells = {trial.cell for trial in trials}
    return PacksEstimate(
        models=list(dict.fromkeys(cell.model for cell in plan.cells if cell in cells)),
        sizes={name: sorted({cell.value(name) for cell in cells}) for name in family.sizes},
        engine=engine.name,
        packs=len(packs),
        trials=len(trials),
        draws=sum(count_draws(pack.trials, family) for pack in packs),
        memory_mb=engine.memory_mb(largest),
        trial_iteration_s=core_s / len(trials) / (cell.iterations + 1),
        core_s=core_s,
    )


@contextmanager
def _explained(cell: Cell, engine: Engine) -> Iterator[None]:
    """Turn an exception in the user's packed task or model into an InputError with its place in their code.

    Exceptions of other engines stay unchanged.
    """
    try:
        yield
    except StudyError:
        raise
    except Exception as error:
        if as_packed(engine) is None:
            raise
        reason = failure_reason("".join(traceback.format_exception(error)))
        raise InputError(f"{cell.model} can't be trained on {cell.task}: {reason.text}\n{reason.traceback}") from error


def calibrate(pack: Pack, engine: Engine, device: str) -> float:
    """Measure the seconds per trial-iteration of a pack, evaluations included, compilation not.

    Args:
        pack: the pack, which trains for about a second.
        engine: the engine that trains it.
        device: ``cpu`` or ``cuda``.

    Raises:
        DeviceError: if the device isn't available, or has no room for the pack.
        InputError: if the user's code can't be loaded, or can't train the cell.
        OSError: if the copy of the user's code can't be written.
        Exception: the error of the user's task or model, or of the engine.
    """
    cell = pack.trials[0].cell
    engine.start(pack, device=device).advance(0.0)  # compiles what isn't compiled yet
    training = engine.start(pack, device=device)
    training.advance(0.0)
    first = training.checkpoint()  # one evaluation, and the fewest updates that the engine makes at once
    if not training.done:
        training.advance(_CALIBRATION_S)
    last = training.checkpoint()
    update_s = (last.training_s - first.training_s) / max(1, last.iteration - first.iteration)
    evaluation_s = max(0.0, first.training_s - update_s * first.iteration) / (cell.value("evaluate_every") or 1)
    return float(update_s + evaluation_s) / len(pack.trials)


# Each shape takes a second or two to measure. If there are more, only the first ones and the last are measured.
_MOST_SHAPES = 8


def preview_search(plan: Plan, options: Options) -> RenderableType:
    """Estimate the costs of a search, without writing to the store.

    The first cell of a function or program is tried for a moment. Otherwise cells of at most eight shapes train here
    for about a second each.

    Args:
        plan: the search's first plan, with cells at the ends of its ranges.
        options: options of the run.

    Raises:
        InputError: as `preview` does.
        StudyError: if the store, or the study's own record or results in it, can't be read, or the record belongs to
            another search.
        OSError: as `preview` does.
        Exception: as `preview` does.
    """
    search = plan.spec.search
    assert search is not None
    head = outline_search(plan, options.root)
    engines = resolve_to_estimate(plan, options)
    missing = map(Text, engines.missing_ray())
    if isinstance(engines.own, CallEngine):
        first = Trial(plan.cells[0], plan.spec.first_seeds[0])
        return Group(head, *missing, *map(Text, try_first_trial(engines.own, first)))
    return Group(head, *missing, *_times(plan, engines, search.trials + search.confirm_seeds))


def _times(plan: Plan, engines: Engines, trials: int) -> tuple[ConsoleTable, Text]:
    """Measure trials of each shape; return a table of times, and the range of the total time."""
    shapes: dict[object, Cell] = {shape_key(cell): cell for cell in plan.cells}
    cells = list(shapes.values())
    sample = cells if len(cells) <= _MOST_SHAPES else [*cells[: _MOST_SHAPES - 1], cells[-1]]
    table = ConsoleTable(title="at the ends of the ranges", title_justify="left")
    for column in ("model", *map(title, plan.spec.family.sizes), "engine"):
        table.add_column(column, rank=1 if column == "engine" else 0)
    for column, rank in {"µs per trial-iteration": 2, "core time a trial": 0}.items():
        table.add_column(column, justify="right", rank=rank)
    seconds = []
    for cell in sample:
        pack = Pack(tuple(Trial(cell, seed) for seed in plan.spec.first_seeds[:16]))
        engine = engines.engine(cell)
        with _explained(cell, engine):
            trial_iteration_s = calibrate(pack, engine, engines.device)
        seconds.append(trial_iteration_s * (cell.iterations + 1))
        values = (format_value(name, cell.value(name)) for name in plan.spec.family.sizes)
        took = (f"{trial_iteration_s * 1e6:.1f}", f"{seconds[-1]:.3g} s")
        table.add_row(cell.model, *values, engine.name, *took)
    device = engines.device
    slots = 1 if device == "cuda" else engines.cores
    where = "one GPU" if device == "cuda" else count_of(slots, "core")
    low, high = (duration(trials * cell_s / slots) for cell_s in (min(seconds), max(seconds)))
    span = low if low == high else f"{low} to {high}"
    total = f"about {span} on {where} for {trials:,} trials, including the confirmation of one candidate"
    return table, Text(f"{total}; calibrated for a second per shape")
