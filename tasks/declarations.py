"""What tasks, models and training functions declare of themselves: hyperparameters and metrics.

A study file is checked against these declarations, and tables and figures take names, units and directions from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal


class _Required:
    """The default of a hyperparameter that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()
"""Stands for a default where a study file must give the value."""


@dataclass(frozen=True, kw_only=True)
class Hyperparameter:
    """A value that a study file fixes or sweeps, and that is part of a trial's id.

    Args:
        type: the annotation of its values, with their limits, as pydantic reads it.
        default: its value where a study file gives none; `REQUIRED` if it must give one.
        title: its name for readers; empty for its name with spaces instead of underscores.
        unit: its unit; empty without one.
    """

    type: Any
    default: Any = REQUIRED
    title: str = ""
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number that a trial reports.

    Args:
        higher_is_better: whether a greater value is better.
        title: its name for readers; empty for its name with spaces instead of underscores.
        unit: its unit; empty without one.
        low: the least value that it can have; None if there is no such limit.
        high: the greatest value that it can have; None if there is no such limit.
        of: the trials over which reports average it: all that ended with a number, the solved ones, or none.
        interval: how the mean's interval is computed: by a bootstrap, or, as this field has published it, from a beta
            distribution on `low` to `high`.

    Raises:
        ValueError: if a beta distribution is asked for without both limits.
    """

    higher_is_better: bool = False
    title: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    of: Literal["ended", "solved", "none"] = "ended"
    interval: Literal["bootstrap", "beta"] = "bootstrap"

    def __post_init__(self) -> None:
        if self.interval == "beta" and (self.low is None or self.high is None):
            raise ValueError("a beta distribution needs both limits, low and high")
