"""Conditions of hyperparameters, and explicit points: the resulting cells, and mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.errors import SpecError
from study.plan.plan import Plan, make_plan
from study.search.findings import winner_file
from study.search.space import Space
from study.search.suggest import Suggestions
from study.spec import Spec, parse_spec
from study.summaries.search import Candidate

CODE = """\
from study import seeded

@seeded
def train(seed, *, optimizer: str = "adam", lr: float = 0.1, momentum: float = 0.5, nesterov: bool = False,
          decay: float | None = None):
    return {"loss": lr}

@seeded
def strict(seed, *, optimizer: str, momentum: float):
    return {"loss": momentum}
"""
FUNCTION = {"train": "lab:train"}
PROGRAM = {"command": "python lab.py {optimizer} --momentum {momentum} --seed {seed}", "results": "metrics.json"}
SWEPT = {"optimizer": ["adam", "sgd"], "momentum": {"values": [0.0, 0.9], "when": {"optimizer": "sgd"}}}


@pytest.fixture
def parsed(tmp_path: Path) -> Any:
    """Return a function that parses a study of a function or a program."""
    (tmp_path / "lab.py").write_text(CODE)

    def parse(called: Mapping[str, Any], **tables: Any) -> Spec:
        content = {"study": "made", **called, "metrics": {"loss": "lower"}, "seeds": 6, **tables}
        return parse_spec(yaml.safe_dump(content, sort_keys=False), source="study.yaml", folder=tmp_path)

    return parse


def values(plan: Plan, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(cell.value(name) for name in names) for cell in plan.cells]


@pytest.mark.parametrize("called", [FUNCTION, PROGRAM], ids=["function", "program"])
def test_cells_that_a_condition_makes_equal_are_one(parsed: Any, called: Any) -> None:
    """If an axis doesn't apply, its value is None, and cells that become equal are merged."""
    plan = make_plan(parsed(called, grid=SWEPT))
    assert values(plan, "optimizer", "momentum") == [("adam", None), ("sgd", 0.0), ("sgd", 0.9)]


def test_ids_do_not_depend_on_the_notation(parsed: Any) -> None:
    """A condition in the axis, a condition under `when`, and listed points give the same cells."""
    apart = {"grid": {"optimizer": ["adam", "sgd"], "momentum": [0, 0.9]}, "when": {"momentum": {"optimizer": ["sgd"]}}}
    in_points = {
        "points": [{"optimizer": "adam"}, {"optimizer": "sgd", "momentum": 0}, {"optimizer": "sgd", "momentum": 0.9}]
    }
    for called, tables in ((FUNCTION, apart), (PROGRAM, apart), (PROGRAM, in_points)):
        expected = make_plan(parsed(called, grid=SWEPT)).cells
        assert make_plan(parsed(called, **tables)).cells == expected


def test_omitted_values_of_a_point_have_the_functions_default(parsed: Any) -> None:
    plan = make_plan(parsed(FUNCTION, points=[{"optimizer": "adam"}, {"optimizer": "sgd", "momentum": 0.9}]))
    assert values(plan, "optimizer", "momentum") == [("adam", 0.5), ("sgd", 0.9)]


def test_conditions_may_depend_on_each_other(parsed: Any) -> None:
    nesterov = {"values": [False, True], "when": {"momentum": 0.9}}
    plan = make_plan(parsed(FUNCTION, grid={"nesterov": nesterov, **SWEPT}))
    assert set(values(plan, "optimizer", "momentum", "nesterov")) == {
        ("adam", None, None),
        ("sgd", 0.0, None),
        ("sgd", 0.9, False),
        ("sgd", 0.9, True),
    }


