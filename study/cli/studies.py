"""Commands for studies in a store: plan, run, search, list, show, report, sync, ui, schema."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from study.addresses import without_secret
from study.api import Study, Where, load
from study.api.notebook import make_console
from study.cli.jobs import known_cluster, list_cluster
from study.cli.options import (
    INTERRUPTED,
    JSON,
    OPTIONS,
    OVERRIDES,
    STORE,
    TRACKING,
    YES,
    echo_json,
    leave_out_pandas,
    local_options,
    show_addresses,
    together,
    training_options,
)
from study.driver.heartbeat import in_job
from study.driver.progress import waiting
from study.errors import InputError
from study.words import count_of


@click.command()
@click.argument("file")
@OVERRIDES
@STORE
@YES
@OPTIONS["engine"]
@OPTIONS["device"]
@OPTIONS["cpus"]
@OPTIONS["pack_size"]
@JSON
@click.option("--quick", is_flag=True, help="Leave out what is measured: engines, packs, memory and time.")
def plan(
    file: str, overrides: tuple[str, ...], store: str, yes: bool, quick: bool, as_json: bool, **options: Any
) -> None:
    """Print what FILE (a path or a preset's name) asks for, and how long it takes; writes nothing.

    KEY=VALUE stands in for a value of the file: seeds=50, grid.hidden_size=[2,4].
    """
    console = make_console()
    study = load(file, overrides, store=store, yes=yes)
    leave_out_pandas()
    with nullcontext() if quick or as_json else waiting(console, "measuring"):
        description = study.plan(quick=quick, **options)
    if as_json:
        echo_json(description.data)
    else:
        description.print(console)


_running = together(click.argument("file"), OVERRIDES, STORE, TRACKING, training_options, local_options)
"""The options of commands that train a study from here."""


@click.command()
@_running
def run(file: str, yes: bool, **options: Any) -> None:
    """Run what is missing of FILE (a path or a preset's name), publish it and report; a search is continued.

    KEY=VALUE stands in for a value of the file: seeds=50, grid.hidden_size=[2,4].
    """
    _run(file, yes=yes, **options)


@click.command()
@_running
def search(file: str, **options: Any) -> None:
    """Search the ranges of FILE for the best candidates, confirm them with fresh seeds, and report.

    A candidate is a cell with several seeds. Stopped or killed, it goes on where it was.
    """
    _run(file, only_searches=True, **options)


def _run(
    file: str,
    overrides: tuple[str, ...],
    *,
    yes: bool,
    store: str,
    tracking_uri: str | None,
    only_searches: bool = False,
    **options: Any,
) -> None:
    study = load(file, overrides, store=store, tracking_uri=tracking_uri, yes=yes)
    if only_searches and study.planned.spec.search is None:
        raise InputError(
            f"{file} has nothing to search for: give it ranges and search: {{objective: success_rate, trials: 600}}, "
            "or use `study run`"
        )
    console = make_console()
    console.print(f"{study.name}: {study.size}")
    leave_out_pandas()
    ending = study.train(console, **options)
    # Imported only now: a mistake in the file is reported without what a run needs.
    from study.run import Ending

    show_addresses(study, console)
    command = f"study resume {study.name}" if in_job() else shlex.join(["study", "run", file, *overrides])
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
@JSON
@click.option("--presets", "of_presets", is_flag=True, help="The presets alone: what each asks, and what it takes.")
@click.pass_context
def list_(ctx: click.Context, store: str, on_cluster: str | None, as_json: bool, of_presets: bool) -> None:
    """List the studies of the store, and the presets; or those of a cluster, whoever submitted them."""
    from study.presets import preset_names
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
    finally:  # a newcomer has no store yet, but presets
        click.echo(f"presets: {', '.join(preset_names())}")


@click.command()
@click.argument("name")
@STORE
@click.option("--file", "as_file", is_flag=True, help="Print its study file instead.")
@JSON
def show(name: str, store: str, as_file: bool, as_json: bool) -> None:
    """Print the table of study NAME as it now stands; of a preset that isn't in the store, its file."""
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
@click.argument("name")
@click.option("--from", "preset", metavar="PRESET", help="Begin with a preset's file. Default: a small study.")
def new(name: str, preset: str | None) -> None:
    """Write a study file NAME.yaml to begin with."""
    from study.api.files import new_file

    path = new_file(name, preset)
    click.echo(f"{path}: edit it, `study plan {path}` says what it takes, `study run {path}` runs it")


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
    where = Where(store, tracking_uri)
    console = make_console()
    if len(names) > 1 or by is not None or as_published or any(map(results_of_groups.is_file, [*names, compare or ""])):
        if trial is not None:
            raise InputError("--trial: weights are those of one study's trial; leave out files and --by")
        tabulated = results_of_groups.tabulate(
            names,
            store,
            None if by is None else [name.strip() for name in by.split(",") if name.strip()],
            tracking_uri=None if source == "store" else where.needed_tracking("--from mlflow"),
            as_published=as_published,
            compare=compare,
            metrics=metrics,
            success=success,
            out=out,
            formats=formats,
        )
        results_of_groups.show(tabulated, console)
        results_of_groups.write(tabulated)
        console.print(f"report:    {tabulated.folder}", soft_wrap=True, highlight=False)
        return
    if metrics or success is not None:
        raise InputError("--metric and --success say what the columns of a FILE are; a study's file says it of a study")
    study = Study(names[0], where)
    results = study.results(compare or "published", from_mlflow=source == "mlflow")
    study.table(results).print(console)
    written = study.report(out, formats, trial=trial, results=results)
    in_store = out is None and results.folder.path is not None
    if in_store and any(path.name == "report.html" for path in written):
        show_addresses(study, console)
    else:
        console.print(f"report:    {written[0].parent}", soft_wrap=True, highlight=False)


@click.command()
@click.argument("name")
@click.argument("trial")
@STORE
@OPTIONS["engine"]
@OPTIONS["device"]
def repeat(name: str, trial: str, store: str, engine: str, device: str) -> None:
    """Train TRIAL of study NAME again, by itself, here, and say whether it is the stored one, bit for bit.

    TRIAL is an id, or the first letters of it, as reports and MLflow's tag study.trial_id have it. NAME may be the
    study's file, for code of your own that isn't in the working folder.
    """
    leave_out_pandas()
    study, console = _stored_or_file(name, store), make_console()
    with waiting(console, "training"):
        repeated = study.repeat(
            trial, engine=None if engine == "auto" else engine, device=None if device == "auto" else device
        )
    console.print(str(repeated), soft_wrap=True)
    if not repeated.is_same:
        sys.exit(1)


@click.command()
@click.argument("name")
@STORE
@click.option("--share", metavar="1%", default="1%", show_default=True, help="How many of the trials; at least one.")
def verify(name: str, store: str, share: str) -> None:
    """Train a random share of the trials of study NAME again, each by itself, and compare them bit for bit.

    The report says from then on what was found. NAME may be the study's file, as for `repeat`.
    """
    leave_out_pandas()
    study, console = _stored_or_file(name, store), make_console()
    certificate = study.verify(_share(share), lambda repeated: console.print(str(repeated), soft_wrap=True))
    console.print(certificate.sentence, soft_wrap=True)
    if certificate.differing:
        sys.exit(1)


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(f"--share must be a number such as 1% or 0.01, but got {text!r}") from None


def _stored_or_file(name: str, store: str) -> Study:
    return load(name, store=store) if Path(name).is_file() else Study(name, Where(store))


@click.command()
@click.argument("name")
@STORE
@TRACKING
def sync(name: str, store: str, tracking_uri: str | None) -> None:
    """Publish to MLflow the trials of study NAME that it lacks, and the report."""
    leave_out_pandas()
    published = Study(name, Where(store, tracking_uri)).sync()
    click.echo(f"{count_of(published, 'trial')} published")


@click.command()
@STORE
@TRACKING
@click.option("--port", type=click.IntRange(0, 65535), default=5000, show_default=True)
def ui(store: str, tracking_uri: str | None, port: int) -> None:
    """Serve the MLflow dashboard of the store on this machine, until Ctrl-C."""
    from study.tracking import check_servable, port_for, serve

    uri = Where(store, tracking_uri).needed_tracking("the dashboard")
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


COMMANDS = (new, plan, run, repeat, verify, search, list_, show, report, sync, ui, schema)
