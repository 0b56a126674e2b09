"""The main figure: its panels show rates, solved-at and metrics of the summaries."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from study.interface.declarations import Metric
from study.reports import cell_rows, groups, with_published
from study.reports.figures import panels
from study.reports.figures.dots import SECONDS, paces_differ
from study.reports.figures.scales import ARROW, BELOW, Scale
from study.reports.figures.style import render
from study.summaries.aggregate import GroupSummary
from study.summaries.metrics import MetricSummary
from study.summaries.summary import Times
from tasks.arithmetic import MODELS
from tests.study.builders import error_of, published_cell, summaries_of


def drawn(axes):
    """Collect the points of an axes' curves, by marker position."""
    points = np.concatenate(
        [line.get_xydata() for line in axes.lines if len(line.get_xdata()) and line.get_marker() != "_"]
    )
    return points[np.isfinite(points[:, 1])]


def labels_of(figure):
    """List the labels of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.fixture(name="demo_rows")
def _demo_rows(demo):
    return cell_rows(*demo)


def test_every_finished_cell_is_a_point_at_its_rate(demo_rows):
    """The first panel has each cell's rate and interval, zeros included."""
    axes = panels.plot(demo_rows).figure.axes[0]
    rates = {round(s.success_rate, 6) for s in demo_rows.summaries}
    assert 0.0 in rates
    assert rates <= {round(y, 6) for _, y in drawn(axes)}
    bars = [path.vertices[:, 1] for c in axes.collections if isinstance(c, LineCollection) for path in c.get_paths()]
    ends = {(round(low, 6), round(high, 6)) for low, high in bars}
    expected = {tuple(round(end, 6) for end in s.success_rate_interval) for s in demo_rows.summaries}
    assert expected <= ends


def test_cells_that_solved_nothing_have_no_solved_at(demo_rows):
    """The second panel has a point for each cell with a solved trial, and none for the others."""
    axes = panels.plot(demo_rows).figure.axes[1]
    expected = {round(s.solved_at_mean / 1e3, 6) for s in demo_rows.summaries if s.solved}
    assert {round(y, 6) for _, y in drawn(axes)} == expected


def test_no_line_leads_over_a_cell_that_solved_nothing():
    """If a cell in the middle has no solved-at, its neighbours aren't joined."""
    counts = ({"solved": 3}, {"unsolved": 3}, {"solved": 2, "unsolved": 1})
    made = [(published_cell("NMU", hidden_size=h), c) for h, c in zip((2, 3, 4), counts, strict=True)]
    (line,) = (
        x for x in panels.plot(cell_rows(summaries_of(*made), {})).figure.axes[1].lines if x.get_linestyle() == "-"
    )
    assert np.isnan(line.get_xydata()[:, 1]).tolist() == [False, True, False]


def test_seconds_are_shown_in_seconds(demo_rows):
    """The figure by seconds of training differs only in its times."""
    drawing = panels.plot(demo_rows, None, SECONDS)
    expected = {round(s.solved_at_s_mean, 6) for s in demo_rows.summaries if s.solved}
    assert {round(y, 6) for _, y in drawn(drawing.figure.axes[1])} == expected
    assert drawing.name == "training-time"
    assert "Seconds depend on the machine" in drawing.caption


def test_incomplete_cells_are_half_filled(demo_rows):
    """An incomplete cell has a half-filled marker in each panel, and legend and caption explain it."""
    drawing = panels.plot(demo_rows)
    lacking = [s for s in demo_rows.summaries if not s.complete]
    assert lacking
    for axes in drawing.figure.axes:
        half = [line.get_xydata()[:, 1] for line in axes.lines if line.get_fillstyle() == "left"]
        assert np.isfinite(np.concatenate(half)).sum() == len(lacking)
    assert "lacks trials" in labels_of(drawing.figure)
    assert "Half-filled" in drawing.caption


