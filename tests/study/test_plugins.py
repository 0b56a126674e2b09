"""Plug-ins of an installed package are known by their names in a study, from the file to the report."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from study.engine.registry import engine_for
from study.errors import InputError
from study.spec.cells import canonical_cell
from tests.study.lab import MODELS, PACKED_STUDY, TASKS
from tests.study.source.builders import installed, write

OFFERS = """
[seeded_study.tasks]
spirals = theirlab.tasks:Spirals
products = theirlab.tasks:Products
[seeded_study.models]
little = theirlab.models:mlp
[seeded_study.units]
shifted = theirlab.models:Shifted
[seeded_study.engines]
slow = theirlab.engines:Slow
other = theirlab.engines:Slow
wrong = theirlab.engines:helper
"""
ENGINES = """
from study.engine.torch.engine import TorchEngine
from study import seeded


class Slow(TorchEngine):
    name = "slow"


@seeded
def helper():
    pass
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of installed packages, on the path of this process and of those that it starts."""
    folder = tmp_path / "site-packages"
    write(folder, theirlab__="", theirlab__tasks=TASKS, theirlab__models=MODELS, theirlab__engines=ENGINES)
    installed(folder, entry_points=OFFERS, name="theirlab")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def study(folder: Path, *words: str) -> str:
    """Run a command in a folder, and return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key not in ("STUDY_STORE", "MLFLOW_TRACKING_URI")}
    command = [sys.executable, "-m", "study", *words]
    done = subprocess.run(command, cwd=folder, env=environment | {"COLUMNS": "200"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("task", "models"), [("spirals", ["little"]), ("products", ["shifted", "NMU", "theirlab.models:mixed"])]
)
def test_a_file_names_tasks_models_and_units(site: Path, tmp_path: Path, task: str, models: list[str]) -> None:
    """They are planned, trained, listed and shown; the package's version stands for the code."""
    folder = tmp_path / "study"
    folder.mkdir()
    content = PACKED_STUDY | {"task": {"name": task}, "models": models, "success": {}, "seeds": 2}
    (folder / "own.yaml").write_text(yaml.safe_dump(content))
    assert f"{2 * len(models)} trials" in study(folder, "plan", "own.yaml")
    study(folder, "run", "own.yaml", "--local", "--tracking-uri", "off")
    declared = json.loads((folder / "studies" / "spirals" / "declared.json").read_text())
    assert declared["code"] == "theirlab==1.2"
    assert "spirals" in study(folder, "list")
    study(folder, "report", "spirals", "--format", "csv", "--out", "tables")
    with (folder / "tables" / "cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["finished"]) for row in rows] == [2] * len(models)


def test_an_engine_is_chosen_by_its_name(site: Path) -> None:
    """It trains what it takes; `auto` never chooses it, and what isn't an engine is refused."""
    cell = canonical_cell("simple", "NMU", {})
    assert engine_for("slow", cell, "cpu").name == "slow"
    assert engine_for("auto", cell, "cpu").name != "slow"
    for name, message in {
        "wrong": r"must be a class derived from study\.engine\.base\.Engine",
        "other": "calls itself 'slow', but is offered under the name 'other'",
        "fusd": r"or an engine that an installed package offers, but got 'fusd'; did you mean 'fused'\?",
    }.items():
        with pytest.raises(InputError, match=message):
            engine_for(name, cell, "cpu")
