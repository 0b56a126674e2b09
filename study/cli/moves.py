"""Commands that move studies out of a store and into it: delete, export, import."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from study.api import Study, Where
from study.api.notebook import make_console
from study.cli.options import STATE_WORDS, STORE, TRACKING, leave_out_pandas, together
from study.errors import InputError
from study.settings import check_no_secret
from study.words import count_of

if TYPE_CHECKING:
    from study.api.importing import ImportedRuns

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@STORE
@TRACKING
@click.option("--yes", is_flag=True, help="Delete without confirmation.")
def delete(names: tuple[str, ...], store: str, tracking_uri: str | None, yes: bool) -> None:
    """Delete studies from the store and from MLflow (results, report, experiment), after confirmation.

    With --tracking-uri off, MLflow stays unchanged.\f

    Exit with code 1 if the user doesn't confirm.

    Raises:
        InputError: if a study doesn't exist, its folder is a link, it or the experiment in MLflow has content of
            others, or there is no terminal to confirm on and `yes` is False.
        BusyError: if a study is running.
        TrackingError: if MLflow can't be reached or refuses.
        StoreError: if the store can't be read, or a file of it can't be removed.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.deletion import deletion_of

    leave_out_pandas()
    where = Where(store, tracking_uri)
    deletions = [deletion_of(name, where) for name in dict.fromkeys(names)]
    for deletion in deletions:
        click.echo(str(deletion))
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("nothing was deleted: there is no terminal to confirm on; pass --yes")
        if not click.confirm("Delete all of this?"):
            click.echo("nothing was deleted")
            sys.exit(1)
    for deletion in deletions:
        deletion.carry_out()
        click.echo(f"{deletion.study} is deleted")


@click.command()
@click.argument("name")
@click.argument("file", type=_FILE, metavar="FILE.zip")
@STORE
def export(name: str, file: Path, store: str) -> None:
    """Write study NAME into FILE.zip: its file, code, tags, results, curves, weights, files of trials, report.

    `study import FILE.zip` imports it into any store. The study may be running: trials done so far are exported.\f

    Raises:
        InputError: if the study doesn't exist, FILE.zip exists already, its folder doesn't, a newer package wrote a
            file of the study, or a file of a trial has a name that isn't valid on every system.
        StoreError: if the store can't be read, or the file can't be written.
    """  # noqa: D301 - click's help ends at the form feed
    leave_out_pandas()
    done = Study(name, Where(store)).export(file)
    size = sum(done.files.values()) / 2**20
    console = make_console()
    for notice in done.notices:
        console.print(notice, style="yellow", soft_wrap=True)
    click.echo(f"{file}: {count_of(done.trials, 'trial')} in {count_of(len(done.files), 'file')}, {size:,.1f} MiB")


class _Import(click.Group):
    """A command group that also takes a file to import in place of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_command = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if is_command or not args else ["zip", *args])


@click.group(name="import", cls=_Import, subcommand_metavar="FILE.zip | csv | mlflow | wandb | hydra | optuna ...")
def import_() -> None:
    """Import an exported study, or runs that were trained elsewhere.

    `study import FILE.zip` adds a study to the store, or merges its trials into the stored study. hydra and optuna
    import finished runs as trials of a study file. The other commands write a table of outcomes for `study report`.
    """


@import_.command(name="zip")
@click.argument("file", type=_FILE, metavar="FILE.zip")
@STORE
def import_zip(file: Path, store: str) -> None:
    """Import a study from a file written by `study export`; the word zip may be omitted.

    Trials that are already in the store stay unchanged. The report in the file is left out.\f

    Raises:
        InputError: if the file doesn't exist, isn't an export, is damaged or from a newer package, or the store has
            another study of that name, or one that can't be planned or has files from a newer package.
        ConflictError: if the store has a different result of a trial, by the same engine and kind of device.
        BusyError: if the store's study is running.
        StoreError: if the store can't be read or written.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.importing import import_study

    leave_out_pandas()
    done, console = import_study(file, store=store), make_console()
    click.echo(str(done))
    for notice in done.notices:
        console.print(notice, style="yellow", soft_wrap=True, highlight=False)
    click.echo(f"`study report {done.study}` writes the report, `study sync {done.study}` publishes to MLflow")


_runs_options = together(
    click.option("--seed", metavar="COLUMN", help="Column of seeds. Default: found by its name."),
    click.option("--without-seeds", is_flag=True, help="Number the runs, since their seeds are random and unknown."),
    click.option(
        "--by",
        help="Columns whose values define the groups, such as lr,optimizer. Default: all that vary but the seed.",
    ),
    click.option(
        "--metric",
        "metrics",
        metavar="COLUMN[:higher|:lower]",
        multiple=True,
        help="Column to average over trials, with the better direction if its name doesn't tell; may be repeated. "
        "Default: up to six columns with a metric's name.",
    ),
    STATE_WORDS,
    click.option(
        "--repeats",
        type=click.Choice(["first", "last"]),
        default="first",
        show_default=True,
        help="The run to use if a trial has several.",
    ),
    click.option(
        "--out", type=_FILE, metavar="FILE", help="Table to write: .csv, .tsv or .parquet. Default: NAME-outcomes.csv."
    ),
)
"""Options for imports of runs."""


