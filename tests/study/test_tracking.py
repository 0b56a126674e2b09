"""MLflow is a view: exact, complete in the end, and never in training's way."""

from __future__ import annotations

import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from study.errors import TrackingError
from study.records import Cell, Curve, Outcome, Result, Trial
from study.table import results_table
from study.tracking import (
    CURVE_POINTS,
    Publisher,
    default_uri,
    links,
    load,
    published,
    sync,
    ui_command,
)
from study.tracking.address import connect
from study.tracking.experiment import Experiment
from study.tracking.rows import trial_run, trials_of

# What MLflow and its libraries deprecate is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")

CELL = Cell(
    task="arithmetic",
    operation="mul",
    input_size=100,
    subset_ratio=0.1 + 0.2,
    overlap_ratio=0.5,
    subsets=2,
    interpolation_range=((-2.0, 2.0),),
    extrapolation_range=((-6.0, -2.0), (2.0, 6.0)),
    model="NMU",
    hidden_size=4,
    sparsity_strength=1e-7,
    iterations=300_000,
)
EVALUATIONS = 301


def solved(seed: int, **changes: Any) -> Result:
    whole = Result(
        trial=Trial(CELL, seed),
        outcome=Outcome.SOLVED,
        threshold=0.1 + 0.2,
        best_iteration=37_000,
        validation_mse=1 / 3,
        test_mse=1e-300,
        sparsity_error=5e-324,
        solved_at_iteration=211_000,
        iterations=300_000,
        training_s=1.1,
        engine="torch",
        device="cpu",
    )
    return replace(whole, **changes)


def diverged(seed: int) -> Result:
    return solved(
        seed,
        outcome=Outcome.DIVERGED,
        best_iteration=1000,
        validation_mse=math.inf,
        test_mse=None,
        sparsity_error=None,
        solved_at_iteration=None,
        stopped_early=True,
        training_s=0.0,
    )


def failed(seed: int, error: str = "killed") -> Result:
    return Result(trial=Trial(CELL, seed), outcome=Outcome.FAILED, error=error)


def curve(seed: int) -> Curve:
    values = np.linspace(1, 0, EVALUATIONS, dtype=np.float32) * (seed % 7 + 1)
    values[10] = np.nan
    return Curve(Trial(CELL, seed).id, np.arange(EVALUATIONS) * 1000, values, values * 2, values * 3)


