"""Histograms of gates: every finite gate is in its bin, by its trial's outcome."""

from __future__ import annotations

import numpy as np
import pytest

from study.reports import groups
from study.reports.figures import gates
from study.reports.figures.style import render
from study.summaries.aggregate import GroupSummary
from study.summaries.trial_details import Gates

ROWS = groups([GroupSummary(values=(f"m{i}",), seeds=9) for i in range(9)], ["model"])


def gates_of(values, solved, row=0, layer="layer 1", **more):
    """Make the gates of a row and layer."""
    more = {"trials": 9, "total": 9, "validation_rows": 1000} | more
    return Gates(row=row, layer=layer, values=np.array(values, float), solved=np.array(solved, bool), **more)


def heights(axes):
    """Return bottom and top of each bin, by colour."""
    return {patch.get_facecolor(): (patch.get_data().baseline, patch.get_data().values) for patch in axes.patches}


def test_bars_are_shares_of_the_gates():
    """Solved trials are stacked below the others, in twenty bins from 0 to 1 inclusive; all bars sum to one."""
    rng = np.random.default_rng(1)
    values, solved = np.concatenate([[0.0, 1.0], rng.random(98)]), rng.random(100) < 0.4
    (axes,) = gates.plot(ROWS, [gates_of(values, solved)]).figure.axes
    (_, low), (foot, top) = heights(axes).values()
    expected = [np.histogram(values[chosen], 20, (0, 1))[0] / 100 for chosen in (solved, ~solved)]
    assert low == pytest.approx(expected[0])
    assert foot == pytest.approx(low)
    assert top - foot == pytest.approx(expected[1])
    assert (low + top - foot).sum() == pytest.approx(1)


def test_gates_without_a_number_are_counted():
    """NaN gates of diverged trials are in no bar, and the caption counts them."""
    drawing = gates.plot(ROWS, [gates_of([0.22, np.nan, 0.72], [True, False, False])])
    assert "Omitted: 1 gates" in drawing.caption
    assert drawing.tips.texts == [
        "m0, layer 1, gates from 0.20 to 0.25: 1 of 2, solved",
        "m0, layer 1, gates from 0.70 to 0.75: 1 of 2, not solved",
    ]


@pytest.mark.parametrize("is_solved", [True, False])
def test_one_gate_is_enough(is_solved):
    """A single gate of a solved or unsolved trial is drawn as one bar."""
    drawing = gates.plot(ROWS, [gates_of([0.5], [is_solved])])
    assert len(drawing.tips.marks) == 1
    assert render(drawing, "png")


def test_without_gates_there_is_no_figure():
    """Without a finite gate, the figure is omitted."""
    assert gates.plot(ROWS, []) is None
    assert gates.plot(ROWS, [gates_of([np.nan], [False])]) is None


def test_panels_are_rows_and_layers():
    """A panel for each row and layer names both; beyond twelve panels only the first are shown."""
    values = [gates_of([0.1, 0.9], [True, False], row, f"layer {n}") for row in range(9) for n in (1, 2)]
    drawing = gates.plot(ROWS, values)
    titles = [axes.get_title("left") for axes in drawing.figure.axes]
    assert titles[:3] == ["m0, layer 1", "m0, layer 2", "m1, layer 1"]
    assert len(titles) == 12
    assert "The first 12 of 18 panels are shown." in drawing.caption
    assert {text.get_text() for text in drawing.figure.legends[0].get_texts()} == {"solved", "not solved"}


def test_the_caption_shows_the_part_drawn():
    """The caption has the number of cells, of trials of each, and of rows averaged for a gate."""
    part = gates.plot(ROWS, [gates_of([0.5], [True], row, trials=50, total=1000) for row in (0, 0, 4)]).caption
    assert "2 of 9 groups are shown." in part
    assert "at least 50 of 1,000." in part
    assert "the first 1,000 validation rows" in part
    caption = gates.plot(ROWS, [gates_of([0.5], [True], row) for row in range(9)]).caption
    assert "are shown" not in caption
    assert "a sample of their trials" not in caption
