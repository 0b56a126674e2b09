"""Laws of what a report calls things."""

from __future__ import annotations

from functools import partial

import pytest

from study.reference.published import MODEL_NAMES
from study.report import latex, varying, words
from tasks import MODELS


def test_varying_tells_every_cell_apart(demo):
    """No two cells have the same values of what varies."""
    summaries, labels = demo
    cells = [s.cell for s in summaries]
    for given in (labels, {}):
        keys = varying(cells, given)
        assert len({tuple(words.value(cell, key, given) for key in keys) for cell in cells}) == len(cells)


def test_a_label_stands_for_the_hyperparameters_that_move_together(demo):
    """With labels, the schedule is one column; without, the strength tells it apart."""
    summaries, labels = demo
    cells = [s.cell for s in summaries]
    assert varying(cells, labels) == ["model", "schedule", "hidden_size"]
    assert varying(cells) == ["model", "hidden_size", "sparsity_strength"]


def test_what_the_model_prescribes_does_not_vary(published_cell):
    """A schedule and bounds that come with the model are no hyperparameters of the study."""
    assert varying([published_cell("NMU"), published_cell("NAU"), published_cell("NALU")]) == ["model"]
    assert varying([published_cell("NMU")]) == []


def test_a_default_beside_a_value_varies(published_cell):
    """None is a value: the default initial variance and a given one are two points."""
    cells = [published_cell("NMU"), published_cell("NMU", init_variance=0.01)]
    assert varying(cells) == ["init_variance"]
    assert [words.show(cell, "init_variance", {}) for cell in cells] == ["default", "0.01"]


def test_models_carry_the_fields_symbols():
    """No two models look alike, in figures or in LaTeX; a model that isn't known keeps its name."""
    assert set(words.MODEL_SYMBOLS) <= set(MODELS)
    for write in (words.symbol, partial(latex.show_value, "model")):
        assert len({write(model) for model in MODELS}) == len(MODELS)
        assert write("somebody's own") == "somebody's own"


@pytest.mark.parametrize(("symbol", "model"), MODEL_NAMES.items())
def test_published_symbols_are_the_models(symbol, model):
    """A model reads the same whether a file calls it as study files do or as the published tables do."""
    assert words.symbol(symbol) == words.symbol(model)
    assert latex.show_value("model", symbol) == latex.show_value("model", model)


def test_published_names_are_models():
    """Every model of the published tables is one that a study can train."""
    assert set(MODEL_NAMES.values()) <= set(MODELS)


def test_values_are_written_for_people(published_cell):
    """Operations, ranges and sizes read as in a paper."""
    cell = published_cell("NAC-mul", extrapolation_range=((-6.0, -2.0), (2.0, 6.0)))
    shown = {
        key: words.show(cell, key, {}) for key in ("model", "operation", "extrapolation_range", "iterations")
    }
    assert shown == {
        "model": "NAC•",
        "operation": "×",
        "extrapolation_range": "[-6,-2]|[2,6]",
        "iterations": "200,000",
    }
