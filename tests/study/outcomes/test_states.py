"""Run states in the vocabularies of common tools; an unfinished run never becomes a result."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import study
from study.errors import InputError
from study.outcomes import RunChoices, gather, outcomes_of_runs, read_runs, read_source, read_state_words, wanted
from study.outcomes.states import find_states
from tests.commands import invoke


def states(words: list[str], name: str = "status", state_words: str = "", **columns: list[str]) -> list[str] | None:
    """Return the states of runs with these words, or None if the column doesn't hold states."""
    states_found = find_states(pa.table({name: words, **columns}), read_state_words([state_words]))
    return None if states_found is None else [str(value) for value in states_found.values]


@pytest.mark.parametrize(("finished", "failed", "stopped", "running"), [
    (["FINISHED"], ["FAILED"], ["KILLED"], ["RUNNING", "SCHEDULED"]),
    (["finished"], ["crashed", "failed"], ["killed", "preempted"], ["running", "pending"]),
    (["COMPLETE"], ["FAIL"], ["PRUNED"], ["RUNNING", "WAITING"]),
    (["TrialState.COMPLETE"], ["TrialState.FAIL"], ["TrialState.PRUNED"], ["TrialState.WAITING"]),
    (["COMPLETED"], ["FAILED", "DIED"], ["INTERRUPTED", "TIMEOUT"], ["QUEUED"]),
    (["COMPLETED"], ["NODE_FAIL", "OUT_OF_MEMORY"], ["CANCELLED+", "CANCELLED by 1000", "PREEMPTED"], ["PENDING"]),
    (["Succeeded"], ["Failed", "CrashLoopBackOff", "OOMKilled"], [], ["ContainerCreating", "Pending"]),
    (["JOB_STATE_SUCCEEDED"], ["JOB_STATE_FAILED"], ["JOB_STATE_CANCELLED"], ["JOB_STATE_QUEUED"]),
    (["completed", "published"], ["failed"], ["stopped"], ["created", "in progress", "queued"]),
    (["Inactive"], ["Failed"], ["aborted"], ["Active"]),
    (["Done", "ok", "Success"], ["errored", "out-of-memory", "Crashed"], ["timed out", "Aborted"], ["In Progress"]),
])  # fmt: skip
def test_the_words_of_tools_are_known(
    finished: list[str], failed: list[str], stopped: list[str], running: list[str]
) -> None:
    """States of MLflow, W&B, Optuna, Slurm, Kubernetes and others are read, in any case and with any separator."""
    expected = [
        *(["finished"] * len(finished) + ["failed"] * len(failed)),
        *(["stopped"] * len(stopped) + ["running"] * len(running)),
    ]
    assert states([*finished, *failed, *stopped, *running]) == expected


def test_a_word_of_several_meanings_is_asked_for() -> None:
    """TERMINATED is finished in Ray Tune and killed in Guild: other words or columns decide, otherwise the user."""
    assert states(["TERMINATED", "ERROR"], training_iteration=["9", "2"]) == ["finished", "failed"]
    assert states(["terminated", "completed"]) == ["stopped", "finished"]
    with pytest.raises(InputError, match=r"'TERMINATED' has no clear meaning: .*--state-words 'TERMINATED=failed'"):
        states(["TERMINATED", "ERROR"])
    assert states(["TERMINATED", "ERROR"], state_words="terminated=finished") == ["finished", "failed"]


def test_an_unknown_word_is_asked_for() -> None:
    """An unknown or empty word isn't a group or a result; the user must state its meaning."""
    with pytest.raises(InputError, match="'abgebrochen' has no clear meaning"):
        states(["finished", "abgebrochen"])
    assert states(["finished", "Abgebrochen"], state_words="abgebrochen=stopped") == ["finished", "stopped"]
    with pytest.raises(InputError, match="'fertig' and 'weg' have no clear meaning"):
        states(["fertig", "weg"])
    with pytest.raises(InputError, match="'nothing' has no clear meaning"):
        states(["finished", ""])
    with pytest.raises(InputError, match="must be WORD=MEANING"):
        read_state_words(["aborted=bad"])


