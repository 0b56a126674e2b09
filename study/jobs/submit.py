"""From a study to a job of a cluster: checked first, and started once, however many submit it."""

from __future__ import annotations

import getpass
import json
import re
import shlex
import socket
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from study.driver.heartbeat import IN_JOB
from study.errors import ClusterError, InputError, UnknownStudyError, nearest
from study.jobs.address import parse_address, token
from study.jobs.client import Client, TakenError, connect
from study.jobs.rows import Job, Node
from study.settings import check_no_secret
from study.visible import uncoloured

STOP_WAIT_S = 120
"""Seconds that a study has to keep checkpoints and to publish, when it is asked to stop."""

_FILE = "study.yaml"
_TRIES = 20
_NODE_ID = "ray.io/node-id"


@dataclass(frozen=True, slots=True)
class Order:
    """A study, and how a cluster is to run it; all that `resume` needs.

    Args:
        study: its name.
        spec: its file's text.
        store: absolute path or URL.
        tracking_uri: MLflow server, ``off``, or None for what the cluster's own settings say.
        engine: name in `ENGINES`, or ``auto``.
        device: ``cpu``, ``cuda`` or ``auto``.
        pack_size: trials in a pack; None to choose.
        workers: to ask the cluster for; None for as many as it has room for.
        packs_per_gpu: packs that share one GPU.
        checkpoint_every_s: seconds of training between checkpoints.
        silent_after_s: seconds without a word after which a worker is given up.
        optuna_storage: of a search, database for Optuna's dashboard, ``off``, or None for what the cluster's own
            settings say.
        yes: whether more than 100,000 trials are meant.
    """

    study: str
    spec: str
    store: str
    tracking_uri: str | None = None
    engine: str = "auto"
    device: str = "auto"
    pack_size: int | None = None
    workers: int | None = None
    packs_per_gpu: int = 1
    checkpoint_every_s: float = 60.0
    silent_after_s: float = 300.0
    optuna_storage: str | None = None
    yes: bool = False

    @property
    def entrypoint(self) -> str:
        """Give the job's command: the driver, and what watches over it.

        Example:
            >>> Order("demo", "study: demo", "s3://bucket/studies", yes=True).entrypoint
            'python -P -m study keep -- run study.yaml --address auto --store s3://bucket/studies --engine auto
            --device auto --packs-per-gpu 1 --checkpoint-every-s 60.0 --silent-after-s 300.0 --yes'
        """
        given = {
            "--store": self.store,
            "--tracking-uri": self.tracking_uri,
            "--engine": self.engine,
            "--device": self.device,
            "--pack-size": self.pack_size,
            "--workers": self.workers,
            "--packs-per-gpu": self.packs_per_gpu,
            "--checkpoint-every-s": self.checkpoint_every_s,
            "--silent-after-s": self.silent_after_s,
            "--optuna-storage": self.optuna_storage,
        }
        words = ["python", "-P", "-m", "study", "keep", "--", "run", _FILE, "--address", "auto"]
        for option, value in given.items():
            words += [] if value is None else [option, str(value)]
        return shlex.join([*words, "--yes"] if self.yes else words)

    @property
    def metadata(self) -> dict[str, str]:
        """Give what the job says about itself."""
        options = {k: v for k, v in asdict(self).items() if k not in ("study", "spec", "store")}
        return {
            "study": self.study,
            "store": self.store,
            "spec": self.spec,
            "options": json.dumps(options),
            "user": _user(),
            "host": socket.gethostname(),
        }


@dataclass(frozen=True, slots=True)
class Submission:
    """What became of a submission.

    Args:
        job_id: that runs the study.
        before: the job that was running it already; None if this submission started it.
        same_file: whether that one was submitted with the same file.
    """

    job_id: str
    before: Job | None = None
    same_file: bool = True


def order(study: str, spec: str, store: str, **options: object) -> Order:
    """Make an order, after a look at what a cluster can't know the meaning of.

    Args:
        study: its name.
        spec: its file's text.
        store: absolute path or URL.
        options: as `Order` has them.

    Raises:
        InputError: if an address is a relative path, or holds a password.

    Example:
        >>> order("demo", "study: demo", "studies")
        Traceback (most recent call last):
        ...
        study.errors.InputError: --store must be a URL or an absolute path for a cluster, which works elsewhere, but
        got 'studies'; set it with --store, STUDY_STORE or in study.toml
    """
    made = Order(study, spec, store.rstrip("/") or store, **options)  # type: ignore[arg-type]
    check_no_secret(made.store, "--store")
    if "://" not in store and not store.startswith("/"):
        raise InputError(
            f"--store must be a URL or an absolute path for a cluster, which works elsewhere, but got {store!r}; "
            "set it with --store, STUDY_STORE or in study.toml"
        )
    if made.optuna_storage is not None:
        check_no_secret(made.optuna_storage, "--optuna-storage")
    if made.tracking_uri is not None:
        check_no_secret(made.tracking_uri, "--tracking-uri")
        relative = re.match(r"sqlite:///(?!/)", made.tracking_uri) or "://" not in made.tracking_uri
        if made.tracking_uri != "off" and relative:
            raise InputError(
                f"--tracking-uri must be a server's URL or 'off' for a cluster, but got {made.tracking_uri!r}"
            )
    return made


