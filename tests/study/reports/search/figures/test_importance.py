"""The importance figure of a search: a bar for each parameter and objective, the most important first."""

from __future__ import annotations

import pytest

from study.reports.search.figures import importance
from tests.study.builders import search_of


def test_bars_are_the_shares_the_most_important_first():
    """The length of each bar is its share, also written at its end."""
    search, _ = search_of()
    drawn = importance.plot(search)
    (axes,) = drawn.figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["learning rate", "λ end", "NMU: λ̂", "model"]
    assert [bar.get_width() for bar in axes.patches] == [0.5, 0.3, 0.15, 0.05]
    assert [text.get_text() for text in axes.texts] == ["0.50", "0.30", "0.15", "0.05"]
    assert not drawn.figure.legends
    assert drawn.tips.texts[0] == "learning rate: 0.50 of the importance for success rate, lower end"


def test_several_objectives_stand_beside_each_other():
    """The order is that of the mean; an unknown importance for an objective counts as zero."""
    shares = {"success_rate": {"learning_rate": 0.9, "model": 0.1}, "time_to_success": {"sparsity_end": 1.0}}
    search, _ = search_of(["success_rate", "time_to_success"], importance=shares)
    drawn = importance.plot(search)
    (axes,) = drawn.figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["λ end", "learning rate", "model"]
    assert len({bar.get_facecolor() for bar in axes.patches}) == 2
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0, 0.9, 0.1, 1.0, 0, 0])
    assert [t.get_text() for t in drawn.figure.legends[0].get_texts()] == [
        "success rate",
        "iterations to success, mean",
    ]
    assert "Only parameters that all candidates have are compared." in drawn.caption


def test_unknown_importance_makes_no_figure():
    """With too few candidates, or without a search, importance is unknown."""
    assert importance.plot(None) is None
    assert importance.plot(search_of(importance={})[0]) is None
