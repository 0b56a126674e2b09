"""Checks of everything that a study needs, from this machine to a cluster's nodes, with fixes."""

from __future__ import annotations

import os
import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from study.addresses import without_secret
from study.doctor.node import Answer, read
from study.doctor.nodes import LEAST_FREE_BYTES, Check, judge
from study.doctor.probe import free_bytes, gpus_seen, probe_store, probe_tracking
from study.environment import versions
from study.errors import ClusterError, InputError, StudyError
from study.extras import INSTALL_RAY, ray_problem
from study.jobs import Client, connect, parse_address
from study.settings import ENVIRONMENT, FILE, Setting, check_no_secret, confirmed, load_settings, user_file
from study.store import is_url

_GPU_DRIVER = Path("/dev/nvidiactl")
_JOB_S = 300.0
_POLL_S = 0.5
_DEFAULTS = {"store": "studies"}
# checks that are made both here and on the nodes
_ON_NODES = {
    "store": "store on nodes",
    "tracking": "tracking on nodes",
    "GPU here": "GPUs on nodes",
    "room here": "room on nodes",
}
_NOT_FROM_HERE = "only runs and reports on this machine need it; the cluster's nodes are fine (below)"


def examine(values: Mapping[str, str | None], *, without_token: bool = False) -> Iterator[Check]:
    """Check settings, versions, store, tracking, Ray, GPUs and free space here, then a cluster and its nodes, if any.

    A check of this machine that fails is only a warning if the nodes pass it.

    Args:
        values: values from the command line or the environment, by name of the setting; None, or no entry, to use the
            files' values.
        without_token: whether the cluster may answer without a token.

    Yields:
        Each check. A failed check "cluster" says that the cluster doesn't answer, has stopped answering or can't be
        asked, as with an invalid address.

    Raises:
        OSError: if this machine has no folder for temporary files.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     checks = list(examine({"store": folder, "tracking_uri": "off", "cluster": None}))
        >>> [check.state for check in checks if check.name == "store"]
        ['ok']
    """
    settings, check = _settings(values)
    yield check
    resolved = {name: setting.value for name, setting in settings.items()} | {
        name: value for name, value in values.items() if value is not None
    }
    cluster, store = resolved.get("cluster"), resolved.get("store", _DEFAULTS["store"])
    tracking_uri = resolved.get("tracking_uri")
    if tracking_uri == "off":
        tracking_uri = None
    here = [
        Check("versions here", "ok", _join_versions(versions())),
        _store(store, far=cluster is not None),
        _tracking(tracking_uri),
        _ray(),
        _gpu(),
        _room("room here", free_bytes()),
    ]
    if cluster is None:
        yield from here
        yield Check("cluster", "skipped", "no cluster is set", "to check one, give --cluster URL")
        return
    there = list(_cluster(cluster, store, tracking_uri, without_token=without_token))
    yield from (eased(check, there) for check in here)
    yield from there


def eased(check: Check, there: Sequence[Check]) -> Check:
    """Turn a failure on this machine into a warning if the same check succeeds on the cluster's nodes.

    Only checks of the store, tracking, GPUs and free space are made on nodes, too. Other checks are returned unchanged.

    Args:
        check: a check of this machine.
        there: the checks of the cluster.

    Example:
        >>> eased(Check("store", "failed", "no route"), [Check("store on nodes", "ok", "it can be written")]).state
        'warning'
        >>> eased(Check("store", "failed", "no route"), [Check("nodes", "failed", "nobody answers")]).state
        'failed'
    """
    fine = {other.name for other in there if other.state == "ok"}
    if check.state != "failed" or _ON_NODES.get(check.name) not in fine:
        return check
    return replace(check, state="warning", fix=_NOT_FROM_HERE)


def _settings(values: Mapping[str, str | None]) -> tuple[dict[str, Setting], Check]:
    try:
        settings = load_settings()
    except InputError as error:
        return {}, Check("settings", "failed", str(error), "fix the file")
    problems = []
    for name, from_file in settings.items():
        try:
            if values.get(name) is None:
                confirmed(name, from_file)
        except InputError as error:
            problems.append(str(error))
    if problems:
        usable = {name: setting for name, setting in settings.items() if setting.confirmed}
        return usable, Check(
            "settings", "failed", "; ".join(problems), "fix these settings; the checks below ignore them"
        )
    sources = []
    for name, variable in ENVIRONMENT.items():
        value, setting = values.get(name), settings.get(name)
        if value is not None:
            where = variable if os.environ.get(variable) == value else "the command line"
            sources.append(f"{name} = {without_secret(value)} ({where})")
        elif setting is not None:
            sources.append(f"{name} = {without_secret(setting.value)} ({setting.source})")
        else:
            sources.append(f"{name} is not set")
    files = [str(path) for path in (Path(FILE), user_file()) if path.is_file()]
    return settings, Check("settings", "ok", f"files: {', '.join(files) or 'none'}; {'; '.join(sources)}")


def _store(store: str, *, far: bool) -> Check:
    if not is_url(store) and far and not Path(store).is_dir():
        return Check("store", "skipped", f"{store} isn't visible from here; the cluster's nodes are checked below")
    problem = _problem_of(lambda: probe_store(store))
    if problem is None:
        return Check("store", "ok", f"{store} can be written and read")
    return Check("store", "failed", problem, "choose another with --store, or allow this user to write there")


