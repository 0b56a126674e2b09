"""Figures of learning curves: values are drawn unchanged, and diverged ones leave the panel."""

from __future__ import annotations

import numpy as np
import pytest

from study.interface.declarations import Metric
from study.reports import groups
from study.reports.figures import learning_curves
from study.reports.figures.scales import ARROW
from study.reports.figures.style import INK, PALETTE, render
from study.summaries.aggregate import GroupSummary
from study.summaries.learning import LearningCurve
from tasks.arithmetic import ArithmeticTask

TEST, VALIDATION = PALETTE[0], PALETTE[1]
METRICS = ArithmeticTask.metrics


def rows_of(count):
    """Make rows for learning curves."""
    return groups([GroupSummary(values=(f"m{i}",), seeds=9) for i in range(count)], ["model"])


def curve(row=0, test=(1e2, 1e-1, 1e-6), threshold=1e-5, **more):
    """Make a curve with quantiles of 1 to 5 times the given values; validation is a tenth of that."""
    values = np.outer(np.arange(1, 6), np.asarray(test, float))
    quantiles = {"test_mse": values, "validation_mse": values / 10, "sparsity_error": np.zeros_like(values)}
    more = {"trials": 9, "total": 9} | more
    iteration = np.arange(len(test)) * 1000
    return LearningCurve(row=row, iteration=iteration, quantiles=quantiles, threshold=threshold, **more)


def line(axes, colour):
    """Return the points of the line with a colour."""
    (points,) = (line.get_xydata() for line in axes.lines if line.get_color() == colour)
    return points


def test_lines_are_medians_and_bands_the_quantiles():
    """Medians, bands and the threshold are at the curve's values."""
    (axes,) = learning_curves.plot(rows_of(1), [curve()], METRICS).figure.axes
    assert axes.get_yscale() == "log"
    assert line(axes, TEST)[:, 0].tolist() == [0, 1, 2]
    assert line(axes, TEST)[:, 1] == pytest.approx([3e2, 3e-1, 3e-6])
    assert line(axes, VALIDATION)[:, 1] == pytest.approx([3e1, 3e-2, 3e-7])
    assert line(axes, INK)[:, 1].tolist() == [1e-5, 1e-5]
    for band, (low, high) in zip(axes.collections, ((1, 5), (2, 4)), strict=True):
        corners = {tuple(v) for v in band.get_paths()[0].vertices.round(12)}
        assert {(x, round(f * y, 12)) for x, y in enumerate((1e2, 1e-1, 1e-6)) for f in (low, high)} <= corners


def test_where_half_have_diverged_the_line_ends():
    """An infinite median isn't drawn, its band leaves the panel, and panel and caption give the reason."""
    test = np.array([[1.0, 1, 1], [2, 2, 2], [3, 3, np.inf], [4, np.inf, np.inf], [5, np.inf, np.inf]])
    complete = curve()
    quantiles = {**complete.quantiles, "test_mse": test}
    broken = LearningCurve(**{**vars(complete), "quantiles": quantiles})
    drawing = learning_curves.plot(rows_of(1), [broken], METRICS)
    (axes,) = drawing.figure.axes
    assert np.isnan(line(axes, TEST)[:, 1]).tolist() == [False, False, True]
    top = axes.get_ylim()[1]
    assert np.isfinite(top)
    assert axes.collections[0].get_paths()[0].vertices[:, 1].max() > top
    assert [text.get_text() for text in axes.texts] == ["half or more have diverged"]
    assert "diverged" in drawing.caption
    assert any("test MSE ∞" in text for text in drawing.tips.texts)


def test_rows_that_all_diverged_are_drawn():
    """A panel without any finite value says so."""
    drawing = learning_curves.plot(rows_of(1), [curve(test=(np.inf,) * 3), curve(test=(np.nan,) * 3)], METRICS)
    assert [axes.texts[0].get_text() for axes in drawing.figure.axes] == ["all have diverged"] * 2
    assert render(drawing, "png")


def test_errors_of_zero_are_at_the_foot():
    """A logarithmic axis has no zero: the line runs along the axis' foot, and the caption says so."""
    drawing = learning_curves.plot(rows_of(1), [curve(test=(1.0, 1e-9, 0.0))], METRICS)
    (axes,) = drawing.figure.axes
    assert line(axes, TEST)[-1, 1] == pytest.approx(axes.get_ylim()[0])
    assert "is exactly 0, it is drawn at the bottom" in drawing.caption


