"""Commands for MLflow: sync, ui."""

from __future__ import annotations

import sys

import click

from study.api import Study, Where, serve_pages
from study.cli.options import STORE, TRACKING, leave_out_pandas
from study.visible import visible
from study.words import count_of


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
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=5000,
    show_default=True,
    help="MLflow's port; the index has the next one, or any if that is taken. 0 for any that is free.",
)
@click.option("--no-browser", is_flag=True, help="Don't open the index, which is done if this is a terminal.")
def ui(store: str, tracking_uri: str | None, port: int, no_browser: bool) -> None:
    """Serve the index of the store's studies, their reports and MLflow's dashboard to this machine, until Ctrl-C.

    The index is a page, which is kept up to date meanwhile: what each study asks, how far it is, and what it finds.
    To open it from another machine, run the printed ssh command there.
    """
    leave_out_pandas()
    where = Where(store, tracking_uri)
    sys.exit(serve_pages(where, port, opens=not no_browser and sys.stdout.isatty(), notify=_echo))


def _echo(sentence: str) -> None:
    click.echo(visible(sentence))


COMMANDS = (sync, ui)
