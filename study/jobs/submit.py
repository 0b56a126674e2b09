"""Submission of studies as jobs of a cluster: checked first, and started once, however many submit them."""

from __future__ import annotations

import getpass
import json
import re
import shlex
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from study.driver.heartbeat import IN_JOB
from study.driver.options import TRAINING_OPTIONS
from study.driver.repository import REPOSITORY
from study.errors import ClusterError, InputError, UnknownStudyError, nearest
from study.jobs.address import parse_address, token
from study.jobs.client import Client, TakenError, connect
from study.jobs.rows import Job, Node
from study.settings import check_no_secret, flag
from study.source import digest_of
from study.visible import uncoloured

STOP_WAIT_S = 120
"""Seconds for saving checkpoints and publishing after a request to stop."""

_FILE = "study.yaml"
_TRIES = 20
_NODE_ID = "ray.io/node-id"
_DIGEST = re.compile("[0-9a-f]{64}")


JOB_OPTIONS = ("tracking_uri", *TRAINING_OPTIONS, "optuna_storage", "yes")
"""Options of `study run` that a job gets, besides the store."""


@dataclass(frozen=True, slots=True)
class Order:
    """A study with the options for its run on a cluster: all that `resume` needs.

    Args:
        study: the study's name.
        spec: text of its file.
        store: absolute path or URL.
        options: values of `JOB_OPTIONS` by name; for None or a missing one, the cluster's own settings apply.
        code: files of the study's own code and data by name, laid beside its file.
        code_copy: digest of the store's copy of these files; empty without own code, or if `code` has the files.
        repository: fields of the user's repository, for the provenance of results.
    """

    study: str
    spec: str
    store: str
    options: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    code_copy: str = ""
    repository: Mapping[str, Any] = field(default_factory=dict)

    @property
    def entrypoint(self) -> str:
        """The job's command: the driver, and the program that restarts it.

        Example:
            >>> Order("demo", "study: demo", "s3://bucket/studies", {"workers": 4, "yes": True}).entrypoint
            'python -P -m study keep -- run study.yaml --address auto --store s3://bucket/studies --workers 4 --yes'
        """
        words = ["python", "-P", "-m", "study", "keep", "--", "run", _FILE, "--address", "auto"]
        words += ["--store", self.store]
        if self.code_copy:
            words += ["--code-copy", f"{self.study}/{self.code_copy}"]
        for name in JOB_OPTIONS:
            value = self.options.get(name)
            if value is True:
                words.append(flag(name))
            elif value is not None and value is not False:  # 0.0 == False, and is a value
                words += [flag(name), str(value)]
        return shlex.join(words)

    @property
    def metadata(self) -> dict[str, str]:
        """Texts that describe the job on the cluster."""
        code = digest_of(self.code) if self.code else self.code_copy
        return {
            "study": self.study,
            "store": self.store,
            "spec": self.spec,
            "options": json.dumps(dict(self.options)),
            **({"code": code} if code else {}),
            **({"repository": json.dumps(dict(self.repository))} if self.repository else {}),
            "user": _user_name(),
            "host": socket.gethostname(),
        }


@dataclass(frozen=True, slots=True)
class Submission:
    """The result of a submission.

    Args:
        job_id: id of the job that runs the study.
        before: the job that was already running it; None if this submission started one.
        same_file: whether that job was submitted with the same file.
    """

    job_id: str
    before: Job | None = None
    same_file: bool = True


