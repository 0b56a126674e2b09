"""`study report` of files and studies by columns: reading, writing and refusals."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tasks.arithmetic import published
from tests.commands import invoke

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = """
study: little
task: {name: simple}
models: [NMU, NAC-mul]
seeds: 3
fixed: {batch_size: 16}
grid: {hidden_size: [2, 3]}
protocol: {iterations: 40, evaluate_every: 10, evaluation_rows: 50}
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with the published seeds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STUDY_STORE", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    shutil.copy(Path(published.__file__).with_name("static_seeds.csv"), tmp_path / "seeds.csv")
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def contents(folder: Path) -> dict[str, bytes]:
    """Return a folder's files."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".report.json"}


@pytest.mark.usefixtures("figures")
def test_the_published_seeds_give_the_published_table_and_the_right_one(workspace):
    """`study report FILE --as-published` prints both tables, and writes equal files for the same seeds."""
    result = invoke("report", "seeds.csv", "--as-published")
    assert result.exit_code == 0, result.output
    line = next(line for line in result.output.splitlines() if line.startswith("+          NAU"))
    assert "190k" in line
    assert "391k" in line
    written = contents(workspace / "seeds-report")
    tables = {"cells.csv", "cells.parquet", "report.md", "cells.tex", "report.html"}
    tables |= {"tests.csv"}
    assert set(written) == tables | {f"{name}.{kind}" for name in ("figure", "ranking") for kind in ("png", "svg")}
    assert len(rows(workspace / "seeds-report" / "cells.csv")) == 20
    assert b"study report seeds.csv --by operation,model --as-published" in written["cells.tex"]
    (workspace / "other").mkdir()
    shutil.move(workspace / "seeds.csv", workspace / "other" / "seeds.csv")
    assert invoke("report", "other/seeds.csv", "--as-published", "--out", "again").exit_code == 0
    assert contents(workspace / "again") == written


def test_by_out_and_format_are_obeyed(workspace):
    """The report has the columns, the folder and the formats of its options."""
    result = invoke("report", "seeds.csv", "--by", "model", "--out", "there", "--format", "csv", "--format", "latex")
    assert result.exit_code == 0, result.output
    assert "rows of different operation are counted together" in result.output
    assert set(contents(workspace / "there")) == {"cells.csv", "cells.tex", "tests.csv"}
    row_of = {row["model"]: row for row in rows(workspace / "there" / "cells.csv")}
    assert (row_of["NMU"]["solved"], row_of["NMU"]["seeds"]) == ("98", "200")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report", "seed.csv"), "choose from seeds.csv"),
        (("report", "seeds.csv", "--by", "mode"), "choose from model"),
        (("report", "seeds.csv", "--compare", "published"), "needs a study's cells, with their protocol"),
        (("report", "seeds.csv", "--compare", "none.csv"), "no such column to group by"),
        (("report", "seeds.csv", "--compare", "seed.csv"), "choose from seeds.csv"),
        (("report", "bad.csv", "seeds.csv"), "bad.csv can't be used"),
        (("report", "cells.csv", "--out", "."), "would be overwritten"),
        (("report", "a-study"), "no study 'a-study'"),
        (("report", "a-study", "b-study", "--by", "model"), "give --out"),
        (("report", "seeds.csv", "a-study"), "no study 'a-study'"),
        (("report", "none.csv", "--as-published"), "leave out --as-published"),
    ],
)
def test_refused_reports_write_nothing(workspace, words, message):
    """Each mistake is one sentence with exit code 2, and all files are unchanged."""
    (workspace / "bad.csv").write_text("model,seed\nNMU,0\n")
    (workspace / "none.csv").write_text("model,seed,solved,solved_at,sparsity_error\nNMU,0,True,5,\n")
    shutil.copy(workspace / "seeds.csv", workspace / "cells.csv")
    before = contents(workspace)
    result = invoke(*words)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert contents(workspace) == before


def test_a_terminal_shows_the_first_of_very_many_rows(workspace):
    """Of 250 groups 200 are printed, and all are written."""
    lines = [f"{size},0,True,5,0.1\n{size},1,False,,0.1\n{size},2,False,,0.1" for size in range(250)]
    text = "hidden_size,seed,solved,solved_at,sparsity_error\n" + "\n".join(lines)
    (workspace / "many.csv").write_text(text)
    result = invoke("report", "many.csv")
    assert result.exit_code == 0, result.output
    assert "... and 50 more rows" in result.output
    lines = [line for line in result.output.splitlines() if line.startswith("  ")]
    assert len(lines) == 200
    assert len(rows(workspace / "many-report" / "cells.csv")) == 250


def test_tables_of_files_load_no_torch(workspace):
    """Slow imports (torch, matplotlib, MLflow) are avoided, since they take as long as a million rows."""
    heavy = "torch", "matplotlib", "mlflow", "ray"
    words = ["report", "seeds.csv", "--format", "csv", "--format", "latex"]
    code = (
        f"import sys; from study.cli import main; main({words}, standalone_mode=False); "
        f"print('loaded:', [name for name in {heavy!r} if name in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines()[-1] == "loaded: []"


def test_a_folder_that_cant_be_written_is_reported(workspace):
    """A file in place of the output folder is refused before any input is read."""
    (workspace / "seeds-report").write_text("mine")
    result = invoke("report", "seeds.csv")
    assert result.exit_code == 2
    assert "seeds-report is a file" in result.output
    assert (workspace / "seeds-report").read_text() == "mine"


def test_studies_are_tabulated_by_columns_with_pending_trials(workspace):
    """A stored study groups by any hyperparameter, alone or beside files, and its pending trials count."""
    (workspace / "little.yaml").write_text(SPEC)
    assert invoke("run", "little.yaml", "--local", "--engine", "torch", "--tracking-uri", "off").exit_code == 0
    first_report = invoke("report", "little", "--format", "latex", "--format", "parquet", "--out", "o")
    assert first_report.exit_code == 0, first_report.output
    assert set(contents(workspace / "o")) == {"cells.tex", "cells.parquet"}
    stored = workspace / "studies" / "little"
    (stored / "spec.yaml").write_text(SPEC.replace("seeds: 3", "seeds: 5"))
    result = invoke("report", "little", "--by", "hidden_size")
    assert result.exit_code == 0, result.output
    cells = rows(stored / "tables" / "cells.csv")
    assert [(row["hidden_size"], row["seeds"], row["pending"], row["complete"]) for row in cells] == [
        ("2", "10", "4", "false"),
        ("3", "10", "4", "false"),
    ]
    result = invoke("report", "little", "seeds.csv", "--by", "source,model", "--out", "both", "--format", "csv")
    assert result.exit_code == 0, result.output
    sources = [row["source"] for row in rows(workspace / "both" / "cells.csv")]
    assert sources.count("little") == 2
    assert sources.count("seeds") == 10


LABELLED = """
study: labelled
task: {name: simple}
models: [NMU]
zip:
  schedule:
    - {label: "off", sparsity_strength: 0}
    - {label: strong, sparsity_strength: 10, sparsity_start: 1, sparsity_end: 2}
