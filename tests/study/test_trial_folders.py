"""Folders of trials, from a run to a reader: on the command line, in Python, and after an interruption."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from study import open as open_study
from study.cli import main
from study.console import Console
from study.driver.options import Options
from study.plan.plan import make_plan
from study.records import Trial
from study.run import run
from study.spec import parse_spec
from study.store import Store
from study.worker.pack_work import PackWork
from tests.study.source.builders import deactivate

CODE = '''
import sys
from pathlib import Path

from study import Trial, seeded


@seeded
def train(seed, *, width=4, fail=False, trial: Trial):
    print(f"seed {seed}, width {width}")
    (trial.folder / "plots").mkdir(exist_ok=True)
    (trial.folder / "plots" / "loss.txt").write_text(f"{seed} {width}")
    (trial.folder / "weights.bin").write_bytes(b"0" * 1000)
    if fail and seed == 1:
        raise RuntimeError("no luck")
    for step in range(trial.resume or 0, 3):
        trial.report(step, loss=1 / (step + width))
        trial.log(f"step {step}")
        trial.save(step + 1)


@seeded
def here(seed, *, trial: Trial):
    """Return a loss of 1 if the working folder is the trial's folder, in a process of its own."""
    Path("written.txt").write_text("x")
    print("error", file=sys.stderr)
    return {"loss": float(Path.cwd() == trial.folder)}
