"""Display names of hyperparameters, models and values in reports: titles, units, symbols, roles.

This module has the general vocabulary; installed packages add vocabularies of their fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from study.plugins import offers

Names = Mapping[str, str]
SymbolsOfValues = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Names and texts for reports.

    Packages offer vocabularies as entry points of the group ``seeded_study.vocabularies``. If two vocabularies define
    the same entry, the first one counts: the general vocabulary, then packages in the order of their entries' names.

    Args:
        titles: titles of hyperparameters, where they differ from the study file's names with spaces for underscores.
        nones: texts for None by hyperparameter, where they aren't a dash.
        units: units of hyperparameters.
        methods: hyperparameters that are part of the method; all others are part of the question.
        swept_first: hyperparameters preferred for the x axis of a figure, and put last in a row's name.
        short: letters that replace a hyperparameter's name before its value in short names.
        named_first: hyperparameters that distinguish rows first, after the model and the axes of the grid.
        to_scale: hyperparameters whose values are drawn to scale on an axis.
        self_explanatory: hyperparameters whose values are shown without a title.
        model_symbols: symbols of models, where they differ from the names in study files.
        model_names: names in study files by the symbols in published tables.
        value_symbols: symbols of values by hyperparameter.
        latex_titles: titles of hyperparameters in LaTeX, where they differ from `titles`.
        latex_symbols: symbols of values in LaTeX by hyperparameter, where they differ from `value_symbols`.
    """

    titles: Names = field(default_factory=dict)
    nones: Names = field(default_factory=dict)
    units: Names = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    swept_first: tuple[str, ...] = ()
    short: Names = field(default_factory=dict)
    named_first: tuple[str, ...] = ()
    to_scale: tuple[str, ...] = ()
    self_explanatory: tuple[str, ...] = ()
    model_symbols: Names = field(default_factory=dict)
    model_names: Names = field(default_factory=dict)
    value_symbols: SymbolsOfValues = field(default_factory=dict)
    latex_titles: Names = field(default_factory=dict)
    latex_symbols: SymbolsOfValues = field(default_factory=dict)

    def __or__(self, other: Vocabulary) -> Vocabulary:
        """Return the union of both vocabularies; entries of this one take precedence."""
        names = (part.name for part in fields(self))
        return Vocabulary(**{name: _joined(getattr(self, name), getattr(other, name)) for name in names})


GENERAL = Vocabulary(
    titles={"hidden_size": "hidden units", "batch_size": "batch"},
    methods=("model", "optimizer", "learning_rate", "momentum", "batch_size"),
    swept_first=("hidden_size",),
    short={"hidden_size": "h"},
    named_first=("hidden_size",),
    to_scale=("hidden_size",),
    self_explanatory=("model",),
)
"""The general vocabulary."""


def vocabulary() -> Vocabulary:
    """Return the general vocabulary joined with those of all installed packages.

    Raises:
        InputError: if a vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> vocabulary().titles["hidden_size"], vocabulary().model_symbols["NAC-add"]
        ('hidden units', 'NAC₊')
    """
    return _joined_vocabularies(offers.names("vocabularies"))


@cache
def _joined_vocabularies(names: tuple[str, ...]) -> Vocabulary:
    joined = GENERAL
    for name in names:
        joined |= offers.load("vocabularies", name)
    return joined


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, tuple):
        return tuple(dict.fromkeys([*first, *second]))
    nested = {key: _joined(value, second.get(key, {})) for key, value in first.items() if isinstance(value, Mapping)}
    return {**second, **first, **nested}
