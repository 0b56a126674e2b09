"""Optuna's studies as study files, and their finished trials as trials."""

from __future__ import annotations

import csv
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import study
from study.driver.sweeps import sweep_of_optuna
from study.records import IMPORTED
from study.spec import load_spec
from study.spec.document import read
from tests.commands import invoke

# Optuna and MLflow must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

DATABASE = "sqlite:///optuna.db"
PROGRAM = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--width", type=int)
parser.add_argument("--optimizer")
parser.add_argument("--momentum", type=float, default=0)
parser.add_argument("--random-seed", type=int, default=0)
args = parser.parse_args()
json.dump({"accuracy": args.lr * args.width + args.momentum + args.random_seed}, open("metrics.json", "w"))
"""


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial: optuna.Trial) -> float:
    """Return the program's metric."""
    lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
    width = trial.suggest_int("width", 4, 32, step=4)
    momentum = (
        trial.suggest_float("momentum", 0, 1) if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd" else 0
    )
    if trial.number == 3:
        raise optuna.TrialPruned
    return lr * width + momentum + trial.suggest_int("random_seed", 0, 2)


def plain(trial: optuna.Trial) -> float:
    """Return the program's metric for parameters that every trial has, with a seed in an attribute."""
    trial.set_user_attr("seed", trial.number % 2)
    lr = [0.1, 0.2][trial.number // 2 % 2]
    trial.suggest_float("lr", lr, lr)
    return lr * trial.suggest_int("width", 4, 4) + trial.suggest_categorical("momentum", [0.5]) + trial.number % 2


def optimize(function=objective, trials: int = 12, storage=DATABASE, **options) -> optuna.Study:
    """Run a study of Optuna."""
    sampler = optuna.samplers.RandomSampler(seed=0)
    options = options or {"direction": "maximize"}
    optuna_study = optuna.create_study(study_name="mine", storage=storage, sampler=sampler, **options)
    optuna_study.optimize(function, n_trials=trials)
    return optuna_study


@pytest.mark.parametrize("storage", [DATABASE, "journal.log"])
def test_ranges_conditions_and_directions_are_those_of_the_study(storage):
    """Logarithms, steps and choices become ranges; a parameter that only some trials have gets a condition."""
    optimize(storage=storage if "://" in storage else JournalStorage(JournalFileBackend(storage)))
    sweep = sweep_of_optuna(storage)
    assert sweep.ranges == {
        "lr": {"low": 0.0001, "high": 0.1, "scale": "log"},
        "width": {"low": 4, "high": 32, "step": 4},
        "optimizer": {"choices": ["sgd", "adam"]},
        "momentum": {"low": 0.0, "high": 1.0, "when": {"optimizer": "sgd"}},
    }
    assert sweep.seeds == "0-2"
    assert sweep.objectives == [("", "higher")]


def test_conditions_must_hold_in_all_trials():
    """A condition may have several values; parameters with many values, or in the same trials, aren't conditions."""

    def deep(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 0, 1)
        layers = trial.suggest_int("layers", 1, 3)
        trial.suggest_int("noise", 0, 10**6)
        widths = [trial.suggest_int(f"width_{layer}", 4, 8) for layer in range(layers)]
        if trial.number % 5 < 2:
            return trial.suggest_int("lucky", 0, 1) + len(trial.suggest_categorical("luckier", ["a", "bc"]))
        return sum(widths) + rate

    optimize(deep, 40)
    sweep = sweep_of_optuna(DATABASE)
    conditions = {name: domain.get("when") for name, domain in sweep.ranges.items()}
    assert set(conditions.pop("width_1")["layers"]) == {2, 3}
    assert {name: condition for name, condition in conditions.items() if condition} == {"width_2": {"layers": 3}}
    assert any(note.startswith("lucky is in 16 of 40 trials") for note in sweep.notes)


def test_a_search_with_a_program_runs():
    """The command gets the parameters by the program's option names, and the metric gets Optuna's direction."""
    optimize(lambda trial: trial.suggest_float("lr", 0, 1) * trial.suggest_int("width", 1, 8), 5)
    made = invoke("new", "mine", "--from-optuna", DATABASE, "--command", "python train.py")
    assert made.exit_code == 0, made.output
    spec = load_spec("mine.yaml")
    assert spec.command == "python train.py --lr {lr} --width {width} --random-seed {seed}"
    assert spec.metrics["accuracy"].better == "higher"
    done = invoke("run", "mine.yaml", "search.trials=60", "search.confirm_seeds=2", "--local", "--tracking-uri", "off")
    assert done.exit_code == 0, done.output
    assert "60 trials" in done.output


def test_names_and_directions_of_several_objectives_are_kept():
    """Each objective is a metric and an objective of the search."""
    optuna_study = optimize(lambda t: (t.suggest_float("lr", 0, 1), 1), 2, directions=["minimize", "maximize"])
    optuna_study.set_metric_names(["loss", "score"])
    assert invoke("new", "mine", "--from-optuna", DATABASE).exit_code == 0
    content = read(Path("mine.yaml").read_text()).data
    assert content["metrics"] == {"loss": "lower", "score": "higher"}
    assert content["search"]["objective"] == ["loss", "score"]


def test_the_file_of_a_study_with_conditions_runs():
    """A trial runs without the parameters that don't apply to it."""
    optimize()
    assert invoke("new", "mine", "--from-optuna", DATABASE, "--command", "python train.py").exit_code == 0
    done = invoke("run", "mine.yaml", "search.trials=60", "search.confirm_seeds=2", "--local", "--tracking-uri", "off")
    assert done.exit_code == 0, done.output
    with Path("studies/mine/report/candidates.csv").open(newline="") as file:
        candidates = list(csv.DictReader(file))
    assert {(row["optimizer"], row["momentum"] != "") for row in candidates} == {("adam", False), ("sgd", True)}


def test_finished_trials_are_imported_as_points():
    """Finished trials are imported with their values and seeds, not rerun, and reproduced by verify."""
    optimize()
    made = invoke("new", "mine", "--from-optuna", DATABASE, "--points", "--command", "python train.py")
    assert made.exit_code == 0, made.output
    with Path("mine.yaml").open("a") as file:
        file.write("version: 1\n")
    imported = invoke("import", "optuna", DATABASE, "mine.yaml")
    assert imported.output.startswith("mine: 11 trials imported"), imported.output
    verified = invoke("verify", "mine.yaml", "--share", "100%")
    assert "11 of 11 trials" in verified.output, verified.output
    assert "all have the stored bits" in verified.output


TWO = """
study: mine
command: python train.py --lr {lr} --width {width} --momentum {momentum} --random-seed {seed}
results: metrics.json
metrics: {accuracy: higher}
version: 1
fixed: {width: 4, momentum: 0.5}
grid: {lr: [0.1, 0.2]}
seeds: 2
"""


def test_imported_trials_are_not_rerun_and_name_their_source():
    """A run trains only missing trials; results and report name the source; verify reproduces the bits."""
    optimize(plain, 3)
    Path("mine.yaml").write_text(TWO)
    imported = invoke("import", "optuna", DATABASE, "mine.yaml")
    assert imported.output == f"mine: 3 trials imported from Optuna's study mine in {DATABASE}\n"
    repeated = invoke("import", "optuna", DATABASE, "mine.yaml")
    assert "mine: 0 trials imported" in repeated.output
    assert "3 runs of trials that already have a result" in repeated.output
    ran = invoke("run", "mine.yaml", "--local", "--tracking-uri", "off")
    assert "3 of 4 trials ran elsewhere and were imported" in ran.output.replace("\n", " ")
    table = study.open("mine").trials()
    assert sorted(table["engine"]) == [IMPORTED] * 3 + ["program"]
    verified = invoke("verify", "mine.yaml", "--share", "100%")
    assert "4 of 4 trials" in verified.output
    assert "all have the stored bits" in verified.output


def test_verify_reports_a_different_imported_trial():
    """Verify fails for an imported trial with another value, and says that it ran elsewhere."""
    optimize(lambda trial: plain(trial) + 1, trials=1)
    Path("mine.yaml").write_text(TWO)
    assert invoke("import", "optuna", DATABASE, "mine.yaml").exit_code == 0
    verified = invoke("verify", "mine.yaml", "--share", "100%")
    assert verified.exit_code == 1
    assert "it ran elsewhere and was imported" in verified.output


FILE = "study: mine\ncommand: python train.py --lr {lr}\nresults: metrics.json\nmetrics: {accuracy: higher}\nseeds: 2\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FILE + "fixed: {lr: 0.1}", "must have a version, such as version: 1"),
        (FILE + "version: 1\nfixed: {lr: 0.7}", "nothing was imported: 2 runs that match no planned trial"),
        (
            FILE.replace("{accuracy: higher}", "{accuracy: higher, loss: lower}") + "version: 1\nfixed: {lr: 0.1}",
            "metrics must be those of Optuna's study",
        ),
        (
            FILE + "version: 1\nranges: {lr: {low: 0.1, high: 0.2}}\n"
            "search: {objective: accuracy, trials: 60, first_seeds: 2}",
            "is a search, which chooses its own cells",
        ),
        ("study: mine\ntask: {name: simple}\nmodels: [NMU]\nseeds: 2", "must have a command or train"),
    ],
)
def test_results_of_another_study_are_refused(content, message):
    """A refused import writes nothing to the store."""
    optimize(plain, trials=2)
    Path("mine.yaml").write_text(content)
    refused = invoke("import", "optuna", DATABASE, "mine.yaml")
    assert refused.exit_code == 2
    assert message in refused.output
    assert not Path("studies/mine/results").exists()


