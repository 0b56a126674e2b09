"""Tables, reports and dashboards of stored or published studies."""

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
from study.arrow import with_metrics
from study.console import Console
from study.errors import StudyError
from study.records import names_of
from study.reports import (
    USUAL,
    PageLinks,
    Report,
    ResultRows,
    cells_rows,
    check_columns,
    claims_rows,
    draws,
    failure_lines,
    markdown_failures,
    print_findings,
    write_report,
)
from study.results.adoptions import adoptions_of_study
from study.results.dashboard import cell_runs, charts
from study.results.load import StudyResults, require_results
from study.results.mark import has_mark, mark, write_mark
from study.results.stored_packs import StoredPacks
from study.results.stored_plan import rows_of_plan
from study.results.trial_files import linked_files
from study.results.trials import Exhibits, exhibits
from study.store import StudyStore
from study.summaries.aggregate import CellSummary
from study.summaries.metrics import in_series_only, of_trials, single
from study.words import count_of

MOST_TRIALS = 25_000
"""The most trials that a page lists: they take 3 MB, which a browser opens without delay."""


def print_results(results: StudyResults, console: Console) -> None:
    """Print a study's table, finding, brief sections, notes, and reasons of failed trials.

    The sections are those of its search, claims, sources of randomness, numbers of seeds, standardised rates, and
    comparison with other results. Parts that fail are listed with their reasons.

    Raises:
        InputError: if the study has no results yet, or a package's vocabulary can't be imported.
    """
    require_results(results)
    elsewhere, question = f"`study show {results.name} --json`", results.plan.spec.question
    print_findings(console, results.findings, question, elsewhere=elsewhere, parts=results.parts)
    for notice in results.notes:
        console.print(notice, style="yellow")
    attempt = results.parts.attempt
    attempt("reasons of failed trials", lambda: print_failures(results, console), None)
    print_failed_parts(results, console)


def print_failed_parts(results: StudyResults, console: Console) -> None:
    """Print the failed parts of a study's report, with their reasons."""
    for failure in results.parts.failures:
        console.print(str(failure), style="red")


def print_failures(results: StudyResults, console: Console, retry: str = "study run") -> None:
    """Print the most frequent reasons of failed trials, the first one's traceback if it has one, and advice.

    The advice is the command to retry, or to fix the code first. Print nothing if none failed.
    """
    for line in failure_lines(results.failures, results.rows, results.name, retry):
        console.print(line, style="red", soft_wrap=line.startswith(" "))


def failures_note(results: StudyResults) -> str:
    """Return the reasons of failed trials as Markdown, for MLflow; empty if none failed."""
    return markdown_failures(results.failures, results.rows, results.name)


def finding_of(results: StudyResults) -> str:
    """Return the finding and the most frequent reason of failed trials, or that no trial is done yet."""
    if not results.counts["done"]:
        return "no trial is done yet"
    failed = [f"{count_of(failure.trials, 'trial')} failed: {failure.reason}" for failure in results.failures[:1]]
    return " ".join([results.headline, *failed])


def results_as_json(results: StudyResults) -> dict[str, Any]:
    """Return a study's results as JSON data: its finding, counts, notes, failures, adoptions, claims and cells.

    Claims and cells have the columns of claims.csv and cells.csv, with null for missing values.

    Raises:
        StoreError: if the log of adoptions can't be read.
        InputError: if a package's vocabulary or family can't be imported, a family isn't a `Family`, or two packages
            offer one of the same name or task.
    """
    data = cells_rows(results.summaries, results.plan.labels, results.rows.named_metrics)
    return {
        "study": results.name,
        "question": results.plan.spec.question,
        "finding": results.headline,
        "counts": dict(results.counts),
        "notes": [*results.notes, *map(str, results.parts.failures)],
        "failures": [failure.as_json() for failure in results.failures],
        "adopted": [entry.provenance() for entry in adoptions_of_study(results.folder, results.plan.spec)],
        "claims": claims_rows(results.claims),
        "cells": data.records,
    }


def write_study_report(
    results: StudyResults,
    folder: Path | None = None,
    formats: Collection[str] = USUAL,
    *,
    tracking_uri: str | None = None,
    trial: str | None = None,
    columns: Sequence[str] = (),
) -> list[Path]:
    """Write a study's report into a folder, and return its files.

    Args:
        results: the study and its results so far.
        folder: the output folder; None for `own_folder`.
        formats: names of formats in `study.reports.FORMATS`.
        tracking_uri: the MLflow server to link to; None for no links.
        trial: the id, or its first letters, of the trial whose weights are drawn; None for a typical solved trial.
        columns: the statistics of cells.tex and report.md, by their names in cells.csv; empty for the usual ones.

    Raises:
        InputError: if a search has no suggestion yet, a format, trial or statistic doesn't exist, several trials' ids
            begin with `trial`, the trial's weights aren't stored, a file that no report has written would be
            overwritten, a newer package wrote a file, or a package's vocabulary or family can't be imported.
        ReportError: if a part of the report failed; all others are written.
        StudyError: if the store can't be read, or the folder can't be written.
    """
    if not results.rows.summaries:
        require_results(results)
    links, into = tracking.links(tracking_uri, results.name), folder or own_folder(results.folder)
    files = _write_files(results, into, formats, links, trial, columns)
    results.parts.check(str(into))
    return files


