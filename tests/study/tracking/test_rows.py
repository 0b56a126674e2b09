"""Results of any task round-trip through an MLflow run with all bits, kinds and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.arrow import metric_columns, results_table, table_cells
from study.plugins.families import family_kinds
from study.records import Cell, Curve, Outcome, Result, Trial
from study.tracking import load, sync
from study.tracking.rows import run_result, trial_run
from tests.study.tracking.made import RESULTS, Made, runs_of

pytestmark = pytest.mark.filterwarnings("ignore")

VALUES: dict[str, Any] = {
    "width": 8,
    "rate": 1e-300,
    "x̂": 3.0,
    "X̂": 4,
    "like_a_number": "1e10",
    "empty": "",
    "lines": "a\n\0b",
    "long": "x" * 20_000,
    "layers": [1, 2.0, [None, "a"]],
    "is_plain": True,
    "nothing": None,
    "seed.": "taken",
}
METRICS = {"loss": 1 / 3, "solved": 0.5, "training_s": -1.0, "curve/loss": 2.0, "../F₁ (macro)": 1e-310, "loss ": 7.0}
CELL = Cell("function", "mine.lab:train", VALUES)


def result(seed: int = 0, **changes: Any) -> Result:
    content: dict[str, Any] = {"metrics": METRICS, "criterion": "loss < 0.5", "engine": "function", "device": "cpu"}
    return Result(trial=Trial(CELL, seed), **{"outcome": Outcome.SOLVED, "iterations": 20} | content | changes)


def curve(seed: int = 0) -> Curve:
    values = np.array([0.1, 1 / 3, np.nan])
    return Curve(
        Trial(CELL, seed).id, np.array([0, 10, 20]), {name: values * (i + 1) for i, name in enumerate(METRICS)}
    )


@given(
    values=st.dictionaries(
        st.text(min_size=1, max_size=4).filter(lambda name: name not in ("task", "model")),
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=4)
        | st.lists(st.integers() | st.text(max_size=2), max_size=2),
        max_size=5,
    ),
    metrics=st.dictionaries(st.text(min_size=1, max_size=4), st.floats(-1e300, 1e300), max_size=4),
)
def test_any_result_round_trips(values: dict[str, Any], metrics: dict[str, float]) -> None:
    """For any names and values of a function, the run has distinct keys, and returns them."""
    given_ = Result(trial=Trial(Cell("function", "mine:train", values), 5), outcome=Outcome.FINISHED, metrics=metrics)
    run = trial_run(given_, None)
    assert run_result(run.params, run.metrics, run.tags) == given_
    assert len({key.casefold() for key in run.metrics}) == len(run.metrics)


def test_a_functions_results_round_trip_through_mlflow(uri: str) -> None:
    """Names and texts that MLflow refuses are encoded, and nothing is written twice."""
    failed = result(1, outcome=Outcome.FAILED, metrics={}, criterion=None, error="ValueError: no")
    packs = Made([result(), failed], [curve()])
    assert sync(uri, "demo", packs) == 2
    assert sync(uri, "demo", packs) == 0
    table, curves = load(uri, "demo")
    expected = results_table([result(), failed])
    names = sorted(set(table.column_names))
    assert names == sorted(set(expected.column_names) - {"nothing"})
    order = [("cell_id", "ascending"), ("seed", "ascending")]
    assert table.select(names).equals(expected.sort_by(order).select(names))
    assert [cell.id for cell in table_cells(table)] == [CELL.id] * 2
    (thin,) = curves
    for name, values in curve().metrics.items():
        assert thin.metrics[name].tobytes() == values.tobytes()[: thin.metrics[name].nbytes]


def test_a_run_is_named_by_model_size_and_seed(uri: str) -> None:
    """A run of a built-in model is named by model, size and seed; a run of a function by its name and seed."""
    sync(uri, "demo", Made([result(), RESULTS[0]]))
    assert {run.info.run_name for run in runs_of(uri)} == {"train seed 0", "NMU h4 seed 1"}


def test_runs_of_the_built_in_tasks_never_change() -> None:
    """Runs of built-in tasks have the parameters, metrics and tags of earlier versions, without declarations."""
    run = trial_run(RESULTS[0], None)
    values = RESULTS[0].trial.cell.values
    assert set(run.params) == {"seed", "task", "model", *(n for n in family_kinds() if values[n] is not None)}
    numbers = {"threshold", "best_iteration", "solved_at_iteration", "trained_iterations", "training_s", "solved"}
    assert set(run.metrics) == {*metric_columns(), *numbers}
    assert set(run.tags) == {
        *("study.trial_id", "study.cell_id", "study.outcome", "study.stopped_early", "engine", "device"),
        *("study.model", "study.hidden_size", "study.seed"),
    }
