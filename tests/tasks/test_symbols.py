"""What reports call the arithmetic family's parts agrees with what it declares."""

from __future__ import annotations

from tasks import MODELS, OPERATIONS, symbols
from tasks.arithmetic_hyperparameters import HYPERPARAMETERS


def test_titles_are_the_declared_ones():
    """A hyperparameter is called in reports as it is declared."""
    declared = {name: one.title for name, one in HYPERPARAMETERS.items() if one.title}
    assert declared == dict(symbols.TITLES)


def test_what_is_none_is_written_as_declared():
    """None reads as it is declared, else as a dash."""
    declared = {name: one.none for name, one in HYPERPARAMETERS.items() if one.none != "–"}
    assert declared == dict(symbols.NONES)


def test_methods_are_the_declared_ones():
    """What is compared is what is declared as a method, and the model."""
    declared = {name for name, one in HYPERPARAMETERS.items() if one.is_method}
    assert declared | {"model"} == set(symbols.METHODS)


def test_symbols_are_of_what_there_is():
    """Every name with a symbol is a model, an operation or a hyperparameter."""
    names = {"model", *HYPERPARAMETERS}
    assert {*symbols.SWEPT_FIRST, *symbols.NAMED_FIRST, *symbols.TO_SCALE, *symbols.UNITS} <= names
    assert {*symbols.SELF_EXPLANATORY, *symbols.LATEX_TITLES, *symbols.VALUE_SYMBOLS, *symbols.LATEX_SYMBOLS} <= names
    for of in (symbols.VALUE_SYMBOLS, symbols.LATEX_SYMBOLS):
        assert set(of["operation"]) == set(OPERATIONS)
    assert set(symbols.MODEL_SYMBOLS) | set(symbols.LATEX_SYMBOLS["model"]) <= set(MODELS)
