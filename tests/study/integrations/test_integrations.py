"""Training functions of docs/guides/integrations.md on real libraries: reports, ends and interruptions."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest

from study.integrations.reports import FILE, Reports
from study.interface.declarations import Metric
from study.interface.function import FunctionCall, Step
from study.interface.function.trial import Place, Trial
from study.store import Store
from tests.commands import CHECKPOINT, DEADLINE_S, blow, starting
from tests.study.builders import bits
from tests.study.integrations.conftest import LIBRARIES, PAGE, SHOWN

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the libraries

TIMES = ("_runtime", "_per_second")
Train = Callable[..., Any]


@pytest.fixture
def train(integration: str) -> Train:
    """Return the training function of an integration."""
    return function_of(integration)


@cache
def function_of(integration: str) -> Train:
    module = ModuleType(f"digits_{integration}")
    sys.modules[module.__name__] = module  # torch looks up the classes of a checkpoint there
    exec(compile(SHOWN[f"{module.__name__}.py"], str(PAGE), "exec"), vars(module))  # noqa: S102
    function: Train = module.train  # type: ignore[attr-defined]
    return function


def metric(integration: str) -> str:
    return "merror" if integration == "xgboost" else "accuracy"


def call(integration: str, train: Train, folder: Path, **more: Any) -> FunctionCall:
    folder.mkdir(exist_ok=True)
    place = Place(lambda: folder)
    return FunctionCall(train, seed=3, values={}, metrics={metric(integration): Metric()}, place=place, **more)


def steps(training: FunctionCall, last: int | None = None) -> list[Step]:
    """Return a call's steps without times; with `last`, interrupt it after it saved the state of that step."""
    collected: list[Step] = []
    while (report := training.next_step()) is not None:
        if isinstance(report, Step):
            numbers = {name: value for name, value in report.undeclared.items() if not name.endswith(TIMES)}
            collected.append(Step(report.step, report.metrics, None, numbers))
        elif collected and collected[-1].step == last:
            training.close()
    return collected


@cache
def undisturbed(integration: str) -> list[Step]:
    """Return the steps of an uninterrupted trial."""
    with TemporaryDirectory() as folder:
        return steps(call(integration, function_of(integration), Path(folder)))


def state_after(integration: str, train: Train, folder: Path, step: int) -> Any:
    """Interrupt a trial after it saved the state of a step; return that state."""
    interrupted = call(integration, train, folder)
    while not isinstance(report := interrupted.next_step(), Step) or report.step < step:
        pass
    saved: Any = interrupted.next_step()
    interrupted.close()
    return saved.state


def test_steps_are_counts_and_metrics_have_the_names_of_the_page(integration: str) -> None:
    reported = undisturbed(integration)
    first = reported[0].step
    assert [step.step for step in reported] == [first * count for count in range(1, len(reported) + 1)]
    assert first == (12 if integration == "huggingface" else 1)
    assert all(0 <= step.metrics[metric(integration)] <= 1 for step in reported)
    undeclared = {
        "lightning": {"train/loss"},
        "huggingface": {"loss", "eval_loss", "epoch", "grad_norm", "learning_rate"},
        "keras": {"loss", "val_loss", "train_accuracy"},
    }
    assert reported[-1].undeclared.keys() == undeclared.get(integration, set())


def test_training_stops_at_the_last_step_and_the_function_goes_on(
    integration: str, train: Train, tmp_path: Path
) -> None:
    """`iterations` ends training through the library's own interface, so that the function's later code still runs."""
    ended = []

    def trains(seed: int, trial: Trial) -> None:
        train(seed, trial=trial)
        ended.append(trial.last_step)

    everything = undisturbed(integration)
    last = everything[1].step
    assert steps(call(integration, trains, tmp_path / "stopped", iterations=last)) == everything[:2]
    assert ended == [last]


@pytest.mark.parametrize("share", [0, 0.6])
def test_an_interrupted_trial_has_the_bits_of_another_one(
    integration: str, train: Train, tmp_path: Path, share: float
) -> None:
    """A trial interrupted at a step, before the library wrote that step's checkpoint, resumes to equal bits."""
    everything = undisturbed(integration)
    count = 1 + int(share * len(everything))
    step = everything[count - 1].step
    saved = state_after(integration, train, tmp_path / "trial", step)
    assert steps(call(integration, train, tmp_path / "trial", resume=(step, saved))) == everything[count:]


@pytest.mark.parametrize("stored", [1, 3])
def test_steps_that_the_study_has_not_stored_are_reported_from_the_file(
    integration: str, train: Train, tmp_path: Path, stored: int
) -> None:
    """If the library's checkpoint is newer than the study's, missing steps are read from the library's file."""
    if integration == "sklearn":
        pytest.skip("the model is in the study's own checkpoint")
    everything = undisturbed(integration)
    step = everything[stored - 1].step
    state_after(integration, train, tmp_path / "trial", everything[-1].step)
    with (tmp_path / "trial" / FILE).open("a") as file:
        file.write("\n[99, {")  # a line cut off by a kill
    assert steps(call(integration, train, tmp_path / "trial", resume=(step, step))) == everything[stored:]
    lines = (tmp_path / "trial" / FILE).read_text().split("\n")
    assert sum(line.startswith(f"[{everything[-1].step},") for line in lines) == 1


