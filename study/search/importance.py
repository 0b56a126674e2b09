"""How much each parameter matters for an objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import optuna

from study.search.objectives import OBJECTIVES, Objective
from study.search.record import Candidate
from study.search.space import Space
from study.search.suggest import directions, distribution, frozen, quietly
from study.spec import Spec

_FEWEST_FOR_IMPORTANCE = 8


def _importance(spec: Spec, told: Sequence[Candidate]) -> dict[str, dict[str, float]]:
    """Measure by PED-ANOVA how much what the best tenth has chosen differs from what all have chosen."""
    assert spec.search is not None
    distributions = {key: distribution(p) for key, p in Space(spec).parameters.items()}
    with quietly():
        study = optuna.create_study(directions=directions(spec.search))
        study.add_trials([frozen(candidate, distributions) for candidate in told])
        shares = {
            name: _shares(study, partial(_loss_of, i, OBJECTIVES[name]))
            for i, name in enumerate(spec.search.objective)
        }
    return {name: found for name, found in shares.items() if found}


def _loss_of(place: int, objective: Objective, trial: optuna.trial.FrozenTrial) -> float:
    return objective.loss(trial.values[place])


def _shares(study: optuna.Study, target: Callable[[optuna.trial.FrozenTrial], float]) -> dict[str, float]:
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    try:
        found = optuna.importance.get_param_importances(study, evaluator=evaluator, target=target)
    except (ValueError, RuntimeError):  # as where all have the same value
        return {}
    return {key: float(share) for key, share in found.items()}
