"""Reports of outcomes from files and studies, grouped by any columns.

files, studies -> outcomes -> groups -> terminal, page, figures, Markdown, CSV, Parquet, LaTeX
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from study.comparisons.contrasts import contrasts
from study.comparisons.headline import headline
from study.comparisons.overall import overall
from study.comparisons.plan import Statement
from study.comparisons.standardised import Starts, standardisation
from study.console import Console
from study.errors import InputError, StudyError
from study.outcomes import (
    SUFFIXES,
    Outcomes,
    Source,
    State,
    Wanted,
    gather,
    read_source,
    read_starts,
    read_state_words,
    wanted,
)
from study.plugins.families import family_metrics
from study.reports import (
    FORMATS,
    PUBLISHED,
    USUAL,
    Report,
    check_columns,
    groups,
    groups_rows,
    metric_notes,
    print_findings,
    times_notes,
    with_groups,
    write_report,
)
from study.store import Store
from study.summaries.aggregate import aggregate_by
from study.summaries.rows import ResultRows
from study.trials.seed_design import Sizes, sizes_of_all


@dataclass(frozen=True)
class GroupReport:
    """A report of groups of trials, with its output folder.

    Args:
        report: the report, with one row a group.
        folder: the output folder.
        formats: names of its formats in `study.reports.FORMATS`.
        is_ours: True if the folder belongs to the store.
    """

    report: Report
    folder: Path
    formats: Collection[str]
    is_ours: bool = False


def is_file(name: str) -> bool:
    """Return True if a name is that of a file of outcomes, rather than of a study."""
    return name.lower().endswith(SUFFIXES)


def tabulate(
    names: Sequence[str],
    root: str | Path,
    by: Sequence[str] | None = None,
    *,
    tracking_uri: str | None = None,
    as_published: bool = False,
    compare: str | None = None,
    compare_by: Sequence[str] = (),
    tune: Sequence[str] = (),
    standardise: str | None = None,
    starts: Path | None = None,
    metrics: Sequence[str] = (),
    success: str | None = None,
    state_words: Sequence[str] = (),
    out: Path | None = None,
    formats: Collection[str] = (),
    columns: Sequence[str] = (),
) -> GroupReport:
    """Summarise the outcomes of files and studies, without writing anything.

    Args:
        names: one or more paths of files that end in one of `study.outcomes.SUFFIXES`, or names of studies.
        root: the store's folder, or its URL.
        by: columns that distinguish groups; None for those that vary.
        tracking_uri: read the results of studies from this MLflow server instead of the store.
        as_published: apply the published estimators, too.
        compare: a file or study to compare the groups with; None for no comparison.
        compare_by: the columns in which methods differ; empty for the default.
        tune: columns that are tuned for each method, by other seeds than those compared.
        standardise: the column with a covariate of each trial's start, for which success rates are standardised.
        starts: a file of starts to standardise to; None for the trials' own starts.
        metrics: columns that are averaged, each optionally followed by ``:higher`` or ``:lower``.
        success: the success criterion: a column, an operator and a number; None to use the columns solved or outcome.
        state_words: meanings of words for states in files, each as ``WORD=finished``, ``failed``, ``stopped`` or
            ``running``.
        out: the report's folder; None for a folder next to the first file, or in the study's folder, or in the working
            folder if the study is in an object store. Several studies without a file need it.
        formats: names of formats in `study.reports.FORMATS`; empty for the usual ones.
        columns: the statistics of cells.tex and report.md, by their names in cells.csv; empty for the usual ones.

    Returns:
        The report, with the folder and the formats to write it in.

    Raises:
        InputError: if a file or study is missing or invalid, or a newer package wrote the study's results; if options
            have mistakes or contradict each other; if the report can't be written to that folder; if a package's family
            can't be imported; or as for `assemble_group_report`.
        OSError: if the path of a file is too long, or its folder can't be searched.
        StoreError: if the store can't be read.
        TrackingError: if the MLflow server can't be reached or doesn't know a study.
    """
    if compare == PUBLISHED:
        raise InputError(
            "--compare published needs a study's cells, with their protocol, but this report has groups by "
            "columns; compare with a file or a study, or report the study without --by"
        )
    folder = out or _folder(names, root)
    _check_folder(folder, [Path(name) for name in [*names, *([compare] if compare else [])] if is_file(name)])
    if starts is not None and standardise is None:
        raise InputError(f"--starts {starts} needs --standardise: the column with the number of each start")
    metric_columns = wanted(metrics, success, family_metrics())
    reading = _Reading(root, tracking_uri, metric_columns, read_state_words(state_words))
    with_covariate = replace(reading, columns=replace(metric_columns, covariate=standardise))
    outcomes, notices = with_covariate.outcomes(names, by)
    other, versus = None, []
    if compare is not None:
        other = Path(compare).name, *reading.outcomes([compare], outcomes.by)
        versus = ["--compare", Path(compare).name]
    short = [Path(name).name for name in names]
    by_option = ["--by", ",".join(outcomes.by)] if outcomes.by else []
    published = ["--as-published"] if as_published else []
    columns_options = [part for name in metrics for part in ("--metric", name)] + (
        ["--success", success] if success else []
    )
    columns_options += ["--compare-by", ",".join(compare_by)] if compare_by else []
    columns_options += ["--tune", ",".join(tune)] if tune else []
    columns_options += ["--standardise", standardise] if standardise else []
    columns_options += ["--starts", starts.name] if starts else []
    columns_options += [part for words in state_words for part in ("--state-words", words)]
    selection = ["--columns", ",".join(columns)] if columns else []
    report = assemble_group_report(
        ", ".join(short),
        outcomes,
        notices,
        named=list(metric_columns.columns),
        as_published=as_published,
        other=other,
        statements=_statements(outcomes.by, compare_by, tune),
        covariate=standardise,
        starts=None if starts is None or standardise is None else read_starts(starts, standardise, outcomes.by),
        columns=columns,
        command=shlex.join(["study", "report", *short, *by_option, *columns_options, *published, *versus, *selection]),
    )
    is_ours = out is None and not any(map(is_file, names)) and Store(root).study(names[0]).path is not None
    return GroupReport(report, folder, formats or USUAL, is_ours)


def assemble_group_report(
    name: str,
    outcomes: Outcomes,
    notices: Sequence[str] = (),
    *,
    named: Sequence[str] = (),
    as_published: bool = False,
    other: tuple[str, Outcomes, Sequence[str]] | None = None,
    statements: Sequence[Statement] = (),
    covariate: str | None = None,
    starts: Starts | None = None,
    columns: Sequence[str] = (),
    command: str = "",
) -> Report:
    """Assemble the report of outcomes, one row a group.

    Args:
        name: the name of the outcomes.
        outcomes: checked outcomes, and the columns that distinguish groups.
        notices: notices about the outcomes for the reader.
        named: metrics that the user has named.
        as_published: apply the published estimators, too.
        other: name, outcomes and notices of the comparison's other side; None for no comparison.
        statements: user-supplied comparisons between groups; empty for the default.
        covariate: the column with a covariate of each trial's start, for which success rates are standardised.
        starts: the starts to standardise to; None for the trials' own starts.
        columns: the statistics of cells.tex and report.md; empty for the usual ones.
        command: the command that makes the report again; empty if there is none.

    Raises:
        InputError: if a statistic of `columns` doesn't exist, if a solved trial lacks the solved-at or error that the
            published estimators need, if rates can't be standardised, if no group can be compared with `other`, or if a
            package's vocabulary can't be imported.
        ValueError: if `covariate` is a column of texts that aren't numbers, or as `standardisation` raises for empty
            starts.
    """
    by = outcomes.by
    trials = outcomes.trials
    summaries = aggregate_by(trials, as_published=as_published)
    rows = groups(summaries, by, named)
    check_columns(rows, columns)
    if covariate is not None:
        _check_standardised(rows, outcomes.sizes, starts)
    against, sentences = None, list(notices)
    if other is not None:
        other_name, others, other_notices = other
        sentences += [f"{other_name}: {notice}" for notice in [*other_notices, *others.notices]]
        other_trials = others.trials
        sizes = sizes_of_all([outcomes.sizes, others.sizes])
        other_rows = groups(aggregate_by(other_trials), by)
        against = with_groups(rows, other_rows, other_name, (trials, other_trials), sizes)
    between_rows = contrasts(rows, trials, outcomes.sizes, statements)
    rows = replace(rows, winners=between_rows.winners)
    standardised = None
    if covariate is not None:
        standardised = standardisation(rows, trials, between_rows, covariate, starts)
    return Report(
        name=name + (f" by {', '.join(by)}" if by else ""),
        question="",
        rows=rows,
        data=groups_rows(summaries, pa.schema([outcomes.table.schema.field(n) for n in by]), named),
        command=command,
        columns=columns,
        headline=headline(rows, between_rows),
        contrasts=between_rows,
        overall=overall(rows, trials),
        standardised=standardised,
        against=against,
        notes=[*sentences, *outcomes.notices, *times_notes(rows), *metric_notes(rows)],
    )


def _statements(by: Sequence[str], factor: Sequence[str], tune: Sequence[str]) -> list[Statement]:
    """Return the user's comparison from its options, empty without any; raise InputError if they are invalid."""
    for option, names in (("--compare-by", factor), ("--tune", tune)):
        for name in names:
            if name not in by:
                raise InputError(
                    f"{option} {name}: groups differ only in {', '.join(by) or 'nothing'}; add columns with --by"
                )
    if tune and not factor:
        raise InputError("--tune needs --compare-by: the columns in which the tuned methods differ")
    if both := [name for name in factor if name in tune]:
        raise InputError(f"{both[0]} can't be in both --compare-by and --tune")
    return [Statement(tuple(factor), tuple(tune))] if factor else []


