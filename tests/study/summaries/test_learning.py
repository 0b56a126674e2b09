"""A row's learning curves are quantiles of its trials' values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.arrow import EMPTY_CURVES, curves_table
from study.records import Curve
from study.summaries.learning import QUANTILES, learning_curve

MEASURES = ("validation_mse", "test_mse", "sparsity_error")


def curve(name, values, every=100):
    """Build a trial's curve; its three measures are 1, 2 and 3 times the given values."""
    values = np.asarray(values, np.float32)
    scaled = {measure: values * np.float32(i + 1) for i, measure in enumerate(MEASURES)}
    return Curve(name, np.arange(len(values)) * every, scaled)


def by_hand(column, q):
    """Return the smallest value that at least a share q of the values doesn't exceed; NaN counts as infinity."""
    values = sorted(float("inf") if np.isnan(v) else float(v) for v in column)
    return next(v for v in values if sum(w <= v for w in values) >= q * len(values) - 1e-9)


numbers = st.floats(0, 1e6, width=32) | st.just(float("nan")) | st.just(float("inf"))


@given(st.integers(1, 9).flatmap(lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=1, max_size=8)))
def test_each_quantile_matches_its_definition(values):
    """At every evaluation, each measure's quantiles match their definition, with NaN as infinity."""
    table = curves_table(curve(str(i), row) for i, row in enumerate(values))
    learning = learning_curve(4, table)
    assert (learning.row, learning.trials, learning.total) == (4, len(values), len(values))
    assert learning.iteration.tolist() == [100 * i for i in range(len(values[0]))]
    for factor, measure in enumerate(MEASURES, start=1):
        columns = (np.asarray(values, np.float32) * np.float32(factor)).T
        expected = [[by_hand(column, q) for column in columns] for q in QUANTILES]
        assert learning.quantiles[measure].tolist() == expected


def test_a_trial_that_ended_early_keeps_its_last_value():
    """After its end, a solved trial keeps its value, and a diverged one stays infinite."""
    table = curves_table([curve("a", [9, 8, 7, 6]), curve("b", [9, 1]), curve("c", [9, 5, np.nan])])
    learning = learning_curve(0, table).quantiles["validation_mse"]
    assert learning[0].tolist() == [9, 1, 1, 1]
    assert learning[2].tolist() == [9, 5, 7, 6]
    assert learning[4].tolist() == [9, 8, np.inf, np.inf]


@pytest.mark.parametrize(("count", "most"), [(5001, 200), (200, 200), (201, 200), (7, 200), (1, 200), (50, 2)])
def test_many_evaluations_are_thinned(count, most):
    """At most a limit of evaluations is kept, nearly evenly spaced, with the first and last; values aren't averaged."""
    values = np.random.default_rng(count).random((6, count), np.float32)
    table = curves_table(curve(str(i), row) for i, row in enumerate(values))
    learning = learning_curve(0, table, most_points=most)
    evaluations = learning.iteration // 100
    assert len(evaluations) == min(count, most)
    assert (evaluations[0], evaluations[-1]) == (0, count - 1)
    assert np.ptp(np.diff(evaluations)) <= 1 if count > 2 else True
    assert learning.quantiles["validation_mse"][0].tolist() == values[:, evaluations].min(axis=0).tolist()


def test_order_and_chunks_of_the_table_have_no_effect():
    """Reordered, sliced or filtered tables give the same curve."""
    table = curves_table(curve(name, np.arange(5) + i) for i, name in enumerate("abcdef"))
    expected_curve = learning_curve(0, table.slice(2, 3))
    chunked = pa.concat_tables([table.slice(4, 1), table.slice(2, 2)])
    filtered = table.filter(pc.is_in(table["trial_id"], pa.array(["c", "d", "e"])))
    for other in (chunked, filtered):
        learning = learning_curve(0, other)
        for measure in MEASURES:
            assert learning.quantiles[measure].tolist() == expected_curve.quantiles[measure].tolist()


def test_trials_without_evaluations_are_ignored():
    """A trial with an empty curve is ignored; without trials the curve is None."""
    table = curves_table([curve("a", []), curve("b", [3.0])])
    assert learning_curve(0, table, total=9).trials == 1
    assert learning_curve(0, table, total=9).total == 9
    assert learning_curve(0, table.slice(0, 1)) is None
    assert learning_curve(0, EMPTY_CURVES) is None


def test_a_curve_that_is_torn_is_refused():
    """A curve with fewer values of a measure than evaluations is refused."""
    table = curves_table([curve("a", [3.0, 2.0])])
    torn = table.set_column(2, table.schema.field("validation_mse"), pa.array([[1.0]], pa.list_(pa.float32())))
    with pytest.raises(ValueError, match="validation_mse"):
        learning_curve(0, torn)
