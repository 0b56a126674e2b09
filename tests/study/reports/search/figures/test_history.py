"""The history figure of a search: every candidate in order, the best so far, and the result on fresh seeds."""

from __future__ import annotations

import numpy as np
import pytest

from study.reports.search.figures import history
from study.reports.search.figures.axes import CANDIDATE, CONFIRMED, MOST_DOTS
from tests.study.builders import search_of


def dots(axes):
    """Return the candidates' dots from left to right, with their sizes."""
    lines = [line for line in axes.lines if line.get_color() == CANDIDATE and line.get_marker() == "o"]
    places = [(*place, line.get_markersize()) for line in lines for place in line.get_xydata()]
    places = np.array(sorted(places))
    return places[:, :2], places[:, 2]


def line(axes, style):
    """Return the only line with this draw style."""
    (steps,) = (
        candidate_line
        for candidate_line in axes.lines
        if candidate_line.get_drawstyle() == style and len(candidate_line.get_xdata()) > 2
    )
    return np.asarray(steps.get_xdata()), np.asarray(steps.get_ydata())


def test_each_candidate_is_a_dot_whose_size_grows_with_its_seeds():
    """A dot is at the candidate's number and value; more seeds make it larger."""
    search, rows = search_of()
    (axes,) = history.plot(search, rows).figure.axes
    places, sizes = dots(axes)
    assert places == pytest.approx(np.array([(c.number, c.values[0]) for c in search.candidates]))
    seeds = np.array([c.seeds for c in search.candidates])
    assert all(len(set(sizes[seeds == count])) == 1 for count in (5, 15, 40))
    assert sizes[seeds == 5][0] < sizes[seeds == 15][0] < sizes[seeds == 40][0]
    labels = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert {"5 seeds", "15 seeds", "40 seeds"} <= set(labels)


@pytest.mark.parametrize(("name", "best"), [("success_rate", np.maximum), ("time_to_success", np.minimum)])
def test_the_line_is_the_best_so_far(name, best):
    """The line follows the maximum of a maximised objective, and the minimum of a minimised one."""
    search, rows = search_of([name])
    (axes,) = history.plot(search, rows).figure.axes
    values = best.accumulate([c.values[0] for c in search.candidates])
    unit = 1000 if name == "time_to_success" else 1
    _, best = line(axes, "steps-post")
    assert best == pytest.approx(values / unit)


def test_the_winner_has_its_fresh_rate_with_its_interval():
    """The diamond is at the rate of fresh seeds, 90 of 100, its bar is the interval, and its tip has both."""
    search, rows = search_of()
    drawn = history.plot(search, rows)
    (axes,) = drawn.figure.axes
    (container,) = axes.containers
    diamond, _, (bar,) = container
    assert (diamond.get_xdata()[0], diamond.get_ydata()[0]) == (11, pytest.approx(0.9))
    assert diamond.get_color() == CONFIRMED
    assert bar.get_segments()[0][:, 1] == pytest.approx(rows.summaries[0].success_rate_interval)
    assert drawn.tips.texts[0] == "#11, fresh seeds: success rate 0.90 [0.83, 0.94]; 90 of 100 solved"
    assert any(text.startswith("#0: success rate, lower end 0.00, 5 seeds; NMU") for text in drawn.tips.texts)


def test_each_objective_has_a_panel_with_its_unit():
    """Each objective has a panel; times are in thousands of iterations, errors on a logarithmic axis."""
    search, rows = search_of(["success_rate", "time_to_success", "sparsity_error"])
    grid = history.plot(search, rows).figure.axes
    assert [axes.get_ylabel().replace("\n", " ") for axes in grid] == [
        "success rate, lower end",
        "time to success, restricted mean, upper end (10³ iterations)",
        "sparsity error, geometric mean of all trials, upper end",
    ]
    assert dots(grid[1])[0][:, 1] == pytest.approx([c.values[1] / 1000 for c in search.candidates])
    assert dots(grid[2])[0][:, 1] == pytest.approx([np.log10(c.values[2]) for c in search.candidates])
    assert [axes.get_xlabel() for axes in grid][:2] == ["", ""]


def test_without_winners_nothing_is_confirmed():
    """While the search runs, the diamond is omitted, and the caption says that nothing is confirmed."""
    search, rows = search_of(winners=())
    drawn = history.plot(search, rows)
    assert not drawn.figure.axes[0].containers
    assert "No candidate has been confirmed yet." in drawn.caption
    assert not any("confirmed" in text.get_text() for text in drawn.figure.legends[0].get_texts())


def test_there_is_nothing_without_candidates():
    """Without a search or candidates, the figure is omitted."""
    search, rows = search_of(count=0, winners=())
    assert history.plot(None, rows) is None
    assert history.plot(search, rows) is None


def test_very_many_candidates_are_thinned():
    """For a small file, only the front and some candidates are shown, and the caption gives their number."""
    search, rows = search_of(count=2 * MOST_DOTS, winners=(11,))
    drawn = history.plot(search, rows)
    places, _ = dots(drawn.figure.axes[0])
    assert len(places) == MOST_DOTS
    assert 11 in places[:, 0]
    assert f"{MOST_DOTS:,} of {2 * MOST_DOTS:,} candidates are shown" in drawn.caption
