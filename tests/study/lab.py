"""A folder with a user's own code, and studies of that code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from study.errors import SpecError
from study.spec import Spec, parse_spec
from tests.study.source.builders import deactivate

TRAIN = '''
import random
from typing import Annotated

from pydantic import Field

from study import seeded


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


@seeded
def counted(seed, *, resume=None):
    """Yield the sum of random numbers so far, slowly, with a state from which a trial goes on."""
    total, first = (0.0, 0) if resume is None else (resume["total"], resume["step"] + 1)
    random.setstate(random.getstate() if resume is None else resume["generator"])
    for step in range(first, 200):
        total += random.random()
        sum(range(100_000))
        yield {"step": step, "loss": total, "state": {"total": total, "step": step, "generator": random.getstate()}}


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
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder with a package `mylab`; copies of code are unpacked beside it, and deactivated at the end."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = tmp_path / "lab" / "mylab"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "training.py").write_text(TRAIN)
    yield package.parent
    deactivate()


def study_of(lab: Path, **changed: object) -> Spec:
    """Parse the study of a folder's code; None removes a key."""
    content = {name: value for name, value in (STUDY | changed).items() if value is not None}
    return parse_spec(yaml.safe_dump(content, sort_keys=False), source="mine.yaml", folder=lab)


TASKS = '''
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import nn

from study.interface.declarations import Metric
from study import seeded
from study.interface.task import Task


@dataclass(frozen=True)
class Spirals(Task):
    """Tell apart two spirals."""

    turns: float = 2.0
    batch_size: Annotated[int, Field(ge=1)] = 16
    metrics: ClassVar[Mapping[str, Metric]] = {
        "validation_loss": Metric(),
        "test_accuracy": Metric(higher_is_better=True, low=0, high=1),
    }

    def draw(self, stream):
        label, radius = stream.integers(2, self.batch_size), stream.uniform(self.batch_size)
        angle = torch.pi * (2 * self.turns * radius + label)
        return torch.stack([radius * angle.cos(), radius * angle.sin()], -1), label

    def loss(self, outputs, batch):
        return nn.functional.cross_entropy(outputs, batch[1])

    def measure(self, outputs, batch):
        accuracy = (outputs.argmax(-1) == batch[1]).float().mean()
        return {"loss": self.loss(outputs, batch), "accuracy": accuracy}


class Thawed(Spirals):
    pass


@dataclass(frozen=True)
class Products(Task):
    """Multiply the inputs."""

    size: Annotated[int, Field(ge=1)] = 2
    metrics: ClassVar[Mapping[str, Metric]] = {"validation_loss": Metric(), "test_loss": Metric()}

    def draw(self, stream):
        x = stream.uniform(32, self.size) + 1
        return x, x.prod(-1, keepdim=True)

    def loss(self, outputs, batch):
        return nn.functional.mse_loss(outputs, batch[1])


def helper():
    pass


@seeded
def marked(turns: int = 1):
    pass
'''

MODELS = """
from typing import Literal

import torch
from torch import nn

from study import seeded
from units import UNITS


def net(hidden, *middle):
    return nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), *middle, nn.Linear(hidden, 2))


@seeded
def mlp(hidden: int = 4, activation: Literal["tanh"] = "tanh"):
    return net(hidden)


@seeded
def wide(*, width: int):
    return net(width)


@seeded
def dropping(hidden: int = 4, p: float = 0.5):
    return net(hidden, nn.Dropout(p))


@seeded
def clash(turns: int = 3):
    return net(turns)


@seeded
def rated(learning_rate: float = 0.1):
    return net(3)


@seeded
def other(hidden: str = "four"):
    return net(4)


@seeded
def named(hidden_size: str = "four"):
    return net(4)


def unmarked(hidden: int = 4):
    return net(hidden)


class Shifted(UNITS["NMU"]):
    def forward(self, x):
        return super().forward(x) + 0.125


@seeded
def mixed(hidden: int = 3):
    return nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), UNITS["NAU"](hidden, 2), UNITS["NMU"](2, 1))


class Exact(nn.Module):
    def __init__(self, scale: float = 1.0):
        super().__init__()
        self.scale = nn.Parameter(scale + 0.1 * torch.rand(1))

    def forward(self, x):
        return self.scale * x.prod(-1, keepdim=True)


class Net(nn.Module):
    def __init__(self, size: int = 3):
        super().__init__()
        self.layers = net(size)

    def forward(self, x):
        return self.layers(x)
"""

PACKED_STUDY = {
    "study": "spirals",
    "task": {"name": "mylab.tasks:Spirals", "turns": 2},
    "models": ["mylab.models:mlp", {"name": "mylab.models:wide", "grid": {"width": [8, 32]}}],
    "fixed": {"learning_rate": 0.01},
    "protocol": {"iterations": 20, "evaluate_every": 10, "best_step_window": 3},
    "success": {"test_accuracy": {"at_least": 0.6}},
    "seeds": 3,
}


@pytest.fixture
def packed_lab(lab: Path) -> Path:
    """Return a folder whose package `mylab` has tasks and models."""
    (lab / "mylab" / "tasks.py").write_text(TASKS)
    (lab / "mylab" / "models.py").write_text(MODELS)
    return lab


def packed_study(folder: Path, **changed: object) -> Spec:
    """Parse the study of a folder's task and models; None removes a key."""
    content = {name: value for name, value in (PACKED_STUDY | changed).items() if value is not None}
    return parse_spec(yaml.safe_dump(content, sort_keys=False), source="spirals.yaml", folder=folder)


REFERENCE_STUDY = {
    "study": "products",
    "task": {"name": "mylab.tasks:Products"},
    "models": ["mylab.models:Exact", "NMU"],
    "fixed": {"learning_rate": 0.001},
    "protocol": {"iterations": 4, "evaluate_every": 2},
    "success": {"test_loss": "below_references"},
    "references": {"model": "mylab.models:Exact"},
    "seeds": 3,
}
"""A study in which each trial of `Exact` computes the products, up to a trial-specific factor."""


def reference_study(folder: Path, **changed: object) -> Spec:
    """Parse the study with references as its criterion; None removes a key."""
    content = {name: value for name, value in (REFERENCE_STUDY | changed).items() if value is not None}
    return parse_spec(yaml.safe_dump(content, sort_keys=False), source="products.yaml", folder=folder)


def mistakes_of(make: Callable[..., Spec], folder: Path, **changed: object) -> list[str]:
    """Return the mistakes of a changed study, each with its place."""
    with pytest.raises(SpecError) as caught:
        make(folder, **changed)
    return [f"{problem.where}: {problem.message}" for problem in caught.value.problems]
