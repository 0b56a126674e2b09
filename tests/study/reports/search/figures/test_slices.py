"""The slices figure of a search: candidates by each searched parameter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from study.reports.figures.style import render
from study.reports.search.figures import slices
from study.summaries.search import Parameter
from tests.study.builders import search_of


def dots(axes):
    """Return the candidates' dots with their opacity."""
    (drawn,) = axes.collections
    return np.asarray(drawn.get_offsets()), drawn.get_facecolor()[:, 3]


def panels(drawn):
    """Return the panels by the title of their x axis."""
    return {axes.get_xlabel(): axes for axes in drawn.figure.axes}


def test_each_parameter_has_a_panel_with_its_own_axis():
    """Axes are to scale, logarithmic for factors, with titles and units."""
    search, rows = search_of()
    grid = panels(slices.plot(search, rows))
    assert list(grid) == ["model", "learning rate", "λ end (iterations)", "NMU: λ̂"]
    places, _ = dots(grid["learning rate"])
    assert places[:, 0] == pytest.approx([np.log10(c.params["learning_rate"]) for c in search.candidates])
    assert places[:, 1] == pytest.approx([c.values[0] for c in search.candidates])
    places, _ = dots(grid["λ end (iterations)"])
    assert places[:, 0] == pytest.approx([c.params["sparsity_end"] for c in search.candidates])
    ticks = [label.get_text() for label in grid["learning rate"].get_xticklabels()]
    assert ticks == ["10⁻⁴", "0.001", "0.01", "0.1"]


def test_conditional_parameters_show_only_their_candidates():
    """A model's own range has only that model's candidates, and the caption says so."""
    search, rows = search_of()
    drawn = slices.plot(search, rows)
    having = [c for c in search.candidates if "NMU.sparsity_strength" in c.params]
    places, _ = dots(panels(drawn)["NMU: λ̂"])
    assert 0 < len(having) == len(places) < len(search.candidates)
    assert "A parameter that only some candidates have is shown for those." in drawn.caption


def test_choices_are_names_and_their_dots_are_spread():
    """Each name has a place; dots are less than half a place from it, no two at one x."""
    search, rows = search_of()
    axes = panels(slices.plot(search, rows))["model"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["NMU", "NAC•"]
    places, _ = dots(axes)
    names = np.array([("NMU", "NAC-mul").index(c.params["model"]) for c in search.candidates])
    assert np.abs(places[:, 0] - names).max() < 0.3
    assert len(set(places[:, 0])) == len(search.candidates)


def test_several_objectives_have_their_rows():
    """Each objective repeats the panels with its own y axis; of too many parameters the most important are shown."""
    search, rows = search_of(["success_rate", "time_to_success", "sparsity_error"])
    drawn = slices.plot(search, rows)
    assert len(drawn.figure.axes) == 12
    assert [axes.get_ylabel() != "" for axes in drawn.figure.axes] == [True, False, False, False] * 3
    more = tuple(Parameter(f"p{i}", f"p{i}", low=0, high=1) for i in range(3))
    many = tuple(replace(c, round=0, params=c.params | {p.name: 0.5 for p in more}, seeds=5) for c in search.candidates)
    search, rows = search_of(
        ["success_rate", "time_to_success", "sparsity_error"], parameters=(*more, *search.parameters), candidates=many
    )
    drawn = slices.plot(search, rows)
    assert [axes.get_xlabel() for axes in drawn.figure.axes][:4] == [
        "model", "learning rate", "λ end (iterations)", "NMU: λ̂",
    ]  # fmt: skip
    assert "The first 4 of 7 parameters are shown." in drawn.caption


def test_there_is_nothing_without_candidates():
    """Without a search or candidates, the figure is omitted."""
    search, rows = search_of(count=0, winners=())
    assert slices.plot(None, rows) is None
    assert slices.plot(search, rows) is None


def test_one_candidate_is_enough():
    """A search with a single, confirmed candidate is drawn."""
    assert render(slices.plot(*search_of(count=1, winners=(0,))), "svg")
