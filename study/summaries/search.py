"""Objectives, parameters, candidates and findings of a search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

NO_NUMBER = 1e30
"""The least placeholder loss of a candidate without a number, such as one with diverged trials.

It is greater than any real loss, and finite, because samplers, databases and files need finite numbers. Placeholders
from this value on keep the order of such candidates.
"""

Value = tuple[float, ...]
"""A candidate's values, one for each objective."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """An objective of a search.

    Args:
        name: its name in study files.
        title: a description of its values, for readers.
        is_higher_better: True if higher values are better.
        statistic: the statistic of the trials that it bounds, and that fresh seeds estimate.
    """

    name: str
    title: str
    is_higher_better: bool
    statistic: Literal["rate", "time", "mean", "median"] = "mean"

    def has_number(self, value: float) -> bool:
        """Return True if a value is a number of the objective, rather than a placeholder."""
        return abs(value) < NO_NUMBER

    def loss(self, value: float) -> float:
        """Return a value with the sign that makes lower values better."""
        return -value if self.is_higher_better else value


@dataclass(frozen=True)
class Parameter:
    """A parameter that a search chooses. Its repr is part of a search's id.

    Args:
        name: the hyperparameter's name, preceded by the model's and a dot if the range is that model's own.
        hyperparameter: the hyperparameter; ``model`` for the model.
        choices: the values to choose from; empty for a number in a range.
        low: the least value.
        high: the greatest value.
        step: the distance between values; None for any number, or any whole number.
        is_log: True for a logarithmic scale.
        is_whole: True for whole numbers.
        title: the hyperparameter's declared title; empty if it has none.
    """

    name: str
    hyperparameter: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    is_log: bool = False
    is_whole: bool = False
    title: str = field(default="", compare=False, repr=False)

    def place(self, value: Any) -> int:
        """Return a choice's index among the choices; 1, 1.0 and true differ, but a list equals its tuple.

        Raises:
            ValueError: if the value isn't one of the choices.
            TypeError: if the value has no JSON form.

        Example:
            >>> parameter = Parameter("layers", "layers", choices=(1, True, (8, 8)))
            >>> parameter.place(True), parameter.place([8, 8])
            (1, 2)
        """
        return [json.dumps(choice) for choice in self.choices].index(json.dumps(value))


@dataclass(frozen=True)
class Candidate:
    """A suggestion of a search.

    Args:
        number: its place in the order of suggestion, from 0.
        round: the round in which it was suggested, from 0.
        params: the choices, by the parameters' names; a parameter that doesn't apply is left out.
        cell_id: its cell; None if the choices make no valid cell.
        impossible: why the choices make no valid cell; None if they make one.
        seeds: the number of seeds that it has earned; 0 while it is being compared.
        values: its values by these seeds, one for each objective: the worst end of an interval. Empty while it is being
            compared, or without a cell.
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
    """The findings of a search. The rows of its report are based on fresh seeds alone.

    Args:
        objectives: the objectives, in the order of the study's file.
        parameters: the parameters that are chosen.
        candidates: the candidates with values, each cell once, in the order of suggestion.
        front: the numbers of the candidates to which no other one is at least equal in all objectives and better in
            one.
        rows: the rows of the report, by the numbers of the confirmed candidates; empty before the confirmation.
        importance: each parameter's share, by objective; the shares add up to 1. Empty with too few candidates.
        trials: the number of trials that the candidates took.
        budget: the most trials that they may take.
        fresh: the number of seeds that confirm each candidate.
        impossible: the number of suggestions without a valid cell.
        sampler: the sampler that made the suggestions.
        is_over: True if the candidates to confirm have been chosen.
        file: a study file of the first of these; empty before that.
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

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by its name.

        Raises:
            KeyError: if none has that name.
        """
        return {parameter.name: parameter for parameter in self.parameters}[name]
