"""Search spaces: ends, steps, choices, and conditional parameters."""

from __future__ import annotations

import random
from typing import Any

import pytest

from study.search.space import Space
from study.spec import parse_spec
from study.summaries.search import Parameter

TEXT = """
study: a
task: {name: simple}
models:
  - NMU
  - name: NAC-mul
    ranges: {learning_rate: {low: 1.0e-5, high: 1.0e-4, scale: log}}
ranges:
  learning_rate: {low: 1.0e-3, high: 0.1, scale: log}
  optimizer: {choices: [adam, momentum]}
  momentum: {low: 0.1, high: 0.9}
  hidden_size: {low: 2, high: 10, step: 2}
seeds: 5
search: {objective: success_rate, trials: 100}
"""


def drawing(rng: random.Random) -> Any:
    def draw(parameter: Parameter) -> Any:
        if parameter.choices:
            return rng.choice(parameter.choices)
        if parameter.is_whole:
            return rng.randrange(int(parameter.low), int(parameter.high) + 1, int(parameter.step or 1))
        return rng.uniform(parameter.low, parameter.high)

    return draw


@pytest.fixture
def space() -> Space:
    """Return a space with a choice of two models; one model has its own range."""
    return Space(parse_spec(TEXT, source="test"))


def test_parameters_without_effect_arent_chosen(space):
    """Momentum is chosen only with the optimiser that uses it, and a model's own range only with that model."""
    rng = random.Random(0)
    for _ in range(100):
        params = space.choose(drawing(rng))
        assert ("momentum" in params) == (params["optimizer"] == "momentum")
        assert ("NAC-mul.learning_rate" in params) == (params["model"] == "NAC-mul")
        assert ("learning_rate" in params) == (params["model"] == "NMU")


def test_every_choice_is_a_cell_with_the_chosen_values(space):
    """The cell of a choice has the chosen values, and defaults for other hyperparameters."""
    rng = random.Random(1)
    for _ in range(100):
        params = space.choose(drawing(rng))
        cell = space.cell(params)
        assert cell.model == params["model"]
        assert cell.value("hidden_size") == params["hidden_size"]
        own = params.get("NAC-mul.learning_rate", params.get("learning_rate"))
        assert cell.value("learning_rate") == own
        assert cell.value("momentum") == params.get("momentum")


def test_a_schedule_depends_on_a_regulariser():
    """Without a strength, or with an exponentially growing one, no schedule is chosen."""
    text = """
study: a
task: {name: simple}
models: [NMU]
ranges:
  sparsity_strength: {choices: [0, 1]}
  sparsity_scaling: {choices: [linear, exponential]}
  sparsity_start: {low: 0, high: 10}
seeds: 5
search: {objective: success_rate, trials: 100}
"""
    space = Space(parse_spec(text, source="test"))
    rng = random.Random(2)
    choices = set()
    for _ in range(100):
        params = space.choose(drawing(rng))
        choices.add(tuple(params))
        assert ("sparsity_scaling" in params) == (params["sparsity_strength"] == 1)
        assert ("sparsity_start" in params) == (params.get("sparsity_scaling") == "linear")
    assert len(choices) == 3
