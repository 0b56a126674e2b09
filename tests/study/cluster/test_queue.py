"""The queue of packs in random histories of workers: each pack is done or fails, and goes to the right worker."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from study.cluster.queue import CPU, GPU, NODES, RETRIES, PackQueue
from study.records import Pack
from tests.study.builders import small_pack


def packs_of(count: int) -> list[Pack]:
    return [small_pack(seed) for seed in range(count)]


@given(seed=st.integers(0, 10**6), mixed=st.booleans())
def test_every_pack_is_done_or_failed_for_good(seed, mixed):
    """In any history of workers no pack is lost or on two cores; a pack fails only after its allowed crashes."""
    draw = random.Random(seed)
    packs = packs_of(6)
    queue = PackQueue([(pack,) for pack in packs], {pack.id: 0.4 for pack in packs} if mixed else None)
    kinds = {f"worker {n}": GPU if mixed and n == 0 else CPU for n in range(3)}
    held: dict[str, list[Pack]] = {worker: [] for worker in kinds}
    crashes = dict.fromkeys((pack.id for pack in packs), 0)
    done: set[str] = set()
    failed: set[str] = set()
    for _ in range(200):
        worker = draw.choice(list(kinds))
        if not held[worker]:
            held[worker] = list(queue.next(worker, kinds[worker], "node"))
            for pack in held[worker]:
                others = [other for other in kinds if other != worker and pack in held[other]]
                assert not others or kinds[worker] == GPU
            continue
        action = draw.choice(["done", "done", "crash", "die", "vanish"])
        if action == "done":
            pack = held[worker].pop()
            queue.done(worker, pack.id)
            done.add(pack.id)
        elif action == "crash":
            pack = held[worker].pop()
            crashes[pack.id] += pack.id not in done
            if not queue.crashed(worker, pack.id):
                failed.add(pack.id)
        else:
            for pack in held[worker]:
                crashes[pack.id] += action == "die" and pack.id not in done
            failed |= set(queue.lost(worker, blame=action == "die"))
            held[worker] = []
    for worker in kinds:  # workers return their remaining packs, and these are done
        for pack in held[worker]:
            queue.done(worker, pack.id)
            done.add(pack.id)
    while next_packs := queue.next("last", CPU, "node"):
        for pack in next_packs:
            queue.done("last", pack.id)
            done.add(pack.id)
    assert done | failed == {pack.id for pack in packs}
    assert all(crashes[pack_id] > RETRIES for pack_id in failed - done)


def test_cores_take_the_last_pack_and_a_gpu_the_first():
    """A core gets the last pack, and a GPU as many of the first ones as fill it."""
    packs = packs_of(6)
    queue = PackQueue([(pack,) for pack in packs], {pack.id: 0.4 for pack in packs})
    assert queue.next("core", CPU, "node") == (packs[-1],)
    assert queue.next("gpu", GPU, "node") == (packs[0], packs[1])


def test_an_idle_gpu_repeats_packs_of_cores():
    """At the end an idle GPU repeats packs of slow cores; the first to finish counts, and no core repeats a pack."""
    packs = packs_of(2)
    queue = PackQueue([(pack,) for pack in packs], {pack.id: 0.4 for pack in packs})
    assert queue.next("core 1", CPU, "node") == (packs[1],)
    assert queue.next("core 2", CPU, "node") == (packs[0],)
    assert queue.next("core 3", CPU, "node") == ()
    assert set(queue.next("gpu 1", GPU, "node")) == set(packs)
    assert queue.next("gpu 2", GPU, "node") == ()
    queue.done("gpu 1", packs[0].id)
    assert queue.lost("core 2", blame=True) == []
    assert queue.next("core 2", CPU, "node") == ()


def test_added_packs_are_handed_out_once():
    """Added packs go to any worker that asks; a pack that waits or is with a worker isn't handed out twice."""
    packs = packs_of(4)
    queue = PackQueue([(packs[0],), (packs[1],)])
    assert queue.next("worker 1", CPU, "node") == (packs[0],)
    queue.add([(pack,) for pack in packs])
    assert [queue.next(f"worker {i}", CPU, "node") for i in (2, 3, 4, 5)] == [(packs[1],), (packs[2],), (packs[3],), ()]
    queue.done("worker 1", packs[0].id)
    queue.add([(packs[0],)])
    assert queue.next("worker 1", CPU, "node") == (packs[0],)


def test_a_restarted_queue_retries_an_unknown_pack():
    """A pack that crashes after another queue handed it out doesn't fail; it is queued again."""
    (pack,) = packs_of(1)
    queue = PackQueue([(pack,)])
    assert queue.crashed("worker", pack.id)
    assert queue.next("worker", CPU, "node") == (pack,)


def test_a_pack_whose_worker_dies_too_often_fails():
    """If a worker with a single pack dies, this counts against the pack; after the allowed number the pack fails."""
    (pack,) = packs_of(1)
    queue = PackQueue([(pack,)])
    failed = []
    for _ in range(RETRIES + 1):
        assert queue.next("worker", CPU, "node") == (pack,)
        failed += queue.lost("worker", blame=True)
    assert failed == [pack.id]
    assert queue.next("worker", CPU, "node") == ()


