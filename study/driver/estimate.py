"""What a study would take: packs, memory, and time from a short calibration."""

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
    """What packs that hold trials of the same kinds would take.

    Args:
        models: their names.
        sizes: the values of the hyperparameters that say how large they are.
        engine: the engine that would train them.
        packs: how many there are.
        trials: how many trials are in them.
        draws: how often rows are drawn for them in an iteration: once in a pack for all trials that see the same.
        memory_mb: of the largest pack, MiB.
        trial_iteration_s: seconds of a trial's iteration.
        core_s: seconds of one core, or one GPU, for all of them.
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
    """What a study asks for, and what the rest of it would take; rich can print it.

    Args:
        outline: what it asks for, and how far it is.
        design: what its seeds can tell apart; None where nothing is compared by success.
        device: ``cpu`` or ``cuda``.
        kinds: of packs; none where nothing is left, or where it isn't known before the first trial has ended.
        cores: that would train side by side; 0 on a GPU.
        left_s: seconds until all is done; None if it isn't known.
        notes: what could train faster, and why it doesn't.
    """

    outline: Outline
    design: DesignNote | None = None
    device: str = "cpu"
    kinds: Sequence[PacksEstimate] = ()
    cores: int = 0
    left_s: float | None = None
    notes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
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
            parts.append(Text(f"about {duration(self.left_s)} on {where}, by a calibration of a second a row"))
        return Group(*parts)

    def _table(self) -> ConsoleTable:
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
                _some(kind.models),
                *(_some([format_value(name, value) for value in values]) for name, values in kind.sizes.items()),
                kind.engine,
                f"{kind.packs:,}",
                f"{kind.trials:,}",
                f"{kind.memory_mb:,.0f} MiB",
                f"{kind.trial_iteration_s * 1e6:.1f}",
                duration(kind.core_s),
            )
        return table

    def _sharing(self) -> list[Text]:
        """Say how many trials share a draw of rows, if any do."""
        trials, draws = (sum(getattr(kind, name) for kind in self.kinds) for name in ("trials", "draws"))
        if draws == trials:
            return []
        return [Text(f"a draw of rows serves {trials / draws:.3g} trials: cells of a seed train on the same rows")]


# Of what packs hold, so many are named in a row; of more, the first and the last.
_NAMED = 3


def _some(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= _NAMED else f"{values[0]} … {values[-1]}"


def preview(plan: Plan, options: Options, difference: float | None = None) -> Estimate:
    """Estimate what running a study would take, without writing anything.

    A training function is called once, for a moment. For anything else the time is measured: the largest of the packs
    that hold the same kinds of trials trains here for about a second.

    Args:
        plan: what the study asks for.
        options: where and how it would run.
        difference: of success rates, to say how many seeds it takes.

    Raises:
        InputError: if the training function fails in the first trial, or the options need Ray and it isn't here.
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
    of_kinds: dict[object, list[Pack]] = {}
    for pack in packs:
        of_kinds.setdefault(key_of(pack.trials[0].cell), []).append(pack)
    kinds, seconds = [], dict[str, float]()
    for of_kind in of_kinds.values():
        costs = {pack.id: pack_cost(pack.trials, family) for pack in of_kind}
        kind = _estimate(of_kind, costs, plan, engines)
        kinds.append(kind)
        whole = sum(costs.values())
        seconds |= {pack_id: kind.core_s * cost / whole for pack_id, cost in costs.items()}
    # On a GPU the packs of a bundle train side by side, so a bundle takes as long as its longest pack.
    bundles = make_bundles(packs, slots=slots, at_once=at_once if engines.own is None else None)
    total_s = sum(max(seconds[pack.id] for pack in bundle) for bundle in bundles)
    busy = min(slots, len(bundles))
    notes = [*engines.missing_ray(), *engines.slow_cells()]
    return Estimate(summary, design, device, kinds, 0 if at_once else busy, total_s / busy, notes)


def _estimate(packs: Sequence[Pack], costs: Mapping[str, float], plan: Plan, engines: Engines) -> PacksEstimate:
    """Estimate what packs of one kind, whose relative costs are known, take: the largest trains for about a second."""
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
    """Turn an error of the user's own task or model into bad input, with the place in their code."""
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
    if not training.done:
        training.advance(_CALIBRATION_S)
    last = training.checkpoint()
    update_s = (last.training_s - first.training_s) / max(1, last.iteration - first.iteration)
    evaluation_s = max(0.0, first.training_s - update_s * first.iteration) / (cell.value("evaluate_every") or 1)
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
    engines = resolve_to_estimate(plan, options)
    missing = map(Text, engines.missing_ray())
    if isinstance(engines.own, CallEngine):
        first = Trial(plan.cells[0], plan.spec.first_seeds[0])
        return Group(head, *missing, *map(Text, try_first_trial(engines.own, first)))
    return Group(head, *missing, *_times(plan, engines, search.trials + search.confirm_seeds))


def _times(plan: Plan, engines: Engines, trials: int) -> tuple[ConsoleTable, Text]:
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
    low, high = (duration(trials * s / slots) for s in (min(seconds), max(seconds)))
    span = low if low == high else f"{low} to {high}"
    total = f"about {span} on {where} for {trials:,} trials, one candidate's confirmation among them"
    return table, Text(f"{total}; by a calibration of a second a shape")
