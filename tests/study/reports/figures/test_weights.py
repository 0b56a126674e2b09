"""Figures of a trial's weights: each weight is a field at its output and input."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from study.records import Outcome
from study.reports import cell_rows, groups
from study.reports.figures import weights
from study.summaries.aggregate import GroupSummary
from study.summaries.trial_details import TrialWeights
from tests.study.builders import published_cell, summaries_of

ROWS = groups([GroupSummary(values=("m",), seeds=9)], ["model"])


def trial(**matrices):
    """Make the weights of a trial; underscores in names become commas."""
    named = {name.replace("_", ", "): np.array(m, np.float32) for name, m in matrices.items()}
    return TrialWeights(row=0, seed=7, outcome=Outcome.SOLVED, iteration=1001, matrices=named)


def fields(axes):
    """Return the colour of each field, by output and input."""
    return {
        tuple(int(v) for v in square[:4].mean(axis=0).round(3)[::-1]): patch.get_facecolor()
        for patch in axes.patches
        for square in patch.get_path().vertices.reshape(-1, 5, 2)
    }


@pytest.mark.parametrize("shape", [(1, 10), (10, 100), (2, 4), (1, 1)])
def test_fields_are_the_weights(shape):
    """Every weight has a field at its output and input, output 1 on top, with a colour between -1 and 1."""
    matrix = np.random.default_rng(0).uniform(-1, 1, shape)
    axes = weights.plot(ROWS, trial(W=matrix)).figure.axes[0]
    squares = fields(axes)
    assert len(squares) == matrix.size
    for place, colour in squares.items():
        assert np.allclose(colour, mpl.colormaps["RdBu"]((matrix[place] + 1) / 2), atol=0.04)
    assert axes.yaxis_inverted()


def test_small_matrices_have_their_numbers_written():
    """Large fields contain their weights; NaN has neither field nor number."""
    drawing = weights.plot(ROWS, trial(W=[[1, -0.25], [np.nan, 0]]))
    axes = drawing.figure.axes[0]
    assert {text.get_position(): text.get_text() for text in axes.texts} == {
        (0, 0): "1.00", (1, 0): "−0.25", (1, 1): "0.00"
    }  # fmt: skip
    assert (1, 0) not in fields(axes)
    assert "An empty field isn't a finite number." in drawing.caption
    assert "W, output 1, input 2: -0.25" in drawing.tips.texts


def test_weights_share_a_scale_and_gates_another():
    """All weights share a colour scale; gates are unbounded and have their own."""
    drawing = weights.plot(ROWS, trial(a_W=[[0.5]], a_G=[[-4]], b_W=[[2.0]]))
    half, gate, two, *scales = drawing.figure.axes
    assert np.allclose(fields(half)[0, 0], mpl.colormaps["RdBu"](0.625), atol=0.02)
    assert np.allclose(fields(gate)[0, 0], mpl.colormaps["RdBu"](0.0))
    assert np.allclose(fields(two)[0, 0], mpl.colormaps["RdBu"](1.0))
    ends = {axes.get_ylabel(): axes.get_yticklabels()[-1].get_text() for axes in scales}
    assert ends == {"weight": "2", "gate's weight": "4"}


def test_the_title_names_the_trial():
    """Title and caption name model, hidden units, seed and outcome, also if nothing else varies."""
    rows = cell_rows(summaries_of((published_cell("NMU", hidden_size=3), {"solved": 2})), {})
    drawing = weights.plot(rows, trial(W=[[1]]))
    assert drawing.title == "Weights: NMU, hidden units 3, seed 7, solved"
    assert "NMU, hidden units 3, seed 7, solved" in drawing.caption
    assert "1,001 updates" in drawing.caption


def test_only_the_greatest_of_many_weights_have_tips():
    """A figure has at most 600 tips: all of the small matrix, and the greatest weights of the large one."""
    large = np.random.default_rng(0).uniform(-1, 1, (10, 100))
    texts = weights.plot(ROWS, trial(a=large, b=np.zeros((1, 10)))).tips.texts
    assert len(texts) == 600
    assert sum(text.startswith("b,") for text in texts) == 10
    sizes = [abs(float(text.split(": ")[1])) for text in texts if text.startswith("a,")]
    assert min(sizes) >= np.sort(np.abs(large), axis=None)[-590] - 1e-4


def test_without_weights_there_is_no_figure():
    """Without a trial or matrices, the figure is omitted."""
    assert weights.plot(ROWS, None) is None
    assert weights.plot(ROWS, trial()) is None
