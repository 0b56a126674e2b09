"""Restarts of iNALUs: times, values, and independence of other trials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from study.engine.base import Training
from study.records import Pack, Trial
from tests.engines import ENGINES
from tests.study.builders import small_cell
from units.inalu_training import PRIMER, INALUTraining

# With this tiny learning rate, the error is constant until a restart.
STILL: dict[str, Any] = {
    "task": "single-module",
    "input_size": 2,
    "hidden_size": None,
    "operation": "sub",
    "interpolation_range": ((10.0, 20.0),),
    "learning_rate": 1e-30,
    "iterations": 80,
    "restart_memory": 15,
}


def training_of(seeds: range, **changes: Any) -> Training:
    cell = small_cell("iNALU-Primer", **{**STILL, **changes})
    return ENGINES["torch"].start(Pack(tuple(Trial(cell, seed) for seed in seeds)), device="cpu")


def starts_by_definition(rule: INALUTraining, losses: list[float], iterations: int, every: int) -> list[int]:
    """Return the iterations of a trial's restarts, computed from its losses at every `every`th iteration."""
    starts, since = [], 0
    for iteration in range(iterations + 1):
        stored = [losses[k // every] for k in range(since, iteration + 1)]
        if rule.restarts(iteration, stored):
            starts.append(iteration)
            since = iteration + 1
    return starts


@pytest.mark.parametrize("rate", [1e-30, 1e-2])
def test_trials_restart_when_their_error_stays_high(rate):
    """Restarts occur at the iterations of the definition, and each changes the parameters."""
    training = training_of(range(6), learning_rate=rate)
    seen: list[dict[int, Any]] = [{} for _ in range(6)]
    while not training.done:
        training.advance(0.0)
        arrays = training.checkpoint().arrays
        for trial, since in enumerate(arrays["part/since"]):
            seen[trial].setdefault(int(since), arrays["part/weight/first.weight_hat_mul"][trial].copy())
    rule = replace(PRIMER, restart_memory=15)
    _, curves, _ = training.finish()
    for trial, curve in enumerate(curves):
        losses = curve.metrics["validation_mse"].astype(float).tolist()
        starts = starts_by_definition(rule, losses, 80, 10)
        assert [0, *(start + 1 for start in starts)] == list(seen[trial])
        values = [array.tobytes() for array in seen[trial].values()]
        assert len(set(values)) == len(values)
    if rate == 1e-30:
        assert all(list(starts)[:2] == [0, 21] for starts in seen)


def test_restarts_have_the_initial_distribution():
    """Parameters after restarts have the mean and the deviation of the Primer's initial distribution."""
    training = training_of(range(400), iterations=20)
    training.advance(1e9)
    arrays = training.checkpoint().arrays
    assert set(arrays["part/since"]) == {21}
    for name, mean, spread in (("weight_hat_add", 0.88, 0.2), ("mask_hat_mul", 0.5, 0.2), ("gate", 0.0, 0.2)):
        values = arrays[f"part/weight/first.{name}"]
        assert float(values.mean()) == pytest.approx(mean, abs=5 * spread / np.sqrt(values.size))
        assert float(values.std()) == pytest.approx(spread, rel=0.15)
    moments = [array for name, array in arrays.items() if name.startswith("part/first/")]
    assert any(array.any() for array in moments)  # Adam's state is kept


def test_a_learned_trial_does_not_restart():
    """A trial with an error of at most 1 doesn't restart."""
    training = training_of(range(4), interpolation_range=((1.0, 1.1),), operation="mul")
    training.advance(1e9)
    assert not training.checkpoint().arrays["part/since"].any()
