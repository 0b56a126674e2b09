"""What a search came to, as a report shows it: objectives, parameters, candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a search could choose.

    Args:
        name: the hyperparameter's, perhaps with a model's before it and a dot between.
        choices: to choose from; empty for a number between ends.
        low: its least value.
        high: its greatest value.
        is_log: whether factors count alike.
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False


@dataclass(frozen=True, kw_only=True)
class Sought:
    """An objective of a search.

    Args:
        name: as in the study's file.
        title: what its values are, for people.
        is_sought_high: whether more is better.
    """

    name: str
    title: str
    is_sought_high: bool


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A candidate of a search.

    Args:
        number: in the order of suggestion, from 0.
        round: of candidates that were compared, from 0.
        params: what was chosen, by the names of `Chosen`; what doesn't apply is left out.
        seeds: that it earned.
        values: what it was worth by these, one an objective: the end of an interval at which it looks worst.
        is_front: whether no other is better in all respects.
        row: of the report, if it was confirmed with fresh seeds; None if not.
    """

    number: int
    round: int
    params: Mapping[str, Any]
    seeds: int
    values: tuple[float, ...]
    is_front: bool = False
    row: int | None = None


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What a search did: the report's rows are then of fresh seeds alone.

    Args:
        objectives: what was sought.
        parameters: what could be chosen.
        candidates: what was tried, in order.
        importance: of each parameter, by objective: shares that add up to 1; empty where it can't be told.
        trials: that the candidates took.
        budget: that they could take.
        fresh: seeds that each confirmed candidate got.
        impossible: suggestions that no cell has.
        sampler: what suggested them.
        is_over: whether the candidates of the rows are confirmed; else the search goes on.
        file: the study's file of the first confirmed candidate.
    """

    objectives: tuple[Sought, ...]
    parameters: tuple[Chosen, ...]
    candidates: tuple[Tried, ...]
    importance: Mapping[str, Mapping[str, float]]
    trials: int
    budget: int
    fresh: int
    impossible: int
    sampler: str
    is_over: bool
    file: str
