"""Commands for studies in a store: plan, run, search, list, show, report, sync, ui, schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from study.addresses import without_secret
from study.cli.jobs import known_cluster, list_cluster
from study.cli.options import (
    INTERRUPTED,
    OPTIONS,
    STORE,
    TRACKING,
    YES,
    extension_of,
    leave_out_pandas,
    local_options,
    make_console,
    needed_tracking,
    planned_study,
    show_addresses,
    size_of,
    together,
    tracking_address,
    training_options,
)
from study.driver.heartbeat import in_job
from study.driver.options import Options
from study.driver.progress import waiting
from study.errors import InputError


@click.command()
@click.argument("file")
@STORE
@YES
@OPTIONS["engine"]
@OPTIONS["device"]
@OPTIONS["cpus"]
@OPTIONS["pack_size"]
@click.option("--quick", is_flag=True, help="Leave out what is measured: engines, packs, memory and time.")
def plan(file: str, store: str, yes: bool, quick: bool, **options: Any) -> None:
    """Print what FILE (a path or a preset's name) asks for, and how long it takes; writes nothing."""
    console = make_console()
    planned = planned_study(file, yes=yes)
    leave_out_pandas()
    if quick:
        from study.driver import outline

        console.print(outline.quick(planned, store))
        return
    with waiting(console, "measuring"):
        from study.driver.estimate import preview, preview_search  # only here: it takes long to import

        estimate = preview if planned.spec.search is None else preview_search
        description = estimate(planned, Options(root=store, tracking_uri=None, **options))
    console.print(description)


_running = together(click.argument("file"), STORE, TRACKING, training_options, local_options)
"""The options of commands that train a study from here."""


@click.command()
@_running
def run(file: str, yes: bool, **options: Any) -> None:
    """Run what is missing of FILE (a path or a preset's name), publish it and report; a search is continued."""
    _run(file, planned_study(file, yes=yes), **options)


@click.command()
@_running
def search(file: str, yes: bool, **options: Any) -> None:
    """Search the ranges of FILE for the best candidates, confirm them with fresh seeds, and report.

    A candidate is a cell with several seeds. Stopped or killed, it goes on where it was.
    """
    planned = planned_study(file, yes=yes)
    if planned.spec.search is None:
        raise InputError(
            f"{file} has nothing to search for: give it ranges and search: {{objective: success_rate, trials: 600}}, "
            "or use `study run`"
        )
    _run(file, planned, **options)


def _run(
    file: str, planned: Any, *, store: str, tracking_uri: str | None, optuna_storage: str | None, **options: Any
) -> None:
    console = make_console()
    console.print(f"{planned.spec.study}: {size_of(planned)}")
    leave_out_pandas()
    # Imported only now: a mistake in the file is reported without what a run needs.
    from study.run import Ending
    from study.run import run as run_study

    uri = tracking_address(tracking_uri, store)
    if uri is None and tracking_uri != "off":
        console.print(
            f"nothing is published to MLflow: the store at {store} has no database; --tracking-uri names a server",
            style="yellow",
        )
    where = Options(root=store, tracking_uri=uri, **options)
    ending = run_study(planned, where, console, extension_of(planned, store, optuna_storage))
    show_addresses(planned.spec.study, store, uri, console)
    command = f"study resume {planned.spec.study}" if in_job() else f"study run {file}"
    if ending == Ending.INTERRUPTED:
        console.print(f"interrupted: `{command}` goes on where it stopped", style="yellow")
        sys.exit(INTERRUPTED)
    if ending == Ending.FAILURES:
        console.print(f"some trials failed: `{command}` tries them again", style="red")
        sys.exit(1)


@click.command(name="list")
@STORE
@click.option(
    "--cluster", "on_cluster", metavar="URL", is_flag=False, flag_value="", help="Those of a Ray cluster instead."
)
@click.option("--json", "as_json", is_flag=True, help="With --cluster: print JSON, for programs.")
@click.option("--presets", "of_presets", is_flag=True, help="The presets alone: what each asks, and what it takes.")
@click.pass_context
def list_(ctx: click.Context, store: str, on_cluster: str | None, as_json: bool, of_presets: bool) -> None:
    """List the studies of the store, and the presets; or those of a cluster, whoever submitted them."""
    from study.presets import preset_names
    from study.results.listing import presets, studies

    if on_cluster is not None:
        list_cluster(on_cluster or known_cluster(), as_json=as_json)
        return
    if as_json:
        raise InputError("--json goes with --cluster")
    if of_presets:
        make_console().print(presets())
        return
    leave_out_pandas()
    try:
        make_console().print(studies(store))
    finally:  # a newcomer has no store yet, but presets
        click.echo(f"presets: {', '.join(preset_names())}")


@click.command()
@click.argument("name")
@STORE
def show(name: str, store: str) -> None:
    """Print the table of study NAME as it now stands."""
    from study.results import load
    from study.results import study as study_results

    leave_out_pandas()
    study_results.show(load.load_results(name, store), make_console())


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
    help="Where the results of studies are read.",
)
@click.option("--by", help="Columns that make a row each: model,operation. Default: those that vary.")
@click.option(
    "--compare",
    metavar="published|NAME|FILE",
    help="What to compare the rows with. Default: the published numbers, where a study's cells repeat them.",
)
@click.option(
    "--success", metavar="'COLUMN < NUMBER'", help="What a solved trial is, of FILE: a column, < <= > or >=, a number."
)
@click.option(
    "--metric",
    "metrics",
    metavar="COLUMN[:higher]",
    multiple=True,
    help="A column of FILE that is averaged over trials; may be given again. Lower is better without :higher.",
)
@click.option("--trial", metavar="ID", help="Whose weights to draw, of one study. Default: a typical solved trial's.")
@click.option("--as-published", is_flag=True, help="Add the published estimators, with their faults.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to. Default: report in the study's folder (with --by: tables); beside FILE, FILE-report; "
    "of a study in an object store: NAME-report here.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(["html", "md", "csv", "parquet", "yaml", "latex", "png", "svg", "pdf"]),
    multiple=True,
    help="What to write; may be given again. Default: all but pdf.",
)
def report(
    names: tuple[str, ...],
    store: str,
    tracking_uri: str | None,
    source: str,
    by: str | None,
    compare: str | None,
    success: str | None,
    metrics: tuple[str, ...],
    trial: str | None,
    as_published: bool,
    out: Path | None,
    formats: tuple[str, ...],
) -> None:
    """Write the report of study NAME: tables, figures, one HTML page.

    With FILE.csv or FILE.parquet of outcomes, with several studies, or with --by: one row a group.
    """
    from study.results import groups as results_of_groups

    leave_out_pandas()
    read_from = None if source == "store" else needed_tracking(tracking_uri, store, "--from mlflow")
    console = make_console()
    if len(names) > 1 or by is not None or as_published or any(map(results_of_groups.is_file, [*names, compare or ""])):
        if trial is not None:
            raise InputError("--trial: weights are those of one study's trial; leave out files and --by")
        results = results_of_groups.tabulate(
            names,
            store,
            None if by is None else [name.strip() for name in by.split(",") if name.strip()],
            tracking_uri=read_from,
            as_published=as_published,
            compare=compare,
            metrics=metrics,
            success=success,
            out=out,
            formats=formats,
        )
        results_of_groups.show(results, console)
        results_of_groups.write(results)
        console.print(f"report:    {results.folder}", soft_wrap=True, highlight=False)
        return
    if metrics or success is not None:
        raise InputError("--metric and --success say what the columns of a FILE are; a study's file says it of a study")
    from study.reports import PUBLISHED, USUAL
    from study.results import load
    from study.results import study as study_results

    (name,) = names
    standing = load.load_results(name, store, tracking_uri=read_from, compare=compare or PUBLISHED)
    study_results.show(standing, console)
    uri = tracking_address(tracking_uri, store)
    written = study_results.write(standing, out, formats or USUAL, tracking_uri=uri, trial=trial)
    in_store = out is None and standing.folder.path is not None
    if in_store and any(path.name == "report.html" for path in written):
        show_addresses(name, store, uri, console)
    else:
        folder = out or study_results.own_folder(standing.folder)
        console.print(f"report:    {folder}", soft_wrap=True, highlight=False)