def test_points_tell_their_counts(demo_rows):
    """A tip shows the row, the value, its interval, and solved of judged trials; incomplete rows are marked."""
    texts = panels.plot(demo_rows).tips.texts
    assert "NMU, off, hidden units 2: 0.80 [0.49, 0.94], 8 of 10" in texts
    assert "NMU, off, hidden units 2: 13.5k [11.8k, 15.5k] iterations, 8 of 10" in texts
    assert any(text.startswith("NAC•, hidden units 3: 1.00") and "2 of 2 so far; 10 planned" in text for text in texts)
    assert any("sparsity error" in text for text in texts)


def test_curves_carry_symbols_and_labels(demo_rows):
    """The legend names models by symbol and schedules by label, one entry a row."""
    names = labels_of(panels.plot(demo_rows).figure)
    assert set(names[:4]) >= {"NMU, off", "NMU, late mild", "NAC•"}


def test_published_numbers_are_laid_over():
    """A published cell has the published rate beside its own, and the legend names the source."""
    made = [(published_cell(m), {"solved": k, "unsolved": 20 - k}) for m, k in (("NMU", 18), ("NAC-mul", 0))]
    summaries = summaries_of(*made)
    drawing = panels.plot(cell_rows(summaries, {}), with_published(summaries))
    rates = {round(y, 6) for _, y in drawn(drawing.figure.axes[0])}
    assert {0.9, 0.0, 0.94, 0.13} <= rates
    assert any("Madsen" in name for name in labels_of(drawing.figure))
    ticks = [label.get_text() for label in drawing.figure.axes[0].get_xticklabels()]
    assert ticks == ["NMU", "NAC•"]
    assert any(text.startswith("Madsen") and "94 of 100" in text for text in drawing.tips.texts)


@pytest.mark.parametrize(
    "changes",
    [
        [{}],
        [{"sparsity_strength": None}, {"sparsity_strength": 0.1}, {"sparsity_strength": 10.0}],
        [{"operation": "add"}, {"operation": "mul"}],
        [{"interpolation_range": ((0.0, 1.0),)}, {"interpolation_range": ((1.0, 2.0),)}],
    ],
)
def test_any_swept_values_can_be_drawn(changes):
    """A single cell, numbers with a default, and names all get an x axis, with or without results."""
    for counts in ({"solved": 3, "unsolved": 1}, {"diverged": 4}, {"failed": 1, "pending": 3}):
        summaries = summaries_of(*((published_cell("NMU", **change), counts) for change in changes))
        assert render(panels.plot(cell_rows(summaries, {})), "png")


def test_an_error_of_exactly_zero_is_shown():
    """A logarithmic axis has no zero: zero errors are marked at its foot, with a legend entry and a tip."""
    (summary,) = summaries_of((published_cell("NMU"), {"solved": 3}))
    rows = cell_rows([replace(summary, metrics=error_of(0.0))], {})
    drawing = panels.plot(rows)
    axes = drawing.figure.axes[2]
    assert [line.get_marker() for line in axes.lines] == ["v"]
    assert "sparsity error exactly 0" in labels_of(drawing.figure)
    ((_, _, (_, y, _, _)),) = [mark for mark in drawing.tips.marks if "sparsity error 0" in mark[0]]
    assert axes.get_ylim()[0] < y < axes.get_ylim()[1]


def test_errors_that_explode_leave_the_others_readable():
    """The axis ends six decades above the median: values beyond are marked there, with the true value in the tip."""
    errors = {"NMU": 1e-3, "NAU": 1e-1, "NAC-mul": 1e28}
    summaries = summaries_of(*((published_cell(model), {"solved": 3}) for model in errors))
    of_models = [replace(s, metrics=error_of(error)) for s, error in zip(summaries, errors.values(), strict=True)]
    drawing = panels.plot(cell_rows(of_models, {}))
    axes = drawing.figure.axes[2]
    assert 1e-4 < axes.get_ylim()[0] < 1e-3
    assert 1e-1 < axes.get_ylim()[1] < 1e3
    assert [list(line.get_xdata()) for line in axes.lines if line.get_marker() == ARROW] == [[2.0]]
    assert "sparsity error beyond the axis" in labels_of(drawing.figure)
    ((_, _, (_, y, _, _)),) = [mark for mark in drawing.tips.marks if "1e28" in mark[0]]
    assert 1e-1 < y < axes.get_ylim()[1]


