"""Schema of a study file that names a training function."""

from __future__ import annotations

from typing import Any, Literal

from study.interface.function_family import TASK
from study.spec.calls import CallSpec
from study.spec.table import optional
from study.spec.tables import AnySettings


class FunctionSpec(CallSpec):
    """A study of a training function.

    Args:
        train: the function's import string.
        isolation: ``process`` for a separate process for each trial.
    """

    task = TASK

    train: str
    isolation: Literal["process"] | None = optional()

    @property
    def called(self) -> str:
        """The function's import string."""
        return self.train


class AnyFunctionSpec(AnySettings, FunctionSpec):
    """A study of a training function with any hyperparameters, for checks before its import."""

    points: Any = ()