@import_.command(name="csv")
@click.argument("file", type=_FILE)
@_runs_options
def import_csv(file: Path, out: Path | None, **choices: Any) -> None:
    """Import runs from a table, FILE.csv, FILE.tsv or FILE.parquet, with one row per run and any columns.

    Exports of MLflow, wandb, Optuna, Sacred, Ray Tune and Neptune are recognised.\f

    Print the decisions made and the groups, and write the runs as a table of trials to `out`, by default
    NAME-outcomes.csv beside `file`.

    Raises:
        InputError: if the file can't be read, seeds or metrics aren't found in it, `out` exists already or has another
            suffix, or as for `study.outcomes.outcomes_of_runs`.
        StudyError: if the table can't be written.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.importing import import_csv as import_runs

    _print_runs(import_runs(file, **_choices(choices)), out or _outcomes_path(file))


@import_.command(name="wandb")
@click.argument("file", type=_FILE, metavar="FILE.csv")
@_runs_options
def import_wandb(file: Path, out: Path | None, **choices: Any) -> None:
    """Import runs of wandb from the CSV export of its table of runs.\f

    Print the decisions made and the groups, and write the runs as a table of trials to `out`, by default
    NAME-outcomes.csv beside `file`.

    Raises:
        InputError: if the file isn't such an export, seeds or metrics aren't found in it, `out` exists already or has
            another suffix, or as for `study.outcomes.outcomes_of_runs`.
        StudyError: if the table can't be written.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.importing import import_wandb as import_runs

    _print_runs(import_runs(file, **_choices(choices)), out or _outcomes_path(file))


@import_.command(name="mlflow")
@click.argument("uri")
@click.argument("experiment")
@_runs_options
def import_mlflow(uri: str, experiment: str, out: Path | None, **choices: Any) -> None:
    """Import the runs of EXPERIMENT, a name or an id, from MLflow at URI: a server, or sqlite:///mlflow.db.\f

    Print the decisions made and the groups, and write the runs as a table of trials to `out`, by default
    EXPERIMENT-outcomes.csv in the working folder.

    Raises:
        InputError: if the experiment doesn't exist or has no runs, seeds or metrics aren't found in them, `out` exists
            already or has another suffix, `uri` isn't valid or holds a password, or as for
            `study.outcomes.outcomes_of_runs`.
        TrackingError: if MLflow can't be reached.
        StudyError: if the table can't be written.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.importing import import_mlflow as import_runs

    check_no_secret(uri, "URI")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", experiment).strip("-.") or "runs"
    _print_runs(import_runs(uri, experiment, **_choices(choices)), out or Path(f"{plain}-outcomes.csv"))


@import_.command(name="hydra")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE.yaml")
@STORE
def import_hydra(folder: Path, file: str, store: str) -> None:
    """Import the finished jobs of a Hydra multirun as trials of FILE.yaml; the file must have a version.\f

    Raises:
        InputError: if the study file has mistakes or no version, or runs another program, the multirun can't be read,
            no job matches a trial, or a newer package wrote the study's results.
        BusyError: if the study is running.
        StoreError: if the store can't be read or written.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.importing import import_hydra as import_jobs

    leave_out_pandas()
    click.echo(str(import_jobs(folder, file, store=store)))


@import_.command(name="optuna")
@click.argument("storage")
@click.argument("file", metavar="FILE.yaml")
@click.option("--optuna-study", metavar="NAME", help="Optuna's study, if its storage has several.")
@STORE
def import_optuna(storage: str, file: str, optuna_study: str | None, store: str) -> None:
    """Import the completed trials of an Optuna study as trials of FILE.yaml; the file must have a version.\f

    Raises:
        InputError: if the study file has mistakes or no version, is a search or has other metrics; if the storage can't
            be read, or holds a password; if no trial matches; or if a newer package wrote the study's results.
        BusyError: if the study is running.
        StoreError: if the store can't be read or written.
    """  # noqa: D301 - click's help ends at the form feed
    from study.api.importing import import_optuna as import_trials

    leave_out_pandas()
    click.echo(str(import_trials(storage, file, optuna_study=optuna_study, store=store)))


def _choices(options: dict[str, Any]) -> dict[str, Any]:
    leave_out_pandas()
    return options | {"by": [name.strip() for name in (options["by"] or "").split(",") if name.strip()]}


def _outcomes_path(file: Path) -> Path:
    return file.with_name(f"{file.stem}-outcomes.csv")


def _print_runs(runs: ImportedRuns, out: Path) -> None:
    """Write the trials, and print the decisions made, the table of groups, and the command that reports them."""
    console = make_console()
    for notice in runs.notices:
        console.print(notice, soft_wrap=True, highlight=False)
    table = runs.report().table()
    command = runs.write(out)
    table.print(console)
    console.print(f"written:   {out}", soft_wrap=True, highlight=False)
    console.print(f"report:    {command}", soft_wrap=True, highlight=False)


COMMANDS = (delete, export, import_)
