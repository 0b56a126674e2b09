"""The way back: from what is stored (or tracked) of a study to its table, its report and its dashboard."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study import tracking, until
from study.aggregate import CellSummary, aggregate
from study.console import Console
from study.errors import InputError, StudyError
from study.exhibits import Exhibits, exhibits
from study.outcomes import Source
from study.plan import Plan
from study.plan import plan as make_plan
from study.publishing import StoredPacks
from study.records import CELL_FIELDS
from study.report import (
    PUBLISHED,
    USUAL,
    Against,
    Contrasts,
    Keyed,
    Links,
    Report,
    Searched,
    cells,
    cells_rows,
    chart_series,
    comparisons_table,
    contrasts,
    draws,
    headline,
    search_headline,
    show_search,
    show_summaries,
    times_notes,
    verdicts_table,
    with_published,
    with_study,
    words,
    write_report,
)
from study.shown import is_kept, keep_mark, mark
from study.spec import parse_spec
from study.store import Store, StudyStore
from study.summary import WILSON
from study.table import RESULT_SCHEMA, trial_row
from study.until import Verdict

MOST_TRIALS = 25_000
"""Trials that a page lists at most: a browser opens these at once, and 3 MB."""


_NOT_TESTED = (
    "Trends and tests between rows take the number of seeds as fixed in advance. Here it depends on what came of "
    "them, so they are left out."
)
_ONLY_A_HINT = (
    "Seeds were added until there were enough, and tests beside others take their number as fixed in advance: take "
    "their p-values as a hint."
)


@dataclass(frozen=True)
class Asked:
    """All that a search has asked for.

    Args:
        plan: the cells of its candidates, and their seeds.
        summaries: of these.
    """

    plan: Plan
    summaries: Sequence[CellSummary]


@dataclass(frozen=True)
class Standing:
    """A study as it stands.

    Args:
        plan: what it asks for.
        folder: its part of the store.
        table: its trials' results.
        summaries: one a cell, planned order.
        against: the published numbers where it repeats them, or another study.
        notices: sentences about files that weren't believed.
        search: what was tried, of a search.
        asked: all that a search has asked for, if that is more than what is shown.
    """

    plan: Plan
    folder: StudyStore
    table: pa.Table
    summaries: Sequence[CellSummary]
    against: Against
    notices: Sequence[str]
    search: Searched | None = None
    asked: Asked | None = None

    @property
    def name(self) -> str:
        """Give the study's name."""
        return self.plan.spec.study

    @cached_property
    def rows(self) -> Keyed:
        """Tell the cells apart."""
        return cells(self.summaries, self.plan.labels)

    @cached_property
    def contrasts(self) -> Contrasts:
        """Test what can be tested between cells."""
        if self.search is not None:
            return Contrasts()
        if self.plan.spec.until is not None:
            return Contrasts(notes=(_NOT_TESTED,))
        return contrasts(self.rows)

    @cached_property
    def verdicts(self) -> Sequence[Verdict]:
        """Say where seeds that were added until sure are enough."""
        return until.verdicts(self.plan, self.table)

    @cached_property
    def notes(self) -> Sequence[str]:
        """List what the reader must know: of files that weren't believed, and of trials that ended early."""
        return [*self.notices, *times_notes(self.rows)]

    @property
    def headline(self) -> str:
        """Say what was found, in a sentence."""
        if self.search is not None:
            return search_headline(self.search, self.summaries)
        return headline(self.rows, self.contrasts)

    @property
    def counts(self) -> dict[str, int]:
        """Count trials by state."""
        names = ("solved", "unsolved", "diverged", "failed", "pending")
        summaries = self.summaries if self.asked is None else self.asked.summaries
        counted = {name: sum(getattr(s, name) for s in summaries) for name in names}
        trials = sum(s.seeds for s in summaries)
        return {"trials": trials, "done": trials - counted["pending"], **counted}

    @property
    def series(self) -> Sequence[tracking.Point]:
        """Success rate and solved-at against hidden units, for MLflow's own charts."""
        return chart_series(self.summaries, self.plan.labels)


