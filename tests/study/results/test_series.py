"""Series of a built-in task from declaration to MLflow and report, also if stored without series."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from study import tracking
from tests.commands import invoke

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = """
study: along
task: {name: identity}
models: [linear]
seeds: 1
protocol: {iterations: 2, evaluate_every: 1, best_step_window: 1}
success: {test_error_at_7: {below: 0.1}}
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("along.yaml").write_text(SPEC)
    return tmp_path


@pytest.mark.slow
def test_mlflow_has_values_and_no_curves_of_series(workspace: Path) -> None:
    """A run and a later sync publish the same; a named metric of a series has its curve."""
    uris = [f"sqlite:///{workspace}/{name}.db" for name in ("run", "sync")]
    result = invoke("run", "along.yaml", "--store", "studies", "--local", "--tracking-uri", uris[0])
    assert result.exit_code == 0, result.output
    assert invoke("sync", "along", "--store", "studies", "--tracking-uri", uris[1]).exit_code == 0
    for uri in uris:
        table, (curve,) = tracking.load(uri, "along", with_curves=True)
        with_curve = {name for name, values in curve.metrics.items() if np.isfinite(values).all()}
        assert with_curve == {"train_error", "test_error_10", "test_error_20", "test_error_at_7"}
        assert all(np.isnan(values).all() for name, values in curve.metrics.items() if name not in with_curve)
        assert all(table[f"test_error_at_{number}"].null_count == 0 for number in range(-20, 21))


def test_a_study_that_was_stored_without_series_has_them_after_the_next_run(workspace: Path) -> None:
    """Before the next run, the report has a column for each metric; the run adds series without any training."""
    run = ("run", "along.yaml", "--store", "studies", "--local", "--tracking-uri", "off")
    assert invoke(*run).exit_code == 0
    report, declared = workspace / "studies" / "along" / "report", workspace / "studies" / "along" / "declared.json"
    cells = (report / "cells.csv").read_bytes()
    assert "Along an axis" in (report / "report.html").read_text()
    assert b"test_error_at_7_mean" in cells
    assert b"test_error_at_8" not in cells

    content = json.loads(declared.read_text())
    for metric in content["metrics"].values():
        for field in ("series", "along", "at", "is_trained"):
            del metric[field]
    declared.write_text(json.dumps(content))
    result = invoke(
        "report", "along", "--store", "studies", "--tracking-uri", "off", "--format", "csv", "--out", "before"
    )
    assert result.exit_code == 0, result.output
    assert "test_error_at_8_mean" in Path("before/cells.csv").read_text()
    assert not Path("before/series.csv").exists()

    results = {path: path.read_bytes() for path in (workspace / "studies" / "along" / "results").iterdir()}
    assert invoke(*run).exit_code == 0
    assert {path: path.read_bytes() for path in (workspace / "studies" / "along" / "results").iterdir()} == results
    assert (
        invoke(
            "report", "along", "--store", "studies", "--tracking-uri", "off", "--format", "csv", "--out", "after"
        ).exit_code
        == 0
    )
    assert Path("after/cells.csv").read_bytes() == cells