def test_a_trial_without_a_seed_is_left_out():
    """Trials without a seed can't be identified and are left out."""
    optimize(lambda trial: trial.suggest_float("lr", 0.1, 0.1), trials=2)
    Path("mine.yaml").write_text(FILE + "version: 1\nfixed: {lr: 0.1}")
    refused = invoke("import", "optuna", DATABASE, "mine.yaml")
    assert refused.exit_code == 2
    assert "2 runs without a seed that is a whole number" in refused.output


def test_options_of_optuna_need_its_storage():
    """Options of Optuna are an error without a storage."""
    for words in (("--points",), ("--optuna-study", "mine")):
        refused = invoke("new", "mine", *words)
        assert refused.exit_code == 2
        assert "--optuna-study and --points need --from-optuna" in refused.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sqlite:///nothing.db",), "no such file: nothing.db"),
        (("nothing.log",), "no such file: nothing.log"),
        (("train.py",), "can't be read as a storage of Optuna"),
        (("sqlite:///train.py",), "DatabaseError: (sqlite3.DatabaseError) file is not"),
        ((DATABASE,), "has several studies: give --optuna-study, one of empty, mine"),
        ((DATABASE, "--optuna-study", "mein"), "has no study 'mein'; did you mean 'mine'?"),
        ((DATABASE, "--optuna-study", "empty"), "has 0 trials, and none has parameters"),
        (("postgresql://me:secret@host/optuna",), "must not hold a password"),
        ((DATABASE, "--from", "demo"), "--from-hydra and --from-tune can't be combined; give one"),
        ((DATABASE, "--from-tune", "space.json"), "--from-hydra and --from-tune can't be combined; give one"),
    ],
)
def test_a_wrong_storage_is_an_error(words, message):
    """The error has the given value and the rule; no file is written."""
    optimize(trials=1)
    optuna.create_study(study_name="empty", storage=DATABASE)
    before = set(Path().iterdir())
    refused = invoke("new", "mine", "--from-optuna", *words)
    assert refused.exit_code == 2
    assert message in refused.output
    assert set(Path().iterdir()) == before
