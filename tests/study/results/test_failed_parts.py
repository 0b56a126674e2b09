"""Failing parts of a report: all others are written, and the failure is shown in all outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from study.api import open_study
from study.reports import latex
from study.reports.figures import survival
from study.results import load
from study.store import Store
from tests.commands import invoke

SPEC = """
study: broken
task: {name: simple}
models: [NMU]
grid: {hidden_size: [2, 3]}
seeds: 3
protocol: {iterations: 200, evaluate_every: 100, evaluation_rows: 50}
success: {threshold: 1000.0}
"""
MEAN = "ValueError: no mean of nothing"
NAMED = ("comparisons between rows", "figure of survival", "cells.tex")


def fails(*args: object, **options: object) -> None:
    raise ValueError("no mean of nothing")


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Write a study whose report has three faults; return the options of its store."""
    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text(SPEC)
    monkeypatch.setattr(load, "contrasts", fails)
    monkeypatch.setattr(survival, "plot", fails)
    monkeypatch.setattr(latex, "latex", fails)
    return ("--store", str(tmp_path / "studies"), "--tracking-uri", "off")


@pytest.mark.usefixtures("figures")
def test_a_run_with_a_failing_report_keeps_its_results(broken, tmp_path):
    """Results are stored and shown, the rest of the report is written, and the exit code is 1."""
    ran = invoke("run", "broken.yaml", "--local", *broken)
    assert ran.exit_code == 1
    assert len(Store(tmp_path / "studies").study("broken").done()) == 6
    report = tmp_path / "studies" / "broken" / "report"
    written = {path.name for path in report.iterdir()}
    assert {"cells.csv", "cells.parquet", "figure.svg", "report.html", "report.md"} <= written
    assert not {"cells.tex", "survival.svg"} & written
    for text in (ran.output, (report / "report.md").read_text(), (report / "report.html").read_text()):
        for part in NAMED:
            assert f"{part} failed, and is left out: {MEAN}" in text
    assert "all results are stored" in ran.output


def test_the_report_is_written_again_once_nothing_fails(broken, tmp_path, monkeypatch):
    """A broken report counts as outdated: the same command trains nothing and writes it completely."""
    assert invoke("run", "broken.yaml", "--local", *broken).exit_code == 1
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    repeated = invoke("run", "broken.yaml", "--local", *broken)
    assert repeated.exit_code == 0, repeated.output
    assert "failed, and is left out" not in repeated.output
    assert (tmp_path / "studies" / "broken" / "report" / "cells.tex").exists()


@pytest.mark.usefixtures("figures")
def test_every_reading_command_names_failed_parts(broken, tmp_path):
    """`show` and its JSON name failed parts, and `report` exits with 1 after writing all others."""
    invoke("run", "broken.yaml", "--local", *broken)
    store = broken[:2]
    assert f"comparisons between rows failed, and is left out: {MEAN}" in invoke("show", "broken", *store).output
    notes = json.loads(invoke("show", "broken", "--json", *store).output)["notes"]
    assert any(note.startswith("comparisons between rows failed") for note in notes)
    written = invoke("report", "broken", "--out", str(tmp_path / "out"), *broken)
    assert written.exit_code == 1
    assert all(f"{part} failed, and is left out: {MEAN}" in written.output for part in NAMED)
    assert (tmp_path / "out" / "report.html").exists()
    files = invoke("report", "broken", "--by", "hidden_size", "--out", str(tmp_path / "by"), *broken)
    assert files.exit_code == 1
    assert "cells.tex failed, and is left out" in files.output
    assert (tmp_path / "by" / "cells.csv").exists()


def test_a_mistake_of_the_user_isnt_a_failed_part(broken, tmp_path):
    """A missing trial is a usage error with exit code 2."""
    invoke("run", "broken.yaml", "--local", *broken)
    refused = invoke("report", "broken", "--trial", "nosuch", *broken)
    assert refused.exit_code == 2
    assert "no trial of this study has that id" in refused.output
    assert open_study("broken", store=broken[1]).results().counts["done"] == 6
