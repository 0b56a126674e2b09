"""Pruned trials: the rule, their results, their reports, and trials that are never stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import study
from study.driver.repeat import repeat
from study.engine.calls.trial import CallTrial
from study.engine.function.training import FunctionTraining
from study.errors import InputError, SpecError, StoreError
from study.interface.declarations import Metric
from study.interface.pruning import Comparison, Pruning
from study.records import Outcome
from study.store import Store
from study.store.rungs import StoredRungs

CODE = """\
from study import seeded

@seeded
def train(seed, *, rate: float):
    for step in range(1, 28):
        yield {"step": step, "loss": rate + 1 / step}

@seeded
def noisy(seed, *, rate: float):
    for report in train(seed, rate=rate):
        yield report | {"loss": report["loss"] + seed / 10}

@seeded
def worse_later(seed, *, rate: float):
    for report in train(seed, rate=rate):
        yield report | {"loss": report["loss"] + (10 if seed >= 4 else 0)}
"""
PROGRAM = """\
import json, sys, time
with open("results.jsonl", "w") as file:
    for step in range(1, 28):
        print(json.dumps({"step": step, "loss": float(sys.argv[1]) + 1 / step}), file=file, flush=True)
    while float(sys.argv[1]) > 1:  # a worse program never ends by itself
        time.sleep(0.01)
"""
FUNCTION = {"train": "lab:train", "iterations": 27}
RATES = [0.0, 1.0, 2.0]
PRUNE = {"first": 3, "after": 1}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("lab.py").write_text(CODE)
    Path("program.py").write_text(PROGRAM)
    return tmp_path


def loaded(called: dict[str, Any] = FUNCTION, **tables: Any) -> study.Study:
    content = {"study": "pruned", **called, "metrics": {"loss": "lower"}, "seeds": 4, **tables}
    Path("study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return study.load("study.yaml", store="studies")


def outcomes(loaded: study.Study) -> dict[float, list[str]]:
    """Return the outcomes of each rate's trials, in the order of their seeds."""
    trials = loaded.trials().sort_values("seed")
    return {rate: list(trials[trials["rate"] == rate]["outcome"]) for rate in RATES}


@pytest.mark.parametrize("isolation", [{}, {"isolation": "process"}], ids=["in process", "isolated"])
def test_worse_settings_are_stopped(isolation: dict[str, str]) -> None:
    """With one worker and the best setting first, all other trials stop at the first rung, where their curves end."""
    pruned = loaded({**FUNCTION, **isolation}, prune=PRUNE, grid={"rate": RATES})
    pruned.run(local=True, cpus=1)
    outcomes_by_rate = outcomes(pruned)
    assert outcomes_by_rate[0.0] == ["finished"] * 4
    assert outcomes_by_rate[1.0] == outcomes_by_rate[2.0] == ["stopped"] * 4
    curves = pruned.curves()
    worst = pruned.trials().query("rate == 2.0")["trial_id"]
    assert curves[curves["trial_id"].isin(worst)].groupby("trial_id")["iteration"].max().eq(3).all()


def test_settings_take_turns() -> None:
    """In any order of the file, the worst setting is compared after few of its seeds."""
    pruned = loaded(prune=PRUNE, grid={"rate": RATES[::-1]})
    pruned.run(local=True, cpus=1)
    assert outcomes(pruned)[2.0] == ["finished", "stopped", "stopped", "stopped"]


def test_seeds_of_a_cell_do_not_compete() -> None:
    """Seeds of a cell don't compete: later seeds that are worse than its first still go on."""
    pruned = loaded({**FUNCTION, "train": "lab:noisy"}, prune=PRUNE, grid={"rate": RATES})
    pruned.run(local=True, cpus=1)
    assert outcomes(pruned) == {0.0: ["finished"] * 4, 1.0: ["stopped"] * 4, 2.0: ["stopped"] * 4}


