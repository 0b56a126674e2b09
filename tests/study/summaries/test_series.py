"""Curves of rows: limited in each panel, with every row in one curve."""

from __future__ import annotations

from study.arrow import results_table
from study.interface.declarations import Metric
from study.records import Cell, Outcome, Result, Trial
from study.reports import cell_rows, chart_series
from study.reports.figures import panels
from study.summaries import series
from study.summaries.summary import WILSON
from tests.study.builders import published_cell, summaries_of, summarised


def test_many_hyperparameters_become_rows_of_panels():
    """Too many curves are split into rows of panels with few curves each; every cell is in one curve."""
    counts = [
        (published_cell(model, hidden_size=h, learning_rate=lr, init_variance=v), {"solved": 3, "unsolved": 1})
        for model in ("NMU", "NALU")
        for h in (2, 3)
        for lr in (1e-3, 1e-2, 1e-1)
        for v in (None, 0.01)
    ]
    rows = cell_rows(summaries_of(*counts), {})
    curves = series.split(rows, "hidden_size")
    assert sorted(row for curve in curves for row in curve.rows) == list(range(len(counts)))
    facets = {curve.facet for curve in curves}
    assert len(facets) > 1
    for facet in facets:
        assert sum(curve.facet == facet for curve in curves) <= series.MOST_CURVES
    assert len(panels.plot(rows).figure.axes) == 3 * len(facets)


def test_chart_series_are_the_rates_against_hidden_units(demo):
    """MLflow's chart has every finished cell's rate and median once, under its curve's name."""
    summaries, labels = demo
    points = chart_series(summaries, labels)
    assert sum(chart == "success_rate" for chart, *_ in points) == len(summaries)
    assert ("success_rate", "NMU, off", 2, 0.8) in points
    assert ("solved_at_median", "NMU, off", 2, 13_500.0) in points
    assert [(chart, y) for chart, *at, y in points if at == ["NAC•", 10]] == [("success_rate", 0.0)]
    assert chart_series([], {}) == []


def test_charts_use_a_swept_axis_if_some_models_lack_hidden_units():
    """If only some cells have hidden units, as beside a user's model, the axis is another swept value."""
    counts = [
        (Cell("means:Means", model, {"subset": subset} | sizes), {"solved": 3, "unsolved": 1})
        for model, sizes in (("means:linear", {}), ("NAU", {"hidden_size": 2}))
        for subset in (2, 8)
    ]
    points = chart_series(summaries_of(*counts), {})
    assert sorted((name, place, rate) for chart, name, place, rate in points if chart == "success_rate") == [
        ("NAU", 2, 0.75), ("NAU", 8, 0.75), ("linear", 2, 0.75), ("linear", 8, 0.75)
    ]  # fmt: skip


def test_charts_without_a_criterion_show_a_metrics_mean():
    """Each cell with a finite metric has a point under its curve's name; other cells have none."""
    cells_of = [Cell("function", "lab:train", {"width": width, "depth": depth}) for depth in (1, 2) for width in (4, 8)]
    trials = [Trial(cell, seed) for cell in cells_of[:-1] for seed in range(2)]
    metrics = [{"loss": trial.cell.values["width"] + trial.seed, "wait": 1.0} for trial in trials]
    results = [
        Result(trial=trial, outcome=Outcome.FINISHED, metrics=trial_metrics)
        for trial, trial_metrics in zip(trials, metrics, strict=True)
    ]
    declared = {"loss": Metric(), "wait": Metric()}
    summaries = summarised(
        results_table(results), declared, planned=dict.fromkeys(cells_of, 2), rates=WILSON, labels={}, is_judged=False
    )
    assert chart_series(summaries) == [
        ("loss_mean", "depth 1", 4, 4.5), ("loss_mean", "depth 1", 8, 8.5), ("loss_mean", "depth 2", 4, 4.5)
    ]  # fmt: skip


def grid_of(rates):
    """Build rows of a grid of models, sizes and learning rates; `rates` returns the number of solved trials of ten."""
    points = [(m, h, lr) for m in ("NMU", "NAU") for h in (2, 3, 4, 5, 6) for lr in (0.001, 0.01, 0.1, 1.0)]
    cells = [
        (published_cell(m, hidden_size=h, learning_rate=lr), {"solved": (n := rates(m, h, lr)), "unsolved": 10 - n})
        for m, h, lr in points
    ]
    return cell_rows(summaries_of(*cells), {})


def test_keys_come_in_the_order_of_their_effect():
    """The key with the greatest effect on the rate is first, whatever its number of values."""
    rows = grid_of(lambda model, h, lr: 8 * (model == "NMU") + (lr == 0.1))
    assert series.by_effect(rows) == ["model", "learning_rate", "hidden_size"]


def test_rows_of_a_grid_of_panels_share_the_best_other_values():
    """Chosen rows span the range of the two most important keys, and have the best row's value of the third."""
    rows = grid_of(lambda model, h, lr: h + (lr == 0.1) * 3 + (model == "NMU"))
    chosen = series.panel_rows(rows, 4, 3)
    assert {rows.value(row, "model") for row in chosen} == {"NMU"}
    assert {rows.value(row, "hidden_size") for row in chosen} == {2, 3, 5, 6}
    assert {rows.value(row, "learning_rate") for row in chosen} == {0.001, 0.1, 1.0}
    assert len(chosen) == 12
    diagonal = rows.select([row for row in range(40) if rows.value(row, "model") == "NMU" and row % 4 == 0])
    assert series.panel_rows(diagonal, 4, 3) == list(range(5))


def test_rows_that_fill_no_grid_are_spread():
    """If rows don't form a grid, the chosen rows are spread over the range."""
    points = [{"hidden_size": h, "learning_rate": h / 10, "init_variance": h / 7} for h in range(1, 16)]
    cells = [(published_cell("NMU", **point), {"solved": h, "unsolved": 20 - h}) for h, point in enumerate(points)]
    chosen = series.panel_rows(cell_rows(summaries_of(*cells), {}), 4, 3)
    assert (chosen[0], chosen[-1], len(chosen)) == (0, 14, 12)