def standing(
    name: str, root: str | Path, *, tracking_uri: str | None = None, compare: str = PUBLISHED
) -> Standing:
    """Read how a study stands.

    Args:
        name: of the study.
        root: the store's folder, or its URL.
        tracking_uri: read the results from this MLflow server instead of the store.
        compare: ``published``, or a study of the store to compare with.

    Raises:
        UnknownStudyError: if the store has no such study.
        InputError: if the study to compare with has no results, or no cell with a counterpart here.
    """
    folder, plan, table = _read(name, root, tracking_uri)
    if plan.spec.search is None:
        return _standing(folder, plan, table, root, tracking_uri, compare)
    from study import searched  # only here: Optuna takes long to import, and most studies do without
    from study.search import read_record

    record = read_record(plan.spec, folder)
    if record is None:
        return _standing(folder, plan, table, root, tracking_uri, compare)
    shown = searched.shown(plan, record)
    found = _standing(folder, shown, _of_plan(table, shown), root, tracking_uri, compare)
    search = searched.searched(plan, record, table, found.summaries)
    more = [] if search.is_over else [searched.NOT_CONFIRMED]
    asked = Asked(plan, _summaries(plan, table))
    return replace(found, search=search, asked=asked, notices=[*found.notices, *more])


def _standing(
    folder: StudyStore,
    plan: Plan,
    table: pa.Table,
    root: str | Path,
    tracking_uri: str | None,
    compare: str,
) -> Standing:
    summaries = _summaries(plan, table)
    if compare == PUBLISHED:
        against = _hinted(with_published(summaries), plan)
        return Standing(plan, folder, table, summaries, against, folder.notices)
    other_folder, other_plan, other_table = _read(compare, root, tracking_uri)
    if not other_table.num_rows:
        raise InputError(f"--compare {compare}: that study has no results yet; `study run` makes them")
    against = _hinted(with_study(summaries, _summaries(other_plan, other_table), compare), plan, other_plan)
    shared = int(pc.sum(pc.is_in(table["trial_id"], value_set=other_table["trial_id"])).as_py() or 0)
    if shared:
        told = f"{shared:,} trials are in both studies, and tests take them for independent samples"
        against = replace(against, notes=(*against.notes, told))
    return Standing(plan, folder, table, summaries, against, [*folder.notices, *other_folder.notices])


def _hinted(against: Against, *plans: Plan) -> Against:
    if not against.comparisons or all(plan.spec.until is None for plan in plans):
        return against
    return replace(against, notes=(*against.notes, _ONLY_A_HINT))


def _summaries(plan: Plan, table: pa.Table) -> list[CellSummary]:
    rates = WILSON if plan.spec.until is None else until.rate_intervals(plan.spec.until)
    planned = {cell: len(plan.seeds(cell)) for cell in plan.cells}
    return aggregate(table, planned=planned, rates=rates, labels=plan.labels)


def outcomes_of(
    name: str, root: str | Path, *, tracking_uri: str | None = None
) -> tuple[Source, Sequence[str]]:
    """Read a study's trials as `study.outcomes` takes them, those that are pending among them.

    Args:
        name: of the study.
        root: the store's folder, or its URL.
        tracking_uri: read the results from this MLflow server instead of the store.

    Returns:
        The rows, and sentences about files that weren't believed.

    Raises:
        UnknownStudyError: if the store has no such study.
        InputError: if it has no results yet.
    """
    folder, plan, done = _read(name, root, tracking_uri)
    if not done.num_rows:
        raise InputError(f"study {name!r} has no results yet; `study run` makes them")
    there = set(done["trial_id"].to_pylist())
    pending = [trial_row(trial) for trial in plan.trials if trial.id not in there]
    table = pa.concat_tables([done, pa.Table.from_pylist(pending, RESULT_SCHEMA)])
    notices = list(folder.notices)
    if plan.spec.search is not None:
        notices.append(
            f"study {name!r} is a search: its rows are also of candidates that were chosen by these trials"
        )
    elif plan.spec.until is not None:
        notices.append(
            f"study {name!r} added seeds until there were enough: intervals here don't allow for that"
        )
    return Source(name, table, np.arange(1, table.num_rows + 1), has_pending=True), notices


def _read(name: str, root: str | Path, tracking_uri: str | None) -> tuple[StudyStore, Plan, pa.Table]:
    folder = Store(root, read_only=True).open(name)
    plan = make_plan(parse_spec(folder.read_spec(), source=folder.spec_where))
    if tracking_uri is None:
        table = folder.read_results()
    else:
        table, _ = tracking.load(tracking_uri, name)
    plan = grown_plan(plan, folder, table)
    return folder, plan, _of_plan(table, plan)


def grown_plan(plan: Plan, folder: StudyStore, table: pa.Table) -> Plan:
    """Give what a study asks for by what is known of it."""
    if plan.spec.search is None:
        return until.grown(plan, table)
    from study import searched  # only here: Optuna takes long to import, and most studies do without

    return searched.planned(plan, folder, table)


