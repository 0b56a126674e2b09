"""SMAC3 as a peer of `benchmarks.search`: a random forest, and an intensifier that races candidates over seeds."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace, Float, ForbiddenGreaterThanEqualsRelation, Integer
from smac import AlgorithmConfigurationFacade, Scenario
from smac.runhistory.dataclasses import TrialValue

from benchmarks.search_methods import Pick, Task
from study.records import Trial
from study.search.space import Space
from study.summaries.search import Parameter

RETRAIN_AFTER = 32
"""Candidates between trainings of the forest; with SMAC's default of 8, a run computes for minutes."""


def race(task: Task, most_seeds: int) -> Pick:
    """Minimise the share of unsolved trials by SMAC's facade for stochastic algorithms, and pick its incumbent.

    SMAC numbers its seeds itself. They are replaced by the repetition's, in the order in which they come.

    Args:
        task: the question and the budget.
        most_seeds: the most seeds of a candidate.

    Raises:
        AssertionError, OSError, InputError: as for `Task.spec`.
    """
    space = Space(task.spec())
    seeds: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            _configurations(space, task),
            deterministic=False,
            n_trials=task.trials,
            seed=task.repetition,
            output_directory=Path(folder),
        )
        model = AlgorithmConfigurationFacade.get_model(scenario)
        # The same trees, in a tenth of the time: SMAC reserves memory for 2^20 leaves of each, and starts threads.
        model._rf_opts |= {"max_leaf_nodes": 2 * task.trials, "n_jobs": 1}
        facade = AlgorithmConfigurationFacade(
            scenario,
            lambda config, seed=0: 0.0,  # never called: the optimiser is used by ask and tell
            model=model,
            config_selector=AlgorithmConfigurationFacade.get_config_selector(scenario, retrain_after=RETRAIN_AFTER),
            intensifier=AlgorithmConfigurationFacade.get_intensifier(scenario, max_config_calls=most_seeds),
            logging_level=logging.ERROR,
        )
        for _ in range(task.trials):
            asked = facade.ask()
            seed = seeds.setdefault(asked.seed, task.first_seed + len(seeds))
            trial = Trial(space.cell(dict(asked.config)), seed)
            cost = 1.0 - task.question.solved([trial])[trial.id]
            facade.tell(asked, TrialValue(cost=cost), save=False)
        best = facade.intensifier.get_incumbent()
        cost, runs = facade.runhistory.average_cost(best), facade.runhistory.get_trials(best)
    return Pick(space.cell(dict(best)), task.trials, 1.0 - float(cost), len(runs))


def _configurations(space: Space, task: Task) -> ConfigurationSpace:
    configurations = ConfigurationSpace(seed=task.repetition)
    configurations.add([_parameter(parameter) for parameter in space.parameters.values()])
    if task.question.ordered is not None:
        low, high = (configurations[name] for name in task.question.ordered)
        configurations.add(ForbiddenGreaterThanEqualsRelation(low, high))
    return configurations


def _parameter(parameter: Parameter) -> Any:
    kind, number = (Integer, int) if parameter.is_whole else (Float, float)
    return kind(parameter.name, (number(parameter.low), number(parameter.high)), log=parameter.is_log)
