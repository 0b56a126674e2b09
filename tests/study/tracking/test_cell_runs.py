"""Each cell has a run between the study's and its trials', named by its varying values, with its statistics."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from study.arrow import results_table
from study.errors import TrackingError
from study.records import Result, Trial
from study.tracking import CellRun, Publisher, load, sync
from study.tracking.address import connect
from tests.study.tracking.before import published_before
from tests.study.tracking.made import CELL, CURVES, Made, curve, publish_all, runs_of, solved

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

OTHER = CELL.replace(sparsity_start=5)
PARENT = "mlflow.parentRunId"


def of_other(seed: int) -> Result:
    return replace(solved(seed), trial=Trial(OTHER, seed))


RESULTS = [solved(0), solved(1), of_other(0), of_other(1)]
PACKS = Made(RESULTS, [curve(0), curve(1)], size=2)
EARLY = CellRun(CELL, "NMU early", {"schedule": "early"}, {"success_rate": 0.5, "solved_at_median": 100.0})
LATE = CellRun(OTHER, "NMU late", {"schedule": "late"}, {"success_rate": 1.0})


def by_name(uri: str, kind: str) -> dict[str, Any]:
    runs = {run.info.run_name: run for run in runs_of(uri, kind)}
    assert len(runs) == len(runs_of(uri, kind))
    return runs


def as_planned(uri: str) -> None:
    """Check that runs have the names, labels and parents of `EARLY` and `LATE`, without duplicates."""
    (study,) = runs_of(uri, "study")
    cells, trials = by_name(uri, "cell"), by_name(uri, "trial")
    assert set(cells) == {"NMU early", "NMU late"}
    assert set(trials) == {f"{name} seed {seed}" for name in cells for seed in (0, 1)}
    for name, cell in cells.items():
        label = name.removeprefix("NMU ")
        assert cell.data.tags[PARENT] == study.info.run_id
        own = [trials[f"{name} seed {seed}"] for seed in (0, 1)]
        assert {run.data.tags["study.label.schedule"] for run in (cell, *own)} == {label}
        assert {run.data.tags[PARENT] for run in own} == {cell.info.run_id}
        assert {run.data.tags["study.cell_id"] for run in (cell, *own)} == {(CELL if label == "early" else OTHER).id}
        assert {run.info.status for run in (study, cell, *own)} == {"FINISHED"}
    expected = results_table(RESULTS).sort_by([("cell_id", "ascending"), ("seed", "ascending")])
    assert load(uri, "demo", with_curves=False)[0].equals(expected)


@pytest.mark.parametrize("how", ["sync", "publisher"])
def test_a_cell_has_its_name_values_and_statistics(uri: str, how: str) -> None:
    """Any publisher writes cells in the plan's order, with parameters, labels and statistics, and trials below them."""
    if how == "sync":
        sync(uri, "demo", PACKS, cells=[EARLY, LATE])
    else:
        with Publisher(
            uri, "demo", PACKS, cells=lambda: [replace(c, metrics=None) for c in (EARLY, LATE)]
        ) as publisher:
            publish_all(publisher, PACKS)
            publisher.queue_cells([EARLY, LATE])
        assert publisher.trouble is None
    as_planned(uri)
    early = by_name(uri, "cell")["NMU early"]
    assert early.data.metrics == {"success_rate": 0.5, "solved_at_median": 100.0}
    assert early.data.params["hidden_size"] == "4"
    assert early.data.params["subset_ratio"] == repr(0.1 + 0.2)
    assert "seed" not in early.data.params
    places = {
        run.info.run_name: run.data.tags["study.place"] for run in [*runs_of(uri, "study"), *runs_of(uri, "cell")]
    }
    assert sorted(places, key=lambda name: places[name]) == ["demo", "NMU early", "NMU late"]


