"""Agreement of the reports' names of the arithmetic family with its declarations."""

from __future__ import annotations

from tasks.arithmetic import MODELS, OPERATIONS
from tasks.arithmetic.hyperparameters import HYPERPARAMETERS
from tasks.arithmetic.symbols import SYMBOLS


def test_titles_are_the_declared_ones():
    """Reports use a hyperparameter's declared title."""
    declared = {name: declaration.title for name, declaration in HYPERPARAMETERS.items() if declaration.title}
    assert declared == dict(SYMBOLS.titles)


def test_none_is_written_as_declared():
    """None is written as the declaration says, otherwise as a dash."""
    declared = {name: declaration.none for name, declaration in HYPERPARAMETERS.items() if declaration.none != "–"}
    assert declared == dict(SYMBOLS.nones)


def test_methods_are_the_declared_ones():
    """Methods are distinguished by the model and the declared hyperparameters."""
    declared = {name for name, declaration in HYPERPARAMETERS.items() if declaration.is_method}
    assert declared | {"model"} == set(SYMBOLS.methods)


def test_symbols_are_of_existing_names():
    """Every name with a symbol is a model, an operation or a hyperparameter."""
    names = {"model", *HYPERPARAMETERS}
    assert {*SYMBOLS.swept_first, *SYMBOLS.named_first, *SYMBOLS.to_scale, *SYMBOLS.units} <= names
    assert {*SYMBOLS.self_explanatory, *SYMBOLS.latex_titles, *SYMBOLS.value_symbols, *SYMBOLS.latex_symbols} <= names
    for symbols in (SYMBOLS.value_symbols, SYMBOLS.latex_symbols):
        assert set(symbols["operation"]) == set(OPERATIONS)
    assert set(SYMBOLS.model_symbols) | set(SYMBOLS.latex_symbols["model"]) <= set(MODELS)