def _of_plan(table: pa.Table, plan: Plan) -> pa.Table:
    """Keep the rows of planned trials: a study's file may have asked for others before."""
    if plan.own_seeds:
        wanted = {cell.id: set(plan.seeds(cell)) for cell in plan.cells}
        rows = zip(table["cell_id"].to_pylist(), table["seed"].to_pylist(), strict=True)
        return table.filter(pa.array([seed in wanted.get(cell, ()) for cell, seed in rows], pa.bool_()))
    cells = pa.array([cell.id for cell in plan.cells], pa.string())
    seeds = pa.array(list(plan.spec.first_seeds), pa.int64())
    # every cell has every seed; ids of a million trials would take a minute
    planned = pc.and_(pc.is_in(table["cell_id"], value_set=cells), pc.is_in(table["seed"], value_set=seeds))
    return table if pc.all(planned).as_py() else table.filter(planned)


def require_results(found: Standing) -> None:
    """Check that a study has anything to show.

    Raises:
        InputError: if it has no results yet.
    """
    if not found.counts["done"]:
        raise InputError(f"study {found.plan.spec.study!r} has no results yet; `study run` makes them")


def show(found: Standing, console: Console) -> None:
    """Print a study's finding, its table, and how it compares with the published numbers or another study."""
    require_results(found)
    show_summaries(console, found.rows, found.plan.spec.question)
    console.print(found.headline)
    if found.search is not None:
        show_search(console, found.search, found.rows)
    if found.verdicts:
        console.print(verdicts_table(found.rows, found.verdicts))
    if found.against.comparisons:
        console.print(comparisons_table(found.rows, found.against))
    for notice in [*found.notes, *found.against.notes]:
        console.print(notice, style="yellow")


def write(
    found: Standing,
    folder: Path | None = None,
    formats: Collection[str] = USUAL,
    *,
    tracking_uri: str | None = None,
    trial: str | None = None,
) -> list[Path]:
    """Write a study's report into a folder, and give its files.

    Args:
        found: the study as it stands.
        folder: where; None for the study's own, or of a study in an object store, one here.
        formats: of `study.report.FORMATS`.
        tracking_uri: of MLflow, to link to; None for no links.
        trial: whose weights are drawn: its id or the first letters of it; None for a typical solved one.

    Raises:
        InputError: if there is no such trial, or its weights aren't stored.
        StudyError: if the folder can't be written.
    """
    return _write(
        found, folder or own_folder(found.folder), formats, tracking.links(tracking_uri, found.name), trial
    )


def _write(
    found: Standing, folder: Path, formats: Collection[str], links: Links | None, trial: str | None = None
) -> list[Path]:
    # Curves and weights take torch, and tables do without; a trial that was asked for must be there in any case.
    made = report(found, links=links, trial=trial, with_trials=draws(formats) or trial is not None)
    try:
        is_ours = found.folder.path is not None and folder == own_folder(found.folder)
        return write_report(folder, made, formats, is_ours=is_ours)
    except OSError as error:
        raise StudyError(f"can't write the report into {folder}: {error.strerror or error}") from error


def own_folder(folder: StudyStore) -> Path:
    """Give the folder of a study's report: in the study's own; here, if that is in an object store."""
    return Path(f"{folder.name}-report") if folder.path is None else folder.path / "report"


@dataclass(frozen=True)
class Written:
    """A report that was written.

    Args:
        files: of it.
        mark: of what it shows.
    """

    files: Sequence[Path]
    mark: str


def write_and_keep(found: Standing, into: Path, folder: StudyStore, *, tracking_uri: str | None) -> Written:
    """Write a study's report into what `report_folder` gave, and see that the store has it, in the study's folder."""
    folder.check()
    links = tracking.links(tracking_uri, found.name)
    files = _write(found, into, USUAL, links)
    if folder.path is None:
        folder.keep_report(files)
    shown = _mark(found, links)
    keep_mark(folder, shown, files)
    return Written(files, shown)


def are_current(found: Standing, tracking_uri: str | None) -> bool:
    """Say whether the study's report and MLflow are known to show it as it stands.

    Args:
        found: the study as it stands.
        tracking_uri: of MLflow; None where nothing is published.
    """
    shown = _mark(found, tracking.links(tracking_uri, found.name))
    published = tracking_uri is None or tracking.shows_all(tracking_uri, found.name, shown)
    return published and is_kept(found.folder, shown)


