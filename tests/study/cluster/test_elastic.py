"""Clusters that grow during a study: it waits for machines, uses new ones, and requests those that it needs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from study import cluster
from study.cluster import callback
from study.cluster.scheduler import TuneScheduler
from study.records import Event, Pack, PackDone, Progress, WorkersWait
from tests.study.builders import small_pack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # nodes start one after another


@dataclass(frozen=True)
class Together:
    """Work that ends its pack once enough workers have begun a pack."""

    folder: Path
    workers: int

    def __call__(self, pack: Pack) -> Iterator[Event]:
        (self.folder / str(os.getpid())).touch()
        while len(list(self.folder.iterdir())) < self.workers:
            yield Progress(pack.id, 1, 2, len(pack.trials), 0, 0)
            time.sleep(0.1)
        yield PackDone(pack.id)


@dataclass(frozen=True)
class Asking:
    """Work that ends each pack once Ray has the expected number of pending requests for workers."""

    expected: dict[str, int]

    def __call__(self, pack: Pack) -> Iterator[Event]:
        from ray.util import placement_group_table

        def pending() -> int:
            groups = placement_group_table().values()
            return sum(group["state"] in ("PENDING", "RESCHEDULING") for group in groups)

        deadline = time.monotonic() + 60.0
        while pending() != self.expected[pack.id]:
            assert time.monotonic() < deadline, f"{pending()} requests, but {self.expected[pack.id]} must be"
            yield Progress(pack.id, 1, 2, len(pack.trials), 0, 0)
            time.sleep(0.1)
        yield PackDone(pack.id)


def test_a_study_waits_for_machines_and_uses_late_ones(tmp_path, monkeypatch):
    """A study reports the number of waiting workers, and a machine that joins late takes a pack."""
    from ray.cluster_utils import Cluster

    monkeypatch.setattr(callback, "_START_S", 0.0)
    packs = [small_pack(number) for number in range(2)]
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, WorkersWait) and event.count:
            nodes.add_node(num_cpus=1)

    try:
        with cluster.connection(nodes.address, None):
            groups = [cluster.WorkerGroup(cluster.CPU, 2, Together(tmp_path, workers=2))]
            TuneScheduler(groups, threading.Event()).run([(pack,) for pack in packs], None, on_event)
    finally:
        nodes.shutdown()
    assert {event.pack_id for event in events if isinstance(event, PackDone)} == {pack.id for pack in packs}
    waits = [event for event in events if isinstance(event, WorkersWait)]
    assert waits == [WorkersWait(2, 2), WorkersWait(1, 2), WorkersWait(0, 2)]


def test_no_more_machines_are_requested_than_packs_are_left():
    """Three workers wait beside the running one; once fewer packs than workers remain, requests are withdrawn."""
    from ray.cluster_utils import Cluster

    packs = [small_pack(number) for number in range(5)]
    requests = dict(zip([pack.id for pack in packs], [3, 3, 2, 1, 0], strict=True))
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    events: list[Event] = []
    try:
        with cluster.connection(nodes.address, None):
            groups = [cluster.WorkerGroup(cluster.CPU, 4, Asking(requests))]
            TuneScheduler(groups, threading.Event()).run([(pack,) for pack in packs], None, events.append)
    finally:
        nodes.shutdown()
    assert [event.pack_id for event in events if isinstance(event, PackDone)] == [pack.id for pack in packs]
