"""Shared parts of commands: options, JSON output, addresses."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from study.api import Study
from study.api.where import STORE as STUDIES
from study.console import Console
from study.driver.options import TRAINING_OPTIONS, Options
from study.settings import ENVIRONMENT, check_no_secret, confirmed, flag, load_settings

INTERRUPTED = 130
"""Exit code after Ctrl-C or SIGTERM."""
REFUTED, UNDECIDED = 4, 5
"""Exit codes of `study check`."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _check_store(ctx: click.Context, param: click.Parameter, store: str) -> str:
    """Return a store's address if it is valid.

    Raise InputError for an invalid URL or one with a password, StoreError if a package or setting for an object store
    is missing, and BadParameter for a file.
    """
    if ":/" in store:
        from study.store import Store  # imported late: it takes long to import

        Store(store)
    if Path(store).is_file():
        raise click.BadParameter(f"{store} is a file, but must be a folder, or a URL such as s3://bucket/studies")
    return store


def shared_address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return an option's value if it may be used, or None without one; a callback for `setting`.

    Raises:
        InputError: if the command line has a password, or only the working folder's ``study.toml`` names the server.
    """
    source, name = ctx.get_parameter_source(param.name or ""), param.name or ""
    if value is not None and source == ParameterSource.COMMANDLINE:
        check_no_secret(value, param.opts[0])
    if source == ParameterSource.DEFAULT_MAP:
        confirmed(name, load_settings()[name])
    return value


def setting(name: str, description: str, callback: Callable[..., Any] = shared_address, **more: Any) -> Decorator:
    """Return a command's option for a setting; the environment and the settings files can also give its value.

    Args:
        name: the setting's name, a key of `ENVIRONMENT`.
        description: the option's help.
        callback: checks the value.
        more: other arguments of `click.option`.
    """
    return click.option(
        flag(name), envvar=ENVIRONMENT[name], show_envvar=True, callback=callback, help=description, **more
    )


_STUDIES: dict[str, Any] = {"default": STUDIES, "show_default": True}

STORE = setting("store", "Folder or URL (s3://, gs://, az://) of the studies' results.", _check_store, **_STUDIES)
TRACKING = setting("tracking_uri", "MLflow server, or 'off'. Default: a database in the store, if that is a folder.")
# Not checked here: the nodes may reach addresses that this machine can't reach.
CLUSTERS_STORE = setting("store", "Folder or URL of the studies' results, the same for all nodes.", **_STUDIES)
CLUSTERS_TRACKING = setting(
    "tracking_uri", "MLflow server, or 'off'. Default: the cluster's own setting, or a database in the store."
)
CLUSTER = setting("cluster", "Ray cluster: address of its dashboard, http://HEAD:8265.", metavar="URL")
OPTUNA_STORAGE = setting(
    "optuna_storage",
    "For a search: database of Optuna's dashboard, or 'off'. Default: one in the store, if that is a folder.",
)
STATE_WORDS = click.option(
    "--state-words",
    metavar="WORD=MEANING,...",
    multiple=True,
    help="What unusual words in a column of states mean: finished, failed, stopped or running.",
)
OVERRIDES = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
YES = click.option("--yes", is_flag=True, help="Allow more than 100,000 trials.")


def _click_option(option: Field[Any]) -> Decorator:
    """Return the command line's option for a field of `Options`."""
    rules, default = option.metadata, option.default
    kind: click.ParamType[Any] | None = None
    if "choices" in rules:
        kind = click.Choice(rules["choices"])
    elif "least" in rules:
        kind = (click.FloatRange if isinstance(default, float) else click.IntRange)(min=rules["least"])
    return click.option(
        flag(option.name),
        type=kind,
        is_flag=default is False,
        default=default,
        show_default=default not in (None, False),
        help=rules["help"],
    )


OPTIONS = {option.name: _click_option(option) for option in fields(Options) if option.metadata}
"""Command-line options for the fields of `Options`, by name."""


def together(*options: Decorator) -> Decorator:
    """Combine options of a command into one decorator, in their order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


training_options = together(YES, *(OPTIONS[name] for name in TRAINING_OPTIONS), OPTUNA_STORAGE)
"""Options of training, here or on a cluster."""

local_options = together(*(option for name, option in OPTIONS.items() if name not in TRAINING_OPTIONS))
"""Options that don't apply to jobs on a cluster."""


class _NoPandas:
    """An import finder that hides pandas, as if it weren't installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def leave_out_pandas() -> None:
    """Keep pyarrow from importing pandas in this process, unless it is imported; call it before the store is read.

    pyarrow imports pandas at its first array, which takes longer than reading a small store. Nothing here uses pandas,
    and code that asks pyarrow for a pandas object still gets one. Only a program may decide this, not a library.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # imported late: a mistake in a file is reported without it

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])  # pyarrow looks for pandas only once
    finally:
        sys.meta_path.remove(finder)


def echo_json(content: Any) -> None:
    """Print data as JSON, with null for NaN and infinite numbers, and texts for objects that JSON doesn't have."""
    click.echo(json.dumps(_finite(content), indent=1, ensure_ascii=False, default=str))


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def print_addresses(study: Study, console: Console) -> None:
    """Print the address of a study's report and, if MLflow has the study, the dashboard's; nothing without a report.

    Raises:
        StoreError: if the store can't be read.
        InputError: if MLflow's address isn't valid.
    """
    from study.store import Store
    from study.tracking import links

    uri = study.where.tracking
    page = Store(study.where.store).study(study.name).page
    if page is None:
        return  # interrupted before the first pack was done
    console.print(f"report:    {page}", soft_wrap=True)
    pages = links(uri, study.name)
    if uri is not None and pages is not None:
        when = "" if uri.startswith("http") else " while `study ui` runs"
        console.print(f"dashboard: {pages.study}{when}", soft_wrap=True)
