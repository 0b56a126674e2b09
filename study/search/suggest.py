"""Optuna's samplers: they suggest the candidates of a round all at once, and then learn their values.

The sampler works on its own study in memory. Its state isn't stored: its suggestions depend on its seed and on the
values reported to it, in order, so that repeating the same calls restores its state. So nothing in a store is
unpickled, as Optuna's own storage of CMA-ES would require, and a killed search continues as if it hadn't been killed.
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
"""Types of the values that Optuna's distributions and databases take."""


@contextmanager
def quietly() -> Iterator[None]:
    """Keep the warnings and log lines of Optuna and of its libraries off the user's terminal."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def sampler_name(search: Search) -> str:
    """Return a sampler's name as in a record: with Optuna's version, since another version may suggest otherwise."""
    return f"{search.sampler}, Optuna {optuna.__version__}"


def directions(objectives: Sequence[Objective]) -> list[StudyDirection]:
    """Return Optuna's direction of each objective."""
    up, down = StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE
    return [up if objective.is_higher_better else down for objective in objectives]


class Suggestions:
    """Suggests candidates.

    Args:
        space: what can be chosen.
        search: the sampler, its seed and the objectives.
        suggested: how many candidates have been suggested before; the points of the study file are the first ones.
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
        """Return the choices of the next suggestion, by the parameters' names."""
        with quietly():
            trial = self._study.ask()
            return self._space.choose(lambda p: _suggest_value(trial, p, self._distributions[p.name]))

    def tell(self, number: int, values: Value) -> None:
        """Report a suggestion's values; it has none if there can't be such a cell."""
        with quietly():
            if values:
                self._study.tell(number, list(values))
            else:
                self._study.tell(number, state=TrialState.FAIL)

    def repeat(self, record: Record) -> bool:
        """Ask and tell as recorded, and return whether the suggestions were the same."""
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
        """Add the record's candidates without asking for them: the sampler continues by what it learns from them."""
        with quietly():
            self._study.add_trials([frozen(c, self._space, self._distributions) for c in record.candidates])


def resume(space: Space, search: Search, record: Record) -> tuple[Suggestions, bool]:
    """Make suggestions that continue where a record ends, and return whether the sampler repeated it exactly."""
    suggestions = Suggestions(space, search)
    is_exact = suggestions.repeat(record)
    if not is_exact:
        suggestions = Suggestions(space, search, suggested=len(record.candidates))
        suggestions.take_over(record)
    return suggestions, is_exact


def frozen(candidate: Candidate, space: Space, distributions: dict[str, BaseDistribution]) -> FrozenTrial:
    """Convert a candidate to an Optuna trial.

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
    """Return a candidate's other properties, for the dashboard."""
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
    """Return the keys that stand for a parameter's choices in Optuna, in their order.

    Optuna takes hashable scalars and tells them apart by ``==``. So the keys are the choices themselves, or their JSON
    texts where a choice is a list or two choices are equal, such as 1 and true. Samplers see only a choice's place.

    Example:
        >>> [choice_keys(Parameter("a", "a", choices=choices)) for choices in (("relu", None), ([8], 8), (1, True))]
        [('relu', None), ('[8]', '8'), ('1', 'true')]
    """
    are_scalar = all(isinstance(choice, _SCALARS) for choice in parameter.choices)
    if are_scalar and len(set(parameter.choices)) == len(parameter.choices):
        return parameter.choices
    return tuple(map(json.dumps, parameter.choices))


def _key(parameter: Parameter, value: Any) -> Any:
    """Return what stands for a parameter's value in Optuna."""
    if not parameter.choices:
        return value
    return choice_keys(parameter)[parameter.place(value)]


def _are_same(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two candidates chose the same values; 1, 1.0 and true differ."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _suggest_value(trial: optuna.Trial, parameter: Parameter, of: BaseDistribution) -> Any:
    if isinstance(of, CategoricalDistribution):
        key = trial.suggest_categorical(parameter.name, of.choices)
        return parameter.choices[of.choices.index(key)]
    if isinstance(of, IntDistribution):
        return trial.suggest_int(parameter.name, of.low, of.high, step=of.step, log=of.log)
    assert isinstance(of, FloatDistribution)
    return trial.suggest_float(parameter.name, of.low, of.high, step=of.step, log=of.log)


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
