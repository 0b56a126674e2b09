"""Outline of a study without training: its cells, seeds and trials, and those that are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Group, RenderableType
from rich.text import Text

from study import words
from study.arrow import EMPTY_RESULTS
from study.comparisons.published import published_times
from study.console import ConsoleTable
from study.errors import StudyError
from study.interface.criterion import in_words
from study.interface.family import Family
from study.interface.references import ReferenceCriterion
from study.plan.plan import Plan
from study.records import Cell, Trial
from study.results.code_changes import change_sentences
from study.results.stored_plan import with_looks
from study.spec.claims import claims_of
from study.store import Store, StudyStore, one_a_trial
from study.summaries.solved_times import SolvedTimes, too_few_iterations

T = TypeVar("T")

_LEFT_OUT = (
    "--quick skips calibration (engines, packs, memory, time); "
    "`study plan` without it measures each shape for a second or two"
)


@dataclass(frozen=True)
class Outline:
    """A study's size and progress.

    Args:
        plan: the study's plan; with adaptive seeds, it has the expected number of seeds.
        pending: trials without a result in any study of the store.
        parts: the description to print.
        warnings: sentences to read before the study runs.
    """

    plan: Plan
    pending: Sequence[Trial]
    parts: Sequence[RenderableType]
    warnings: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return study, question, numbers of cells and trials, claims if there are any, and warnings, as JSON data."""
        spec, trials = self.plan.spec, len(self.plan.trials)
        left = len(self.pending)
        numbers = {"cells": len(self.plan.cells), "trials": trials, "done": trials - left, "left": left}
        claims = [claim.text for claim in claims_of(spec, self.plan.cells, self.plan.labels)]
        claim_texts = {"claims": claims} if claims else {}
        warnings = [*spec.notices, *self.warnings]
        return {"study": spec.study, "question": spec.question, **numbers, **claim_texts, "warnings": warnings}


def outline(plan: Plan, root: str | Path) -> Outline:
    """Describe a study by its file and the store, without writing anything or asking an engine.

    Args:
        plan: the study's plan.
        root: the store's folder or URL.

    Raises:
        StudyError: if the store, the study's own part of it, or the published results or vocabulary of an installed
            package can't be read; or, with adaptive seeds, own code or claims, if one engine and kind of device gave a
            trial two different results.
    """
    seeds: list[RenderableType] = []
    plan = with_looks(plan, Store(root, read_only=True).study(plan.spec.study))
    if plan.spec.seed_design.is_adaptive:
        plan, table = _until_sure(plan, root)
        seeds = [table]
    done = _done_anywhere(plan, root)
    pending = [trial for trial in plan.trials if trial.id not in done]
    head = Text()
    head.append(f"{plan.spec.study}: {plan.spec.question}\n", style="bold")
    head.append(f"{_size_text(plan)}, {len(done):,} done already\n")
    head.append(_claims_text(plan))
    for remark in [*plan.spec.notices, *plan.spec.family.remarks]:
        head.append(f"{remark}\n", style="yellow")
    if not pending:
        head.append("nothing is left to do")
        return Outline(plan, pending, [head])
    cells = list(dict.fromkeys(trial.cell for trial in pending))
    changes = change_sentences(plan.spec, Store(root, read_only=True).study(plan.spec.study))
    warnings = [*changes, *too_few(plan, cells, root), *plan.spec.family.cautions(cells)]
    return Outline(plan, pending, [head, *_in_yellow(warnings), *seeds], warnings)


def _claims_text(plan: Plan) -> str:
    """List the claims, and the times of their judgement; empty without claims."""
    claims, design = claims_of(plan.spec, plan.cells, plan.labels), plan.spec.seed_design
    if not claims:
        return ""
    times = "after each batch of seeds" if design.is_adaptive else "once all trials have ended"
    if design.rule == "claims":
        times += ", until they are decided"
    before = _judged_before(plan) if plan.earlier_looks else [""] * len(claims)
    lines = [
        f"{number}. {claim.text}{more}\n" for number, (claim, more) in enumerate(zip(claims, before, strict=True), 1)
    ]
    return f"{words.count_of(len(claims), 'claim')}, judged {times}:\n{''.join(lines)}"


def _judged_before(plan: Plan) -> list[str]:
    """Return a remark on each claim's earlier looks at the results, and the error that they allow."""
    # imported late: statistics and reports take as long to import as everything else together
    from study.plan.claims import claim_verdicts
    from study.reports import judged_before
    from study.trials.table import TrialTable

    return [judged_before(verdict) for verdict in claim_verdicts(plan, TrialTable(EMPTY_RESULTS, plan.metrics))]


