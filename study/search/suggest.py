"""Optuna's samplers: they suggest all candidates of a round, and then get their values.

The sampler works on a study in memory, and its state isn't stored. Suggestions depend only on the seed and on the
reported values, in order, so repeating the same calls restores the state. A killed search continues unchanged, and
nothing in a store is unpickled, as Optuna's own storage of CMA-ES would require.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from study.search.objectives import objectives_of
from study.search.record import Record
from study.search.space import Space
from study.spec.tables import Search
from study.summaries.search import Candidate, Objective, Parameter, Value

_SCALARS = (type(None), bool, int, float, str)
"""Types of values that Optuna's distributions and databases support."""


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress all Python warnings, and the log lines of Optuna."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def sampler_name(search: Search) -> str:
    """Return a sampler's name for the record, with Optuna's version, because versions can differ in suggestions."""
    return f"{search.sampler}, Optuna {optuna.__version__}"


def directions(objectives: Sequence[Objective]) -> list[StudyDirection]:
    """Return Optuna's direction of each objective."""
    up, down = StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE
    return [up if objective.is_higher_better else down for objective in objectives]


class Suggestions:
    """A sampler with its in-memory study.

    Args:
        space: the space of the search.
        search: the sampler, its seed and the objectives.
        suggested: the number of earlier suggestions. The study file's points are suggested first, so as many of them
            are skipped.
    """

    def __init__(self, space: Space, search: Search, suggested: int = 0) -> None:
        self._space = space
        objectives = objectives_of(search.objective, space.spec.family.metrics)
        with quietly():
            self._distributions = {name: distribution(p) for name, p in space.parameters.items()}
            self._study = optuna.create_study(directions=directions(objectives), sampler=_sampler(search))
            for choices in space.first_choices[suggested:]:
                self._study.enqueue_trial({key: _key(space.parameters[key], value) for key, value in choices.items()})

    def ask(self) -> dict[str, Any]:
        """Return the values of the next suggestion, by the parameters' names."""
        with quietly():
            trial = self._study.ask()
            return self._space.choose(lambda p: _suggest_value(trial, p, self._distributions[p.name]))

    def tell(self, number: int, values: Value) -> None:
        """Report a suggestion's values; empty values mean that it makes no valid cell."""
        with quietly():
            if values:
                self._study.tell(number, list(values))
            else:
                self._study.tell(number, state=TrialState.FAIL)

    def repeat(self, record: Record) -> bool:
        """Repeat the calls of a record up to the first other suggestion; return True if all were the same."""
        for number in range(record.rounds):
            candidates = record.of_round(number)
            for candidate in candidates:
                if not _are_same(self.ask(), candidate.params):
                    return False
                if candidate.impossible is not None:
                    self.tell(candidate.number, ())
            for candidate in candidates:
                if candidate.values:
                    self.tell(candidate.number, candidate.values)
        return True

    def take_over(self, record: Record) -> None:
        """Add a record's candidates without asking for them, so that the sampler learns from them."""
        with quietly():
            self._study.add_trials([frozen(c, self._space, self._distributions) for c in record.candidates])


def resume(space: Space, search: Search, record: Record) -> tuple[Suggestions, bool]:
    """Return suggestions that continue a record, and True if the sampler repeated the record exactly.

    If it would suggest other candidates, as another version of Optuna may, it learns from those of the record instead.
    """
    suggestions = Suggestions(space, search)
    is_exact = suggestions.repeat(record)
    if not is_exact:
        suggestions = Suggestions(space, search, suggested=len(record.candidates))
        suggestions.take_over(record)
    return suggestions, is_exact


def frozen(candidate: Candidate, space: Space, distributions: dict[str, BaseDistribution]) -> FrozenTrial:
    """Convert a candidate to an Optuna trial.

    Its state is failed if it makes no valid cell, complete with values, and running otherwise.

    Args:
        candidate: the candidate.
        space: the space from which it was chosen.
        distributions: the distribution of each parameter of the space.
    """
    if candidate.impossible is not None:
        state = TrialState.FAIL
    else:
        state = TrialState.COMPLETE if candidate.values else TrialState.RUNNING
    return create_trial(
        state=state,
        values=list(candidate.values) or None,
        params={name: _key(space.parameters[name], value) for name, value in candidate.params.items()},
        distributions={name: distributions[name] for name in candidate.params},
        user_attrs=attributes(candidate),
    )


def attributes(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate's user attributes for Optuna's dashboard."""
    properties = {"round": candidate.round, "cell": candidate.cell_id, "seeds": candidate.seeds or None}
    return {k: v for k, v in (properties | {"impossible": candidate.impossible}).items() if v is not None}


def distribution(parameter: Parameter) -> BaseDistribution:
    """Convert a parameter to an Optuna distribution."""
    if parameter.choices:
        return CategoricalDistribution(choice_keys(parameter))
    if parameter.is_whole:
        step = int(parameter.step or 1)
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.is_log, step=step)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.is_log, step=parameter.step)


def choice_keys(parameter: Parameter) -> tuple[Any, ...]:
    """Return the keys of a parameter's choices in Optuna, in their order.

    Optuna supports hashable scalars and compares them by ``==``. So the keys are the choices themselves, or their JSON
    texts if a choice is a list or two choices are equal, such as 1 and true. Samplers see only a choice's index.

    Example:
        >>> [choice_keys(Parameter("a", "a", choices=choices)) for choices in (("relu", None), ([8], 8), (1, True))]
        [('relu', None), ('[8]', '8'), ('1', 'true')]
    """
    are_scalar = all(isinstance(choice, _SCALARS) for choice in parameter.choices)
    if are_scalar and len(set(parameter.choices)) == len(parameter.choices):
        return parameter.choices
    return tuple(map(json.dumps, parameter.choices))


def _key(parameter: Parameter, value: Any) -> Any:
    """Return the key of a choice in Optuna (`choice_keys`); a parameter without choices has the value itself."""
    if not parameter.choices:
        return value
    return choice_keys(parameter)[parameter.place(value)]


def _are_same(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return True if two candidates have the same values; 1, 1.0 and true differ."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _suggest_value(trial: optuna.Trial, parameter: Parameter, domain: BaseDistribution) -> Any:
    if isinstance(domain, CategoricalDistribution):
        key = trial.suggest_categorical(parameter.name, domain.choices)
        return parameter.choices[domain.choices.index(key)]
    if isinstance(domain, IntDistribution):
        return trial.suggest_int(parameter.name, domain.low, domain.high, step=domain.step, log=domain.log)
    assert isinstance(domain, FloatDistribution)
    return trial.suggest_float(parameter.name, domain.low, domain.high, step=domain.step, log=domain.log)


def _sampler(search: Search) -> optuna.samplers.BaseSampler:
    with quietly():
        match search.sampler:
            case "NSGA-II":
                size = max(2, search.candidates)
                return optuna.samplers.NSGAIISampler(seed=search.seed, population_size=size)
            case "CMA-ES":
                return optuna.samplers.CmaEsSampler(seed=search.seed, popsize=max(5, search.candidates))
            case "random":
                return optuna.samplers.RandomSampler(seed=search.seed)
    return optuna.samplers.TPESampler(
        seed=search.seed, n_startup_trials=search.candidates, n_ei_candidates=24, constant_liar=True
    )