def _write_files(
    results: StudyResults,
    folder: Path,
    formats: Collection[str],
    links: PageLinks | None,
    trial: str | None = None,
    columns: Sequence[str] = (),
) -> list[Path]:
    """Write a report, recording failed parts, and return its files; raise StudyError if the folder can't be written."""
    check_columns(results.rows, columns)
    # Curves and weights need torch; tables don't. A trial that the user names is always checked.
    with_trials = draws(formats) or trial is not None
    is_ours = results.folder.path is not None and folder == own_folder(results.folder)
    content = assemble_report(
        results, links=links, trial=trial, with_trials=with_trials, has_files_beside=is_ours, columns=columns
    )
    try:
        return write_report(folder, content, formats, is_ours=is_ours, parts=results.parts)
    except OSError as error:
        raise StudyError(f"can't write the report into {folder}: {error.strerror or error}") from error


def own_folder(folder: StudyStore) -> Path:
    """Return the folder of a study's report: in the study's folder, or in the working folder for an object store."""
    return Path(f"{folder.name}-report") if folder.path is None else folder.path / "report"


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written.

    Args:
        files: its files.
        mark: the mark of its content.
    """

    files: Sequence[Path]
    mark: str


def write_and_keep(results: StudyResults, into: Path, folder: StudyStore, *, tracking_uri: str | None) -> WrittenReport:
    """Write a study's report into the folder that `report_folder` yielded; store it with its mark, and return both.

    Failed parts are recorded in `results.parts`. The mark of a report with failed parts isn't stored, so the next run
    rewrites it.

    Raises:
        OSError: if a written file can't be read again.
        StudyError: if `folder.check` fails, the store can't be read or written, or the report can't be written.
        ValueError: if the results have no row.
    """
    folder.check()
    links = tracking.links(tracking_uri, results.name)
    files = _write_files(results, into, USUAL, links)
    if folder.path is None:
        folder.keep_report(files)
    content_mark = _mark(results, links)
    if not results.parts.failures:
        write_mark(folder, content_mark, files)
    return WrittenReport(files, content_mark)


def are_current(results: StudyResults, tracking_uri: str | None) -> bool:
    """Return True if the study's report and MLflow are known to show its current results.

    False also if MLflow is a server, which isn't asked for it.

    Args:
        results: the study and its results so far.
        tracking_uri: MLflow's address; None if nothing is published.

    Raises:
        InputError: if a newer package wrote one of the results.
        StoreError: if the store can't be read.
    """
    content_mark = _mark(results, tracking.links(tracking_uri, results.name))
    is_published = tracking_uri is None or tracking.shows_all(tracking_uri, results.name, content_mark)
    return is_published and has_mark(results.folder, content_mark)


def _mark(results: StudyResults, links: PageLinks | None) -> str:
    """Return the mark of all that a study's report shows."""
    origins = sorted(json.dumps(entry, sort_keys=True) for entry in results.folder.provenances())
    return mark(results.table, results.plan.spec.text, results.notices, results.search, origins, links)


@contextmanager
def report_folder(folder: StudyStore) -> Iterator[Path]:
    """Yield the folder to write a study's report into: its own, or a temporary one for an object store.

    The folder may not exist yet. A temporary one is deleted at the end.
    """
    if folder.path is not None:
        yield folder.path / "report"
        return
    with tempfile.TemporaryDirectory(prefix="study-report-") as scratch:
        yield Path(scratch, "report")


