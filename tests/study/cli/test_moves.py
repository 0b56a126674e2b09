"""Commands that delete, export and import: output, confirmation and exit codes."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from study.store import Store
from tests.commands import STUDY, invoke

# MLflow and its imports must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

RUNS = "lr,seed,val_acc\n0.1,0,0.90\n0.1,1,0.92\n0.2,0,0.97\n0.2,1,0.95\n"


@pytest.fixture
def working_folder(finished_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a copy of a store that holds one study, `little`."""
    shutil.copytree(finished_study / "studies", tmp_path / "studies")
    monkeypatch.chdir(tmp_path)
    for name in ("STUDY_STORE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_without_a_terminal_delete_needs_yes(working_folder: Path) -> None:
    """Without a terminal, delete lists the studies and ends with exit code 2; with --yes it deletes them."""
    result = invoke("delete", "little")
    assert result.exit_code == 2
    for words in ("12 trials and a report", "experiment 'little' with ", "nothing was deleted", "--yes"):
        assert words in result.output
    assert Store(working_folder / "studies").studies() == ["little"]
    result = invoke("delete", "little", "--yes")
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "little is deleted")
    assert Store(working_folder / "studies").studies() == []
    result = invoke("delete", "little", "--yes")
    assert (result.exit_code, "no study 'little'" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("answer", "code", "remaining"), [("n\n", 1, ["little"]), ("\n", 1, ["little"]), ("y\n", 0, [])]
)
def test_delete_asks_on_a_terminal(working_folder: Path, answer: str, code: int, remaining: list[str]) -> None:
    """Only a yes deletes; any other answer leaves everything unchanged, with exit code 1."""
    terminal, child_terminal = pty.openpty()
    words = [*STUDY, "delete", "little", "--tracking-uri", "off"]
    os.write(terminal, answer.encode())
    completed = subprocess.run(words, stdin=child_terminal, capture_output=True, text=True, check=False)
    os.close(terminal)
    os.close(child_terminal)
    assert "Delete all of this? [y/N]" in completed.stdout
    assert (completed.returncode, "nothing was deleted" in completed.stdout) == (code, bool(remaining))
    assert Store(working_folder / "studies").studies() == remaining


def test_a_wrong_name_deletes_nothing(working_folder: Path) -> None:
    """If one name of several is unknown, nothing is deleted."""
    assert invoke("delete", "little", "litle", "--yes").exit_code == 2
    assert Store(working_folder / "studies").studies() == ["little"]


def test_a_study_is_exported_and_imported(working_folder: Path) -> None:
    """Export writes one ZIP file; `import` and `import zip` read it; both commands print the number of trials."""
    result = invoke("export", "little", "little.zip")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("little.zip: 12 trials in ")
    assert invoke("export", "little", "little.zip").exit_code == 2
    result = invoke("import", "little.zip", "--store", "other")
    assert result.output.splitlines()[0] == "little: a new study of this store, with 12 new trials"
    result = invoke("import", "--store", "other", "little.zip")
    assert result.output.splitlines()[0].endswith("merged with the study of this store: 0 new trials, 12 there already")
    assert invoke("import", "zip", "little.zip", "--store", "third").exit_code == 0
    assert Store("third").studies() == ["little"]


@pytest.mark.slow
def test_an_imported_study_is_reported_and_published(working_folder: Path) -> None:
    """An imported study gets a report, and MLflow gets all of its trials."""
    assert invoke("export", "little", "little.zip").exit_code == 0
    assert invoke("import", "little.zip", "--store", "other").exit_code == 0
    assert invoke("report", "little", "--store", "other", "--tracking-uri", "off").exit_code == 0
    assert invoke("sync", "little", "--store", "other").output == "12 trials published\n"


def test_imports_go_to_the_store_of_the_settings(working_folder: Path) -> None:
    """Imports go to the store that study.toml names."""
    assert invoke("export", "little", "little.zip").exit_code == 0
    (working_folder / "study.toml").write_text('store = "elsewhere"\n')
    assert invoke("import", "little.zip").exit_code == 0
    assert Store(working_folder / "elsewhere").studies() == ["little"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("import", "no.zip"), "there is no file no.zip"),
        (("import", "runs.csv"), "can't be read as a ZIP file"),
        (("import", "csv", "no.csv"), "no such file: no.csv"),
        (("import", "wandb", "runs.csv"), "`study import csv` reads any other table"),
        (("import", "mlflow", "sqlite:///no.db", "x"), "there is no database no.db"),
        (("import", "mlflow", "http://me:secret@host", "x"), "must not hold a password"),
        (("import", "csv", "runs.csv", "--seed", "sed"), "--seed sed: no such column"),
        (("export", "nothing", "nothing.zip"), "no study 'nothing'"),
    ],
)
def test_bad_input_is_reported_in_words(working_folder: Path, words: tuple[str, ...], message: str) -> None:
    """A wrong file, column or name ends with exit code 2 and a sentence; nothing is written."""
    (working_folder / "runs.csv").write_text(RUNS)
    before = sorted(working_folder.rglob("*"))
    result = invoke(*words)
    assert (result.exit_code, message in result.output, "secret" in result.output) == (2, True, False), result.output
    assert sorted(working_folder.rglob("*")) == before


def test_imported_runs_are_tabulated_and_reported(working_folder: Path) -> None:
    """Import prints the table, writes the trials once, and prints a command that reports the same groups."""
    (working_folder / "runs.csv").write_text(RUNS)
    result = invoke("import", "csv", "runs.csv")
    assert result.exit_code == 0, result.output
    table = [line for line in result.output.splitlines() if line.lstrip().startswith(("0.1 ", "0.2 "))]
    assert len(table) == 2
    command = result.output.rpartition("report:")[2].split()
    assert command == ["study", "report", "runs-outcomes.csv", "--by", "lr", "--metric", "val_acc:higher"]
    report = invoke(*command[1:])
    assert report.exit_code == 0, report.output
    assert all(line in report.output for line in table)
    assert (working_folder / "runs-outcomes-report" / "report.html").exists()
    repeated = invoke("import", "csv", "runs.csv")
    assert (repeated.exit_code, "nothing is overwritten" in repeated.output) == (2, True)


def test_an_experiment_is_imported(working_folder: Path) -> None:
    """Runs of an experiment in MLflow become trials, including those that this service published."""
    result = invoke("import", "mlflow", "sqlite:///studies/mlflow.db", "little", "--metric", "validation_mse")
    assert result.exit_code == 0, result.output
    assert "with nested runs that have seeds" in result.output
    assert "groups: 4 groups by " in result.output
    assert (working_folder / "little-outcomes.csv").exists()