def test_a_fixed_value_may_have_a_condition(parsed: Any) -> None:
    fixed = {"momentum": {"value": 0.9, "when": {"optimizer": ["sgd", "rmsprop"]}}}
    plan = make_plan(parsed(FUNCTION, fixed=fixed, grid={"optimizer": ["adam", "sgd", "rmsprop"]}))
    assert values(plan, "momentum") == [(None,), (0.9,), (0.9,)]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"grid": {**SWEPT, "optimizer": ["adam", "sdg"]}}, "optimizer is never sgd, only adam, sdg; did you mean"),
        ({"grid": {"momentum": SWEPT["momentum"]}}, "optimizer isn't set, so no condition on it holds"),
        ({"grid": SWEPT, "when": {"lr": {"optimizer": "sgd"}}}, "lr has a condition, but no value"),
        ({"grid": {"momentum": {"values": [0, 1], "wen": {"optimizer": "sgd"}}}}, "grid.momentum: must be a list"),
        ({"grid": SWEPT, "when": {"momentum": {"optimizer": "adam"}}}, "is also given under when; keep one"),
        ({"grid": {**SWEPT, "lr": [1]}, "when": {"lr": {"momentun": 1}}}, "unknown key; did you mean 'momentum'"),
        (
            {"grid": {"lr": [1], "momentum": [1]}, "when": {"lr": {"momentum": 1}, "momentum": {"lr": 1}}},
            "must not form a cycle",
        ),
        ({"train": "lab:strict", "grid": SWEPT}, "momentum has a condition, but no default for other trials"),
    ],
)
def test_a_mistake_says_what_must_hold(parsed: Any, tables: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parsed({**FUNCTION, **tables})


def test_a_shell_can_not_leave_a_word_out(parsed: Any) -> None:
    """A word of a shell command can't be left out; the message suggests the shell's own notation."""
    shell = {**PROGRAM, "command": PROGRAM["command"].replace("lab.py", "{code}/lab.py"), "shell": True}
    with pytest.raises(SpecError, match=r"STUDY_PARAM_MOMENTUM:\+--momentum \$STUDY_PARAM_MOMENTUM"):
        parsed(shell, grid=SWEPT)


# --- searches

RANGES = {
    "momentum": {"low": 0, "high": 0.99, "when": {"optimizer": "sgd"}},
    "optimizer": {"choices": ["adam", "sgd"]},
    "lr": {"low": 0.01, "high": 1, "scale": "log"},
}
SEARCH = {"objective": "loss", "trials": 300}


def test_a_search_chooses_applicable_parameters(parsed: Any) -> None:
    """A search starts with the file's points, and suggests only parameters that apply."""
    points = [{"optimizer": "adam", "lr": 0.5}, {"optimizer": "sgd", "lr": 0.25, "momentum": 0.9}]
    spec = parsed(FUNCTION, ranges=RANGES, search=SEARCH, points=points)
    suggestions = Suggestions(Space(spec), spec.search)
    choices = [suggestions.ask() for _ in range(20)]
    assert choices[:2] == points
    assert {("momentum" in choice, choice["optimizer"]) for choice in choices} == {(True, "sgd"), (False, "adam")}
    assert Space(spec).cell(choices[0]).value("momentum") is None


def test_the_winners_file_has_the_winners_cell(parsed: Any) -> None:
    for called in (FUNCTION, PROGRAM):
        spec = parsed(called, ranges=RANGES, search=SEARCH)
        params = {"optimizer": "adam", "lr": 0.5}
        cell = Space(spec).cell(params)
        text = winner_file(spec, Candidate(0, 0, params, cell.id))
        keys = {**yaml.safe_load(text), "study": "made", "seeds": 6}
        assert make_plan(parsed({}, **keys)).cells == (cell,)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"optimizer": "rmsprop"}, "must be one of the choices adam, sgd, but got rmsprop"),
        ({"lr": 2.0}, "must be from 0.01 to 1, its range, but got 2"),
        ({"decay": None}, "must be from 0 to 1, its range, but got null"),
        ({"nesterov": True}, "nesterov has none"),
    ],
)
def test_the_first_candidates_are_within_the_ranges(parsed: Any, point: Any, message: str) -> None:
    ranges = {**RANGES, "decay": {"low": 0, "high": 1}}
    with pytest.raises(SpecError, match=message):
        parsed(FUNCTION, ranges=ranges, search=SEARCH, points=[point])


def test_a_condition_on_a_range_of_numbers_is_refused(parsed: Any) -> None:
    ranges = {**RANGES, "momentum": {"low": 0, "high": 0.9, "when": {"lr": 0.5}}}
    with pytest.raises(SpecError, match="a condition needs listed values, but lr is a range"):
        parsed(FUNCTION, ranges=ranges, search=SEARCH)
