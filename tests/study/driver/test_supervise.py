"""A driver that is killed is started again; one that ends by itself, or was asked to, is not."""

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
def kept(tmp_path: Path) -> Iterator[Start]:
    """Give what starts `study keep` on a store of its own."""
    (tmp_path / "kept.yaml").write_text(SPEC.replace("NAME", "kept").replace("10000", "3000"))
    with starting(tmp_path, STUDY_JOB="1", PYTHONUNBUFFERED="1") as start:
        yield partial(start, "keep", "--")


def run(*more: str) -> tuple[str, ...]:
    return ("run", "kept.yaml", "--local", "--engine", "torch", "--tracking-uri", "off", *more)


def test_killed_in_mid_study_it_goes_on(kept, tmp_path, tmp_path_factory):
    """Killed with -9 in mid-study, a driver is started again, says so, and ends with undisturbed bits and code 0."""
    strikes = blow(tmp_path / "struck", CHECKPOINT, signal.SIGKILL)
    parent = kept(*run("--checkpoint-every-s", "0"), **strikes)
    told, _ = parent.communicate(timeout=DEADLINE_S)
    assert parent.returncode == 0, told
    assert told.count("the driver was killed by SIGKILL") == 1
    assert "it is started again, 1 of 5 times, and goes on from the store" in told
    last = read(told)
    assert last is not None
    assert (last.study, last.done, last.trials) == ("kept", 4, 4)
    assert bits(tmp_path / "studies", "kept") == undisturbed(
        tmp_path_factory.mktemp("undisturbed"), SPEC.replace("10000", "3000")
    )


def test_asked_to_end_it_ends_once(kept, tmp_path):
    """SIGTERM to both, as Ray sends it: the driver keeps its checkpoint, isn't started again, and the code is 130."""
    folder = Store(tmp_path / "studies").study("kept")
    strikes = blow(tmp_path / "struck", CHECKPOINT, signal.SIGTERM, group=True)
    parent = kept(*run("--checkpoint-every-s", "0"), **strikes)
    told, _ = parent.communicate(timeout=DEADLINE_S)
    assert parent.returncode == 130, told
    assert "interrupted: `study resume kept` goes on" in told
    assert "started again" not in told
    assert folder.checkpoints()


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_what_ends_by_itself_is_not_started_again(code):
    """A driver's own exit code is passed on, whatever it is, and nothing is told."""
    told: list[str] = []
    assert keep([sys.executable, "-c", f"raise SystemExit({code})"], told.append) == code
    assert told == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_driver_that_is_asked_to_end_is_not_started_again(number):
    """Who ends a driver with a signal that asks for it gets code 130, also before the driver listens to signals."""
    told: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    dies = f"import os, signal; signal.signal({number:d}, signal.SIG_DFL); os.kill(os.getpid(), {number:d})"
    assert keep([sys.executable, "-c", dies], told.append) == 130
    assert told == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_mistaken_command_is_told_once(kept):
    """The words and the code of a driver that refuses come through."""
    parent = kept("run", "no.yaml")
    told, _ = parent.communicate(timeout=DEADLINE_S)
    assert parent.returncode == 2
    assert told.count("presets are") == 1