@pytest.mark.parametrize(("exploded", "marker"), [(-1e30, BELOW["marker"]), (1e30, ARROW)])
def test_a_value_that_explodes_leaves_a_linear_axis(exploded, marker):
    """For a metric that can be negative, an extreme value is an arrow at its edge, and the caption counts it."""
    means = {2: 5.0, 3: 4.5, 4: exploded}
    metric = Metric(higher_is_better=True)
    summaries = [
        GroupSummary(values=(h,), seeds=4, is_judged=False, metrics={"reward": mean})
        for h, mean in ((h, MetricSummary(metric=metric, mean=m, count=4)) for h, m in means.items())
    ]
    drawing = panels.plot(groups(summaries, ["width"]))
    [axes] = drawing.figure.axes
    low, high = axes.get_ylim()
    assert 0 < low < 4.5 < 5 < high < 10
    assert [list(line.get_xdata()) for line in axes.lines if line.get_marker() == marker] == [[2.0]]
    assert "1 value" in drawing.caption
    assert "reward beyond the axis" in labels_of(drawing.figure)
    ((_, _, (_, y, _, _)),) = [mark for mark in drawing.tips.marks if "e30" in mark[0]]
    assert low < y < high


def test_curves_on_one_another_are_named():
    """Three of four models have equal rates at all sizes: a text in the panel counts and names them."""
    counts = {"NMU": 3, "NAU": 3, "NALU": 3, "linear": 1}
    made = [
        (published_cell(model, hidden_size=h), {"solved": n, "unsolved": 4 - n})
        for model, n in counts.items()
        for h in (2, 3, 4)
    ]
    axes = panels.plot(cell_rows(summaries_of(*made), {})).figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["3 rows: NMU, NAU, NALU"]
    apart = [(cell, {"solved": i % 4, "unsolved": 4 - i % 4}) for i, (cell, _) in enumerate(made[:6])]
    assert not panels.plot(cell_rows(summaries_of(*apart), {})).figure.axes[0].texts


@pytest.mark.parametrize(
    ("pace", "noise", "differ"), [(1.0, 0.05, False), (1.05, 0.01, False), (1.3, 0.6, False), (2.0, 0.05, True)]
)
def test_seconds_need_a_figure_only_where_rows_differ_in_pace(pace, noise, differ):
    """Rows with nearly equal seconds per iteration have the same curves in seconds as in iterations."""
    rng = np.random.default_rng(0)
    summaries = []
    for row, factor in enumerate((1.0, pace)):
        at, factors = rng.uniform(100, 900, 200), factor * rng.uniform(1 - noise, 1 + noise, 200)
        times = Times(iterations=at, seconds=at * factors / 1000, solved=np.full(200, True))
        summaries.append(GroupSummary(values=(row,), seeds=200, solved=200, success_rate=1.0, times=times))
    assert paces_differ(groups(summaries, ["width"])) is differ


@pytest.mark.parametrize("errors", [(0.1, 0.1), (0.01, math.nextafter(0.01, 1))])
def test_errors_that_are_all_equal_are_drawn(errors):
    """Equal errors, also up to the last bit of a mean, are drawn without warnings, with room on both sides."""
    summaries = [
        GroupSummary(
            values=("NMU", h), seeds=4, solved=4, success_rate=1.0, solved_at_mean=9.0, metrics=error_of(error)
        )
        for h, error in enumerate(errors, start=2)
    ]
    axes = panels.plot(groups(summaries, ["model", "hidden_size"])).figure.axes[2]
    low, high = axes.get_ylim()
    assert low < min(errors) <= max(errors) < high
    assert axes.get_yscale() == "log"


