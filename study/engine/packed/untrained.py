"""Scores of trials, in percent of the mean metric of untrained networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from study.engine.packed.proof import Proof, start
from study.engine.packed.recipe import Member, Recipe
from study.interface.task import SCORE_NETWORKS

# Far above the seeds of trials, which usually count up from 0.
_FIRST_SEED = 2**62
_PACK_SIZE = 50


def untrained_means(recipe: Recipe, proof: Proof, metrics: Sequence[str], *, device: str = "cpu") -> dict[str, float]:
    """Return the means of metrics over 100 untrained networks, the same for all trials of a recipe; NaN if one is NaN.

    Args:
        recipe: the task and the model.
        proof: the recipe's proof.
        metrics: names of metrics.
        device: the device that computes.

    Raises:
        KeyError: if the task doesn't measure a metric.
        InputError: as `study.engine.packed.proof.start` does.
        ValueError: as `start` and `Members.evaluate` do.
        Exception: any error of the task or the model.
    """
    seeds = range(_FIRST_SEED, _FIRST_SEED + SCORE_NETWORKS)
    packs = [seeds[at : at + _PACK_SIZE] for at in range(0, SCORE_NETWORKS, _PACK_SIZE)]
    started = (start(recipe, [Member(seed=seed) for seed in pack], proof, device=device) for pack in packs)
    measured = [trials.evaluate() for trials in started]
    return {name: float(np.concatenate([pack_metrics[name] for pack_metrics in measured]).mean()) for name in metrics}


def scored(
    measured: Mapping[str, npt.NDArray[np.float64]], scores: Mapping[str, str], means: Mapping[str, float]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the trials' scores, each float64 [trials].

        score = 100 metric / (mean of the metric over untrained networks)

    A score is NaN or infinite if the mean is 0.

    Args:
        measured: the trials' metrics.
        scores: the metric of each score.
        means: the mean of each metric.

    Raises:
        KeyError: if a metric isn't measured, or has no mean.

    Example:
        >>> scored({"test_mse": np.array([0.5, 3.0])}, {"test_score": "test_mse"}, {"test_mse": 2.0})
        {'test_score': array([ 25., 150.])}
    """
    return {name: 100 * measured[metric] / means[metric] for name, metric in scores.items()}
