"""The publisher: never in training's way, complete in the end."""

from __future__ import annotations

import socket

import pytest

from study.errors import StoreError, TrackingError
from study.records import Result
from study.tracking import Publisher, load, published, sync
from tests.processes import free_port
from tests.study.tracking.made import CURVES, RESULTS, Made, publish_all, runs_of, solved

# What MLflow and its libraries deprecate is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")
TEN = Made([solved(seed) for seed in range(10)])


def test_the_publisher_writes_what_sync_would(uri: str) -> None:
    """Nothing is left to do after an undisturbed publisher."""
    packs = Made(RESULTS, CURVES, size=1)
    with Publisher(uri, "demo", packs, question="Why?", spec="study: demo\n") as publisher:
        for number, name in enumerate(packs.names()):
            publisher.publish(name, 1)
            publisher.counts({"trials_done": number})
        publisher.describe("Nothing.")
        assert publisher.close(60) == 0
    assert publisher.trouble is None
    assert sync(uri, "demo", packs) == 0
    (study,) = runs_of(uri, "study")
    assert study.info.status == "FINISHED"
    assert "Nothing." in study.data.tags["mlflow.note.content"]
    assert study.data.metrics["trials_done"] == 3


def test_a_server_that_is_down_costs_nothing_and_is_told_in_words() -> None:
    """Publishing loses only the view, and `sync` says who can't be reached, without the password."""
    uri = f"http://me:secret@127.0.0.1:{free_port()}"
    told: list[str] = []
    with Publisher(uri, "demo", TEN, tell=told.append) as publisher:
        publish_all(publisher, TEN)
        publisher.counts({"trials_done": 10})
        assert publisher.close(60) == 10
    assert publisher.trouble is not None
    assert "127.0.0.1" in publisher.trouble
    (sentence,) = told
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
    """Closing says how many trials weren't published when its time is up."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        publisher = Publisher(f"http://127.0.0.1:{silent.getsockname()[1]}", "demo", TEN).__enter__()
        publish_all(publisher, TEN)
        assert publisher.close(0.01) == 10
        assert publisher.trouble is not None
        assert publisher.close(60) == 10  # until its thread has ended


class Torn(Made):
    """Packs of which one can't be read."""

    def results(self, name: str) -> list[Result]:
        if name == "pack-4":
            raise StoreError("no readable results of pack pack-4")
        return super().results(name)


def test_a_pack_that_cannot_be_read_holds_nothing_up(uri: str) -> None:
    """The others are published, and what is wrong is said."""
    with Publisher(uri, "demo", Torn([solved(seed) for seed in range(10)])) as publisher:
        for name, trials in (("pack-0", 4), ("pack-4", 4), ("pack-8", 2)):
            publisher.publish(name, trials)
        assert publisher.close(60) == 4
    assert len(published(uri, "demo")) == 6
    assert publisher.trouble == "no readable results of pack pack-4"
