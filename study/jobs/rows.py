"""Jobs, nodes and reservations, as the dashboard describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from study.visible import uncoloured

ENDED = ("STOPPED", "SUCCEEDED", "FAILED")
"""Ray's names of the final states of a job."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the cluster describes it.

    Args:
        id: its submission id.
        status: PENDING, RUNNING or one of `ENDED`.
        metadata: metadata of its submission. Everyone who may use the cluster can write there, so colours are
            removed and control characters escaped, except in the study's file (``spec``).
        message: Ray's message about it.
        exit_code: its command's exit code; None unless the command has ended by itself.
        began_s: time of submission, in seconds since 1970.
        ended_s: time of its end, in seconds since 1970; None while it runs.
        node_id: id of the node of its command.
        driver_id: Ray's id of the job's driver process; None before that connects to the cluster.
    """

    id: str
    status: str
    metadata: Mapping[str, str]
    message: str
    exit_code: int | None
    began_s: float
    ended_s: float | None
    node_id: str | None
    driver_id: str | None = None

    @property
    def ended(self) -> bool:
        """True if the job has ended."""
        return self.status in ENDED


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is alive.

    Args:
        id: Ray's id of the node.
        name: its host name.
        head: whether it is the head.
        cpus: number of CPUs by Ray's count.
        gpus: number of GPUs by Ray's count.
        cpu_percent: load of its cores.
        gpu_percent: load of each GPU that Ray sees; may be shorter than `gpus`.
    """

    id: str
    name: str
    head: bool
    cpus: float
    gpus: float
    cpu_percent: float | None
    gpu_percent: Sequence[float] = field(default=())


@dataclass(frozen=True, slots=True)
class Reservation:
    """Ray's reservation for a worker.

    Args:
        driver_id: Ray's id of the process that asked for it.
        cpus: number of cores.
        gpus: number of GPUs, or the share of one.
    """

    driver_id: str
    cpus: float
    gpus: float


def job_of(entry: Mapping[str, Any]) -> Job:
    """Parse the dashboard's entry of a job, and escape its texts, which any user of the cluster may have written.

    The study's file (metadata ``spec``) stays unchanged.

    Raises:
        KeyError: if the entry has no submission id or status.
    """
    ended = entry.get("end_time")
    return Job(
        id=_word(entry["submission_id"]),
        status=_word(entry["status"]),
        # The file is compared and run unchanged, and never shown.
        metadata={
            _word(name): str(value) if name == "spec" else _word(value)
            for name, value in (entry.get("metadata") or {}).items()
        },
        message=uncoloured(str(entry.get("message") or "")),
        exit_code=entry.get("driver_exit_code"),
        began_s=(entry.get("start_time") or 0) / 1000,
        ended_s=ended / 1000 if ended else None,
        node_id=entry.get("driver_node_id"),
        driver_id=entry.get("job_id"),
    )


def _word(value: object) -> str:
    """Return a value as one line without control characters."""
    return uncoloured(str(value)).replace("\n", " ")


def node_of(entry: Mapping[str, Any]) -> Node:
    """Parse the dashboard's entry of a node.

    Raises:
        KeyError: if the entry has no raylet, or the raylet no id.
    """
    raylet = entry["raylet"]
    total = raylet.get("resourcesTotal") or {}
    gpu_percent = [gpu.get("utilizationGpu") for gpu in entry.get("gpus") or ()]
    return Node(
        id=str(raylet["nodeId"]),
        name=_word(entry.get("hostname") or raylet.get("nodeManagerAddress") or ""),
        head=bool(raylet.get("isHeadNode")),
        cpus=float(total.get("CPU", 0)),
        gpus=float(total.get("GPU", 0)),
        cpu_percent=entry.get("cpu"),
        gpu_percent=tuple(float(percent) for percent in gpu_percent if percent is not None),
    )


def reservation_of(entry: Mapping[str, Any]) -> Reservation:
    """Parse the dashboard's entry of a placement group."""
    bundles = [bundle.get("unit_resources") or {} for bundle in entry.get("bundles") or ()]
    cpus, gpus = (sum(float(bundle.get(name, 0)) for bundle in bundles) for name in ("CPU", "GPU"))
    return Reservation(str(entry.get("creator_job_id")), cpus, gpus)
