"""The way back: from what is stored (or published) of a study to its table, report and dashboard."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from study import tracking, words
from study.analysis.aggregate import CellSummary
from study.console import Console
from study.errors import StudyError
from study.records import CELL_FIELDS
from study.report import (
    USUAL,
    PageLinks,
    Report,
    cells_rows,
    comparisons_table,
    draws,
    show_search,
    show_summaries,
    verdicts_table,
    write_report,
)
from study.results.load import StudyResults, _of_plan, require_results
from study.results.mark import is_kept, keep_mark, mark
from study.results.stored_packs import StoredPacks
from study.results.trials import Exhibits, exhibits
from study.store import StudyStore

MOST_TRIALS = 25_000
"""Trials that a page lists at most: a browser opens these at once, and 3 MB."""


def show(found: StudyResults, console: Console) -> None:
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
    found: StudyResults,
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
    found: StudyResults,
    folder: Path,
    formats: Collection[str],
    links: PageLinks | None,
    trial: str | None = None,
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
class WrittenReport:
    """A report that was written.

    Args:
        files: of it.
        mark: of what it shows.
    """

    files: Sequence[Path]
    mark: str


def write_and_keep(
    found: StudyResults, into: Path, folder: StudyStore, *, tracking_uri: str | None
) -> WrittenReport:
    """Write a study's report into what `report_folder` gave, and see that the store has it, in the study's folder."""
    folder.check()
    links = tracking.links(tracking_uri, found.name)
    files = _write(found, into, USUAL, links)
    if folder.path is None:
        folder.keep_report(files)
    shown = _mark(found, links)
    keep_mark(folder, shown, files)
    return WrittenReport(files, shown)


def are_current(found: StudyResults, tracking_uri: str | None) -> bool:
    """Say whether the study's report and MLflow are known to show it as it stands.

    Args:
        found: the study as it stands.
        tracking_uri: of MLflow; None where nothing is published.
    """
    shown = _mark(found, tracking.links(tracking_uri, found.name))
    published = tracking_uri is None or tracking.shows_all(tracking_uri, found.name, shown)
    return published and is_kept(found.folder, shown)


def _mark(found: StudyResults, links: PageLinks | None) -> str:
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
    found: StudyResults, *, links: PageLinks | None = None, trial: str | None = None, with_trials: bool = True
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


def _listed_trials(found: StudyResults) -> pa.Table | None:
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


def sync(found: StudyResults, tracking_uri: str) -> int:
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
