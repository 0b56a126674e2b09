"""Curves of time to success: one minus Kaplan-Meier's estimate, from every observed trial."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from study.reports import cell_rows, groups
from study.reports.figures import survival
from study.reports.figures.style import INK, MARKERS, PALETTE, RULE
from study.statistics import kaplan_meier
from study.summaries.aggregate import GroupSummary
from study.summaries.summary import Times
from tests.study.builders import published_cell, summaries_of


def curves(axes, colour=None):
    """List the curves of a panel: time (in the axis' unit) and share, at each corner."""
    return [
        line.get_xydata()
        for line in axes.lines
        if line.get_marker() == "None" and (colour is None or line.get_color() == colour)
    ]


def at(curve, time):
    """Evaluate a step curve at a time: its last corner by then."""
    return curve[curve[:, 0] <= time + 1e-9][-1, 1]


def group(name, times, solved, **more):
    """Make a row whose trials were solved or censored at these iterations."""
    counted = {"seeds": len(times), "solved": sum(solved), "unsolved": len(times) - sum(solved)}
    observed = Times(iterations=np.array(times, float), seconds=np.array(times, float), solved=np.array(solved, bool))
    return GroupSummary(values=name if isinstance(name, tuple) else (name,), times=observed, **counted | more)


def test_a_curve_is_the_share_solved_by_then():
    """A curve is the share of trials solved by then; it ends at the last observed time."""
    rng = np.random.default_rng(3)
    solved = rng.random(40) < 0.6
    times = np.where(solved, rng.integers(1, 90, 40) * 1000, 90_000)
    drawing = survival.plot(groups([group("a", times, solved)], ["method"]))
    (curve,) = curves(drawing.figure.axes[0])
    for t in range(0, 91, 5):
        assert at(curve, t) == pytest.approx(np.mean(solved & (times <= t * 1000)))
    assert curve[-1, 0] == 90


def test_trials_that_end_early_count_as_kaplan_and_meier_say():
    """A trial censored midway leaves the risk set, and is marked there."""
    times, solved = [10, 20, 20, 30, 50], [True, True, False, True, False]
    axes = survival.plot(groups([group("a", times, solved)], ["method"])).figure.axes[0]
    (curve,) = curves(axes)
    expected = kaplan_meier(times, solved)
    for time, unsolved_share in zip(expected.times, expected.survival, strict=True):
        assert at(curve, time) == pytest.approx(1 - unsolved_share)
    (marks,) = (line.get_xydata() for line in axes.lines if line.get_marker() == "|")
    assert marks[:, 0].tolist() == [20, 50]


def test_the_band_is_the_pointwise_interval():
    """The band is the interval of each step up to the next."""
    times, solved = [10, 20, 20, 30, 50], [True, True, False, True, False]
    axes = survival.plot(groups([group("a", times, solved)], ["method"])).figure.axes[0]
    corners = {tuple(np.round(v, 9)) for path in axes.collections[0].get_paths() for v in path.vertices}
    expected = kaplan_meier(times, solved)
    ends = zip(expected.times, np.append(expected.times[1:], 50), expected.low, expected.high, strict=True)
    for start, end, low, high in ends:
        expected = {(t, 1 - value) for t in (start, end) for value in (low, high)}
        assert {tuple(np.round(point, 9)) for point in expected} <= corners


def test_methods_share_a_panel_for_each_size():
    """Four methods at nine sizes give nine panels of four curves, one colour a method."""
    made = [
        (published_cell(m, hidden_size=h), {"solved": 3, "unsolved": 2})
        for m in ("NMU", "NAC-mul", "NALU", "NAU")
        for h in range(2, 11)
    ]
    drawing = survival.plot(cell_rows(summaries_of(*made), {}))
    assert [axes.get_title("left") for axes in drawing.figure.axes] == [f"hidden units {h}" for h in range(2, 11)]
    for axes in drawing.figure.axes:
        assert {line.get_color() for line in axes.lines} == set(PALETTE[:4])
    legend = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert legend[:4] == ["NMU", "NAC•", "NALU", "NAU"]


def test_few_models_share_one_panel():
    """Models that differ only in their names are curves of one panel."""
    made = [(published_cell(m), {"solved": 3, "unsolved": 2}) for m in ("NMU", "NAC-mul", "NALU")]
    (axes,) = survival.plot(cell_rows(summaries_of(*made), {})).figure.axes
    assert len(curves(axes)) == 3


def test_a_lone_curve_stands_before_the_others():
    """One method at nine sizes gives nine panels, each with the other eight curves in grey."""
    made = [(published_cell("NMU", hidden_size=h), {"solved": 3, "unsolved": 2}) for h in range(2, 11)]
    drawing = survival.plot(cell_rows(summaries_of(*made), {}))
    assert len(drawing.figure.axes) == 9
    for axes in drawing.figure.axes:
        assert (len(curves(axes, RULE)), len(curves(axes, PALETTE[0]))) == (8, 1)
    assert "Grey" in drawing.caption


def test_curves_at_zero_can_all_be_seen():
    """Rows without solved trials coincide: their dashes alternate, so that none is hidden."""
    rows = [group("a", [5, 9], [True, False]), *(group(n, [9, 9], [False, False]) for n in "bcd")]
    (axes,) = survival.plot(groups(rows, ["method"])).figure.axes
    patterns = [line._unscaled_dash_pattern for line in axes.lines if line.get_marker() == "None"][1:]
    offsets = {offset % sum(dashes) for offset, dashes in patterns}
    assert len(offsets) == 3
    assert all(on * 3 == pytest.approx(on + off) for _, (on, off) in patterns)


def test_curves_have_shapes_of_their_own_also_on_top_of_each_other():
    """Curves of equal trials have different markers, as in the legend, at different places on the curve."""
    drawing = survival.plot(groups([group(n, [5, 9], [True, False]) for n in "abc"], ["method"]))
    shown = [line for line in drawing.figure.axes[0].lines if line.get_marker() in MARKERS]
    assert [line.get_marker() for line in shown] == list(MARKERS[:3])
    places = [tuple(point) for line in shown for point in line.get_xydata()]
    assert len(set(places)) == len(places) > 3
    assert all(y == (0.5 if x >= 5 else 0) for x, y in places)
    assert [line.get_marker() for line in drawing.figure.legends[0].get_lines()][:3] == list(MARKERS[:3])


def test_rows_that_are_all_solved_or_lack_trials_are_marked():
    """A curve that reaches one ends in a star, that of an incomplete row in a half-filled dot; the legend has both."""
    rows = [group("a", [5, 9], [True, True]), group("b", [5, 9], [True, False], seeds=3, pending=1)]
    drawing = survival.plot(groups(rows, ["method"]))
    (axes,) = drawing.figure.axes
    ends = {line.get_marker(): line.get_xydata()[-1].tolist() for line in axes.lines if len(line.get_xdata()) == 1}
    assert ends == {"|": [9, 0.5], "*": [9, 1], "o": [9, 0.5]}
    assert [line.get_fillstyle() for line in axes.lines if line.get_marker() == "o"][-1] == "left"
    legend = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert legend[2:] == ["all are solved", "censored", "lacks trials"]


def test_steps_tell_their_counts():
    """A tip shows the row, the time, the share, its interval and the count."""
    rows = [group("a", [5000, 9000], [True, False]), group("b", [5000, 9000], [True, False], seeds=3, pending=1)]
    texts = survival.plot(groups(rows, ["method"])).tips.texts
    expected = kaplan_meier([5, 9], [True, False])
    low, high = 1 - expected.high[0], 1 - expected.low[0]
    assert f"method a, by iteration 5,000: 0.50 [{low:.2f}, {high:.2f}], 1 of 2" in texts
    assert f"method b, by iteration 9,000: 0.50 [{low:.2f}, {high:.2f}], 1 of 2; 3 planned" in texts


@pytest.mark.parametrize(
    "rows",
    [
        [group("a", [9, 9], [False, False])],
        [replace(group("a", [9, 9], [True, False]), times=None)],
        [group("a", [9, np.nan], [True, False])],
        [group("a", [], [])],
        [group("a", [5, 9], [True, True]), group("b", [9, np.nan], [True, False])],
    ],
    ids=["nothing solved", "no times", "one time unknown", "no trials", "known only where all are solved"],
)
def test_unknown_times_have_no_figure(rows):
    """Without a solved trial, or with unknown last iterations of unsolved ones, the figure is omitted."""
    assert survival.plot(groups(rows, ["method"])) is None


def test_a_row_of_unknown_times_is_reported():
    """A row with unknown times is omitted, and the caption says so."""
    rows = [group("a", [5, 9], [True, False]), group("b", [9, np.nan], [True, False])]
    drawing = survival.plot(groups(rows, ["method"]))
    assert len(curves(drawing.figure.axes[0])) == 1
    assert "some of their times are unknown: 1 row" in drawing.caption


def test_only_the_first_twelve_panels_are_drawn():
    """Twenty questions of four methods give twelve panels and at most 600 tips; the caption gives the omission."""
    rng = np.random.default_rng(0)
    rows = [group((f"m{m}", q), rng.integers(1, 99, 60), [*[True] * 59, False]) for q in range(20) for m in range(4)]
    drawing = survival.plot(groups(rows, ["model", "hidden_size"]))
    assert len(drawing.figure.axes) == 12
    assert 300 < len(drawing.tips.marks) <= 600
    assert "The first 12 of 20 panels are shown." in drawing.caption


def test_more_methods_than_colours_still_differ():
    """Of thirty methods at two sizes 24 are drawn, each with its own colour and dash; the caption says so."""
    rows = [group((f"m{m}", size), [m + 1, 99], [True, False]) for m in range(30) for size in (2, 3)]
    drawing = survival.plot(groups(rows, ["model", "hidden_size"]))
    for axes in drawing.figure.axes:
        drawn = [line for line in axes.lines if line.get_marker() == "None"]
        assert len({(line.get_color(), str(line._unscaled_dash_pattern)) for line in drawn}) == len(drawn) == 24
    assert "The first 24 of 30 curves are shown." in drawing.caption


def test_one_trial_is_enough():
    """A single solved trial gives a curve from zero to one."""
    drawing = survival.plot(groups([group("a", [7], [True])], ["method"]))
    (curve,) = curves(drawing.figure.axes[0])
    assert (at(curve, 6.9), at(curve, 7)) == (0, 1)
    assert all(line.get_color() in (*PALETTE, INK) for line in drawing.figure.axes[0].lines)
