"""Studies with failing trials: their reasons are shown everywhere, and a hopeless study stops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

import study
from tests.commands import invoke
from tests.study.source.builders import deactivate

# Warnings of MLflow and its dependencies are theirs to fix.
pytestmark = pytest.mark.filterwarnings("ignore")

CODE = """
import time
from study import seeded


@seeded
def train(seed, *, size: int = 1):
    if size == 2:
        raise ValueError(f"no such layer in {seed}")
    if size == 3:
        raise MemoryError
    if size == 4:
        time.sleep(1000)
    yield {"step": 1, "loss": 0.5}
"""
FILE = """
study: bad
train: bad:train
metrics: {loss: lower}
grid: {size: [1, 2]}
seeds: 2
"""
REASON = "ValueError: no such layer in 0 (bad.py:9)"
REPEATS = "Another run fails the same way"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Change to a folder with the study's file and code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("bad.py").write_text(CODE)
    Path("bad.yaml").write_text(FILE)
    yield
    deactivate()


def run(*words: str, code: int) -> str:
    """Run the study in this process, check its exit code, and return its output."""
    result = invoke("run", "bad.yaml", *words, "--local", "--tracking-uri", "off")
    assert result.exit_code == code, result.output
    return result.output


def test_reasons_are_in_all_outputs() -> None:
    """Reasons are at the end of the run, in show, list, JSON, the report's files, in Python and in a notebook."""
    printed = run(code=1)
    output = invoke("show", "bad").output
    for text in (printed, output):
        assert f"2 trials failed: {REASON}" in text
        assert "all trials of size 2" in text
        assert 'File "bad.py", line 9, in train' in text
        assert "/engine/" not in text
        assert REPEATS in text
    assert "again: `" not in printed
    folder = Path("studies/bad/report")
    assert REASON in (folder / "report.md").read_text()
    warning = (folder / "report.html").read_text().partition("</section>")[0]
    assert REASON in warning
    assert REPEATS in warning
    for words in (("show", "bad"), ("report", "bad", "--tracking-uri", "off")):
        (failure,) = json.loads(invoke(*words, "--json").stdout)["failures"]
        assert (failure["reason"], failure["trials"], failure["is_repeated"]) == (REASON, 2, True)
    assert json.loads(invoke("list", "--json").stdout)["studies"][0]["failed"] == 2
    opened = study.open("bad")
    assert [(failure.reason, failure.trials) for failure in opened.failures()] == [(REASON, 2)]
    assert REASON in opened._repr_html_()


def test_mlflow_has_the_reasons(uri: str) -> None:
    """Reasons are in the description of the study's run, and in a tag of each failed trial's run."""
    result = invoke("run", "bad.yaml", "--local", "--tracking-uri", uri)
    assert result.exit_code == 1, result.output
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("bad")
    assert experiment is not None
    (of_study,) = client.search_runs([experiment.experiment_id], "tags.`study.kind` = 'study'")
    assert REASON in of_study.data.tags["mlflow.note.content"]
    failed = client.search_runs([experiment.experiment_id], "tags.`study.failure` LIKE 'ValueError%'")
    assert {run.data.params["seed"] for run in failed} == {"0", "1"}


def test_a_failure_of_the_environment_may_be_retried() -> None:
    """A failure of the environment may be retried, unless it has recurred."""
    printed = run("grid.size=[1, 3]", code=1)
    assert "may succeed in another run: `study run` trains them again" in printed
    assert REPEATS not in printed
    assert "failed the same way in the run before" in run("grid.size=[1, 3]", code=1)


def test_a_run_whose_trials_all_fail_stops() -> None:
    """If all trials fail, a run stops with the reason and keeps results; --keep-going trains the remaining trials."""
    words = ("seeds=12", "grid.size=[2]", "--pack-size", "2")
    printed = run(*words, code=1)
    assert "stopped early: the first 10 trials that ended failed for the same reason: ValueError" in printed
    assert "--keep-going" in printed
    assert study.open("bad").results().counts["failed"] == 10
    printed = run(*words, "--keep-going", code=1)
    assert "stopped early" not in printed
    assert study.open("bad").results().counts["failed"] == 12


def test_a_run_with_a_cell_whose_trials_all_fail_stops() -> None:
    """A run stops if all trials of a cell fail, and keeps results of other cells."""
    printed = run("seeds=3", "grid.size=[2, 1]", "--pack-size", "3", code=1)
    assert "stopped early: all 3 trials of a cell failed for the same reason" in printed
    assert study.open("bad").results().counts["pending"] == 3


@pytest.mark.slow
def test_a_run_on_ray_stops() -> None:
    """On Ray, workers end when the run stops, and their stored results are reported."""
    result = invoke(
        "run", "bad.yaml", "seeds=2000", "grid.size=[2]", "--pack-size", "2", "--cpus", "2", "--tracking-uri", "off"
    )
    assert result.exit_code == 1, result.output
    assert "trials that ended failed for the same reason: ValueError" in result.output
    assert 10 <= study.open("bad").results().counts["failed"] < 2000


def test_printed_reasons_are_limited() -> None:
    """People see a bounded number of reasons and a count of the others; JSON has all."""
    kinds = ("KeyError", "TypeError", "IndexError", "NameError", "OSError", "EOFError", "AssertionError", "ValueError")
    raising = "\n    raise (" + ", ".join(kinds) + ")[seed]('no')"
    Path("bad.py").write_text(CODE.partition("    if size")[0].rstrip() + raising + "\n    yield\n")
    printed = run("seeds=8", "grid.size=[1]", code=1)
    assert "8 trials failed, for 8 reasons:" in printed
    assert "and 3 more reasons: `study show bad --json` has all" in printed
    assert len(json.loads(invoke("show", "bad", "--json").stdout)["failures"]) == 8


def test_a_plan_shows_the_error_of_the_first_trial() -> None:
    """The plan shows the error with its place and exit code 2; --quick calls nothing; plans write nothing."""
    planned = invoke("plan", "bad.yaml", "grid.size=[2]")
    assert planned.exit_code == 2
    assert f"bad:train fails in the first trial (size 2, seed 0): {REASON}" in planned.stderr
    assert 'File "bad.py", line 9, in train' in planned.stderr
    assert invoke("plan", "bad.yaml", "grid.size=[2]", "--quick").exit_code == 0
    assert not Path("studies").exists()


@pytest.mark.parametrize(("size", "message"), [(1, "up to its first step: no error"), (4, "for 0.1 s: no error")])
def test_a_plan_calls_the_function_for_a_moment(size: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan calls the function until its first step, but only for a limited time."""
    monkeypatch.setattr("study.driver.first_call._CALL_S", 0.1)
    planned = invoke("plan", "bad.yaml", f"grid.size=[{size}]")
    assert planned.exit_code == 0, planned.output
    assert message in planned.output
