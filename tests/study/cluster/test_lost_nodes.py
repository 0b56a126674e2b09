"""Packs that kill each machine they run on, on a real cluster whose nodes are replaced."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from study import cluster
from study.cluster.scheduler import TuneScheduler
from study.records import Event, Notice, Pack, PackDone, PackFailed
from tests.study.builders import small_pack


class EndsItsNode:
    """Work that kills its worker's raylet at the deadly pack, and does nothing else."""

    def __init__(self, deadly: str) -> None:
        self._deadly = deadly

    def __call__(self, pack: Pack) -> Iterator[Event]:
        if pack.id == self._deadly:
            os.kill(os.getppid(), signal.SIGKILL)
            signal.pause()  # until the worker ends with its raylet
        yield from ()


@pytest.mark.slow
@pytest.mark.timeout(900)  # four nodes start one after another
def test_a_pack_that_ends_three_nodes_fails_and_the_next_is_done():
    """The failure gives the reason, the other pack is done, and the run ends."""
    from ray.cluster_utils import Cluster

    deadly, other = small_pack(0), small_pack(1)
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Notice) and "was lost with its machine" in event.text:
            nodes.add_node(num_cpus=1)

    try:
        nodes.add_node(num_cpus=1)
        with cluster.connection(nodes.address, None):
            groups = [cluster.WorkerGroup(cluster.CPU, 1, EndsItsNode(deadly.id))]
            TuneScheduler(groups, threading.Event()).run([(deadly,), (other,)], None, on_event)
    finally:
        nodes.shutdown()
    assert [event.pack_id for event in events if isinstance(event, PackDone)] == [other.id]
    (failure,) = [event for event in events if isinstance(event, PackFailed)]
    assert failure.pack_id == deadly.id
    assert "3 machines were lost while they trained this pack" in failure.error
    assert len([event for event in events if isinstance(event, Notice)]) == 3
