"""Searches among values of every kind: confirmation, resumption, and the winner's file."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from study.plan.plan import make_plan
from study.records import Trial
from study.search.findings import winner_file
from study.search.importance import importance
from study.search.record import Record, from_json, to_json
from study.search.searching import planned_seeds
from study.search.space import Space
from study.search.suggest import Suggestions, resume
from study.spec import Spec, dump, parse_spec
from study.summaries.search import Candidate
from tests.commands import invoke

KINDS = '''
from typing import Literal

from study import seeded


@seeded
def train(
    seed,
    *,
    text: str = "1e6",
    maybe_text: str | None = "null",
    maybe: float | None = 0.5,
    needed: int | None,
    whole: int = 3,
    rate: float = 1e-05,
    flag: bool = True,
    either: Literal["1", 1, True, None] = "1",
    layers: list[int] = [8],
    shape: tuple[int, float] = (1, 2.0),
    nested: list[list[float | None]] | None = None,
):
    """Return a loss that depends on the seed and on the kinds of the values."""
    return {"loss": seed % 3 + len(repr((text, maybe_text, maybe, needed, either, layers, shape, nested)))}
'''
TEXTS = (
    "1e6",
    "1e-5",
    "0.1e5",
    "08",
    "010",
    "1_000",
    "null",
    "~",
    "",
    "yes",
    "no",
    "off",
    "true",
    "2001-01-02",
    "0-99",
)
TEXTS += (
    "1:30",
    "=",
    "<<",
    "- a",
    "a: b",
    "#no",
    "'",
    '"',
    " a ",
    "a\nb",
    "a\u2028b",
    "é😀",
    "[1]",
    "{a: 1}",
    ".inf",
    "0x1F",
)

SEARCH = {"objective": "loss", "trials": 30, "candidates": 2, "first_seeds": 3}

texts = st.one_of(st.sampled_from(TEXTS), st.text(st.characters(codec="utf-8"), max_size=9))
numbers = st.floats(-1e300, 1e300, allow_subnormal=True)
wholes = st.integers(-(2**63) + 1, 2**63 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "maybe_text": st.none() | texts,
    "maybe": st.none() | numbers,
    "needed": st.none() | wholes,
    "whole": wholes,
    "rate": numbers,
    "flag": st.booleans(),
    "either": st.sampled_from(["1", 1, True, None]),
    "layers": st.lists(wholes, max_size=3),
    "shape": st.tuples(wholes, numbers).map(list),
    "nested": st.none() | st.lists(st.lists(st.none() | numbers, max_size=2), max_size=2),
}
RANGES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "rate": st.tuples(st.floats(1e-9, 1e-3), st.floats(1e-2, 1e9), st.sampled_from(["linear", "log"])).map(
        lambda drawn: dict(zip(("low", "high", "scale"), drawn, strict=True))
    ),
    "whole": st.tuples(st.integers(-9, 0), st.integers(3, 9), st.integers(1, 3)).map(
        lambda drawn: dict(zip(("low", "high", "step"), drawn, strict=True))
    ),
}


def choices(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for ranges of listed values."""
    return st.lists(values, min_size=2, max_size=4, unique_by=json.dumps).map(lambda listed: {"choices": listed})