def assemble_report(
    results: StudyResults,
    *,
    links: PageLinks | None = None,
    trial: str | None = None,
    with_trials: bool = True,
    has_files_beside: bool = False,
    columns: Sequence[str] = (),
) -> Report:
    """Assemble the report of a study; parts that fail are recorded in `results.parts`, and left empty.

    Args:
        results: the study and its results so far.
        links: links to MLflow; None for no links.
        trial: as for `write_study_report`; checked only if `with_trials`.
        with_trials: include learning curves, gates and weights.
        has_files_beside: include links to files of trials.
        columns: as for `write_study_report`.

    Raises:
        InputError: if the trial doesn't exist, several trials' ids begin with `trial`, its weights aren't stored, a
            newer package wrote a file, or a package's vocabulary or family can't be imported.
        StoreError: if the store can't be read.
    """
    spec = results.plan.spec
    versus = [] if results.against.is_published else ["--compare", results.against.name]
    trial_option = [] if trial is None else ["--trial", trial]
    columns_option = ["--columns", ",".join(columns)] if columns else []
    attempt, none = results.parts.attempt, Exhibits((), (), None)

    def chosen() -> Exhibits:
        """Choose and read the trials to show."""
        folder, summaries, rows, table = results.folder, results.summaries, results.rows, results.table
        return exhibits(folder, summaries, rows, table, results.metrics, trial, results.bounds)

    def provenance() -> list[dict[str, Any]]:
        """Return the provenances of the results, and of adopted ones."""
        adopted = [entry.provenance() for entry in adoptions_of_study(results.folder, spec)]
        return [*_merge(results.folder.provenances()), *adopted]

    protocol: dict[str, str] = attempt("protocol", lambda: _protocol(results.rows, results.summaries), {})
    parts = attempt("curves, gates and weights of trials", chosen, none) if with_trials else none
    return Report(
        **vars(results.findings) | {"columns": columns, "overall": results.overall},
        data=cells_rows(results.summaries, results.plan.labels, results.rows.named_metrics),
        command=shlex.join(["study", "report", spec.study, *versus, *trial_option, *columns_option]),
        protocol=protocol,
        spec=spec.text,
        provenance=attempt("provenance", provenance, []),
        trials=attempt("list of trials", lambda: _trial_list(results), None),
        files=attempt("files of trials", lambda: linked_files(results.folder), {}) if has_files_beside else {},
        metrics=results.metrics,
        links=links,
        learning=parts.learning,
        gates=parts.gates,
        weights=parts.weights,
    )


def _protocol(rows: ResultRows, summaries: Sequence[CellSummary]) -> dict[str, str]:
    """Return the values of each hyperparameter that applies, as text, by title."""
    protocol: dict[str, str] = {}
    for key in names_of(s.cell for s in summaries):
        values = dict.fromkeys(s.cell.value(key) for s in summaries)
        if set(values) != {None}:
            protocol[rows.title(key)] = ", ".join(words.format_value(key, value) for value in values)
    return protocol


def _trial_list(results: StudyResults) -> pa.Table | None:
    """Return the trials with a result, each with its row of the report; None if they are too many to list."""
    metrics = of_trials(single(results.metrics, results.rows.named_metrics))
    table = with_metrics(results.table, metrics)  # without metrics if all trials failed
    if table.num_rows > MOST_TRIALS:
        return None
    rows = {s.cell_id: row for row, s in enumerate(results.summaries)}
    places = pa.array([rows[cell_id] for cell_id in table["cell_id"].to_pylist()], pa.int64())
    names = ("cell_id", "trial_id", "seed", "outcome", "solved_at_iteration")
    trials = table.select([*names, *metrics, "training_s", "error"])
    return trials.append_column("row", places).sort_by([("row", "ascending"), ("seed", "ascending")])


def _merge(provenances: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge provenances that differ only in their time, keeping the first and the last time."""
    merged: dict[str, dict[str, Any]] = {}
    entries = [entry for provenance in provenances for entry in _originals(provenance)]
    for entry in sorted(entries, key=lambda entry: str(entry["created_at"])):
        timeless = {key: value for key, value in entry.items() if key != "created_at"}
        same = merged.setdefault(repr(sorted(timeless.items())), timeless | {"first result": entry["created_at"]})
        same["last result"] = entry["created_at"]
    return list(merged.values())


def _originals(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the provenances of an entry that have a time: for adopted results, those of the original study."""
    if "adopted_from" not in entry:
        return [dict(entry)] if "created_at" in entry else []
    before = entry.get("original")
    tables = [item for item in before if isinstance(item, Mapping)] if isinstance(before, list) else []
    originals = [inner for original in tables for inner in _originals(original)]
    return [{"adopted_from": entry["adopted_from"]} | inner for inner in originals]


def sync(results: StudyResults, tracking_uri: str) -> int:
    """Publish the trials that MLflow lacks or has with other values; write the report, store it and attach it.

    Args:
        results: the study and its results so far.
        tracking_uri: MLflow's address.

    Returns:
        The number of published trials.

    Raises:
        TrackingError: if the server can't be reached, or refuses a request; also if a file of the report or of a trial
            can't be read or copied.
        ReportError: if a part of the report failed; everything else is published.
        StudyError: if the store can't be read, or the report can't be written.
    """
    spec = results.plan.spec
    plan = results.plan if results.planned_cells is None else results.planned_cells.plan
    rows = rows_of_plan(results.folder.read_results(), plan)
    without = in_series_only(plan.metrics, spec.named_metrics)
    with report_folder(results.folder) as into:
        count = tracking.sync(
            tracking_uri,
            spec.study,
            StoredPacks(results.folder, rows, without_curves=without, has_files=spec.has_files),
            question=spec.question,
            spec=spec.text,
            finding=results.headline,
            failures=failures_note(results),
            counts=results.counts,
            cells=cell_runs(results),
            charts=lambda: charts(results),
            files=lambda: write_and_keep(results, into, results.folder, tracking_uri=tracking_uri).files,
        )
    results.parts.check("MLflow")
    return count
