"""The store's index shows each study's stored state, and is rewritten on changes."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from study.errors import InputError
from study.results.index import Index
from study.results.load import load_results
from study.store import Store
from study.summaries.heartbeat import Heartbeat, line
from tests.commands import invoke
from tests.processes import wait_for
from tests.study.builders import exact_result
from tests.study.results.bad_studies import BAD, make_store

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(name="store")
def _store(finished_study: Path, tmp_path: Path) -> Path:
    """Return a copy of a store with one study."""
    return Path(shutil.copytree(finished_study / "studies", tmp_path / "studies"))


def entries(index: Index) -> dict[str, object]:
    """Return the index's entries by the studies' names."""
    assert index._page is not None
    return {entry.name: entry for entry in index._page.entries}


def test_an_entry_is_what_the_study_shows(store: Path) -> None:
    """Question, numbers and finding equal those of `study show`; its report and its runs are linked."""
    index = Index(store, tracking_uri=f"sqlite:///{store}/mlflow.db", dashboard="http://127.0.0.1:5001")
    assert index.write()
    results, entry = load_results("little", store), entries(index)["little"]
    assert (entry.finding, entry.cells, entry.trials) == (results.headline, 4, 12)
    newest = max(path.stat().st_mtime for path in (store / "little" / "results").iterdir())
    assert entry.written_at == datetime.fromtimestamp(newest, UTC)
    assert (store / entry.report).is_file()
    assert entry.dashboard.startswith("http://127.0.0.1:5001/#/experiments/1/runs?workflowType=machine_learning")
    page = (store / "index.html").read_text()
    assert 'href="little/report/report.html"' in page
    assert index.dashboard_page == entry.dashboard


def test_the_log_of_a_failed_trial_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a study with failed trials, the index links the output of one of them, and serves it."""
    monkeypatch.chdir(tmp_path)
    Path("fails.sh").write_text("echo no luck; exit 3\n")
    text = "{study: fails, command: 'sh fails.sh {seed}', results: a.json, metrics: {loss: lower}, seeds: 1}"
    Path("fails.yaml").write_text(text)
    assert invoke("run", "fails.yaml", "--local", "--tracking-uri", "off").exit_code == 1
    index = Index("studies")
    assert index.write()
    (log,) = Path("studies/fails/files").glob("*/log.txt")
    address = f"fails/files/{log.parent.name}/log.txt"
    assert f'href="{address}"' in Path("studies/index.html").read_text()
    served = index.file_of(address)
    assert served is not None
    assert served.path.read_text() == "no luck\n"
    shutil.rmtree("studies/fails/report")  # a report exists only once the run has ended
    index.write()
    assert f'href="{address}"' in Path("studies/index.html").read_text()
    assert index.file_of(address) == served


def test_tags_and_reasons_of_failures_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry has the tags of file and command, and each reason with its number of trials; new tags appear."""
    monkeypatch.chdir(tmp_path)
    Path("fails.sh").write_text("test $1 = 0 && exit 3; exit 0\n")
    text = "{study: fails, command: 'sh fails.sh {seed}', results: a.json, metrics: {loss: lower}, seeds: 3, tags: [a]}"
    Path("fails.yaml").write_text(text)
    assert invoke("run", "fails.yaml", "--local", "--tracking-uri", "off").exit_code == 1
    index = Index("studies")
    index.write()
    entry = index._page.entries[0] if index._page else None
    assert entry is not None
    assert (entry.tags, entry.failed, entry.states) == (("a",), 3, "finished failures")
    assert sorted(
        (failure.trials, "code 3" in failure.reason, failure.log.startswith("files/")) for failure in entry.failures
    ) == [(1, True, True), (2, False, True)]
    invoke("tag", "fails", "b")
    index.write()
    assert index._page is not None
    assert index._page.entries[0].tags == ("a", "b")


def test_a_running_study_says_what_trains(store: Path) -> None:
    """The heartbeat is shown while a process holds the study, but not after it was killed."""
    folder, index = Store(store).study("little"), Index(store)
    beat = Heartbeat("little", 5, 90, 5, 0, 0, 0, left_s=9.0, workers=1, at=datetime(2026, 5, 1, tzinfo=UTC))
    with folder.lock():
        folder.write_heartbeat(line(beat))
        index.write()
        assert index._page is not None
        entry = index._page.entries[0]
        assert (entry.heartbeat, entry.progress, entry.states) == (beat, (5, 90), "unfinished running")
        assert not index.write()
        folder.write_heartbeat(line(replace(beat, done=6)))
        assert index.write()
        folder.write_heartbeat("half a li")
        assert index.write()
        assert index._page.entries[0].progress == (12, 12)
        folder.write_heartbeat(line(beat))
    assert index.write()
    assert (index._page.entries[0].heartbeat, index._page.entries[0].states) == (None, "finished")


def test_one_bad_study_does_not_keep_the_others_from_being_shown(tmp_path: Path) -> None:
    """A study that is too large or unreadable is shown with its reason, and the others as usual."""
    index = Index(make_store(tmp_path / "studies"))
    assert index.write()
    entries = {entry.name: entry for entry in index._page.entries} if index._page else {}
    assert entries.keys() == {"good", *BAD}
    assert (entries["good"].done, entries["good"].error) == (6, "")
    for name, (_, _, reason) in BAD.items():
        assert reason in entries[name].error


def test_nothing_is_written_while_nothing_changes(store: Path) -> None:
    """A second look writes nothing; new results, another study, a lost page and a held lock each cause a write."""
    index = Index(store)
    assert index.write()
    assert not index.write()
    index.path.unlink()
    assert index.write()
    with Store(store).study("little").lock():
        assert index.write()
        assert entries(index)["little"].holder.startswith(f"process {os.getpid()} ")
    assert index.write()
    shutil.copytree(store / "little", store / "other")
    assert index.write()
    assert set(entries(index)) == {"little", "other"}


def test_new_results_are_read_once_they_are_due(store: Path) -> None:
    """A changed study is read again, except during its rest period while the page is live."""
    folder, index = Store(store).study("little"), Index(store)
    trial = load_results("little", store).plan.trials[0]
    folder.write_spec(folder.read_spec().replace("seeds: 3", "seeds: 5"))
    index.write()
    assert (entries(index)["little"].done, entries(index)["little"].trials) == (12, 20)
    new = exact_result(replace(trial, seed=4))
    folder.write_pack("00aa", [new], [], [], {})
    index._readings["little"] = replace(index._readings["little"], due_s=float("inf"))
    index.write(is_live=True)
    assert entries(index)["little"].done == 12
    index.write()  # the last page has the current state
    assert entries(index)["little"].done == 13


def test_an_unreadable_study_has_an_entry_with_the_reason(store: Path) -> None:
    """The unreadable study's entry has the reason; entries of other studies are as usual."""
    shutil.copytree(store / "little", store / "broken")
    (store / "broken" / "spec.yaml").write_text("study: broken\nmodelz: [NMU]\n")
    index = Index(store)
    index.write()
    assert "modelz" in entries(index)["broken"].error
    assert entries(index)["little"].error == ""


