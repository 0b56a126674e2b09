"""Checks of what all nodes of a cluster report about themselves, each with how to fix what fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from study.addresses import without_secret
from study.doctor.node import Answer
from study.environment import difference, versions
from study.jobs import Node

LEAST_FREE_BYTES = 2 * 10**9
"""Space for temporary files that a machine needs."""

_MOST_CLOCK_OFF_S = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its result.

    Args:
        name: name of the check.
        state: ``ok``, ``warning``, ``failed`` or ``skipped``.
        finding: what the check found.
        fix: what to do about it; empty if nothing needs to be done.
    """

    name: str
    state: str
    finding: str
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the check as JSON data."""
        return {"name": self.name, "state": self.state, "found": self.finding, "mend": self.fix}


def judge(alive: Sequence[Node], answers: Sequence[Answer], store: str, tracking_uri: str | None) -> Iterator[Check]:
    """Judge what the nodes report.

    Args:
        alive: the nodes that are alive by Ray's count.
        answers: the nodes' answers; a node without one wasn't asked.
        store: the store that they were asked about.
        tracking_uri: the MLflow server that they were asked about; None if nothing is to be published.

    Example:
        >>> from study.doctor.node import NodeReport
        >>> node = Node("0a", "n1", head=True, cpus=4, gpus=1, cpu_percent=None)
        >>> report = NodeReport(versions(), store=None, shared=True, tracking=None, gpus=(), free_bytes=10**10)
        >>> [check.finding for check in judge([node], [Answer("0a", report, "", 0.0)], "/shared", None) if check.fix]
        ['n1 (0a): Ray counts 1 GPUs, torch sees 0']
    """
    nodes = {node.id: node for node in alive}
    names = {node_id: f"{node.name} ({node_id[:6]})" for node_id, node in nodes.items()}
    reports = [(names.get(a.node_id, a.node_id[:6]), a, a.report) for a in answers if a.report is not None]
    silent = [f"{names.get(a.node_id, a.node_id[:6])}: {a.error}" for a in answers if a.report is None]
    silent += [f"{name}: it wasn't asked" for i, name in names.items() if i not in {a.node_id for a in answers}]
    advice = "look at the node's raylet; is the package installed there?"
    yield _over("nodes", silent, f"all {len(reports)} answer", advice)
    if not reports:
        return  # nothing is known about any node
    yield _versions({name: f.versions for name, _, f in reports})
    bad = [f"{name}: {f.store}" for name, _, f in reports if f.store is not None]
    bad += [
        f"{name}: it doesn't see what another node has written in {store}"
        for name, _, f in reports
        if f.store is None and not f.shared
    ]
    advice = "mount the same folder on all nodes, or use an object store"
    yield _over("store on nodes", bad, f"{store} can be written and read", advice)
    if tracking_uri is not None:
        bad = [f"{name}: {f.tracking}" for name, _, f in reports if f.tracking is not None]
        advice = "credentials come from each node's own environment or files"
        yield _over("tracking on nodes", bad, f"{without_secret(tracking_uri)} answers", advice)
    bad = [
        f"{name}: Ray counts {nodes[a.node_id].gpus:g} GPUs, torch sees {len(f.gpus)}"
        for name, a, f in reports
        if a.node_id in nodes and nodes[a.node_id].gpus > len(f.gpus)
    ]
    gpus = sum(len(f.gpus) for _, _, f in reports)
    yield _over("GPUs on nodes", bad, f"{gpus} seen by torch", "install torch's CUDA build and a driver there")
    bad = [f"{name}: {a.clock_off_s:+.1f} s" for name, a, _ in reports if abs(a.clock_off_s) > _MOST_CLOCK_OFF_S]
    yield _over("clocks", bad, "agree", "let the nodes keep time (NTP)", state="warning")
    bad = [
        f"{name}: {f.free_bytes / 1e9:.1f} GB free for temporary files"
        for name, _, f in reports
        if f.free_bytes < LEAST_FREE_BYTES
    ]
    yield _over("room on nodes", bad, "enough for temporary files", "free some space there")


def _versions(on_nodes: Mapping[str, Mapping[str, str]]) -> Check:
    """Compare the nodes' versions with each other, which must be equal, and with those here, which may differ."""
    differences = []
    for package in sorted({package for packages in on_nodes.values() for package in packages}):
        nodes: dict[str, list[str]] = {}
        for name, packages in on_nodes.items():
            nodes.setdefault(packages.get(package, "missing"), []).append(name)
        if len(nodes) > 1:
            where = ", ".join(f"{version} on {' and '.join(names)}" for version, names in nodes.items())
            differences.append(f"{package} {where}")
    if differences:
        advice = "install the same versions everywhere (deploy/lock)"
        return Check("versions", "failed", "; ".join(differences), advice)
    (theirs, *_) = on_nodes.values()
    from_here = difference(versions(), theirs)
    if from_here is None:
        return Check("versions", "ok", "equal here and on all nodes")
    advice = "the cluster's studies don't need this machine's; what is trained here may differ in its last bits"
    return Check("versions", "warning", f"equal on all nodes, but {from_here}", advice)


def _over(name: str, bad: Sequence[str], good: str, advice: str, *, state: str = "failed") -> Check:
    """Return one check over all nodes."""
    return Check(name, state, "; ".join(bad), advice) if bad else Check(name, "ok", good)
