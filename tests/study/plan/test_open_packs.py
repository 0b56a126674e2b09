"""Reports of workers on a pack and its parts, in any order: each trial and each end counts once."""

from __future__ import annotations

import io
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.cluster.callback import SchedulerCallback
from study.console import Console
from study.driver.monitor import Monitor
from study.plan.plan import Plan, make_plan
from study.records import Event, Outcome, Pack, PackCrashed, PackDone, PackFailed, PackSplit, Progress, Result
from study.results.stored_packs import StoredPacks
from study.spec import parse_spec
from study.store import Store, StudyStore
from study.tracking import Publisher

TRIALS = 8
SPEC = f"{{study: s, question: q, task: {{name: simple}}, models: [NMU], seeds: {TRIALS}, fixed: {{hidden_size: 2}}}}"
PLAN: Plan = make_plan(parse_spec(SPEC, source="test"))
WHOLE = Pack(PLAN.trials)


def halves(pack: Pack) -> tuple[Pack, Pack]:
    middle = len(pack.trials) // 2
    return Pack(pack.trials[:middle]), Pack(pack.trials[middle:])


FIRST, SECOND = halves(WHOLE)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StudyStore:
    """Return a store with the whole pack, its halves and quarters, so that packs reported as done are stored."""
    folder = Store(tmp_path_factory.mktemp("store")).study("s")
    for pack in (WHOLE, FIRST, SECOND, *halves(FIRST), *halves(SECOND)):
        results = [Result(trial=trial, outcome=Outcome.SOLVED, iterations=1) for trial in pack.trials]
        folder.write_pack(pack.id, results, [], [], {"created_at": "never"})
    return folder


@st.composite
def telling(draw: st.DrawFn, pack: Pack = WHOLE, depth: int = 2) -> list[Event]:
    """Draw a worker's events for a pack that it trains to its end, as a whole or in parts."""
    events: list[Event] = [Progress(pack.id, 1, 10, trials=len(pack.trials), solved=0, diverged=0)]
    if depth and draw(st.booleans()):
        events.append(PackSplit(pack.id, halves(pack)))
        for half in halves(pack):
            events += draw(telling(half, depth - 1))
    return [*events, PackDone(pack.id)]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, Event]]:
    """Draw the interleaved events of several workers on one pack: one worker finishes, the others may die."""
    others = draw(st.lists(telling(), max_size=2))
    workers = [draw(telling()), *(other[: draw(st.integers(0, len(other)))] for other in others)]
    ending = draw(st.sampled_from(["done", "failed", "crashed"]))
    if ending != "done":  # another worker may fail the pack; the first one finishes it in any case
        workers.append([PackFailed(WHOLE.id, "no") if ending == "failed" else PackCrashed(WHOLE.id, "no")])
    order = draw(st.permutations([number for number, events in enumerate(workers) for _ in events]))
    steps = [iter(events) for events in workers]
    return [(number, next(steps[number])) for number in order]


def tell(folder: StudyStore, history: list[tuple[int, Event]]) -> tuple[list[Event], dict[str, int], int]:
    """Send a history to the driver; return passed events, counts, and the number of trials queued for MLflow."""
    passed_on: list[Event] = []
    stop, console = threading.Event(), Console(file=io.StringIO())
    publisher = Publisher("never opened", "s", StoredPacks(folder))
    watch = Monitor(folder, publisher, console, stop, 600.0)
    watch.begin(PLAN, [WHOLE], PLAN.trials)
    with watch.showing():

        def on_event(event: Event) -> None:
            passed_on.append(event)
            watch(event)

        callback = SchedulerCallback([(WHOLE,)], None, on_event, stop, 300.0, None)
        for number, event in history:
            result = {"worker": "w", "node": "n", "events": [event], "idle": False}
            callback.on_trial_result(1, [], SimpleNamespace(config={"worker": number}), result)
        assert callback.failure is None
        assert callback.over
        assert not watch.board.running
        return passed_on, watch.board.counts, publisher.waiting


@settings(max_examples=50)
@given(history=histories())
def test_every_trial_counts_once_in_any_order(stored, history):
    """Each trial is counted and published once, each pack's end is reported once, and the run ends."""
    passed_on, counts, published = tell(stored, history)
    assert counts["trials"] == counts["done"] == TRIALS
    assert published == TRIALS
    ends = [event.pack_id for event in passed_on if isinstance(event, PackDone | PackFailed)]
    assert len(ends) == len(set(ends))
    assert WHOLE.id in ends


def test_a_split_that_comes_after_the_end_changes_nothing(stored):
    """Events of a worker that trains the parts of a finished pack aren't passed on."""
    late = [PackSplit(WHOLE.id, (FIRST, SECOND)), PackDone(FIRST.id), PackDone(SECOND.id), PackDone(WHOLE.id)]
    passed_on, counts, published = tell(stored, [(0, PackDone(WHOLE.id)), *((1, event) for event in late)])
    assert passed_on == [PackDone(WHOLE.id)]
    assert counts["done"] == counts["solved"] == published == TRIALS


def test_a_crash_of_a_pack_done_elsewhere_isnt_reported(stored):
    """No retry is announced for a pack that isn't retried."""
    passed_on, _, _ = tell(stored, [(0, PackDone(WHOLE.id)), (1, PackCrashed(WHOLE.id, "out of luck"))])
    assert passed_on == [PackDone(WHOLE.id)]
