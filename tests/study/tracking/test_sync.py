"""MLflow as an exact copy of the results that finally becomes complete."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from study.arrow import results_table
from study.errors import StoreError, TrackingError
from study.records import Curve, Result
from study.tracking import CURVE_POINTS, Publisher, load, published, sync
from study.tracking.address import connect
from study.tracking.existing import ExistingRun
from study.tracking.experiment import Experiment
from study.tracking.packs import CHECKED, marks_of
from study.tracking.rows import PACK, trial_run, trials_of
from tests.study.tracking.made import CELL, CURVES, RESULTS, Made, curve, failed, publish_all, runs_of, solved

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_results_come_back_from_mlflow_bit_for_bit(uri: str) -> None:
    """A report reads the same results from MLflow as from the store."""
    assert sync(uri, "demo", Made(RESULTS, CURVES)) == len(RESULTS)
    table, curves = load(uri, "demo")
    expected = results_table(RESULTS).sort_by([("cell_id", "ascending"), ("seed", "ascending")])
    assert table.equals(expected)
    assert published(uri, "demo") == {result.trial.id for result in RESULTS[:3]}
    assert [curve.trial_id for curve in curves] == sorted(curve.trial_id for curve in CURVES)


def test_a_thinned_curve_keeps_its_landmarks(uri: str) -> None:
    """A thinned curve has the exact first, last, best and solved-at points; non-finite points are dropped."""
    sync(uri, "demo", Made([solved(1)], [curve(1)]))
    (thin,) = load(uri, "demo")[1]
    original = curve(1)
    assert {0, 37_000, 211_000, 300_000} <= set(thin.iteration.tolist())
    assert len(thin.iteration) <= CURVE_POINTS <= 100
    places = np.searchsorted(original.iteration, thin.iteration)
    assert thin.metrics["test_mse"].tobytes() == original.metrics["test_mse"][places].tobytes()
    assert all(math.isfinite(value) for _, _, value in trial_run(solved(1), original).curve)


def test_a_trial_is_a_run_below_its_cells(uri: str) -> None:
    """Names, filter tags, parameters, status and times match the dashboard's conventions."""
    sync(uri, "demo", Made(RESULTS, CURVES), question="Why?", spec="study: demo\ngrid:\n  hidden_size: [2, 4]\n")
    (study,) = runs_of(uri, "study")
    assert study.info.status == "FINISHED"
    assert study.data.tags["mlflow.note.content"].startswith("Why?")
    experiment = connect(uri).get_experiment_by_name("demo")
    assert experiment is not None
    assert experiment.tags["mlflow.note.content"].startswith("Why?")
    assert study.data.tags["spec.grid.hidden_size"] == "[2, 4]"
    runs = {run.data.tags["study.trial_id"]: run for run in runs_of(uri)}
    run = runs[RESULTS[0].trial.id]
    assert run.info.run_name == "NMU h4 seed 1"
    (cell,) = runs_of(uri, "cell")
    assert run.data.tags["mlflow.parentRunId"] == cell.info.run_id
    assert cell.data.tags["mlflow.parentRunId"] == study.info.run_id
    assert run.data.tags["study.outcome"] == "solved"
    assert run.data.tags["study.hidden_size"] == "4"
    assert run.data.tags["study.cell_id"] == CELL.id
    assert run.data.params["subset_ratio"] == repr(0.1 + 0.2)
    assert "momentum" not in run.data.params
    assert run.data.metrics["solved"] == 1
    assert run.info.end_time - run.info.start_time == 1100
    assert run.info.status == "FINISHED"
    assert runs[RESULTS[3].trial.id].info.status == "FAILED"


def test_publishing_twice_changes_nothing(uri: str) -> None:
    """A second sync finds everything published."""
    sync(uri, "demo", Made(RESULTS, CURVES))
    before = [run.to_dictionary() for run in runs_of(uri)]
    assert sync(uri, "demo", Made(RESULTS, CURVES)) == 0
    assert [run.to_dictionary() for run in runs_of(uri)] == before
    assert len(runs_of(uri, "study")) == 1


def test_changed_trials_are_replaced(uri: str) -> None:
    """A trial that failed and was solved later has one run, solved."""
    sync(uri, "demo", Made([failed(1), solved(2)], []))
    assert sync(uri, "demo", Made([solved(1), solved(2)], [curve(1)])) == 1
    assert sorted(run.data.tags["study.outcome"] for run in runs_of(uri)) == ["solved", "solved"]


