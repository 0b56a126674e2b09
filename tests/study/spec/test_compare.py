"""Comparisons of a study file are parsed, and each mistake is reported."""

from __future__ import annotations

import pytest

from study.errors import InputError, SpecError
from study.plan.plan import make_plan
from study.spec import parse_spec

BASE = "{study: a, task: {name: simple}, models: [NMU, NAU], grid: {hidden_size: [2, 3]}, seeds: 3, compare: %s}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model", [(("model",), ())]),
        ("[model, hidden_size]", [(("model",), ()), (("hidden_size",), ())]),
        ("{factor: model, at: hidden_size}", [(("model",), ())]),
        ("[{factor: model, tune: [hidden_size]}]", [(("model",), ("hidden_size",))]),
    ],
)
def test_a_comparison_is_a_name_a_table_or_a_list(text, expected):
    """Every notation gives the compared methods and each method's tuned hyperparameters."""
    plan = make_plan(parse_spec(BASE % text, source="a.yaml"))
    assert [(table.factor, table.tune) for table in plan.spec.compare] == expected


def test_comparisons_are_part_of_no_id():
    """A study with another comparison has the same trials."""
    plain = make_plan(parse_spec(BASE.replace(", compare: %s", ""), source="a.yaml"))
    stated = make_plan(parse_spec(BASE % "model", source="a.yaml"))
    assert [trial.id for trial in plain.trials] == [trial.id for trial in stated.trials]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hiden_size", "compare: the study's cells don't differ in 'hiden_size'; did you mean 'hidden_size'"),
        ("learning_rate", "the study's cells don't differ in 'learning_rate'"),
        ("{factor: model, tune: model}", "each name may be in only one of factor, at, tune, but model is in two"),
        ("{tune: hidden_size}", "factor"),
        ("3", "must be the name of a swept hyperparameter or axis, or a list of such names, but got 3"),
        ("{factor: model, at: model}", "each name may be in only one of factor, at, tune"),
    ],
)
def test_mistakes_are_reported(text, message):
    """A key that isn't swept, a repeated key and a missing factor are one clear error each."""
    with pytest.raises((SpecError, InputError), match=message):
        make_plan(parse_spec(BASE % text, source="a.yaml"))
