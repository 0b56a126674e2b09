"""Restarts of a killed driver; a driver that ends by itself or on request isn't restarted."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from study.driver.supervise import keep
from study.store import Store
from study.summaries.heartbeat import read
from tests.commands import CHECKPOINT, DEADLINE_S, Start, blow, starting
from tests.ray_clusters import SPEC, bits, undisturbed


@pytest.fixture
def start_keep(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts `study keep` with its own store."""
    (tmp_path / "kept.yaml").write_text(SPEC.replace("NAME", "kept").replace("10000", "3000"))
    with starting(tmp_path, STUDY_JOB="1", PYTHONUNBUFFERED="1") as start:
        yield partial(start, "keep", "--")


def run(*more: str) -> tuple[str, ...]:
    return ("run", "kept.yaml", "--local", "--engine", "torch", "--tracking-uri", "off", *more)


def test_a_killed_driver_is_restarted(start_keep, tmp_path, tmp_path_factory):
    """A driver killed with -9 is restarted with a message, and ends with undisturbed bits and code 0."""
    strikes = blow(tmp_path / "struck", CHECKPOINT, signal.SIGKILL)
    parent = start_keep(*run("--checkpoint-every-s", "0"), **strikes)
    output, _ = parent.communicate(timeout=DEADLINE_S)
    assert parent.returncode == 0, output
    assert output.count("the driver was killed by SIGKILL") == 1
    assert "it is started again, 1 of 5 times, and goes on from the store" in output
    last = read(output)
    assert last is not None
    assert (last.study, last.done, last.trials) == ("kept", 4, 4)
    assert bits(tmp_path / "studies", "kept") == undisturbed(
        tmp_path_factory.mktemp("undisturbed"), SPEC.replace("10000", "3000")
    )


def test_a_terminated_driver_ends_once(start_keep, tmp_path):
    """After SIGTERM to both, as Ray sends it, the driver saves a checkpoint, isn't restarted, and the code is 130."""
    folder = Store(tmp_path / "studies").study("kept")
    strikes = blow(tmp_path / "struck", CHECKPOINT, signal.SIGTERM, group=True)
    parent = start_keep(*run("--checkpoint-every-s", "0"), **strikes)
    output, _ = parent.communicate(timeout=DEADLINE_S)
    assert parent.returncode == 130, output
    assert "interrupted: `study resume kept` goes on" in output
    assert "started again" not in output
    assert folder.checkpoints()


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_a_driver_that_exits_is_not_restarted(code):
    """A driver's exit code is passed on unchanged, without a message."""
    messages: list[str] = []
    assert keep([sys.executable, "-c", f"raise SystemExit({code})"], messages.append) == code
    assert messages == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signalled_driver_is_not_restarted(number):
    """A driver ended by a termination signal gives code 130, even before it handles signals."""
    messages: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    dies = f"import os, signal; signal.signal({number:d}, signal.SIG_DFL); os.kill(os.getpid(), {number:d})"
    assert keep([sys.executable, "-c", dies], messages.append) == 130
    assert messages == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_mistaken_command_is_reported_once(start_keep):
    """The message and the exit code of a driver that refuses its command are passed on."""
    parent = start_keep("run", "no.yaml")
    output, _ = parent.communicate(timeout=DEADLINE_S)
    assert parent.returncode == 2
    assert output.count("presets are") == 1
