"""The publisher never blocks training, and finally publishes everything."""

from __future__ import annotations

import socket
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from study.errors import StoreAwayError, StoreError, TrackingError
from study.records import Curve, Result
from study.tracking import Publisher, default_uri, load, published, sync
from study.tracking.experiment import Experiment
from study.tracking.packs import mark_of
from study.tracking.rows import TRIAL_ID
from tests.processes import READY_S, free_port
from tests.study.tracking.made import CURVES, RESULTS, Made, failed, publish_all, runs_of, solved

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")
TEN = Made([solved(seed) for seed in range(10)])


def test_the_publisher_writes_the_same_as_sync(uri: str) -> None:
    """A sync after an undisturbed publisher has nothing to do."""
    packs = Made(RESULTS, CURVES, size=1)
    with Publisher(uri, "demo", packs, question="Why?", spec="study: demo\n") as publisher:
        for number, name in enumerate(packs.names()):
            publisher.queue_pack(name, 1)
            publisher.queue_counts({"trials_done": number})
        publisher.queue_finding("Nothing.")
        assert publisher.close(READY_S) == 0
    assert publisher.trouble is None
    assert sync(uri, "demo", packs) == 0
    (study,) = runs_of(uri, "study")
    assert study.info.status == "FINISHED"
    assert "Nothing." in study.data.tags["mlflow.note.content"]
    assert study.data.metrics["trials_done"] == 3


class Overlapping(Made):
    """A pack, and another pack with the first half of its trials."""

    def results(self, name: str) -> list[Result]:
        return self._results[:5] if name == "half" else self._results


def test_a_trial_that_is_in_two_packs_has_one_run(uri: str) -> None:
    """A complete pack trained after its published half is published without that half."""
    packs = Overlapping([solved(seed) for seed in range(10)])
    with Publisher(uri, "demo", packs) as publisher:
        publisher.queue_pack("half", 5)
        publisher.queue_pack("whole", 5, without={result.trial.id for result in packs.results("half")})
        assert publisher.waiting <= 10
        assert publisher.close(60) == 0
    trials = [run.data.tags[TRIAL_ID] for run in runs_of(uri)]
    assert sorted(trials) == sorted(result.trial.id for result in packs.results("whole"))


def test_a_server_that_is_down_costs_nothing_and_is_reported() -> None:
    """If the server is down, publishing fails without an error, and `sync` names the server without the password."""
    uri = f"http://me:secret@127.0.0.1:{free_port()}"
    messages: list[str] = []
    with Publisher(uri, "demo", TEN, notify=messages.append) as publisher:
        publish_all(publisher, TEN)
        publisher.queue_counts({"trials_done": 10})
        assert publisher.close(60) == 10
    assert publisher.trouble is not None
    assert "127.0.0.1" in publisher.trouble
    (sentence,) = messages
    assert "The study goes on" in sentence
    assert "secret" not in sentence + publisher.trouble
    for call in (
        lambda: sync(uri, "demo", Made(RESULTS, CURVES)),
        lambda: load(uri, "demo"),
        lambda: published(uri, "demo"),
    ):
        with pytest.raises(TrackingError, match=r"MLflow at http://\*\*\*@127") as caught:
            call()
        assert "secret" not in str(caught.value)


def test_a_server_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing ends after its timeout and returns the number of unpublished trials."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        publisher = Publisher(f"http://127.0.0.1:{silent.getsockname()[1]}", "demo", TEN).__enter__()
        publish_all(publisher, TEN)
        assert publisher.close(0.01) == 10
        assert publisher.trouble is not None
        assert publisher.close(60) == 10  # waits for its thread


class Torn(Made):
    """Packs with one unreadable pack."""

    def results(self, name: str) -> list[Result]:
        if name == "pack-4":
            raise StoreError("no readable results of pack pack-4")
        return super().results(name)


def test_an_unreadable_pack_does_not_stop_the_others(uri: str) -> None:
    """An unreadable pack is reported, and the other packs are published."""
    with Publisher(uri, "demo", Torn([solved(seed) for seed in range(10)])) as publisher:
        for name, trials in (("pack-0", 4), ("pack-4", 4), ("pack-8", 2)):
            publisher.queue_pack(name, trials)
        assert publisher.close(READY_S) == 4
    assert len(published(uri, "demo")) == 6
    assert publisher.trouble == "no readable results of pack pack-4"


class Away(Made):
    """Packs in a store that is unavailable at the first request."""

    asked = 0

    def results(self, name: str) -> list[Result]:
        self.asked += 1
        if self.asked == 1:
            raise StoreAwayError("the store is on holiday")
        return super().results(name)


def test_a_store_that_is_away_for_a_moment_costs_nothing(uri: str) -> None:
    """A read from a store that is briefly unavailable is retried, and all trials are published."""
    with Publisher(uri, "demo", Away([solved(seed) for seed in range(10)])) as publisher:
        publisher.catch_up()
        assert publisher.close(READY_S) == 0
    assert publisher.trouble is None
    assert len(published(uri, "demo")) == 10


def test_an_interrupted_publisher_counts_unpublished_trials(uri: str) -> None:
    """A close without waiting returns the number of stored trials that aren't published yet."""
    has_begun, go_on = threading.Event(), threading.Event()

    class Slow(Made):
        def curves(self, name: str) -> list[Curve]:
            has_begun.set()
            go_on.wait(READY_S)
            return super().curves(name)

    publisher = Publisher(uri, "demo", Slow([solved(seed) for seed in range(10)])).__enter__()
    publisher.catch_up()
    assert has_begun.wait(READY_S)
    assert publisher.close(0.0) == 10
    go_on.set()
    publisher.close(60)


def test_packs_published_after_a_comparison_of_all_are_marked(uri: str) -> None:
    """After a comparison of all runs, published packs are marked, and failures are replaced by new results."""
    before = Made([failed(1), failed(2)])
    sync(uri, "demo", before)
    experiment = Experiment(uri, "demo", look_at_all=True)
    experiment.believe_marks([])
    later = Made([solved(1), solved(2)])
    assert experiment.publish([later.pack("pack-0")]) == 2
    assert experiment.has(mark_of("pack-0", later.results("pack-0")))
    assert [run.info.status for run in runs_of(uri)] == ["FINISHED"] * 2


def test_a_database_file_has_query_statistics(tmp_path: Path) -> None:
    """After publishing into a database file, its statistics for the query planner exist."""
    uri = default_uri(tmp_path)
    with Publisher(uri, "demo", TEN) as publisher:
        publish_all(publisher, TEN)
        assert publisher.close(READY_S) == 0
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        counted = dict(database.execute("SELECT tbl, stat FROM sqlite_stat1 WHERE tbl = 'latest_metrics'"))
    assert int(counted["latest_metrics"].split()[0]) >= 10
