"""Trials of one study from two stores: each once, without changes of stored files."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.errors import ConflictError
from study.records import Trial
from study.store import Store, StudyStore, merge
from tests.study.store.test_store import CELL, OTHER_PACK, PACK, failed, fill, solved


@pytest.fixture(params=["folder", "s3"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> StudyStore:
    """Return a study with the trials 1 and 2, in a store of either kind."""
    root = str(tmp_path / "here") if request.param == "folder" else f"{request.getfixturevalue('s3').bucket()}/prefix"
    study = Store(root).study("demo")
    fill(study, PACK, [solved(1), solved(2)])
    return study


@pytest.fixture
def other_study(tmp_path: Path) -> StudyStore:
    """Return an empty study of another store."""
    return Store(tmp_path / "there").study("demo")


def files(study: StudyStore) -> dict[str, bytes | None]:
    return {key: study.read_file(key) for key in study.sizes()}


def ids(*seeds: int) -> set[str]:
    return {Trial(CELL, seed).id for seed in seeds}


def test_missing_trials_are_copied_with_curves_and_weights(study: StudyStore, other_study: StudyStore) -> None:
    """Packs of new trials are copied byte by byte; from other packs the missing trials, with curves and weights."""
    fill(other_study, OTHER_PACK, [solved(3), solved(4)])
    fill(other_study, "00cc", [solved(2), solved(5)])
    fill(other_study, "00dd", [failed(6)])
    before = files(study)
    assert merge(study, other_study, "demo.zip") == 3
    after = files(study)
    assert {key: after[key] for key in before} == before
    for kind in ("results", "curves", "weights"):
        key = f"{kind}/{OTHER_PACK}.parquet"
        assert after[key] == other_study.read_file(key)
    assert study.done() == ids(1, 2, 3, 4, 5)
    assert len(study.read_curves()) == len(study.read_weights()) == 5
    assert study.read_results()["seed"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert study.read_results().slice(4, 1).equals(other_study.read_results().slice(3, 1))


def test_a_repeated_merge_writes_nothing(study: StudyStore, other_study: StudyStore) -> None:
    """A repeated merge writes nothing."""
    fill(other_study, OTHER_PACK, [solved(2), solved(3)])
    assert merge(study, other_study, "demo.zip") == 1
    before = files(study)
    assert merge(study, other_study, "demo.zip") == 0
    assert files(study) == before


def test_two_results_of_one_trial_are_refused(study: StudyStore, other_study: StudyStore) -> None:
    """If the stores contradict each other, the user must decide, and nothing is copied."""
    fill(other_study, OTHER_PACK, [solved(2, test_mse=0.25), solved(3)])
    before = files(study)
    with pytest.raises(
        ConflictError, match=r"nothing was imported: .* differ in test_mse: .*demo, row 2, and demo.zip"
    ):
        merge(study, other_study, "demo.zip")
    assert files(study) == before


@pytest.mark.parametrize("writes", range(7))
def test_an_interrupted_merge_is_completed(
    study: StudyStore, other_study: StudyStore, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Interrupted before any of its writes, a merge leaves complete packs, and a second one copies the others."""
    fill(other_study, OTHER_PACK, [solved(3)])
    fill(other_study, "00cc", [solved(2), solved(4)])
    folder, writes_left = type(study._folder), [writes]
    write = folder.write

    def count(self: object, key: str, data: bytes) -> None:
        if not writes_left[0]:
            raise KeyboardInterrupt
        writes_left[0] -= 1
        write(self, key, data)  # type: ignore[arg-type]

    with monkeypatch.context() as interrupted:
        interrupted.setattr(folder, "write", count)
        if writes < 6:
            with pytest.raises(KeyboardInterrupt):
                merge(study, other_study, "demo.zip")
        else:
            assert merge(study, other_study, "demo.zip") == 2
    came = study.done() - ids(1, 2)
    assert len(study.read_curves()) == len(study.read_weights()) == 2 + len(came)
    assert merge(study, other_study, "demo.zip") == 2 - len(came)
    assert study.done() == ids(1, 2, 3, 4)
