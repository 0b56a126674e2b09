"""How much each parameter matters for an objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import optuna

from study.analysis.search import Candidate, Objective
from study.search.objectives import OBJECTIVES
from study.search.space import Space
from study.search.suggest import directions, distribution, frozen, quietly
from study.spec import Spec

_FEWEST = 8
"""Candidates, below which nothing can be told."""


def importance(spec: Spec, candidates: Sequence[Candidate]) -> dict[str, dict[str, float]]:
    """Measure by PED-ANOVA how much what the best tenth has chosen differs from what all have chosen.

    Args:
        spec: of the search.
        candidates: that have values.

    Returns:
        Shares of the parameters, which add up to 1, by objective; empty where they can't be told.
    """
    assert spec.search is not None
    if len(candidates) < _FEWEST:
        return {}
    distributions = {key: distribution(p) for key, p in Space(spec).parameters.items()}
    with quietly():
        study = optuna.create_study(directions=directions(spec.search))
        study.add_trials([frozen(candidate, distributions) for candidate in candidates])
        shares = {
            name: _shares(study, partial(_loss_of, i, OBJECTIVES[name])) for i, name in enumerate(spec.search.objective)
        }
    return {name: of_parameters for name, of_parameters in shares.items() if of_parameters}


def _loss_of(place: int, objective: Objective, trial: optuna.trial.FrozenTrial) -> float:
    return objective.loss(trial.values[place])


def _shares(study: optuna.Study, target: Callable[[optuna.trial.FrozenTrial], float]) -> dict[str, float]:
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    try:
        shares = optuna.importance.get_param_importances(study, evaluator=evaluator, target=target)
    except (ValueError, RuntimeError):  # as where all have the same value
        return {}
    return {key: float(share) for key, share in shares.items()}
