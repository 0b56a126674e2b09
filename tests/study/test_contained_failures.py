"""Containment of failures in a worker's process: a trial fails alone, and doesn't affect later ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.console import Console
from study.driver.options import Options
from study.plan.plan import make_plan
from study.results.load import load_results
from study.run import Ending, run
from study.spec import parse_spec
from study.store import Store
from tests.commands import DEADLINE_S, starting
from tests.study.source.builders import deactivate

CODE = '''
import asyncio
import os
import sys
import threading

import torch

from study.interface.function import messages
from study import seeded


class Unprintable(Exception):
    def __str__(self):
        raise OSError("no text")


class Panic(BaseException):
    """Like pyo3_runtime.PanicException, raised by a panic in a Rust extension."""


async def cancelled():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


@seeded
def train(seed, *, how: str):
    """Fail with seed 5 in some way."""
    if seed == 5:
        if how == "file name":
            raise ValueError("bad file " + b"/caf\\xe9.csv".decode("utf-8", "surrogateescape"))
        if how == "unprintable":
            raise Unprintable
        if how == "cancelled":
            asyncio.run(cancelled())
        if how == "panic":
            raise Panic("called `Option::unwrap()` on a `None` value")
        if how == "interrupt":
            raise KeyboardInterrupt
        if how == "exit":
            sys.exit("enough")
    return {"loss": 1.0 / (1 + seed)}


@seeded
def meddle(seed, *, how: str):
    """Report the number of settings that earlier trials changed, and change all of them."""
    left = [
        torch.get_default_dtype() != torch.float32,
        not torch.is_grad_enabled(),
        "LEFT_BY_A_TRIAL" in os.environ,
        os.path.basename(os.getcwd()) == "elsewhere",
    ]
    os.makedirs("elsewhere", exist_ok=True)
    os.chdir("elsewhere")
    os.environ["LEFT_BY_A_TRIAL"] = "yes"
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return {"loss": float(sum(left))}


@seeded
def isolated(seed, *, how: str):
    """Send an invalid report with seed 5."""
    if seed == 5:
        (pipe,) = (int(name) for name in os.listdir("/proc/self/fd") if int(name) >= 500)
        if how == "list":
            messages.send(pipe, [])
        else:
            os.write(pipe, b"junk")
        threading.Event().wait()
    return {"loss": 1.0 / (1 + seed)}


@seeded
def threaded(seed, *, how: str):
    """Leave a thread that never ends."""
    threading.Thread(target=threading.Event().wait, name="poller").start()
    return {"loss": 1.0}
'''

REASONS = {
    "file name": r"ValueError: bad file /caf\udce9.csv (failing.py:",
    "unprintable": "Unprintable: its message is missing, because its __str__ raised OSError (failing.py:",
    "cancelled": "CancelledError (failing.py:",
    "panic": "Panic: called `Option::unwrap()` on a `None` value (failing.py:",
    "interrupt": "KeyboardInterrupt (failing.py:",
    "exit": "it ended Python by sys.exit('enough') (failing.py:",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the working folder with the code; the store is created in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "failing.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    deactivate()


def study_of(function: str, *ways: str, **more: Any) -> str:
    """Return a study file with 12 seeds for each way to fail."""
    study = {"study": "contained", "train": f"failing:{function}", "metrics": {"loss": "lower"}, "seeds": 12}
    return yaml.safe_dump(study | {"grid": {"how": list(ways)}} | more)


def trained(folder: Path, text: str, **options: Any) -> tuple[Ending, list[dict[str, Any]]]:
    """Run a study in one pack, with a relative store; return its ending and its rows."""
    spec = parse_spec(text, source="contained.yaml", folder=folder)
    chosen = Options("studies", None, pack_size=100, patience_s=0.0, **options)
    ending = run(make_plan(spec), chosen, Console(file=StringIO()))
    return ending, load_results("contained", "studies").table.to_pylist()


def check_only_seed_5_failed(ending: Ending, rows: list[dict[str, Any]]) -> None:
    """Check that seed 5 of each way has failed for its reason, and that the store is intact."""
    assert ending is Ending.FAILURES
    assert len(rows) == 12 * len(REASONS)
    assert {(row["seed"], row["how"]) for row in rows if row["outcome"] == "failed"} == {(5, how) for how in REASONS}
    for row in rows:
        if row["outcome"] == "failed":
            assert row["error"].splitlines()[-1].startswith(REASONS[row["how"]])
        else:
            assert row["loss"] == 1.0 / (1 + row["seed"])
    folder = Store("studies").study("contained")
    assert not folder.notices
    assert (Path("studies") / "contained" / "report" / "report.html").is_file()


def test_a_raising_trial_fails_alone(folder: Path) -> None:
    """Any exception of a trial is its reason of failure, and the other trials of its pack have results."""
    check_only_seed_5_failed(*trained(folder, study_of("train", *REASONS), local=True))


def test_a_raising_trial_fails_alone_beside_the_driver(folder: Path) -> None:
    """Beside the driver, any exception fails its trial alone; neither process ends."""
    check_only_seed_5_failed(*trained(folder, study_of("train", *REASONS)))


@pytest.mark.slow
def test_a_raising_trial_fails_alone_on_ray(folder: Path) -> None:
    """On Ray, any exception fails its trial alone, even exceptions that end a worker of Ray."""
    check_only_seed_5_failed(*trained(folder, study_of("train", *REASONS), cpus=1, ray_at_once=True))


def test_changes_of_the_process_end_with_the_trial(folder: Path) -> None:
    """A trial's changes of directory, environment or torch settings affect neither other trials nor the store."""
    ending, rows = trained(folder, study_of("meddle", "once"), local=True)
    assert ending is Ending.FINISHED
    assert {row["loss"] for row in rows} == {0.0}
    assert Path.cwd() == folder
    assert not (folder / "elsewhere" / "studies").exists()
    assert "LEFT_BY_A_TRIAL" not in os.environ


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are found as Linux lists them")
def test_invalid_reports_fail_their_trial_alone(folder: Path) -> None:
    """An isolated trial with an invalid report fails; it doesn't count as diverged."""
    study = study_of("isolated", "list", "junk", seeds=[4, 5, 6], isolation="process")
    ending, rows = trained(folder, study, local=True)
    assert ending is Ending.FAILURES
    outcomes = {(row["how"], row["seed"]): row["outcome"] for row in rows}
    assert {key for key, outcome in outcomes.items() if outcome == "failed"} == {("list", 5), ("junk", 5)}
    errors = {row["how"]: row["error"] for row in rows if row["seed"] == 5}
    assert errors["list"].startswith("its process wrote [] to the pipe of its reports")
    assert errors["junk"].startswith("its process wrote b'junk' to the pipe of its reports")


def test_a_remaining_thread_is_named_and_does_not_block_the_exit(folder: Path) -> None:
    """A thread that a trial left running is named, and the command ends nevertheless."""
    (folder / "contained.yaml").write_text(study_of("threaded", "once", seeds=2))
    with starting(folder) as start:
        process = start("run", "contained.yaml", "--local", "--tracking-uri", "off")
        output, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, output
    assert "failing:threaded left 1 thread running after seed 0: poller" in " ".join(output.split())