def _mark(found: Standing, links: Links | None) -> str:
    origins = sorted(json.dumps(one, sort_keys=True) for one in found.folder.provenances())
    return mark(found.table, found.plan.spec.text, found.notices, found.search, origins, links)


@contextmanager
def report_folder(folder: StudyStore) -> Iterator[Path]:
    """Give a folder to write a study's report into: its own, or one of this machine if the study is elsewhere."""
    if folder.path is not None:
        yield folder.path / "report"
        return
    with tempfile.TemporaryDirectory(prefix="study-report-") as scratch:
        yield Path(scratch, "report")


def report(
    found: Standing, *, links: Links | None = None, trial: str | None = None, with_trials: bool = True
) -> Report:
    """Put together what the report of a study says; arguments are as for `write`.

    Without `with_trials`, learning curves, gates and weights are left out.
    """
    spec = found.plan.spec
    versus = [] if found.against.is_published else ["--compare", found.against.name]
    asked = [] if trial is None else ["--trial", trial]
    shown = (
        exhibits(found.folder, found.summaries, found.rows, found.table, trial)
        if with_trials
        else Exhibits((), (), None)
    )
    return Report(
        name=spec.study,
        question=spec.question,
        rows=found.rows,
        data=cells_rows(found.summaries, found.plan.labels),
        command=shlex.join(["study", "report", spec.study, *versus, *asked]),
        headline=found.headline,
        contrasts=found.contrasts,
        against=found.against,
        verdicts=found.verdicts,
        search=found.search,
        notes=found.notes,
        protocol=_protocol(found.summaries),
        spec=spec.text,
        provenance=_distinct(found.folder.provenances()),
        trials=_listed_trials(found),
        links=links,
        learning=shown.learning,
        gates=shown.gates,
        weights=shown.weights,
    )


def _protocol(summaries: Sequence[CellSummary]) -> dict[str, str]:
    """Give each hyperparameter that applies, with the values it takes."""
    shown: dict[str, str] = {}
    for key in CELL_FIELDS:
        values = dict.fromkeys(getattr(s.cell, key) for s in summaries)
        if set(values) != {None}:
            shown[words.title(key)] = ", ".join(words.show_value(key, value) for value in values)
    return shown


def _listed_trials(found: Standing) -> pa.Table | None:
    """Give the trials that have a result, each with its row of the report; None if they are too many to list."""
    table = found.table
    if table.num_rows > MOST_TRIALS:
        return None
    rows = {s.cell_id: row for row, s in enumerate(found.summaries)}
    of = pa.array([rows[cell_id] for cell_id in table["cell_id"].to_pylist()], pa.int64())
    names = ("cell_id", "trial_id", "seed", "outcome", "solved_at_iteration", "sparsity_error", "test_mse")
    listed = table.select([*names, "training_s", "error"])
    return listed.append_column("row", of).sort_by([("row", "ascending"), ("seed", "ascending")])


def _distinct(provenances: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge provenances that differ in their time only, keeping the first and the last."""
    merged: dict[str, dict[str, Any]] = {}
    entries = [entry for given in provenances for entry in _opened(given)]
    for entry in sorted(entries, key=lambda entry: str(entry["created_at"])):
        rest = {key: value for key, value in entry.items() if key != "created_at"}
        seen = merged.setdefault(repr(sorted(rest.items())), rest | {"first": entry["created_at"]})
        seen["last"] = entry["created_at"]
    return list(merged.values())


def _opened(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the provenances of adopted results as those of the study they were made in."""
    if "adopted_from" not in entry:
        return [dict(entry)] if "created_at" in entry else []
    opened = [inner for original in entry["original"] for inner in _opened(original)]
    return [{"adopted_from": entry["adopted_from"]} | inner for inner in opened]


def sync(found: Standing, tracking_uri: str) -> int:
    """Publish the trials that MLflow is missing or has differently, then write the report and attach it.

    Args:
        found: the study as it stands.
        tracking_uri: of MLflow.

    Returns:
        How many trials were published.

    Raises:
        TrackingError: if the server can't be reached.
    """
    spec = found.plan.spec
    plan = found.plan if found.asked is None else found.asked.plan
    rows = _of_plan(found.folder.read_results(), plan)
    with report_folder(found.folder) as into:
        return tracking.sync(
            tracking_uri,
            spec.study,
            StoredPacks(found.folder, rows),
            question=spec.question,
            spec=spec.text,
            finding=found.headline,
            counts=found.counts,
            series=found.series,
            files=lambda: write_and_keep(found, into, found.folder, tracking_uri=tracking_uri).files,
        )
