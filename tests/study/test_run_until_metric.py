"""Studies of a user's function with seeds until a mean metric is known, up to the report and the plan."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console as RichConsole

from study.console import Console
from study.driver.options import Options
from study.driver.outline import outline
from study.plan.plan import make_plan
from study.results.load import load_results
from study.run import Ending, run
from tests.study.lab import study_of

UNTIL = {"half_width": 0.05, "metric": "loss", "max": 100}


def test_a_functions_mean_is_learned(lab: Path, tmp_path: Path) -> None:
    """Without a criterion, each cell gets seeds until its mean loss is known; page and plan show the means."""
    spec = study_of(lab, train="mylab.training:once", metrics={"loss": "lower"}, success=None, seeds={"until": UNTIL})
    store = tmp_path / "studies"
    options = Options(store, None, local=True, pack_size=20)
    assert run(make_plan(spec), options, Console(file=StringIO())) is Ending.FINISHED
    results = load_results("mine", store)
    wide, narrow = results.verdicts  # losses are uniform in [0, 1), and a quarter of that
    assert narrow.is_sure
    assert narrow.seeds == 40 < wide.seeds
    assert narrow.mean == pytest.approx(0.125, abs=0.05)
    page = (store / "mine" / "report" / "report.html").read_text()
    assert "Are the seeds enough?" in page
    assert "loss, mean" in page


def test_the_plan_shows_means_instead_of_rates(lab: Path, tmp_path: Path) -> None:
    """The plan shows the mean so far, with its interval, beside the expected seeds."""
    spec = study_of(lab, train="mylab.training:once", metrics={"loss": "lower"}, success=None, seeds=20)
    store = tmp_path / "studies"
    run(make_plan(spec), Options(store, None, local=True, pack_size=20), Console(file=StringIO()))
    plan = make_plan(study_of(lab, train=spec.train, metrics={"loss": "lower"}, success=None, seeds={"until": UNTIL}))
    screen = StringIO()
    for part in outline(plan, store).parts:
        RichConsole(file=screen, width=160).print(part)
    text = screen.getvalue()
    assert "loss, mean" in text
    assert "solved" not in text
    assert re.search(r"0\.\d+ \[0\.\d+, 0\.\d+\]", text)
