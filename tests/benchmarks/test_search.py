"""Comparisons of searches: the ridge's known rate, the seeds that a method may see, and rows measured once."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks import ridge, search, tables
from benchmarks.search import FRESH
from benchmarks.search_methods import METHODS, QUESTIONS, SEEDS_OF_A_REPETITION, Pick, Question, Task, possible
from study.console import Console
from study.driver.options import Options
from study.plan.plan import make_plan
from study.records import Trial
from study.results.load import load_results
from study.run import Ending, run
from study.search import Searching
from study.search.space import Space
from study.search.suggest import Suggestions

RIDGE = QUESTIONS["ridge"]


def recorded(question: Question, record: list[Trial]) -> Question:
    """Return a copy of a question that appends its trained trials to a list."""

    def solved(trials: Sequence[Trial]) -> dict[str, bool]:
        record.extend(trials)
        return question.solved(trials)

    return replace(question, solved=solved)


def test_the_coins_of_the_ridge_have_its_rate_and_its_optimum_is_the_highest() -> None:
    rng = np.random.default_rng(0)
    points = [ridge.BEST, *(dict(zip(ridge.BEST, rng.uniform(0.3, 0.7, 4).tolist(), strict=True)) for _ in range(5))]
    for point in points:
        heads = sum(ridge.train(seed, **point)["reached"] == 1 for seed in range(2000))
        assert binomtest(heads, 2000, ridge.success_rate(**point)).pvalue > 1e-4
    assert ridge.success_rate(**ridge.BEST) == ridge.HIGHEST
    assert all(ridge.success_rate(*values) < ridge.HIGHEST for values in rng.random((1000, 4)))


def test_coins_of_two_settings_are_independent() -> None:
    """The coins of two settings are independent."""
    first, second = ({**ridge.BEST, "width": width} for width in (0.2, 0.9))
    a, b = ([ridge.train(seed, **point)["reached"] for seed in range(3000)] for point in (first, second))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.08


@pytest.mark.parametrize("method", list(METHODS))
def test_a_method_trains_only_seeds_of_its_repetition(method: str) -> None:
    """A method trains only seeds of its repetition, and picks the same cell again."""
    if method == search.SMAC:
        pytest.importorskip("smac")
    trained: list[Trial] = []
    task = Task(recorded(RIDGE, trained), 3, 800 if method.startswith("search") else 60)
    pick = METHODS[method](task)
    assert len({trial.id for trial in trained}) == len(trained) == pick.trials == task.trials
    assert {trial.seed // SEEDS_OF_A_REPETITION for trial in trained} == {3}
    assert not {trial.seed for trial in trained} & set(FRESH)
    seeds = [trial for trial in trained if trial.cell == pick.cell]
    assert len(seeds) >= pick.seeds
    assert METHODS[method](task) == pick


def test_the_schedule_of_the_nmu_is_possible_in_every_method() -> None:
    """Drawn cells keep the order of ordered parameters."""
    spec = Task(QUESTIONS["NMU"], 1, 800).spec()
    assert spec.search is not None
    cells = list(possible(Space(spec), Suggestions(Space(spec), spec.search).ask, 30))
    assert len(cells) == 30
    assert all(cell.value("sparsity_start") < cell.value("sparsity_end") for cell in cells)


def test_rows_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with more repetitions measures only the missing ones, and the table has all."""
    calls: list[tuple[str, int]] = []

    def counted(method: str) -> Callable[[Task], Pick]:
        def pick(task: Task) -> Pick:
            calls.append((method, task.repetition))
            return METHODS[method](replace(task, trials=40))

        return pick

    few = ["random search, 20 seeds each", "Optuna's TPE on means of 5 seeds"]
    monkeypatch.setattr(search, "METHODS", {method: counted(method) for method in few})
    out, words = tmp_path / "methods.csv", ["--questions", "ridge", "--rows", str(tmp_path / "rows.csv")]
    search.main([*words, "--repetitions", "1", "--out", str(out)])
    search.main([*words, "--repetitions", "2", "--out", str(out)])
    assert sorted(calls) == sorted((method, i) for method in few for i in range(2))
    with out.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["method"] for row in rows] == [search.GRID, *(method for method in few for _ in range(2))]
    assert all(float(row["rate"]) <= ridge.HIGHEST for row in rows)
    assert tables.search_table(rows).count("\n") == 1 + 1 + len(few)
    assert out.with_name("figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(("shift", "is_clear"), [(0.0, False), (0.2, True)])
def test_the_table_distinguishes_only_different_methods(shift: float, is_clear: bool) -> None:
    """The p-value is large for a method as good as the search, and small for a better one."""
    rates = np.random.default_rng(1).uniform(0.5, 0.7, (2, 20)) + np.array([[0.0], [shift]])
    rows = [
        {"question": "q", "method": method, "trials": "800", "rate": f"{rate:.4f}", "rate_seen": "1"}
        for method, method_rates in zip((tables.SEARCH, "other"), rates, strict=True)
        for rate in method_rates
    ]
    better, p_value = tables.search_table(rows).splitlines()[-1].removesuffix(" |").split(" | ")[-2:]
    assert (p_value == "< 0.001") == is_clear
    assert (float(better.split()[0]) > 0.95) == is_clear


def test_a_search_in_memory_picks_the_winner_of_a_run(tmp_path: Path) -> None:
    text = RIDGE.file.read_text(encoding="utf-8").replace(
        "trials: 600, confirm_seeds: 200", "trials: 200, confirm_seeds: 9"
    )
    (tmp_path / "small.yaml").write_text(text.replace("success_rate,", "success_rate, candidates: 4,"))
    shutil.copy(ridge.__file__, tmp_path)
    trained: list[Trial] = []
    task = Task(recorded(replace(RIDGE, file=tmp_path / "small.yaml"), trained), 2, 209)
    spec = task.spec("TPE")
    options = Options(root=tmp_path, tracking_uri=None, local=True)
    assert run(make_plan(spec), options, Console(file=io.StringIO()), extend=Searching(None)) is Ending.FINISHED
    results, pick = load_results(spec.study, tmp_path), METHODS["search, TPE"](task)
    assert results.search is not None
    assert {candidate.cell_id for candidate in results.search.candidates} == {trial.cell.id for trial in trained}
    winner = results.summaries[0]
    assert (pick.cell.id, pick.seen, pick.seeds) == (winner.cell_id, winner.success_rate, 9)
