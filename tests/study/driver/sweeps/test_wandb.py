"""W&B's sweep configurations as study files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from study.driver.sweeps import sweep_of_wandb
from study.spec import load_spec
from study.spec.document import as_yaml, read
from tests.commands import invoke

# Optuna and MLflow must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAM = """
import argparse, json, random
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--model.width", type=int, dest="width")
parser.add_argument("--fast", choices=["True", "False"])
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out-dir", default=".")
args = parser.parse_args()
loss = random.Random(args.seed).random() / args.width + args.lr
json.dump({"val/loss": loss}, open(args.out_dir + "/metrics.json", "w"))
"""
PARAMETERS = {
    "lr": {"distribution": "log_uniform_values", "min": 0.0001, "max": 0.1},
    "model": {"parameters": {"width": {"distribution": "q_uniform", "min": 8, "max": 64, "q": 8}}},
    "fast": {"values": [True, False]},
    "seed": {"values": [3, 1, 2]},
}


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)


def write(**content: Any) -> Path:
    """Write a sweep configuration; keyword arguments replace parts of it."""
    Path("sweep.yaml").write_text(
        as_yaml({"program": "train.py", "method": "random", "parameters": PARAMETERS} | content)
    )
    return Path("sweep.yaml")


def test_a_random_sweep_is_a_search_that_runs():
    """Ranges, nested names, seeds, metric and budget are those of the sweep, and the run ends."""
    write(metric={"name": "val/loss", "goal": "minimize"}, run_cap=20)
    made = invoke("new", "mine", "--from-wandb", "sweep.yaml")
    assert made.exit_code == 0, made.output
    spec = load_spec("mine.yaml")
    ranges = {name: domain.model_dump(exclude_unset=True) for name, domain in spec.ranges.explicit.items()}
    assert ranges == {
        "lr": {"low": 0.0001, "high": 0.1, "scale": "log"},
        "model.width": {"low": 8, "high": 64, "step": 8},
        "fast": {"choices": [True, False]},
    }
    assert list(spec.first_seeds) == [1, 2, 3]
    assert (spec.search.objective, spec.search.trials, spec.search.sampler) == (("val/loss",), 20, "random")
    ran = invoke("run", "mine.yaml", "search.confirm_seeds=2", "--local", "--tracking-uri", "off")
    assert ran.exit_code == 0, ran.output
    assert "20 trials" in ran.output


def test_a_grid_runs_each_combination():
    """Integers between limits are listed, and a single value is fixed."""
    parameters = {
        "lr": {"value": 0.1},
        "model": {"parameters": {"width": {"min": 1, "max": 3}}},
        "fast": {"values": [True]},
    }
    write(method="grid", parameters=parameters, metric={"name": "val/loss"})
    assert invoke("new", "mine", "--from-wandb", "sweep.yaml").exit_code == 0
    spec = load_spec("mine.yaml")
    assert spec.fixed.explicit == {"lr": 0.1, "fast": True}
    assert spec.grid.explicit == {"model.width": [1, 2, 3]}
    ran = invoke("run", "mine.yaml", "seeds=2", "--local", "--tracking-uri", "off")
    assert "6/6 trials" in ran.output, ran.output


@pytest.mark.parametrize(
    ("parameter", "domain"),
    [
        ({"min": 1, "max": 4}, {"low": 1, "high": 4}),
        ({"min": 0.0, "max": 1.0}, {"low": 0.0, "high": 1.0}),
        ({"min": 0, "max": 1.0}, {"low": 0.0, "high": 1.0}),
        ({"distribution": "uniform", "min": 0, "max": 1}, {"low": 0.0, "high": 1.0}),
        ({"distribution": "int_uniform", "min": 2, "max": 2}, 2),
        ({"distribution": "categorical", "values": ["a", "b"]}, {"choices": ["a", "b"]}),
        ({"distribution": "constant", "value": "a"}, "a"),
        ({"distribution": "log_uniform", "min": 0, "max": 1}, {"low": 1.0, "high": 2.71828182846, "scale": "log"}),
        ({"distribution": "inv_log_uniform", "min": 0, "max": 1}, {"low": 0.367879441171, "high": 1.0, "scale": "log"}),
        ({"distribution": "q_log_uniform_values", "min": 8, "max": 64, "q": 1}, {"low": 8, "high": 64, "scale": "log"}),
        ({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0.25}, {"low": 0.0, "high": 1.0, "step": 0.25}),
        ({"distribution": "normal", "mu": 1, "sigma": 2}, {"low": -3.0, "high": 5.0}),
    ],
)
def test_each_distribution_has_its_range(parameter, domain):
    """A parameter becomes a range, choices or a value, equal to W&B's."""
    sweep = sweep_of_wandb(write(parameters={"x": parameter}))
    assert (sweep.ranges | sweep.fixed) == {"x": domain}


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("${args}", ["--lr={lr}", "--fast={fast:True|False}", "--seed={seed}"]),
        ("${args_no_hyphens}", ["lr={lr}", "fast={fast:True|False}", "seed={seed}"]),
        ("${args_no_boolean_flags}", ["--lr={lr}", "{fast:--fast}", "--seed={seed}"]),
        ("${args_no_equals}", ["--lr", "{lr}", "--fast", "{fast:True|False}", "--seed", "{seed}"]),
        ("${args_append_hydra}", ["+lr={lr}", "+fast={fast:True|False}", "+seed={seed}"]),
        ("${args_json}", ['{ "lr": {lr}, "fast": {fast}, "seed": {seed} }']),
        ("${args_json_file}", ["{config}"]),
        ("--x={y}", ["--x={{y}}"]),
    ],
)
def test_each_macro_of_the_command_is_filled_in(word, words):
    """The arguments are those of W&B's agent."""
    parameters = {"lr": {"values": [1, 2]}, "fast": {"values": [True, False]}, "seed": {"values": [1, 2]}}
    sweep = sweep_of_wandb(write(parameters=parameters, command=["${env}", "${interpreter}", "${program}", word]))
    assert sweep.words == ["python", "train.py", *words]


