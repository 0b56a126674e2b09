"""JSON output of commands: the displayed numbers, with full precision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import invoke

# MLflow and its imports must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

FILE = """
study: little
question: Does it learn?
task: {name: simple}
models: [NMU]
grid: {hidden_size: [2, 3]}
seeds: 3
fixed: {batch_size: 16}
protocol: {iterations: 40, evaluate_every: 10, evaluation_rows: 50}
"""


def json_output(*words: str) -> Any:
    result = invoke(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module", name="place")
def _place(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return the file of a study, and a store with two of its three seeds."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "little.yaml").write_text(FILE)
    file, store = str(folder / "little.yaml"), str(folder / "studies")
    result = invoke("run", file, "seeds=2", "--store", store, "--local", "--engine", "torch", "--tracking-uri", "off")
    assert result.exit_code == 0, result.output
    return file, store


@pytest.mark.parametrize("quick", [True, False])
def test_a_plan_counts_the_remaining_trials(place: tuple[str, str], quick: bool) -> None:
    """The plan counts cells, trials and done trials, and has measurements per shape unless it is quick."""
    file, store = place
    words = ("plan", file, "--store", store, "--engine", "torch", "--cpus", "2")
    plan = json_output(*words, *(["--quick"] if quick else []))
    assert {name: plan[name] for name in ("study", "cells", "trials", "done", "left")} == {
        "study": "little", "cells": 2, "trials": 6, "done": 4, "left": 2
    }  # fmt: skip
    if quick:
        assert "packs" not in plan
        return
    packs = sorted((kind["models"], kind["sizes"]["hidden_size"], kind["trials"]) for kind in plan["packs"])
    assert packs == [(["NMU"], [2], 1), (["NMU"], [3], 1)]
    assert all(kind["trial_iteration_s"] > 0 for kind in plan["packs"])
    assert plan["left_s"] > 0


def test_shown_results_have_the_columns_of_the_table(place: tuple[str, str], tmp_path: Path) -> None:
    """The output has the finding, the counts, and cells with the columns of cells.csv."""
    _, store = place
    shown = json_output("show", "little", "--store", store)
    assert shown["counts"]["done"] == 4
    assert [(cell["hidden_size"], cell["seeds"]) for cell in shown["cells"]] == [(2, 2), (3, 2)]
    written = invoke("report", "little", "--store", store, "--format", "csv", "--out", str(tmp_path / "out"))
    assert written.exit_code == 0, written.output
    header = (tmp_path / "out" / "cells.csv").read_text().partition("\n")[0]
    assert list(shown["cells"][0]) == header.split(",")
    assert shown["finding"]


def test_a_report_lists_its_files(place: tuple[str, str], tmp_path: Path) -> None:
    """The output is that of `show` with the files by name; groups have the rows of cells.csv."""
    _, store = place
    out, words = tmp_path / "out", ("--store", store, "--format", "csv", "--format", "latex")
    report = json_output("report", "little", *words, "--out", str(out))
    files = report.pop("files")
    assert report == json_output("show", "little", "--store", store)
    assert files == {name: str(out / name) for name in ("cells.csv", "tests.csv", "cells.tex") if (out / name).exists()}
    assert {"cells.csv", "cells.tex"} <= set(files)
    groups = json_output("report", "little", *words, "--by", "hidden_size", "--out", str(tmp_path / "groups"))
    assert [(row["hidden_size"], row["seeds"]) for row in groups["cells"]] == [(2, 2), (3, 2)]
    header = (tmp_path / "groups" / "cells.csv").read_text().partition("\n")[0]
    assert list(groups["cells"][0]) == header.split(",")
    assert groups["finding"]
    assert groups["files"]["cells.csv"] == str(tmp_path / "groups" / "cells.csv")


def test_columns_are_checked_before_anything_is_printed(place: tuple[str, str], tmp_path: Path) -> None:
    """An unknown column is an error for studies and groups; nothing is printed or written."""
    _, store = place
    words = ("report", "little", "--store", store, "--columns", "succes_rate,seeds", "--out", str(tmp_path / "out"))
    for more in ((), ("--by", "hidden_size")):
        result = invoke(*words, *more)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "did you mean 'success_rate'?" in result.stderr
        assert not (tmp_path / "out").exists()


def test_studies_and_presets_are_listed(place: tuple[str, str]) -> None:
    """Each study and each preset is listed with its numbers."""
    _, store = place
    (row,) = json_output("list", "--store", store)["studies"]
    assert row == {
        "study": "little", "question": "Does it learn?", "done": 4, "failed": 0, "trials": 4, "cells": 2, "tags": [],
        "error": "",
    }  # fmt: skip
    demo = next(row for row in json_output("list", "--presets")["presets"] if row["preset"] == "demo")
    assert (demo["trials"], demo["iterations"]) == (400, [100_000, 100_000])
    assert demo["core_s"] > 0
