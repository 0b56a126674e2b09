"""Rows become curves: few enough in each facet, every row in one of them."""

from __future__ import annotations

from study.analysis import series
from study.records import Cell
from study.report import cells, chart_series
from study.report.figures import panels
from tests.study.builders import published_cell, summaries_of


def test_many_hyperparameters_become_rows_of_panels():
    """More curves than a panel carries are split: few curves in each row, every cell in one of them."""
    counts = [
        (published_cell(model, hidden_size=h, learning_rate=lr, init_variance=v), {"solved": 3, "unsolved": 1})
        for model in ("NMU", "NALU")
        for h in (2, 3)
        for lr in (1e-3, 1e-2, 1e-1)
        for v in (None, 0.01)
    ]
    rows = cells(summaries_of(*counts), {})
    curves = series.split(rows, "hidden_size")
    assert sorted(row for curve in curves for row in curve.rows) == list(range(len(counts)))
    facets = {curve.facet for curve in curves}
    assert len(facets) > 1
    for facet in facets:
        assert sum(curve.facet == facet for curve in curves) <= series.MOST_CURVES
    assert len(panels.draw(rows).figure.axes) == 3 * len(facets)


def test_chart_series_are_the_rates_against_hidden_units(demo):
    """MLflow's chart gets every finished cell's rate and median once, under its curve's name."""
    summaries, labels = demo
    points = chart_series(summaries, labels)
    assert len(points) == len(summaries)
    assert ("NMU, off", 2, 0.8, 13_500.0) in points
    assert ("NAC•", 10, 0.0, None) in points
    assert chart_series([], {}) == []


def test_a_chart_of_models_of_which_some_have_hidden_units_is_against_what_is_swept():
    """Where only some cells have hidden units, as with a unit beside a model of one's own, these are no axis."""
    counts = [
        (Cell("means:Means", model, {"subset": subset} | sizes), {"solved": 3, "unsolved": 1})
        for model, sizes in (("means:linear", {}), ("NAU", {"hidden_size": 2}))
        for subset in (2, 8)
    ]
    points = chart_series(summaries_of(*counts), {})
    assert sorted((name, place, rate) for name, place, rate, _ in points) == [
        ("NAU", 2, 0.75), ("NAU", 8, 0.75), ("means:linear", 2, 0.75), ("means:linear", 8, 0.75)
    ]  # fmt: skip
