"""A deleted study's experiment is hidden, and its name is free."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.errors import InputError, TrackingError
from study.tracking import default_uri, delete_experiments, experiments_of, published, sync
from study.tracking.address import connect
from tests.study.tracking.made import CURVES, RESULTS, Made

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

PACKS = Made(RESULTS, CURVES)


def experiment_id(uri: str, name: str = "demo") -> str:
    experiment = connect(uri).get_experiment_by_name(name)
    assert experiment is not None
    return str(experiment.experiment_id)


def delete(uri: str) -> None:
    delete_experiments(uri, "demo", experiments_of(uri, "demo"))


def test_a_name_can_be_used_again(addresses: tuple[str, str]) -> None:
    """A new study of that name is published normally; the deleted one can still be restored."""
    uri, _ = addresses
    sync(uri, "demo", PACKS)
    sync(uri, "other", PACKS)
    first = experiment_id(uri)
    (experiment,) = experiments_of(uri, "demo")
    runs = len(connect(uri).search_runs([first]))
    assert (experiment.name, experiment.is_active, experiment.runs) == ("demo", True, f"{runs} runs")
    delete(uri)
    assert experiments_of(uri, "demo") == []
    assert connect(uri).get_experiment_by_name("demo") is None
    assert connect(uri).get_experiment(first).lifecycle_stage == "deleted"
    assert sync(uri, "demo", PACKS) == len(RESULTS)
    assert experiment_id(uri) != first
    assert len(published(uri, "other")) == 3
    connect(uri).restore_experiment(first)
    assert len(published(uri, f"demo (deleted, experiment {first})")) == 3


def test_the_name_of_an_experiment_deleted_by_hand_is_freed(uri: str) -> None:
    """MLflow's own deletion keeps the name and so blocks publishing; `study delete` frees the name."""
    sync(uri, "demo", PACKS)
    runs = len(connect(uri).search_runs([experiment_id(uri)]))
    connect(uri).delete_experiment(experiment_id(uri))
    with pytest.raises(TrackingError, match="was deleted in MLflow"):
        sync(uri, "demo", PACKS)
    (experiment,) = experiments_of(uri, "demo")
    assert (experiment.is_active, experiment.runs) == (False, f"{runs} runs")
    delete(uri)
    assert sync(uri, "demo", PACKS) == len(RESULTS)


@pytest.mark.parametrize("steps", [1, 2])
def test_an_interrupted_deletion_is_completed(uri: str, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """After an interruption behind the tag or the new name, a second deletion completes the first."""
    from mlflow import MlflowClient

    sync(uri, "demo", PACKS)
    first_id = experiment_id(uri)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(MlflowClient, ("rename_experiment", "delete_experiment")[steps - 1], interrupt)
        with pytest.raises(KeyboardInterrupt):
            delete(uri)
    assert [experiment.experiment_id for experiment in experiments_of(uri, "demo")] == [first_id]
    delete(uri)
    assert experiments_of(uri, "demo") == []
    assert connect(uri).get_experiment(first_id).lifecycle_stage == "deleted"


def interrupt(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_runs_of_others_are_left_alone(uri: str) -> None:
    """An experiment with a foreign run isn't deleted."""
    sync(uri, "demo", PACKS)
    connect(uri).create_run(experiment_id(uri))
    with pytest.raises(InputError, match="runs that the study didn't write; nothing of 'demo' was deleted"):
        experiments_of(uri, "demo")


def test_no_database_is_made(tmp_path: Path) -> None:
    """Without a database, the list of experiments is empty, and none is made; an unreachable server is an error."""
    assert experiments_of(default_uri(tmp_path), "demo") == []
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TrackingError, match="nobody answers"):
        experiments_of("http://127.0.0.1:9", "demo")
