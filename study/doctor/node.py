"""What each node of a cluster finds out about itself, for `study doctor`.

`python -m` runs this file as a job on the cluster; it prints a line a node.
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
from study.store import is_url

_MARK = "@node "
# A node may have to import torch and MLflow first; its clock it tells at once. Together well below what `study doctor`
# waits for the job: nodes that are silent are named by it.
_ANSWER_S, _CLOCK_S = 120.0, 10.0


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What one node found.

    Args:
        versions: as `study.environment.versions` gives them.
        store: what is wrong with the store; None if nothing is.
        shared: whether it sees in the store what another node has just written there.
        tracking: what is wrong with MLflow; None if nothing is.
        gpus: names of those that torch can use.
        free_bytes: room in its folder for temporary files.
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
        node_id: Ray's.
        found: None if it didn't answer.
        error: why.
        clock_off_s: by how much its clock is ahead of the asking node's at least; negative if it is behind.
    """

    node_id: str
    found: NodeReport | None
    error: str
    clock_off_s: float


def look(store: str, tracking_uri: str | None, left: str) -> NodeReport:
    """Look at this node.

    Args:
        store: folder or URL.
        tracking_uri: of MLflow; None if nothing is to be published.
        left: name of the file that the asking node has left in the store.
    """
    return NodeReport(
        versions=versions(),
        store=probe_store(store),
        shared=is_url(store) or Path(store, left).is_file(),
        tracking=probe_tracking(tracking_uri),
        gpus=tuple(gpus_seen()),
        free_bytes=free_bytes(),
    )


def line(answer: Answer) -> str:
    """Write an answer as a line of a log."""
    return _MARK + json.dumps(asdict(answer))


def read(text: str) -> list[Answer]:
    r"""Find the answers in a log.

    Example:
        >>> found = NodeReport({"ray": "2.60.0"}, None, True, None, (), 10**9)
        >>> answers = [Answer("0a", found, "", 0.0), Answer("0b", None, "it doesn't answer", 0.0)]
        >>> read("\n".join(["joining the cluster", *map(line, answers)])) == answers
        True
    """
    answers = []
    for written in text.splitlines():
        if written.startswith(_MARK):
            content = json.loads(written.removeprefix(_MARK))
            found = content.pop("found")
            if found is not None:
                found = NodeReport(**found | {"gpus": tuple(found["gpus"])})
            answers.append(Answer(found=found, **content))
    return answers


@contextmanager
def _left_in(store: str) -> Iterator[str]:
    """Leave a file in a store while others look for it; where that can't be done, nobody finds it."""
    probe = Path(store) / f".study-probe-{uuid.uuid4().hex}"
    if is_url(store):
        yield probe.name
        return
    there = probe.parent.is_dir()
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
        if not there:
            probe.parent.rmdir()


def _answers(store: str, tracking_uri: str | None) -> Iterator[Answer]:
    with _left_in(store) as left:
        found = cluster.ask_each(partial(look, store, tracking_uri, left), _ANSWER_S)
    # Asked again, of workers that are there: the answer comes at once, and its time is known.
    before_s = time.time()
    clocks = dict(cluster.ask_each(time.time, _CLOCK_S))
    after_s = time.time()
    for node_id, answer in found:
        if isinstance(answer, ClusterError):
            yield Answer(node_id, None, str(answer), 0.0)
        else:
            clock_s = clocks.get(node_id)
            at_s = clock_s if isinstance(clock_s, float) else before_s
            yield Answer(node_id, answer, "", max(0.0, at_s - after_s) + min(0.0, at_s - before_s))


@click.command()
@click.option("--store", required=True)
@click.option("--tracking-uri")
def main(store: str, tracking_uri: str | None) -> None:
    """Ask every node of the cluster that this runs on, and print what each says."""
    with cluster.connection("auto", None):
        for answer in _answers(store, tracking_uri):
            click.echo(line(answer))


if __name__ == "__main__":
    main()