def connect_to_run(text: str, notify: Callable[[str], None], *, without_token: bool = False) -> Client:
    """Reach a cluster to run something there, unless others can reach it and it lets everybody run anything.

    Args:
        text: address of its dashboard.
        notify: called with what to beware of.
        without_token: the user has said that it is meant.

    Raises:
        InputError: if there is no token here, or if the cluster asks for none.
        ClusterError: if it can't be reached.

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
            "~/.ray/auth_token (readable by you alone), or name its file in RAY_AUTH_TOKEN_PATH; or say --without-token"
        )
    client = connect(address, notify)
    if not client.asks_for_token():
        raise InputError(
            f"{address.url} answers without a token: anyone who reaches it can run code there. Start the cluster with "
            "RAY_AUTH_MODE=token, or say --without-token"
        )
    return client


def submit(client: Client, order: Order, notify: Callable[[str], None]) -> Submission:
    """Submit a study, unless it is running on this cluster for the same store.

    The job's id is the study's name and the count of its jobs so far, and the cluster takes an id once. So of two that
    submit at once one is refused, looks again, and finds the other's job.

    Args:
        client: connected.
        order: checked.
        notify: called with what to beware of.

    Raises:
        InputError: if the cluster has no room for a pack now, and nobody says how far it grows.
        ClusterError: if the cluster can't be reached, or refuses.
    """
    nodes = client.nodes()
    for warning in _warnings(order, nodes):
        notify(warning)
    for _ in range(_TRIES):
        jobs = of_study(client.jobs(), order.study)
        running = [job for job in jobs if not job.ended and job.metadata.get("store") == order.store]
        if running:
            return Submission(running[-1].id, running[-1], running[-1].metadata.get("spec") == order.spec)
        _check_room(order, nodes)
        job_id = f"study-{order.study}-{1 + max((_number(job) for job in jobs), default=-1)}"
        with tempfile.TemporaryDirectory(prefix="study-submit-") as folder:
            Path(folder, _FILE).write_text(order.spec, encoding="utf-8")
            try:
                client.submit(
                    job_id,
                    order.entrypoint,
                    metadata=order.metadata,
                    environment={IN_JOB: "1", "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_WAIT_S)},
                    folder=folder,
                    node_label=_away_from_head(nodes),
                )
            except TakenError:
                continue
        return Submission(job_id)
    raise ClusterError(f"{_TRIES} others submitted {order.study!r} at the same moment: try again")


def again(job: Job) -> Order:
    """Give the order that a job was submitted with.

    Raises:
        InputError: if it doesn't tell; then the study's file is needed.

    Example:
        >>> made = Order("demo", "study: demo", "/shared", pack_size=8)
        >>> again(Job("study-demo-0", "STOPPED", made.metadata, "", None, 0.0, None, None)) == made
        True
    """
    known = {field.name for field in fields(Order)} - {"study", "spec", "store"}
    try:
        options = json.loads(job.metadata["options"])
        told = {name: options[name] for name in known if name in options}
        told |= {name: uncoloured(value) for name, value in told.items() if isinstance(value, str)}
        return order(job.metadata["study"], job.metadata["spec"], job.metadata["store"], **told)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"job {job.id} doesn't say how it was submitted ({error!r}): submit the study's file again"
        ) from error


def of_study(jobs: Sequence[Job], study: str) -> list[Job]:
    """Give the jobs of one study, the oldest first."""
    return [job for job in jobs if job.metadata.get("study") == study and job.id.startswith(f"study-{study}-")]


def check_known(jobs: Sequence[Job], study: str, url: str) -> None:
    """Make sure that a cluster knows a study.

    Raises:
        UnknownStudyError: if not, naming the nearest.
    """
    names = sorted({job.metadata["study"] for job in jobs if "study" in job.metadata})
    if study in names:
        return
    if not names:
        hint = "; it has had none since its head was started: `study submit FILE` goes on from the store"
    else:
        hint = nearest(study, names) or f"; there is {', '.join(names[:5])}"
    raise UnknownStudyError(f"no study {study!r} on {url}{hint}")


def _away_from_head(nodes: Sequence[Node]) -> dict[str, str] | None:
    """Keep the driver off the head, which has enough to do, if there is another node."""
    heads = [node for node in nodes if node.head]
    return {_NODE_ID: f"!{heads[0].id}"} if heads and len(nodes) > 1 else None


def _check_room(order: Order, nodes: Sequence[Node]) -> None:
    """Make sure that packs have room, now or on nodes that they are to bring up: else the driver would fail at once."""
    cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
    has_room = cpus >= 1 and (order.device != "cuda" or gpus > 0)
    if order.workers is None and not has_room:
        wanted = "1 CPU and a GPU" if order.device == "cuda" else "1 CPU"
        raise InputError(
            f"a pack needs {wanted}, but the cluster has {cpus:g} CPU and {gpus:g} GPU now; if it grows on demand, "
            "say how far: --workers 16"
        )


def _warnings(order: Order, nodes: Sequence[Node]) -> list[str]:
    warnings = []
    if len(nodes) > 1 and "://" not in order.store:
        warnings.append(f"all {len(nodes)} nodes must see the folder {order.store}: `study doctor` checks that")
    if len(nodes) > 1 and re.match(r"https?://(localhost|127\.|\[::1\])", order.tracking_uri or ""):
        warnings.append(f"{order.tracking_uri} is each node's own: only the driver's node will look there")
    return warnings


def _number(job: Job) -> int:
    """Count a job among its study's."""
    last = job.id.rpartition("-")[2]
    return int(last) if last.isascii() and last.isdigit() else -1


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without a name for its user
        return "unknown"