'''


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a working folder with a module `mine`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "mine.py").write_text(CODE)
    monkeypatch.chdir(folder)
    yield folder
    deactivate()


def run_here(lab: Path, **changed: object) -> tuple[Store, str]:
    """Run a study in this process; return its store and its output."""
    content = {"study": "s", "train": "mine:train", "metrics": {"loss": "lower"}, "seeds": 2, **changed}
    plan = make_plan(parse_spec(json.dumps(content), source="s.yaml", folder=lab))
    console = Console(file=StringIO(), width=200)
    run(plan, Options(lab / "studies", None, local=True), console)
    return Store(lab / "studies", read_only=True), console.file.getvalue()  # type: ignore[attr-defined]


def cli(*words: str) -> str:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result.output


def test_two_cells_of_a_seed_have_folders_of_their_own(lab: Path) -> None:
    store, _ = run_here(lab, grid={"width": [4, 8]})
    folder = store.study("s")
    assert len(folder.trials_with_files()) == 4
    contents = {
        str(folder.read_file(folder.trial_file(trial_id, "plots/loss.txt"))) for trial_id in folder.trials_with_files()
    }
    assert contents == {"b'0 4'", "b'0 8'", "b'1 4'", "b'1 8'"}


def test_kept_files_change_no_id_and_train_nothing(lab: Path) -> None:
    store, output = run_here(lab, keep=["*.txt"])
    (first, _) = store.study("s").trials_with_files()
    assert set(store.study("s").file_sizes(first)) == {"log.txt", "plots/loss.txt"}
    _, second_output = run_here(lab, keep={"files": ["*"], "size_mb": 0.0005})
    assert "2/2 trials" not in second_output
    assert "not kept: " not in output + second_output


def test_files_too_large_are_reported_by_the_run(lab: Path) -> None:
    _, output = run_here(lab, keep={"size_mb": 0.0005})
    assert "in all), such as weights.bin; a trial keeps at most 0.0005 MB" in output


def test_a_failed_trial_has_log_and_traceback(lab: Path) -> None:
    store, _ = run_here(lab, fixed={"fail": True})
    folder = store.study("s")
    failed = folder.failed_rows()["trial_id"][0].as_py()
    assert set(folder.file_sizes(failed)) == {"log.txt", "error.txt", "plots/loss.txt", "weights.bin"}
    error = (folder.read_file(folder.trial_file(failed, "error.txt")) or b"").decode()
    assert "RuntimeError: no luck (mine.py:" in error
    assert folder.read_file(folder.trial_file(failed, "log.txt")) == b"seed 1, width 4\n"


def test_a_process_of_its_own_runs_in_the_folder(lab: Path) -> None:
    store, _ = run_here(lab, train="mine:here", isolation="process", seeds=1)
    folder = store.study("s")
    (trial_id,) = folder.trials_with_files()
    assert folder.read_results()["loss"].to_pylist() == [1.0]
    assert folder.file_sizes(trial_id) == {"log.txt": 6, "written.txt": 1}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Ray
def test_on_ray_all_that_a_trial_prints_is_in_its_log(lab: Path) -> None:
    """A trial's log has all of its output, also from libraries and programs, and none of other trials."""
    (lab / "mine.py").write_text(
        "import os, subprocess\nfrom study import seeded\n\n@seeded\ndef train(seed):\n"
        "    print(f'seed {seed}')\n    os.write(2, b'written\\n')\n"
        "    subprocess.run(['echo', 'program'], check=True)\n    return {'loss': 0.0}\n"
    )
    content = {"study": "s", "train": "mine:train", "metrics": {"loss": "lower"}, "seeds": 6}
    plan = make_plan(parse_spec(json.dumps(content), source="s.yaml", folder=lab))
    run(plan, Options(lab / "studies", None, cpus=2, ray_at_once=True), Console(file=StringIO()))
    study = Store(lab / "studies").study("s")
    assert {_log(study, trial) for trial in plan.trials} == {f"seed {n}\nwritten\nprogram\n" for n in range(6)}


def test_a_trial_that_goes_on_adds_to_its_log(lab: Path) -> None:
    """A trial resumed from a checkpoint appends to its log; only lines of repeated work are repeated."""
    content = {"study": "s", "train": "mine:train", "metrics": {"loss": "lower"}, "seeds": 1}
    spec = parse_spec(json.dumps(content), source="s.yaml", folder=lab)
    (trial,) = make_plan(spec).trials
    from study.driver.own_engine import own_engine
    from study.records import Pack

    study = Store(lab / "studies").study("s")
    study.write_spec(spec.text)
    work = PackWork(str(lab / "studies"), "s", study.begin_attempt(), "auto", "cpu", own=own_engine(spec))
    training = work(Pack((trial,)))
    engine = own_engine(spec)
    assert engine is not None
    stopped = engine.with_folders(study.trial_files(lab, spec.keep_files), is_shared=False)
    training_begun = stopped.start(Pack((trial,)), device="cpu")
    training_begun.advance(0.0)
    training_begun.advance(0.0)
    study.save_checkpoint(training_begun.checkpoint())
    training_begun.close()
    assert list(training)
    assert _log(study, trial).count("step 0") == 1
    assert _log(study, trial).splitlines()[-1] == "step 2"
    assert _log(study, trial).count("seed 0") == 2


def test_files_and_logs_on_the_command_line(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = run_here(lab)
    first, second = store.study("s").trials_with_files()
    assert [line.split()[:2] for line in cli("files", "s").splitlines()] == [[first, "3"], [second, "3"]]
    assert "plots/loss.txt" in cli("files", "s", first[:6])
    listed = json.loads(cli("files", "s", first, "--json"))
    assert listed["files"] == {"log.txt": 37, "plots/loss.txt": 3, "weights.bin": 1000}
    cli("files", "s", first, "--to", str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "plots" / "loss.txt").read_text() in ("0 4", "1 4")
    assert cli("logs", "s", first, "--lines", "2") == "step 1\nstep 2\n"
    assert cli("logs", "s", first, "--follow").endswith("step 0\nstep 1\nstep 2\n")
    Path("studies").rename("elsewhere")
    monkeypatch.setenv("STUDY_STORE", "elsewhere")
    assert cli("logs", "s", first, "--lines", "1") == "step 2\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("files", "nosuch"), "nosuch"),
        (("files", "s", "zz"), "no trial has that id"),
        (("files", "s", "--to", "x"), "--to needs a trial"),
        (("logs", "s", "zz"), "no trial has that id"),
    ],
)
def test_mistakes_on_the_command_line(lab: Path, words: tuple[str, ...], message: str) -> None:
    run_here(lab, seeds=1)
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert message in refused.output


def test_files_in_python(lab: Path, tmp_path: Path) -> None:
    """Files are readable in place, in a store that is a folder, or from a copy."""
    run_here(lab, seeds=1)
    study = open_study("s", store=lab / "studies")
    (row,) = study.trials().to_dict("records")
    files = study.files(row["trial_id"])
    assert files["plots/loss.txt"].read_text() == "0 4"
    assert study.files(row["trial_id"][:5], into=tmp_path)["log.txt"].parent == tmp_path


def test_the_page_links_to_files_of_trials(lab: Path) -> None:
    """Log and traceback come first, and are linked only if the files are beside the report."""
    run_here(lab, fixed={"fail": True})
    study = open_study("s", store=lab / "studies")
    assert sorted(map(tuple, _linked(lab / "studies" / "s" / "report").values())) == [
        ("log.txt", "error.txt", "plots/loss.txt", "weights.bin"),
        ("log.txt", "plots/loss.txt", "weights.bin"),
    ]
    study.report(lab / "elsewhere", formats=["html"])
    assert _linked(lab / "elsewhere") == {}


@pytest.mark.filterwarnings("ignore")  # warnings of MLflow
def test_files_are_artifacts_of_the_trials_run(lab: Path, uri: str) -> None:
    from mlflow import MlflowClient

    content = {"study": "s", "train": "mine:train", "metrics": {"loss": "lower"}, "seeds": 1}
    plan = make_plan(parse_spec(json.dumps(content), source="s.yaml", folder=lab))
    run(plan, Options(lab / "studies", uri, local=True), Console(file=StringIO()))
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("s")
    assert experiment is not None
    (trial,) = client.search_runs([experiment.experiment_id], "tags.`study.kind` = 'trial'")
    assert {file.path for file in client.list_artifacts(trial.info.run_id)} == {"log.txt", "weights.bin", "plots"}
    (picture,) = client.list_artifacts(trial.info.run_id, "plots")
    assert Path(client.download_artifacts(trial.info.run_id, picture.path)).read_text() == "0 4"


def test_adopted_trials_have_their_files(lab: Path) -> None:
    """Another study with the same trials shows their files, even after the first one is deleted."""
    store, _ = run_here(lab)
    run_here(lab, study="t")
    assert store.study("t").trials_with_files() == store.study("s").trials_with_files()
    (first, _) = store.study("t").trials_with_files()
    assert store.study("t").file_sizes(first) == store.study("s").file_sizes(first)


def _log(study, trial: Trial) -> str:
    return (study.read_file(study.trial_file(trial.id, "log.txt")) or b"").decode()


def _linked(folder: Path) -> dict[str, list[str]]:
    """Return the linked files on a report's page, by trial."""
    trials = (folder / "report.html").read_text().partition('id="trials">')[2].partition("</script>")[0]
    linked: dict[str, list[str]] = json.loads(trials)["files"]
    return linked
