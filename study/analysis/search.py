"""What a search looks for, chooses and finds: the records that a search makes and a report reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Value = tuple[float, ...]
"""A candidate's values, one an objective."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What a search looks for.

    Args:
        name: as in the study's file.
        title: what its values are, for people.
        is_sought_high: whether more is better.
    """

    name: str
    title: str
    is_sought_high: bool

    def loss(self, value: float) -> float:
        """Turn a value so that less is better."""
        return -value if self.is_sought_high else value


@dataclass(frozen=True)
class Parameter:
    """One thing that a search chooses. How it prints is part of a search's id.

    Args:
        name: the hyperparameter's; with the model's and a dot before it where the range is that model's own.
        hyperparameter: which; ``model`` for the model.
        choices: to choose from; empty for a number between ends.
        low: least value.
        high: greatest value.
        step: between values; None for any number, or any whole number.
        is_log: whether factors count alike, not differences.
        is_whole: whether it is a count.
    """

    name: str
    hyperparameter: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    is_log: bool = False
    is_whole: bool = False


@dataclass(frozen=True)
class Candidate:
    """A suggestion of a search.

    Args:
        number: in the order of suggestion, from 0.
        round: of candidates that are compared, from 0.
        params: the choices, by the names of the parameters; one that doesn't apply is left out.
        cell_id: its cell; None if there can't be one.
        impossible: why there can't be; None if there can.
        seeds: that it has earned; 0 while it is compared.
        values: what it is worth by these, one an objective: the end of an interval at which it looks worst. Empty while
            it is compared, or if there is no cell.
    """

    number: int
    round: int
    params: Mapping[str, Any]
    cell_id: str | None
    impossible: str | None = None
    seeds: int = 0
    values: Value = ()


@dataclass(frozen=True, kw_only=True)
class SearchFindings:
    """What a search has found. The rows of its report are of fresh seeds alone.

    Args:
        objectives: in the order of the study's file.
        parameters: all that can be chosen.
        candidates: those that have values, each cell once, in the order of suggestion.
        front: numbers of the candidates that none is better than in all respects.
        rows: rows of the report, by the numbers of the candidates that fresh seeds confirm; empty before that.
        importance: of each parameter, by objective: shares that add up to 1; empty where there are too few candidates
            to tell.
        trials: that the candidates took.
        budget: that they could take.
        fresh: seeds that each confirmed candidate gets.
        impossible: suggestions that no cell has.
        sampler: which made the suggestions.
        is_over: whether the candidates to confirm have been chosen; else the search goes on.
        file: the study's file of the first of them; empty before that.
    """

    objectives: tuple[Objective, ...]
    parameters: tuple[Parameter, ...]
    candidates: tuple[Candidate, ...]
    front: tuple[int, ...]
    rows: Mapping[int, int]
    importance: Mapping[str, Mapping[str, float]]
    trials: int
    budget: int
    fresh: int
    impossible: int
    sampler: str
    is_over: bool
    file: str
