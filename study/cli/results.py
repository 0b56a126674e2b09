"""Commands that show results of a store: list, show, report, check."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from study.api import Study, Where, load
from study.api.notebook import make_console
from study.cli.jobs import known_cluster, list_cluster
from study.cli.options import (
    JSON,
    OVERRIDES,
    REFUTED,
    STATE_WORDS,
    STORE,
    TRACKING,
    UNDECIDED,
    YES,
    echo_json,
    leave_out_pandas,
    print_addresses,
)
from study.errors import InputError


@click.command(name="list")
@STORE
@click.option(
    "--cluster", "on_cluster", metavar="URL", is_flag=False, flag_value="", help="List a Ray cluster's studies instead."
)
@JSON
@click.option("--presets", "of_presets", is_flag=True, help="List only the presets, with their questions and costs.")
@click.pass_context
def list_(ctx: click.Context, store: str, on_cluster: str | None, as_json: bool, of_presets: bool) -> None:
    """List the studies of the store and the presets, or the studies of all users of a cluster.\f

    `as_json` prints JSON data, with the presets only if `of_presets` is True. At most 100 studies of a cluster are
    listed, the latest first.

    Raises:
        InputError: if no store exists (without `as_json`, the presets are listed nevertheless), a cluster's address
            is missing or invalid, or a package of presets can't be imported.
        StoreError: if the store can't be read.
        MissingPackageError: with `on_cluster`, if Ray isn't installed here.
        ClusterError: with `on_cluster`, if the cluster can't be reached.
    """  # noqa: D301 - click's help ends at the form feed
    from study.plugins.presets import preset_names
    from study.results.listing import presets, presets_table, studies, studies_table

    if on_cluster is not None:
        list_cluster(on_cluster or known_cluster(), as_json=as_json)
        return
    if of_presets:
        if as_json:
            echo_json({"presets": [asdict(row) for row in presets()]})
        else:
            make_console().print(presets_table())
        return
    leave_out_pandas()
    if as_json:
        echo_json({"studies": [asdict(row) for row in studies(store)]})
        return
    try:
        make_console().print(studies_table(store))
    finally:  # a new user has no store yet, but presets
        click.echo(f"presets: {', '.join(preset_names())}")


@click.command()
@click.argument("name")
@STORE
@click.option("--file", "as_file", is_flag=True, help="Print its study file instead.")
@JSON
def show(name: str, store: str, as_file: bool, as_json: bool) -> None:
    """Print the current table of study NAME, or the file of a preset that isn't in the store.\f

    `as_json` prints the study's results as JSON data, also if there are none yet. It is ignored if a file is printed.

    Raises:
        InputError: if neither a stored study nor a preset has that name, the name leads out of the store, the study has
            no results and `as_json` is False, its stored file is invalid, or a newer package wrote one of its files.
        StoreError: if the store can't be read.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.files import file_of, is_preset_alone

    if as_file or is_preset_alone(name, store):
        click.echo(file_of(name, store).rstrip())
        return
    leave_out_pandas()
    table = Study(name, Where(store)).table()
    if as_json:
        echo_json(table.data)
    else:
        table.print(make_console())


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME|FILE...")
@STORE
@TRACKING
@click.option(
    "--from",
    "source",
    type=click.Choice(["store", "mlflow"]),
    default="store",
    show_default=True,
    help="Where to read the results of studies.",
)
@click.option("--by", help="Columns whose values define the rows, such as model,operation. Default: those that vary.")
@click.option(
    "--compare",
    metavar="published|NAME|FILE",
    help="Results to compare the rows with. Default: published numbers, for cells that replicate them.",
)
@click.option("--compare-by", metavar="COLUMN,...", help="Columns of FILE that distinguish the methods to compare.")
@click.option(
    "--tune",
    metavar="COLUMN,...",
    help="Columns of FILE to tune: methods are compared at their own best values, chosen for each seed by other seeds.",
)
@click.option(
    "--standardise",
    metavar="COLUMN",
    help="Column with a number known at each trial's start: adds success rates as if all rows had the same starts.",
)
@click.option(
    "--starts",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with that column, whose distribution is the standard. Default: that of the trials.",
)
@click.option(
    "--success", metavar="'COLUMN < NUMBER'", help="Success criterion for FILE: a column, < <= > or >=, a number."
)
@click.option(
    "--metric",
    "metrics",
    metavar="COLUMN[:higher|:lower]",
    multiple=True,
    help="Column of FILE to average over trials, with the better direction if its name doesn't tell; may be repeated.",
)
@STATE_WORDS
@click.option(
    "--trial",
    metavar="ID",
    help="Trial of a study whose weights are drawn, by the first letters of its id. Default: a typical solved one.",
)
@click.option("--as-published", is_flag=True, help="Also apply the published estimators, with their faults.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to. Default: the folder 'report' in the study's folder ('tables' with --by), or NAME-report "
    "(NAME-tables) here if the store is an object store; FILE-report beside FILE. Several studies need it.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(["html", "md", "csv", "parquet", "yaml", "latex", "png", "svg", "pdf"]),
    multiple=True,
    help="Format to write; may be repeated. Default: all but pdf.",
)
@click.option(
    "--columns",
    metavar="COLUMN,...",
    help="Statistics in cells.tex and report.md, by their names in cells.csv, such as success_rate,solved_at_mean.",
)
@JSON
def report(
    names: tuple[str, ...],
    store: str,
    tracking_uri: str | None,
    source: str,
    by: str | None,
    compare: str | None,
    compare_by: str | None,
    tune: str | None,
    standardise: str | None,
    starts: Path | None,
    success: str | None,
    metrics: tuple[str, ...],
    state_words: tuple[str, ...],
    trial: str | None,
    as_published: bool,
    out: Path | None,
    formats: tuple[str, ...],
    columns: str | None,
    as_json: bool,
) -> None:
    """Write the report of study NAME: tables, figures and one HTML page.

    With a FILE of outcomes (.csv, .tsv or .parquet), several studies, --by, --standardise or --as-published, the report
    has one row per group.\f

    Print the table of results and the report's address, too; with `as_json`, the results and the paths of the files as
    JSON data instead.

    Raises:
        InputError: if a study, file, statistic or trial doesn't exist or isn't valid, an option doesn't apply, the
            trial's weights aren't stored, a file that isn't a report's would be overwritten, or a study has no results
            (unless `as_json` is True, and the report has a single study's cells, at least one).
        StoreError: if the store can't be read.
        OSError: if the path of a file is too long, or its folder can't be searched.
        TrackingError: with `source` mlflow, if MLflow can't be reached or doesn't know a study.
        ReportError: if a part of the report failed; all others are written.
        StudyError: if the output folder can't be written.
    """  # noqa: D301 - click's help ends at the form feed
    from study.reports import check_columns
    from study.results import groups as results_of_groups

    leave_out_pandas()
    where = Where(store, tracking_uri)
    console = make_console()
    is_grouped = len(names) > 1 or by is not None or as_published or standardise is not None
    if is_grouped or any(map(results_of_groups.is_file, [*names, compare or ""])):
        if trial is not None:
            raise InputError("--trial needs the report of one study: leave out files and --by")
        tabulated = results_of_groups.tabulate(
            names,
            store,
            None if by is None else _names_in(by),
            tracking_uri=None if source == "store" else where.needed_tracking("--from mlflow"),
            as_published=as_published,
            compare=compare,
            compare_by=_names_in(compare_by),
            tune=_names_in(tune),
            standardise=standardise,
            starts=starts,
            metrics=metrics,
            success=success,
            state_words=state_words,
            out=out,
            formats=formats,
            columns=_names_in(columns),
        )
        if as_json:
            echo_json(
                results_of_groups.report_as_json(tabulated.report)
                | _paths_by_name(results_of_groups.write_group_report(tabulated))
            )
            return
        results_of_groups.print_group_report(tabulated, console)
        results_of_groups.write_group_report(tabulated)
        console.print(f"report:    {tabulated.folder}", soft_wrap=True, highlight=False)
        return
    if metrics or success is not None or state_words or compare_by or tune or starts is not None:
        raise InputError(
            "--metric, --success, --state-words, --compare-by and --tune need a FILE of outcomes or --by, and --starts "
            "needs --standardise; for a study's own report, use success and compare in its file"
        )
    study = Study(names[0], where)
    results = study.results(compare or "published", from_mlflow=source == "mlflow")
    check_columns(results.rows, _names_in(columns))
    table = study.table(results)
    if not as_json:
        table.print(console)
    written = study.report(out, formats, trial=trial, columns=_names_in(columns), results=results)
    in_store = out is None and results.folder.path is not None
    if as_json:
        echo_json(table.data | _paths_by_name(written))
    elif in_store and any(path.name == "report.html" for path in written):
        print_addresses(study, console)
    else:
        console.print(f"report:    {written[0].parent}", soft_wrap=True, highlight=False)


