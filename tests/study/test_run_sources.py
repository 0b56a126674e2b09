"""Studies with seeds for each source of randomness, from the file to the report."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import mlflow
import numpy as np
import pytest

from study.api import open_study
from study.arrow import table_results
from study.console import Console
from study.driver.options import Options
from study.driver.repeat import repeat
from study.plan.plan import Plan, make_plan
from study.records import Sources
from study.results.load import load_results
from study.results.study import sync, write_study_report
from study.run import Ending, run
from study.spec import parse_spec
from study.store import Store
from study.trials.table import source_array
from tests.commands import invoke

# Warnings of MLflow and its dependencies are theirs to fix.
pytestmark = pytest.mark.filterwarnings("ignore")

# About half of the NMU's seeds are solved by then.
SPEC = """
study: crossed
question: Which randomness matters?
task: {name: simple}
models: [NMU]
grid: {hidden_size: [2, 3]}
seeds: {init: 6, data: 5}
fixed: {batch_size: 16, learning_rate: 0.01}
protocol: {iterations: 4000, evaluate_every: 100, evaluation_rows: 50}
success: {threshold: 0.1}
"""


def planned(text: str = SPEC) -> Plan:
    return make_plan(parse_spec(text, source="test"))


def run_here(root: Path, text: str = SPEC) -> None:
    assert run(planned(text), Options(root=root, tracking_uri=None, local=True), Console()) == Ending.FINISHED


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the study, and return its store."""
    root = tmp_path_factory.mktemp("crossed")
    run_here(root)
    return root


def test_plain_seeds_of_an_earlier_study_are_adopted(crossed: Path) -> None:
    """Trials with equal init and data seeds are adopted from a study with a count of seeds."""
    before = {r.trial.id: r.best_iteration for r in table_results(Store(crossed).study("crossed").read_results())}
    plain = SPEC.replace("study: crossed", "study: plain").replace("{init: 6, data: 5}", "5")
    run_here(crossed, plain)
    results = table_results(Store(crossed).study("plain").read_results())
    assert {r.trial.id for r in results} <= set(before)
    assert "adopted_from" in str(Store(crossed).study("plain").provenances())


def test_a_study_continued_with_until_uses_plain_seeds(tmp_path: Path) -> None:
    """Trials with equal init and data seeds count as plain seeds; other combinations are kept, but not shown."""
    small = SPEC.replace("{init: 6, data: 5}", "{init: 3, data: 2}").replace("[2, 3]", "[2]")
    run_here(tmp_path, small)
    stored = Store(tmp_path).study("crossed")
    before = {r.trial.id for r in table_results(stored.read_results())}
    run_here(tmp_path, small.replace("{init: 3, data: 2}", "{until: {half_width: 0.45, max: 4, batch: 4}}"))
    results = load_results("crossed", tmp_path)
    assert sorted(results.table["seed"].to_pylist()) == [0, 1, 2, 3]
    assert results.counts["done"] == 4
    after = {r.trial.id for r in table_results(Store(tmp_path).study("crossed").read_results())}
    assert before <= after
    assert len(after - before) == 2  # init 0 with data 0, and init 1 with data 1, are seeds 0 and 1


def test_stored_trials_repeat_bit_for_bit(crossed: Path) -> None:
    """A trial of combined seeds, repeated alone, has the stored bits; the output names its seeds."""
    results = table_results(Store(crossed).study("crossed").read_results())
    trial = next(r.trial for r in results if r.trial.sources == Sources(4, 2))
    (repetition,) = repeat(planned(), str(crossed), [trial.id])
    assert repetition.is_same, str(repetition)
    assert "seed init 4, data 2," in str(repetition)
    text = open_study("crossed", store=crossed).script(trial.id).text
    assert "\nINIT_SEED, DATA_SEED = 4, 2\nEVALUATION_SEED = 0x5EED0FE7A1" in text


def test_the_report_shows_the_share_of_each_source(figures, crossed: Path) -> None:
    """The report has shares with intervals, the gain from more trials, a figure, sources.csv and a headline."""
    results = load_results("crossed", crossed)
    assert re.match(r"Of the variance of success, init seeds make .*% and data seeds make .*%\. ", results.headline)
    files = {path.name: path for path in write_study_report(results)}
    page = files["report.html"].read_text(encoding="utf-8")
    assert "<h2>Sources of randomness</h2>" in page
    assert "For the next 100 trials" in page
    assert "init 4, data 2" in page  # the list of trials
    assert {"sources.svg", "sources.png", "sources.csv"} <= set(files)
    with files["sources.csv"].open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["quantity"] == "success"]
    by_cell: dict[str, float] = {}
    for row in rows:
        assert 0 <= float(row["share_lower"]) <= float(row["share"]) <= float(row["share_upper"]) <= 1
        by_cell[row["cell_id"]] = by_cell.get(row["cell_id"], 0) + float(row["share"])
    assert by_cell
    assert all(total == pytest.approx(1) for total in by_cell.values())
    assert "## Sources of randomness" in files["report.md"].read_text(encoding="utf-8")
    result = invoke("show", "crossed", "--store", str(crossed))
    assert "their combination" in result.output