def test_an_unfinished_checkpoint_is_passed_over(integration: str, train: Train, tmp_path: Path) -> None:
    """A trial killed while its library wrote a checkpoint resumes from the previous checkpoint."""
    if integration == "sklearn":
        pytest.skip("it writes no file")
    module = importlib.import_module(f"study.integrations.{integration}")
    everything = steps(call(integration, train, tmp_path / "trial"))
    trial = Trial(3, 1, 1, Place(lambda: tmp_path / "trial"))
    checkpoint = module.last_checkpoint(trial)
    newer = {
        "lightning": "checkpoints/step=999.ckpt",
        "huggingface": "checkpoint-999/trainer_state.json",
        "keras": "unfinished-checkpoint/model.weights.h5",
        "xgboost": "unfinished-checkpoint/model.ubj",
    }[integration]
    (tmp_path / "trial" / newer).parent.mkdir(exist_ok=True)
    (tmp_path / "trial" / newer).write_bytes(b'{"half": ')
    assert checkpoint is not None
    assert module.last_checkpoint(trial) == checkpoint
    assert steps(call(integration, train, tmp_path / "trial", resume=(everything[-1].step, 0))) == []


@pytest.mark.slow
@pytest.mark.timeout(3 * DEADLINE_S)
def test_a_study_that_is_struck_ends_with_the_undisturbed_bits(integration: str, tmp_path: Path) -> None:
    """`study run`, killed or interrupted in mid-trial, ends with the undisturbed bits when run again."""
    code = SHOWN[f"digits_{integration}.py"]
    for few, many in (("epochs=6", "epochs=60"), ("epochs=4", "epochs=30"), (", 25)", ", 400)"), ("1, 9)", "1, 200)")):
        code = code.replace(few, many)
    better = "lower" if integration == "xgboost" else "higher"
    content = {"study": "digits", "train": "digits:train", "metrics": {metric(integration): better}, "seeds": 1}
    words = ("run", "study.json", "--local", "--tracking-uri", "off", "--checkpoint-every-s", "0")
    ended = []
    for strike in (None, signal.SIGKILL, signal.SIGINT):
        folder = tmp_path / str(strike)
        folder.mkdir()
        (folder / "digits.py").write_text(code)
        (folder / "study.json").write_text(json.dumps(content))
        with starting(folder, XDG_CACHE_HOME=str(tmp_path / "cache")) as start:
            if strike is not None:
                process = start(*words, **blow(folder / "struck", CHECKPOINT, strike))
                output, _ = process.communicate(timeout=DEADLINE_S)
                assert process.returncode, output
                assert Store(folder / "studies", read_only=True).study("digits").checkpoints()
            process = start(*words)
            output, _ = process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0, output
        study = Store(folder / "studies", read_only=True).study("digits")
        curves = study.read_curves()
        times = [name for name in curves.column_names if name.endswith(TIMES)]
        ended.append((bits(study), curves.drop_columns(times).to_pydict()))
    assert ended[1] == ended[0]
    assert ended[2] == ended[0]


@pytest.mark.parametrize("name", [*LIBRARIES, "sklearn"])
def test_a_missing_library_is_an_error_that_names_the_package(name: str) -> None:
    package = {**LIBRARIES, "sklearn": "skops"}[name]
    code = f"import sys; sys.modules[{package!r}] = None; import study.integrations.{name}"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert completed.stderr.splitlines()[-1].startswith(
        f"study.errors.MissingPackageError: this integration needs {package}, which isn't installed: pip install "
    )


def test_importing_study_imports_no_library() -> None:
    code = f"import sys, study, study.integrations; print(sys.modules.keys() & {set(LIBRARIES.values())!r})"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "set()"


def test_non_numbers_are_dropped_and_reserved_names_get_an_underscore(tmp_path: Path) -> None:
    def reports(seed: int, trial: Trial) -> None:
        Reports(trial, {"val/acc": "accuracy"}).add(2, {"val/acc": 1, "step": 7, "state": 8.5, "note": "text", "x": []})

    (step,) = steps(call("sklearn", reports, tmp_path))
    assert step == Step(2, {"accuracy": 1.0}, None, {"step_": 7.0, "state_": 8.5})


def test_a_step_is_reported_once(tmp_path: Path) -> None:
    def reports(seed: int, trial: Trial) -> None:
        for step in (0, 1, 1, 3, 2):
            Reports(trial).add(step, {"accuracy": step / 4})

    assert [step.step for step in steps(call("sklearn", reports, tmp_path))] == [1, 3]


def test_expected_files_are_those_of_the_page() -> None:
    assert set(SHOWN) == {f"digits_{name}.py" for name in (*LIBRARIES, "sklearn")}