@pytest.mark.parametrize(("name", "words", "expected"), [
    ("result_of_job", ["Succeeded", "Failed"], ["finished", "failed"]),
    ("done", ["True", "False"], ["finished", "stopped"]),
    ("sys/failed", ["False", "True"], ["finished", "failed"]),
    ("state", ["solid", "liquid"], None),
    ("mode", ["active", "inactive"], None),
    ("random_state", ["1", "2"], None),
    ("outcome", ["finished", "failed"], None),
    ("outcome", ["success", "crashed"], ["finished", "failed"]),
])  # fmt: skip
def test_states_are_found_by_their_column_and_by_their_words(
    name: str, words: list[str], expected: list[str] | None
) -> None:
    """A column of state words, or of true and false, is found under any name; others are hyperparameters."""
    assert states(words, name) == expected


def test_the_worse_state_of_two_columns_counts() -> None:
    """A trial that is done and failed counts as failed."""
    assert states(["finished", "finished"], "state", hasCrashed=["false", "true"]) == ["finished", "failed"]


STATED = "seed,lr,status,val_acc\n0,0.1,FINISHED,0.9\n1,0.1,FAILED,0.95\n2,0.1,PRUNED,0.99\n3,0.1,RUNNING,0.97\n"
STATED += "0,0.2,FINISHED,0.8\n1,0.2,FINISHED,0.9\n"


def test_a_report_counts_finished_rows_only(tmp_path: Path) -> None:
    """Failed and stopped rows count as failed, without their metrics; running rows are dropped."""
    (tmp_path / "runs.csv").write_text(STATED)
    outcomes = gather([read_source(tmp_path / "runs.csv")], None, wanted([], "val_acc > 0.85"))
    assert outcomes.by == ("lr",)
    assert outcomes.table.select(["lr", "seed", "outcome"]).to_pylist() == [
        {"lr": 0.1, "seed": 0, "outcome": "solved"},
        {"lr": 0.1, "seed": 1, "outcome": "failed"},
        {"lr": 0.1, "seed": 2, "outcome": "failed"},
        {"lr": 0.2, "seed": 0, "outcome": "unsolved"},
        {"lr": 0.2, "seed": 1, "outcome": "solved"},
    ]
    assert "runs.csv: left out: 1 run, by status (RUNNING 1), not ended yet" in outcomes.notices
    assert "runs.csv: failed or stopped: 2 runs, by status (FAILED 1, PRUNED 1)" in outcomes.notices
    printed = invoke("report", str(tmp_path / "runs.csv"), "--metric", "val_acc", "--format", "csv")
    assert printed.exit_code == 0, printed.output
    cells = pd.read_csv(tmp_path / "runs-report" / "cells.csv")
    assert cells["val_acc_mean"].tolist() == pytest.approx([0.9, 0.85])
    assert cells[["failed", "seeds"]].values.tolist() == [[2, 3], [0, 2]]


def test_import_and_report_agree(tmp_path: Path) -> None:
    """Import, report and the report of a DataFrame use the same rows of a file as results."""
    (tmp_path / "runs.csv").write_text(STATED)
    imported = outcomes_of_runs(read_runs(tmp_path / "runs.csv")).table
    say = wanted(["val_acc"])
    read = gather([read_source(tmp_path / "runs.csv", metrics=say.columns)], None, say).table
    for name in ("seed", "outcome", "lr"):
        assert imported[name].to_pylist() == read[name].to_pylist()
    cells = study.report(pd.read_csv(tmp_path / "runs.csv"), by=["lr"], metrics=["val_acc"]).cells()
    assert cells["failed"].tolist() == [2, 0]


