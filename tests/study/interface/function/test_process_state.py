"""Process state around a trial: every part is restored, and no library is imported for it."""

from __future__ import annotations

import decimal
import importlib
import locale
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from study.interface.function.process_state import ProcessState


def handler(number, frame):
    """Handle a signal."""


CHANGES = {
    "working directory": (lambda: os.chdir("/"), Path.cwd),
    "environment": (lambda: os.environ.update(LEFT="yes"), lambda: dict(os.environ)),
    "removed variable": (lambda: os.environ.pop("HERE"), lambda: dict(os.environ)),
    "signal handler": (lambda: signal.signal(signal.SIGUSR1, handler), lambda: signal.getsignal(signal.SIGUSR1)),
    "alarm": (lambda: signal.alarm(5000), lambda: signal.getitimer(signal.ITIMER_REAL)[0] > 2000),
    "arguments": (lambda: sys.argv.append("--more"), lambda: list(sys.argv)),
    "standard output": (lambda: setattr(sys, "stdout", sys.stderr), lambda: sys.stdout),
    "recursion limit": (lambda: sys.setrecursionlimit(12_345), sys.getrecursionlimit),
    "warning filters": (lambda: warnings.simplefilter("always", ResourceWarning), lambda: list(warnings.filters)),
    "decimal precision": (lambda: setattr(decimal.getcontext(), "prec", 3), lambda: decimal.getcontext().prec),
    "locale": (lambda: locale.setlocale(locale.LC_ALL, "C"), lambda: locale.setlocale(locale.LC_ALL)),
    "numpy errors": (lambda: np.seterr(divide="raise"), np.geterr),
    "grad mode": (lambda: torch.set_grad_enabled(False), torch.is_grad_enabled),
    "default dtype": (lambda: torch.set_default_dtype(torch.float64), torch.get_default_dtype),
    "default device": (lambda: torch.set_default_device("meta"), lambda: torch.empty(0).device),
    "threads": (lambda: torch.set_num_threads(torch.get_num_threads() + 1), torch.get_num_threads),
    "deterministic algorithms": (
        lambda: torch.use_deterministic_algorithms(True),
        torch.are_deterministic_algorithms_enabled,
    ),
    "anomalies": (lambda: torch.autograd.set_detect_anomaly(True), torch.is_anomaly_enabled),
    "cudnn": (lambda: setattr(torch.backends.cudnn, "benchmark", True), lambda: torch.backends.cudnn.benchmark),
}


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    """Set a working folder and an environment variable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERE", "1")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHANGES)
def test_changed_process_state_is_restored(name):
    """Each changed part of the process is restored; a second restore changes nothing."""
    change, look = CHANGES[name]
    before, looked = ProcessState.now(), look()
    change()
    assert look() != looked or name == "locale"
    before.restore()
    assert look() == looked
    before.restore()
    assert look() == looked


def test_a_drawing_backend_is_put_back():
    """The matplotlib backend is restored if matplotlib is imported."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    before = ProcessState.now()
    matplotlib.use("svg")
    before.restore()
    assert matplotlib.get_backend().lower() == "agg"


def test_a_deleted_folder_is_accepted(tmp_path):
    """A deleted folder is accepted, both as the folder to restore and as the current folder."""
    deleted = tmp_path / "gone"
    deleted.mkdir()
    os.chdir(deleted)
    before = ProcessState.now()
    deleted.rmdir()
    between = ProcessState.now()
    os.chdir(tmp_path)
    before.restore()
    between.restore()
    assert Path.cwd() == tmp_path


def test_settings_of_the_users_modules_stay(tmp_path, monkeypatch):
    """Settings that a user's module makes on import stay, because the module isn't executed again."""
    (tmp_path / "settings_of_mine.py").write_text("import numpy as np\nnp.seterr(under='raise')\n")
    monkeypatch.syspath_prepend(tmp_path)
    outside, first = ProcessState.now(), ProcessState.now()
    importlib.import_module("settings_of_mine")
    os.chdir("/")
    first.restore()
    assert np.geterr()["under"] == "raise"
    assert Path.cwd() == tmp_path
    outside_again = ProcessState.now()
    np.seterr(under="warn")
    outside_again.restore()
    assert np.geterr()["under"] == "raise"
    del sys.modules["settings_of_mine"]
    outside.restore()
    assert np.geterr()["under"] == "ignore"


def test_nothing_is_imported():
    """Saving and restoring imports none of the libraries, whose imports would take seconds."""
    code = (
        "import sys; from study.interface.function.process_state import ProcessState; ProcessState.now().restore();"
        "assert not {'torch', 'matplotlib', 'numpy.testing'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
