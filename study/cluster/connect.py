"""Ray started here, or a cluster joined: what it has, what its nodes say, and that they run what the driver runs."""

from __future__ import annotations

import gc
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from study import versions
from study.errors import ClusterError

_Answer = TypeVar("_Answer")

_CONNECT_TIMEOUT_S = 5.0
# A node may have to be started first.
_ANSWER_TIMEOUT_S = 600.0
_OBJECT_STORE_BYTES = 128 * 2**20

# Read when Ray is imported: no usage reports, no CSV, JSON and TensorBoard files of each trial, no state
# snapshots; and signals are ours to handle.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "86400",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


@dataclass(frozen=True)
class Capacity:
    """What a cluster has now.

    Args:
        cpus: cores.
        gpus: GPUs.
        cpus_without_gpu: cores of the nodes that have no GPU.
    """

    cpus: int
    gpus: float
    cpus_without_gpu: int


@contextmanager
def connection(address: str | None, cpus: int | None) -> Iterator[None]:
    """Start Ray on this machine, or connect to a running cluster, and leave it at the end.

    Args:
        address: of a running cluster; None to start one here.
        cpus: cores of this machine to use; None for all. Not used with an address.

    Raises:
        ClusterError: if the cluster can't be started or reached.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    if address is not None:
        _check_reachable(address)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    own: dict[str, Any] = (
        {
            "address": "local",
            "num_cpus": cpus,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
        if address is None
        else {"address": address}
    )
    try:
        ray.init(logging_level=logging.ERROR, log_to_driver=False, namespace="study", **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = "on this machine" if address is None else f"at {address}"
        hint = (
            ""
            if address is None
            else "; if the cluster asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        )
        raise ClusterError(f"Ray can't be started or reached {where}: {error}{hint}") from error
    try:
        yield
    finally:
        gc.collect()  # handles of Ray that die after it has shut down end the process
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Try the address first: Ray itself tries for minutes, and says little."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # such as "auto": Ray knows what is meant
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise ClusterError(f"no Ray cluster answers at {address}: {error}; check --address") from error


def capacity() -> Capacity:
    """Count what the nodes of the connected cluster have."""
    have = [node["Resources"] for node in _nodes()]
    return Capacity(
        cpus=sum(int(one.get("CPU", 0)) for one in have),
        gpus=sum(one.get("GPU", 0.0) for one in have),
        cpus_without_gpu=sum(int(one.get("CPU", 0)) for one in have if not one.get("GPU")),
    )


def node_ids() -> set[str]:
    """Name the nodes that are alive."""
    return {node["NodeID"] for node in _nodes()}


def _nodes() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def check_versions() -> None:
    """Check that every node of the connected cluster runs what this process runs.

    Raises:
        ClusterError: naming the node and both versions, if one doesn't.
    """
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ours = versions.versions()
    asked = ray.remote(lambda: versions.versions())
    for node in _nodes():
        there = f"node {node['NodeManagerAddress']} ({node['NodeManagerHostname']})"
        pinned = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        try:
            placed = asked.options(num_cpus=0, max_retries=0, scheduling_strategy=pinned)
            theirs = ray.get(placed.remote(), timeout=_ANSWER_TIMEOUT_S)
        except RayError as error:
            said = str(error).strip().splitlines()[-1]
            raise ClusterError(
                f"{there} can't run this package: {said}; install the driver's version {ours['seeded-study']} there"
            ) from error
        apart = versions.difference(ours, theirs)
        if apart is not None:
            raise ClusterError(f"{there} doesn't run what the driver runs: {apart}; nothing was started")


def ask(question: Callable[[], _Answer], gpu_share: float) -> _Answer:
    """Have a worker of the connected cluster answer, one with a GPU if packs need it.

    Args:
        question: travels to the worker.
        gpu_share: share of a GPU that it takes.

    Raises:
        ClusterError: if no worker does.
    """
    import ray
    from ray.exceptions import RayError

    asked = ray.remote(lambda: question()).options(num_cpus=1, num_gpus=gpu_share)
    try:
        answer: _Answer = ray.get(asked.remote(), timeout=_ANSWER_TIMEOUT_S)
    except RayError as error:
        raise ClusterError(f"no worker of the cluster answers: {error}") from error
    return answer
