"""What is left of a study is shown as every table shows values."""

from __future__ import annotations

from rich.console import Console

from study.driver.outline import quick
from study.plan.plan import make_plan
from study.spec import load_spec


def test_what_does_not_apply_is_a_dash(tmp_path):
    """A model without a hyperparameter has a dash there, numbers and choices are written for readers."""
    console = Console(width=200, record=True)
    console.print(quick(make_plan(load_spec("digits-product")), tmp_path))
    lines = console.export_text().splitlines()
    rows = {
        line.split("│")[1].strip(): [part.strip() for part in line.split("│")[2:-1]] for line in lines if "│" in line
    }
    assert rows["NMU"] == ["–", "1", "–", "–", "6,000", "1", "10"]
    assert rows["LSTM"] == ["–", "–", "16", "yes", "6,000", "1", "10"]
