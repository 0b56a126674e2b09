"""MLflow shows the report's numbers of cells, with readable charts."""

from __future__ import annotations

import csv
import math
import shutil
from pathlib import Path

import pytest
from mlflow.entities import Run

from study.results import dashboard
from study.results.load import load_results
from study.results.study import sync
from study.tracking import CURVE, CURVE_POINTS, LINE, default_uri
from tests.study.tracking.made import runs_of

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_cells_have_the_numbers_of_the_report(finished_study: Path) -> None:
    """After a run MLflow names cells by their varying values, with the statistics and column names of cells.csv."""
    store = finished_study / "studies"
    cells = {run.data.tags["study.cell_id"]: run for run in runs_of(default_uri(store), "cell", "little")}
    assert {run.info.run_name for run in cells.values()} == {"NMU h2", "NMU h3", "NAC-mul h2", "NAC-mul h3"}
    rows = list(csv.DictReader((store / "little" / "report" / "cells.csv").read_text().splitlines()))
    assert len(rows) == len(cells)
    for row in rows:
        metrics = cells[row["cell_id"]].data.metrics
        assert metrics["trials"] == metrics["done"] == float(row["seeds"]) == 3
        for name in ("solved", "diverged", "failed", "success_rate", "success_rate_lower", "success_rate_upper"):
            assert metrics[name] == float(row[name])
        assert ("solved_at_median" in metrics) == bool(row["solved_at_median"])
    names = {run.info.run_name for run in runs_of(default_uri(store), study="little")}
    assert names == {f"{run.info.run_name} seed {seed}" for run in cells.values() for seed in range(3)}


def test_a_run_publishes_the_same_as_sync(finished_study: Path, uri: str, tmp_path: Path) -> None:
    """A run and `study sync` publish the same cells and charts, with equal names, numbers, labels and values."""
    shutil.copytree(finished_study / "studies" / "little", tmp_path / "studies" / "little")
    assert sync(load_results("little", tmp_path / "studies"), uri) == 12
    for kind in ("cell", "line", "curve"):
        by_run, by_sync = (
            {
                run.info.run_name: (run.data.metrics, run.data.params, own_tags(run))
                for run in runs_of(address, kind, "little")
            }
            for address in (default_uri(finished_study / "studies"), uri)
        )
        assert by_run == by_sync


def own_tags(run: Run) -> dict[str, str]:
    return {name: value for name, value in run.data.tags.items() if name.startswith("study.")}


def test_charts_have_few_lines_of_few_points(finished_study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts have a line for each method over hidden units, and thinned learning curves of a few cells."""
    results = load_results("little", finished_study / "studies")
    lines = dashboard.charts(results)
    rates = {line.name: line.points for line in lines if line.kind == LINE}
    assert {name: [x for chart, x, _ in points if chart == "success_rate"] for name, points in rates.items()} == {
        "NMU": [2, 3],
        "NAC•": [2, 3],
    }
    curves = [line for line in lines if line.kind == CURVE]
    assert {line.name for line in curves} == {results.plan.names[cell.id] for cell in results.plan.cells}
    for line in curves:
        steps = [step for name, step, _ in line.points if name == "curve/test_mse_median"]
        assert steps == sorted(set(steps))
        assert len(steps) <= CURVE_POINTS
        assert all(math.isfinite(value) for _, _, value in line.points)
    monkeypatch.setattr(dashboard, "MOST_CURVES", 3)
    assert len([line for line in dashboard.charts(results) if line.kind == CURVE]) <= 3
