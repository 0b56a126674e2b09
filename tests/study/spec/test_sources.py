"""Seeds of several sources: their trials, and valid requests of a file."""

from __future__ import annotations

import json

import pytest

from study.errors import SpecError
from study.plan.costs import count_draws
from study.plan.plan import make_plan
from study.records import MOST_COMBINED, Sources, Trial, sources_of
from study.spec import parse_spec, schema

STUDY = "{{study: a, task: {{name: {task}}}, models: [{model}], seeds: {seeds}{more}}}"


def trials(seeds: str) -> tuple[Trial, ...]:
    return make_plan(parse_spec(STUDY.format(task="simple", model="NMU", seeds=seeds, more=""), source="a.yaml")).trials


def sources(seeds: str) -> list[tuple[int, int, int | None]]:
    return [
        (combination.init, combination.data, combination.evaluation)
        for combination in (trial.sources for trial in trials(seeds))
    ]


@pytest.mark.parametrize(
    "combination",
    [Sources(0, 1), Sources(1, 0), Sources(0, 0, 0), Sources(2**21 - 2, 2**21 - 2, 2**21 - 3), Sources(5, 5, 9)],
)
def test_a_number_stands_for_a_combination(combination: Sources) -> None:
    """Each combination has a unique negative number that identifies it; a plain seed has its own number."""
    assert -(2**63) <= combination.seed < 0
    assert sources_of(combination.seed) == combination
    assert sources_of(2**62) == Sources(2**62, 2**62)
    assert Sources(7, 7).seed == 7


def test_numbers_of_combinations_differ() -> None:
    """For small seeds of all sources, no two combinations share a number."""
    every = [Sources(i, j, k) for i in range(4) for j in range(4) for k in (None, 0, 1, 2)]
    assert len({combination.seed for combination in every}) == len(every)


def test_messages_show_the_seeds_of_a_combination() -> None:
    """Messages show init and data, and a plain seed as one number."""
    assert str(Sources(3, 3)) == "3"
    assert str(Sources(3, 4)) == "init 3, data 4"
    assert str(Sources(3, 3, 1)) == "init 3, data 3, evaluation 1"
    with pytest.raises(ValueError, match="must be >= 0 and < 2,097,151"):
        Sources(MOST_COMBINED, 1)


def test_crossed_seeds_are_each_with_each() -> None:
    """Each seed of a source is combined with each of the others; equal seeds are the plain seed's trial."""
    assert sources("{init: 2, data: [0, 5]}") == [(0, 0, None), (0, 5, None), (1, 0, None), (1, 5, None)]
    plain = {trial.id for trial in trials("2")}
    assert plain <= {trial.id for trial in trials("{init: 2, data: 2}")}
    assert len({trial.id for trial in trials("{init: 3, data: 4, evaluation: 2}")}) == 24


def test_a_source_that_is_left_out_follows_the_other() -> None:
    """With init and evaluation, training rows use the init seed."""
    assert sources("{init: [4], evaluation: 2}") == [(4, 4, 0), (4, 4, 1)]
    assert sources("{data: [4], evaluation: 1}") == [(4, 4, 0)]


def test_nested_seeds_belong_to_an_init_seed() -> None:
    """Each init seed has its own data seeds."""
    assert sources("{init: [9, 1], data: 2, design: nested}") == [
        (9, 0, None),
        (9, 1, None),
        (1, 2, None),
        (1, 3, None),
    ]


def test_trials_of_one_data_seed_share_their_rows() -> None:
    """A pack draws rows once for each data seed, whatever the init seeds."""
    assert count_draws(trials("{init: 5, data: 3}")) == 3


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ("{init: 3}", "seeds: has seeds of init only"),
        ("{evaluation: 3}", "seeds: has seeds of evaluation only"),
        ("{init: 0, data: 3}", "seeds.init: must be at least 1"),
        ("{init: 3, data: [1, 1]}", "seeds.data: each seed may be given once"),
        ("{init: 3, dat: 4}", "with keys among init, data, evaluation, and design, but has 'init', 'dat'"),
        ("{init: 3, data: 4, until: {half_width: 0.1, max: 9}}", "with keys among init, data, evaluation"),
        ("{design: nested}", "with keys among init, data, evaluation"),
        ("{init: 3, data: [1, 2], design: nested}", "seeds.design: nested needs init, and data as a count"),
        ("{init: 3, evaluation: 2, design: nested}", "seeds.design: nested needs init, and data as a count"),
        ("{init: 2000, data: 2000, design: nested}", "init seeds times data seeds must be < 2,097,152"),
        ("{init: 3, data: 3, design: both}", "must be one of crossed, nested, but got 'both'"),
        ("{init: [3000000], data: 3}", "seeds.init: combined seeds must be < 2,097,151"),
        ("{init: 3000000, data: 3}", "seeds.init: combined seeds must be < 2,097,151"),
    ],
)
def test_a_mistake_says_what_must_hold(seeds: str, message: str) -> None:
    """Impossible sources are reported with their place."""
    with pytest.raises(SpecError, match="mistake") as caught:
        trials(seeds)
    assert message in str(caught.value)


def test_a_search_and_own_tasks_have_their_limits() -> None:
    """A search has plain seeds only; tasks that train in packs choose their own evaluation rows."""
    more = ", ranges: {hidden_size: {low: 2, high: 9}}, search: {objective: success_rate, trials: 600}"
    with pytest.raises(SpecError, match="a search can't use combined seeds"):
        parse_spec(STUDY.format(task="simple", model="NMU", seeds="{init: 2, data: 3}", more=more), source="a.yaml")
    text = STUDY.format(task="tabular", model="mlp", seeds="{init: 2, evaluation: 3}", more="")
    with pytest.raises(SpecError, match="must be one of init, data: the task fixes the evaluation rows"):
        parse_spec(text, source="a.yaml")


def test_claims_need_independent_trials() -> None:
    """Trials that share initial weights or rows aren't independent, so claims about them are refused."""
    more = ", claims: [{NMU: success_rate, exceeds: 0.5}]"
    with pytest.raises(SpecError, match="claims: need independent trials"):
        parse_spec(STUDY.format(task="simple", model="NMU", seeds="{init: 2, data: 3}", more=more), source="a.yaml")


def test_the_schema_has_the_sources() -> None:
    """Editors complete the sources' names."""
    tables = json.dumps(schema())
    for name in ("init", "data", "evaluation", "design", "crossed", "nested"):
        assert f'"{name}"' in tables
