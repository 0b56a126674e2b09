"""User-supplied roles of the columns of files: metrics and success criterion."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from study.errors import InputError
from study.interface.declarations import Metric
from study.outcomes.run_names import direction

_SUCCESS = re.compile(r"\s*(?P<column>.*?\S)\s*(?P<operator><=|>=|<|>)\s*(?P<threshold>\S+)\s*")
_OPERATORS: Mapping[str, Callable[[npt.NDArray[np.float64], float], npt.NDArray[np.bool_]]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_DIRECTIONS = {"lower": False, "higher": True}


@dataclass(frozen=True)
class Success:
    """A success criterion.

    Args:
        column: the column that it compares.
        operator: ``<``, ``<=``, ``>`` or ``>=``.
        threshold: the number to compare with.
    """

    column: str
    operator: str
    threshold: float

    def holds(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return a mask of the values that meet the criterion; NaN doesn't."""
        return _OPERATORS[self.operator](values, self.threshold)

    @property
    def is_higher_better(self) -> bool:
        """True if higher values meet the criterion."""
        return self.operator.startswith(">")


@dataclass(frozen=True)
class Wanted:
    """User-supplied roles of the columns of all files.

    Args:
        metrics: the columns that are averaged over trials.
        success: the success criterion; None to use a file's own columns, if it has any.
        known: metrics that are recognised by name in any file or study.
        undirected: metrics without a known direction.
        covariate: the column with a covariate of each trial's start; None without one.
    """

    metrics: Mapping[str, Metric] = field(default_factory=dict)
    success: Success | None = None
    known: Mapping[str, Metric] = field(default_factory=dict)
    undirected: Sequence[str] = ()
    covariate: str | None = None

    @property
    def columns(self) -> list[str]:
        """The user-supplied columns; every file must have them."""
        named = [*([self.success.column] if self.success else []), *([self.covariate] if self.covariate else [])]
        return list(dict.fromkeys([*self.metrics, *named]))

    @property
    def says_outcome(self) -> bool:
        """True if outcomes follow from `success` or `metrics` in a file without a column of outcomes."""
        return self.success is not None or bool(self.metrics)


def wanted(
    metrics: Sequence[str] = (), success: str | None = None, known: Mapping[str, Metric] | None = None
) -> Wanted:
    """Parse the command line's roles of columns.

    Args:
        metrics: names of columns, each optionally followed by its direction, ``:higher`` or ``:lower``. The default
            direction comes from `success`, from `known`, or from the column's name. Without any, the metric is among
            `Wanted.undirected`.
        success: a column, an operator and a number.
        known: metrics that are recognised by name.

    Raises:
        InputError: if a metric is blank, or `success` isn't a column, an operator and a finite number.

    Example:
        >>> say = wanted(["val_acc", "wait:lower"], "val_acc >= 0.95")
        >>> say.success, {name: metric.higher_is_better for name, metric in say.metrics.items()}
        (Success(column='val_acc', operator='>=', threshold=0.95), {'val_acc': True, 'wait': False})
    """
    criterion = None if success is None else _success(success)
    directions = dict(_metric(text, criterion, known or {}) for text in metrics)
    return Wanted(
        {name: Metric(higher_is_better=bool(is_higher)) for name, is_higher in directions.items()},
        criterion,
        known or {},
        [name for name, is_higher in directions.items() if is_higher is None],
    )


def question(name: str) -> str:
    """Return the question for a metric's direction, with the option that answers it."""
    return f"which values of {name} are better? Its name doesn't tell: give --metric {name}:higher or {name}:lower"


def _metric(text: str, success: Success | None, known: Mapping[str, Metric]) -> tuple[str, bool | None]:
    """Parse a metric: its name, and True if higher is better, None if unknown; raise InputError without a name."""
    name, _, suffix = (part.strip() for part in text.rpartition(":"))
    if suffix in _DIRECTIONS and name:
        return name, _DIRECTIONS[suffix]
    name = text.strip()
    if not name:
        raise InputError("--metric needs the name of a column, as in --metric val_acc:higher")
    if success is not None and success.column == name:
        return name, success.is_higher_better
    return name, known[name].higher_is_better if name in known else direction(name)


def _success(text: str) -> Success:
    """Parse a success criterion; raise InputError if it is invalid."""
    match = _SUCCESS.fullmatch(text)
    try:
        threshold = float(match["threshold"]) if match else math.nan
    except ValueError:
        threshold = math.nan
    if match is None or not math.isfinite(threshold):
        raise InputError(
            f"--success {text!r} must be a column, one of < <= > >=, and a number, as in --success 'val_mse < 2e-3'"
        )
    return Success(match["column"], match["operator"], threshold)
