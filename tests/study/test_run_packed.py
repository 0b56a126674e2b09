"""Runs of studies of a user's own task and models."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest

from study.console import Console
from study.driver.estimate import preview
from study.driver.options import Options
from study.engine.packed.engine import PackedEngine
from study.plan.plan import make_plan
from study.results.layouts import LAYOUTS
from study.results.load import load_results
from study.run import Ending, run
from study.spec import Spec
from study.store import Store
from tests.study.lab import packed_study

EASY = {"success": {"test_accuracy": {"at_least": 0.0}}}


def trained(spec: Spec, store: Path) -> tuple[Ending, str, list[str]]:
    """Run a study in this process; return its ending, its output, and the ids of its stored packs."""
    console = Console(file=StringIO(), width=200)
    ending = run(make_plan(spec), Options(store, None, local=True, pack_size=4), console)
    return ending, console.file.getvalue(), sorted(Store(store).study(spec.study).pack_ids())


def test_a_study_runs_once(packed_lab: Path, tmp_path: Path, figures: None) -> None:
    """A run gives all results; a second run trains nothing; the report shows the task's metrics without its code."""
    store = tmp_path / "studies"
    ending, _, packs = trained(packed_study(packed_lab, **EASY), store)
    assert ending is Ending.FINISHED
    results = load_results("spirals", store)
    assert results.counts["done"] == len(results.table) == 9
    assert set(results.table["outcome"].to_pylist()) == {"solved"}
    report = store / "spirals" / "report"
    page = (report / "report.html").read_text()
    assert "test accuracy" in page
    assert "0.weight" in page  # the matrices of a solved trial, under their own names
    assert trained(packed_study(packed_lab, **EASY), store)[::2] == (ending, packs)
    (packed_lab / "mylab" / "tasks.py").unlink()
    assert load_results("spirals", store).counts["done"] == 9


def test_a_run_states_why_trials_train_one_by_one(packed_lab: Path, tmp_path: Path) -> None:
    """Proofs of packing are stored once; every run that trains states the reasons of failed proofs."""
    store, models = tmp_path / "studies", ["mylab.models:mlp", "mylab.models:dropping"]
    _, text, _ = trained(packed_study(packed_lab, models=models), store)
    reason = "trials of mylab.models:dropping train one after another: they can't be one array program: Dropout"
    assert reason in " ".join(text.split())
    assert "mylab.models:mlp train" not in text
    folder = Store(store).study("spirals")
    layouts = json.loads(folder.read_file(LAYOUTS) or b"{}")
    assert sorted("reason" in json.loads(layout) for layout in layouts.values()) == [False, True]

    doctored = dict.fromkeys(layouts, '{"reason": "it was said so before"}')
    folder.write_file(LAYOUTS, json.dumps(doctored).encode())
    _, text, _ = trained(packed_study(packed_lab, models=models, seeds=4), store)
    assert text.count("it was said so before") == 2

    folder.write_file(LAYOUTS, b'{"cut off": ')
    _, text, _ = trained(packed_study(packed_lab, models=models, seeds=5), store)
    assert reason in " ".join(text.split())
    assert sorted(json.loads(folder.read_file(LAYOUTS) or b"{}")) == sorted(layouts)


def test_the_plan_measures_own_tasks(packed_lab: Path, tmp_path: Path) -> None:
    """The plan proves and measures packs of own tasks, and writes nothing."""
    store = tmp_path / "studies"
    plan = make_plan(packed_study(packed_lab, models=["mylab.models:mlp", "mylab.models:dropping"]))
    console = Console(file=StringIO(), width=200)
    console.print(preview(plan, Options(store, None, cpus=2)))
    text = " ".join(console.file.getvalue().split())
    assert "6 trials in 2 packs on cpu" in text
    assert "trials of mylab.models:dropping train one after another" in text
    assert "calibrated for a second per row" in text
    assert not store.exists()


def test_a_study_whose_trials_all_failed_has_a_report(
    packed_lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study without results has a report without numbers or metric columns."""

    def start(self: PackedEngine, *args: object, **more: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(PackedEngine, "start", start)
    store = tmp_path / "studies"
    ending, _, _ = trained(packed_study(packed_lab, models=["mylab.models:mlp"]), store)
    assert ending is Ending.FAILURES
    assert (store / "spirals" / "report" / "report.html").exists()
