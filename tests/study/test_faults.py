"""Disturbed studies on the command line: at most a checkpoint interval is lost, and no trial is stored twice.

Each disturbed study runs in processes of its own, as a user's does. The others run in this process.
"""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from study import cluster
from study.plan.packs import make_packs
from study.plan.plan import make_plan
from study.records import Result
from study.results.load import load_results
from study.spec import parse_spec
from study.store import Store, StudyStore
from study.tracking.rows import TRIAL_ID
from study.worker.pack_work import PackWork
from tests.commands import CHECKPOINT, DEADLINE_S, PACK_HEARD, PROGRESS_HEARD, Start, blow, invoke, starting, stopped
from tests.servers import dashboard
from tests.study.builders import bits
from tests.study.tracking.made import runs_of

# Warnings of MLflow and its dependencies are theirs to fix.
pytestmark = pytest.mark.filterwarnings("ignore")

NAME = "disturbed"
SPEC = f"""
study: {NAME}
question: Does what is disturbed come out the same?
task: {{name: simple}}
models: [NMU, linear]
seeds: 4
fixed: {{batch_size: 16, sparsity_start: 1000, sparsity_end: 3000}}
protocol: {{iterations: 3000, evaluate_every: 500, evaluation_rows: 50}}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> StudyStore:
    """Run the study in this process without interruption, and return its store."""
    root = tmp_path_factory.mktemp("undisturbed")
    folder = Store(root).study(NAME)
    folder.write_spec(SPEC)
    work = PackWork(str(root), NAME, folder.begin_attempt(), "torch", "cpu")
    trials = make_plan(parse_spec(SPEC, source="test")).trials
    bundles = [(pack,) for pack in make_packs(trials, slots=1)]
    cluster.LocalScheduler(work, threading.Event()).run(bundles, None, lambda event: None)
    return folder


@pytest.fixture
def undisturbed(finished: StudyStore) -> list[Result]:
    """Return the undisturbed results."""
    return bits(finished)


@pytest.fixture
def folder(finished: StudyStore, tmp_path: Path) -> StudyStore:
    """Return a copy, for one test, of the store with the finished study."""
    shutil.copytree(finished.path, tmp_path / "studies" / NAME)
    return Store(tmp_path / "studies").study(NAME)


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts `study run` on a store of its own."""
    (tmp_path / "disturbed.yaml").write_text(SPEC)
    words = (
        "run",
        "disturbed.yaml",
        "--engine",
        "torch",
        "--tracking-uri",
        "off",
        "--checkpoint-every-s",
        "0",  # at each progress report, about every second
    )
    with starting(tmp_path) as start:
        yield partial(start, *words)


def test_the_whole_path_through_kill_9(study, uri, tmp_path, undisturbed):
    """A study killed on Ray and run again has each trial once, in MLflow and in the store."""
    folder, root = Store(tmp_path / "studies").study(NAME), tmp_path / "studies"
    with dashboard(uri, tmp_path) as address:
        driver = study("--tracking-uri", address, **blow(tmp_path / "struck", PACK_HEARD, signal.SIGKILL))
        output, _ = driver.communicate(timeout=DEADLINE_S)
        assert driver.returncode == -signal.SIGKILL, output
        assert folder.done()

        second = study("--tracking-uri", address, "--local")
        output, _ = second.communicate(timeout=DEADLINE_S)
        assert second.returncode == 0, output
        assert "ended without a word, as if it was killed" in " ".join(output.split())
        assert bits(folder) == undisturbed
        assert not folder.checkpoints()
        runs = runs_of(address, study=NAME)
        assert {run.data.tags[TRIAL_ID] for run in runs} == {result.trial.id for result in undisturbed}
        assert [run.info.status for run in runs] == ["FINISHED"] * len(undisturbed)
        ours, theirs = load_results(NAME, root), load_results(NAME, root, tracking_uri=address)
        assert ours.summaries == theirs.summaries
    assert "NMU" in (root / NAME / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("how", "number"), [pytest.param("ray", signal.SIGINT, marks=pytest.mark.slow), ("local", signal.SIGTERM)]
)
def test_a_disturbed_driver(how, number, study, tmp_path, undisturbed):
    """After Ctrl-C or SIGTERM of the driver, a second run goes on to the undisturbed bits."""
    options, event = (["--local"], CHECKPOINT) if how == "local" else ([], PROGRESS_HEARD)
    folder = Store(tmp_path / "studies").study(NAME)
    # A terminal sends Ctrl-C to the driver's whole process group, including its workers.
    driver = study(*options, **blow(tmp_path / "struck", event, number, group=number == signal.SIGINT))
    output, _ = driver.communicate(timeout=DEADLINE_S)
    assert (tmp_path / "struck").exists(), output
    assert driver.returncode == 130
    assert "interrupted: `study run disturbed.yaml` goes on" in output
    assert folder.checkpoints() or folder.done()

    second = study(*options)
    output, _ = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0, output
    assert "ended without a word" not in output.replace("\n", " ")
    assert bits(folder) == undisturbed
    assert not folder.checkpoints()


def test_two_drivers_on_one_study(study, tmp_path, undisturbed):
    """A second driver of a running study is refused with a message, and the first isn't disturbed."""
    folder = Store(tmp_path / "studies").study(NAME)
    first = study("--local", **blow(tmp_path / "struck", CHECKPOINT, signal.SIGSTOP))
    stopped(first)
    second = study("--local")
    output, _ = second.communicate(timeout=DEADLINE_S)
    first.send_signal(signal.SIGCONT)
    assert second.returncode == 1
    assert "is being run by process" in output
    output, _ = first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 0, output
    assert bits(folder) == undisturbed


def run_here(folder: StudyStore, text: str = SPEC) -> str:
    """Run a study of a store in this process, and return its output."""
    file = folder.path.parents[1] / "disturbed.yaml"
    file.write_text(text)
    words = ("--local", "--engine", "torch", "--tracking-uri", "off", "--store", str(folder.path.parent))
    result = invoke("run", str(file), *words)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_a_second_run_trains_only_added_seeds(tmp_path, folder, undisturbed):
    """A finished study trains nothing again; only added seeds are trained; another study adopts shared trials."""
    files = {path: path.stat().st_mtime_ns for path in (folder.path / "results").iterdir()}
    run_here(folder)
    assert {path: path.stat().st_mtime_ns for path in (folder.path / "results").iterdir()} == files

    run_here(folder, SPEC.replace("seeds: 4", "seeds: 5"))
    assert {result.trial.seed for result in bits(folder)} == set(range(5))
    assert [r for r in bits(folder) if r.trial.seed < 4] == undisturbed
    new = [path for path in (folder.path / "results").iterdir() if path not in files]
    assert sum(Store(tmp_path / "studies").study(NAME).read_pack(path.stem)[0].num_rows for path in new) == 2

    output = run_here(folder, SPEC.replace(f"study: {NAME}", "study: other"))
    assert "8 trials are done already in other studies" in output
    assert bits(Store(tmp_path / "studies").study("other")) == undisturbed


def test_a_torn_result_file_is_done_again(folder, undisturbed):
    """A truncated result file is named, set aside and trained again."""
    torn = sorted((folder.path / "results").iterdir())[0]
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
    assert torn.name in run_here(folder).replace(" ", "")
    assert bits(folder) == undisturbed
