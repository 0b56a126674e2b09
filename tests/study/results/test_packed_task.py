"""A study of a task's fields and several models: questions, comparisons, and omitted rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from study.results import load
from tests.commands import invoke

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

STUDY = """
study: ingots
question: Which model predicts the strength?
task: {name: tabular, file: ingots.csv, outputs: [strength], missing: drop, batch_size: 8}
models: [linear, NAC-add]
zip:
  columns:
    - {label: as in the file, inputs_scale: none}
    - {label: standardised, inputs_scale: standard}
fixed: {learning_rate: 1e-2}
seeds: 4
protocol: {iterations: 20, evaluate_every: 10}
"""


@pytest.fixture(scope="module", name="ran")
def _ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Plan and run the study on a table that lacks two numbers; return its folder and both outputs."""
    folder = tmp_path_factory.mktemp("ingots")
    lines = [f"{i % 7},{'' if i in (3, 30) else i % 5},{i % 7 + i % 5}" for i in range(60)]
    (folder / "ingots.csv").write_text("\n".join(["heat,weight,strength", *lines]))
    (folder / "ingots.yaml").write_text(STUDY)
    words = (str(folder / "ingots.yaml"), "--store", str(folder / "studies"))
    plan = invoke("plan", *words, "--quick")
    run = invoke("run", *words, "--local", "--tracking-uri", "off")
    assert (plan.exit_code, run.exit_code) == (0, 0), run.output
    return folder, plan.output, run.output


def test_rows_that_are_left_out_are_reported(ran: tuple[Path, str, str]) -> None:
    """Plan, run and report give the number of the table's rows without a number."""
    folder, plan, run = ran
    notice = "2 of the table's 60 rows lack a number and are left out"
    assert notice in " ".join(plan.split())
    assert " ".join(run.split()).count(notice) == 2  # before training, and below the table of results
    assert notice in (folder / "studies" / "ingots" / "report" / "report.md").read_text().replace("\n", " ")


def test_models_are_compared_on_equal_questions(ran: tuple[Path, str, str]) -> None:
    """The task's values are the question, also from a named axis; models are compared by the test loss."""
    folder, *_ = ran
    results = load.load_results("ingots", folder / "studies")
    assert results.rows.methods == {"model"}
    assert results.rows.main_metric == "test_loss"
    assert [(pair.question, pair.first, pair.second, pair.test) for pair in results.contrasts.pairs] == [
        ("as in the file", "Linear", "NAC₊", "sign-flip"),
        ("standardised", "Linear", "NAC₊", "sign-flip"),
    ]
    assert results.headline.startswith("At as in the file, ")
    with (folder / "studies" / "ingots" / "report" / "tests.csv").open() as file:
        metrics = {line["metric"] for line in csv.DictReader(file)}
    assert metrics >= {"test_loss", "validation_loss", "test_mae_strength", "test_rmse_strength"}
