"""Outlines of planned work: formatted values and warnings."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from rich.console import Console

import study
from study.driver.outline import quick
from study.plan.plan import make_plan
from study.spec import load_spec


def test_unused_hyperparameters_are_dashes(tmp_path):
    """A hyperparameter that a model lacks is a dash; numbers and choices are formatted for readers."""
    console = Console(width=200, record=True)
    console.print(quick(make_plan(load_spec("digits-product")), tmp_path))
    lines = console.export_text().splitlines()
    rows = {
        line.split("│")[1].strip(): [part.strip() for part in line.split("│")[2:-1]] for line in lines if "│" in line
    }
    assert rows["NMU"] == ["–", "1", "–", "–", "6,000", "1", "10"]
    assert rows["LSTM"] == ["–", "–", "16", "yes", "6,000", "1", "10"]


EASY = {
    "study": "easy",
    "question": "Is it learned?",
    "task": {"name": "simple"},
    "models": ["NMU", "linear"],
    "seeds": 6,
    "fixed": {"batch_size": 16, "learning_rate": 0.01},
    "protocol": {"iterations": 4000, "evaluate_every": 100, "evaluation_rows": 50},
    "success": {"threshold": 0.1},
}


@pytest.mark.filterwarnings("ignore")
def test_a_plan_is_compared_with_stored_studies(tmp_path: Path) -> None:
    """Fewer iterations than the first solved trial of a stored study needed are a warning, in text and JSON."""
    study.load(EASY, store=tmp_path, tracking_uri="off").run(local=True)
    results = study.open("easy", store=tmp_path).results().table
    first = pc.min(results["solved_at_iteration"]).as_py()
    assert first > 100

    def warnings(iterations: int, **changed: object) -> list[str]:
        protocol = EASY["protocol"] | {"iterations": iterations}  # type: ignore[operator]
        other = study.load(EASY | {"study": "short", "protocol": protocol} | changed, store=tmp_path)
        plan = other.plan(quick=True)
        text = " ".join(str(plan).split())
        assert all(warning in text for warning in plan.data["warnings"])
        return list(plan.data["warnings"])

    [sentence] = warnings(first - 1)
    assert sentence.startswith(f"{first - 1:,} iterations may be too few for NMU. In study easy (hidden units 2), the ")
    assert f"at iteration {first:,}" in sentence
    assert warnings(first) == []
    assert warnings(100, task={"name": "simple", "operation": "add"}) == []
    assert warnings(100, models=["NALU"]) == []
