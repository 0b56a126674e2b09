"""Report of each node of a cluster on itself, for `study doctor`.

`python -m` runs this file as a job on the cluster; it prints one line for each node.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click

from study import cluster
from study.doctor.probe import free_bytes, gpus_seen, probe_store, probe_tracking
from study.environment import versions
from study.errors import ClusterError
from study.interface.json_text import parse_json
from study.store import is_url

_MARK = "@node "
# A node may have to import torch and MLflow first; its clock can be read at once. Both limits together are well below
# the time that `study doctor` waits for this job, so that the job itself can name silent nodes.
_ANSWER_S, _CLOCK_S = 120.0, 10.0


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node's report on itself.

    Args:
        versions: its versions, as `study.environment.versions` returns them.
        store: problem with the store; None without one.
        shared: whether it sees the file that another node has just written into the store.
        tracking: problem with MLflow; None without one.
        gpus: names of the GPUs that torch can use.
        free_bytes: free space in its folder for temporary files.
    """

    versions: dict[str, str]
    store: str | None
    shared: bool
    tracking: str | None
    gpus: tuple[str, ...]
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A node's answer.

    Args:
        node_id: Ray's id of the node.
        report: the node's report; None if it didn't answer.
        error: reason why it didn't answer.
        clock_off_s: minimum seconds by which its clock is ahead of the asking node's; negative if it is behind.
    """

    node_id: str
    report: NodeReport | None
    error: str
    clock_off_s: float


def examine_node(store: str, tracking_uri: str | None, probe_name: str) -> NodeReport:
    """Return this node's report: its versions, access to the store and to MLflow, GPUs and free space.

    The store is tested as by `probe_store`, which writes a small file and removes it.

    Args:
        store: the store's folder or URL.
        tracking_uri: MLflow's address; None if nothing is published.
        probe_name: name of the file that the asking node has written into the store.

    Raises:
        OSError: if the node has no folder for temporary files.
    """
    return NodeReport(
        versions=versions(),
        store=probe_store(store),
        shared=is_url(store) or Path(store, probe_name).is_file(),
        tracking=probe_tracking(tracking_uri),
        gpus=tuple(gpus_seen()),
        free_bytes=free_bytes(),
    )


def line(answer: Answer) -> str:
    """Format an answer as a line of a log for `read`."""
    content = asdict(answer)
    return _MARK + json.dumps({"found": content.pop("report"), **content})


def read(text: str) -> list[Answer]:
    r"""Return the answers in a log; its other lines are ignored.

    Raises:
        ClusterError: if an answer can't be read, as from a node with another version of this package.

    Example:
        >>> report = NodeReport({"ray": "2.60.0"}, None, True, None, (), 10**9)
        >>> answers = [Answer("0a", report, "", 0.0), Answer("0b", None, "it doesn't answer", 0.0)]
        >>> read("\n".join(["joining the cluster", *map(line, answers)])) == answers
        True
    """
    answers = []
    for log_line in text.splitlines():
        if log_line.startswith(_MARK):
            try:
                content = parse_json(log_line.removeprefix(_MARK))
                report = content.pop("found")
                if report is not None:
                    report = NodeReport(**report | {"gpus": tuple(report["gpus"])})
                answers.append(Answer(report=report, **content))
            except (ValueError, TypeError, KeyError, AttributeError):
                raise ClusterError(
                    f"a node's answer can't be read: {log_line[:200]!r}; install the same version of this package on "
                    "all nodes"
                ) from None
    return answers


@contextmanager
def _probe_file(store: str) -> Iterator[str]:
    """Keep a file in a store's folder while the nodes look for it, and yield its name; for a URL, none is written.

    If it can't be written, no node finds it.
    """
    probe = Path(store) / f".study-probe-{uuid.uuid4().hex}"
    if is_url(store):
        yield probe.name
        return
    is_there = probe.parent.is_dir()
    try:
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
    except OSError:
        yield probe.name
        return
    try:
        yield probe.name
    finally:
        probe.unlink(missing_ok=True)
        if not is_there:
            probe.parent.rmdir()


def _answers(store: str, tracking_uri: str | None) -> Iterator[Answer]:
    with _probe_file(store) as probe_name:
        reports = cluster.ask_each(partial(examine_node, store, tracking_uri, probe_name), _ANSWER_S)
    # The nodes' workers run by now and answer at once, so the time of their answers is known.
    before_s = time.time()
    clocks = dict(cluster.ask_each(time.time, _CLOCK_S))
    after_s = time.time()
    for node_id, report in reports:
        if isinstance(report, ClusterError):
            yield Answer(node_id, None, str(report), 0.0)
        else:
            clock_s = clocks.get(node_id)
            at_s = clock_s if isinstance(clock_s, float) else before_s
            yield Answer(node_id, report, "", max(0.0, at_s - after_s) + min(0.0, at_s - before_s))


@click.command()
@click.option("--store", required=True)
@click.option("--tracking-uri")
def main(store: str, tracking_uri: str | None) -> None:
    """Ask every node of this cluster, and print each answer, a line for each node.\f

    Raises:
        ClusterError: if Ray can't be reached on this machine.
    """  # noqa: D301 - click's help ends at the form feed
    with cluster.connection("auto", None):
        for answer in _answers(store, tracking_uri):
            click.echo(line(answer))


if __name__ == "__main__":
    main()
