"""A task class declares its hyperparameters and metrics, and error messages name missing declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import pytest
import torch
from pydantic import Field

from study.interface.declarations import REQUIRED, Metric
from study.interface.task import Task
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream

Slope = Annotated[float, Field(gt=0)]
LOSS = {"validation_loss": Metric()}


@dataclass(frozen=True)
class Line(Task):
    """Learn y = slope x."""

    slope: Slope
    rows: int = 4
    sizes: tuple[int, ...] = field(default_factory=lambda: (1, 2))
    metrics: ClassVar[Mapping[str, Metric]] = LOSS

    def draw(self, stream):
        x = stream.uniform(self.rows, 1)
        return {"x": x, "y": self.slope * x}

    def loss(self, outputs, batch):
        return (outputs - batch["y"]).square().mean()


def test_fields_are_hyperparameters():
    """A study file is checked against each field's annotation, limits and default."""
    declared = Line.hyperparameters()
    assert list(declared) == ["slope", "rows", "sizes"]
    assert declared["slope"].type == Slope
    assert declared["slope"].default is REQUIRED
    assert declared["rows"].default == 4
    assert declared["sizes"].default == (1, 2)


def test_defaults():
    """By default, evaluation sets are drawn like batches, and the loss is the metric."""
    task, stream = Line(slope=2.0), Stream([1], 0, Purpose.TEST)
    batch = task.evaluation(stream, Purpose.TEST)
    assert torch.equal(batch["x"], Stream([1], 0, Purpose.TEST).uniform(4, 1))
    for same in (batch, (batch["x"], batch["y"]), [batch["x"]], batch["x"]):
        assert torch.equal(task.predict(lambda x: 2 * x, same), batch["y"])
    assert task.measure(batch["y"], batch) == {"loss": torch.tensor(0.0)}


def _without(**attributes):
    return type("Wrong", (Line,), {"__module__": __name__, **attributes})


_METHODS = {"draw": Line.draw, "loss": Line.loss, "__module__": __name__}


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (_without(), "must be a frozen dataclass"),
        (dataclass(type("Thawed", (Task,), _METHODS)), "must be a frozen dataclass"),
        (dataclass(frozen=True)(_without(metrics={})), "must name a metric"),
        (
            dataclass(frozen=True)(_without(metrics={"accuracy": Metric()})),
            "'accuracy' .* must begin with train_, validation_ or test_",
        ),
        (dataclass(frozen=True)(_without(metrics={"test_": Metric()})), "must begin with train_, validation_ or test_"),
        (dataclass(frozen=True)(_without(metrics={"test_loss": "low"})), "must be a Metric, but is 'low'"),
        (type("Half", (Task,), {}), "must define the methods draw, loss"),
    ],
)
def test_missing_declarations_of_a_class_are_named(cls, message):
    """A class without a required declaration is refused, and the message names the fix."""
    with pytest.raises(TypeError, match=message):
        cls.hyperparameters()
