"""Groups of packs written together, and publishers that detect each other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from study.errors import TrackingError
from study.records import Curve
from study.tracking import Publisher, sync
from study.tracking.address import connect
from study.tracking.experiment import Experiment
from study.tracking.packs import TRIALS_TOGETHER, WRITING, in_groups, marks_of
from study.tracking.rows import TRIAL_ID
from tests.processes import READY_S, wait_for
from tests.study.tracking.made import Made, failed, runs_of, solved

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

SINGLE = Made([solved(seed) for seed in range(6)], size=1)
GROUP = [SINGLE.pack(name) for name in SINGLE.names()]


def trials_in(uri: str) -> Counter[str]:
    return Counter(run.data.tags[TRIAL_ID] for run in runs_of(uri))


def publisher_tags(uri: str) -> list[str]:
    (study,) = runs_of(uri, "study")
    return [name for name in study.data.tags if name.startswith("mlflow.study.publisher.")]


def test_groups_keep_the_order_and_the_limit() -> None:
    """A group has a maximum of trials, unless it is one pack; every pack is in one group, in order."""
    sizes = [30, 20, 1, 60, 5, 45, 1]
    packs = [Made([solved(seed) for seed in range(size)], size=size).pack("pack-0") for size in sizes]
    groups = [[len(pack.results) for pack in group] for group in in_groups(packs)]
    assert groups == [[30, 20], [1], [60], [5, 45], [1]]
    assert TRIALS_TOGETHER == 50


def test_a_group_is_noted_read_back_and_marked_once(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing six packs of one trial takes three requests for each run, and three for the group."""
    experiment = Experiment(uri, "demo")
    experiment.publish([Made([solved(99)], size=1).pack("pack-0")])  # creates the cell's run
    sent: list[str] = []
    for name in ("create_run", "log_batch", "set_terminated", "search_runs", "set_tag", "get_run"):
        send = getattr(experiment._client, name)

        def count(*words: object, _send: object = send, _name: str = name, **more: object) -> object:
            sent.append(_name)
            return _send(*words, **more)  # type: ignore[operator]

        monkeypatch.setattr(experiment._client, name, count)
    assert experiment.publish(GROUP) == 6
    assert Counter(sent) == {"create_run": 6, "log_batch": 6 + 2, "set_terminated": 6, "search_runs": 1}
    assert all(experiment.has(pack.mark) for pack in GROUP)


def test_a_publisher_killed_within_a_group_leaves_one_run_a_trial(uri: str) -> None:
    """After a kill within a group, the next publisher finds the unmarked runs, and leaves one run per trial."""
    experiment = Experiment(uri, "demo")
    experiment.publish(GROUP[:2])
    experiment.study.tag({WRITING: ",".join(pack.name for pack in GROUP[2:4])})
    for pack in GROUP[2:4]:
        experiment._write(pack, lambda trial_id, into: {})
    second = Experiment(uri, "demo")
    assert set(second._runs) == {result.trial.id for pack in GROUP[2:4] for result in pack.results}
    assert second.publish(GROUP) == 2
    assert set(trials_in(uri).values()) == {1}
    assert len(trials_in(uri)) == len(GROUP)


def test_the_later_of_two_publishers_finds_the_earliers_runs(uri: str) -> None:
    """If two publishers are open and haven't read each other's runs, the later one deletes the duplicates."""
    first, second = Experiment(uri, "demo"), Experiment(uri, "demo")
    assert first.publish(GROUP) == second.publish(GROUP) == 6
    assert trials_in(uri) == dict.fromkeys((result.trial.id for pack in GROUP for result in pack.results), 1)
    second.finish()
    third = Experiment(uri, "demo")  # `second` has removed the tag of `first`, which is still open
    later = [Made([solved(7)], size=1).pack("pack-0")]
    assert third.publish(later) == first.publish(later) == 1
    assert not third.study.is_alone(runs_of(uri, "study"))  # `first` has set its tag again
    assert set(trials_in(uri).values()) == {1}


def test_a_publisher_opened_within_a_group_is_noticed(uri: str) -> None:
    """If another publisher opens and writes the same trials before the read-back, each trial keeps one run."""
    first = Experiment(uri, "demo")
    first.publish([Made([solved(99)], size=1).pack("pack-0")])
    opened: list[Experiment] = []

    def open_another(trial_id: str, into: Path) -> dict[str, Path]:
        if not opened:
            opened.append(Experiment(uri, "demo"))
            opened[0].publish(GROUP)
        return {}

    first.publish(GROUP, open_another)
    assert opened
    assert set(trials_in(uri).values()) == {1}


