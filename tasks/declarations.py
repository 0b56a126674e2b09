"""What tasks, models and training functions declare of themselves: hyperparameters and metrics.

A study file is checked against these declarations, and tables and figures take names, units and directions from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from tasks.data import DataFile


class _Required:
    """The default of a hyperparameter that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


MOST_IN_PACK: Final = 128
"""The most trials of a pack whose networks are small: more of them train hardly faster."""

UPDATE_US: Final = 60.0
"""Microseconds that an update of one trial of a pack takes on a core, where the network is small."""

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
        meaning: what values it can have, for the documentation.
        otherwise: what holds if it isn't given, for the documentation.
        none: how None is written in tables.
        table: the table of a study file in which it can also be given; empty if there is none.
        is_method: whether it says how a question is answered, and so is compared; if not, it belongs to the question.
        is_searchable: whether a search may choose it.
        data: what its values name, if they are data files; None if they aren't.
    """

    type: Any
    default: Any = REQUIRED
    title: str = ""
    unit: str = ""
    meaning: str = ""
    otherwise: str = ""
    none: str = "–"
    table: str = ""
    is_method: bool = False
    is_searchable: bool = False
    data: DataFile | None = None

    @cached_property
    def kind(self) -> Literal["whole", "number", "other"]:
        """What its values are: whole numbers or numbers, which have a range, or anything else.

        Example:
            >>> Hyperparameter(type=int).kind, Hyperparameter(type=float | None).kind, Hyperparameter(type=str).kind
            ('whole', 'number', 'other')
        """
        from pydantic import TypeAdapter  # only here: a trial's own process needs declarations of metrics, and is quick

        schema = TypeAdapter(self.type).json_schema()
        options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
        if len(options) != 1 or "enum" in options[0] or "const" in options[0]:
            return "other"
        kinds: dict[Any, Literal["whole", "number"]] = {"integer": "whole", "number": "number"}
        return kinds.get(options[0].get("type"), "other")


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
        resolution: the least distance from `low` that can be told from none, if values differ by factors rather than by
            differences; None if by differences.

    Raises:
        ValueError: if a beta distribution or a resolution is given without both limits, if higher values of a metric
            with a resolution are better, or if 0 < resolution < high - low doesn't hold.
    """

    higher_is_better: bool = False
    title: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    of: Literal["ended", "solved", "none"] = "ended"
    interval: Literal["bootstrap", "beta"] = "bootstrap"
    resolution: float | None = None

    def __post_init__(self) -> None:
        if self.interval == "beta" and self.limits is None:
            raise ValueError("a beta distribution needs both limits, low and high")
        if self.resolution is None:
            return
        if self.limits is None or self.higher_is_better:
            raise ValueError("a resolution needs both limits, low and high, and a metric of which less is better")
        if not 0 < self.resolution < self.limits[1] - self.limits[0]:
            raise ValueError(f"0 < resolution < high - low must hold, but got {self.resolution}")

    @property
    def limits(self) -> tuple[float, float] | None:
        """Its least and its greatest value; None if either isn't known."""
        return None if self.low is None or self.high is None else (self.low, self.high)