def test_extreme_values_dont_flatten_the_other_curves():
    """A few trials at 1e30 don't stretch the axis: it fits the medians and the first errors."""
    complete = curve()
    test = complete.quantiles["test_mse"].copy()
    test[-1, 1:] = 1e30
    wild = LearningCurve(**{**vars(complete), "quantiles": {**complete.quantiles, "test_mse": test}})
    assert learning_curves.plot(rows_of(1), [wild], METRICS).figure.axes[0].get_ylim()[1] < 1e5


def test_panels_are_named_and_limited():
    """Twenty rows give twelve panels with equal axes and row names, and at most 600 tips; the caption has the rest."""
    drawing = learning_curves.plot(rows_of(20), [curve(row=i, test=(10.0**i, 1, 0.1)) for i in range(20)], METRICS)
    axes = drawing.figure.axes
    assert [panel.get_title("left") for panel in axes] == [f"m{i}" for i in range(12)]
    assert len({panel.get_ylim() for panel in axes}) == 1
    assert len(drawing.tips.marks) <= 600
    assert "12 of 20 groups are shown." in drawing.caption


def test_points_tell_quantiles_and_counts():
    """A tip shows the iteration, the median, the 90% range and the number of trials."""
    texts = learning_curves.plot(rows_of(1), [curve(trials=8, total=50)], METRICS).tips.texts
    assert texts[1] == (
        "m0, iteration 1,000: test MSE 0.3 (90% of 8 trials in [0.1, 0.5]), validation MSE 0.03, sparsity error 0"
    )


def test_a_sample_of_trials_is_reported():
    """If the curve covers only some trials, the caption gives their number."""
    assert "8 of 50" in learning_curves.plot(rows_of(1), [curve(trials=8, total=50)], METRICS).caption
    assert "a sample of their trials" not in learning_curves.plot(rows_of(1), [curve()], METRICS).caption


def test_rows_without_a_curve_are_reported():
    """The caption gives the number of rows shown, unless all are."""
    assert "1 of 3 groups are shown." in learning_curves.plot(rows_of(3), [curve(row=1)], METRICS).caption
    assert "are shown" not in learning_curves.plot(rows_of(1), [curve()], METRICS).caption


def test_without_a_threshold_there_is_no_line():
    """If trials differ in their threshold, none is drawn."""
    (axes,) = learning_curves.plot(rows_of(1), [curve(threshold=None)], METRICS).figure.axes
    assert INK not in {line.get_color() for line in axes.lines}


def test_one_evaluation_is_enough():
    """A curve with a single evaluation at iteration 0 is drawn; without a curve, the figure is omitted."""
    assert render(learning_curves.plot(rows_of(1), [curve(test=(1.0,))], METRICS), "svg")
    assert learning_curves.plot(rows_of(1), [], METRICS) is None


@pytest.mark.parametrize("missing", [None, 1])
def test_panels_of_two_axes_form_a_grid(missing):
    """Columns are values of one axis, named at the top; rows are values of the other, named at the right."""
    points = [(f"m{m}", w) for m in range(2) for w in (1, 2, 3)]
    shown = [place for place in range(6) if place != missing]
    rows = groups([GroupSummary(values=point, seeds=9) for point in points], ["model", "width"])
    drawn = learning_curves.plot(rows, [curve(row) for row in shown], METRICS)
    panels = drawn.figure.axes
    assert [axes.get_title("left") for axes in panels] == ["width 1", "width 2", "width 3", "", "", ""]
    assert [[text.get_text() for text in axes.texts] for axes in panels] == [[], [], ["m0"], [], [], ["m1"]]
    assert [place for place, axes in enumerate(panels) if axes.lines] == shown


@pytest.mark.parametrize("metric", [Metric(low=0), Metric(higher_is_better=True)], ids=["logarithmic", "linear"])
def test_a_curve_that_explodes_leaves_the_others_readable(metric):
    """The curve is an arrow in its own panel, the axis fits the other curves, and the caption counts it."""
    curves = [
        LearningCurve(
            row=row,
            trials=9,
            total=9,
            iteration=np.arange(3),
            quantiles={"m": np.outer([1, 2, 3, 4, 5], factors)},
            threshold=None,
        )
        for row, factors in enumerate([(1, 0.9, 0.8), (1, 0.8, 0.7), (1, 1e20, 1e30)])
    ]
    drawn = learning_curves.plot(rows_of(3), curves, {"m": metric})
    panels = drawn.figure.axes
    assert panels[0].get_ylim()[1] < 1e6
    arrows = [[line.get_xdata()[0] for line in axes.lines if line.get_marker() == ARROW] for axes in panels]
    assert arrows == [[], [], [1]]
    assert "1 value" in drawn.caption