def quick(plan: Plan, root: str | Path) -> RenderableType:
    """Describe a study from its file and the store, without a calibration.

    Args:
        plan: the study's plan, or a search's first one.
        root: the store's folder or URL.

    Raises:
        StudyError: as `outline` does or, for a search, as `outline_search` does.
    """
    if plan.spec.seed_design.is_search:
        return Group(outline_search(plan, root), Text(_LEFT_OUT))
    summary = outline(plan, root)
    if not summary.pending:
        return Group(*summary.parts)
    return Group(*summary.parts, _left_table(summary.pending, plan.spec.family), Text(_LEFT_OUT))


def as_json(plan: Plan, root: str | Path) -> dict[str, Any]:
    """Return a study's outline, or a search's settings, both with warnings, as JSON data.

    Raises:
        StudyError: as `outline` does or, for a search, as `too_few` does.
    """
    spec = plan.spec
    if spec.search is None:
        return outline(plan, root).as_json()
    search = {"study": spec.study, "question": spec.question, "search": spec.search.model_dump(mode="json")}
    return search | {"warnings": [*spec.notices, *too_few(plan, plan.cells, root)]}


def outline_search(plan: Plan, root: str | Path) -> Text:
    """Describe a search by its file and the store.

    Args:
        plan: the search's first plan.
        root: the store's folder or URL.

    Raises:
        StudyError: if the record belongs to another search; if the store, the study's own record or results in it, or
            the published results of an installed package can't be read.
    """
    # imported late: Optuna takes long to import, and most studies don't need it
    from study.search import cost, read_record, rungs

    search = plan.spec.search
    assert search is not None
    head = Text()
    head.append(f"{plan.spec.study}: {plan.spec.question}\n", style="bold")
    steps = ", ".join(str(count) for count in rungs(search, plan.spec.most_seeds))
    round_trials = cost(search, plan.spec.most_seeds, search.candidates)
    head.append(
        f"{search.trials:,} trials to search with, by {search.sampler}, for {' and '.join(search.objective)}: "
        f"rounds of {search.candidates} candidates with {steps} seeds, {round_trials:,} trials a round\n"
        f"then {search.confirm_seeds:,} fresh seeds for each candidate of the front, at most "
        f"{search.confirm_candidates}\n"
    )
    store = Store(root, read_only=True)
    is_stored = plan.spec.study in store.studies()
    record = read_record(plan.spec, store.study(plan.spec.study)) if is_stored else None
    if record is not None:
        spent = sum(candidate.seeds for candidate in record.valued)
        head.append(f"so far {words.count_of(len(record.valued), 'candidate')} in {words.count_of(spent, 'trial')}\n")
    for warning in too_few(plan, plan.cells, root):
        head.append(f"{warning}\n", style="yellow")
    return head


def too_few(plan: Plan, cells: Iterable[Cell], root: str | Path) -> list[str]:
    """Return warnings of cells with fewer iterations than any similar cell needed, published or in the store.

    Published cells count only if the plan's cells contain the success criterion.

    Args:
        plan: the plan of the cells.
        cells: some of its cells.
        root: the store's folder or URL.

    Returns:
        A sentence for each warning; empty if references set the success criterion, or no cell has iterations.

    Raises:
        StudyError: if the store, the study's own results in it, or the published results of an installed package can't
            be read.
    """
    with_iterations = [cell for cell in dict.fromkeys(cells) if cell.iterations]
    models = {cell.model for cell in with_iterations}
    criterion = plan.criterion
    if not models or isinstance(criterion, ReferenceCriterion):  # each study has its own bound for success
        return []
    text, task = None if criterion is None else in_words(criterion), plan.spec.task_name
    times = published_times() if criterion is None else []
    for study_times in _read_studies(plan, root, lambda folder: _solved_times(folder, task, models, text)):
        times += [SolvedTimes(cell, f"study {name}", len(at), median(at), min(at)) for name, cell, at in study_times]
    return too_few_iterations(with_iterations, times, plan.spec.family)


def _solved_times(
    folder: StudyStore, task: str, models: Collection[str], criterion: str | None
) -> list[tuple[str, Cell, Sequence[int]]]:
    return [(folder.name, cell, at) for cell, at in folder.solved_cells(task, models, criterion)]


def _in_yellow(sentences: Iterable[str]) -> list[Text]:
    return [Text(sentence, style="yellow") for sentence in sentences]