RESULTS = [solved(1), solved(2**63 - 1), diverged(3), failed(4, "a\nlong story " * 1000)]
CURVES = [curve(1), curve(2**63 - 1), curve(3)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty database once; making it takes seconds, copying it does not."""
    folder = tmp_path_factory.mktemp("template")
    connect(default_uri(folder))
    return folder / "mlflow.db"


@pytest.fixture
def uri(template: Path, tmp_path: Path) -> str:
    (tmp_path / "mlflow.db").write_bytes(template.read_bytes())
    return default_uri(tmp_path)


def runs_of(uri: str, kind: str = "trial") -> list[Any]:
    client = connect(uri)
    experiment = client.get_experiment_by_name("demo")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id], f"tags.`study.kind` = '{kind}'"))


def test_results_come_back_from_mlflow_bit_for_bit(uri: str) -> None:
    """What the report reads from MLflow is what it reads from the store."""
    assert sync(uri, "demo", RESULTS, CURVES) == len(RESULTS)
    table, curves = load(uri, "demo")
    expected = results_table(RESULTS).sort_by([("cell_id", "ascending"), ("seed", "ascending")])
    assert table.equals(expected)
    assert published(uri, "demo") == {result.trial.id for result in RESULTS[:3]}
    assert [curve.trial_id for curve in curves] == sorted(curve.trial_id for curve in CURVES)


def test_a_thinned_curve_keeps_its_landmarks(uri: str) -> None:
    """First, last, best step and solved-at stay, with exact values; points that aren't numbers go."""
    sync(uri, "demo", [solved(1)], [curve(1)])
    (thin,) = load(uri, "demo")[1]
    whole = curve(1)
    assert {0, 37_000, 211_000, 300_000} <= set(thin.iteration.tolist())
    assert len(thin.iteration) <= CURVE_POINTS <= 100
    places = np.searchsorted(whole.iteration, thin.iteration)
    assert thin.test_mse.tobytes() == whole.test_mse[places].tobytes()
    assert all(math.isfinite(value) for _, _, value in trial_run(solved(1), whole).curve)


def test_a_trial_is_a_run_below_the_studys(uri: str) -> None:
    """Names, tags to filter by, parameters, status and times are what a reader of the dashboard expects."""
    sync(uri, "demo", RESULTS, CURVES, question="Why?", spec="study: demo\ngrid:\n  hidden_size: [2, 4]\n")
    (study,) = runs_of(uri, "study")
    assert study.info.status == "FINISHED"
    assert study.data.tags["mlflow.note.content"].startswith("Why?")
    assert study.data.tags["spec.grid.hidden_size"] == "[2, 4]"
    runs = {run.data.tags["study.trial_id"]: run for run in runs_of(uri)}
    run = runs[RESULTS[0].trial.id]
    assert run.info.run_name == "NMU h4 seed 1"
    assert run.data.tags["mlflow.parentRunId"] == study.info.run_id
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
    """The second time finds everything there."""
    sync(uri, "demo", RESULTS, CURVES)
    before = [run.to_dictionary() for run in runs_of(uri)]
    assert sync(uri, "demo", RESULTS, CURVES) == 0
    assert [run.to_dictionary() for run in runs_of(uri)] == before
    assert len(runs_of(uri, "study")) == 1


def test_what_differs_is_replaced(uri: str) -> None:
    """A trial that failed and was then solved is one run, solved."""
    sync(uri, "demo", [failed(1), solved(2)], [])
    assert sync(uri, "demo", [solved(1), solved(2)], [curve(1)]) == 1
    assert sorted(run.data.tags["study.outcome"] for run in runs_of(uri)) == ["solved", "solved"]


@pytest.mark.parametrize("stage", ["begun", "logged"])
def test_what_a_killed_publisher_left_is_completed(uri: str, stage: str) -> None:
    """A run left RUNNING becomes the trial's only run."""
    experiment = Experiment(uri, "demo")
    (trial,) = trials_of([solved(1)], [curve(1)])
    run_id, start_ms = experiment._begin(trial)
    if stage == "logged":
        experiment._log(run_id, start_ms, trial)
    assert published(uri, "demo") == set()
    assert len(load(uri, "demo")[0]) == 0
    assert sync(uri, "demo", [solved(1)], [curve(1)]) == 1
    (run,) = runs_of(uri)
    assert (run.info.run_id, run.info.status) == (run_id, "FINISHED")
    table, curves = load(uri, "demo")
    assert table.equals(results_table([solved(1)]))
    assert len(curves[0].iteration) > 40


def test_two_runs_of_one_trial_become_one(uri: str) -> None:
    """Of twins, from an answer that got lost, one is left."""
    experiment = Experiment(uri, "demo")
    (trial,) = trials_of([solved(1)], [])
    experiment._begin(trial)
    experiment.publish(trial)
    assert len(runs_of(uri)) == 2
    assert sync(uri, "demo", [solved(1)], []) == 0
    assert [run.info.status for run in runs_of(uri)] == ["FINISHED"]


def test_charts_against_hidden_size(uri: str) -> None:
    """A chart is drawn once; one that differs gets a number of its own, and the old one stays clean."""
    points = [("NMU", 2, 0.9, 1e5), ("NMU", 4, 1.0, None), ("NAC-mul λ", 2, 0.0, None)]
    for _ in range(2):
        sync(uri, "demo", [], [], series=points)
    client, run_id = connect(uri), runs_of(uri, "study")[0].info.run_id

    def chart(name: str) -> dict[int, float]:
        return {point.step: point.value for point in client.get_metric_history(run_id, name)}

    assert chart("success_rate/NMU") == {2: 0.9, 4: 1.0}
    assert chart("solved_at_median/NMU") == {2: 1e5}
    assert chart("success_rate/NAC-mul _") == {2: 0.0}
    sync(uri, "demo", [], [], series=[("NMU", 2, 0.8, 1e5)])
    assert chart("success_rate/NMU") == {2: 0.9, 4: 1.0}
    assert chart("success_rate.2/NMU") == {2: 0.8}


def test_counts_and_files_are_on_the_studys_run(uri: str, tmp_path: Path) -> None:
    """The study's run carries its latest counts, its file and its report."""
    page = tmp_path / "report.html"
    page.write_text("<html>")
    sync(
        uri,
        "demo",
        [],
        [],
        spec="study: demo\n",
        counts={"trials_done": 3, "solved": 2},
        files=lambda: [page],
    )
    (study,) = runs_of(uri, "study")
    assert (study.data.metrics["trials_done"], study.data.metrics["solved"]) == (3, 2)
    client = connect(uri)
    assert {file.path for file in client.list_artifacts(study.info.run_id)} == {"report", "spec.yaml"}
    assert (tmp_path / "mlflow-artifacts" / "demo").is_dir()


def test_the_publisher_writes_what_sync_would(uri: str) -> None:
    """Nothing is left to do after an undisturbed publisher."""
    with Publisher(uri, "demo", question="Why?", spec="study: demo\n") as publisher:
        for result in RESULTS:
            publisher.publish([result], CURVES)
            publisher.counts({"trials_done": result.trial.seed % 10})
        assert publisher.close(60) == 0
    assert publisher.trouble is None
    assert sync(uri, "demo", RESULTS, CURVES) == 0
    assert runs_of(uri, "study")[0].info.status == "FINISHED"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_that_is_down_costs_nothing_and_is_told_in_words() -> None:
    """Publishing loses only the view, and `sync` says who can't be reached, without the password."""
    uri = f"http://me:secret@127.0.0.1:{free_port()}"
    with Publisher(uri, "demo") as publisher:
        publisher.publish([solved(seed) for seed in range(10)], [])
        publisher.counts({"trials_done": 10})
        assert publisher.close(60) == 10
    assert publisher.trouble is not None
    assert "127.0.0.1" in publisher.trouble
    for call in (
        lambda: sync(uri, "demo", RESULTS, CURVES),
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
        publisher = Publisher(f"http://127.0.0.1:{silent.getsockname()[1]}", "demo").__enter__()
        publisher.publish([solved(seed) for seed in range(10)], [])
        assert publisher.close(0.01) == 10
        assert publisher.trouble is not None
        assert publisher.close(60) == 10  # until its thread has ended


def test_a_deleted_experiment_is_told_in_words(uri: str) -> None:
    """What the user deleted is not silently brought back."""
    sync(uri, "demo", [], [])
    client = connect(uri)
    client.delete_experiment(client.get_experiment_by_name("demo").experiment_id)  # type: ignore[union-attr]
    with pytest.raises(TrackingError, match="mlflow experiments restore"):
        sync(uri, "demo", RESULTS, CURVES)


def test_an_unknown_study_is_told_in_words(uri: str) -> None:
    """A study that was never published is named, with what to do."""
    assert published(uri, "nobody") == set()
    with pytest.raises(TrackingError, match="study sync"):
        load(uri, "nobody")


@contextmanager
def server(uri: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Serve a database as `study ui` does, in a process group of its own."""
    command, environment = ui_command(uri, port=port)
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 120
        while not answers(port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield process
    finally:
        kill(process)


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_server_killed_midway_is_made_up_for(uri: str) -> None:
    """SIGKILL of the server while a study publishes: the study goes on; `sync` leaves no gap and no twin."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    results = [solved(seed) for seed in range(40)]
    curves = [curve(seed) for seed in range(40)]
    with server(uri, port) as process, Publisher(address, "demo", spec="study: demo\n") as publisher:
        publisher.publish(results[:5], curves[:5])
        while not published(address, "demo"):
            assert publisher.trouble is None
        publisher.publish(results[5:], curves[5:])
        kill(process)
        missed = publisher.close(60)
    assert missed > 0
    assert publisher.trouble is not None
    there = published(uri, "demo")
    assert 0 < len(there) < 40
    written = sync(uri, "demo", results, curves)
    assert missed >= written >= 40 - len(there)
    runs = runs_of(uri)
    assert len(runs) == 40
    assert {run.info.status for run in runs + runs_of(uri, "study")} == {"FINISHED"}
    assert load(uri, "demo", with_curves=False)[0].equals(
        results_table(results).sort_by([("cell_id", "ascending"), ("seed", "ascending")])
    )


def test_importing_tracking_does_not_import_mlflow() -> None:
    """MLflow takes seconds to import, so only who publishes pays for it."""
    code = "import sys, study.tracking; sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_mlflow_there_are_no_links(uri: str, tmp_path: Path) -> None:
    """Tracking off, a study never published or deleted, a database that isn't there or isn't one: None, and no file."""
    (tmp_path / "text.db").write_text("no database")
    assert links(None, "demo") is None
    assert links(uri, "demo") is None
    assert links(f"sqlite:///{tmp_path}/text.db", "demo") is None
    assert links(f"sqlite:///{tmp_path}/none/mlflow.db", "demo") is None
    assert not (tmp_path / "none").exists()
    sync(uri, "demo", [], [])
    found = links(uri, "demo")
    assert found is not None
    connect(uri).delete_experiment(found.experiment_id)
    assert links(uri, "demo") is None


def test_links_wait_for_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is down and one that never answers give no links, however long MLflow would wait for them."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1000")
    assert links(f"http://127.0.0.1:{free_port()}", "demo") is None
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert links(f"http://127.0.0.1:{silent.getsockname()[1]}", "demo", timeout_s=0.1) is None


def test_a_study_can_be_linked_to_once_its_publisher_has_begun(uri: str) -> None:
    """After waiting for it the study is there; where MLflow is down, waiting ends too."""
    with Publisher(uri, "demo") as publisher:
        publisher.wait_for_study(250)
        assert links(uri, "demo") is not None
    with Publisher(f"http://127.0.0.1:{free_port()}", "demo") as publisher:
        publisher.wait_for_study(250)
        assert publisher.trouble is not None


def shown_runs(page: Page, *names: str) -> None:
    """Wait until the dashboard's table has a row of each name, and no other."""
    rows = page.locator("a[href*='/runs/']")
    for name in names:
        expect(rows.filter(has_text=re.compile(f"^{name}$"))).to_have_count(1, timeout=60_000)
    expect(rows).to_have_count(len(names))


def test_links_lead_to_just_these_runs(uri: str, visit: Callable[..., Any]) -> None:
    """In the dashboard a trial's link shows its run, a cell's its runs, the study's what it ever showed.

    The server and the database give the same links, without the password.
    """
    other = replace(CELL, hidden_size=2)
    results = [*(solved(seed) for seed in range(3)), solved(7, trial=Trial(other, 7)), failed(4)]
    sync(uri, "first", [solved(1)], [])
    sync(uri, "demo", results, [curve(1)])
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with server(uri, port):
        found = links(uri, "demo", address=address)
        assert found is not None
        assert found == links(f"http://me:secret@127.0.0.1:{port}/", "demo")
        page = visit(found.trial(results[1].trial.id)).page
        shown_runs(page, "NMU h4 seed 1")
        page.goto(found.cell(CELL.id))
        shown_runs(page, *(f"NMU h4 seed {seed}" for seed in (0, 1, 2, 4)))
        page.goto(found.cell(other.id))
        shown_runs(page, "NMU h2 seed 7")
        page.goto(found.trial("none"))
        expect(page.get_by_text("0 matching runs")).to_be_visible(timeout=60_000)
        page.goto(found.study)
        shown_runs(page, "demo")