def test_a_program_is_stopped() -> None:
    pruned = loaded(
        {"command": "python program.py {rate} {seed}", "results": {"file": "results.jsonl"}},
        prune={"method": "median", "first": 3, "after": 1},
        grid={"rate": [0.0, 2.0]},
        seeds=3,
    )
    pruned.run(local=True, cpus=1)
    trials = pruned.trials()
    assert list(trials[trials["rate"] == 2.0]["outcome"]) == ["stopped"] * 3
    assert list(trials[trials["rate"] == 0.0]["outcome"]) == ["finished"] * 3


def test_stopped_trials_are_not_counted_as_unsolved() -> None:
    """A row with stopped trials lacks rate and mean and isn't compared, and the finding says so."""
    pruned = loaded(prune=PRUNE, grid={"rate": RATES}, success={"loss": {"below": 0.1}})
    pruned.run(local=True, cpus=1)
    cells = pruned.cells().set_index("rate")
    assert list(cells["stopped"]) == [0, 4, 4]
    assert cells["success_rate"].isna().tolist() == [False, True, True]
    assert cells["loss_mean"].isna().tolist() == [False, True, True]
    assert cells["unsolved"].sum() == 0
    assert pruned.finding.startswith("rate 0: 4 of 4 trials")
    assert "8 of 12 trials were stopped early" in pruned.finding
    assert "2 of 3 cells have no rates" in pruned.finding


def test_without_pruning_trials_are_trained_to_their_end() -> None:
    """Without pruning, all trials train to their end; a second run, with or without pruning, trains nothing."""
    pruned = loaded(prune=PRUNE, grid={"rate": RATES})
    pruned.run(local=True, cpus=1)
    pruned.run(local=True)
    assert outcomes(pruned)[2.0] == ["stopped"] * 4
    unpruned = loaded(grid={"rate": RATES})
    unpruned.run(local=True)
    assert outcomes(unpruned) == {rate: ["finished"] * 4 for rate in RATES}
    assert not unpruned.trials()["trial_id"].duplicated().any()


def test_other_studies_do_not_adopt_stopped_trials() -> None:
    loaded(prune=PRUNE, grid={"rate": RATES}).run(local=True, cpus=1)
    other = loaded(study="other", grid={"rate": RATES})
    other.run(local=True)
    assert outcomes(other) == {rate: ["finished"] * 4 for rate in RATES}


def test_confirming_trials_are_never_stopped() -> None:
    """Confirming trials aren't stopped, even if they are worse than all earlier trials."""
    pruned = loaded(
        {**FUNCTION, "train": "lab:worse_later"},
        prune=PRUNE,
        ranges={"rate": {"low": 0.0, "high": 5.0}},
        search={"objective": "loss", "trials": 60, "candidates": 6, "first_seeds": 2, "confirm_seeds": 5},
    )
    pruned.run(local=True)
    trials = Store("studies").study("pruned").outcomes()
    stopped = {row["trial_id"] for row in trials.to_pylist() if row["outcome"] == str(Outcome.STOPPED)}
    assert stopped
    fresh = pruned.trials().query("seed >= 4")
    assert len(fresh) == 5
    assert not set(fresh["trial_id"]) & stopped


def test_a_stopped_trial_is_not_repeated() -> None:
    """`verify` skips stopped trials, whose comparisons weren't stored, and refuses one by name with the reason."""
    pruned = loaded(prune=PRUNE, grid={"rate": RATES})
    pruned.run(local=True, cpus=1)
    certificate = pruned.verify(share=1.0)
    assert (certificate.of, certificate.differing) == (4, [])
    stopped = pruned.trials().query("outcome == 'stopped'")["trial_id"]
    with pytest.raises(InputError, match="was stopped early because of other trials"):
        list(repeat(pruned.planned, "studies", [*stopped]))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"prune": {"metric": "los"}}, "must be one of the metrics, loss, but got 'los'; did you mean 'loss'?"),
        ({"prune": "best"}, "must be one of halving, median"),
        ({"prune": {"method": "median", "factor": 3}}, "factor isn't a setting of median"),
        ({"prune": {"factor": 1}}, "must be > 1, but got 1"),
        (
            {"prune": "halving", "success": {"loss": {"below": 1}}, "seeds": {"until": {"half_width": 0.1, "max": 9}}},
            "can't be combined with until, which needs trials that end by themselves",
        ),
    ],
)
def test_mistakes_are_named_with_their_rules(tables: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message.replace("?", r"\?")):
        loaded(grid={"rate": RATES}, **tables)