def _names_in(text: str | None) -> list[str]:
    """Split names at commas, without surrounding spaces and empty names; empty for None."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _paths_by_name(written: Sequence[Path]) -> dict[str, dict[str, str]]:
    return {"files": {path.name: str(path) for path in written}}


@click.command()
@click.argument("file")
@OVERRIDES
@STORE
@YES
@JSON
def check(file: str, overrides: tuple[str, ...], store: str, yes: bool, as_json: bool) -> None:
    """Judge the claims of FILE (a path, or a preset's or stored study's name) by stored results; trains nothing.

    Exit code 0 if all are shown, 4 if any is refuted, 5 if none is refuted and any is undecided.\f

    Raises:
        InputError: if the study or file doesn't exist, has mistakes or has no claims, there are over 100,000 trials
            without `yes`, or a newer package wrote one of the study's files.
        StoreError: if the store can't be read.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.files import is_stored

    leave_out_pandas()
    by_name = not overrides and not Path(file).is_file() and is_stored(file, store)
    study = Study(file, Where(store)) if by_name else load(file, overrides, store=store, yes=yes)
    checked = study.check()
    if as_json:
        echo_json(checked.data)
    else:
        checked.print(make_console())
    if not checked.hold:
        sys.exit(REFUTED if checked.are_refuted else UNDECIDED)


COMMANDS = (list_, show, report, check)
