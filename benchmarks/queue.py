"""Requests that the queue of packs answers in a second, by the number of workers.

    python -m benchmarks.queue [--packs N] [--workers N [N ...]] [--out benchmarks/results/queue.csv]

Only the requests of the workers exist: two processes send them, 32 at once each. With each request, a worker reports
its pack as done and receives another one. The queue shares its cores with the senders; the CPU time of its process
gives the rate on a core of its own. Prints a row for each number of workers, and writes it with `--out`: requests a
second, and microseconds of CPU time for each, as median, least and greatest value over rounds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray

from benchmarks.measure import finish, parser, spread, tell
from study.cluster.connect import connection
from study.cluster.queue import CPU
from study.cluster.queue_actor import QueueHandle, open_queue
from study.plan.packs import make_packs
from study.plan.plan import make_plan
from study.spec import parse_spec

SPEC = "study: nothing\ntask: {{name: simple}}\nmodels: [NMU]\nseeds: {seeds}"
WORKERS = (50, 500, 5_000)
A_NODE = 64
"""Workers of a node."""
_SENDERS, _AT_ONCE = 2, 32


@ray.remote(num_cpus=0)
class Sender:
    """A sender of the requests of some workers."""

    def __init__(self, queue: QueueHandle, workers: Sequence[int]) -> None:
        self._queue, self._workers, self._held = queue, workers, dict[int, list[str]]()

    def hand_out(self) -> int:
        """Report each worker's packs as done, receive its next ones, and return the number of new packs."""
        calls = (self._ask(worker) for worker in self._workers)
        handed = [packs for packs, _, _ in _answers(calls)]
        self._held = {worker: [p.id for p in packs] for worker, packs in zip(self._workers, handed, strict=True)}
        return sum(map(len, handed))

    def _ask(self, worker: int) -> Any:
        done = self._held.get(worker, [])
        node = f"node {worker // A_NODE}"
        return self._queue.actor.hand_out.remote(str(worker), CPU, node, done, 0.0, self._queue.packs)


def _answers(calls: Iterable[Any]) -> Iterator[Any]:
    """Yield the answers to calls in their order, with at most `_AT_ONCE` calls under way."""
    under_way: list[Any] = []
    for call in calls:
        under_way.append(call)
        if len(under_way) == _AT_ONCE:
            yield ray.get(under_way.pop(0))
    yield from ray.get(under_way)


def _queues() -> set[Path]:
    """List the folders in /proc of all queues' processes; other studies on this machine may have some too."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if (path / "cmdline").read_bytes().startswith(b"ray::QueueActor"):
                found.add(path)
    return found


def _used_s(process: Path) -> float:
    """Read the CPU seconds of a process, given its folder in /proc."""
    user, system = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(workers: int, packs: int) -> dict[str, float]:
    """Hand out all packs; return requests a second, and the queue's CPU time for each in microseconds.

    This process must be connected to Ray.

    Raises:
        AssertionError: if packs were lost or handed out twice.
        ValueError: if another queue was started on this machine meanwhile.
        InputError: if `packs` is less than 1, or more than a study may have.
    """
    planned = make_plan(parse_spec(SPEC.format(seeds=packs), source="queue"))
    bundles = [(pack,) for pack in make_packs(planned.trials, slots=packs, size=1)]
    remote: Any = Sender
    others = _queues()
    with open_queue(bundles, None, may_grow=False) as queue:
        senders = [remote.remote(queue, range(first, workers, _SENDERS)) for first in range(_SENDERS)]
        queue.call("node_of", "none")  # it has its packs
        ray.get([sender.__ray_ready__.remote() for sender in senders])
        (process,) = _queues() - others
        used_s, began, handed, requests, now = _used_s(process), time.perf_counter(), 0, 0, 1
        while now:
            now = sum(ray.get([sender.hand_out.remote() for sender in senders]))
            handed, requests = handed + now, requests + workers
        took_s, used_s = time.perf_counter() - began, _used_s(process) - used_s
        assert handed == packs, (handed, packs)
        for sender in senders:
            ray.kill(sender)
    return {"requests_a_second": requests / took_s, "us_a_request": 1e6 * used_s / requests}


def main(words: Sequence[str] | None = None) -> None:
    """Measure the queue for each number of workers; print the table, and write it with `--out`.

    Raises:
        ClusterError: if Ray can't be started.
        AssertionError: if packs were lost or handed out twice.
        ValueError: if another queue was started on this machine meanwhile.
        InputError: if `--packs` is less than 1, or more than a study may have.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=3, seconds=0)
    options.add_argument("--packs", type=int, default=20_000)
    options.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    arguments = options.parse_args(words)
    rows = []
    with connection(None, cpus=1):
        for workers in arguments.workers:
            found = [measure(workers, arguments.packs) for _ in range(arguments.rounds)]
            tell(f"{workers} workers: {found}")
            row = {"workers": str(workers), "packs": str(arguments.packs)}
            rows.append(row | {k: v for name in found[0] for k, v in spread(name, [f[name] for f in found]).items()})
    finish(rows, arguments)


if __name__ == "__main__":
    main()
