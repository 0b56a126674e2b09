"""Plug-ins of an installed package are known by name in a study, from the file to the report."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from study.engine.registry import engine_for
from study.errors import InputError
from study.spec.cells import canonical_cell
from study.store import Store
from tests.commands import invoke
from tests.ray_clusters import ROOT, as_user, ray_cluster, status
from tests.ray_clusters import study as command
from tests.study.lab import PACKED_STUDY
from tests.study.plugins.builders import install_theirlab


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of installed packages, on the path of this process and its subprocesses."""
    folder = install_theirlab(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def study(folder: Path, *words: str) -> str:
    """Run a command in a folder, and return its output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("STUDY_STORE", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        result = invoke(*words)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("task", "models"), [("spirals", ["little"]), ("products", ["shifted", "NMU", "theirlab.models:mixed"])]
)
def test_a_file_names_tasks_models_and_units(site: Path, tmp_path: Path, task: str, models: list[str]) -> None:
    """Named tasks, models and units are planned, trained, listed and shown; a package's version identifies its code."""
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
    """A plug-in's family or the user may name its engine; `auto` doesn't use it for other cells."""
    coin, cell = canonical_cell("coins", "euro", {}), canonical_cell("simple", "NMU", {})
    assert engine_for("auto", coin, "cpu").name == engine_for("thrower", coin, "cpu").name == "thrower"
    assert engine_for("auto", cell, "cpu").name == "fused"
    for name, message in {
        "thrower": "no engine trains NMU .* on cpu: thrower: it throws coins only",
        "wrong": r"must be a class derived from study\.Engine",
        "other": "calls itself 'thrower', but is offered under the name 'other'",
        "fusd": r"or an engine that an installed package offers, but got 'fusd'; did you mean 'fused'\?",
    }.items():
        with pytest.raises(InputError, match=message):
            engine_for(name, cell, "cpu")


def test_a_family_is_trained_reported_and_repeated(site: Path, tmp_path: Path) -> None:
    """A preset of a plug-in's family runs on the plug-in's engine, with its symbols, published results and scripts."""
    folder = tmp_path / "study"
    folder.mkdir()
    assert "80 trials" in study(folder, "plan", "tosses")
    study(folder, "run", "tosses", "--local", "--tracking-uri", "off")
    printed = study(folder, "report", "tosses", "--compare", "published", "--format", "csv", "--out", "tables")
    assert "β" in printed
    with (folder / "tables" / "cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["model"], row["bias"], row["solved"]) for row in rows] == [
        ("euro", "0.2", "0"), ("euro", "0.8", "20"), ("krona", "0.2", "0"), ("krona", "0.8", "20")
    ]  # fmt: skip
    with (folder / "tables" / "comparison.csv").open() as file:
        [compared] = csv.DictReader(file)
    assert (compared["model"], compared["source"]) == ("krona", "Doe 2025: coins")
    assert "all have the stored bits" in study(folder, "verify", "tosses", "--share", "1")
    results = pq.read_table(next((folder / "studies" / "tosses" / "results").iterdir()))
    trial = results["trial_id"][0].as_py()
    study(folder, "repeat", "tosses", trial, "--script", "trial.py")
    assert (folder / "trial.py").read_text() == f"print({results['heads'][0].as_py()!r})\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_plugin_trains_on_two_nodes(site: Path, tmp_path: Path) -> None:
    """A preset of a plug-in's family and a study of its task are submitted, trained and reported."""
    content = PACKED_STUDY | {"task": {"name": "products"}, "models": ["shifted"], "success": {}, "seeds": 2}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(content))
    with ray_cluster(2, None, {"PYTHONPATH": str(site)}) as nodes:
        user = as_user(tmp_path, nodes) | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
        for name, file in (("tosses", "tosses"), (content["study"], "own.yaml")):
            words = ("submit", file, "--store", str(tmp_path / "studies"), "--tracking-uri", "off")
            submitted = command(*words, environment=user, cwd=tmp_path)
            assert submitted.returncode == 0, submitted.stdout
            log = command("logs", name, "--follow", environment=user, cwd=tmp_path)
            assert status(name, user, tmp_path)["state"] == "finished", log.stdout
    assert len(Store(tmp_path / "studies").study("tosses").done()) == 80