def _check_standardised(rows: ResultRows, sizes: Sizes, starts: Starts | None) -> None:
    """Raise InputError if the success rates of rows can't be standardised."""
    if not rows.has_rates:
        raise InputError("--standardise needs a success criterion: give --success")
    if sizes == "adaptive":
        raise InputError("--standardise: numbers of seeds must be fixed in advance, but here they depend on outcomes")
    if starts is None:
        return
    for row in rows.judged():
        values = tuple(rows.value(row, key) for key in starts.keys)
        if values not in starts.values:
            name = ", ".join(f"{key} {value}" for key, value in zip(starts.keys, values, strict=True))
            raise InputError(f"--starts {starts.name}: no starts of {name}; every row of the report needs starts")


@dataclass(frozen=True)
class _Reading:
    """Reader of files and studies.

    Args:
        root: the store's folder, or its URL.
        tracking_uri: the MLflow server to read the results of studies from; None for the store.
        columns: user-supplied roles of the columns of files.
        state_words: user-supplied meanings of words for states.
    """

    root: str | Path
    tracking_uri: str | None
    columns: Wanted
    state_words: Mapping[str, State]

    def outcomes(self, names: Sequence[str], by: Sequence[str] | None) -> tuple[Outcomes, list[str]]:
        """Return the outcomes of files and studies, and notices about the studies."""
        sources: list[Source] = []
        notices: list[str] = []
        metrics = [*self.columns.known, *self.columns.columns]
        for name in names:
            if is_file(name):
                sources.append(read_source(Path(name), also=by or (), metrics=metrics, state_words=self.state_words))
            else:
                # imported late: MLflow takes seconds to import
                from study.results import load

                source, remarks = load.outcomes_of(name, self.root, tracking_uri=self.tracking_uri, axes=by or ())
                sources.append(source)
                notices += remarks
        return gather(sources, by, self.columns), notices


