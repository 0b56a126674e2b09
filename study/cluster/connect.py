"""Connection to Ray, started here or elsewhere: its resources, and checks of its nodes."""

from __future__ import annotations

import gc
import logging
import os
import socket
import sysconfig
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from study import environment
from study.errors import ClusterError, StudyError

_Answer = TypeVar("_Answer")

_CONNECT_TIMEOUT_S = 5.0
_LOOK_AT_HEAD_S = 5.0
_HEAD_IS_AWAY = (
    "the cluster's head at {address} doesn't answer. If it stays away for a minute, this run ends; what is done and "
    "the checkpoints are kept: start the cluster again, and run the study again"
)
_HEAD_IS_BACK = "the cluster's head answers again"
# Starting a node may take this long.
_ANSWER_TIMEOUT_S = 600.0
_OBJECT_STORE_BYTES = 128 * 2**20

# Ray reads these on import. They switch off usage reports, trials' files (CSV, JSON, TensorBoard), snapshots of Ray's
# state, and its signal handler. Workers on machines that don't answer get one minute to end, not ten.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_FORCE_TRIAL_CLEANUP_S": "60",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "86400",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


@dataclass(frozen=True)
class Capacity:
    """The resources of a cluster's live nodes, free or in use.

    Args:
        cpus: number of cores.
        gpus: number of GPUs.
        cpus_without_gpu: number of cores on nodes without a GPU.
    """

    cpus: int
    gpus: float
    cpus_without_gpu: int


@contextmanager
def connection(address: str | None, cpus: int | None) -> Iterator[None]:
    """Start Ray on this machine, or connect to a running cluster; disconnect at the end.

    Environment variables that Ray needs are set in this process, and stay. If Ray starts here, other users lose access
    to the file of its token.

    Args:
        address: address of a running cluster; None to start one here.
        cpus: number of this machine's cores to use; None for all. Ignored with an address.

    Raises:
        ClusterError: if the cluster can't be started or reached.
        ImportError: if Ray isn't installed.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    # Child processes must not import from the working folder.
    os.environ["PYTHONSAFEPATH"] = "1"
    logging.getLogger("ray.widgets").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        # Ray warns in a notebook without ipywidgets, which isn't needed here.
        warnings.filterwarnings("ignore", message="IProgress not found")
        import ray

    if address is None:
        _ask_for_token()
    else:
        _check_reachable(address)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    own: dict[str, Any] = (
        {"address": "local", "num_cpus": cpus, "include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
        if address is None
        else {"address": address}
    )
    try:
        with warnings.catch_warnings():
            # JAX warns of each fork, but Ray's forked processes become other programs at once.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            ray.init(logging_level=logging.ERROR, log_to_driver=False, namespace="study", job_config=_job(), **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = "on this machine" if address is None else f"at {address}"
        hint = (
            "" if address is None else "; if the cluster asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        )
        raise ClusterError(f"Ray can't be started or reached {where}: {error}{hint}") from error
    if address is None:
        _close_token()
    try:
        yield
    finally:
        gc.collect()  # Ray handles that are freed after its shutdown would end the process
        ray.shutdown()


def _job() -> Any:
    """Return Ray's configuration of this driver, with the folders that workers import from first.

    By default, Ray adds the driver's working folder, where a `tasks.py` would hide this package's. Workers need only
    the folder of this package, unless it is installed.
    """
    from ray.job_config import JobConfig

    class CleanJobConfig(JobConfig):
        def _runtime_env_has_working_dir(self) -> bool:
            return True  # Ray calls this only before it adds the working folder

    package = str(Path(__file__).resolve().parents[2])
    installed = package in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return CleanJobConfig(_py_driver_sys_path=[] if installed else [package])


def _ask_for_token() -> None:
    """Make a local cluster require a token, as Ray 2.59 and later do by default; no-op if RAY_AUTH_MODE is set."""
    import ray

    raylet: Any = ray._raylet
    if "RAY_AUTH_MODE" not in os.environ and tuple(map(int, ray.__version__.split(".")[:2])) < (2, 59):
        os.environ["RAY_AUTH_MODE"] = "token"
        raylet.Config.initialize("")  # read again, since Ray may have been imported before


def _close_token() -> None:
    """Hide Ray's token from other users: its file is readable by all, and it permits running code."""
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()
    with suppress(OSError):
        mode = path.stat().st_mode
        if mode & 0o077:
            path.chmod(mode & 0o700)