def _tracking(uri: str | None) -> Check:
    if uri is None:
        return Check("tracking", "skipped", "no server is set: results are published inside the store")
    problem = _problem_of(lambda: probe_tracking(uri))
    if problem is None:
        answer = f"{without_secret(uri)} answers, and accepts the credentials of this environment"
        return Check("tracking", "ok", answer)
    advice = "check that it runs, and set its credentials: MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD"
    return Check("tracking", "failed", problem, advice)


def _ray() -> Check:
    if (problem := ray_problem()) is None:
        return Check("Ray here", "ok", f"{versions()['ray']}: studies train on all cores")
    return Check("Ray here", "skipped", f"{problem}: studies train in one process", f"{INSTALL_RAY}, for all cores")


def _gpu() -> Check:
    names = gpus_seen()
    if names:
        return Check("GPU here", "ok", ", ".join(names))
    if _GPU_DRIVER.exists():
        problem = "there is an NVIDIA GPU here that torch can't use"
        return Check("GPU here", "failed", problem, "docs/guides/one-machine.md says what to install")
    return Check("GPU here", "skipped", "there is none: the CPU trains")


def _room(name: str, free: int, where: str = "") -> Check:
    room = f"{where}{free / 1e9:.1f} GB are free for temporary files"
    if free >= LEAST_FREE_BYTES:
        return Check(name, "ok", room)
    return Check(name, "failed", room, "free some space there, or set TMPDIR")


def _cluster(url: str, store: str, tracking_uri: str | None, *, without_token: bool) -> Iterator[Check]:
    """Check the cluster and its nodes; if it doesn't answer, or stops answering, that is the last check."""
    try:
        yield from _answering_cluster(url, store, tracking_uri, without_token=without_token)
    except StudyError as error:
        yield Check("cluster", "failed", str(error))


def _answering_cluster(url: str, store: str, tracking_uri: str | None, *, without_token: bool) -> Iterator[Check]:
    client = connect(parse_address(url))
    yield Check("cluster", "ok", f"Ray's dashboard answers at {url}")
    yield from _token_checks(client, without_token=without_token)
    here = versions()["ray"]
    if client.ray_version == here:
        yield Check("Ray", "ok", f"{here} here and on the cluster")
    else:
        both = f"Ray {here} here, {client.ray_version} on the cluster"
        advice = "both work together; preferably install the same version on both sides (deploy/lock)"
        yield Check("Ray", "warning", both, advice)
    if not is_url(store) and not Path(store).is_absolute():
        problem = f"{store!r} is a relative path"
        yield Check("nodes", "failed", problem, "a cluster needs a URL or an absolute path: --store")
        return
    try:
        for address in (store, tracking_uri or ""):
            check_no_secret(address, "an address that is sent to nodes")
    except InputError as error:
        yield Check("nodes", "failed", str(error), "leave the password out")
        return
    try:
        answers = _ask_nodes(client, store, tracking_uri)
    except StudyError as error:
        yield Check("nodes", "failed", str(error), "`python` on the cluster's PATH must have this package")
        return
    yield from judge(client.nodes(), answers, store, tracking_uri)


def _token_checks(client: Client, *, without_token: bool) -> Iterator[Check]:
    address = client.address
    if not client.asks_for_token():
        state = "warning" if address.is_loopback or without_token else "failed"
        problem = "the cluster asks for no token: anyone who reaches it can run code there"
        yield Check("token", state, problem, "start it with RAY_AUTH_MODE=token")
    else:  # there is a token here: the cluster has answered
        yield Check("token", "ok", "it is accepted, and requests without it are refused")
    if not address.is_loopback and not address.encrypted:
        problem = "http:// over a network: the token can be read on the way"
        yield Check("encryption", "warning", problem, "use https, or a tunnel (ssh -L)")


def _ask_nodes(client: Client, store: str, tracking_uri: str | None) -> list[Answer]:
    """Run the checks of the nodes as a job, and return the nodes' answers; raise ClusterError if the job fails."""
    command = ["python", "-P", "-m", "study.doctor.node", "--store", store]
    command += [] if tracking_uri is None else ["--tracking-uri", tracking_uri]
    job_id = f"doctor-{uuid.uuid4().hex[:12]}"
    client.submit(job_id, shlex.join(command), metadata={}, environment={})
    deadline_s = time.monotonic() + _JOB_S
    while not (job := client.job(job_id)).ended:
        if time.monotonic() > deadline_s:
            client.stop(job_id)
            raise ClusterError(f"job {job_id} took longer than {_JOB_S:.0f} s: the cluster may be full or overloaded")
        time.sleep(_POLL_S)
    log = client.tail(job, 10_000)
    answers = read(log)
    if job.status != "SUCCEEDED" or not answers:
        last = [line for line in (log or job.message).splitlines() if line.strip()][-3:]
        raise ClusterError("the job that checks the nodes failed: " + " / ".join(last))
    return answers


def _problem_of(probe: Callable[[], Any]) -> str | None:
    try:
        problem: str | None = probe()
    except StudyError as error:
        return str(error)
    return problem


def _join_versions(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items())
