"""Checks of the nodes' reports on themselves, each with a fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from study.addresses import without_secret
from study.doctor.node import Answer
from study.environment import difference, versions
from study.jobs import Node

LEAST_FREE_BYTES = 2 * 10**9
"""Space that a machine needs for temporary files."""

_MOST_CLOCK_OFF_S = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """A check and its result.

    Args:
        name: name of the check.
        state: ``ok``, ``warning``, ``failed`` or ``skipped``.
        finding: the result in words.
        fix: remedy for the user; empty if none is needed.
    """

    name: str
    state: str
    finding: str
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the check as JSON data; `finding` and `fix` are called ``found`` and ``mend`` there."""
        return {"name": self.name, "state": self.state, "found": self.finding, "mend": self.fix}


def judge(alive: Sequence[Node], answers: Sequence[Answer], store: str, tracking_uri: str | None) -> Iterator[Check]:
    """Yield the checks of the nodes' reports; only the check "nodes" if none has reported.

    Args:
        alive: the nodes that are alive, by Ray's count.
        answers: the nodes' answers; a node without one wasn't asked.
        store: the store that they checked.
        tracking_uri: the MLflow server that they checked; None if nothing is published.

    Example:
        >>> from study.doctor.node import NodeReport
        >>> node = Node("0a", "n1", head=True, cpus=4, gpus=1, cpu_percent=None)
        >>> report = NodeReport(versions(), store=None, shared=True, tracking=None, gpus=(), free_bytes=10**10)
        >>> [check.finding for check in judge([node], [Answer("0a", report, "", 0.0)], "/shared", None) if check.fix]
        ['n1 (0a): GPUs: Ray counts 1, torch sees 0']
    """
    nodes = {node.id: node for node in alive}
    names = {node_id: f"{node.name} ({node_id[:6]})" for node_id, node in nodes.items()}
    reports = [
        (names.get(answer.node_id, answer.node_id[:6]), answer, answer.report)
        for answer in answers
        if answer.report is not None
    ]
    silent = [
        f"{names.get(answer.node_id, answer.node_id[:6])}: {answer.error}"
        for answer in answers
        if answer.report is None
    ]
    silent += [
        f"{name}: it wasn't asked"
        for node_id, name in names.items()
        if node_id not in {answer.node_id for answer in answers}
    ]
    advice = "check the node's raylet, and that the package is installed there"
    yield _combined("nodes", silent, f"all {len(reports)} answer", advice)
    if not reports:
        return  # nothing is known about any node
    yield _versions({name: report.versions for name, _, report in reports})
    bad = [f"{name}: {report.store}" for name, _, report in reports if report.store is not None]
    bad += [
        f"{name}: it doesn't see what another node has written in {store}"
        for name, _, report in reports
        if report.store is None and not report.shared
    ]
    advice = "mount the same folder on all nodes, or use an object store"
    yield _combined("store on nodes", bad, f"{store} can be written and read", advice)
    if tracking_uri is not None:
        bad = [f"{name}: {report.tracking}" for name, _, report in reports if report.tracking is not None]
        advice = "credentials come from each node's own environment or files"
        yield _combined("tracking on nodes", bad, f"{without_secret(tracking_uri)} answers", advice)
    bad = [
        f"{name}: GPUs: Ray counts {nodes[answer.node_id].gpus:g}, torch sees {len(report.gpus)}"
        for name, answer, report in reports
        if answer.node_id in nodes and nodes[answer.node_id].gpus > len(report.gpus)
    ]
    gpus = sum(len(report.gpus) for _, _, report in reports)
    yield _combined("GPUs on nodes", bad, f"{gpus} seen by torch", "install torch's CUDA build and a driver there")
    bad = [
        f"{name}: {answer.clock_off_s:+.1f} s"
        for name, answer, _ in reports
        if abs(answer.clock_off_s) > _MOST_CLOCK_OFF_S
    ]
    yield _combined("clocks", bad, "agree", "synchronise the nodes' clocks (NTP)", state="warning")
    bad = [
        f"{name}: {report.free_bytes / 1e9:.1f} GB free for temporary files"
        for name, _, report in reports
        if report.free_bytes < LEAST_FREE_BYTES
    ]
    yield _combined("room on nodes", bad, "enough for temporary files", "free some space there")


def _versions(on_nodes: Mapping[str, Mapping[str, str]]) -> Check:
    """Compare the nodes' versions with each other (must be equal) and with those here (may differ)."""
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
    advice = "studies on the cluster aren't affected; results trained here may differ in their last bits"
    return Check("versions", "warning", f"equal on all nodes, but {from_here}", advice)


def _combined(name: str, bad: Sequence[str], good: str, advice: str, *, state: str = "failed") -> Check:
    """Return one check from the problems of all nodes; it is ok without problems."""
    return Check(name, state, "; ".join(bad), advice) if bad else Check(name, "ok", good)