# --- the rule, and the state shared by workers


def rule(**settings: Any) -> Pruning:
    return Pruning(metric="loss", is_higher_better=False, **settings)


def test_halving_keeps_one_of_a_factor() -> None:
    """Halving keeps tied trials, and stops none before enough other trials have reached the rung."""
    halving = rule(method="halving", factor=3, after=2)
    assert not halving.stops(9.0, [1.0])
    others = [float(value) for value in range(8)]
    assert [halving.stops(value, others) for value in (-1.0, 2.5, 3.0, 3.5)] == [False, True, True, True]
    assert not halving.stops(0.0, [0.0] * 8)


def test_the_median_rule_compares_with_half_of_the_others() -> None:
    higher = Pruning(method="median", metric="accuracy", is_higher_better=True, first=5, every=10, after=1)
    assert [higher.rung(step) for step in (4, 5, 14, 15, 29)] == [None, 5, 5, 15, 25]
    assert [higher.stops(value, [0.2, 0.4, 0.6]) for value in (0.3, 0.4, 0.5)] == [True, False, False]


def losses(seed: int, resume: Any = None) -> Iterator[dict[str, Any]]:
    """Yield a loss that is best at step 5."""
    for step in range((resume or 0) + 1, 28):
        yield {"step": step, "loss": 0.2 if step == 5 else 2.0, "state": step}


def test_an_interrupted_trial_goes_on_with_its_best_value(folder: Path) -> None:
    """A resumed trial is compared by its best value, earlier ones included, and once at each rung."""
    rungs = StoredRungs(Store("studies").study("any")._folder, "lowest loss")
    halving = rule(method="halving", first=3, after=1)

    def call() -> CallTrial:
        compared = Comparison("trial", "cell", halving, rungs, 27)
        return CallTrial(seed=0, values={}, metrics={"loss": Metric()}, iterations=27, is_stopped_at=compared)

    first = FunctionTraining(losses, call(), state_every_s=0.0)
    while (first.advance(for_s=0.0).step or 0) < 7:
        pass
    rungs.add(3, "other", "better", 1.0)
    rungs.add(9, "other", "worse", 0.5)
    second = FunctionTraining(losses, call(), checkpoint=first.checkpoint())
    while not second.done:
        second.advance(for_s=1.0)
    assert rungs.values(9) == {"cell": {"trial": 0.2}, "other": {"worse": 0.5}}
    assert second.finish().was_stopped is False


def test_workers_see_each_others_values(folder: Path) -> None:
    """Workers see each other's values at each rung; a trial trained again replaces its value."""
    place = Store("studies").study("any")._folder
    first, second, other = (StoredRungs(place, compared) for compared in ("lowest loss", "lowest loss", "lowest error"))
    other.add(3, "cell", "c", 4.0)
    first.add(3, "cell", "a", 1.0)
    second.add(3, "cell", "b", 2.0)
    second.add(9, "cell", "b", 1.5)
    assert first.values(3) == second.values(3) == {"cell": {"a": 1.0, "b": 2.0}}
    assert first.values(9) == {"cell": {"b": 1.5}}
    assert StoredRungs(place, "lowest loss").values(27) == {}


def test_a_damaged_file_of_another_worker_is_named(folder: Path) -> None:
    place = Store("studies").study("any")._folder
    place.write("rungs/abc.json", b"[" * 100_000)
    with pytest.raises(StoreError, match=r"rungs/abc\.json can't be read: .*; remove it"):
        StoredRungs(place, "lowest loss").values(3)