def test_intervals_and_tests_allow_for_shared_seeds(crossed: Path) -> None:
    """The rate's interval is wider than for independent trials, and tests use independent seeds."""
    results = load_results("crossed", crossed)
    for summary in results.summaries:
        low, high = summary.success_rate_interval or (np.nan, np.nan)
        assert summary.success_rate_by == "dependence-adjusted"
        assert low <= (summary.success_rate or 0) <= high
        assert high - low > 0.1
        assert summary.solved_at_interval is summary.time_to_success_interval is None
        assert all(metric.mean_interval is None for metric in summary.metrics.values())
    assert {finding.test or finding.reason for finding in results.contrasts.pairs} <= {
        "t over crossed seeds",
        "all differences are 0, or a source of randomness has fewer than three seeds",
    }
    assert not results.contrasts.trends
    assert results.overall is None
    assert "need independent trials" in " ".join(results.contrasts.notes)


def test_published_numbers_are_not_tested_against(tmp_path: Path) -> None:
    """A repetition of a published cell with combined seeds isn't tested; a note gives the reason."""
    text = (
        "{study: simple, task: {name: simple}, models: [NMU], seeds: {init: 2, data: 2}, fixed: {stop: when_decided}}"
    )
    folder = tmp_path / "published"
    run_here(folder, text.replace("{study: simple,", "{study: short, protocol: {iterations: 200000},"))
    against = load_results("short", folder).against
    assert [(c.verdict, c.finding.reason) for c in against.comparisons] == [("not tested", "trials share seeds")]


def test_mlflow_has_the_sources_seeds(crossed: Path, tmp_path: Path) -> None:
    """Runs with combined seeds have a parameter for each source, and a name with the seeds."""
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    sync(load_results("crossed", crossed), uri)
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("crossed")
    runs = client.search_runs([experiment.experiment_id], "params.init_seed = '4' and params.data_seed = '2'")
    assert len(runs) == 2
    assert all("init 4, data 2" in run.info.run_name for run in runs)


def test_three_and_nested_sources_have_their_shares(tmp_path: Path) -> None:
    """Evaluation rows are a source beside init and data together; nested sources have two shares."""
    three = SPEC.replace("study: crossed", "study: three").replace("data: 5}", "data: 4, evaluation: 3}")
    run_here(tmp_path, three)
    of_three = load_results("three", tmp_path).sources
    names = {shares.sources for shares in of_three if shares.quantity == "success"}
    assert names == {("init", "data", "their combination"), ("init and data", "evaluation", "their combination")}
    nested = SPEC.replace("study: crossed", "study: nested").replace("data: 5}", "data: 5, design: nested}")
    run_here(tmp_path, nested)
    of_nested = [shares for shares in load_results("nested", tmp_path).sources if shares.quantity == "success"]
    assert {shares.sources for shares in of_nested} == {("init", "data")}
    assert all(sum(share for _, share, _ in shares.parts) == pytest.approx(1) for shares in of_nested)


def test_groups_allow_for_shared_seeds_as_cells_do(crossed: Path) -> None:
    """A table by columns has the same intervals as the study's own table of the same trials."""
    groups = crossed / "groups"
    result = invoke("report", "crossed", "--by", "hidden_size", "--store", str(crossed), "--out", str(groups))
    assert result.exit_code == 0, result.output
    bounds = ("success_rate", "success_rate_lower", "success_rate_upper")
    cells = {cell.cell.value("hidden_size"): cell for cell in load_results("crossed", crossed).summaries}
    with (groups / "cells.csv").open(newline="") as file:
        rows = {int(row["hidden_size"]): row for row in csv.DictReader(file)}
    assert rows.keys() == cells.keys()
    for size, row in rows.items():
        assert cells[size].success_rate_interval is not None
        expected = (cells[size].success_rate, *cells[size].success_rate_interval)
        assert [float(row[name]) for name in bounds] == pytest.approx(expected)
        assert row["solved_at_lower"] == ""


def test_an_array_has_an_axis_a_source() -> None:
    """An array has numbers at the places of their seeds, in any order of trials; without combined seeds it is None."""
    sources = [Sources(i, j) for i in (5, 2, 9) for j in (1, 0)]
    array = source_array(
        np.array([source.seed for source in sources]),
        np.array([10.0 * source.init + source.data for source in sources]),
    )
    assert array is not None
    assert array.values.tolist() == [[20, 21], [50, 51], [90, 91]]
    assert source_array(np.arange(5), np.zeros(5)) is None


def test_the_plan_counts_seeds_by_source(tmp_path: Path) -> None:
    """`study plan` prints the product of seeds; nested data seeds are printed per init seed."""
    file = tmp_path / "mine.yaml"
    file.write_text(SPEC)
    output = invoke("plan", str(file), "--quick", "--store", str(tmp_path / "none")).output
    assert "2 cells × 6 init seeds × 5 data seeds = 60 trials" in output
    words = ("seeds={init: 3, data: 2, design: nested}", "--quick", "--store", str(tmp_path / "none"))
    assert "3 init seeds × 2 data seeds in each = 12 trials" in invoke("plan", str(file), *words).output
