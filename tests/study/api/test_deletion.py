"""Deletion of a study from MLflow and the store, in an order that loses nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import study
from study.api import Where
from study.api.deletion import deletion_of
from study.errors import BusyError, InputError, TrackingError, UnknownStudyError
from study.store import Store, StudyStore
from study.tracking import experiments_of
from study.tracking.address import connect

# MLflow and its imports must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def root(finished_study: Path, tmp_path: Path) -> Path:
    """Return a copy of a store whose study is finished, reported and published."""
    return Path(shutil.copytree(finished_study / "studies", tmp_path / "studies"))


def little(root: Path, tracking_uri: str | None = None) -> study.Study:
    return study.Study("little", Where(str(root), tracking_uri))


def published(root: Path) -> int:
    return len(experiments_of(f"sqlite:///{root}/mlflow.db", "little"))


def test_a_deleted_study_can_run_again(root: Path, finished_study: Path) -> None:
    """A deletion reports the removed parts and leaves nothing; the same file runs and is published again."""
    deletion = little(root).delete()
    assert (deletion.trials, deletion.has_report, deletion.files > 10, deletion.size_bytes > 10_000) == (
        12,
        True,
        True,
        True,
    )
    assert [experiment.name for experiment in deletion.experiments] == ["little"]
    assert "12 trials and a report" in str(deletion)
    assert not (root / "little").exists()
    assert (Store(root).studies(), published(root)) == ([], 0)
    with pytest.raises(UnknownStudyError, match="no study 'little'"):
        little(root).delete()
    reloaded = study.load(finished_study / "little.yaml", store=root)
    assert len(reloaded.run(local=True, engine="torch").trials()) == 12
    assert published(root) == 1


def test_nothing_is_deleted_without_mlflow(root: Path) -> None:
    """If MLflow is unreachable, nothing is deleted; with tracking off, only the store's files are."""
    before = Store(root).study("little").sizes()
    with pytest.raises(TrackingError, match=r"Nothing of 'little' was deleted from the store; --tracking-uri off"):
        little(root, "http://127.0.0.1:9").delete()
    assert Store(root).study("little").sizes() == before
    deletion = little(root, "off").delete()
    assert "MLflow: is left alone" in str(deletion)
    assert not (root / "little").exists()
    assert published(root) == 1
    assert "store:  nothing in" in str(deletion_of("little", Where(str(root))))
    little(root).delete()
    assert published(root) == 0
    assert not (root / "little").exists()


def test_a_running_study_stays(root: Path) -> None:
    """While a driver holds the study, neither its experiment nor its files are deleted."""
    with Store(root).study("little").lock(), pytest.raises(BusyError, match="is being run by process"):
        little(root).delete()
    assert published(root) == 1
    assert len(Store(root).study("little").done()) == 12


def test_a_second_deletion_completes_an_interrupted_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second deletion completes one that was interrupted between MLflow and the store, or within the store."""

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    for target, name in ((StudyStore, "delete"), (type(Store(root).study("little")._folder), "remove_folders")):
        with monkeypatch.context() as interrupted:
            interrupted.setattr(target, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                little(root).delete()
    assert (root / "little").is_dir()
    assert not Store(root).study("little").exists
    little(root).delete()
    assert not (root / "little").exists()


@pytest.mark.parametrize("name", ["mlflow-artifacts", "link", "..", "litle", "it's"])
def test_nothing_else_is_deleted(root: Path, name: str) -> None:
    """A folder without a study, a link to a study and a name that leads elsewhere are refused."""
    (root / "link").symlink_to(root / "little")
    before = sorted(root.rglob("*"))
    with pytest.raises(InputError):
        deletion_of(name, Where(str(root)))
    assert sorted(root.rglob("*")) == before


def test_results_copied_by_other_studies_stay(root: Path, finished_study: Path) -> None:
    """Results that another study copied from the deleted study stay."""
    text = (finished_study / "little.yaml").read_text()
    (root.parent / "other.yaml").write_text(text.replace("study: little", "study: other"))
    study.load(root.parent / "other.yaml", store=root, tracking_uri="off").run(local=True)
    before = Store(root).study("other").read_results()
    little(root).delete()
    other = Store(root).study("other")
    assert other.read_results().equals(before)
    assert len(other.read_curves()) == len(other.read_weights()) == 12


def test_a_folder_without_a_study_stays(root: Path) -> None:
    """An experiment with the name of a folder of other files deletes nothing."""
    (root / "data").mkdir()
    (root / "data" / "precious.csv").write_text("1")
    client = connect(f"sqlite:///{root}/mlflow.db")
    experiment = client.create_experiment("data")
    with pytest.raises(
        UnknownStudyError, match="no study 'data'"
    ):  # an experiment without runs needn't be this service's
        deletion_of("data", Where(str(root)))
    client.create_run(experiment, tags={"study.kind": "study"})
    with pytest.raises(InputError, match="has files but no study"):
        deletion_of("data", Where(str(root)))
    assert (root / "data" / "precious.csv").read_text() == "1"
    assert [experiment.is_active for experiment in experiments_of(f"sqlite:///{root}/mlflow.db", "data")] == [True]