def _check_reachable(address: str) -> None:
    """Raise ClusterError if a HOST:PORT doesn't answer; Ray itself would try for minutes, with unclear errors."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # such as "auto", which Ray resolves
    try:
        _try_to_connect(host, int(port))
    except OSError as error:
        raise ClusterError(f"no Ray cluster answers at {address}: {error}; check --address") from error


@contextmanager
def watching_head(notify: Callable[[str], None]) -> Iterator[None]:
    """Report if the connected cluster's head stops answering, and if it answers again.

    If it stays away for a minute, Ray ends this process.

    Args:
        notify: called with a sentence, in another thread.
    """
    import ray

    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    over = threading.Event()

    def watch() -> None:
        away = False
        while not over.wait(_LOOK_AT_HEAD_S):
            answers = _answers(host, int(port))
            if answers == away:
                notify(_HEAD_IS_BACK if answers else _HEAD_IS_AWAY.format(address=f"{host}:{port}"))
            away = not answers

    thread = threading.Thread(target=watch, name="head", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _answers(host: str, port: int) -> bool:
    try:
        _try_to_connect(host, port)
    except OSError:
        return False
    return True


def _try_to_connect(host: str, port: int) -> None:
    socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()


def capacity() -> Capacity:
    """Return the resources of the connected cluster's live nodes, free or in use."""
    resources = [node["Resources"] for node in _nodes()]
    return Capacity(
        cpus=sum(int(node.get("CPU", 0)) for node in resources),
        gpus=sum(node.get("GPU", 0.0) for node in resources),
        cpus_without_gpu=sum(int(node.get("CPU", 0)) for node in resources if not node.get("GPU")),
    )


def node_lives(node_id: str) -> bool:
    """Return True if a node is alive and its raylet answers; the head learns of a node's death late."""
    return any(
        _answers(node["NodeManagerAddress"], node["NodeManagerPort"]) for node in _nodes() if node["NodeID"] == node_id
    )


def _nodes() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def check_versions() -> None:
    """Check that every node of the connected cluster has the same versions as this process.

    Raises:
        ClusterError: if a node differs or can't answer; the message names nodes and versions.
    """
    ours = environment.versions()
    names = {node["NodeID"]: f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})" for node in _nodes()}
    wrong = []
    for node_id, theirs in ask_each(lambda: environment.versions(), _ANSWER_TIMEOUT_S):
        if isinstance(theirs, ClusterError):
            wrong.append(f"{names.get(node_id, node_id)} can't run this package: {theirs}")
        elif (difference := environment.difference(ours, theirs)) is not None:
            wrong.append(f"{names.get(node_id, node_id)} has other versions than the driver: {difference}")
    if wrong:
        raise ClusterError(f"{'; '.join(wrong)}. Nothing was started: install the driver's versions there")


def ask(question: Callable[[], _Answer], gpu_share: float) -> _Answer:
    """Call a function on a worker of the connected cluster, and return its result.

    Args:
        question: the function to send to the worker.
        gpu_share: share of a GPU that it needs; 0 for none.

    Raises:
        ClusterError: if there is no result within ten minutes, no worker answers, or the function raises any other
            error.
        StudyError: if the function raises it.
    """
    import ray
    from ray.exceptions import GetTimeoutError, RayError, RayTaskError

    task = ray.remote(lambda: question()).options(num_cpus=1, num_gpus=gpu_share)
    try:
        answer: _Answer = ray.get(task.remote(), timeout=_ANSWER_TIMEOUT_S)
    except GetTimeoutError as error:
        resource = "GPU" if gpu_share else "core"
        raise ClusterError(
            f"no {resource} of the cluster was free for {_ANSWER_TIMEOUT_S / 60:.0f} minutes: run the study again when "
            "others have ended"
        ) from error
    except RayTaskError as error:
        if isinstance(error.cause, StudyError):
            raise error.cause from error
        raise ClusterError(f"a worker of the cluster fails: {error.cause!r}") from error
    except RayError as error:
        raise ClusterError(f"no worker of the cluster answers: {error}") from error
    return answer


def ask_each(question: Callable[[], _Answer], timeout_s: float) -> list[tuple[str, _Answer | ClusterError]]:
    """Call a function on every node of the connected cluster.

    Args:
        question: the function to send to the nodes.
        timeout_s: seconds to wait for all nodes together; each node gets at least 5 s.

    Returns:
        Each node's id with the function's result, or with the error if there is none.
    """
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(lambda: question())
    nodes = _nodes()
    pending = []
    for node in nodes:
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        pending.append(task.options(num_cpus=0, max_retries=0, scheduling_strategy=there).remote())
    answers: list[tuple[str, _Answer | ClusterError]] = []
    until = time.monotonic() + timeout_s
    for node, answer in zip(nodes, pending, strict=True):
        try:
            left_s = max(_CONNECT_TIMEOUT_S, until - time.monotonic())
            answers.append((node["NodeID"], ray.get(answer, timeout=left_s)))
        except RayError as error:
            message = (str(error).strip() or type(error).__name__).splitlines()[-1]
            answers.append((node["NodeID"], ClusterError(f"it doesn't answer: {message}")))
    return answers
