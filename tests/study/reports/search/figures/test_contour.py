"""The contour figure of a search: objectives over the two most important numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from study.reports.search.figures import contour
from study.summaries.search import Parameter
from tests.study.builders import search_of


def test_the_axes_are_the_two_most_important_numbers():
    """The axes are the two most important numbers, the first horizontally; names are never axes."""
    search, _ = search_of()
    drawn = contour.plot(search)
    axes = drawn.figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("learning rate", "λ end (iterations)")
    other = {"sparsity_end": 0.6, "NMU.sparsity_strength": 0.3, "learning_rate": 0.1}
    search, _ = search_of(importance={"success_rate": other})
    axes = contour.plot(search).figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("λ end (iterations)", "NMU: λ̂")


def test_a_number_that_few_have_is_left_out():
    """A parameter that fewer than half of the candidates have isn't an axis, whatever its importance."""
    search, _ = search_of(importance={"success_rate": {"NMU.sparsity_strength": 1.0}})
    assert "NMU" in contour.plot(search).title
    few = tuple(
        c if c.number % 5 == 0 else replace(c, params={k: v for k, v in c.params.items() if "." not in k})
        for c in search.candidates
    )
    drawn = contour.plot(search_of(candidates=few, importance=search.importance)[0])
    assert "NMU" not in drawn.title


def test_every_candidate_with_both_values_is_a_dot():
    """Dots are at the candidates' values, and the confirmed one is highlighted."""
    search, _ = search_of()
    axes = contour.plot(search).figure.axes[0]
    dots, confirmed = axes.lines
    assert dots.get_xdata() == pytest.approx([np.log10(c.params["learning_rate"]) for c in search.candidates])
    assert dots.get_ydata() == pytest.approx([c.params["sparsity_end"] for c in search.candidates])
    assert list(confirmed.get_xdata()) == [np.log10(search.candidates[11].params["learning_rate"])]


@pytest.mark.parametrize("name", ["success_rate", "time_to_success", "sparsity_error"])
def test_good_is_bright(name):
    """The best value has the brightest colour, for minimisation and maximisation."""
    search, _ = search_of([name])
    axes = contour.plot(search).figure.axes[0]
    (field,) = axes.collections
    ends = [np.asarray(field.cmap(field.norm(value)))[:3].sum() for value in (field.levels[0], field.levels[-1])]
    assert (ends[1] > ends[0]) == search.objectives[0].is_higher_better


def test_the_field_covers_all_candidates():
    """The coloured field is the hull of the candidates, extreme values included."""
    search, _ = search_of()
    axes = contour.plot(search).figure.axes[0]
    (field,) = axes.collections
    values = [candidate.values[0] for candidate in search.candidates]
    assert field.levels[0] < min(values)
    assert max(values) < field.levels[-1]


def test_each_of_the_first_two_objectives_has_a_panel():
    """Each objective has its own scale; of three, the caption names the omitted one."""
    search, _ = search_of(["success_rate", "time_to_success", "sparsity_error"])
    drawn = contour.plot(search)
    assert len(drawn.figure.axes) == 4  # two fields, two scales
    assert "The first 2 of 3 objectives are shown." in drawn.caption


def test_too_few_candidates_or_a_line_of_them_make_no_field():
    """Below ten candidates, with all in a line, with one value, or without two numbers nothing is drawn."""
    assert contour.plot(None) is None
    assert contour.plot(search_of(count=9, winners=())[0]) is None
    assert contour.plot(search_of(count=12, winners=())[0]) is not None
    search, _ = search_of(count=20)
    in_line = tuple(
        replace(c, params={"learning_rate": 1e-4 * 10 ** (c.number / 10), "sparsity_end": 1000 * (1 + c.number)})
        for c in search.candidates
    )
    same = tuple(replace(c, params={"learning_rate": 0.1, "sparsity_end": 9000}) for c in search.candidates)
    equal = tuple(replace(c, values=(0.5,)) for c in search.candidates)
    for candidates in (in_line, same, equal):
        assert contour.plot(search_of(candidates=candidates)[0]) is None
    names = (search.parameters[0], Parameter("learning_rate", "learning_rate", low=1e-4, high=0.1, is_log=True))
    assert contour.plot(search_of(parameters=names)[0]) is None
