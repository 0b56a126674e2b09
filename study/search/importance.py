"""How much each parameter matters for an objective."""

from __future__ import annotations

from collections.abc import Sequence

import optuna

from study.search.objectives import objectives_of
from study.search.space import Space
from study.search.suggest import directions, distribution, frozen, quietly
from study.spec import Spec
from study.summaries.search import Candidate, Objective

_FEWEST = 8
"""The fewest candidates from which importance is estimated."""


def importance(spec: Spec, candidates: Sequence[Candidate]) -> dict[str, dict[str, float]]:
    """Measure by PED-ANOVA how much the choices of the best tenth differ from those of all candidates.

    Args:
        spec: the search's study file.
        candidates: those that have values.

    Returns:
        The shares of the parameters, which add up to 1, by objective; empty where they can't be estimated.
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
    return {name: of_parameters for name, of_parameters in shares.items() if of_parameters}


def _shares(study: optuna.Study, place: int, objective: Objective) -> dict[str, float]:
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    try:
        shares = optuna.importance.get_param_importances(
            study, evaluator=evaluator, target=lambda trial: objective.loss(trial.values[place])
        )
    except (ValueError, RuntimeError):  # for example where all have the same value
        return {}
    return {key: float(share) for key, share in shares.items()}
