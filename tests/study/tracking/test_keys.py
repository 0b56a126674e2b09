"""Valid names are unchanged in MLflow; others are decodable, and all keys are unique."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param_name, _validate_tag_name

from study.arrow import metric_columns, results_table
from study.plugins.families import family_kinds
from study.records import Cell, Curve, Outcome, Result, Trial
from study.tracking import keys, load, rows, sync
from study.tracking.keys import key_of, keys_of, name_of
from tests.study.tracking.made import Made, runs_of

pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = st.text(min_size=1, max_size=8) | st.text("aAäÄα_x/.@:#405E ", min_size=1, max_size=8)


@pytest.mark.parametrize("name", ["α", "Δ", "ä", "ß/loss", "学习率", "val loss", "lr:2", "a.b", "λ", "x_1", "acc-1"])
def test_names_that_mlflow_accepts_are_kept(name: str) -> None:
    """Names of letters of any script, and of signs that MLflow allows, are kept."""
    assert key_of(name) == name


@given(NAMES)
def test_mlflow_accepts_every_key(name: str) -> None:
    """Every name becomes a key that MLflow accepts, and the key can be decoded."""
    for check in (_validate_metric_name, _validate_param_name, _validate_tag_name):
        check(key_of(name))
    assert name_of(key_of(name)) == name


@given(st.lists(NAMES, unique=True, max_size=8))
def test_no_two_names_have_one_key(names: list[str]) -> None:
    """Keys of different names differ, even on a database that ignores case or accents."""
    unique_keys = keys_of(names, ["seed"])
    assert len({keys._folded(key) for key in (*unique_keys.values(), "seed")}) == len(names) + 1


def test_the_built_in_names_are_keys_themselves() -> None:
    """Built-in names are their own keys, in both the present and the earlier encoding."""
    for names in (family_kinds(), metric_columns()):
        assert keys_of(names, ()) == keys_of(names, (), 1) == {name: name for name in names}


VALUES: dict[str, Any] = {"α": 0.1, "β": 0.2, "plain": 3, "text@": "y" * 7000}
METRICS = {"Δ": 1.5, "ε": 2.5, "acc@1": 0.5, "acc#1": 0.9}


def result(seed: int) -> Result:
    trial = Trial(Cell("function", "mine:train", VALUES), seed)
    return Result(trial=trial, outcome=Outcome.FINISHED, metrics=METRICS, iterations=2, engine="function", device="cpu")


def curve(seed: int) -> Curve:
    steps = np.array([1, 2])
    return Curve(result(seed).trial.id, steps, {name: steps * value for name, value in METRICS.items()})


def test_greek_names_are_published_unchanged(uri: str) -> None:
    """Greek parameters and metrics are kept, and names that MLflow refuses stay distinct."""
    sync(uri, "demo", Made([result(0)], [curve(0)]))
    (run,) = runs_of(uri)
    assert {"α", "β", "plain"} <= run.data.params.keys()
    assert {"Δ", "ε", "acc_x40_1", "acc_x23_1", "curve/Δ"} <= run.data.metrics.keys()


def test_runs_of_the_earlier_spelling_are_found(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with keys of the earlier encoding are read back exactly; new trials have the new keys, and no duplicates."""
    with monkeypatch.context() as before:  # keys as version 1 wrote them
        before.setattr(rows._Names.__init__, "__defaults__", (1,))
        assert sync(uri, "demo", Made([result(0)], [curve(0)])) == 1
    (old,) = runs_of(uri)
    assert {"_", "_.2"} <= old.data.params.keys()
    assert "spelling" not in old.data.tags["study.kinds"]
    packs = Made([result(0), result(1)], [curve(0), curve(1)])
    assert sync(uri, "demo", packs) == 1
    assert {run.info.run_id for run in runs_of(uri)} > {old.info.run_id}
    assert len(runs_of(uri)) == 2
    assert sync(uri, "demo", packs) == 0
    table, curves = load(uri, "demo")
    expected = results_table([result(0), result(1)])
    order = [("cell_id", "ascending"), ("seed", "ascending")]
    names = sorted(expected.column_names)
    assert table.select(names).equals(expected.sort_by(order).select(names))
    assert [set(trial_curve.metrics) for trial_curve in curves] == [set(METRICS)] * 2
