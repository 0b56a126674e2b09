"""Searches of a user's code by any metric, from the file to the page: choices and refusals."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from study.console import Console
from study.driver.options import Options
from study.errors import InputError, SpecError
from study.plan.plan import make_plan
from study.results.load import load_results
from study.run import Ending, run
from study.search import Searching
from study.spec import Spec
from study.summaries.search import NO_NUMBER
from tests.study.lab import packed_study, study_of

TRAIN = '''
import random

from study import seeded


@seeded
def train(seed, *, width: int = 4, rate: float = 0.1, shape: str = "round"):
    """Learn best at a width of 6 and a rate of 0.01; a rate above 0.3 diverges at odd seeds."""
    if rate > 0.3 and seed % 2:
        return {"loss": float("nan"), "accuracy": 0.0}
    loss = (width - 6) ** 2 + abs(rate - 0.01) + (shape == "square") + random.random() / 10
    return {"loss": loss, "accuracy": 1 / (1 + loss)}
'''
FILE = {
    "train": "mylab.search:train",
    "metrics": {"loss": "lower", "accuracy": {"better": "higher", "low": 0, "high": 1}},
    "success": None,
    "grid": None,
    "ranges": {
        "width": {"low": 1, "high": 8},
        "rate": {"low": 0.001, "high": 1.0, "scale": "log"},
        "shape": {"choices": ["round", "square"]},
    },
    "seeds": 12,
    "search": {"objective": "loss", "trials": 150, "candidates": 8, "first_seeds": 4, "confirm_seeds": 10},
}


def spec_of(lab: Path, **changed: Any) -> Spec:
    """Write the code, and parse the file with changed keys."""
    (lab / "mylab" / "search.py").write_text(TRAIN)
    return study_of(lab, **(FILE | changed))


def searched(spec: Spec, store: Path) -> str:
    """Run a search to its end, and return its output."""
    text = StringIO()
    options = Options(store, None, local=True, pack_size=8)
    assert run(make_plan(spec), options, Console(file=text), Searching(None)) is Ending.FINISHED
    return text.getvalue()


def test_a_search_by_a_loss_finds_the_least(lab: Path, tmp_path: Path) -> None:
    """Without a criterion, the best candidate is near the optimum; the page shows the loss and no success."""
    store = tmp_path / "studies"
    searched(spec_of(lab), store)
    results = load_results("mine", store)
    search = results.search
    assert search is not None
    assert search.objectives[0].title == "loss, median of all trials, upper end"
    best = next(candidate for candidate in search.candidates if candidate.number == search.front[0])
    assert (best.params["width"], best.params["shape"]) == (6, "round")
    assert all(candidate.values[0] >= best.values[0] for candidate in search.candidates)
    page = (store / "mine" / "report" / "report.html").read_text()
    assert "loss, median of all trials, upper end" in page
    assert "by fresh seeds: loss, median" in page
    assert "by fresh seeds: success rate" not in page
    assert results.headline.startswith(f"The best of {len(search.candidates)} candidates")
    assert "has a median loss of 0.0" in results.headline
    winner = (store / "mine" / "report" / "winner.yaml").read_text()
    assert "train: mylab.search:train" in winner


def test_diverged_candidates_rank_last_also_after_reading_files(lab: Path, tmp_path: Path) -> None:
    """A candidate without a number has a finite placeholder in the record, and `unknown` on the page."""
    store = tmp_path / "studies"
    spec = spec_of(lab, ranges={"rate": {"choices": [0.01, 0.02, 0.9]}, "width": {"choices": [6, 5]}})
    searched(spec, store)
    record = json.loads((store / "mine" / "search.json").read_text())
    values = {c["params"]["rate"]: c["values"][0] for c in record["candidates"] if c["values"]}
    assert values[0.9] >= NO_NUMBER > max(values[0.01], values[0.02])
    page = (store / "mine" / "report" / "report.html").read_text()
    assert "unknown" in page
    assert "1e+30" not in page
    assert searched(spec, store)  # the record is read again, and the sampler repeats it


def test_two_objectives_have_a_front(lab: Path, tmp_path: Path) -> None:
    """A loss and an accuracy are optimised together; every candidate has both, and the page shows the front."""
    store = tmp_path / "studies"
    search = FILE["search"] | {"objective": ["accuracy", "loss"]}  # type: ignore[operator]
    searched(spec_of(lab, search=search), store)
    findings = load_results("mine", store).search
    assert findings is not None
    assert [objective.is_higher_better for objective in findings.objectives] == [True, False]
    assert all(0 <= candidate.values[0] <= 1 < candidate.values[1] + 2 for candidate in findings.candidates)
    assert "accuracy, mean of all trials, lower end" in (store / "mine" / "report" / "report.html").read_text()


def test_other_code_is_another_search(lab: Path, tmp_path: Path) -> None:
    """A record made by other code is refused, and the message names the ways to continue."""
    store = tmp_path / "studies"
    searched(spec_of(lab, search=FILE["search"] | {"trials": 32}), store)  # type: ignore[operator]
    (lab / "mylab" / "search.py").write_text(TRAIN.replace("** 2", "** 4"))
    with pytest.raises(InputError, match="other code"):
        searched(study_of(lab, **(FILE | {"search": FILE["search"] | {"trials": 32}})), store)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("los", "must be one or several of success_rate, solved_at, time_to_success, loss, accuracy, but got 'los'; "),
        ("los", "did you mean 'loss'"),
        (["loss", "success_rate"], "success_rate needs a success criterion"),
        ([], "the list is empty"),
        (["loss", "loss"], "must be given only once"),
        ([3], "but got 3"),
    ],
)
def test_invalid_objectives_are_refused(lab: Path, objective: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec_of(lab, search={"objective": objective, "trials": 150})


def test_a_search_of_a_users_task_and_model(packed_lab: Path, tmp_path: Path) -> None:
    """Rates, sizes and optimisers are searched; every candidate has all three, and the report has a front."""
    store, ranges = tmp_path / "studies", {"learning_rate": {"low": 0.001, "high": 0.3, "scale": "log"}}
    spec = packed_study(
        packed_lab,
        models=["mylab.models:mlp"],
        fixed=None,
        ranges=ranges | {"hidden": {"low": 2, "high": 8}, "optimizer": {"choices": ["adam", "sgd"]}},
        seeds=8,
        search={"objective": ["test_accuracy", "validation_loss"], "trials": 40, "candidates": 4, "confirm_seeds": 4},
    )
    searched(spec, store)
    search = load_results("spirals", store).search
    assert search is not None
    assert [objective.statistic for objective in search.objectives] == ["mean", "median"]
    assert all(set(candidate.params) == {"learning_rate", "hidden", "optimizer"} for candidate in search.candidates)
    assert search.front
    assert (store / "spirals" / "report" / "candidates.csv").exists()
