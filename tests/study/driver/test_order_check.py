"""The check before training that a function's results don't depend on the order of trials."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
import yaml

from study.console import Console
from study.driver import order_check
from study.driver.options import Options
from study.plan.plan import make_plan
from study.results.load import load_results
from study.results.order_note import OrderNote, read_order_note, write_order_note
from study.run import Ending, run
from study.spec import Spec, parse_spec
from study.spec.function_tables import FunctionSpec
from study.store import Store

LEAKY = """
import os
import random
import time

import numpy as np

from study import seeded

RNG = np.random.default_rng(0)
PYTHON = random.Random(0)
WEIGHTS = np.zeros(3)
COUNTS = {"calls": 0}


class Normaliser:
    scale = 1.0


def collected(value, values=[]):
    values.append(value)
    return sum(values)


@seeded
def generator(seed):
    return {"loss": RNG.random()}


@seeded
def python_generator(seed):
    return {"loss": PYTHON.random()}


@seeded
def array(seed):
    global WEIGHTS
    WEIGHTS += seed + 1
    return {"loss": WEIGHTS.sum()}


@seeded
def counter(seed):
    COUNTS["calls"] += 1
    for step in range(4):
        yield {"step": step, "loss": COUNTS["calls"] + step}


@seeded
def class_attribute(seed):
    Normaliser.scale *= 0.5
    return {"loss": Normaliser.scale}


@seeded
def default_argument(seed):
    return {"loss": collected(seed + 1)}


@seeded
def fails_after_another(seed):
    if COUNTS["calls"]:
        raise RuntimeError("the graph has been built already")
    COUNTS["calls"] += 1
    return {"loss": 1.0}


@seeded
def endless(seed):
    step = 0
    while True:
        yield {"step": step, "loss": RNG.random()}
        step += 1


@seeded
def clean(seed):
    WEIGHTS[:] = seed
    return {"loss": WEIGHTS.sum() + random.random() + np.random.random()}


@seeded
def not_a_number(seed):
    yield {"step": 0, "loss": 1.0}
    yield {"step": 1, "loss": float("nan")}


@seeded
def endless_and_clean(seed):
    step = 0
    while True:
        yield {"step": step, "loss": random.random()}
        step += 1


@seeded
def without_seed(seed):
    return {"loss": np.random.default_rng().random()}


@seeded
def fails(seed):
    raise ValueError("no data")


@seeded
def dies(seed):
    os._exit(0)


@seeded
def hangs(seed):
    while True:
        time.sleep(1)
"""


@pytest.fixture(name="study_of")
def _study_of(lab: Path) -> Callable[..., Spec]:
    """Return a function that parses a study of one of the functions."""
    (lab / "leaky.py").write_text(LEAKY)

    def study_of(function: str, **more: object) -> Spec:
        content = {"study": "leaky", "train": f"leaky:{function}", "metrics": {"loss": "lower"}, "seeds": 3} | more
        return parse_spec(yaml.safe_dump(content), source="leaky.yaml", folder=lab)

    return study_of


def checked(spec: Spec) -> tuple[str, str]:
    """Check a study, and return the verdict and its sentence."""
    assert isinstance(spec, FunctionSpec)
    with order_check.order_check(spec) as conclude:
        return conclude(make_plan(spec).trials[:2])


@pytest.mark.parametrize(
    ("function", "left_behind"),
    [
        ("generator", "leaky.RNG (Generator)"),
        ("python_generator", "leaky.PYTHON (Random)"),
        ("array", "leaky.WEIGHTS (ndarray)"),
        ("counter", "leaky.COUNTS (dict)"),
        ("class_attribute", "leaky.Normaliser.scale (float)"),
        ("default_argument", "leaky.collected (a function's defaults or attributes)"),
        ("endless", "leaky.RNG (Generator)"),
    ],
)
def test_state_that_leaks_between_trials_is_named(
    study_of: Callable[..., Spec], function: str, left_behind: str
) -> None:
    """The sentence has the seeds, both values, the changed state and the remedy; first steps suffice."""
    verdict, sentence = checked(study_of(function))
    assert verdict == "differs"
    assert "seed 1 gave loss" in sentence
    assert "after seed 0" in sentence
    assert left_behind in sentence
    assert "`isolation: process`" in sentence


def test_a_failure_after_another_trial_is_a_leak(study_of: Callable[..., Spec]) -> None:
    """A trial that trains alone but fails after another one is reported with its error."""
    verdict, sentence = checked(study_of("fails_after_another"))
    assert verdict == "differs"
    assert "no error when it was trained first" in sentence
    assert "RuntimeError: the graph has been built already" in sentence


@pytest.mark.parametrize("function", ["clean", "endless_and_clean", "not_a_number"])
def test_trials_that_depend_only_on_their_seeds_pass(study_of: Callable[..., Spec], function: str) -> None:
    """State that each trial resets, global generators and diverged trials pass the check."""
    assert checked(study_of(function)) == ("same", "")


def test_an_unseeded_generator_is_not_a_leak(study_of: Callable[..., Spec]) -> None:
    """A generator without a seed is reported as such, since a separate process wouldn't help."""
    verdict, sentence = checked(study_of("without_seed"))
    assert verdict == "unrepeatable"
    assert "a generator without a seed" in sentence
    assert "isolation" not in sentence