def test_a_pack_fails_with_its_last_allowed_node():
    """A node that is reported lost twice counts once; a restarted worker counts against no pack."""
    (pack,) = packs_of(1)
    queue = PackQueue([(pack,)])
    for node in ["a", "a", "b", "b", "b"]:
        assert queue.next("worker", CPU, node) == (pack,)
        assert queue.lost("worker", blame=False, with_node=True) == []
        assert queue.next("worker", CPU, node) == (pack,)
        assert queue.lost("worker", blame=False) == []
    assert queue.next("worker", CPU, "c") == (pack,)
    assert queue.lost("worker", blame=False, with_node=True) == [pack.id]
    assert queue.next("worker", CPU, "d") == ()


def test_the_queue_knows_the_node_of_a_worker():
    """The queue knows a worker's node from the worker's first request until its loss."""
    queue = PackQueue([(pack,) for pack in packs_of(1)])
    assert queue.node_of("worker") is None
    queue.next("worker", CPU, "node")
    assert queue.node_of("worker") == "node"
    queue.lost("worker", blame=False, with_node=True)
    assert queue.node_of("worker") is None


def test_an_idle_gpu_leaves_a_suspect_alone():
    """An idle GPU doesn't repeat a suspect pack that a core trains alone, and takes no pack on that node."""
    suspect, other = packs_of(2)
    queue = PackQueue([(suspect,)], {pack.id: 0.4 for pack in (suspect, other)})
    for node in ["a", "b"]:
        assert queue.next("core", CPU, node) == (suspect,)
        queue.lost("core", blame=False, with_node=True)
    assert queue.next("core", CPU, "c") == (suspect,)
    assert queue.next("gpu", GPU, "d") == ()
    queue.add([(other,)])
    assert queue.next("gpu", GPU, "c") == ()
    assert queue.next("gpu", GPU, "d") == (other,)


class Fleet:
    """Two nodes with three workers each; packs train, die with their nodes and are retried, in random order.

    Args:
        packs: packs to train.
        killers: ids of packs that kill their node and never finish.
        preempted: number of nodes that are lost without a reason.
        draw: generator of the order.
    """

    def __init__(self, packs: list[Pack], killers: set[str], preempted: int, draw: random.Random) -> None:
        self.queue, self._killers, self._preempted, self._draw = (
            PackQueue([(pack,) for pack in packs]),
            killers,
            preempted,
            draw,
        )
        self.done: set[str] = set()
        self.failed: set[str] = set()
        self.died_with: dict[str, list[frozenset[str]]] = {pack.id: [] for pack in packs}
        self._count = 2
        self._node_of = {f"{node}.{worker}": node for node in range(2) for worker in range(3)}
        self._held: dict[str, list[Pack]] = {worker: [] for worker in self._node_of}
        self._to_take_back: list[str] = []

    def run(self) -> None:
        """Run until all workers have ended."""
        while self._held or self._to_take_back:
            worker = self._draw.choice([*self._held, *self._to_take_back])
            if worker in self._to_take_back:  # the driver notices lost workers one after another
                self._to_take_back.remove(worker)
                self.failed |= set(self.queue.lost(worker, blame=False, with_node=True))
                self._held[worker] = []
            elif not self._held[worker]:
                self._held[worker] = list(self.queue.next(worker, CPU, str(self._node_of[worker])))
                if not self._held[worker]:
                    del self._held[worker]
            elif self._held[worker][0].id in self._killers:
                self._lose(self._node_of[worker])
            elif self._preempted and self._draw.random() < 0.3:
                self._preempted -= 1
                self._lose(self._node_of[worker])
            else:
                (pack,) = self._held[worker]
                self._held[worker] = []
                self.queue.done(worker, pack.id)
                self.done.add(pack.id)

    def _lose(self, node: int) -> None:
        """Lose a node with all its packs; another node replaces it."""
        workers = [worker for worker in self._held if self._node_of[worker] == node]
        together = frozenset(pack.id for worker in workers for pack in self._held[worker])
        for pack_id in together:
            self.died_with[pack_id].append(together)
        for worker in workers:
            del self._held[worker]
            self._node_of[worker] = self._count
        self._count += 1
        self._to_take_back += workers


@given(seed=st.integers(0, 10**6), killers=st.integers(0, 4))
def test_only_packs_that_kill_their_nodes_fail(seed, killers):
    """Each pack that kills its nodes fails with its last allowed node, and no other pack fails."""
    draw = random.Random(seed)
    packs = packs_of(12)
    deadly = {pack.id for pack in draw.sample(packs, killers)}
    fleet = Fleet(packs, deadly, preempted=0, draw=draw)
    fleet.run()
    assert fleet.failed == deadly
    assert fleet.done == {pack.id for pack in packs} - deadly


@given(seed=st.integers(0, 10**6), killers=st.integers(0, 2), preempted=st.integers(0, 30))
def test_every_pack_is_done_or_failed_when_nodes_are_lost(seed, killers, preempted):
    """Each pack is done, or fails after the allowed number of lost nodes and was alone on the last one."""
    draw = random.Random(seed)
    packs = packs_of(8)
    deadly = {pack.id for pack in draw.sample(packs, killers)}
    fleet = Fleet(packs, deadly, preempted, draw)
    fleet.run()
    assert fleet.done | fleet.failed == {pack.id for pack in packs}
    assert not fleet.done & fleet.failed
    for pack_id in fleet.failed:
        assert len(fleet.died_with[pack_id]) >= NODES
        assert fleet.died_with[pack_id][-1] == {pack_id}