def test_a_killed_publisher_is_noticed_and_forgotten(uri: str) -> None:
    """An unfinished publisher counts as open until the next one finishes."""
    killed = Experiment(uri, "demo")
    assert killed.study.is_alone(runs_of(uri, "study"))
    sync(uri, "demo", SINGLE)
    assert publisher_tags(uri) == []
    second = Experiment(uri, "demo")
    assert second.study.is_alone(runs_of(uri, "study"))
    assert len(publisher_tags(uri)) == 1
    assert not killed.study.is_alone(runs_of(uri, "study"))


def test_two_runs_of_a_study_made_at_once_are_noticed(uri: str) -> None:
    """If two publishers each made a run of the study, the later one tags the other's; both then read back by pack."""
    first = Experiment(uri, "demo")
    (study,) = runs_of(uri, "study")
    client = connect(uri)
    twin = client.create_run(study.info.experiment_id, tags={"study.kind": "study"}, run_name="demo")
    first.study._meet()
    assert not first.study.is_alone(runs_of(uri, "study"))
    assert any(name.startswith("mlflow.study.publisher.") for name in client.get_run(twin.info.run_id).data.tags)


def test_a_run_that_vanishes_while_its_group_is_written_is_noticed(uri: str) -> None:
    """A run missing at read-back is an error, and its pack isn't marked."""
    experiment, client = Experiment(uri, "demo"), connect(uri)

    def delete_finished(trial_id: str, into: Path) -> dict[str, Path]:
        for run in runs_of(uri):
            if run.info.status == "FINISHED":
                client.delete_run(run.info.run_id)
        return {}

    with pytest.raises(TrackingError, match="5 runs of pack pack-0 differ from the written ones"):
        experiment.publish(GROUP, delete_finished)
    assert Experiment(uri, "demo").publish(GROUP) == 5
    assert set(trials_in(uri).values()) == {1}
    assert len(trials_in(uri)) == 6


def test_a_trial_that_failed_and_was_solved_in_one_group_is_one_run(uri: str) -> None:
    """The later pack's result counts; the pack with the failure has no mark."""
    packs = [Made([failed(1)]).pack("pack-0"), Made([solved(1), solved(2)]).pack("pack-0")]
    assert Experiment(uri, "demo").publish(packs) == 3
    assert sorted(run.data.tags["study.outcome"] for run in runs_of(uri)) == ["solved", "solved"]
    (study,) = runs_of(uri, "study")
    assert marks_of(study.data.tags) == [packs[1].mark]


def test_a_pack_with_a_failed_trial_is_published_again_without_twins(uri: str) -> None:
    """A later publisher finds the finished runs of an unmarked pack by reading them back, and writes no duplicates."""
    packs = Made([failed(1), solved(2), solved(3), solved(4)], size=2)
    for results in (packs, Made([solved(seed) for seed in (1, 2, 3, 4)], size=2)):
        with Publisher(uri, "demo", results) as publisher:
            publisher.catch_up()
        assert publisher.trouble is None
        assert set(trials_in(uri).values()) == {1}
        assert len(trials_in(uri)) == 4
    assert {run.info.status for run in runs_of(uri)} == {"FINISHED"}


class Written(Made):
    """Packs that record the order of curve reads, and the group being written at that time."""

    uri = ""

    def __init__(self, size: int) -> None:
        super().__init__([solved(seed) for seed in range(6)], size=size)
        self.noted: list[str] = []

    def curves(self, name: str) -> list[Curve]:
        self.noted.append(runs_of(self.uri, "study")[0].data.tags[WRITING])
        return super().curves(name)


def test_packs_that_come_one_after_another_are_written_together(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small pack waits for others, at the latest until the publisher is closed."""
    monkeypatch.setattr("study.tracking.publisher._GATHER_S", READY_S)
    packs = Written(size=1)
    packs.uri = uri
    first, *others = packs.names()
    with Publisher(uri, "demo", packs) as publisher:
        publisher.wait_for_study(READY_S)
        publisher.queue_pack(first, 1)
        assert runs_of(uri) == []  # gives the publisher time to write if it doesn't wait
        for name in others:
            publisher.queue_pack(name, 1)
    assert publisher.trouble is None
    assert packs.noted == [",".join(packs.names())] * 6
    assert len(trials_in(uri)) == 6


def test_a_small_pack_does_not_wait_for_ever(uri: str) -> None:
    """A small pack is finally written without other packs, and before the publisher is closed."""
    with Publisher(uri, "demo", SINGLE) as publisher:
        publisher.queue_pack("pack-0", 1)
        wait_for(lambda: publisher.waiting == 0, "the pack")
        assert len(trials_in(uri)) == 1
