"""Runs of studies of a user's function: nothing is trained twice, and the criterion may change."""

from __future__ import annotations

import os
import re
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
import torch

from study.console import Console
from study.driver import progress
from study.driver.options import Options
from study.plan.plan import make_plan
from study.results.load import load_results
from study.results.study import assemble_report
from study.run import Ending, run
from study.spec import Spec
from study.store import Store
from tests.study.lab import study_of


def trained(spec: Spec, store: Path) -> tuple[Ending, list[str]]:
    """Run a study in this process; return its ending and the ids of its stored packs."""
    options = Options(store, None, local=True, pack_size=4)
    ending = run(make_plan(spec), options, Console(file=StringIO()))
    return ending, sorted(Store(store).study(spec.study).pack_ids())


def outcomes(store: Path, name: str = "mine") -> dict[tuple[int, int], str]:
    """Return the outcomes in a study's results, by seed and width."""
    table = load_results(name, store).table
    columns = (table[column].to_pylist() for column in ("seed", "width", "outcome"))
    return {(seed, width): outcome for seed, width, outcome in zip(*columns, strict=True)}


def test_a_study_runs_once(lab: Path, tmp_path: Path) -> None:
    """A run gives all results and a report; a second run trains nothing, and reading doesn't need the code."""
    store = tmp_path / "studies"
    ending, packs = trained(study_of(lab), store)
    assert ending is Ending.FINISHED
    assert len(outcomes(store)) == 6
    page = (store / "mine" / "report" / "report.html").read_text()
    assert "accuracy" in page
    assert trained(study_of(lab), store) == (ending, packs)
    (lab / "mylab" / "training.py").unlink()
    results = load_results("mine", store)
    assert results.counts["done"] == 6
    assert list(results.plan.metrics) == ["accuracy", "loss"]


def test_a_local_run_leaves_torch_its_threads(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code after a local run, as in a notebook, computes with as many threads as before."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        trained(study_of(lab), tmp_path / "studies")
        assert torch.get_num_threads() == 3
        assert "OMP_NUM_THREADS" not in os.environ
    finally:
        torch.set_num_threads(threads)


def test_each_cell_that_trains_has_its_running_value(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The progress shows the running value of the first metric of each cell in training."""
    monkeypatch.setattr(progress, "_PLAIN_EVERY_S", 0.0)
    console = Console(file=StringIO(), width=200)
    run(make_plan(study_of(lab)), Options(tmp_path / "studies", None, local=True), console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    for width in (1, 4):
        assert re.search(rf"^  width {width}: accuracy \S+ on average of \d trials? so far$", printed, re.MULTILINE)


def test_a_report_shows_the_criterion_and_the_distinguishing_columns(lab: Path, tmp_path: Path) -> None:
    """Learning curves show the bound of their metric as a line, and constant columns are left out."""
    store = tmp_path / "studies"
    trained(study_of(lab), store)
    content = assemble_report(load_results("mine", store))
    assert content.rows.keys == ("width",)
    assert [curve.threshold for curve in content.learning] == [0.9, 0.9]
    trained(study_of(lab, success={"loss": {"below": 0.3}}), store)  # curves show the accuracy
    assert {curve.threshold for curve in assemble_report(load_results("mine", store)).learning} == {None}
    trained(study_of(lab, success={"accuracy": {"at_least": 0.5, "below": 0.8}}), store)
    assert {curve.threshold for curve in assemble_report(load_results("mine", store)).learning} == {0.5}


def test_another_criterion_trains_nothing(lab: Path, tmp_path: Path) -> None:
    """A new criterion, or the old one again, judges stored trials by metrics and curves, without training."""
    store = tmp_path / "studies"
    first, packs = trained(study_of(lab), store)
    before = outcomes(store)
    assert set(before.values()) == {"solved", "unsolved"}

    strict = study_of(lab, success={"accuracy": {"at_least": 2.0}})
    assert trained(strict, store) == (first, packs)
    assert set(outcomes(store).values()) == {"unsolved"}

    lenient = study_of(lab, success={"loss": {"below": 0.3}})
    assert trained(lenient, store) == (first, packs)
    table = load_results("mine", store).table
    assert set(table["outcome"].to_pylist()) == {"solved"}
    assert set(table["criterion"].to_pylist()) == {"loss < 0.3"}
    assert set(table["solved_at_iteration"].to_pylist()) == {1}  # 0.5 / 2

    trained(study_of(lab, success=None), store)
    assert set(outcomes(store).values()) == {"finished"}
    trained(study_of(lab), store)
    assert outcomes(store) == before


def test_edited_code_is_another_study_of_the_same_name(lab: Path, tmp_path: Path) -> None:
    """New code trains anew; earlier results stay in the store and return with their code."""
    store, spec = tmp_path / "studies", study_of(lab)
    trained(spec, store)
    text = (lab / "mylab" / "training.py").read_text()
    (lab / "mylab" / "training.py").write_text(text.replace("step * width / 16", "step * width / 8"))
    _, packs = trained(study_of(lab), store)
    assert len(load_results("mine", store).table) == 6
    assert len(Store(store).study("mine").read_results()) == 12
    (lab / "mylab" / "training.py").write_text(text)
    assert trained(study_of(lab), store)[1] == packs


def test_only_failed_trials_run_again(lab: Path, tmp_path: Path) -> None:
    """An error fails its trial alone, with the user's own line; the next run calls only that trial again."""
    store = tmp_path / "studies"
    spec = study_of(lab, fixed={"fail": "raise"}, grid=None, version=1)
    ending, packs = trained(spec, store)
    assert ending is Ending.FAILURES
    table = load_results("mine", store).table
    failed = table.filter(pa.compute.equal(table["outcome"], "failed")).to_pylist()
    assert [row["seed"] for row in failed] == [1]
    assert "RuntimeError: no luck (mylab/training.py:" in failed[0]["error"]

    text = (lab / "mylab" / "training.py").read_text()
    (lab / "mylab" / "training.py").write_text(text.replace('raise RuntimeError("no luck")', "pass"))
    ending, after = trained(study_of(lab, fixed={"fail": "raise"}, grid=None, version=1), store)
    assert ending is Ending.FINISHED
    assert len(after) == len(packs) + 1
