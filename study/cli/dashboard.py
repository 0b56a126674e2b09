"""Commands for MLflow: sync, ui."""

from __future__ import annotations

import sys

import click

from study.addresses import without_secret
from study.api import Study, Where
from study.cli.options import STORE, TRACKING, leave_out_pandas
from study.errors import InputError
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


COMMANDS = (sync, ui)
