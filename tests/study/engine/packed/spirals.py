"""A task and models as users write them, for tests of the packed engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from study.engine.packed.optimizers import Schedule
from study.engine.packed.recipe import Member, Recipe
from study.interface.declarations import Metric
from study.interface.task import Task


@dataclass(frozen=True)
class Spirals(Task):
    """Classification of two spirals."""

    turns: float = 0.5
    noise: float = 0.02
    batch_size: int = 32
    metrics: ClassVar[Mapping[str, Metric]] = {
        "validation_loss": Metric(),
        "test_accuracy": Metric(higher_is_better=True, low=0, high=1),
    }

    def draw(self, stream):
        label, radius = stream.integers(2, self.batch_size), stream.uniform(self.batch_size)
        angle = torch.pi * (2 * self.turns * radius + label)
        x = torch.stack([radius * angle.cos(), radius * angle.sin()], -1)
        return x + self.noise * stream.normal(self.batch_size, 2), label

    def loss(self, outputs, batch):
        return nn.functional.cross_entropy(outputs, batch[1])

    def measure(self, outputs, batch):
        return {
            "loss": self.loss(outputs, batch),
            "accuracy": (outputs.argmax(-1) == batch[1]).to(outputs.dtype).mean(),
        }


def mlp(
    *, hidden: int = 4, activation: type[nn.Module] = nn.Tanh, middle: Callable[[], nn.Module] = nn.Identity
) -> nn.Module:
    """Build a network 2 -> hidden -> 2, with the layer `middle` before the output layer."""
    layers = [nn.Linear(2, hidden), activation(), middle(), nn.Linear(hidden, 2)]
    return nn.Sequential(*layers)


def recipe(task: Task | None = None, model=mlp, **hyperparameters) -> Recipe:
    return Recipe(task=task or Spirals(), model=model, hyperparameters=hyperparameters)


def members(*seeds: int, learning_rate: float = 0.01) -> list[Member]:
    """Return a member for each seed; its learning rate is divided by 1 + seed."""
    return [Member(seed=seed, schedule=Schedule(learning_rate=learning_rate / (1 + seed))) for seed in seeds]
