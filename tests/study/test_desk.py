"""Every pack is trained to its end whatever lanes do, as a law over drawn histories; and who gets what."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.cluster.desk import CPU, GPU, RETRIES, Desk
from study.records import Pack
from tests.study.conftest import small_pack


def packs_of(count: int) -> list[Pack]:
    return [small_pack(seed) for seed in range(count)]


@given(seed=st.integers(0, 10**6), mixed=st.booleans())
def test_every_pack_is_done_or_failed_for_good(seed, mixed):
    """Lanes come, crash, die, fall silent and end in any order: nothing is forgotten, nothing is handed out twice
    among cores, and a pack fails only after as many crashes as it may have.
    """
    draw = random.Random(seed)
    packs = packs_of(6)
    desk = Desk([(pack,) for pack in packs], {pack.id: 0.4 for pack in packs} if mixed else None)
    kinds = {f"lane {n}": GPU if mixed and n == 0 else CPU for n in range(3)}
    held: dict[str, list[Pack]] = {lane: [] for lane in kinds}
    crashes = dict.fromkeys((pack.id for pack in packs), 0)
    done: set[str] = set()
    failed: set[str] = set()
    for _ in range(200):
        lane = draw.choice(list(kinds))
        if not held[lane]:
            held[lane] = list(desk.next(lane, kinds[lane]))
            for pack in held[lane]:
                others = [other for other in kinds if other != lane and pack in held[other]]
                assert not others or kinds[lane] == GPU
            continue
        what = draw.choice(["done", "done", "crash", "die", "vanish"])
        if what == "done":
            pack = held[lane].pop()
            desk.done(lane, pack.id)
            done.add(pack.id)
        elif what == "crash":
            pack = held[lane].pop()
            crashes[pack.id] += pack.id not in done
            if not desk.crashed(lane, pack.id):
                failed.add(pack.id)
        else:
            for pack in held[lane]:
                crashes[pack.id] += what == "die" and pack.id not in done
            failed |= set(desk.lost(lane, blame=what == "die"))
            held[lane] = []
    for lane in kinds:  # all that is still out comes back, and is done
        for pack in held[lane]:
            desk.done(lane, pack.id)
            done.add(pack.id)
    while more := desk.next("last", CPU):
        for pack in more:
            desk.done("last", pack.id)
            done.add(pack.id)
    assert done | failed == {pack.id for pack in packs}
    assert all(crashes[pack_id] > RETRIES for pack_id in failed - done)


def test_cores_take_the_cheap_end_and_a_gpu_fills_from_the_other():
    """Where both take the same packs a core gets the last one, and a GPU as many of the first as fill it."""
    packs = packs_of(6)
    desk = Desk([(pack,) for pack in packs], {pack.id: 0.4 for pack in packs})
    assert desk.next("core", CPU) == (packs[-1],)
    assert desk.next("gpu", GPU) == (packs[0], packs[1])


def test_an_idle_gpu_takes_what_cores_still_train():
    """At the end a GPU repeats the slow ones: the first to be through counts, and no core repeats anything."""
    packs = packs_of(2)
    desk = Desk([(pack,) for pack in packs], {pack.id: 0.4 for pack in packs})
    assert desk.next("core 1", CPU) == (packs[1],)
    assert desk.next("core 2", CPU) == (packs[0],)
    assert desk.next("core 3", CPU) == ()
    assert set(desk.next("gpu 1", GPU)) == set(packs)
    assert desk.next("gpu 2", GPU) == ()
    desk.done("gpu 1", packs[0].id)
    assert desk.lost("core 2", blame=True) == []
    assert desk.next("core 2", CPU) == ()


def test_more_loads_are_handed_out_once():
    """What is added goes to whoever asks; what is waiting, or with a lane, is not handed out twice."""
    packs = packs_of(4)
    desk = Desk([(packs[0],), (packs[1],)])
    assert desk.next("lane 1", CPU) == (packs[0],)
    desk.add([(pack,) for pack in packs])
    assert [desk.next(f"lane {i}", CPU) for i in (2, 3, 4, 5)] == [(packs[1],), (packs[2],), (packs[3],), ()]
    desk.done("lane 1", packs[0].id)
    desk.add([(packs[0],)])
    assert desk.next("lane 1", CPU) == (packs[0],)


def test_what_a_desk_started_again_does_not_know_is_tried_again():
    """A crash of a pack that another desk handed out fails nothing: the pack is in the queue."""
    (pack,) = packs_of(1)
    desk = Desk([(pack,)])
    assert desk.crashed("lane", pack.id)
    assert desk.next("lane", CPU) == (pack,)


@pytest.mark.parametrize("blame", [True, False])
def test_only_what_may_be_to_blame_fails(blame):
    """A pack whose worker dies too often fails; one whose machine is lost goes on for ever."""
    (pack,) = packs_of(1)
    desk = Desk([(pack,)])
    told = []
    for _ in range(RETRIES + 3):
        if not desk.next("lane", CPU):
            break
        told += desk.lost("lane", blame=blame)
    assert told == ([pack.id] if blame else [])
