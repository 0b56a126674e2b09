"""The way back: from what is stored (or tracked) of a study to its table, its report and its dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from study import tracking
from study.aggregate import CellSummary, aggregate
from study.errors import InputError, StudyError
from study.outcomes import Source
from study.plan import Plan
from study.plan import plan as make_plan
from study.records import Cell
from study.report import FORMATS, chart_series, compare, comparisons_table, summaries_table, write_report
from study.report.compare import Comparison
from study.spec import parse_spec
from study.store import Store, StudyStore
from study.table import RESULT_SCHEMA, table_curves, table_results, trial_row


@dataclass(frozen=True)
class Standing:
    """A study as it stands.

    Args:
        plan: what it asks for.
        folder: its part of the store.
        summaries: one a cell, planned order.
        comparison: with the published numbers, where it repeats them.
        notices: sentences about files that weren't believed.
    """

    plan: Plan
    folder: StudyStore
    summaries: Sequence[CellSummary]
    comparison: Sequence[Comparison]
    notices: Sequence[str]

    @property
    def counts(self) -> dict[str, int]:
        """Count trials by state."""
        names = ("solved", "unsolved", "diverged", "failed", "pending")
        counted = {name: sum(getattr(s, name) for s in self.summaries) for name in names}
        trials = sum(s.seeds for s in self.summaries)
        return {"trials": trials, "done": trials - counted["pending"], **counted}

    @property
    def series(self) -> Sequence[tracking.Point]:
        """Success rate and solved-at against hidden units, for MLflow's own charts."""
        return chart_series(self.summaries, self.plan.labels)


def standing(name: str, root: Path, *, tracking_uri: str | None = None) -> Standing:
    """Read how a study stands.

    Args:
        name: of the study.
        root: the store's folder.
        tracking_uri: read the results from this MLflow server instead of the store.

    Raises:
        UnknownStudyError: if the store has no such study.
    """
    folder, plan, table = _read(name, root, tracking_uri)
    planned = Counter[Cell]()
    for trial in plan.trials:
        planned[trial.cell] += 1
    summaries = aggregate(table, planned=planned)
    return Standing(plan, folder, summaries, compare(summaries), folder.notices)


def outcomes_of(name: str, root: Path, *, tracking_uri: str | None = None) -> tuple[Source, Sequence[str]]:
    """Read a study's trials as `study.outcomes` takes them, those that are pending among them.

    Args:
        name: of the study.
        root: the store's folder.
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
    return Source(name, table, np.arange(1, table.num_rows + 1), has_pending=True), folder.notices


def _read(name: str, root: Path, tracking_uri: str | None) -> tuple[StudyStore, Plan, pa.Table]:
    folder = Store(root, read_only=True).open(name)
    plan = make_plan(parse_spec(folder.read_spec(), source=str(folder.path / "spec.yaml")))
    if tracking_uri is None:
        table = folder.read_results()
    else:
        table, _ = tracking.load(tracking_uri, name)
    return folder, plan, _of_plan(table, plan)


def _of_plan(table: pa.Table, plan: Plan) -> pa.Table:
    """Keep the rows of planned trials: a study's file may have asked for others before."""
    wanted = pa.array([trial.id for trial in plan.trials], pa.string())
    return table.filter(pc.is_in(table["trial_id"], value_set=wanted))


def require_results(found: Standing) -> None:
    """Check that a study has anything to show.

    Raises:
        InputError: if it has no results yet.
    """
    if not found.counts["done"]:
        raise InputError(f"study {found.plan.spec.study!r} has no results yet; `study run` makes them")


def show(found: Standing, console: Console) -> None:
    """Print a study's table, and how it compares with the published numbers."""
    require_results(found)
    console.print(summaries_table(found.summaries, found.plan.labels, title=found.plan.spec.question))
    if found.comparison:
        console.print(
            comparisons_table(found.comparison, found.plan.labels, title="Beside the published numbers")
        )
    for notice in found.notices:
        console.print(notice, style="yellow")


def write(
    found: Standing, folder: Path | None = None, formats: Collection[str] = tuple(FORMATS)
) -> list[Path]:
    """Write a study's report into a folder, by default its own, and give its files."""
    spec = found.plan.spec
    return write_report(
        folder or found.folder.path / "report",
        name=spec.study,
        question=spec.question,
        summaries=found.summaries,
        labels=found.plan.labels,
        comparison=found.comparison,
        provenance=_distinct(found.folder.provenances()),
        notes=list(found.notices),
        command=f"study report {spec.study}",
        formats=formats,
    )


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


def sync(found: Standing, tracking_uri: str, files: Sequence[Path]) -> int:
    """Publish the trials that MLflow is missing or has differently, and the report.

    Args:
        found: the study as it stands.
        tracking_uri: of MLflow.
        files: of the report.

    Returns:
        How many trials were published.

    Raises:
        TrackingError: if the server can't be reached.
    """
    spec = found.plan.spec
    rows = _of_plan(found.folder.read_results(), found.plan)
    return tracking.sync(
        tracking_uri,
        spec.study,
        table_results(rows),
        table_curves(found.folder.read_curves(set(rows["trial_id"].to_pylist()))),
        question=spec.question,
        spec=spec.text,
        counts=found.counts,
        series=found.series,
        files=files,
    )


def studies(root: Path) -> Table:
    """List the studies of a store; one that can't be read is listed with the reason."""
    table = Table(title=f"Studies in {root}")
    for column in ("study", "done", "trials", "cells", "question"):
        table.add_column(column, justify="right" if column in ("done", "trials", "cells") else "left")
    store = Store(root, read_only=True)
    for name in store.studies():
        try:
            table.add_row(name, *_listed(store.study(name)))
        except StudyError as error:
            table.add_row(name, "?", "?", "?", f"can't be read: {error}", style="yellow")
    return table


def _listed(folder: StudyStore) -> tuple[str, ...]:
    plan = make_plan(parse_spec(folder.read_spec(), source=str(folder.path / "spec.yaml")))
    done = len(folder.done() & {trial.id for trial in plan.trials})
    return f"{done:,}", f"{len(plan.trials):,}", str(len(plan.cells)), plan.spec.question