@pytest.mark.parametrize(
    ("function", "reason"),
    [("fails", "ValueError: no data (leaky.py:"), ("dies", "exit code 0"), ("hangs", "it took longer than")],
)
def test_uncheckable_trials_are_left_to_verify(
    study_of: Callable[..., Spec], monkeypatch: pytest.MonkeyPatch, function: str, reason: str
) -> None:
    """A trial that fails, exits its process or takes long prevents only the check's verdict."""
    monkeypatch.setattr(order_check, "_TRIAL_S", 0.5 if function == "hangs" else 60.0)
    verdict, sentence = checked(study_of(function))
    assert verdict == "unknown"
    assert reason in sentence
    assert "`study verify leaky`" in sentence


def trained(spec: Spec, store: Path) -> str:
    """Run a study in this process, and return its output."""
    text = StringIO()
    options = Options(store, None, local=True, pack_size=1)
    assert run(make_plan(spec), options, Console(file=text, width=1000)) is Ending.FINISHED
    return text.getvalue()


def test_a_run_warns_and_its_report_says_so(study_of: Callable[..., Spec], tmp_path: Path) -> None:
    """The warning precedes training, stays for the same code, and disappears with code without a leak."""
    store = tmp_path / "studies"
    warning = "Results depend on the order of trials"
    output = trained(study_of("counter"), store)
    assert output.index(warning) < output.index("3/3 trials")
    results = load_results("leaky", store)
    assert any(warning in note for note in results.notes)
    assert warning in (store / "leaky" / "report" / "report.md").read_text()
    assert sorted(results.table["loss"].to_pylist()) == [1, 2, 3]  # the check has counted in another process
    assert warning in trained(study_of("counter", seeds=5), store)
    assert warning not in trained(study_of("clean"), store)
    assert not any(warning in note for note in load_results("leaky", store).notes)


def test_a_verdict_is_kept_for_the_same_code(study_of: Callable[..., Spec], lab: Path, tmp_path: Path) -> None:
    """Additional seeds need no new check; changed code does."""
    store = tmp_path / "studies"
    trained(study_of("clean"), store)
    folder = Store(store).study("leaky")
    note = read_order_note(folder)
    assert note is not None
    write_order_note(OrderNote(note.key, "unknown", "kept from before"), folder)
    assert "kept from before" in trained(study_of("clean", seeds=4), store)
    (lab / "leaky.py").write_text(LEAKY.replace("WEIGHTS[:] = seed", "WEIGHTS[:] = 2 * seed"))
    assert "kept from before" not in trained(study_of("clean"), store)


def test_isolated_trials_are_not_checked(study_of: Callable[..., Spec], tmp_path: Path) -> None:
    """Isolated trials share no state, and aren't checked."""
    store = tmp_path / "studies"
    assert "order of trials" not in trained(study_of("counter", isolation="process"), store)
    assert set(load_results("leaky", store).table["loss"].to_pylist()) == {1}