def make_order(
    study: str,
    spec: str,
    store: str,
    code: Mapping[str, bytes] | None = None,
    repository: Mapping[str, Any] | None = None,
    **options: Any,
) -> Order:
    """Make an order, after checking that its store and MLflow server mean the same on a cluster as here.

    Args:
        study: the study's name.
        spec: text of its file.
        store: absolute path or URL; slashes at its end are dropped.
        code: files of the study's own code by name; None without any.
        repository: fields of the user's repository; None without one.
        options: as in `Order`.

    Raises:
        InputError: if the store is a relative path, if ``tracking_uri`` is neither ``off`` nor a URL with
            ``://``, or is an SQLite file's with a relative path, or if an address holds a password.

    Example:
        >>> make_order("demo", "study: demo", "studies")
        Traceback (most recent call last):
        ...
        study.errors.InputError: --store must be a URL or an absolute path for a cluster, but got
        'studies'; set it with --store, STUDY_STORE or in study.toml
    """
    check_no_secret(store, "--store")
    if "://" not in store and not store.startswith("/"):
        raise InputError(
            f"--store must be a URL or an absolute path for a cluster, but got {store!r}; "
            "set it with --store, STUDY_STORE or in study.toml"
        )
    for name in ("optuna_storage", "tracking_uri"):
        if options.get(name) is not None:
            check_no_secret(options[name], flag(name))
    uri = options.get("tracking_uri")
    if uri not in (None, "off") and (re.match(r"sqlite:///(?!/)", uri) or "://" not in uri):
        raise InputError(f"--tracking-uri must be a server's URL or 'off' for a cluster, but got {uri!r}")
    return Order(study, spec, store.rstrip("/") or store, options, code or {}, repository=repository or {})


def connect_to_run(text: str, notify: Callable[[str], None], *, without_token: bool = False) -> Client:
    """Connect to a cluster to run something there, unless others can reach it without a token.

    Args:
        text: address of the cluster's dashboard.
        notify: called with warnings.
        without_token: whether the user accepts a cluster that asks for no token.

    Raises:
        InputError: if the address isn't a dashboard's or holds a password, or the token's file can't be read; or if
            there is no token here or the cluster asks for none, except on this machine or with `without_token`.
        MissingPackageError: if Ray isn't installed here in a supported version, with its extras.
        ClusterError: if it can't be reached, a token is missing or refused, or it isn't a Ray dashboard of a supported
            version.

    Example:
        >>> connect_to_run("head:6379", print)
        Traceback (most recent call last):
        ...
        study.errors.InputError: --cluster must be the address of Ray's dashboard, such as http://HEAD:8265, but got
        'head:6379'
    """
    address = parse_address(text)
    if address.is_loopback or without_token:
        return connect(address, notify)
    if token() is None:
        raise InputError(
            f"{address.url} is reached over a network, and there is no token here: put the cluster's into "
            "~/.ray/auth_token (readable by you alone), name its file in RAY_AUTH_TOKEN_PATH, or pass --without-token"
        )
    client = connect(address, notify)
    if not client.asks_for_token():
        raise InputError(
            f"{address.url} answers without a token: anyone who reaches it can run code there. Start the cluster with "
            "RAY_AUTH_MODE=token, or pass --without-token"
        )
    return client


def submit(client: Client, order: Order, notify: Callable[[str], None]) -> Submission:
    """Submit a study, unless it is running on this cluster for the same store.

    The job's id is the study's name and the next number after its earlier jobs; the cluster accepts an id once. If two
    submit at once, one is refused, reads the jobs again, and finds the other's.

    Args:
        client: a connected client.
        order: the study and its options.
        notify: called with warnings.

    Returns:
        The new job, or the last one that runs the study for that store.

    Raises:
        InputError: if a job is needed, the cluster has no room for a pack now, and the order doesn't give a number of
            workers.
        ClusterError: if the cluster can't be reached or refuses the job, if the connection breaks off (the job may have
            been accepted then), or if 20 others submit this study at the same time.
        OSError: if the files for the upload can't be written to a temporary folder.
    """
    nodes = client.nodes()
    for warning in _warnings(order, nodes):
        notify(warning)
    for _ in range(_TRIES):
        jobs = of_study(client.jobs(), order.study)
        running = [job for job in jobs if not job.ended and job.metadata.get("store") == order.store]
        if running:
            return Submission(running[-1].id, running[-1], _is_same(running[-1].metadata, order.metadata))
        _check_room(order, nodes)
        job_id = f"study-{order.study}-{1 + max((_job_number(job) for job in jobs), default=-1)}"
        with tempfile.TemporaryDirectory(prefix="study-submit-") as folder:
            Path(folder, _FILE).write_text(order.spec, encoding="utf-8")
            for name, content in order.code.items():
                Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, name).write_bytes(content)
            try:
                client.submit(
                    job_id,
                    order.entrypoint,
                    metadata=order.metadata,
                    environment={
                        IN_JOB: "1",
                        "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_WAIT_S),
                        REPOSITORY: json.dumps(dict(order.repository)),
                    },
                    folder=folder,
                    node_label=_away_from_head(nodes),
                )
            except TakenError:
                continue
        return Submission(job_id)
    raise ClusterError(f"{_TRIES} others submitted {order.study!r} at the same time: try again")