def test_an_interval_that_is_cut_is_reported():
    """An interval far beyond all values is clipped, so it doesn't flatten them, and the caption says so."""
    (summary,) = summaries_of((published_cell("NMU"), {"solved": 3}))
    wide = replace(summary, solved_at_interval=(1000.0, 1e7))
    for rows, is_cut in ((cell_rows([summary], {}), False), (cell_rows([wide], {}), True)):
        drawing = panels.plot(rows)
        assert ("continues beyond it" in drawing.caption) == is_cut
        assert drawing.figure.axes[1].get_ylim()[1] < 30


def test_only_the_first_of_many_rows_are_drawn():
    """A figure has at most 12 facets and 600 tips; the caption gives the number of omitted rows."""
    rates = [0.001 * i for i in range(1, 27)]
    made = [
        (published_cell(m, hidden_size=h, learning_rate=lr), {"solved": 1, "unsolved": 1})
        for m in ("NMU", "NAC-mul", "NALU", "NAU", "linear")
        for h in (2, 3)
        for lr in rates
    ]
    rows = cell_rows(summaries_of(*made), {})
    drawing = panels.plot(rows)
    assert len(drawing.figure.axes) <= 3 * 12
    assert len(drawing.tips.marks) <= 600
    names = {mark[0].split(":")[0] for mark in drawing.tips.marks}
    assert f"The first {len(names)} of {len(made)} rows are shown." in drawing.caption or len(names) == len(made)


def test_only_the_first_of_many_names_are_drawn():
    """Of two hundred methods that differ only in their names, twenty have a place on the axis."""
    summaries = [
        GroupSummary(values=(f"method {i}",), seeds=4, solved=2, unsolved=2, success_rate=0.5) for i in range(200)
    ]
    drawing = panels.plot(groups(summaries, ["method"]))
    assert len(drawing.figure.axes[0].get_xticks()) == 20
    assert "The first 20 of 200 rows are shown." in drawing.caption


def test_more_models_than_colours_still_differ():
    """No two curves of a figure look alike, even if colours repeat and no line joins the points."""
    models = list(MODELS)[:12]
    made = [(published_cell(m, operation=o), {"solved": 1, "unsolved": 1}) for m in models for o in ("add", "mul")]
    axes = panels.plot(cell_rows(summaries_of(*made), {})).figure.axes[0]
    looks = {(line.get_color(), line.get_marker()) for line in axes.lines if line.get_marker() != "_"}
    assert len(looks) == len(models)


def test_names_of_coinciding_curves_do_not_overlap():
    """If two names would overlap, only the first is written."""
    solved = {"NMU": 8, "NAU": 8, "NALU": 9, "linear": 9}
    made = [
        (published_cell(model, hidden_size=size), {"solved": count, "unsolved": 20 - count})
        for model, count in solved.items()
        for size in (2, 3, 4)
    ]
    figure = panels.plot(cell_rows(summaries_of(*made), {})).figure
    figure.canvas.draw()
    axes = figure.axes[0]
    texts = [text for text in axes.texts if "rows" in text.get_text()]
    assert [text.get_text() for text in texts] == ["2 rows: NMU, NAU"]
    box = texts[0].get_window_extent()
    assert axes.bbox.x0 <= box.x0
    assert box.x1 <= axes.bbox.x1


def test_unknown_values_are_not_counted_as_beyond_the_axis():
    """The caption's number of arrows is that of the values beyond the limits: NaN has none."""
    points = [(2.0, None), (-1.0, None), (math.nan, None), (0.5, None)]
    assert Scale("linear", points, ends=(0.0, 1.0)).clipped == 2
