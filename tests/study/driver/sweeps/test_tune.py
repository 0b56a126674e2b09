"""Ray Tune's search spaces as study files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import study
from study.driver.sweeps import sweep_of_tune
from study.spec import load_spec
from tests.commands import invoke

# Ray, Optuna and MLflow must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAM = """
from study import seeded

@seeded
def train(seed, lr=0.1, width=8, activation="relu", rate=0.5):
    return {"loss": lr + seed / width + rate}
"""


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lab.py").write_text(PROGRAM)


def write(space: object) -> Path:
    """Write a search space as the documentation tells users to."""
    with Path("space.json").open("w", encoding="utf-8") as file:
        json.dump(space, file, default=study.plain_domain)
    return Path("space.json")


def test_each_space_has_its_range():
    """Each kind of search space of Ray Tune becomes a range of the same span."""
    from ray import tune

    space = {
        "uniform": tune.uniform(0, 1),
        "quniform": tune.quniform(0, 1, 0.25),
        "loguniform": tune.loguniform(1e-4, 0.1),
        "qloguniform": tune.qloguniform(5, 100, 5),
        "choice": tune.choice(["a", "b"]),
        "randint": tune.randint(1, 10),
        "qrandint": tune.qrandint(0, 10, 5),
        "lograndint": tune.lograndint(1, 100),
        "qlograndint": tune.qlograndint(1, 100, 1),
        "randn": tune.randn(0, 1),
        "qrandn": tune.qrandn(1, 2, 0.5),
        "nested": {"seed": tune.randint(0, 5), "x": {"y": tune.grid_search([1, 2])}},
        "constant": 3,
    }
    sweep = sweep_of_tune(write(space))
    assert sweep.ranges == {
        "uniform": {"low": 0.0, "high": 1.0},
        "quniform": {"low": 0.0, "high": 1.0, "step": 0.25},
        "loguniform": {"low": 0.0001, "high": 0.1, "scale": "log"},
        "qloguniform": {"low": 5, "high": 100, "scale": "log"},
        "choice": {"choices": ["a", "b"]},
        "randint": {"low": 1, "high": 9},
        "qrandint": {"low": 0, "high": 10, "step": 5},
        "lograndint": {"low": 1, "high": 99, "scale": "log"},
        "qlograndint": {"low": 1, "high": 99, "scale": "log"},
        "randn": {"low": -2.0, "high": 2.0},
        "qrandn": {"low": -3.0, "high": 5.0},
        "nested.x.y": {"choices": [1, 2]},
    }
    assert sweep.fixed == {"constant": 3}
    assert sweep.seeds == "0-4"
    for name in ("qloguniform", "randn", "qrandn", "grid_search"):
        assert any(name in note for note in sweep.notes)


def test_a_search_of_a_function_runs():
    """A search takes its objective from the function's first report, and runs to its end."""
    from ray import tune

    write({"lr": tune.loguniform(1e-4, 0.1), "rate": tune.uniform(0, 1), "activation": tune.choice(["relu", "tanh"])})
    made = invoke("new", "mine", "--from-tune", "space.json", "--train", "lab:train")
    assert made.exit_code == 0, made.output
    ran = invoke("run", "mine.yaml", "search.trials=60", "search.confirm_seeds=2", "--local", "--tracking-uri", "off")
    assert ran.exit_code == 0, ran.output
    assert "60 trials" in ran.output


def test_only_grid_searches_become_a_grid():
    """Each combination is run, as in Ray Tune; an untranslated function is named."""
    from ray import tune

    write({"lr": tune.grid_search([0.1, 0.2]), "width": tune.grid_search([4, 8])})
    assert invoke("new", "mine", "--from-tune", "space.json", "--train", "lab:train").exit_code == 0
    assert load_spec("mine.yaml").grid.explicit == {"lr": [0.1, 0.2], "width": [4, 8]}
    ran = invoke("run", "mine.yaml", "seeds=2", "--local", "--tracking-uri", "off")
    assert "8/8 trials" in ran.output, ran.output
    sweep = sweep_of_tune(write({"lr": tune.sample_from(lambda spec: 1), "x": tune.uniform(0, 1)}))
    assert any(note.startswith("lr is the function") for note in sweep.notes)


def test_a_function_without_the_arguments_of_the_sweep_is_refused():
    """The unknown argument is named, and nothing is written."""
    write({"lrr": {"grid_search": [1, 2]}})
    refused = invoke("new", "mine", "--from-tune", "space.json", "--train", "lab:train")
    assert refused.exit_code == 2
    assert "lab:train has no argument lrr; it has lr, width, activation, rate" in refused.output
    assert not Path("mine.yaml").exists()


def test_a_file_without_a_program_is_refused():
    """`study plan` names the missing command."""
    write({"lr": {"grid_search": [1, 2]}})
    assert invoke("new", "mine", "--from-tune", "space.json").exit_code == 0
    refused = invoke("plan", "mine.yaml")
    assert refused.exit_code == 2
    assert "must be the command of a trial" in refused.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"lr": {"uniform": [1]}}', "lr: uniform must have 2 numbers"),
        ('{"lr": {"uniform": [1, "a"]}}', "lr: uniform must have 2 numbers"),
        ('{"lr": {"loguniform": [0, 1]}}', "lr: loguniform must have lower > 0"),
        ('{"lr": {"randint": [3, 3]}}', "lr: randint must have lower < upper"),
        ('{"lr": {"quniform": [1, 2, 0]}}', "lr: quniform must have q > 0"),
        ('{"seed": {"qrandint": [0, 1000000, 2]}}', "must have a whole step, and at most 10,000 values with it"),
        ('{"n": {"randint": [0, .inf]}}', "limits must be finite numbers"),
        ('{"lr": {"choice": []}}', "lr: choice must have a list of values"),
        ('{"lr": {"unifrom": [1, 2]}}', "did you mean 'uniform'?"),
        ("[1, 2]", "must be a param_space"),
        ("{", "line 1"),
    ],
)
def test_a_wrong_space_is_an_error(text, message):
    """The error has the given value and the rule; nothing is written."""
    Path("space.json").write_text(text)
    refused = invoke("new", "mine", "--from-tune", "space.json")
    assert refused.exit_code == 2
    assert message in refused.output
    assert not Path("mine.yaml").exists()


def test_a_value_that_is_not_a_space_is_refused():
    """`plain_domain` raises on values that are neither JSON nor a search space."""
    with pytest.raises(TypeError, match="must be JSON, or a search space"):
        write({"lr": {1, 2}})
