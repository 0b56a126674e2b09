"""The report of a real search with store and command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from study.plan.plan import make_plan
from study.results import load
from study.results import search as results_of_search
from study.spec import load_spec
from tests.commands import invoke

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = """
study: little
question: What learns?
task: {name: simple}
models:
  - {name: NMU, ranges: {sparsity_strength: {low: 0.1, high: 10, scale: log}}}
  - NAC-mul
fixed: {batch_size: 16}
ranges: {learning_rate: {low: 0.0001, high: 0.1, scale: log}}
seeds: 4
protocol: {iterations: 20, evaluate_every: 10, evaluation_rows: 50}
search: {objective: [success_rate, time_to_success], trials: 14, candidates: 4, first_seeds: 2, confirm_seeds: 3}
"""


@pytest.fixture(scope="module", name="original")
def _original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a small search to its end."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "little.yaml").write_text(SPEC)
    words = ("search", str(folder / "little.yaml"), "--store", str(folder / "studies"), "--local")
    result = invoke(*words, "--engine", "torch", "--tracking-uri", "off", "--optuna-storage", "off")
    assert result.exit_code == 0, result.output
    return folder


def test_the_report_is_of_fresh_seeds_and_names_candidates(workspace):
    """Rows are the confirmed candidates by number, with trials of seeds unused in the search."""
    results = load.load_results("little", workspace / "studies")
    assert set(results.table["seed"].to_pylist()) == {4, 5, 6}
    labels = [results.plan.labels[s.cell_id]["candidate"] for s in results.summaries]
    numbers = {row: number for number, row in results.search.rows.items()}
    assert labels == [f"#{numbers[row]}" for row in range(len(labels))]
    result = invoke("show", "little")
    assert result.exit_code == 0, result.output
    assert "Confirmed with fresh seeds" in result.output
    assert labels[0] in result.output


def test_the_winners_file_plans_stored_trials(workspace):
    """The winner's file of the report is a study whose trials are all stored."""
    file = workspace / "studies" / "little" / "report" / "winner.yaml"
    results = load.load_results("little", workspace / "studies")
    plan = make_plan(load_spec(file))
    assert [cell.id for cell in plan.cells] == [results.summaries[0].cell_id]
    assert {trial.id for trial in plan.trials} <= set(results.table["trial_id"].to_pylist())


def test_a_running_search_reports_all_candidates_with_a_warning(workspace):
    """While a search runs, its candidates are rows, by number, and a notice warns that the numbers are optimistic."""
    file = workspace / "studies" / "little" / "search.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"winners": None}))
    results = load.load_results("little", workspace / "studies")
    assert not results.search.is_over
    assert results_of_search.NOT_CONFIRMED in results.notices
    tried = {candidate["cell_id"]: candidate["number"] for candidate in record["candidates"] if candidate["cell_id"]}
    assert len(results.summaries) == len(tried) > 1
    for row, summary in enumerate(results.summaries):
        assert results.rows.value(row, "candidate") == f"#{tried[summary.cell_id]}"
    result = invoke("report", "little", "--format", "html", "--format", "yaml", "--out", "out")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (workspace / "out").iterdir()} == {"report.html", ".report.json"}
