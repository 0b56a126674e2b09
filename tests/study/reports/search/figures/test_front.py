"""The Pareto front of the search, with results on fresh seeds set apart."""

from __future__ import annotations

import numpy as np
import pytest

from study.reports.search.figures import front
from study.reports.search.figures.axes import CANDIDATE
from tests.study.builders import search_of

BOTH = ["success_rate", "time_to_success"]


def test_candidates_stand_at_their_first_two_values():
    """The success rate is horizontal, the time vertical in thousands of iterations."""
    search, rows = search_of(BOTH)
    (axes,) = front.plot(search, rows).figure.axes
    sizes = [line for line in axes.lines if line.get_color() == CANDIDATE and line.get_linestyle() == "None"]
    places = np.concatenate([line.get_xydata() for line in sizes])
    expected = np.array([(c.values[0], c.values[1] / 1000) for c in search.candidates])
    assert sorted(map(tuple, places)) == [pytest.approx(place) for place in sorted(map(tuple, expected))]
    assert axes.get_xlabel() == "success rate, lower end"
    assert "10³ iterations" in axes.get_ylabel()


def test_the_front_is_joined():
    """A line joins the candidates of the front in the order of the first objective."""
    search, rows = search_of(BOTH, winners=(11, 6, 10))
    (axes,) = front.plot(search, rows).figure.axes
    joined = sorted(search.candidates[n].values[0] for n in (11, 6, 10))
    assert any(list(line.get_xdata()) == joined and line.get_linestyle() == "-" for line in axes.lines)


def test_confirmed_candidates_have_both_intervals():
    """A diamond is at the result on fresh seeds, with a bar along each axis, and dashes to the search's value."""
    search, rows = search_of(BOTH, winners=(11, 6))
    drawn = front.plot(search, rows)
    (axes,) = drawn.figure.axes
    assert len(axes.containers) == 2
    summary = rows.summaries[0]
    diamond, _, (across, up) = axes.containers[0]
    assert diamond.get_xdata()[0] == summary.success_rate
    assert diamond.get_ydata()[0] == pytest.approx(summary.time_to_success_mean / 1000)
    assert across.get_segments()[0][:, 0] == pytest.approx(summary.success_rate_interval)
    ends = [end / 1000 for end in summary.time_to_success_interval]
    assert up.get_segments()[0][:, 1] == pytest.approx(ends)
    assert drawn.tips.texts[0].startswith(
        "#11, fresh seeds: success rate 0.90 [0.83, 0.94], iterations to success, mean "
    )


def test_a_third_objective_is_reported_and_nothing_is_joined():
    """With three objectives the front isn't joined by a line, and the caption names the third objective."""
    search, rows = search_of([*BOTH, "sparsity_error"], winners=(11, 6, 10))
    drawn = front.plot(search, rows)
    assert "sparsity error, geometric mean of all trials, upper end" in drawn.caption
    front_lines = [line for line in drawn.figure.axes[0].lines if len(line.get_xdata()) == 3]
    assert [line.get_linestyle() for line in front_lines] == ["None"]


def test_without_winners_the_front_is_the_searchs_own():
    """While the search runs, diamonds are omitted, and the caption gives the reason."""
    search, rows = search_of(BOTH, winners=())
    drawn = front.plot(search, rows)
    assert not drawn.figure.axes[0].containers
    assert "No candidate has been confirmed yet." in drawn.caption


def test_a_front_needs_two_objectives_and_candidates():
    """With fewer than two objectives, or without candidates, the figure is omitted."""
    search, rows = search_of()
    assert front.plot(search, rows) is None
    assert front.plot(None, rows) is None
    assert front.plot(*search_of(BOTH, count=0, winners=())) is None
