"""What commands share: options, the console, where things are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console

INTERRUPTED = 130
"""Exit code after Ctrl-C or SIGTERM."""

_PLAIN_WIDTH = 150
STORE = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("studies"),
    envvar="STUDY_STORE",
    show_default=True,
    show_envvar=True,
    help="Folder of the studies' results.",
)
TRACKING = click.option(
    "--tracking-uri",
    envvar="MLFLOW_TRACKING_URI",
    show_envvar=True,
    help="MLflow server, or 'off'. Default: sqlite inside the store.",
)
YES = click.option("--yes", is_flag=True, help="Allow more than 100,000 trials.")
ENGINE = click.option("--engine", default="auto", show_default=True, help="auto, or an engine's name.")
DEVICE = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where packs train.",
)
PACK_SIZE = click.option(
    "--pack-size", type=click.IntRange(1), help="Trials in a pack. Default: chosen to fit."
)
CPUS = click.option("--cpus", type=click.IntRange(1), help="Cores of this machine to use. Default: all.")


def make_console() -> Console:
    """Make the console that commands print to."""
    console = Console()
    # A file or a pipe has no width of its own: tables get room enough not to break their lines.
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=_PLAIN_WIDTH)


def tracking_address(given: str | None, store: Path) -> str | None:
    """Give MLflow's address; None if nothing is to be published."""
    from study.tracking import default_uri

    if given == "off":
        return None
    return given or default_uri(store.resolve())


def tell_where(study: str, store: Path, uri: str | None, console: Console) -> None:
    """Say where a study's report and dashboard are."""
    from study.tracking import links

    page = store / study / "report" / "report.html"
    if not page.is_file():
        return  # interrupted before the first pack was through
    console.print(f"report:    {page}", soft_wrap=True, highlight=False)
    found = links(uri, study)
    if uri is not None and found is not None:
        when = "" if uri.startswith("http") else " while `study ui` runs"
        console.print(f"dashboard: {found.study}{when}", soft_wrap=True, highlight=False)


def planned_study(file: str, *, yes: bool) -> Any:
    """Plan the study of a file."""
    from study.plan import plan
    from study.spec import check_size, load_spec

    spec = load_spec(file)
    check_size(spec, yes=yes)
    return plan(spec)
