"""A folder of a user's own code, for the tests of what studies do with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from study.spec import Spec, parse_spec

TRAIN = '''
import random
from typing import Annotated

from pydantic import Field

from tasks.seeded import seeded


@seeded
def train(seed, *, width: int = 4, rate: Annotated[float, Field(gt=0)] = 0.5, fail: str = ""):
    """Yield a curve that depends on the seed, through the global generator, and on the values."""
    skill = random.random()
    if fail == "raise" and seed == 1:
        raise RuntimeError("no luck")
    if fail == "crash" and seed == 1:
        import ctypes
        ctypes.string_at(0)
    for step in range(5):
        loss = float("nan") if fail == "nan" and seed == 1 and step == 3 else rate / (1 + step)
        yield {"step": step, "accuracy": min(1.0, skill + step * width / 16), "loss": loss}


@seeded
def once(seed, *, width: int = 4):
    """Return one number."""
    return {"loss": random.random() / width}


def unmarked(seed):
    return {"loss": 0.0}
'''

STUDY = {
    "study": "mine",
    "train": "mylab.training:train",
    "metrics": {"accuracy": "higher", "loss": "lower"},
    "success": {"accuracy": {"at_least": 0.9}},
    "grid": {"width": [1, 4]},
    "seeds": 3,
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a package `mylab`; copies of code are unpacked beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = tmp_path / "lab" / "mylab"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "training.py").write_text(TRAIN)
    return package.parent


def study_of(lab: Path, **changed: object) -> Spec:
    """Parse the study of a folder's code; None takes a key out."""
    content = {name: value for name, value in (STUDY | changed).items() if value is not None}
    return parse_spec(yaml.safe_dump(content, sort_keys=False), source="mine.yaml", folder=lab)
