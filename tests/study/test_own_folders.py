"""Projects with folders named like this program's packages, and `study` without `tasks` and `units`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.study.source.builders import installed, write

ROOT = Path(__file__).resolve().parents[2]
CODE = """
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

import utils
from study import Metric, Task, seeded


@seeded
def train(seed: int, width: int = 8):
    return {"loss": (seed % 7) / width + utils.offset()}


@dataclass(frozen=True)
class Sum(Task):
    batch_size: int = 16
    metrics: ClassVar = {"validation_loss": Metric()}

    def draw(self, stream):
        x = stream.uniform(self.batch_size, 2)
        return x, x.sum(-1, keepdim=True)

    def loss(self, outputs, batch):
        return (outputs - batch[1]).square().mean()


@seeded
def mlp(width: int = 4) -> nn.Module:
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1))
"""
FUNCTION = "{study: function, train: 'mine:train', metrics: {loss: lower}, grid: {width: [4, 8]}, seeds: 3}"
PACKED = """
study: packed
task: {name: "mine:Sum"}
models: ["mine:mlp"]
seeds: 3
protocol: {iterations: 200}
"""
SIMPLE = "{study: simple, task: {name: simple}, models: [NMU], seeds: 2, protocol: {iterations: 1000}}"
THEIRS = "raise RuntimeError('the project has modules of these names, and nobody asked for them')\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with `tasks/`, `units/` and `utils.py` beside its study files."""
    folder = tmp_path / "project"
    write(folder, tasks__=THEIRS, units__=THEIRS, mine=CODE, utils="def offset():\n    return 0.5\n")
    for name, text in (("study", FUNCTION), ("packed", PACKED), ("simple", SIMPLE)):
        (folder / f"{name}.yaml").write_text(text)
    return folder


def python(folder: Path, *words: str, path: Path | None = None) -> str:
    """Run Python in a folder, with PYTHONPATH set to `path` or unset; return the output."""
    # Ray, in an earlier test of this process, sets PYTHONSAFEPATH: the folder wouldn't be on Python's path.
    unset = ("STUDY_STORE", "MLFLOW_TRACKING_URI", "PYTHONSAFEPATH")
    environment = {key: value for key, value in os.environ.items() if key not in unset}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    completed = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout + completed.stderr


@pytest.mark.parametrize("name", ["study", "packed", "simple"])
def test_a_project_may_have_folders_of_these_names(project: Path, name: str) -> None:
    """Own code and built-in tasks train beside such folders, from the command line and from Python."""
    code = f"import study; study.load('{name}.yaml', tracking_uri='off').run(local=True)"
    python(project, "-c", code)
    assert len(list((project / "studies").glob("*/report/report.html"))) == 1


def test_an_imported_package_of_the_project_is_reported(project: Path) -> None:
    """If a process has imported the project's own `tasks`, built-in tasks are refused with a message."""
    (project / "tasks" / "__init__.py").write_text("")
    code = "import study, tasks\ntry:\n    study.load('simple.yaml')\nexcept Exception as error:\n    print(error)"
    printed = python(project, "-c", code)
    assert f"this process has imported tasks from {project / 'tasks'}" in printed
    assert "rename your package tasks" in printed


@pytest.mark.slow
def test_workers_of_ray_train_beside_such_folders(project: Path) -> None:
    """Workers of Ray train beside such folders, although the working folder is on their path."""
    assert "report:" in python(project, "-m", "study", "run", "simple.yaml", "--tracking-uri", "off")


@pytest.mark.slow
def test_the_service_needs_no_task(project: Path, tmp_path: Path) -> None:
    """Without `tasks` and `units`, own code is planned, trained on Ray and reported; other tasks are unknown."""
    site = tmp_path / "site"
    write(site, tasks__=THEIRS, units__=THEIRS)
    (site / "study").symlink_to(ROOT / "study")
    installed(site, version="0.1.0", name="seeded-study")  # without entry points
    for words in (("study.yaml", "--local"), ("packed.yaml",)):
        run = ("-P", "-m", "study", "run", *words, "--tracking-uri", "off")
        assert "report:" in python(project, *run, path=site)
    code = "import study\ntry:\n    study.load('simple.yaml')\nexcept Exception as error:\n    print(error)"
    assert "'simple' isn't among the tasks" in python(project, "-P", "-c", code, path=site)
    assert "function" in python(project, "-P", "-m", "study", "list", path=site)
