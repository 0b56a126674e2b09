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
    """Publish the trials of study NAME that MLflow lacks, and the report, to MLflow.\f

    Trials that MLflow has with other values are published again. Print the number of published trials.

    Raises:
        InputError: if the study doesn't exist or has no results, a stored file is invalid or from a newer package, or
            no MLflow address is set.
        TrackingError: if MLflow can't be reached, or refuses a request.
        ReportError: if a part of the report failed; everything else is published.
        StudyError: if the store can't be read, or the report can't be written.
    """  # noqa: D301 - click's help ends at the form feed
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
    help="MLflow's port; 0 for any free port. The index has the next port, or any if that is taken.",
)
@click.option("--no-browser", is_flag=True, help="Don't open the index. Default: open it if this is a terminal.")
def ui(store: str, tracking_uri: str | None, port: int, no_browser: bool) -> None:
    """Serve the store's index, reports and MLflow's dashboard on this machine, until Ctrl-C.

    The index is a page with the question, the progress and the finding of each study, and is kept up to date. To open
    it from another machine, run the printed ssh command there.\f

    Raises:
        InputError: if the store doesn't exist, unless `tracking_uri` is a database in a folder that does; if a port is
            taken; or if the store's index.html isn't an index.
        StudyError: if the store can't be read, or the index can't be written.
        TrackingError: if MLflow's server ends before Ctrl-C.
    """  # noqa: D301 - click's help ends at the form feed
    leave_out_pandas()
    where = Where(store, tracking_uri)
    serve_pages(where, port, opens=not no_browser and sys.stdout.isatty(), notify=_echo)


def _echo(sentence: str) -> None:
    click.echo(visible(sentence))


COMMANDS = (sync, ui)