@pytest.mark.parametrize(
    ("settings", "prune"),
    [
        ({"min_iter": 3}, {"method": "halving", "first": 3}),
        ({"min_iter": 4, "eta": 2}, {"method": "halving", "first": 4, "factor": 2}),
        ({"max_iter": 27, "s": 2}, {"method": "halving", "first": 3}),
        ({"max_iter": 5, "s": 3, "eta": 2, "min_iter": 9}, {"method": "halving", "first": 1, "factor": 2}),
    ],
)
def test_early_termination_is_halving(settings, prune):
    """Trials are first compared where W&B compares them; the file has the keys of `prune`."""
    write(early_terminate={"type": "hyperband"} | settings, metric={"name": "val/loss"})
    assert invoke("new", "mine", "--from-wandb", "sweep.yaml").exit_code == 0
    assert read(Path("mine.yaml").read_text()).data["prune"] == prune
    rule = load_spec("mine.yaml").pruning
    assert (rule.first, rule.factor) == (prune["first"], prune.get("factor", 3))


def test_unsupported_parts_are_named():
    """Each change or omission is a comment of the file and a line on stderr."""
    write(
        method="bayes",
        early_terminate={"type": "hyperband", "min_iter": 3},
        entity="lab",
        project="mine",
        parameters={
            "lr": {"distribution": "normal", "mu": 0, "sigma": 1},
            "model": PARAMETERS["model"],
            "fast": {"value": None},
        },
        command=["${interpreter}", "${program}", "${args}", "--key=${envvar:KEY}"],
    )
    made = invoke("new", "mine", "--from-wandb", "sweep.yaml")
    comments = [line for line in Path("mine.yaml").read_text().splitlines() if line.startswith("# Check: ")]
    words = (
        "early_terminate becomes halving from step 3",
        "entity lab",
        "project mine",
        "normal with mu 0",
        "bayes",
        "${envvar:KEY}",
        "nested",
        "text None",
    )
    for phrase in words:
        assert any(phrase in comment for comment in comments), phrase
        assert phrase in made.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"method": ["grid"]}, "method must be grid, random or bayes, but is ['grid']"),
        ({"method": "gird"}, "method must be grid, random or bayes, but is 'gird'; did you mean 'grid'?"),
        ({"parameters": {"lr": {"mn": 1, "max": 2}}}, "parameters.lr: must have only"),
        ({"parameters": {"lr": {"min": 1}}}, "parameters.lr: uniform needs min and max; add max"),
        ({"parameters": {"lr": {"min": 3, "max": 2}}}, "min <= max must hold, but got 3 and 2"),
        ({"parameters": {"lr": {"values": []}}}, "values must be a list with at least one value"),
        ({"parameters": {"lr": 3}}, "parameters.lr: must be a table"),
        ({"parameters": {"lr": {"min": "1e", "max": 2}}}, "min must be a number, but is '1e'"),
        ({"parameters": {"lr": {"distribution": "beta", "min": 1, "max": 2}}}, "'beta' isn't one of W&B's"),
        ({"method": "grid", "parameters": {"lr": {"min": 0.1, "max": 2}}}, "a grid takes value, values"),
        ({"parameters": {"seed": {"values": [1, "b"]}}}, "seed is the seed: values must be whole numbers from 0"),
        ({"parameters": 3}, "must be a sweep configuration of W&B"),
        ({"metric": "loss"}, "metric must have a name"),
        ({"early_terminate": {"type": "median"}}, "early_terminate must be a table with type: hyperband"),
        ({"early_terminate": {"type": "hyperband", "max_iter": 9}}, "must have max_iter and s, or min_iter alone"),
        ({"early_terminate": {"type": "hyperband", "min_iter": 0}}, "min_iter must be a whole number of at least 1"),
        ({"run_cap": 0}, "run_cap must be a whole number of at least 1"),
    ],
)
def test_a_wrong_configuration_is_an_error(content, message):
    """The error has the given value and the rule; nothing is written."""
    write(**content)
    refused = invoke("new", "mine", "--from-wandb", "sweep.yaml")
    assert refused.exit_code == 2
    assert message in refused.output
    assert not Path("mine.yaml").exists()


def test_invalid_names_are_changed():
    """The program gets its own names; a hyperparameter never shares its name with a table."""
    two = {"values": [1, 2]}
    sweep = sweep_of_wandb(write(parameters={"model": two, "model.width": two, "a b": two, "1st": two, "opt": two}))
    assert sweep.words[2:] == [
        "--model={model_}", "--model.width={model.width}", "--a b={a_b}", "--1st={p_1st}", "--opt={opt}",
    ]  # fmt: skip
    sweep = sweep_of_wandb(write(parameters={"opt": two, "opt.lr": two}))
    assert list(sweep.ranges) == ["opt", "opt-lr"]


def test_a_missing_program_is_a_note():
    """The file is written without the program, with a note to correct it."""
    write(program="other.py", metric={"name": "loss"})
    made = invoke("new", "mine", "--from-wandb", "sweep.yaml")
    assert made.exit_code == 0
    assert "the command names other.py" in made.stderr
    assert read(Path("mine.yaml").read_text()).data["command"].startswith("python other.py --lr={lr}")
    refused = invoke("new", "more", "--from-wandb", "sweep.yaml", "--command", "python another.py")
    assert refused.exit_code == 2
    assert "the command names another.py" in refused.output
