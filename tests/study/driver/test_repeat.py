"""Repetition of stored trials with the same bits, and reports of differences with their reasons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import study
from study.driver.repeat import _differences, _stored_trial, _Trained, repeat
from study.errors import InputError
from study.records import Curve, Weights
from study.results.certificate import Certificate, read_certificate
from study.store import Store
from tests.commands import invoke
from tests.study.lab import PACKED_STUDY

# MLflow and its imports must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

LITTLE = {
    "study": "little",
    "question": "Does it learn?",
    "task": {"name": "simple"},
    "models": ["NMU", "NALU"],
    "seeds": 3,
    "fixed": {"batch_size": 16},
    "protocol": {"iterations": 40, "evaluate_every": 10, "evaluation_rows": 50},
}


@pytest.fixture(scope="module", name="store")
def _store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("repeat") / "studies"
    study.load(LITTLE, store=store, tracking_uri="off").run(local=True, engine="torch")
    words = {"study": "words", "question": "?", "task": {"name": "identity"}, "models": ["NAU", "tanh"], "seeds": 2}
    short = {"protocol": {"iterations": 20, "evaluate_every": 10}}
    study.load(words | short, store=store, tracking_uri="off").run(local=True)
    return store


@pytest.mark.parametrize("name", ["little", "words"])
def test_a_trial_alone_has_the_bits_of_its_pack(store: Path, name: str) -> None:
    """A single trial has the bits of its pack, for built-in tasks and for tasks and models in packs."""
    opened = study.open(name, store=store, tracking_uri="off")
    for trial in opened.trials()["trial_id"][::2]:
        repetition = opened.repeat(trial[:10])
        assert repetition.is_same, str(repetition)
        assert repetition.trial.id == trial
        assert str(repetition).endswith("the same result, learning curve and weights, bit for bit")


def test_another_engine_differs_and_is_named(store: Path) -> None:
    """Another engine changes last bits; the command names where, and exits with 1."""
    little = study.load(LITTLE, store=store, tracking_uri="off")
    trials = little.trials()
    trial = trials[trials["model"] == "NALU"].iloc[0]["trial_id"]
    repetition = little.repeat(trial, engine="fused")
    assert not repetition.is_same
    assert any(difference.startswith("weights: layer_1") for difference in repetition.differences), str(repetition)
    assert "it was trained by the torch engine" in repetition.circumstances
    same = invoke("repeat", "little", trial, "--store", str(store))
    assert same.exit_code == 0, same.output
    other = invoke("repeat", "little", trial, "--store", str(store), "--engine", "fused")
    assert other.exit_code == 1
    assert "not the same" in other.output


def test_differences_in_all_parts_are_named(store: Path) -> None:
    """Differences in result, learning curve and weights are named; NaN equals NaN, and zeros have signs."""
    little = study.open("little", store=store, tracking_uri="off")
    folder = Store(str(store), read_only=True).study("little")
    stored = _stored_trial(folder, folder.read_results(), str(little.trials()["trial_id"][0]))
    assert list(_differences(stored, stored)) == []
    curve, weights = stored.curve, stored.weights
    assert curve is not None
    assert weights is not None
    losses = curve.metrics["validation_mse"].copy()
    losses[2] = np.nan
    broken = Curve(curve.trial_id, curve.iteration, {**curve.metrics, "validation_mse": losses})
    assert list(_differences(_Trained(stored.result, broken, weights), _Trained(stored.result, broken, weights))) == []
    assert list(_differences(stored, _Trained(stored.result, broken, weights))) == [
        "learning curve: validation_mse differs from iteration 20 on"
    ]
    shorter = Curve(curve.trial_id, curve.iteration[:3], {name: v[:3] for name, v in curve.metrics.items()})
    assert "5 evaluations are stored, now 3" in next(_differences(stored, _Trained(stored.result, shorter, weights)))
    zeros = {name: np.zeros_like(array) for name, array in weights.arrays.items()}
    negative = {name: -array for name, array in zeros.items()}
    positive_zeros, negative_zeros = (
        _Trained(stored.result, curve, Weights(weights.trial_id, weights.iteration, arrays))
        for arrays in (zeros, negative)
    )
    assert len(list(_differences(positive_zeros, negative_zeros))) == len(zeros)


def test_a_sample_is_verified_and_the_report_says_so(store: Path, tmp_path: Path) -> None:
    """The certificate is stored, printed and reported; a difference names its trial."""
    done = invoke("verify", "little", "--store", str(store), "--share", "50%")
    assert done.exit_code == 0, done.output
    assert done.output.count("bit for bit") == 3
    sentence = read_certificate(Store(str(store)).study("little")).sentence  # type: ignore[union-attr]
    assert sentence.startswith("3 of 6 trials, drawn at random, were trained again by themselves on 20")
    assert sentence.endswith("(torch): all have the stored bits.")
    assert sentence in " ".join(done.output.split())
    little = study.open("little", store=store, tracking_uri="off")
    little.report(tmp_path / "report", ["md", "html"])
    assert sentence in (tmp_path / "report" / "report.md").read_text()
    assert sentence in (tmp_path / "report" / "report.html").read_text()
    assert sentence in little._repr_html_()
    certificate = Certificate("2026-11-23T21:00:00+00:00", ["a"], ["a"], 7, ["fused"])
    assert certificate.sentence.endswith("was trained again by itself on 2026-11-23 (fused): 1 of them differs: a.")


@pytest.mark.parametrize("share", ["0", "150%", "some"])
def test_an_invalid_share_is_refused(store: Path, share: str) -> None:
    """A share of zero, above one, or that isn't a number is refused."""
    refused = invoke("verify", "little", "--store", str(store), "--share", share)
    assert refused.exit_code == 2
    assert "share must be" in refused.output