def test_publishing_cells_twice_writes_nothing(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Correct values aren't written again, in cells or trials."""
    sync(uri, "demo", PACKS, cells=[EARLY, LATE])
    before = [run.to_dictionary() for kind in ("cell", "trial") for run in runs_of(uri, kind)]
    writes = counting_writes(monkeypatch)
    (study,) = runs_of(uri, "study")
    sync(uri, "demo", PACKS, cells=[EARLY, LATE])
    assert {run_id for run_id in writes if run_id is not None} == {study.info.run_id}
    assert [run.to_dictionary() for kind in ("cell", "trial") for run in runs_of(uri, kind)] == before


def counting_writes(monkeypatch: pytest.MonkeyPatch, *, fail_at: int = 0) -> list[str | None]:
    """Return a list that collects the run of each write; write number `fail_at` raises, like a kill."""
    writes: list[str | None] = []
    for name in ("create_run", "log_batch", "update_run", "set_terminated", "delete_run", "delete_tag", "set_tag"):
        monkeypatch.setattr(MlflowClient, name, _counted(getattr(MlflowClient, name), writes, fail_at))
    return writes


def _counted(method: Callable[..., Any], writes: list[str | None], fail_at: int) -> Callable[..., Any]:
    def call(self: MlflowClient, first: str, *others: Any, **named: Any) -> Any:
        writes.append(None if method.__name__ == "create_run" else first)
        if len(writes) == fail_at:
            raise OSError("killed")
        return method(self, first, *others, **named)

    return call


def test_more_seeds_change_a_cell_in_place(uri: str) -> None:
    """More seeds update the statistics of a cell's run; a statistic that no longer exists becomes NaN."""
    sync(uri, "demo", Made(RESULTS[:1]), cells=[EARLY])
    (first,) = runs_of(uri, "cell")
    sync(uri, "demo", Made(RESULTS[:2]), cells=[replace(EARLY, metrics={"success_rate": 0.0})])
    (cell,) = runs_of(uri, "cell")
    assert cell.info.run_id == first.info.run_id
    assert cell.data.metrics["success_rate"] == 0.0
    assert math.isnan(cell.data.metrics["solved_at_median"])
    assert {run.data.tags[PARENT] for run in runs_of(uri)} == {cell.info.run_id}


@pytest.mark.parametrize("how", ["sync", "publisher"])
def test_names_and_labels_follow_the_plan(uri: str, how: str) -> None:
    """If a study is extended and names change, existing runs are renamed, and none is created."""
    plain = [CellRun(CELL, "NMU", {"axis": "gone"}, {}), CellRun(OTHER, "NMU 2", {}, {})]
    sync(uri, "demo", PACKS, cells=plain)
    before = {run.info.run_id for run in runs_of(uri)}
    if how == "sync":
        assert sync(uri, "demo", PACKS, cells=[EARLY, LATE]) == 0
    else:
        with Publisher(uri, "demo", PACKS, cells=lambda: [EARLY, LATE]) as publisher:
            publisher.catch_up()
            publisher.queue_cells([EARLY, LATE])
        assert publisher.trouble is None
    as_planned(uri)
    assert {run.info.run_id for run in runs_of(uri)} == before
    assert not [run for run in runs_of(uri) if "study.label.axis" in run.data.tags]


def test_a_cell_that_is_not_planned_any_more_is_not_listed_first(uri: str) -> None:
    """Runs of an unplanned cell lose their place in the order; a never-planned cell is named by model and size."""
    sync(uri, "demo", PACKS, cells=[EARLY, LATE])
    sync(uri, "demo", PACKS, cells=[EARLY])
    assert "study.place" not in by_name(uri, "cell")["NMU late"].data.tags
    assert {f"NMU late seed {seed}" for seed in (0, 1)} < by_name(uri, "trial").keys()
    sync(uri, "bare", PACKS)
    assert [run.info.run_name for run in runs_of(uri, "cell", "bare")] == ["NMU h4"] * 2


def test_two_runs_of_a_cell_become_one(uri: str) -> None:
    """Two runs of a cell, due to two publishers or a lost response, become one, with the trials of both."""
    sync(uri, "demo", PACKS, cells=[EARLY, LATE])
    client = connect(uri)
    (early,) = (run for run in runs_of(uri, "cell") if run.info.run_name == "NMU early")
    tags = {name: value for name, value in early.data.tags.items() if name != "mlflow.runName"}
    twin = client.create_run(early.info.experiment_id, start_time=1, tags=tags, run_name="NMU early")
    client.set_tag(by_name(uri, "trial")["NMU early seed 1"].info.run_id, PARENT, twin.info.run_id)
    sync(uri, "demo", PACKS, cells=[EARLY, LATE])
    as_planned(uri)


def test_trials_published_before_cell_runs_are_moved_below_them(uri: str) -> None:
    """Trials move below cell runs without being written again; old charts are deleted, counts and notes stay."""
    published_before(uri, PACKS)
    before = {run.info.run_id for run in runs_of(uri)}
    assert sync(uri, "demo", PACKS, cells=[EARLY, LATE]) == 0
    as_planned(uri)
    assert {run.info.run_id for run in runs_of(uri)} == before
    (study,) = runs_of(uri, "study")
    assert study.data.metrics == {"done": 4.0}
    assert study.data.tags["mlflow.note.content"] == "mine"
    assert [point.step for point in connect(uri).get_metric_history(study.info.run_id, "done")] == [0, 5]


def test_a_publisher_moves_old_trials_without_reading_packs(uri: str) -> None:
    """A publisher trusts old marks: it moves all runs of an old study without reading or publishing packs."""
    published_before(uri, PACKS)

    class Unread(Made):
        def curves(self, name: str) -> Any:
            raise AssertionError(name)

    packs = Unread(RESULTS, CURVES, size=2)
    with Publisher(uri, "demo", packs, cells=lambda: [EARLY, LATE]) as publisher:
        publisher.catch_up()
        publisher.queue_cells([EARLY, LATE])
    assert publisher.trouble is None
    as_planned(uri)


def test_refused_names_of_metrics_are_encoded(uri: str) -> None:
    """The mean and interval of a metric with a name that MLflow refuses are published under an encoded name."""
    sync(uri, "demo", Made(RESULTS[:1]), cells=[replace(EARLY, metrics={"val(σ) %_mean": 0.5, "val(σ) %_lower": 0.25})])
    (cell,) = runs_of(uri, "cell")
    assert sorted(cell.data.metrics.values()) == [0.25, 0.5]


def test_a_run_without_parameters_stops_nothing(uri: str) -> None:
    """A foreign trial run without parameters is left unchanged, and the other trials are published."""
    sync(uri, "demo", PACKS, cells=[EARLY, LATE])
    (study,) = runs_of(uri, "study")
    tags = {"study.kind": "trial", "study.trial_id": "gone", "study.cell_id": "gone", "study.seed": "7"}
    lost = connect(uri).create_run(study.info.experiment_id, tags=tags, run_name="lost").info.run_id
    sync(uri, "demo", PACKS, cells=[EARLY, LATE])
    connect(uri).delete_run(lost)
    as_planned(uri)


@pytest.mark.slow
def test_a_sync_completes_an_upgrade_killed_after_any_write(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the upgrade of an old database is killed after any write, the next sync completes it."""
    published_before(uri, PACKS)
    cells, fail_at, is_killed = [EARLY, LATE], 0, True
    while is_killed:
        fail_at += 1
        path = tmp_path / f"{fail_at}.db"
        with closing(sqlite3.connect(tmp_path / "mlflow.db")) as old, closing(sqlite3.connect(path)) as copy:
            old.backup(copy)  # includes its write-ahead log
        copy_uri = f"sqlite:///{path}"
        with monkeypatch.context() as patch:
            counting_writes(patch, fail_at=fail_at)
            try:
                sync(copy_uri, "demo", PACKS, cells=cells)
                is_killed = False
            except TrackingError:
                pass
        sync(copy_uri, "demo", PACKS, cells=cells)
        as_planned(copy_uri)
        (study,) = runs_of(copy_uri, "study")
        assert [point.step for point in connect(copy_uri).get_metric_history(study.info.run_id, "done")] == [0, 5]
    assert fail_at > 20
