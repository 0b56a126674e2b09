"""Submitted studies: their status, logs and ends."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from study.addresses import without_secret
from study.errors import ClusterError, InputError
from study.jobs.client import Client
from study.jobs.rows import Job
from study.jobs.shares import Share, shares
from study.jobs.submit import STOP_WAIT_S, check_known, of_study
from study.summaries.heartbeat import Heartbeat, is_heartbeat, read, readable
from study.visible import uncoloured

STATES = ("waiting", "running", "finished", "stopped", "failed")
"""The states of a study on a cluster."""

_INTERRUPTED = 130
_BAD_INPUT = 2
# A traceback, a table or dumps of Ray's state may follow the last heartbeat.
_TAIL_LINES = 1000
_LAST_LINES = 3
_MOST_LISTED = 100
_POLL_S = 0.5
_WATCH_S = 2.0
# Ray's processes mark each line of a state dump, after the time and place if there are any.
_STATE_DUMP = re.compile(r"\s*(\([^()]*\)\s*)?(\[[^\]]*\]\s*(\([^()]*\)\s*)?[\w.]+:\d+:\s*)?\[state-dump\].*")
# Lines that Ray itself writes into a job's log.
_RAYS_OWN = re.compile(r"\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\b.*|Running entrypoint for job .*")


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The status of a study on a cluster.

    Args:
        study: the study's name.
        state: one of `STATES`.
        job: id of the job that runs it, or ran it last.
        store: the store of its results.
        tracking_uri: the MLflow server of its submission.
        user: the user who submitted it.
        host: the machine it was submitted from.
        submitted_at: when it was submitted, in UTC.
        ended_at: when it ended, in UTC; None while it runs.
        exit_code: exit code as of `study run`: 0, 1, 2 or 130; None while it runs.
        node: name of its driver's node; None if that is gone.
        heartbeat: its last heartbeat; None before the first, or if its node is gone.
        share: its share of the cluster; None unless it runs.
        last_lines: its driver's last lines of output; empty while it runs, and once it has finished.
        next: the next step for the user.
    """

    study: str
    state: str
    job: str
    store: str
    tracking_uri: str | None
    user: str
    host: str
    submitted_at: datetime
    ended_at: datetime | None
    exit_code: int | None
    node: str | None
    heartbeat: Heartbeat | None
    share: Share | None
    last_lines: Sequence[str]
    next: str

    @property
    def ended(self) -> bool:
        """True if the study's job has ended."""
        return self.ended_at is not None or self.state not in ("waiting", "running")

    @property
    def wait(self) -> str:
        """Reason why a running study has no room to train; empty otherwise, also while its job waits to start."""
        beat = self.heartbeat
        if self.share is None or (beat is not None and (beat.workers or beat.done >= beat.trials)):
            return ""
        if self.share.is_shut_out:
            return self.share.wait
        return "waiting for machines: none of its workers has room yet" if beat is not None and beat.waiting else ""

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON data, with `wait`, times in ISO 8601, and `last_lines` as ``said``."""
        content = asdict(self)
        content["said"] = list(content.pop("last_lines"))
        content["wait"] = self.wait
        for name in ("submitted_at", "ended_at"):
            content[name] = None if content[name] is None else content[name].isoformat(timespec="seconds")
        if self.heartbeat is not None:
            content["heartbeat"]["at"] = self.heartbeat.at.isoformat(timespec="seconds")
        return content


@dataclass(frozen=True, slots=True)
class Usage:
    """Load of a cluster by all its work, studies or not.

    Args:
        nodes: number of nodes that are alive.
        cpus: number of CPUs that Ray counts.
        cpu_percent: mean load of the cores over the nodes; None if no node reports it.
        gpus: number of GPUs that Ray counts.
        gpu_percent: mean load of the GPUs that Ray sees; None if it sees none.
    """

    nodes: int
    cpus: float
    cpu_percent: float | None
    gpus: float
    gpu_percent: float | None


def usage(client: Client) -> Usage:
    """Return the load of a cluster.

    Raises:
        ClusterError: if the cluster can't be reached, or refuses the request.
    """
    nodes = client.nodes()
    return Usage(
        nodes=len(nodes),
        cpus=sum(node.cpus for node in nodes),
        cpu_percent=_mean([node.cpu_percent for node in nodes if node.cpu_percent is not None]),
        gpus=sum(node.gpus for node in nodes),
        gpu_percent=_mean([percent for node in nodes for percent in node.gpu_percent]),
    )


def standings(client: Client, study: str | None = None, store: str | None = None) -> list[JobStatus]:
    """Return the status of the last job of each study and store, latest submission first, at most 100.

    Args:
        client: a connected client.
        study: include only studies of this name.
        store: include only studies in this store, written as in `JobStatus.store`.

    Raises:
        UnknownStudyError: if the cluster has no study of that name.
        InputError: if it has one, but not for that store.
        ClusterError: if the cluster can't be reached, or refuses the request.
    """
    jobs = client.jobs()
    if study is not None:
        check_known(jobs, study, client.address.url)
    last: dict[tuple[str, str], Job] = {}
    for job in jobs:
        name, where = job.metadata.get("study", ""), job.metadata.get("store", "")
        if of_study([job], name if study is None else study) and store in (None, where):
            last.pop((name, where), None)
            last[name, where] = job
    if study is not None and not last:
        stores = ", ".join(sorted({job.metadata.get("store", "") for job in of_study(jobs, study)}))
        raise InputError(f"study {study!r} wasn't submitted for the store {store}, but for {stores}")
    newest = list(last.values())[: -_MOST_LISTED - 1 : -1]
    nodes = client.nodes()
    names = {node.id: node.name for node in nodes}
    share_of = {} if all(job.ended for job in newest) else shares(jobs, nodes, client.reservations())
    with ThreadPoolExecutor(8) as pool:  # each job takes a request
        logs = pool.map(lambda job: client.tail(job, _TAIL_LINES), newest)
        return [
            _job_status(job, log, names.get(job.node_id or ""), share_of.get(job.id))
            for job, log in zip(newest, logs, strict=True)
        ]


def standing(client: Client, study: str, store: str | None = None) -> JobStatus:
    """Return the status of one study.

    Args:
        client: a connected client.
        study: the study's name.
        store: its store; None if it was submitted for one store only.

    Raises:
        UnknownStudyError: if the cluster has no study of that name.
        InputError: if it has one for several stores, or not for that one.
        ClusterError: if the cluster can't be reached, or refuses the request.
    """
    statuses = standings(client, study, store)
    if len(statuses) > 1:
        stores = ", ".join(f"{without_secret(status.store)} ({status.state})" for status in statuses)
        raise InputError(f"study {study!r} was submitted for {len(statuses)} stores: {stores}; choose one with --store")
    return statuses[0]


def watch(client: Client, study: str, store: str | None = None) -> Iterator[tuple[JobStatus, Usage]]:
    """Yield a study's status and its cluster's load every two seconds, until the study has ended.

    The arguments are those of `standing`.

    Raises:
        UnknownStudyError: if the cluster has no study of that name.
        InputError: if it has one for several stores, or not for that one.
        ClusterError: if the cluster can't be reached, or refuses the request.
    """
    while True:
        status = standing(client, study, store)
        yield status, usage(client)
        if status.ended:
            return
        time.sleep(_WATCH_S)


@dataclass(frozen=True, slots=True)
class StopResult:
    """The outcome of a request to stop a study.

    Args:
        now: the study's status afterwards.
        has_checkpoints: whether its driver reported saved checkpoints; if not, it was starting or reporting, or was
            killed.
        killed: whether Ray killed it because it didn't end in time.
    """

    now: JobStatus
    has_checkpoints: bool
    killed: bool


def stop(client: Client, study: str, store: str | None = None) -> StopResult:
    """Ask a study to stop, and wait until it has saved checkpoints, published and ended, or was killed by Ray.

    The arguments are those of `standing`.

    Returns:
        The outcome; for a study that had ended before, its status, with both flags False.

    Raises:
        UnknownStudyError: if the cluster has no study of that name.
        InputError: if it has one for several stores, or not for that one.
        ClusterError: if it still runs a minute after Ray should have killed it, or if the cluster can't be reached or
            refuses a request.
    """
    before = standing(client, study, store)
    if before.ended:
        return StopResult(before, has_checkpoints=False, killed=False)
    client.stop(before.job)
    began_s = time.monotonic()
    deadline_s = began_s + STOP_WAIT_S + 60
    while not (job := client.job(before.job)).ended:
        if time.monotonic() > deadline_s:
            raise ClusterError(
                f"study {study!r} was asked to stop, but job {before.job} still runs: its node may be gone; "
                f"`study status {study}` shows its end"
            )
        time.sleep(_POLL_S)
    is_late = time.monotonic() - began_s >= STOP_WAIT_S
    has_checkpoints = "interrupted: " in client.tail(job, _TAIL_LINES)
    now = standing(client, study, before.store)
    return StopResult(now, has_checkpoints=has_checkpoints, killed=is_late and not has_checkpoints)


def follow(client: Client, job_id: str, lines: int) -> Iterator[str]:
    """Yield the readable lines of a job's log, from its last lines on, until the job has ended.

    Args:
        client: a connected client.
        job_id: the job's submission id.
        lines: the number of last lines to begin with.

    Raises:
        ClusterError: if the cluster can't be reached, refuses the request or has no such job, or if the log breaks off
            while the job runs.
    """
    yield from readable_lines(client.follow(job_id, lines))


def readable_lines(log_lines: Iterable[str]) -> Iterator[str]:
    r"""Yield the lines of a log for people, without the state dumps of Ray's processes.

    Example:
        >>> list(readable_lines(["training", "[state-dump] NodeManager:", "(raylet) [state-dump] \tCPU: 2", "done"]))
        ['training', 'done']
    """
    for line in map(readable_line, log_lines):
        if not _STATE_DUMP.fullmatch(line):
            yield line


def readable_line(log_line: str) -> str:
    r"""Format a log line for people, without control characters for their terminal.

    Example:
        >>> readable_line("\x1b[31mstopping\x1b[0m")
        'stopping'
    """
    return readable(uncoloured(log_line))


def _job_status(job: Job, log: str, node: str | None, share: Share | None) -> JobStatus:
    state, study, heartbeat = _state_of(job), job.metadata.get("study", ""), read(log)
    return JobStatus(
        study=study,
        state=state,
        job=job.id,
        store=job.metadata.get("store", ""),
        tracking_uri=_tracking_uri(job),
        user=job.metadata.get("user", "unknown"),
        host=job.metadata.get("host", "unknown"),
        submitted_at=datetime.fromtimestamp(job.began_s, UTC),
        ended_at=None if job.ended_s is None else datetime.fromtimestamp(job.ended_s, UTC),
        exit_code=_exit_code(state, job),
        node=node,
        heartbeat=heartbeat,
        share=share,
        last_lines=_last_lines(job, log) if state in ("waiting", "stopped", "failed") else (),
        next=_next_step(state, study, job, heartbeat),
    )


def _state_of(job: Job) -> str:
    if job.status == "FAILED" and job.exit_code == _INTERRUPTED:
        return "stopped"
    return {"PENDING": "waiting", "RUNNING": "running", "SUCCEEDED": "finished", "STOPPED": "stopped"}.get(
        job.status, "failed"
    )


def _exit_code(state: str, job: Job) -> int | None:
    if state == "failed":
        return _BAD_INPUT if job.exit_code == _BAD_INPUT else 1
    return {"finished": 0, "stopped": _INTERRUPTED}.get(state)


def _next_step(state: str, study: str, job: Job, heartbeat: Heartbeat | None) -> str:
    if state == "failed" and job.exit_code == _BAD_INPUT:
        return f"fix the reported errors, then `study submit` the file of {study} again"
    failures = heartbeat.failures if heartbeat is not None else ()
    if state == "failed" and failures and all(failure.is_repeated for failure in failures):
        return (
            f"`study logs {study}` has a traceback; another run fails the same way: fix the code or the study "
            "file, and `study submit` it again"
        )
    return {
        "waiting": "it starts when a node has room for it",
        "running": f"`study logs {study} --follow` shows its log, `study stop {study}` ends it",
        "finished": f"`study report {study} --store {without_secret(job.metadata.get('store', ''))}` writes its report",
        "stopped": f"`study resume {study}` continues it",
        "failed": f"`study logs {study}` shows its log, `study resume {study}` continues it",
    }[state]


def _last_lines(job: Job, log: str) -> tuple[str, ...]:
    """Return the driver's last lines of output, or Ray's message if the log is gone with its node."""
    lines = [uncoloured(line).rstrip() for line in log.splitlines()]
    own = [line for line in lines if line.strip() and not is_heartbeat(line) and not _is_rays_own(line)]
    if own:
        return tuple(own[-_LAST_LINES:])
    return tuple(job.message.strip().splitlines()[:_LAST_LINES])


def _is_rays_own(line: str) -> bool:
    return bool(_RAYS_OWN.fullmatch(line) or _STATE_DUMP.fullmatch(line))


def _tracking_uri(job: Job) -> str | None:
    try:
        uri = json.loads(job.metadata.get("options", "{}")).get("tracking_uri")
    except (ValueError, AttributeError):
        return None
    return without_secret(uncoloured(uri)) if isinstance(uri, str) else None


def _mean(numbers: Sequence[float]) -> float | None:
    return round(sum(numbers) / len(numbers), 1) if numbers else None
