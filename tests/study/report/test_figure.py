"""What the figure shows is what the summaries say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from study.report import chart_series, compare, figure, series


def drawn(axes):
    """Collect the points of an axes' curves, by marker position."""
    return np.concatenate(
        [line.get_xydata() for line in axes.lines if len(line.get_xdata()) and line.get_marker() != "_"]
    )


def test_every_finished_cell_is_a_point_at_its_rate(demo):
    """The first panel holds each cell's rate and interval, zero included."""
    summaries, labels = demo
    axes = figure.draw(summaries, labels).axes[0]
    rates = {round(s.success_rate, 6) for s in summaries}
    assert 0.0 in rates
    assert rates <= {round(y, 6) for _, y in drawn(axes)}
    bars = [
        path.vertices[:, 1]
        for c in axes.collections
        if isinstance(c, LineCollection)
        for path in c.get_paths()
    ]
    ends = {(round(low, 6), round(high, 6)) for low, high in bars}
    assert {tuple(round(end, 6) for end in s.success_rate_interval) for s in summaries} <= ends


def test_cells_that_solved_nothing_have_no_solved_at(demo):
    """The second panel has a point for each cell with a solved trial and none for the others."""
    summaries, labels = demo
    axes = figure.draw(summaries, labels).axes[1]
    expected = {round(s.solved_at_mean / 1e3, 6) for s in summaries if s.solved}
    assert {round(y, 6) for _, y in drawn(axes)} == expected


def test_incomplete_cells_are_half_filled(demo):
    """A cell that lacks trials has a half-filled marker in each panel, and the legend says so."""
    summaries, labels = demo
    drawing = figure.draw(summaries, labels)
    for axes in drawing.axes:
        assert sum(line.get_fillstyle() == "left" for line in axes.lines) == sum(
            not s.complete for s in summaries
        )
    assert "cell lacks trials" in [text.get_text() for text in drawing.legends[0].get_texts()]


def test_curves_carry_symbols_and_labels(demo):
    """The legend names models by symbol and schedules by label."""
    summaries, labels = demo
    names = [text.get_text() for text in figure.draw(summaries, labels).legends[0].get_texts()]
    assert names[:3] == ["NMU, off", "NMU, late mild", "NAC•"]


def test_published_numbers_are_laid_over(published_cell, summaries_of):
    """A published cell has the published rate drawn beside its own, and the legend names the source."""
    cells = [(published_cell(m), {"solved": k, "unsolved": 20 - k}) for m, k in (("NMU", 18), ("NAC-mul", 0))]
    summaries = summaries_of(*cells)
    drawing = figure.draw(summaries, {}, compare(summaries))
    rates = {round(y, 6) for _, y in drawn(drawing.axes[0])}
    assert {0.9, 0.0, 0.94, 0.13} <= rates
    assert any("Madsen" in text.get_text() for text in drawing.legends[0].get_texts())
    assert [label.get_text() for label in drawing.axes[0].get_xticklabels()] == ["NMU", "NAC•"]


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_figure_has_the_same_bytes(demo, kind):
    """Two drawings of the same summaries are the same file."""
    summaries, labels = demo
    first, second = (figure.render(figure.draw(summaries, labels), kind) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG" if kind == "png" else b"<?xml")


def test_many_hyperparameters_become_rows_of_panels(published_cell, summaries_of):
    """More curves than a panel carries are split: few curves in each row, every cell in one of them."""
    cells = [
        (
            published_cell(model, hidden_size=h, learning_rate=lr, init_variance=v),
            {"solved": 3, "unsolved": 1},
        )
        for model in ("NMU", "NALU")
        for h in (2, 3)
        for lr in (1e-3, 1e-2, 1e-1)
        for v in (None, 0.01)
    ]
    summaries = summaries_of(*cells)
    curves = series.split(summaries, "hidden_size", {})
    assert sum(len(curve.cells) for curve in curves) == len(summaries)
    facets = {curve.facet for curve in curves}
    assert len(facets) > 1
    for facet in facets:
        assert sum(curve.facet == facet for curve in curves) <= series.MOST_CURVES
    assert len(figure.draw(summaries, {}).axes) == 3 * len(facets)


@pytest.mark.parametrize(
    "changes",
    [
        [{}],
        [{"sparsity_strength": None}, {"sparsity_strength": 0.1}, {"sparsity_strength": 10.0}],
        [{"operation": "add"}, {"operation": "mul"}],
        [{"interpolation_range": ((0.0, 1.0),)}, {"interpolation_range": ((1.0, 2.0),)}],
    ],
)
def test_whatever_is_swept_can_be_drawn(published_cell, summaries_of, changes):
    """One cell, numbers with a default among them, and names all find an x axis, with or without results."""
    for counts in ({"solved": 3, "unsolved": 1}, {"diverged": 4}, {"failed": 1, "pending": 3}):
        summaries = summaries_of(*((published_cell("NMU", **change), counts) for change in changes))
        assert figure.render(figure.draw(summaries, {}), "png")


def test_an_error_of_exactly_zero_is_shown(published_cell, summaries_of):
    """A logarithmic axis has no zero: errors of exactly zero are marked at its foot, with a legend."""
    (summary,) = summaries_of((published_cell("NMU"), {"solved": 3}))
    drawing = figure.draw([replace(summary, sparsity_error_mean=0.0, sparsity_error_interval=None)], {})
    assert [line.get_marker() for line in drawing.axes[2].lines] == ["v"]
    assert "sparsity error exactly 0" in [text.get_text() for text in drawing.legends[0].get_texts()]


def test_chart_series_are_the_rates_against_hidden_units(demo):
    """MLflow's chart gets every finished cell's rate and median once, under its curve's name."""
    summaries, labels = demo
    points = chart_series(summaries, labels)
    assert len(points) == len(summaries)
    assert ("NMU, off", 2, 0.8, 13_500.0) in points
    assert ("NAC•", 10, 0.0, None) in points
    assert chart_series([], {}) == []
