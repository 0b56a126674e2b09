"""Commands for studies on a cluster: submit, status, logs, stop, resume, doctor, keep."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from study.addresses import without_secret
from study.api import Study, Where, load
from study.api.notebook import make_console
from study.cli.options import (
    CLUSTER,
    CLUSTERS_STORE,
    CLUSTERS_TRACKING,
    INTERRUPTED,
    JSON,
    OPTIONS,
    OVERRIDES,
    leave_out_pandas,
    training_options,
)
from study.cli.standings import busy_line, checks_table, detail, listing, live_status, studies_table
from study.console import Console
from study.driver.progress import waiting
from study.errors import ClusterError, InputError
from study.settings import find_setting
from study.visible import uncoloured, visible

if TYPE_CHECKING:
    from study.jobs import Client, Job, Order

_LOG_LINES = 1000

_ONLY_STORE = click.option(
    "--store", "only_store", metavar="STORE", help="Store of the study, if it runs there for several."
)
_WITHOUT_TOKEN = click.option(
    "--without-token", is_flag=True, help="Allow a cluster where anyone who reaches it can run code."
)


@click.command()
@click.argument("file")
@OVERRIDES
@CLUSTER
@CLUSTERS_STORE
@CLUSTERS_TRACKING
@training_options
@_WITHOUT_TOKEN
@click.pass_context
def submit(
    ctx: click.Context,
    /,
    file: str,
    overrides: tuple[str, ...],
    cluster: str | None,
    store: str,
    tracking_uri: str | None,
    yes: bool,
    without_token: bool,
    **options: Any,
) -> None:
    """Check FILE (a path or a preset's name) here, and run its missing trials on a cluster.

    A study that is running there for the same store isn't started again. KEY=VALUE replaces a value of the file.\f

    Raises:
        InputError: if the cluster's address is missing or invalid, it asks for no token or has no room, the file has
            mistakes, there are over 100,000 trials without `yes`, or the addresses of store or MLflow can't be used
            there.
        MissingPackageError: if Ray isn't installed here.
        ClusterError: if the cluster can't be reached, or refuses the job.
    """  # noqa: D301 - click's help ends at the form feed
    from study.driver.repository import repository_of
    from study.jobs import make_order

    url = _cluster(cluster)
    # Without the store, which may be out of reach here: the job reads it.
    study = load(file, overrides, yes=yes)
    from study.results.submitted_files import submitted_files  # imported late: a mistake is reported without it

    spec = study.planned.spec
    order = make_order(
        spec.study,
        spec.text,
        store,
        submitted_files(spec),
        repository_of(spec),
        tracking_uri=tracking_uri,
        yes=yes,
        **options,
    )
    console = make_console()
    console.print(f"{spec.study}: {study.size}")
    _run_there(ctx, url, order, console, without_token=without_token)


@click.command()
@click.argument("name")
@CLUSTER
@_ONLY_STORE
@OPTIONS["workers"]
@_WITHOUT_TOKEN
@click.pass_context
def resume(
    ctx: click.Context, name: str, cluster: str | None, only_store: str | None, workers: int | None, without_token: bool
) -> None:
    """Continue study NAME on a cluster from its stored results, as last submitted except for --workers.

    Own code and data are those of that submission, of which the store has a copy.\f

    Raises:
        InputError: if the cluster's address is missing or invalid, it asks for no token, has no room or doesn't know
            the study, `only_store` must tell several stores apart, or the last order isn't valid.
        MissingPackageError: if Ray isn't installed here.
        ClusterError: if the cluster can't be reached, or refuses the job.
    """  # noqa: D301 - click's help ends at the form feed
    from study.jobs import connect_to_run, order_of, standing
    from study.spec import check_size, parse_spec

    url, console = _cluster(cluster), make_console()
    client = connect_to_run(url, _warn, without_token=without_token)
    order = order_of(client.job(standing(client, name, only_store).job))
    if workers is not None:
        order = replace(order, options={**order.options, "workers": workers})
    if order.code_copy:
        console.print(f"{name}: with the code of its last submission")
    else:
        spec = parse_spec(order.spec, source=f"study {name}, as last submitted")
        check_size(spec, yes=order.options.get("yes", False))
        console.print(f"{name}: {Study(name, Where(), spec).size}")
    _run_there(ctx, url, order, console, client=client)


@click.command()
@click.argument("name")
@CLUSTER
@_ONLY_STORE
@JSON
@click.option("--watch", "is_watch", is_flag=True, help="Keep printing until the study ends. Ctrl-C doesn't stop it.")
def status(name: str, cluster: str | None, only_store: str | None, as_json: bool, is_watch: bool) -> None:
    """Print the status of study NAME on a cluster: progress, time left, workers, usage of the nodes.

    With --watch, the exit code is that of the study: 0 finished, 1 failed, 2 bad input, 130 stopped.\f

    Raises:
        InputError: if the cluster's address is missing or invalid, it doesn't know the study or not for `only_store`,
            or `is_watch` is combined with `as_json`, or with several stores of the study and no `only_store`.
        MissingPackageError: if Ray isn't installed here.
        ClusterError: if the cluster can't be reached.
    """  # noqa: D301 - click's help ends at the form feed
    if not is_watch:
        _print_standings(_cluster(cluster), name, only_store, as_json=as_json)
        return
    if as_json:
        raise InputError("--watch can't be combined with --json: leave one out")
    from study.jobs import connect, watch

    client, console = connect(_cluster(cluster), _warn), make_console()
    try:
        with live_status(console) as show:
            for current, busy in watch(client, name, only_store):
                show(current, busy)
    except KeyboardInterrupt:
        console.print(f"{name} goes on: `study stop {name}` ends it")
        sys.exit(INTERRUPTED)
    sys.exit(current.exit_code)


@click.command()
@click.argument("name")
@click.argument("trial", required=False)
@CLUSTER
@_ONLY_STORE
@click.option("--follow", is_flag=True, help="Keep printing until the study or trial ends. Ctrl-C doesn't stop it.")
@click.option("--lines", type=click.IntRange(1), default=_LOG_LINES, show_default=True, help="Number of last lines.")
def logs(name: str, trial: str | None, cluster: str | None, only_store: str | None, follow: bool, lines: int) -> None:
    """Print the log of study NAME on a cluster, or that of one TRIAL.

    TRIAL is an id, or its first letters; its log is read from --store, by default the store of the settings.\f

    If a study that hasn't ended has no log yet, print a warning with Ray's reason.

    Raises:
        InputError: if the cluster's address is missing or invalid, it doesn't know the study, or `only_store` must
            tell several stores apart; with `trial`, if the study or trial isn't in the store, the trial has no log, or
            a newer package wrote one of the study's files.
        MissingPackageError: if Ray isn't installed here.
        ClusterError: if the cluster can't be reached, or the study has ended without a readable log.
        StoreError: if the store can't be read.
    """  # noqa: D301 - click's help ends at the form feed
    if trial is not None:
        _print_trial_log(name, trial, only_store, follow=follow, lines=lines)
        return
    from study.jobs import connect, readable_lines, standing
    from study.jobs import follow as follow_log

    client = connect(_cluster(cluster), _warn)
    job = standing(client, name, only_store).job
    last = () if follow else client.tail(client.job(job), lines).splitlines()
    is_empty = True
    for line in follow_log(client, job, lines) if follow else readable_lines(last):
        is_empty = False
        click.echo(line)
    if is_empty:
        _explain_missing_log(client.job(job))


def _print_trial_log(name: str, trial: str, store: str | None, *, follow: bool, lines: int) -> None:
    from study.results.trial_files import follow_log, read_log, trial_named
    from study.store import Store

    leave_out_pandas()
    where = Where() if (address := store or find_setting("store")) is None else Where(address)
    folder = Store(where.store, read_only=True).open(name)
    trial_id = trial_named(folder, trial)
    if not follow:
        for line in read_log(folder, trial_id).splitlines()[-lines:]:
            click.echo(uncoloured(line))
        return
    for text in follow_log(folder, trial_id):
        click.echo(uncoloured(text), nl=False)


def _explain_missing_log(job: Job) -> None:
    """Warn that a job has no log yet.

    Raises:
        ClusterError: if the job has ended, so that it will never have one.
    """
    reason = " ".join(job.message.split()) or "nothing"
    if job.ended:
        raise ClusterError(
            f"{job.id} has no readable log: it was lost with the driver's node, or the driver never started. "
            f"Ray says: {reason}"
        )
    _warn(f"{job.id} has no readable log yet. Ray says: {reason}")


@click.command()
@click.argument("name")
@CLUSTER
@_ONLY_STORE
def stop(name: str, cluster: str | None, only_store: str | None) -> None:
    """Stop study NAME on a cluster. It stores checkpoints, publishes and ends within two minutes.\f

    Wait for its end, and print how it ended. If it isn't running, print only that.

    Raises:
        InputError: if the cluster's address is missing or invalid, it doesn't know the study, or `only_store` must tell
            several stores apart.
        MissingPackageError: if Ray isn't installed here.
        ClusterError: if the cluster can't be reached, or the study doesn't end.
    """  # noqa: D301 - click's help ends at the form feed
    from study.jobs import connect, standing
    from study.jobs import stop as stop_study

    client, console = connect(_cluster(cluster), _warn), make_console()
    before = standing(client, name, only_store)
    if before.ended:
        console.print(f"{name} isn't running: it is {before.state}. {before.next}")
        return
    with waiting(console, f"stopping {name}"):
        done = stop_study(client, name, before.store)
    if done.now.state == "finished":
        console.print(f"{name} finished before it was asked to stop")
        return
    if done.has_checkpoints:
        ending = "has stopped, with checkpoints"
    elif done.killed:
        ending = "took too long and was killed: all training since its last checkpoints is lost"
    else:
        ending = "has stopped while it was starting or reporting: no training is lost"
    style = "yellow" if done.killed else ""
    console.print(f"{name} {ending}. {done.now.next}", style=style)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="-- run FILE ...")
def keep(arguments: tuple[str, ...]) -> None:
    """Run another command of this program, and restart it whenever it is killed; for jobs on a cluster.\f

    After five restarts, it isn't restarted any more. Exit with the command's code; with 130 if a request to end, such
    as SIGTERM, killed it or reached this process before; or with 1 if it was killed again after the last restart.

    Raises:
        InputError: without a command.
        OSError: if the command can't be started.
    """  # noqa: D301 - click's help ends at the form feed
    from study.driver.supervise import driver
    from study.driver.supervise import keep as keep_running

    if not arguments:
        raise InputError("keep needs the command to run: study keep -- run FILE")
    sys.exit(keep_running(driver(arguments), lambda text: click.echo(visible(f"study: {text}"), err=True)))


@click.command()
@CLUSTER
@CLUSTERS_STORE
@CLUSTERS_TRACKING
@_WITHOUT_TOKEN
@click.option("--warm", is_flag=True, help="Compile the engines' code here in advance, so that no study waits for it.")
@JSON
@click.pass_context
def doctor(
    ctx: click.Context,
    cluster: str | None,
    store: str,
    tracking_uri: str | None,
    without_token: bool,
    warm: bool,
    as_json: bool,
) -> None:
    """Check settings, store, tracking, Ray and GPUs, here and on each node of a cluster, and suggest fixes.\f

    Exit with code 1 if a check failed.

    Raises:
        ClusterError: if the cluster stops answering between two checks.
        InputError: with `warm`, if an engine or its family can't be imported.
    """  # noqa: D301 - click's help ends at the form feed
    from study.doctor import examine as checks

    console = make_console()
    # The checks read settings themselves if neither the command line nor the environment sets them.
    values = {
        name: value if ctx.get_parameter_source(name) != click.core.ParameterSource.DEFAULT else None
        for name, value in (("cluster", cluster), ("store", store), ("tracking_uri", tracking_uri))
    }
    with nullcontext() if as_json else waiting(console, "checking"):
        results = list(checks.examine(values, without_token=without_token))
    if warm:
        from study.doctor.engines import compile_engines  # imports the engines, which no other check needs

        with nullcontext() if as_json else waiting(console, "compiling the engines"):
            results.append(compile_engines())
    if as_json:
        click.echo(json.dumps([check.as_json() for check in results], indent=2))
    else:
        console.print(checks_table(results))
    if any(check.state == "failed" for check in results):
        sys.exit(1)


def list_cluster(cluster: str, *, as_json: bool) -> None:
    """Print the last studies of a cluster, at most 100, as a table or as JSON, and the cluster's usage.

    Raises:
        InputError: if the address isn't that of a dashboard or holds a password, or the token's file can't be read.
        MissingPackageError: if Ray isn't installed here in a supported version.
        ClusterError: if the cluster can't be reached, refuses the token or needs one, or isn't a Ray dashboard of a
            supported version.
    """
    _print_standings(cluster, None, None, as_json=as_json)


def _print_standings(cluster: str, name: str | None, store: str | None, *, as_json: bool) -> None:
    """Print the studies called `name` in detail, or for None a list of all, and the cluster's usage; or all as JSON."""
    from study.jobs import connect, standings, usage

    client = connect(cluster, _warn)
    statuses, busy = standings(client, name, store), usage(client)
    if as_json:
        click.echo(json.dumps(listing(statuses, busy), indent=2))
        return
    console = make_console()
    if name is not None:
        for status in statuses:
            console.print(detail(status), end="")
    elif statuses:
        console.print(studies_table(statuses))
    else:
        console.print("no study has been submitted to this cluster since its head was started")
    console.print(busy_line(busy))


def _run_there(
    ctx: click.Context,
    url: str,
    order: Order,
    console: Console,
    *,
    without_token: bool = False,
    client: Client | None = None,
) -> None:
    """Submit a study, unless it is running there, and print its pages and the commands to follow it."""
    from study.jobs import connect_to_run
    from study.jobs import submit as submit_study

    client = client or connect_to_run(url, _warn, without_token=without_token)
    done = submit_study(client, order, _warn)
    if done.before is None:
        console.print(f"{order.study} was submitted to {url} as {done.job_id}")
    else:
        by = f"{done.before.metadata.get('user')}@{done.before.metadata.get('host')}"
        console.print(f"{order.study} is running there already, submitted by {by}: attached to {done.job_id}")
        if not done.same_file:
            _warn("it was submitted with another file and continues with that; to run this file, `study stop` it first")
    is_from_command_line = ctx.get_parameter_source("cluster") == click.core.ParameterSource.COMMANDLINE
    where = f" --cluster {url}" if is_from_command_line else ""
    for name, value in (
        ("follow:", f"study status {order.study}{where}"),
        ("", f"study logs {order.study} --follow{where}"),
        ("cluster:", f"{client.address.url}/#/jobs/{done.job_id}"),
        ("tracking:", _tracking_page(order)),
    ):
        console.print(f"{name:10} {value}", soft_wrap=True)


def _tracking_page(order: Order) -> str:
    """Return the study's page in MLflow; the server's address if that doesn't know the study; else a remark."""
    uri = order.options.get("tracking_uri")
    if uri is None:
        return f"as set on the cluster; `study logs {order.study}` ends with the dashboard's address"
    if uri == "off":
        return "off: nothing is published"
    if not uri.startswith("http"):
        return f"{without_secret(uri)}, a database: an MLflow server on it, or `study ui` there, shows it"
    from study.tracking import links

    pages = links(uri, order.study)
    return without_secret(uri) if pages is None else pages.study


def known_cluster() -> str:
    """Return the cluster that the environment or the settings name.

    Raises:
        InputError: if they name none, a settings file has mistakes, or the address isn't a dashboard's or isn't
            trusted (`study.settings.confirmed`).
    """
    return _cluster(find_setting("cluster"))


def _cluster(address: str | None) -> str:
    if not address:
        raise InputError(
            "no cluster was given: use --cluster http://HEAD:8265, STUDY_CLUSTER, or `cluster` in your own study.toml"
        )
    from study.jobs import parse_address

    return parse_address(address).url


def _warn(text: str) -> None:
    """Print a warning to stderr, since a program may read stdout."""
    click.secho(visible(text), fg="yellow", err=True)


COMMANDS = (submit, status, logs, stop, resume, doctor, keep)
