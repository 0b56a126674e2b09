"""Jobs and nodes, as the dashboard knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from study.visible import uncoloured

ENDED = ("STOPPED", "SUCCEEDED", "FAILED")
"""How Ray calls the states that a job doesn't leave."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the cluster knows it.

    Args:
        id: its submission id.
        status: PENDING, RUNNING or one of `ENDED`.
        metadata: as it was submitted, without control characters but in the study's file (``spec``); written by whoever
            may use the cluster.
        message: what Ray says of it.
        exit_code: of its command, once it ended by itself.
        began_s: when it was submitted, in seconds since 1970.
        ended_s: when it ended; None while it runs.
        node_id: of the node that its command runs on.
    """

    id: str
    status: str
    metadata: Mapping[str, str]
    message: str
    exit_code: int | None
    began_s: float
    ended_s: float | None
    node_id: str | None

    @property
    def ended(self) -> bool:
        """Say whether it is over."""
        return self.status in ENDED


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is alive.

    Args:
        id: Ray's.
        name: of its host.
        head: whether it is the head.
        cpus: that Ray counts there.
        gpus: that Ray counts there.
        cpu_percent: of its cores that are busy.
        gpu_percent: of each GPU that is seen there, how busy; may be shorter than `gpus`.
    """

    id: str
    name: str
    head: bool
    cpus: float
    gpus: float
    cpu_percent: float | None
    gpu_percent: Sequence[float] = field(default=())


def job_of(entry: Mapping[str, Any]) -> Job:
    """Read what the dashboard says of a job; what is in it, anybody may have written who may use the cluster."""
    ended = entry.get("end_time")
    return Job(
        id=_word(entry["submission_id"]),
        status=_word(entry["status"]),
        # The file is compared and run as it is, and never shown.
        metadata={
            _word(name): str(value) if name == "spec" else _word(value)
            for name, value in (entry.get("metadata") or {}).items()
        },
        message=uncoloured(str(entry.get("message") or "")),
        exit_code=entry.get("driver_exit_code"),
        began_s=(entry.get("start_time") or 0) / 1000,
        ended_s=ended / 1000 if ended else None,
        node_id=entry.get("driver_node_id"),
    )


def _word(value: object) -> str:
    """Read what has one line."""
    return uncoloured(str(value)).replace("\n", " ")


def node_of(entry: Mapping[str, Any]) -> Node:
    """Read what the dashboard says of a node."""
    raylet = entry["raylet"]
    total = raylet.get("resourcesTotal") or {}
    busy = [gpu.get("utilizationGpu") for gpu in entry.get("gpus") or ()]
    return Node(
        id=str(raylet["nodeId"]),
        name=_word(entry.get("hostname") or raylet.get("nodeManagerAddress") or ""),
        head=bool(raylet.get("isHeadNode")),
        cpus=float(total.get("CPU", 0)),
        gpus=float(total.get("GPU", 0)),
        cpu_percent=entry.get("cpu"),
        gpu_percent=tuple(float(percent) for percent in busy if percent is not None),
    )