def test_a_script_reproduces_the_curve(store: Path, tmp_path: Path) -> None:
    """The command writes a script and trains nothing; the script needs only torch for the stored outcome and errors."""
    little = study.open("little", store=store, tracking_uri="off")
    trial = little.trials().query("model == 'NMU'")["trial_id"].iloc[0]
    path = tmp_path / "a trial.py"
    done = invoke("repeat", "little", trial[:12], "--store", str(store), "--script", str(path))
    assert done.exit_code == 0, done.output
    assert f"`python '{path}'`" in done.output
    assert path.read_text(encoding="utf-8") == little.script(trial).text
    printed = subprocess.run(
        [sys.executable, "-I", path], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert [line.split()[0] for line in printed[:5]] == ["0", "10", "20", "30", "40"]
    assert printed[5:] == [
        "stored: unsolved, test MSE below the threshold never",
        "here:   unsolved, test MSE below the threshold never",
        "MSEs within 0.1% of the stored ones, or of the threshold: at all of these iterations",
    ]


def test_a_script_is_named_after_its_trial_and_replaces_no_file(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a name the script is named after the trial; an existing file is kept, with an error."""
    monkeypatch.chdir(tmp_path)
    trial = str(study.open("little", store=store, tracking_uri="off").trials()["trial_id"][0])
    words = ("repeat", "little", trial, "--store", str(store), "--script")
    assert invoke(*words).exit_code == 0
    repeated = invoke(*words)
    assert repeated.exit_code == 2
    assert f"there is a file trial-{trial}.py already" in repeated.output
    assert [path.name for path in tmp_path.iterdir()] == [f"trial-{trial}.py"]


def test_a_trial_without_a_script_is_refused(store: Path, tmp_path: Path) -> None:
    """A task of another family, and a device with --script, are refused; no file is written."""
    words = study.open("words", store=store, tracking_uri="off")
    trial, into = str(words.trials()["trial_id"][0]), str(tmp_path / "trial.py")
    refused = invoke("repeat", "words", trial, "--store", str(store), "--script", into)
    assert refused.exit_code == 2
    assert "written for the tasks arithmetic, simple, single-module, but its task is identity" in refused.output
    refused = invoke("repeat", "little", trial, "--store", str(store), "--script", into, "--device", "cpu")
    assert refused.exit_code == 2
    assert "--script writes a program for torch" in refused.output
    assert not list(tmp_path.iterdir())


def test_unknown_and_unplanned_trials_are_refused(store: Path) -> None:
    """A missing trial, and one that the file no longer plans, are refused."""
    little = study.open("little", store=store, tracking_uri="off")
    with pytest.raises(InputError, match="no trial of this study has that id"):
        little.repeat("zzz")
    trial = str(little.trials()["trial_id"].iloc[-1])
    fewer = study.load(LITTLE | {"seeds": 1}, store=store)
    with pytest.raises(InputError, match="its file or its code has changed"):
        next(repeat(fewer.planned, str(store), [trial]))


UNTIL = {"seeds": {"until": {"half_width": 0.2, "max": 8, "batch": 4}}, "models": ["mylab.models:mlp"]}
SEARCH = {
    "models": [{"name": "mylab.models:wide", "ranges": {"width": {"low": 2, "high": 5}}}],
    "search": {"objective": "success_rate", "trials": 16, "candidates": 2, "first_seeds": 2, "confirm_seeds": 3},
}


@pytest.mark.parametrize("more", [UNTIL, SEARCH], ids=["until", "search"])
def test_trials_chosen_by_results_are_repeated(
    packed_lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, object]
) -> None:
    """Added seeds and candidates of a search are repeated with user code, unless the code has changed."""
    file, store = packed_lab / "spirals.yaml", tmp_path / "studies"
    file.write_text(yaml.safe_dump(PACKED_STUDY | more, sort_keys=False))
    study.load(file, store=store, tracking_uri="off").run(local=True, optuna_storage="off")
    monkeypatch.chdir(packed_lab)
    for opened in (study.open("spirals", store=store), study.load(file, store=store)):
        last = opened.trials().sort_values("seed").iloc[-1]
        assert last["seed"] >= 4
        repeated = opened.repeat(last["trial_id"])
        assert repeated.is_same, str(repeated)
    assert not study.load(file, store=store).verify(0.2).differing
    models = packed_lab / "mylab" / "models.py"
    models.write_text(models.read_text() + "\nVERSION = 2\n")
    with pytest.raises(InputError, match=r"its file or its code has changed|other code"):
        study.load(file, store=store).repeat(last["trial_id"])


FUNCTIONS = """
import numpy as np

from study import seeded

RNG = np.random.default_rng(0)


@seeded
def returned(seed):
    return {"loss": np.random.random()}


@seeded
def yielded(seed):
    for step in range(3):
        yield {"step": step, "loss": np.random.random()}


@seeded
def diverged(seed):
    yield {"step": 0, "loss": np.random.random()}
    yield {"step": 1, "loss": float("nan")}


@seeded
def leaky(seed):
    return {"loss": RNG.random()}


@seeded
def crashing(seed):
    import os
    if os.environ.get("CRASHING"):
        os._exit(3)
    return {"loss": 1.0}
"""


def function_study(lab: Path, function: str, store: Path, **more: object) -> Path:
    """Train a study of one of the functions in this process, and return its file."""
    (lab / "functions.py").write_text(FUNCTIONS)
    content = {"study": "functions", "train": f"functions:{function}", "metrics": {"loss": "lower"}, "seeds": 3}
    file = lab / "functions.yaml"
    file.write_text(yaml.safe_dump(content | more))
    study.load(file, store=store, tracking_uri="off").run(local=True, pack_size=3)
    return file


@pytest.mark.parametrize(
    ("function", "isolation", "same"),
    [
        ("returned", {}, "the same result, bit for bit"),
        ("yielded", {}, "the same result and learning curve, bit for bit"),
        ("diverged", {}, "the same result and learning curve, bit for bit"),
        ("returned", {"isolation": "process"}, "the same result, bit for bit"),
        ("leaky", {"isolation": "process"}, "the same result, bit for bit"),
    ],
)
def test_trials_of_a_function_are_verified(
    lab: Path, tmp_path: Path, function: str, isolation: dict[str, str], same: str
) -> None:
    """Functions that return or yield their metrics are verified, in this process or in their own."""
    store = tmp_path / "studies"
    file = function_study(lab, function, store, **isolation)
    done = invoke("verify", str(file), "--store", str(store), "--share", "100%")
    assert done.exit_code == 0, done.output
    assert done.output.count(same) == 3
    assert "all have the stored bits" in done.output


def test_leaked_state_is_reported(lab: Path, tmp_path: Path) -> None:
    """Each trial is verified in a new process; the verdict names the state that a trial leaves behind."""
    store = tmp_path / "studies"
    file = function_study(lab, "leaky", store)
    done = invoke("verify", str(file), "--store", str(store), "--share", "100%")
    assert done.exit_code == 1
    output = " ".join(done.output.split())
    assert output.count("not the same") == 2  # no trial ran before the first one
    assert "2 of them differ" in output
    assert "A trial changes functions.RNG (Generator)" in output
    assert "packages were" not in output  # nothing has changed since the trials were stored
    note = read_certificate(Store(str(store)).study("functions"))
    assert note is not None
    assert "functions.RNG (Generator)" in note.sentence


def test_an_exited_process_is_a_difference(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial that exits its process when it is repeated doesn't end the command."""
    store = tmp_path / "studies"
    file = function_study(lab, "crashing", store)
    monkeypatch.setenv("CRASHING", "1")
    loaded = study.load(file, store=store, tracking_uri="off")
    repeated = loaded.repeat(str(loaded.trials()["trial_id"][0]))
    assert len(repeated.differences) == 1
    assert repeated.differences[0].startswith("it failed now: its process ended with exit code 3")