def _left_table(pending: Sequence[Trial], family: Family) -> ConsoleTable:
    """Count the trials that are left by model, size and iterations."""
    names = ["model", *family.sizes, "iterations"]
    title = f"{words.count_of(len(pending), 'trial')} {'is' if len(pending) == 1 else 'are'} left"
    table = ConsoleTable(title=title, title_justify="left")
    for name in (*names, "cells", "trials"):
        is_number, rank = name in ("iterations", "cells", "trials"), {"iterations": 1, "cells": 2}.get(name, 0)
        table.add_column(words.title(name, family.titles), justify="right" if is_number else "left", rank=rank)
    kinds: dict[tuple[object, ...], list[int]] = {}
    for cell, count in Counter(trial.cell for trial in pending).items():
        kinds.setdefault(tuple(cell.value(name) for name in names), []).append(count)
    for (*values, iterations), counts in kinds.items():
        length = words.NONE if iterations is None else f"{iterations:,}"
        texts = (words.format_value(name, value) for name, value in zip(names, values, strict=False))
        table.add_row(*texts, length, f"{len(counts):,}", f"{sum(counts):,}")
    return table


def _size_text(plan: Plan) -> str:
    cells, trials = words.count_of(len(plan.cells), "cell"), words.count_of(len(plan.trials), "trial")
    if plan.spec.seed_design.is_adaptive:
        most = len(plan.cells) * plan.spec.most_seeds
        return f"{cells} with up to {words.count_of(plan.spec.most_seeds, 'seed')}: about {trials} of {most:,}"
    return f"{cells} × {plan.spec.seeds.size} = {trials}"


def _until_sure(plan: Plan, root: str | Path) -> tuple[Plan, ConsoleTable]:
    """Return the plan with the expected number of seeds of each cell, and a table of them."""
    # imported late: statistics and reports take as long to import as everything else together
    from study.plan import until
    from study.reports import MOST_ROWS, cell_rows
    from study.summaries.aggregate import aggregate
    from study.trials.table import TrialTable

    trials = TrialTable(results_anywhere(plan, root), plan.metrics)
    counts = until.expected(plan, trials)
    summaries = aggregate(trials, planned=dict.fromkeys(plan.cells, 0))
    rows = cell_rows(summaries[: len(plan.cells)], plan.labels, titles=plan.spec.family.titles)
    table = ConsoleTable(title="Expected number of seeds of each cell", title_justify="left")
    metric = plan.spec.seed_design.metric
    known = "solved" if metric is None else f"{words.metric_title(metric, plan.metrics[metric])}, mean"
    for title in ("cell", "seeds so far", known, "expected"):
        table.add_column(title, justify="left" if title == "cell" else "right")
    for row, summary in enumerate(rows.summaries[:MOST_ROWS]):
        solved = f"{summary.solved:,}" if summary.judged else ""
        if metric is not None:
            metric_summary = summary.metrics.get(metric)
            solved = (
                ""
                if metric_summary is None or metric_summary.mean is None
                else words.measure(metric_summary.mean, metric_summary.mean_interval)
            )
        name = rows.name(row) or plan.cells[row].model
        table.add_row(name, f"{summary.ended:,}", solved, f"{counts[plan.cells[row].id]:,}")
    own = {cell.id: range(counts[cell.id]) for cell in plan.cells}
    return replace(plan, own_seeds=own), table


def results_anywhere(plan: Plan, root: str | Path) -> pa.Table:
    """Read the results of the plan's cells from all studies of the store, one row per trial.

    Other studies that can't be read are skipped.

    Raises:
        StudyError: if the store, or the study's own results in it, can't be read.
        ConflictError: if one engine and kind of device gave a trial two different results.
    """
    cell_ids = pa.array([cell.id for cell in plan.cells], pa.string())
    read = _read_studies(plan, root, lambda folder: folder.judged_by(plan.criterion).read_results())
    tables = [table.filter(pc.is_in(table["cell_id"], value_set=cell_ids)) for table in read]
    return one_a_trial([EMPTY_RESULTS, *tables], [str(i) for i in range(len(tables) + 1)])


def _done_anywhere(plan: Plan, root: str | Path) -> set[str]:
    trial_ids = {trial.id for trial in plan.trials}
    return trial_ids.intersection(set().union(*_read_studies(plan, root, StudyStore.done)))


def _read_studies(plan: Plan, root: str | Path, read: Callable[[StudyStore], T]) -> Iterator[T]:
    """Yield ``read``'s value for each study of the store that can be read; raise its error for the plan's own study."""
    store = Store(root, read_only=True)
    for name in store.studies():
        try:
            yield read(store.study(name))
        except StudyError:  # a run doesn't adopt unreadable results, either
            if name == plan.spec.study:
                raise
