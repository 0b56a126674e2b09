"""How reports name hyperparameters, models and values: titles, symbols, and which of them are methods.

The vocabulary of studies in general is here; installed packages add those of their fields.
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

    An entry point of the group ``seeded_study.vocabularies`` names one. Where two vocabularies name the same thing,
    the first one counts: that of studies in general, then those of packages in the order of their entries' names.

    Args:
        titles: names of hyperparameters for readers, where they aren't the names in study files with spaces.
        nones: how None is written, where it isn't a dash.
        units: units of hyperparameters.
        methods: hyperparameters that say how a question is answered; all others belong to the question.
        swept_first: what the x axis of a figure shows if it varies, and a row's name says after the model.
        short: letters for hyperparameters that are often swept, for names that must be short.
        named_first: the hyperparameters that tell rows apart before any other does, after the model and axes of the
            grid.
        to_scale: sizes, which stand on an axis as far apart as they are.
        self_explanatory: hyperparameters whose values need no title before them.
        model_symbols: symbols of models, if they differ from the names in study files.
        model_names: names in study files, by the symbols that published tables use.
        value_symbols: symbols of the values of hyperparameters.
        latex_titles: titles of hyperparameters in LaTeX, where they aren't those of other tables.
        latex_symbols: symbols of values in LaTeX, where they aren't those of other tables.
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
        """Return this vocabulary with what only the other one names."""
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
"""Names that most fields share."""


def vocabulary() -> Vocabulary:
    """Return the vocabulary of studies in general and of all installed packages.

    Example:
        >>> vocabulary().titles["hidden_size"], vocabulary().model_symbols["NAC-add"]
        ('hidden units', 'NAC₊')
    """
    return _all(offers.names("vocabularies"))


@cache
def _all(names: tuple[str, ...]) -> Vocabulary:
    joined = GENERAL
    for name in names:
        joined |= offers.load("vocabularies", name)
    return joined


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, tuple):
        return tuple(dict.fromkeys([*first, *second]))
    nested = {key: _joined(value, second.get(key, {})) for key, value in first.items() if isinstance(value, Mapping)}
    return {**second, **first, **nested}
