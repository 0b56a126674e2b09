"""Heat maps: a field shows a row; its colour is the rate, its text the count."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from study.interface.declarations import Metric
from study.reports import cell_rows, groups
from study.reports.figures import heat_map
from study.reports.figures.style import INK, PAPER
from study.summaries.aggregate import GroupSummary
from study.summaries.metrics import MetricSummary
from tests.study.builders import published_cell, summaries_of


def fields(axes):
    """Return the colour of each field, by x and y."""
    return {
        tuple(square[:4].mean(axis=0).round(6)): patch.get_facecolor()
        for patch in axes.patches
        for square in patch.get_path().vertices.reshape(-1, 5, 2)
    }


def texts(axes):
    """Return the text of each field, by x and y."""
    return {text.get_position(): text.get_text() for text in axes.texts}


def group(values, solved, unsolved=0, **more):
    """Make a row with a number of trials."""
    finished = solved + unsolved
    rate = {"success_rate": solved / finished, "success_rate_interval": (0.0, 1.0)} if finished else {}
    counted = {"seeds": finished, "solved": solved, "unsolved": unsolved}
    return GroupSummary(values=values, **counted | rate | more)


def test_fields_are_the_rows():
    """Each field has its row's rate as colour and count as text; a missing combination has neither."""
    rows = [group((a, b), 2 * a + b, 10 - 2 * a - b) for a in (1, 2, 3) for b in (0.1, 2.0) if (a, b) != (2, 2.0)]
    drawn = heat_map.plot(groups(rows, ["a", "b"]))
    axes = drawn.figure.axes[0]
    assert "A missing field" in drawn.caption
    places = {(x, y): (a, b) for x, a in enumerate((1, 2, 3)) for y, b in enumerate((0.1, 2.0))}
    by_values = {g.values: g for g in rows}
    assert set(fields(axes)) == {place for place, values in places.items() if values in by_values}
    for place, colour in fields(axes).items():
        rate = by_values[places[place]].success_rate
        assert np.allclose(colour, mpl.colormaps["viridis"](rate), atol=0.03)
    assert texts(axes) == {
        place: f"{g.solved}/{g.judged}" for place, values in places.items() if (g := by_values.get(values))
    }


def test_the_axes_are_the_two_keys_with_most_values():
    """Levels are in order, the default first; other keys make panels named by their values."""
    counts = [
        (published_cell(m, init_variance=v, learning_rate=lr, hidden_size=h), {"solved": 3, "unsolved": 1})
        for m in ("NMU", "NAU")
        for v in (0.02, None, 0.001)
        for lr in (0.1, 0.01)
        for h in (10, 2, 4, 3)
    ]
    figure = heat_map.plot(cell_rows(summaries_of(*counts), {})).figure
    *panels, scale = figure.axes
    assert len(panels) == 4
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["default", "0.001", "0.02"]
    assert [label.get_text() for label in panels[-1].get_xticklabels()] == ["2", "3", "4", "10"]
    assert panels[-1].get_xlabel() == "hidden units"
    assert panels[0].get_title("left") == "NMU, learning rate 0.1"
    assert scale.get_ylabel() == "success rate"


@pytest.mark.parametrize("keys", [{"a": (1, 2), "b": ("x", "y")}, {"a": (1, 2), "b": (True, False)}, {"a": (1, 2)}])
def test_one_ordered_key_makes_no_heat_map(keys):
    """Names and flags have no order: the figure needs two varying numbers."""
    levels = [
        dict(zip(keys, values, strict=True))
        for values in np.stack(np.meshgrid(*([0, 1],) * len(keys))).reshape(len(keys), -1).T
    ]
    rows = [group(tuple(keys[k][i] for k, i in level.items()), 1, 1) for level in levels]
    assert heat_map.plot(groups(rows, list(keys))) is None


def test_rows_that_lack_trials_are_marked():
    """An incomplete row has a dagger, explained in the caption; a row without trials has no colour."""
    rows = [group((a, b), 1, 1) for a in (1, 2) for b in (1, 2)]
    rows[0] = group((1, 1), 1, 1, seeds=5, pending=3)
    rows[1] = group((1, 2), 0, 0, seeds=5, pending=5)
    drawn = heat_map.plot(groups(rows, ["a", "b"]))
    axes = drawn.figure.axes[0]
    assert texts(axes) == {(0, 0): "1/2†", (0, 1): "0/0†", (1, 0): "1/2", (1, 1): "1/2"}
    assert (0, 1) not in fields(axes)
    assert "† Some trials are missing" in drawn.caption
    assert "A missing field" not in drawn.caption
    assert "a 1, b 1: 0.50 [0.00, 1.00], 1 of 2 so far; 5 planned" in drawn.tips.texts


def test_text_on_a_colour_keeps_its_own_colour():
    """A dark page swaps ink and paper but not field colours, so text on fields uses neither of them."""
    rows = [group((a, b), a + 3 * b, 8 - a - 3 * b) for a in range(3) for b in range(3)]
    axes = heat_map.plot(groups(rows, ["a", "b"])).figure.axes[0]
    assert not {text.get_color() for text in axes.texts} & {INK, PAPER}


def test_only_the_first_twelve_panels_are_drawn():
    """Thirteen methods give twelve panels; all fields show their counts, and the caption names the omission."""
    rows = [group((f"m{m}", a, b), 1, 1) for m in range(13) for a in (1, 2) for b in (1, 2)]
    drawn = heat_map.plot(groups(rows, ["model", "a", "b"]))
    assert len(drawn.figure.axes) == 12 + 1
    assert len(drawn.tips.marks) == 48
    assert "The first 12 of 13 panels are shown." in drawn.caption


def test_fields_too_small_for_numbers_have_none():
    """On a grid of 60 by 60 only the colours remain; the caption refers to the table for the numbers."""
    rows = [group((a, b), a % 2, 1 - a % 2) for a in range(60) for b in range(60)]
    drawn = heat_map.plot(groups(rows, ["a", "b"]))
    axes = drawn.figure.axes[0]
    assert len(fields(axes)) == 3600
    assert not axes.texts
    assert "in the table" in drawn.caption
    assert len(drawn.tips.marks) <= 600
    assert len(axes.get_xticks()) < 40


def test_a_mean_that_explodes_leaves_the_colours_of_the_others():
    """The scale ends at the other means; the field has the last colour and its number, and the caption counts it."""
    metric = Metric(low=0)
    means = {(a, b): 1e30 if (a, b) == (3, 2) else float(a + b) for a in (1, 2, 3) for b in (1, 2)}
    rows = [
        GroupSummary(values=key, seeds=3, is_judged=False, metrics={"m": metric_summary})
        for key, metric_summary in (
            (key, MetricSummary(metric=metric, mean=mean, count=3)) for key, mean in means.items()
        )
    ]
    drawn = heat_map.plot(groups(rows, ["a", "b"]))
    panel, scale = drawn.figure.axes
    assert scale.get_ylim() == (2.0, 4.0)
    assert texts(panel)[2, 1] == "1e30"
    assert len(set(fields(panel).values())) == 3
    assert "1 value" in drawn.caption