grid: {hidden_size: [2, 3]}
seeds: 2
fixed: {batch_size: 16}
protocol: {iterations: 3, evaluate_every: 1, best_step_window: 1, evaluation_rows: 10}
"""


def test_axes_with_labels_make_groups(workspace):
    """--by accepts an axis of a zip; values implied by its labels aren't called pooled, and files have the labels."""
    store = workspace / "studies"
    Path("labelled.yaml").write_text(LABELLED)
    words = ("--store", str(store))
    ran = invoke("run", "labelled.yaml", *words, "--local", "--engine", "torch", "--tracking-uri", "off")
    assert ran.exit_code == 0, ran.output
    done = invoke(
        "report", "labelled", *words, "--by", "schedule", "--out", "out", "--format", "csv", "--format", "parquet"
    )
    assert done.exit_code == 0, done.output
    assert sorted(row["schedule"] for row in rows(Path("out/cells.csv"))) == ["off", "strong"]
    assert sorted(pq.read_table("out/cells.parquet")["schedule"].to_pylist()) == ["off", "strong"]
    assert "rows of different hidden_size are counted together" in " ".join(done.output.split())
    without = invoke("report", "labelled", *words, "--by", "nothing", "--out", "none")
    assert without.exit_code == 2


def outcomes_of(widths: dict[int, list[int]]) -> str:
    """Write outcomes of two models at several widths: a trial solved at 5000, and unsolved ones that end at these."""
    lines = ["model,hidden_size,seed,solved,solved_at,sparsity_error,iterations"]
    for model in ("NMU", "NAU"):
        for width, ends in widths.items():
            lines.append(f"{model},{width},0,true,5000,1e-6,{max(ends)}")
            lines += [f"{model},{width},{seed},false,,,{end}" for seed, end in enumerate(ends, start=1)]
    return "\n".join(lines) + "\n"


def test_only_the_row_with_a_short_trial_is_named(workspace):
    """Of forty rows one has a trial of nine evaluations: it is named, and all other rows are as before."""
    widths = {width: [200_000, 200_000] for width in range(2, 22)}
    (workspace / "whole.csv").write_text(outcomes_of(widths))
    short = outcomes_of(widths).replace("NAU,7,2,false,,,200000", "NAU,7,2,false,,,8000")
    (workspace / "short.csv").write_text(short)
    long, shortened = (
        invoke("report", name, "--format", "csv", "--format", "md") for name in ("whole.csv", "short.csv")
    )
    assert (long.exit_code, shortened.exit_code) == (0, 0)
    before, after = (rows(workspace / f"{name}-report" / "cells.csv") for name in ("whole", "short"))
    assert len(before) == len(after) == 40
    assert {row["time_to_success_until"] for row in after} == {"200000.0"}
    changed = [row for row, old in zip(after, before, strict=True) if row != old]
    assert [(row["model"], row["hidden_size"], row["ended_early"]) for row in changed] == [("NAU", "7", "1")]
    note = "1 trial ended unsolved before"
    text = (workspace / "short-report" / "report.md").read_text(encoding="utf-8")
    for output in (" ".join(shortened.output.split()), text):
        assert note in output
        assert "NAU, hidden units 7 (1 of 3)" in output
    assert note not in long.output
    assert "iterations to success, mean up to 200k" in text
