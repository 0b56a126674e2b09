"""User functions that break everything they can reach: at most one trial fails, with a reason.

Each study has 12 seeds in one pack, through the command line, on Ray and with ``--local``.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from study.arrow import table_results
from study.records import Outcome, Result
from study.store import Store
from tests.faults import failing_functions
from tests.faults.failing_functions import FAILING

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

SEEDS = 12
DEADLINE_S = 300
ISOLATED = "isolation: process\n"
LIMITED = ISOLATED + "resources: {time_limit_s: 3}\n"


@dataclass(frozen=True)
class Fault:
    """The expected effect of a function on its study.

    Args:
        told: the message in the terminal.
        fails: whether seed 5 fails; otherwise every trial has a result.
        keys: further keys of the study file.
    """

    told: str = ""
    fails: bool = True
    keys: str = ""


FAULTS = {
    "surrogate": Fault("bad file"),
    "unprintable": Fault("UnprintableError"),
    "panicking": Fault("Option::unwrap()"),
    "cancelled": Fault("CancelledError"),
    "interrupted": Fault("KeyboardInterrupt"),
    "exiting": Fault("sys.exit(3)"),
    "elsewhere": Fault(fails=False),
    "untidy": Fault(fails=False),
    "threaded": Fault(fails=False),
    "half_a_message": Fault("pipe of its reports", keys=LIMITED),
    "junk": Fault("pipe of its reports", keys=LIMITED),
    "empty_message": Fault("pipe of its reports", keys=LIMITED),
    "orphaning": Fault(fails=False, keys=ISOLATED),
    "leaking": Fault("isolation: process", fails=False),
}


def ran(folder: Path, function: str, fault: Fault, how: str) -> tuple[int, str]:
    """Run a function's study by the command line in its folder, and return exit code and output."""
    (folder / "failing.py").write_text(Path(failing_functions.__file__).read_text(encoding="utf-8"))
    mark = uuid.uuid4().hex
    (folder / "study.yaml").write_text(
        f"study: own\ntrain: failing:{function}\nmetrics: {{loss: lower}}\nseeds: {SEEDS}\n"
        f"grid: {{how: [{mark}]}}\n{fault.keys}"
    )
    words = ["run", "study.yaml", "--store", "store", "--tracking-uri", "off", "--pack-size", str(SEEDS)]
    completed = subprocess.run(
        [sys.executable, "-m", "study", *words, *(["--local"] if how == "local" else [])],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=DEADLINE_S,
        check=False,
    )
    assert not left_over(mark), "a process that a trial started is still there"
    return completed.returncode, " ".join((completed.stdout + completed.stderr).split())


def left_over(mark: str) -> list[str]:
    """Return the command lines of processes that contain a text."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if mark in command:
            commands.append(command)
    return commands


def results(folder: Path) -> dict[int, Result]:
    table = Store(folder / "store", read_only=True).study("own").read_results()
    return {result.trial.seed: result for result in table_results(table)}


@pytest.mark.parametrize("how", ["local", "ray"])
@pytest.mark.parametrize("function", FAULTS)
def test_one_trial_fails_at_most(tmp_path: Path, function: str, how: str) -> None:
    """Eleven trials have the results that they have alone; the twelfth has a reason if it fails."""
    fault = FAULTS[function]
    code, output = ran(tmp_path, function, fault, how)
    assert fault.told in output
    assert "Traceback (most recent call last): File" not in output or fault.fails, output
    trial_results = results(tmp_path)
    assert sorted(trial_results) == list(range(SEEDS)), output[-3000:]
    failed = {seed: result.error for seed, result in trial_results.items() if result.outcome is Outcome.FAILED}
    assert set(failed) == ({FAILING} if fault.fails else set()), output[-3000:]
    assert (code != 0) == fault.fails, output[-3000:]
    if fault.fails:
        assert fault.told in (failed[FAILING] or "")
    others = {seed: result for seed, result in trial_results.items() if seed not in failed}
    assert {result.outcome for result in others.values()} == {Outcome.FINISHED}
    if function not in ("leaking", "untidy"):
        assert {seed: dict(result.metrics) for seed, result in others.items()} == {
            seed: {"loss": 1.0 / (1 + seed)} for seed in others
        }
    if function == "untidy":
        assert {result.metrics["loss"] for result in others.values()} == {0.0}