@pytest.mark.parametrize("column", ["solved", "outcome"])
def test_a_failed_run_isnt_solved_despite_its_outcome(tmp_path: Path, column: str) -> None:
    """A run's state overrides its outcome, also if the outcome is missing."""
    yes = "true" if column == "solved" else "solved"
    (tmp_path / "a.csv").write_text(f"seed,state,{column}\n0,COMPLETE,{yes}\n1,FAIL,{yes}\n2,FAIL,\n")
    expected = ["solved", "failed", "failed"]
    assert gather([read_source(tmp_path / "a.csv")]).table["outcome"].to_pylist() == expected
    words = outcomes_of_runs(read_runs(tmp_path / "a.csv")).table
    assert words["outcome"].to_pylist() == expected


def test_unusual_words_are_given_on_the_command_line(tmp_path: Path) -> None:
    """Unknown state words are an error that names them; with --state-words, import and report read the file."""
    path = tmp_path / "a.csv"
    path.write_text("seed,state,acc\n0,complete,0.5\n1,complete,0.6\n2,kaputt,0.9\n")
    for command in (("report", str(path), "--metric", "acc", "--format", "csv"), ("import", "csv", str(path))):
        refused = invoke(*command)
        assert refused.exit_code == 2
        assert "--state-words 'kaputt=failed'" in refused.output
        result = invoke(*command, "--state-words", "Kaputt=failed")
        assert result.exit_code == 0, result.output
        assert "failed or stopped: 1 run, by state (kaputt 1)" in " ".join(result.output.split())


OPTUNA = """\
number,value,datetime_start,duration,params_lr,params_optimizer,user_attrs_seed,state
0,0.8,2025-03-01 10:00:00.1,0 days 00:00:40,0.1,adam,0,COMPLETE
1,0.9,2025-03-01 10:01:00.1,0 days 00:00:41,0.1,adam,1,COMPLETE
2,,2025-03-01 10:02:00.1,0 days 00:00:42,0.2,adam,0,FAIL
3,0.1,2025-03-01 10:03:00.1,0 days 00:00:43,0.2,adam,1,PRUNED
4,0.7,2025-03-01 10:04:00.1,0 days 00:00:44,0.2,adam,2,COMPLETE
"""
RAY = """\
loss,mean_accuracy,done,training_iteration,trial_id,time_total_s,pid,iterations_since_restore,config/lr,config/seed
0.5,0.8,True,20,a_0,60.1,1,20,0.1,0
0.6,0.9,True,20,a_1,60.2,2,20,0.1,1
,,False,7,a_2,60.3,3,7,0.2,0
0.7,0.7,True,20,a_3,60.4,4,20,0.2,1
"""
SACRED = """\
_id,status,config.lr,config.seed,result.test_acc
1,COMPLETED,0.1,0,0.8
2,COMPLETED,0.1,1,0.9
3,INTERRUPTED,0.2,0,0.1
4,COMPLETED,0.2,1,0.7
"""


@pytest.mark.parametrize(("text", "metrics", "by", "failed"), [
    (OPTUNA, ["value:higher"], ("params_lr",), [False, False, True, True, False]),
    (RAY, [], ("config/lr",), [False, False, True, False]),
    (SACRED, [], ("config.lr",), [False, False, True, False]),
])  # fmt: skip
def test_tables_of_tools_are_read(
    tmp_path: Path, text: str, metrics: list[str], by: tuple[str, ...], failed: list[bool]
) -> None:
    """A tool's own columns, such as iterations, aren't hyperparameters; failures keep their settings."""
    (tmp_path / "runs.csv").write_text(text)
    outcomes = outcomes_of_runs(read_runs(tmp_path / "runs.csv"), RunChoices(metrics=metrics))
    assert outcomes.by == by
    assert [outcome == "failed" for outcome in outcomes.table["outcome"].to_pylist()] == failed


def test_optunas_value_has_no_direction(tmp_path: Path) -> None:
    """Optuna's table lacks the objective's direction, so the user must give it."""
    (tmp_path / "runs.csv").write_text(OPTUNA)
    with pytest.raises(InputError, match="--metric value:higher or value:lower"):
        outcomes_of_runs(read_runs(tmp_path / "runs.csv"))