@click.command()
@click.argument("name")
@STORE
@TRACKING
def sync(name: str, store: str, tracking_uri: str | None) -> None:
    """Publish to MLflow the trials of study NAME that it lacks, and the report."""
    from study.results import load
    from study.results import study as study_results

    leave_out_pandas()
    uri = needed_tracking(tracking_uri, store, "sync")
    results = load.load_results(name, store)
    load.require_results(results)
    published = study_results.sync(results, uri)
    click.echo(f"{published} trials published")


@click.command()
@STORE
@TRACKING
@click.option("--port", type=click.IntRange(0, 65535), default=5000, show_default=True)
def ui(store: str, tracking_uri: str | None, port: int) -> None:
    """Serve the MLflow dashboard of the store on this machine, until Ctrl-C."""
    from study.tracking import check_servable, port_for, serve

    uri = needed_tracking(tracking_uri, store, "the dashboard")
    if uri.startswith("http"):
        raise InputError(
            f"the dashboard at {without_secret(uri)} is served by its own server; open that address in a browser"
        )
    check_servable(uri)
    port = port_for(port)
    click.echo(f"dashboard: http://127.0.0.1:{port} (Ctrl-C ends it)")
    sys.exit(serve(uri, port))


@click.command()
def schema() -> None:
    """Print the JSON schema of a study file, for editors."""
    from study.spec import schema as spec_schema

    click.echo(json.dumps(spec_schema(), indent=2, ensure_ascii=False))


COMMANDS = (plan, run, search, list_, show, report, sync, ui, schema)
