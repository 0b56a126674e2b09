"""Command for files of trials: files."""

from __future__ import annotations

from pathlib import Path

import click
from rich.filesize import decimal

from study.api import Where
from study.cli.options import JSON, STORE, echo_json, leave_out_pandas
from study.errors import InputError
from study.visible import visible
from study.words import count_of


@click.command()
@click.argument("name")
@click.argument("trial", required=False)
@STORE
@click.option("--to", type=click.Path(path_type=Path), metavar="FOLDER", help="Copy the files of TRIAL to FOLDER.")
@JSON
def files(name: str, trial: str | None, store: str, to: Path | None, as_json: bool) -> None:
    """List the trials of study NAME that have files or a log, or the files of one TRIAL.

    TRIAL is an id, or its first letters.\f

    With `to`, copy the files of the trial there instead, and print their number. Else, `as_json` prints JSON data.

    Raises:
        InputError: if the study doesn't exist, no trial or more than one has the id, `to` lacks a `trial`, a newer
            package wrote one of the study's files, or a file to copy has a name that isn't valid on every system.
        StoreError: if the store can't be read.
        OSError: if a file can't be written to `to`.
    """  # noqa: D301 - click's help ends at the form feed
    from study.results.trial_files import local_files, sizes_by_trial, trial_named
    from study.store import Store

    leave_out_pandas()
    folder = Store(Where(store).store, read_only=True).open(name)
    if trial is None:
        if to is not None:
            raise InputError("--to needs a trial: study files NAME TRIAL --to FOLDER")
        by_trial = sizes_by_trial(folder)
        if as_json:
            echo_json({"study": name, "trials": by_trial})
            return
        for trial_id, sizes in by_trial.items():
            click.echo(f"{trial_id}  {count_of(len(sizes), 'file'):>10}  {decimal(sum(sizes.values())):>9}")
        if not by_trial:
            click.echo(f"no trial of {name} has files")
        return
    trial_id = trial_named(folder, trial)
    sizes = folder.file_sizes(trial_id)
    if to is not None:
        copied = local_files(folder, trial_id, to)
        click.echo(f"{to}: {count_of(len(copied), 'file')} of trial {trial_id}")
    elif as_json:
        addresses = {file: folder.file_address(folder.trial_file(trial_id, file)) for file in sizes}
        echo_json({"study": name, "trial": trial_id, "files": sizes, "addresses": addresses})
    else:
        for file, size in sizes.items():
            click.echo(f"{decimal(size):>9}  {visible(folder.file_address(folder.trial_file(trial_id, file)))}")
        if not sizes:
            click.echo(f"trial {trial_id} has no files")


COMMANDS = (files,)
"""Commands, in the order in which `--help` lists them."""
