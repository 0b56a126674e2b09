"""Importance of parameters for each objective."""

from __future__ import annotations

from collections.abc import Sequence

import optuna

from study.search.objectives import objectives_of
from study.search.space import Space
from study.search.suggest import directions, distribution, frozen, quietly
from study.spec import Spec
from study.summaries.search import Candidate, Objective

_FEWEST = 8
"""The fewest candidates for an estimate of importance."""


def importance(spec: Spec, candidates: Sequence[Candidate]) -> dict[str, dict[str, float]]:
    """Estimate the importance of parameters by PED-ANOVA, from the choices of the best tenth of candidates.

    Args:
        spec: the search's study file.
        candidates: the candidates with values.

    Returns:
        The share of each parameter that all candidates have, by objective; the shares add up to 1. Objectives without
        an estimate are left out, and with fewer than 8 candidates, all of them.
    """
    assert spec.search is not None
    if len(candidates) < _FEWEST:
        return {}
    objectives = objectives_of(spec.search.objective, spec.family.metrics)
    space = Space(spec)
    with quietly():
        distributions = {key: distribution(parameter) for key, parameter in space.parameters.items()}
        study = optuna.create_study(directions=directions(objectives))
        study.add_trials([frozen(candidate, space, distributions) for candidate in candidates])
        shares = {objective.name: _shares(study, i, objective) for i, objective in enumerate(objectives)}
    return {name: by_parameter for name, by_parameter in shares.items() if by_parameter}


def _shares(study: optuna.Study, place: int, objective: Objective) -> dict[str, float]:
    if len({trial.values[place] for trial in study.trials}) < 2:
        return {}  # some versions of Optuna share out equally
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    try:
        shares = optuna.importance.get_param_importances(
            study, evaluator=evaluator, target=lambda trial: objective.loss(trial.values[place])
        )
    except (ValueError, RuntimeError):
        return {}
    return {key: float(share) for key, share in shares.items()}