@pytest.mark.parametrize(
    ("tag", "value", "reason"),
    [
        ("engine", 'fused"""\nimport os', "engine must be the name of an engine"),
        ("device", "cpu\x1b[2J", "device must be the name of a device"),
        ("study.cell_id", "0123456789abcdef", "doesn't match its task, model and hyperparameters"),
        ("study.trial_id", "0123456789abcdef", "doesn't match its cell and seed"),
        ("study.outcome", "won", "it can't be read"),
    ],
)
def test_a_run_that_was_changed_is_left_out_with_its_reason(uri: str, tag: str, value: str, reason: str) -> None:
    """Results from MLflow are checked like the store's; impossible ones are left out with the reason."""
    sync(uri, "demo", Made([solved(1), solved(2)], []))
    run = next(run for run in runs_of(uri) if run.data.params["seed"] == "1")
    connect(uri).set_tag(run.info.run_id, tag, value)
    notices: list[str] = []
    table, _ = load(uri, "demo", with_curves=False, notify=notices.append)
    assert table["seed"].to_pylist() == [2]
    (notice,) = notices
    assert notice.startswith(f"run {run.info.run_id} of MLflow was left out: ")
    assert reason in notice
    assert notice.isprintable()


@pytest.mark.parametrize("stage", ["begun", "logged"])
def test_unfinished_runs_of_a_killed_publisher_are_completed(uri: str, stage: str) -> None:
    """A run left in the state RUNNING is completed as the trial's only run."""
    experiment = Experiment(uri, "demo")
    (trial,) = trials_of([solved(1)], [curve(1)])
    run_id, start_ms = experiment._begin("pack-0", trial)
    if stage == "logged":
        experiment._log(run_id, start_ms, trial)
    assert published(uri, "demo") == set()
    assert len(load(uri, "demo")[0]) == 0
    assert sync(uri, "demo", Made([solved(1)], [curve(1)])) == 1
    (run,) = runs_of(uri)
    assert (run.info.run_id, run.info.status) == (run_id, "FINISHED")
    table, curves = load(uri, "demo")
    assert table.equals(results_table([solved(1)]))
    assert len(curves[0].iteration) > 40


def test_two_runs_of_one_trial_become_one(uri: str) -> None:
    """Two runs of a trial, due to a lost response, become one."""
    experiment = Experiment(uri, "demo")
    (trial,) = trials_of([solved(1)], [])
    experiment._begin("pack-0", trial)
    experiment._publish("pack-0", trial, lambda trial_id, into: {})
    assert len(runs_of(uri)) == 2
    assert sync(uri, "demo", Made([solved(1)], [])) == 0
    assert [run.info.status for run in runs_of(uri)] == ["FINISHED"]


class Counting(Made):
    """Packs that count reads of their curves."""

    read = 0

    def curves(self, name: str) -> list[Curve]:
        self.read += 1
        return super().curves(name)


def test_a_published_pack_is_not_read_or_written_again(uri: str) -> None:
    """A complete pack has a mark: its curves aren't read, and its runs aren't requested."""
    packs = Counting([solved(seed) for seed in range(6)], [curve(seed) for seed in range(6)], size=2)
    experiment = Experiment(uri, "demo")
    assert [experiment.publish([packs.pack(name)]) for name in packs.names()] == [2] * 3
    (study,) = runs_of(uri, "study")
    assert len(marks_of(study.data.tags)) == 3
    second = Experiment(uri, "demo")
    assert not second._runs
    assert second.publish([packs.pack(name) for name in packs.names()]) == 0
    assert packs.read == 3
    assert {run.data.tags[PACK] for run in runs_of(uri)} == {"pack-0", "pack-2", "pack-4"}


def test_runs_published_without_marks_are_kept(uri: str) -> None:
    """Runs without a pack and marks are all checked once, and none is written twice."""
    packs = Made(RESULTS, CURVES)
    sync(uri, "demo", packs)
    client, study = connect(uri), runs_of(uri, "study")[0]
    for run in runs_of(uri):
        client.delete_tag(run.info.run_id, PACK)
    for tag in study.data.tags:
        if tag.startswith("mlflow.study."):
            client.delete_tag(study.info.run_id, tag)
    before = {run.info.run_id for run in runs_of(uri)}
    with Publisher(uri, "demo", packs) as publisher:
        publisher.catch_up()
    assert publisher.trouble is None
    assert {run.info.run_id for run in runs_of(uri)} == before
    tags = runs_of(uri, "study")[0].data.tags
    assert CHECKED in tags
    assert len(marks_of(tags)) == 0  # one trial of the only pack has failed


def test_trials_of_a_removed_pack_arent_published_twice(uri: str) -> None:
    """Trials of a removed pack that are now in another pack are found by the unused mark, and published once."""
    results = [solved(seed) for seed in range(4)]
    sync(uri, "demo", Made(results, size=2))
    retrained = [solved(seed, training_s=2.0) for seed in range(4)]
    with Publisher(uri, "demo", Made(retrained, size=4)) as publisher:
        publisher.catch_up()
    assert publisher.trouble is None
    assert sorted(run.data.metrics["training_s"] for run in runs_of(uri)) == [2.0] * 4
    assert len(marks_of(runs_of(uri, "study")[0].data.tags)) == 1