def print_group_report(result: GroupReport, console: Console) -> None:
    """Print the table, the comparison and the notices of a report of groups."""
    print_report(result.report, console)


def print_report(report: Report, console: Console) -> None:
    """Print a report's table, finding, standardised rates, comparison and notes.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    print_findings(console, report, report.name)
    for notice in report.notes:
        console.print(notice, style="yellow")


def report_as_json(report: Report) -> dict[str, Any]:
    """Return a report as JSON data: name, finding, notes, and rows with the columns of cells.csv.

    Missing values are null.
    """
    notes = [*report.notes, *(report.against.notes if report.against else ())]
    return {"report": report.name, "finding": report.headline, "notes": notes, "cells": report.data.records}


def write_group_report(result: GroupReport) -> list[Path]:
    """Write the report, and return its files.

    Raises:
        InputError: if a file that no report has written would be overwritten.
        ReportError: if a part of the report failed; all others are written.
        StudyError: if the folder can't be written.
    """
    try:
        return write_report(result.folder, result.report, result.formats, is_ours=result.is_ours)
    except OSError as error:
        raise StudyError(f"can't write the report into {result.folder}: {error.strerror or error}") from error


def _folder(names: Sequence[str], root: str | Path) -> Path:
    """Return the default output folder; raise InputError for several studies: they have none."""
    files = [Path(name) for name in names if is_file(name)]
    if files:
        return files[0].with_name(f"{files[0].stem}-report")
    if len(names) > 1:
        raise InputError("a report of several studies needs a folder to write to: give --out")
    own = Store(root).study(names[0]).path
    return Path(f"{names[0]}-tables") if own is None else own / "tables"


def _check_folder(folder: Path, files: Sequence[Path]) -> None:
    """Raise InputError if the output folder is a file, or an input file would be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, but must be a folder to write to: give another --out")
    outputs = {(folder / name).resolve() for names in FORMATS.values() for name in names}
    for file in files:
        if file.resolve() in outputs:
            raise InputError(f"{file} would be overwritten by its own report: give another --out")