def order_of(job: Job) -> Order:
    """Return the order that a job was submitted with; its code and data are the store's copies.

    Raises:
        InputError: if the job's metadata don't contain a valid order; the study's file is needed then.

    Example:
        >>> before = Order("demo", "study: demo", "/shared", {"pack_size": 8})
        >>> order_of(Job("study-demo-0", "STOPPED", before.metadata, "", None, 0.0, None, None)) == before
        True
    """
    try:
        code_copy = job.metadata.get("code", "")
        if code_copy and not _DIGEST.fullmatch(code_copy):
            raise ValueError(f"code must be a digest, but is {code_copy!r}")
        submitted = json.loads(job.metadata["options"])
        options = {name: submitted[name] for name in JOB_OPTIONS if name in submitted}
        options |= {name: uncoloured(value) for name, value in options.items() if isinstance(value, str)}
        repository = json.loads(job.metadata.get("repository", "{}"))
        order = make_order(
            job.metadata["study"], job.metadata["spec"], job.metadata["store"], repository=repository, **options
        )
        return replace(order, code_copy=code_copy)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"job {job.id} has no record of its submission ({error!r}): submit the study's file again"
        ) from error


def of_study(jobs: Sequence[Job], study: str) -> list[Job]:
    """Return the jobs of one study, in the given order."""
    return [job for job in jobs if job.metadata.get("study") == study and job.id.startswith(f"study-{study}-")]


def check_known(jobs: Sequence[Job], study: str, url: str) -> None:
    """Check that a cluster has jobs of a study.

    Raises:
        UnknownStudyError: if not; the message names the most similar study, or else up to five.
    """
    names = sorted({job.metadata["study"] for job in jobs if "study" in job.metadata})
    if study in names:
        return
    if not names:
        hint = "; it has had no studies since its head started: `study submit FILE` continues from the store"
    else:
        hint = nearest(study, names) or f"; choose from {', '.join(names[:5])}"
    raise UnknownStudyError(f"no study {study!r} on {url}{hint}")


def _away_from_head(nodes: Sequence[Node]) -> dict[str, str] | None:
    """Return a label that keeps the driver off the busy head; None if there isn't another node."""
    heads = [node for node in nodes if node.head]
    return {_NODE_ID: f"!{heads[0].id}"} if heads and len(nodes) > 1 else None


def _check_room(order: Order, nodes: Sequence[Node]) -> None:
    """Raise InputError unless packs have room now or a number of workers is given, so that nodes may be added."""
    cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
    needs_gpu = order.options.get("device") == "cuda"
    has_room = cpus >= 1 and (gpus > 0 or not needs_gpu)
    if order.options.get("workers") is None and not has_room:
        needs = "1 CPU and a GPU" if needs_gpu else "1 CPU"
        raise InputError(
            f"a pack needs {needs}, but the cluster has {cpus:g} CPU and {gpus:g} GPU now; if it grows on demand, "
            "give the number of workers: --workers 16"
        )


def _warnings(order: Order, nodes: Sequence[Node]) -> list[str]:
    warnings, uri = [], order.options.get("tracking_uri") or ""
    if len(nodes) > 1 and "://" not in order.store:
        warnings.append(f"all {len(nodes)} nodes must see the folder {order.store}: `study doctor` checks that")
    if len(nodes) > 1 and re.match(r"https?://(localhost|127\.|\[::1\])", uri):
        warnings.append(f"{uri} means each node itself: only the server on the driver's node is used")
    return warnings


def _is_same(metadata: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return True if two jobs were submitted with the same file and code."""
    return all(metadata.get(name) == other.get(name) for name in ("spec", "code"))


def _job_number(job: Job) -> int:
    """Return a job's number among those of its study; -1 if its id has none."""
    last = job.id.rpartition("-")[2]
    return int(last) if last.isascii() and last.isdigit() else -1


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may lack a name for its user
        return "unknown"
