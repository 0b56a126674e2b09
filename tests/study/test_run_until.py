"""Studies with sequential numbers of seeds, from the file to the report: interruptions don't change the trials."""

from __future__ import annotations

import csv
import io
import re
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import mlflow
import pytest

from study import statistics
from study.console import Console
from study.driver.estimate import preview
from study.driver.options import Options
from study.plan.plan import Plan, make_plan
from study.plan.until import extended
from study.records import Result
from study.results.load import load_results
from study.results.study import sync, write_study_report
from study.run import Ending, run
from study.spec import parse_spec
from study.store import Store
from study.tracking import published
from study.tracking.rows import TRIAL_ID
from study.trials.table import TrialTable
from tests.commands import DEADLINE_S, PACK_STORED, Start, blow, starting
from tests.engines import ENGINES, use_engines
from tests.study import builders
from tests.study.cluster.crashing import Crashing

# Warnings of MLflow and its dependencies are theirs to fix.
pytestmark = pytest.mark.filterwarnings("ignore")

# About half of the NMU's seeds are solved by then, and none of the linear model's.
SPEC = """
study: sure
question: How many seeds are enough?
task: {name: simple}
models: [NMU, linear]
seeds: {until: {half_width: 0.2, max: 24, batch: 6}}
fixed: {batch_size: 16, learning_rate: 0.01}
protocol: {iterations: 4000, evaluate_every: 100, evaluation_rows: 50}
success: {threshold: 0.1}
"""
APART = SPEC.replace("half_width: 0.2", "different_from: linear")
# A study with many more rounds.
LONG = (
    SPEC.replace("0.01", "0.001")
    .replace("4000", "20000")
    .replace("half_width: 0.2, max: 24", "half_width: 0.1, max: 60")
)


def planned(text: str = SPEC) -> Plan:
    return make_plan(parse_spec(text, source="test"))


def run_here(root: Path, text: str = SPEC, tracking_uri: str | None = None, **options: object) -> tuple[Ending, str]:
    output = io.StringIO()
    chosen = Options(root=root, tracking_uri=tracking_uri, local=True, **options)  # type: ignore[arg-type]
    ending = run(planned(text), chosen, Console(file=output, width=150))
    return ending, output.getvalue()


def bits(root: Path, name: str = "sure") -> list[Result]:
    """Return a study's results, sorted by trial, with training times set to 0."""
    return builders.bits(Store(root).study(name))


def cells_file(root: Path) -> list[dict[str, str]]:
    """Return the report's cells, without seconds."""
    [file] = [path for path in write_study_report(load_results("sure", root)) if path.name == "cells.csv"]
    with file.open(newline="") as lines:
        return [
            {k: v for k, v in row.items() if "_s_" not in k and not k.endswith("_s")} for row in csv.DictReader(lines)
        ]


