"""Runs of any experiment: logs of plain MLflow become a table."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from study.errors import InputError, TrackingError
from study.outcomes import of_mlflow, outcomes_of_runs
from study.tracking import experiment_runs
from study.tracking.address import imported

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def swept(uri: str) -> str:
    """Log a sweep as a training script would: parent runs with parameters, and nested runs of seeds with steps."""
    imported()
    import mlflow

    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("my sweep")
    for optimizer in ("adam", "sgd"):
        with mlflow.start_run(run_name=optimizer):
            mlflow.log_params({"optimizer": optimizer, "batch_size": 32})
            for seed in range(3):
                with mlflow.start_run(nested=True):
                    mlflow.log_param("seed", seed)
                    for step in range(2):
                        mlflow.log_metrics({"val_acc": 0.5 + 0.1 * step + seed / 100, "epoch": step}, step=step)
    with mlflow.start_run():
        mlflow.log_params({"optimizer": "adam", "batch_size": 32, "seed": 3})
        mlflow.log_metric("val_acc", math.nan)
    with mlflow.start_run():
        mlflow.log_params({"optimizer": "sgd", "batch_size": 32, "seed": 3})
        mlflow.end_run("FAILED")
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
    return uri


def test_a_sweep_of_plain_mlflow_becomes_trials(swept: str) -> None:
    """Each seed is a trial with its parent's parameters and its last values; failed and diverged runs are counted."""
    table = experiment_runs(swept, "my sweep")
    outcomes = outcomes_of_runs(of_mlflow("my sweep", table))
    rows = outcomes.table.sort_by([("optimizer", "ascending"), ("seed", "ascending")]).to_pylist()
    assert [(row["optimizer"], row["seed"], row["outcome"]) for row in rows] == [
        *(("adam", seed, "finished") for seed in range(3)),
        ("adam", 3, "diverged"),
        *(("sgd", seed, "finished") for seed in range(3)),
        ("sgd", 3, "failed"),
    ]
    assert [row["val_acc"] for row in rows[:3]] == [0.6, 0.61, 0.62]
    assert (outcomes.by, outcomes.metric_options) == (("optimizer",), ["val_acc:higher"])


def test_an_experiment_is_found_by_name_or_id(swept: str) -> None:
    """An unknown name is an error with the nearest name; addresses other than MLflow's, or empty ones, are errors."""
    by_id = experiment_runs(swept, "1")
    assert by_id["run_id"].equals(experiment_runs(swept, "my sweep")["run_id"])
    with pytest.raises(InputError, match="no experiment 'my swep'; did you mean 'my sweep'"):
        experiment_runs(swept, "my swep")
    with pytest.raises(InputError, match="has no runs"):
        experiment_runs(swept, "Default")


def test_a_wrong_address_is_reported_and_makes_nothing(tmp_path: Path) -> None:
    """A missing database isn't created, and a path isn't an address."""
    for uri, message in (
        (f"sqlite:///{tmp_path}/no.db", "there is no database"),
        ("mlruns", "isn't an address of MLflow"),
    ):
        with pytest.raises(InputError, match=message):
            experiment_runs(uri, "x")
    with pytest.raises(TrackingError, match="nobody answers"):
        experiment_runs("http://127.0.0.1:9", "x")
    assert list(tmp_path.iterdir()) == []
