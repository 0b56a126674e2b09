"""Shares of a cluster: the cores and GPUs that Ray has reserved for each study's workers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from study.jobs.rows import Job, Node, Reservation
from study.words import join_and

OTHER_WORK = "other work"
"""Name of all work on a cluster that isn't a study's job."""


@dataclass(frozen=True, slots=True)
class Share:
    """A study's share of a cluster, in cores, or in GPUs if it trains on GPUs alone.

    Args:
        unit: ``cores`` or ``GPUs``.
        own: number reserved for its workers.
        of: number in the cluster.
        others: number reserved for each other study, by name, and for other work; without zeros.
    """

    unit: str
    own: float
    of: float
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_shut_out(self) -> bool:
        """True if it has nothing, and others leave less than one core or GPU of the cluster."""
        return not self.own and 0 < self.of < sum(self.others.values()) + 1

    @property
    def words(self) -> str:
        """The share in words.

        Example:
            >>> Share("cores", 2, 16, {"digits-sum": 14}).words
            '2 of 16; digits-sum has 14'
        """
        return "; ".join([f"{self.own:g} of {self.of:g}", *self._others()])

    @property
    def wait(self) -> str:
        """The wait of a study that is shut out, in words.

        Example:
            >>> Share("cores", 0, 16, {"digits-sum": 14, "gate": 2}).wait
            'waiting for others: digits-sum has 14 and gate has 2 of 16 cores'
        """
        who = "another study" if len(self.others) == 1 and OTHER_WORK not in self.others else "others"
        return f"waiting for {who}: {join_and(self._others())} of {self.of:g} {self.unit}"

    def _others(self) -> list[str]:
        return [f"{name} has {count:g}" for name, count in self.others.items()]


def shares(jobs: Sequence[Job], nodes: Sequence[Node], reservations: Sequence[Reservation]) -> dict[str, Share]:
    """Return the share of each running study, by the id of its job.

    Args:
        jobs: jobs of the cluster.
        nodes: nodes that are alive.
        reservations: Ray's reservations.
    """
    running = [job for job in jobs if job.status == "RUNNING" and "study" in job.metadata]
    names = {job.driver_id: job.metadata["study"] for job in running if job.driver_id is not None}
    return {job.id: _share(job, names, nodes, reservations) for job in running}


def _share(job: Job, names: Mapping[str, str], nodes: Sequence[Node], reservations: Sequence[Reservation]) -> Share:
    """Return a job's share; `names` are the running studies' names by their drivers' ids."""
    on_gpus = _trains_on_gpus(job)
    own, others = 0.0, dict[str, float]()
    for reservation in reservations:
        count = reservation.gpus if on_gpus else reservation.cpus
        if reservation.driver_id == job.driver_id:
            own += count
        elif count:
            name = names.get(reservation.driver_id, OTHER_WORK)
            others[name] = others.get(name, 0.0) + count
    total = sum(node.gpus if on_gpus else node.cpus for node in nodes)
    return Share("GPUs" if on_gpus else "cores", own, total, others)


def _trains_on_gpus(job: Job) -> bool:
    try:
        return bool(json.loads(job.metadata.get("options", "{}")).get("device") == "cuda")
    except (ValueError, AttributeError):
        return False
