"""A run with nothing to do updates report and MLflow only if they don't show the stored data."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from study.cli import main
from study.results import mark as report_mark
from study.results.load import load_results
from study.results.study import are_current
from study.tracking import default_uri

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("figures")]


def run(folder: Path) -> None:
    words = ["run", str(folder / "little.yaml"), "--store", str(folder / "studies"), "--local", "--engine", "torch"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "trials in 4 cells" in result.output
    assert "of 12 trials" in result.output  # the finding is printed, with or without an update


@pytest.fixture
def workspace(finished_study: Path) -> Path:
    """Return the folder of a study that is done, reported and published."""
    return finished_study


def report_files(workspace: Path) -> dict[str, tuple[int, bytes]]:
    """Return the files of the report with their times of writing and contents."""
    files = (workspace / "studies" / "little" / "report").iterdir()
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def bytes_of(files: dict[str, tuple[int, bytes]]) -> dict[str, bytes]:
    return {name: content for name, (_, content) in files.items()}


def query_mlflow(workspace: Path, query: str) -> list[tuple[object, ...]]:
    """Query MLflow's database."""
    with closing(sqlite3.connect(workspace / "studies" / "mlflow.db")) as connection, connection:
        return connection.execute(query).fetchall()


def is_current(workspace: Path) -> bool:
    return are_current(load_results("little", workspace / "studies"), default_uri(workspace / "studies"))


def test_without_changes_nothing_is_written(workspace):
    """Without changes, a run writes no file of the report and nothing into MLflow."""
    metrics = "SELECT COUNT(*), MAX(timestamp) FROM metrics"
    before = report_files(workspace), query_mlflow(workspace, metrics)
    run(workspace)
    assert (report_files(workspace), query_mlflow(workspace, metrics)) == before


def test_the_next_run_removes_the_heartbeat_of_a_killed_run(workspace):
    """After a run, even one with nothing to train, the index no longer shows a killed driver's state."""
    (workspace / "studies" / "little" / "heartbeat").write_text("of a killed run")
    run(workspace)
    assert not (workspace / "studies" / "little" / "heartbeat").exists()


@pytest.mark.parametrize("name", ["report/cells.csv", "report/report.html", report_mark.NAME])
@pytest.mark.parametrize("content", [None, b"", b"mine", b"{}"])
def test_a_changed_report_is_outdated(workspace, name, content):
    """A report with a missing or changed file, or file list, is outdated."""
    file = workspace / "studies" / "little" / name
    before = file.read_bytes()
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    assert not is_current(workspace)
    file.write_bytes(before)
    assert is_current(workspace)


def test_another_report_in_the_studys_folder_is_replaced(workspace):
    """A report of `study report --compare` in the study's folder is replaced by the next run, byte by byte."""
    before = bytes_of(report_files(workspace))
    words = ["report", "little", "--compare", "little", "--store", str(workspace / "studies")]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert bytes_of(report_files(workspace)) != before
    run(workspace)
    assert bytes_of(report_files(workspace)) == before
    assert is_current(workspace)


@pytest.mark.parametrize(
    ("harm", "mended"),
    [
        ("UPDATE runs SET lifecycle_stage = 'deleted' WHERE name = 'little'", "SET lifecycle_stage = 'active'"),
        ("UPDATE runs SET status = 'RUNNING' WHERE name = 'little'", "SET status = 'FINISHED'"),
        ("UPDATE experiments SET lifecycle_stage = 'deleted'", "SET lifecycle_stage = 'active'"),
    ],
)
def test_a_study_missing_in_mlflow_is_unpublished(workspace, harm, mended):
    """A study counts as unpublished if its run or experiment is deleted, or its run was modified."""
    query_mlflow(workspace, harm)
    assert not is_current(workspace)
    query_mlflow(workspace, f"UPDATE {harm.split()[1]} {mended}")
    assert is_current(workspace)


def test_runs_lost_by_mlflow_are_published_again(workspace):
    """If MLflow has lost the study's run, the next run publishes it, and no trial twice."""
    query_mlflow(workspace, "UPDATE runs SET lifecycle_stage = 'deleted' WHERE name = 'little'")
    run(workspace)
    assert is_current(workspace)
    runs = "SELECT COUNT(*) FROM runs WHERE lifecycle_stage = 'active' AND status = 'FINISHED'"
    # one for each trial, one for each cell with its curve, the study's own, and two chart lines with their parent
    assert query_mlflow(workspace, runs) == [(12 + 2 * 4 + 1 + 3,)]


def test_an_unreachable_server_is_not_up_to_date(workspace):
    """MLflow on a server is asked through its API; an unreachable server isn't up to date."""
    assert not are_current(load_results("little", workspace / "studies"), "http://127.0.0.1:9")


def test_a_mark_names_all_that_is_shown(monkeypatch):
    """Other results, texts or code change the mark; equal ones keep it, whatever the chunks of the table."""
    rows = pa.table({"seed": [0, 1], "outcome": ["solved", "unsolved"]})
    chunked = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])
    mark = report_mark.mark(rows, "a question")
    assert mark == report_mark.mark(chunked, "a question")
    assert mark != report_mark.mark(rows, "another question")
    assert mark != report_mark.mark(rows.slice(0, 1), "a question")
    monkeypatch.setattr(report_mark, "versions", lambda: {"code": "another"})
    assert mark != report_mark.mark(rows, "a question")
