"""Names and symbols in reports."""

from __future__ import annotations

from functools import partial

import pytest

from study import words
from study.reports import latex
from tasks.arithmetic import MODELS
from tasks.arithmetic.symbols import SYMBOLS
from tests.study.builders import published_cell


def test_models_have_the_fields_symbols():
    """Models have distinct symbols, in figures and in LaTeX; an unknown model keeps its name."""
    assert set(SYMBOLS.model_symbols) <= set(MODELS)
    for write in (words.symbol, partial(latex.latex_value, "model")):
        assert len({write(model) for model in MODELS}) == len(MODELS)
        assert write("somebody's own") == "somebody's own"


@pytest.mark.parametrize(("symbol", "model"), SYMBOLS.model_names.items())
def test_published_symbols_are_the_models(symbol, model):
    """A model has the same symbol under its name in study files and in the published tables."""
    assert words.symbol(symbol) == words.symbol(model)
    assert latex.latex_value("model", symbol) == latex.latex_value("model", model)


def test_published_names_are_models():
    """Every model of the published tables can be trained by a study."""
    assert set(SYMBOLS.model_names.values()) <= set(MODELS)


def test_values_are_written_for_people():
    """Operations, ranges and sizes are written as in a paper."""
    cell = published_cell("NAC-mul", extrapolation_range=((-6.0, -2.0), (2.0, 6.0)))
    shown = {
        key: words.format_cell_value(cell, key, {})
        for key in ("model", "operation", "extrapolation_range", "iterations")
    }
    assert shown == {"model": "NAC•", "operation": "×", "extrapolation_range": "[-6,-2]|[2,6]", "iterations": "200,000"}