@st.composite
def studies(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the content of a search file: each hyperparameter is omitted, fixed or searched."""
    fixed: dict[str, Any] = {}
    ranges: dict[str, Any] = {}
    searched = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4, unique=True))
    for name, values in VALUES.items():
        if name in searched:
            ranges[name] = draw(choices(values) | RANGES[name] if name in RANGES else choices(values))
        elif name == "needed" or draw(st.booleans()):
            fixed[name] = draw(values)
    optional: dict[str, st.SearchStrategy[Any]] = {
        "success": st.just({"loss": {"below": 1e-05}}),
        "version": st.sampled_from([0, 1, "1", "1e6", "2001-01-02", ""]),
        "iterations": st.integers(0, 3),
        "isolation": st.just("process"),
        "resources": st.just({"cpus": 1, "time_limit_s": 1e-05}),
        "include": st.just(["*.txt"]),
    }
    metric = draw(st.sampled_from(["lower", {"better": "lower", "title": "1e6", "low": 0}]))
    return {
        "study": draw(st.sampled_from(["kinds", "1e6", "0-99"])),
        "train": "mylab.kinds:train",
        "metrics": {"loss": metric},
        "fixed": fixed,
        "ranges": ranges,
        "seeds": draw(st.sampled_from([3, "5-7", [0, 9, 4]])),
        "search": SEARCH | {"confirm_seeds": draw(st.integers(1, 4))},
        **{name: draw(values) for name, values in optional.items() if draw(st.booleans())},
    }


def drawn(parameter: Any, rng: random.Random) -> Any:
    """Draw a valid value of a parameter from listed, integer or real ones."""
    if parameter.choices:
        return rng.choice(parameter.choices)
    if parameter.is_whole:
        step = int(parameter.step or 1)
        return int(parameter.low) + step * rng.randint(0, int(parameter.high - parameter.low) // step)
    return rng.uniform(parameter.low, parameter.high)


@pytest.fixture
def kinds(lab: Path) -> Path:
    """Add a function with hyperparameters of every kind to the folder of code; return the folder."""
    (lab / "mylab" / "kinds.py").write_text(KINDS)
    (lab / "notes.txt").write_text("included")
    return lab


def parsed(content: dict[str, Any], folder: Path) -> Spec:
    return parse_spec(dump(content), source="search.yaml", folder=folder)


@given(content=studies(), seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_winners_file_plans_the_confirmed_trials_for_values_of_every_kind(kinds, content, seed):
    """For any search and choices, the winner's file plans exactly the confirming trials, so that none is pending."""
    spec = parsed(content, kinds)
    space, rng = Space(spec), random.Random(seed)
    params = space.choose(lambda parameter: drawn(parameter, rng))
    record = Record("", "", (Candidate(0, 0, params, space.cell(params).id),), (0,))
    winner = from_json(to_json(record), "search.json").candidates[0]
    planned = make_plan(parse_spec(winner_file(spec, winner), source="winner.yaml", folder=kinds))
    confirmed = {Trial(space.cell(params), seed).id for seed in planned_seeds(spec).fresh}
    assert {trial.id for trial in planned.trials} == confirmed


LISTED = {
    "study": "listed",
    "train": "mylab.kinds:train",
    "metrics": {"loss": "lower"},
    "fixed": {"needed": None},
    "ranges": {
        "layers": {"choices": [[1], [2, 2], [3, 3, 3], []]},
        "shape": {"choices": [[1, 1.0], [2, 2.0]]},
        "either": {"choices": ["1", 1, True, None]},
        "maybe": {"choices": [None, 0.0, 1e-05]},
    },
    "seeds": 3,
    "search": {"objective": "loss", "trials": 60, "candidates": 8, "first_seeds": 3, "confirm_seeds": 3},
}


@pytest.mark.parametrize("sampler", ["TPE", "NSGA-II", "random"])
def test_a_stopped_search_among_lists_goes_on_with_the_same_suggestions(kinds, sampler):
    """A stopped search repeats stored choices exactly, even lists and values that Python equates, like 1 and True."""
    spec = parsed(LISTED | {"search": LISTED["search"] | {"sampler": sampler}}, kinds)
    with warnings.catch_warnings(record=True) as caught:
        suggestions, space, candidates = Suggestions(Space(spec), spec.search), Space(spec), []
        for number in range(30):
            params, value = suggestions.ask(), (float(number % 7),)
            suggestions.tell(number, value)
            candidates.append(Candidate(number, number, params, space.cell(params).id, None, 3, value))
        stored = from_json(to_json(Record("", "", tuple(candidates))), "search.json")
        resumed, is_exact = resume(space, spec.search, stored)
        assert is_exact
        assert json.dumps(resumed.ask()) == json.dumps(suggestions.ask())
        assert importance(spec, stored.candidates)["loss"].keys() == spec.ranges.explicit.keys()
    assert [str(item.message) for item in caught] == []
    assert {repr(item.params["either"]) for item in candidates} == {"'1'", "1", "True", "None"}


@pytest.mark.usefixtures("figures")
def test_a_search_among_lists_ends_with_its_report_and_a_winner_that_is_done(kinds, tmp_path, monkeypatch):
    """The complete path: search, report with importance, and `study plan winner.yaml` in the same store."""
    monkeypatch.chdir(kinds)
    Path("listed.yaml").write_text(dump(LISTED))
    options = ["--store", str(tmp_path / "studies")]
    searched = invoke("search", "listed.yaml", "--local", "--tracking-uri", "off", *options)
    assert searched.exit_code == 0, searched.output
    assert "Parameter importance (PED-ANOVA): " in searched.output
    assert "Warning" not in searched.output
    report = tmp_path / "studies" / "listed" / "report"
    assert "search-importance.svg" in {path.name for path in report.iterdir()}
    Path("winner.yaml").write_bytes((report / "winner.yaml").read_bytes())
    planned = invoke("plan", "winner.yaml", "--quick", "--json", *options)
    plan = json.loads(planned.output)
    assert (plan["trials"], plan["done"], plan["left"]) == (3, 3, 0)
