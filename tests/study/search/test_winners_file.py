"""The winner's file is a study of exactly the confirmed trials."""

from __future__ import annotations

import random

import pytest

from study.plan.plan import make_plan
from study.search.findings import winner_file
from study.search.searching import planned_seeds
from study.search.space import Space
from study.spec import load_spec, parse_spec
from study.summaries.search import Candidate

PLAIN = """
study: plain
task: {name: simple, operation: mul}
models: [NMU]
fixed: {hidden_size: 6}
ranges:
  sparsity_strength: {low: 0.03, high: 30, scale: log}
  sparsity_start: {low: 0, high: 4000}
  init_variance: {low: 1.0e-9, high: 0.08, scale: log}
seeds: 40
protocol: {iterations: 20000, evaluate_every: 500, stop: when_decided}
success: {threshold: 0.001}
search: {objective: success_rate, trials: 600, confirm_seeds: 7}
"""
MODELS = """
study: models
task: {name: arithmetic, operation: add, input_size: 10, interpolation_range: [[-2, -1], [1, 2]]}
models:
  - name: NAU
    ranges: {sparsity_strength: {choices: [0, 0.1, 1]}, bounds: {choices: [clipped, regularized]}}
  - name: linear
    ranges: {learning_rate: {low: 1.0e-5, high: 0.1, scale: log}}
  - name: NAC-add
    fixed: {iterations: 1000, learning_rate: 0.01}
  - NALU
fixed: {sparsity_end: 900, sparsity_start: 100, out_of_bounds_strength: 2, momentum: 0.5, hidden_size: 3}
ranges:
  optimizer: {choices: [adam, sgd, momentum]}
  batch_size: {low: 16, high: 128, step: 16}
seeds: [3, 5, 90]
protocol: {iterations: 2000}
search: {objective: [success_rate, time_to_success], trials: 400, first_seeds: 2, confirm_seeds: 3}
"""
CONDITIONAL = """
study: conditional-on-a-name-that-is-as-long-as-a-name-of-a-study-can-be-in-this-store
task: {name: simple}
models:
  - name: NMU
    fixed: {sparsity_end: 3000}
    ranges:
      sparsity_scaling: {choices: [linear, exponential]}
      sparsity_strength: {choices: [0, 0.5, 5]}
      sparsity_start: {low: 0, high: 2500}
  - NAC-mul
fixed: {operation: mul, sparsity_shape: squared}
ranges:
  momentum: {low: 0.5, high: 0.99}
  optimizer: {choices: [adam, momentum]}
  hidden_size: {low: 2, high: 10, step: 2}
seeds: 10
search: {objective: solved_at, trials: 200}
"""


def drawn(parameter, rng):
    """Draw a valid value of a parameter, on its grid or scale."""
    if parameter.choices:
        return rng.choice(parameter.choices)
    if parameter.step:
        count = round((parameter.high - parameter.low) / parameter.step)
        number = parameter.low + parameter.step * rng.randrange(count + 1)
        return int(number) if parameter.is_whole else number
    if parameter.is_whole:
        return rng.randint(int(parameter.low), int(parameter.high))
    if parameter.is_log:
        return parameter.low * (parameter.high / parameter.low) ** rng.random()
    return rng.uniform(parameter.low, parameter.high)


@pytest.mark.parametrize("text", [PLAIN, MODELS, CONDITIONAL], ids=["plain", "models", "conditional"])
def test_the_winners_file_plans_exactly_the_confirmed_trials(text, tmp_path):
    """For any choices, the file loads and plans only the confirmed cell with the fresh seeds."""
    spec = parse_spec(text, source="search.yaml")
    space, rng = Space(spec), random.Random(1)
    models = set()
    for _ in range(40):
        params = space.choose(lambda parameter: drawn(parameter, rng))
        cell = space.cell(params)
        file = tmp_path / "winner.yaml"
        file.write_text(winner_file(spec, Candidate(0, 0, params, cell.id)), encoding="utf-8")
        plan = make_plan(load_spec(file))
        assert plan.cells == (cell,)
        assert list(plan.seeds(cell)) == list(planned_seeds(spec).fresh)
        models.add(cell.model)
    assert models == {model.name for model in spec.models}


def test_fresh_seeds_begin_after_those_of_the_search():
    """If the list of seeds has gaps, fresh seeds start after the greatest seed."""
    spec = parse_spec(MODELS, source="search.yaml")
    assert list(planned_seeds(spec).fresh) == [91, 92, 93]