def test_two_runs_of_a_study_become_one(uri: str) -> None:
    """The study's own run, duplicated by a lost response, is merged into one."""
    sync(uri, "demo", Made(RESULTS))
    client, study = connect(uri), runs_of(uri, "study")[0]
    client.create_run(study.info.experiment_id, tags={"study.kind": "study"}, run_name="demo")
    sync(uri, "demo", Made(RESULTS))
    assert [(run.info.run_id, run.info.status) for run in runs_of(uri, "study")] == [(study.info.run_id, "FINISHED")]


def test_a_run_that_was_made_too_late_is_deleted(uri: str) -> None:
    """A run created by a request after its timeout stays unfinished, and is deleted at the end."""
    packs = Made([solved(1), solved(2)])
    with Publisher(uri, "demo", packs) as publisher:
        publish_all(publisher, packs)
        publisher.wait_for_study(250)
        experiment = Experiment(uri, "demo")
        (late,) = trials_of([solved(1)], [])
        experiment._begin("pack-0", late)
    assert publisher.trouble is None
    assert [run.info.status for run in runs_of(uri)] == ["FINISHED"] * 2


def test_two_publishers_that_delete_each_others_runs_lose_no_trial(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two publishers that would delete each other's run of a trial leave one run."""
    packs = Made(RESULTS[:1], CURVES[:1])
    (trial,) = trials_of(RESULTS[:1], CURVES[:1])
    slow, quick = Experiment(uri, "demo"), Experiment(uri, "demo")
    run_id, start_ms = slow._begin("pack-0", trial)
    slow._log(run_id, start_ms, trial)
    delete_run = quick._client.delete_run

    def delete_after_the_other(run: str) -> None:
        monkeypatch.setattr(quick._client, "delete_run", delete_run)
        slow._end(run_id, start_ms, trial)
        slow._runs[trial.trial.id] = ExistingRun(run_id, start_ms, False, False, trial.digest, {})
        slow._read_back(["pack-0"], [trial.trial.id], are_known=True)
        assert [run.info.run_id for run in runs_of(uri)] == [run_id]
        delete_run(run)

    monkeypatch.setattr(quick._client, "delete_run", delete_after_the_other)
    monkeypatch.setattr(
        "study.tracking.experiment.now_ms", lambda: start_ms + 10_000
    )  # the second publisher begins later
    quick.publish([packs.pack("pack-0")])
    assert [run.info.run_id for run in runs_of(uri)] == [run_id]
    assert sync(uri, "demo", Made(RESULTS[:1], CURVES)) == 0


def test_counts_and_files_are_on_the_studys_run(uri: str, tmp_path: Path) -> None:
    """The study's run has its latest counts, its file and its report."""
    page = tmp_path / "report.html"
    page.write_text("<html>")
    sync(uri, "demo", Made([]), spec="study: demo\n", counts={"trials_done": 3, "solved": 2}, files=lambda: [page])
    (study,) = runs_of(uri, "study")
    assert (study.data.metrics["trials_done"], study.data.metrics["solved"]) == (3, 2)
    client = connect(uri)
    assert {file.path for file in client.list_artifacts(study.info.run_id)} == {"report", "spec.yaml"}
    assert (tmp_path / "mlflow-artifacts" / "demo").is_dir()


def test_a_deleted_experiment_is_reported(uri: str) -> None:
    """An experiment that the user deleted is reported, and not silently restored."""
    sync(uri, "demo", Made([], []))
    client = connect(uri)
    client.delete_experiment(client.get_experiment_by_name("demo").experiment_id)  # type: ignore[union-attr]
    with pytest.raises(TrackingError, match="mlflow experiments restore"):
        sync(uri, "demo", Made(RESULTS, CURVES))


def test_an_unknown_study_is_reported(uri: str) -> None:
    """An unpublished study is named, with instructions."""
    assert published(uri, "nobody") == set()
    with pytest.raises(TrackingError, match="study sync"):
        load(uri, "nobody")


class Unreadable(Made):
    """Packs on a disk that can't be read."""

    def results(self, name: str) -> list[Result]:
        raise StoreError("the disk is gone")


def test_an_error_of_the_store_isnt_one_of_mlflow(uri: str) -> None:
    with pytest.raises(StoreError, match=r"^the disk is gone$"):
        sync(uri, "demo", Unreadable(RESULTS, CURVES))


def test_importing_tracking_does_not_import_mlflow() -> None:
    """MLflow takes seconds to import, so only publishers import it."""
    code = "import sys, study.tracking; sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