def test_a_study_without_results_has_an_entry(store: Path) -> None:
    """A study that has just begun shows its question and no finding."""
    for path in (store / "little" / "results").iterdir():
        path.unlink()
    index = Index(store)
    index.write()
    entry = entries(index)["little"]
    assert (entry.done, entry.trials, entry.finding, entry.strip, entry.written_at) == (0, 12, "", None, None)


def test_a_foreign_page_is_kept(store: Path) -> None:
    """A foreign file of that name is reported and kept."""
    (store / "index.html").write_text("mine")
    with pytest.raises(InputError, match="move it away"):
        Index(store).write()
    assert (store / "index.html").read_text() == "mine"


def test_a_missing_store_has_no_index(tmp_path: Path) -> None:
    """A missing store is reported, not created; the page of an empty store has instructions."""
    with pytest.raises(InputError, match="there is no store at"):
        Index(tmp_path / "typo")
    assert not (tmp_path / "typo").exists()
    Index(tmp_path).write()
    assert "study run demo" in (tmp_path / "index.html").read_text()


def test_an_object_stores_page_is_in_the_working_folder(
    s3, finished_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Studies of a bucket are listed in a local file with links to local reports."""
    monkeypatch.chdir(tmp_path)
    url = f"{s3.bucket()}/studies"
    done = invoke("run", str(finished_study / "little.yaml"), "--store", url, "--local", "--engine", "torch")
    assert done.exit_code == 0, done.output
    index = Index(url)
    assert index.write()
    assert not index.write()
    entry = entries(index)["little"]
    assert (entry.done, entry.report) == (12, "")
    assert entry.written_at is not None
    assert url in (tmp_path / "study-index.html").read_text()
    invoke("report", "little", "--store", url, "--tracking-uri", "off")
    assert index.write()
    assert entries(index)["little"].report == "little-report/report.html"


@pytest.fixture(name="follower")
def _follower(store: Path) -> Iterator[tuple[Index, threading.Event, list[str]]]:
    """Follow a store in a thread that ends with the test."""
    index, over, sentences = Index(store), threading.Event(), []
    index.write(is_live=True)
    thread = threading.Thread(target=index.follow, args=(over, sentences.append))
    thread.start()
    yield index, over, sentences
    over.set()
    thread.join()
    assert 'data-live="no"' in index.path.read_text()


def test_a_page_follows_the_store(follower, store: Path) -> None:
    """Updates appear on the page by themselves; at the end the page says that it isn't live."""
    index, _, sentences = follower
    assert 'data-live="yes"' in index.path.read_text()
    shutil.copytree(store / "little", store / "other")
    wait_for(lambda: 'data-study="other"' in index.path.read_text(), "the other study on the page")
    assert 'data-live="yes"' in index.path.read_text()
    assert sentences == []


def test_trouble_is_reported_once_and_followed_through(follower, store: Path) -> None:
    """An unwritable page is reported once, and is written when possible."""
    index, _, sentences = follower
    index.path.write_text("mine")
    shutil.copytree(store / "little", store / "other")
    wait_for(lambda: sentences, "the trouble to be told")
    index.path.unlink()
    wait_for(index.path.exists, "the page")
    assert len(sentences) == 1
    assert "move it away" in sentences[0]
