"""Protection from imports of files in the working folder, whatever their names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from study.store import Store
from tests.commands import DEADLINE_S
from tests.traps import MODULES, PACKAGE, lay_traps

SPEC = """
study: trapped
task: {name: simple}
models: [NMU]
seeds: 2
fixed: {batch_size: 16}
protocol: {iterations: 40, evaluate_every: 10, evaluation_rows: 50}
"""
SCRIPT = str(Path(sys.executable).with_name("study"))


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, as a user does."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONPATH")}
    return subprocess.run(
        command,
        cwd=folder,
        env=inherited | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_a_run_on_ray_imports_nothing_of_the_working_folder(tmp_path):
    """Driver, workers and other processes import this package and its libraries, and the study finishes."""
    trapped = lay_traps(tmp_path, PACKAGE, *MODULES)
    (tmp_path / "trapped.yaml").write_text(SPEC)
    completed = run(tmp_path, SCRIPT, "run", "trapped.yaml", "--engine", "torch", "--cpus", "1")
    assert trapped() == []
    assert completed.returncode == 0, completed.stdout
    assert len(Store(tmp_path / "studies").study("trapped").done()) == 2


def test_python_m_imports_nothing_of_the_working_folder(tmp_path):
    """`python -m study` imports nothing but this package's own name from the working folder."""
    trapped = lay_traps(tmp_path, *MODULES)
    completed = run(tmp_path, sys.executable, "-m", "study", "schema")
    assert trapped() == []
    assert completed.returncode == 0, completed.stdout


@pytest.mark.parametrize("how", ["working folder", "PYTHONPATH"])
def test_folders_named_by_the_user_are_imported(how, tmp_path):
    """The working folder of `python -m study`, and folders in PYTHONPATH, are searched as usual."""
    trapped = lay_traps(tmp_path, PACKAGE if how == "working folder" else "yaml.py")
    named = {"PYTHONPATH": str(tmp_path)} if how == "PYTHONPATH" else {}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run(elsewhere if named else tmp_path, sys.executable, "-m", "study", "schema", **named)
    assert trapped()
