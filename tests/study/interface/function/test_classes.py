"""A class with a method `fit` is called like a function."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from study.interface.declarations import Metric
from study.interface.function import FunctionCall, FunctionError, Step
from study.interface.function.classes import as_function
from study.interface.function.trial import Trial
from study.interface.signature import hyperparameters_of


class Model:
    def __init__(self, seed: int, *, width: int = 4) -> None:
        self.seed, self.width = seed, width

    def fit(self, trial: Trial, *, epochs: int = 2) -> None:
        for epoch in range(epochs):
            trial.report(epoch, loss=self.seed + self.width / (1 + epoch))


def steps(called: Any, **values: Any) -> list[Any]:
    call = FunctionCall(called, seed=1, values=values, metrics={"loss": Metric()})
    return list(iter(call.next_step, None))


def test_parameters_are_those_of_the_constructor_and_fit() -> None:
    declared = hyperparameters_of(as_function(Model))
    assert {name: hyperparameter.default for name, hyperparameter in declared.items()} == {"width": 4, "epochs": 2}


def test_a_class_is_constructed_and_fitted() -> None:
    assert steps(Model, width=2, epochs=3) == [
        Step(0, {"loss": 3.0}),
        Step(1, {"loss": 2.0}),
        Step(2, {"loss": 1 + 2 / 3}),
    ]


def test_a_failure_names_its_line() -> None:
    class Failing(Model):
        def fit(self, trial: Trial) -> None:  # type: ignore[override]
            raise ValueError("no luck")

    line = inspect.getsourcelines(Failing.fit)[1] + 1
    with pytest.raises(FunctionError, match=rf"ValueError: no luck \({__file__}:{line}\)"):
        steps(Failing)


def test_a_class_without_fit_is_refused() -> None:
    assert as_function(dict) is dict
