"""Killed studies of own code on the command line: they resume from the kept copy, to the undisturbed bits."""

from __future__ import annotations

import signal
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from study.console import Console
from study.driver.options import Options
from study.plan.plan import make_plan
from study.run import run
from study.spec import Spec
from study.store import Store
from tests.commands import CHECKPOINT, DEADLINE_S, PROGRESS_HEARD, blow, starting
from tests.study.builders import bits
from tests.study.lab import packed_study, study_of

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

LONG = {"protocol": {"iterations": 3000, "evaluate_every": 500}}


def function(folder: Path) -> Spec:
    """Return a study of a function with `resume`, so that trials continue midway."""
    return study_of(folder, train="mylab.training:counted", metrics={"loss": "lower"}, success=None, grid=None)


def packed(folder: Path) -> Spec:
    """Return a study of a task and two models: one trains in vmap, the other one trial at a time."""
    return packed_study(folder, models=["mylab.models:mlp", "mylab.models:dropping"], **LONG)


@pytest.mark.parametrize("study_in", [function, packed])
@pytest.mark.parametrize("how", ["local", "ray"])
def test_a_killed_study_goes_on(packed_lab: Path, tmp_path: Path, study_in: Callable[[Path], Spec], how: str) -> None:
    """After a kill at any point, the same command ends with the undisturbed bits."""
    spec = study_in(packed_lab)
    (packed_lab / "own.yaml").write_text(spec.text)
    words = ["run", "own.yaml", "--tracking-uri", "off", "--checkpoint-every-s", "0"]
    words += ["--local"] if how == "local" else []
    run(make_plan(spec), Options(tmp_path / "undisturbed", None, local=True), Console(file=StringIO()))
    with starting(packed_lab) as start:
        event = CHECKPOINT if how == "local" else PROGRESS_HEARD
        struck = start(*words, "--store", str(tmp_path / "killed"), **blow(tmp_path / "struck", event, signal.SIGKILL))
        output, _ = struck.communicate(timeout=DEADLINE_S)
        assert struck.returncode == -signal.SIGKILL, output
        second = start(*words, "--store", str(tmp_path / "killed"))
        output, _ = second.communicate(timeout=DEADLINE_S)
        assert second.returncode == 0, output
    assert "ended without a word, as if it was killed" in " ".join(output.split())
    killed, undisturbed = (Store(tmp_path / name).study(spec.study) for name in ("killed", "undisturbed"))
    assert bits(killed) == bits(undisturbed)
    assert not killed.checkpoints()