def seeds_by_model(root: Path, name: str = "sure") -> dict[str, list[int]]:
    seeds_of: dict[str, list[int]] = {}
    for result in bits(root, name):
        seeds_of.setdefault(result.trial.cell.model, []).append(result.trial.seed)
    return {model: sorted(seeds) for model, seeds in seeds_of.items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the study without interruption, and return its store."""
    root = tmp_path_factory.mktemp("undisturbed")
    ending, output = run_here(root)
    assert ending == Ending.FINISHED, output
    return root


def test_a_study_runs_until_each_cell_is_sure(undisturbed):
    """A cell has the first number of seeds with a narrow interval, or the maximum; the report marks undecided cells."""
    results = load_results("sure", undisturbed)
    sampling = statistics.FixedWidth(0.2, 6, 24)
    solved = {(r.trial.cell.model, r.trial.seed) for r in bits(undisturbed) if str(r.outcome) == "solved"}
    for verdict in results.verdicts:
        model, n = verdict.cell.model, verdict.seeds
        ks = {look: sum((model, seed) in solved for seed in range(look)) for look in sampling.looks}
        assert n == next((look for look in sampling.looks if sampling.is_narrow(ks[look], look)), 24)
        assert verdict.is_sure == sampling.is_narrow(ks[n], n)
        assert verdict.interval == sampling.interval(ks[n], n)
    used = {v.cell.model: v.seeds for v in results.verdicts}
    assert used["linear"] < used["NMU"]
    assert seeds_by_model(undisturbed) == {model: list(range(n)) for model, n in used.items()}
    assert {s.success_rate_by for s in results.summaries} == {"Clopper-Pearson (calibrated)"}
    page = next(path for path in write_study_report(results) if path.name == "report.html").read_text(encoding="utf-8")
    assert "cells have an interval as narrow as asked for" in page
    assert "left out" in page  # tests and trends that require a fixed number of seeds


def test_a_second_run_trains_nothing(undisturbed):
    """A second run writes no results, and the report is the same."""
    folder = Store(undisturbed).study("sure")
    assert folder.path is not None
    before = {path: path.stat().st_mtime_ns for path in (folder.path / "results").iterdir()}
    cells = cells_file(undisturbed)
    ending, output = run_here(undisturbed)
    assert ending == Ending.FINISHED
    assert "next" not in output
    assert {path: path.stat().st_mtime_ns for path in (folder.path / "results").iterdir()} == before
    assert cells_file(undisturbed) == cells


def test_pack_sizes_change_no_result(tmp_path, undisturbed):
    """Small packs request the same trials, with the same bits."""
    ending, output = run_here(tmp_path, pack_size=4)
    assert ending == Ending.FINISHED, output
    assert bits(tmp_path) == bits(undisturbed)


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts `study run` in a process of its own."""
    (tmp_path / "sure.yaml").write_text(LONG)
    with starting(tmp_path) as start:
        yield partial(start, "run", "sure.yaml", "--local", "--tracking-uri", "off")


@pytest.mark.slow
def test_a_killed_study_reaches_the_same_trials(study, tmp_path):
    """After SIGKILL in a later round, a second run reaches the undisturbed trials, bits and cells."""
    assert run_here(tmp_path / "undisturbed", LONG)[0] == Ending.FINISHED
    undisturbed = bits(tmp_path / "undisturbed")
    root = tmp_path / "studies"
    folder = Store(root).study("sure")
    # There are more results than in the first batches, so the plan has grown, and isn't finished.
    strikes = blow(tmp_path / "struck", PACK_STORED, signal.SIGKILL, count=13)
    driver = study("--pack-size", "1", **strikes)
    output, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == -signal.SIGKILL, output
    assert len(folder.done()) == 13 < len(undisturbed)

    second = study()
    output, _ = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0, output
    assert bits(root) == undisturbed
    assert cells_file(root) == cells_file(tmp_path / "undisturbed")
    assert load_results("sure", root).verdicts == load_results("sure", tmp_path / "undisturbed").verdicts


def test_trials_of_another_study_are_taken_over(tmp_path, undisturbed):
    """If another study of the store has the first seeds, only later ones are trained."""
    fixed = SPEC.replace("study: sure", "study: fixed").replace("{until: {half_width: 0.2, max: 24, batch: 6}}", "8")
    assert run_here(tmp_path, fixed)[0] == Ending.FINISHED
    ending, output = run_here(tmp_path)
    assert ending == Ending.FINISHED, output
    assert "12 trials are done already in other studies of this store" in output
    assert bits(tmp_path) == bits(undisturbed)
    trained = [r.trial.seed for r in bits(tmp_path) if r.trial.id not in {o.trial.id for o in bits(tmp_path, "fixed")}]
    assert trained
    assert min(trained) == 8


def test_all_trials_in_another_study_are_enough(tmp_path, undisturbed):
    """If another study has all requested trials, nothing is trained, and the plan still ends."""
    name = "study: sure"
    assert run_here(tmp_path, SPEC.replace(name, "study: first"))[0] == Ending.FINISHED
    ending, output = run_here(tmp_path)
    assert ending == Ending.FINISHED, output
    assert "trials are done already" in output
    assert bits(tmp_path) == bits(undisturbed)


def test_seeds_added_by_outcomes_are_tested_only_seed_by_seed(tmp_path):
    """Tests of counts are invalid with sequential seeds: without shared seeds, the reason is given."""
    fixed = SPEC.replace("study: sure", "study: fixed").replace(
        "{until: {half_width: 0.2, max: 24, batch: 6}}", "[30, 31, 32]"
    )
    run_here(tmp_path, fixed)
    run_here(tmp_path)
    for name, other in (("sure", "fixed"), ("fixed", "sure")):
        findings = [c.finding for c in load_results(name, tmp_path, compare=other).against.comparisons]
        assert {f.reason for f in findings} == {"they share no seeds, and the number of seeds depends on results"}
        assert all(f.p_value is None for f in findings)
    for name, test in (("sure", "sign test at any time"), ("fixed", "McNemar")):
        findings = [c.finding for c in load_results(name, tmp_path, compare=name).against.comparisons]
        assert {f.test for f in findings} == {test}


def test_packs_that_crash_end_the_run(tmp_path, undisturbed, monkeypatch):
    """A cell that always crashes gets `max` failed trials and no more; a second run reaches the undisturbed results."""
    use_engines(monkeypatch, {"crashing": Crashing()})
    ending, output = run_here(tmp_path, keep_going=True)
    assert ending == Ending.FAILURES
    assert "no NMU today" in output
    results = load_results("sure", tmp_path)
    assert (results.summaries[0].failed, results.summaries[0].ended) == (24, 0)
    assert results.summaries[1].complete
    assert not results.verdicts[0].is_sure

    use_engines(monkeypatch, ENGINES)
    ending, output = run_here(tmp_path)
    assert ending == Ending.FINISHED, output
    assert load_results("sure", tmp_path).verdicts == load_results("sure", undisturbed).verdicts


def test_mlflow_has_one_run_a_trial(tmp_path, uri):
    """Over all rounds, each trial is published exactly once."""
    ending, output = run_here(tmp_path, tracking_uri=uri)
    assert ending == Ending.FINISHED, output
    done = {result.trial.id for result in bits(tmp_path)}
    assert published(uri, "sure") == done
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("sure")
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    ids = Counter(run.data.tags[TRIAL_ID] for run in runs if TRIAL_ID in run.data.tags)
    assert ids == dict.fromkeys(done, 1)
    results = load_results("sure", tmp_path)
    assert sync(results, uri) == 0
    assert load_results("sure", tmp_path, tracking_uri=uri).verdicts == results.verdicts


def test_cells_stop_when_they_are_distinguished(tmp_path):
    """Compared with a model that never succeeds, both cells stop together, and the report has the test."""
    ending, output = run_here(tmp_path, APART)
    assert ending == Ending.FINISHED, output
    results = load_results("sure", tmp_path)
    (verdict,) = results.verdicts
    assert (verdict.is_sure, verdict.losses) == (True, 0)
    assert verdict.p_value == statistics.anytime_sign_test(verdict.wins, 0)
    assert verdict.p_value < 0.05
    assert verdict.seeds < 24
    seeds = list(range(verdict.seeds))
    assert seeds_by_model(tmp_path) == {"NMU": seeds, "linear": seeds}
    assert {s.success_rate_by for s in results.summaries} == {"anytime-valid"}
    assert "1 of 1 pairs" in (tmp_path / "sure" / "report" / "report.html").read_text(encoding="utf-8")


def shown(text: str, root: Path) -> str:
    output = io.StringIO()
    console = Console(file=output, width=150)
    console.print(preview(planned(text), Options(root=root, tracking_uri=None)))
    return output.getvalue()


def test_the_plan_shows_the_expected_seeds(tmp_path):
    """Without results, every cell is expected to need the mean over all rates; nothing is written."""
    sampling = statistics.FixedWidth(0.2, 6, 24)
    output = shown(SPEC, tmp_path)
    mean = -(-sampling.expected() // 1)
    assert "Expected number of seeds of each cell" in output
    assert output.count(f" {mean:.0f} ") >= 2
    assert f"2 cells with up to 24 seeds: about {2 * mean:.0f} trials of 48" in output
    assert list(tmp_path.iterdir()) == []


def test_the_plan_shows_the_remaining_seeds(tmp_path):
    """After another study's first batch, the expected number follows from a cell's own rate: far fewer near 0."""
    first = SPEC.replace("study: sure", "study: first").replace("{until: {half_width: 0.2, max: 24, batch: 6}}", "6")
    assert run_here(tmp_path, first)[0] == Ending.FINISHED
    plan = planned()
    results = Store(tmp_path).study("first").read_results()
    rows = [re.findall(r"\w+", line) for line in shown(SPEC, tmp_path).splitlines()]
    cells = {row[0]: [int(text) for text in row[1:]] for row in rows if len(row) == 4 and row[1] == "6"}
    solved = Counter(r.trial.cell.model for r in bits(tmp_path, "first") if str(r.outcome) == "solved")
    assert {model: numbers[:2] for model, numbers in cells.items()} == {"NMU": [6, solved["NMU"]], "Linear": [6, 0]}
    assert cells["Linear"][2] < cells["NMU"][2] <= 24
    extension = extended(plan, TrialTable(results))
    least = [len(extension.seeds(cell)) for cell in plan.cells]
    assert all(numbers[2] >= n for numbers, n in zip(cells.values(), least, strict=True))


def test_the_plan_of_a_finished_study_has_nothing_left(undisturbed):
    """If all cells are sure there is nothing to do, even after another study."""
    assert "nothing is left to do" in shown(SPEC, undisturbed)
    assert "nothing is left to do" in shown(SPEC.replace("study: sure", "study: other"), undisturbed)
