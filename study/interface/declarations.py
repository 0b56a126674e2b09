"""What tasks, models and training functions declare of themselves: hyperparameters and metrics.

A study file is checked against these declarations, and tables and figures take names, units and directions from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from study.interface.data import DataFile


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

    Metrics of one kind at several places, such as the errors at each length, are a series: they have the same `series`
    and `along`, and each its own `at`. Reports draw a series along its axis, instead of a column and a panel a metric.

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
        series: what the metrics of its series are, for readers; empty if it belongs to none.
        along: what tells the metrics of its series apart, for readers.
        at: its place there.
        is_trained: whether training covers its place.

    Raises:
        ValueError: if one of `series`, `along` and `at` is given without the others, if a beta distribution or a
            resolution is given without both limits, if higher values of a metric with a resolution are better, or if
            0 < resolution < high - low doesn't hold.

    Example:
        >>> errors = {f"mse_at_{n}": Metric(low=0, series="MSE", along="length", at=n) for n in (10, 100, 1000)}
        >>> check_series(errors)
    """

    higher_is_better: bool = False
    title: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    of: Literal["ended", "solved", "none"] = "ended"
    interval: Literal["bootstrap", "beta"] = "bootstrap"
    resolution: float | None = None
    series: str = ""
    along: str = ""
    at: float | None = None
    is_trained: bool = False

    def __post_init__(self) -> None:
        has_place = self.at is not None
        if not bool(self.series) == bool(self.along) == has_place or not math.isfinite(self.at or 0.0):
            raise ValueError(
                "a metric of a series needs all of series, along and at, a finite number, but got "
                f"series={self.series!r}, along={self.along!r}, at={self.at!r}"
            )
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


def check_series(metrics: Mapping[str, Metric]) -> None:
    """Check that the metrics of each series differ in nothing but their places.

    Args:
        metrics: all that trials report, by their names.

    Raises:
        ValueError: if two of a series are at the same place, or differ in more than titles.
    """
    first: dict[tuple[str, str], str] = {}
    at: dict[tuple[str, str, float | None], str] = {}
    for name, metric in metrics.items():
        if not metric.series:
            continue
        other = first.setdefault((metric.series, metric.along), name)
        of = f"of the series {metric.series!r} along {metric.along!r}"
        if differing := [field for field in _OF_SERIES if getattr(metric, field) != getattr(metrics[other], field)]:
            raise ValueError(
                f"{other!r} and {name!r} {of} must be alike but for their places, but differ in {', '.join(differing)}"
            )
        if (other := at.setdefault((metric.series, metric.along, metric.at), name)) != name:
            raise ValueError(f"{other!r} and {name!r} {of} must be at different places, but both are at {metric.at:g}")


_OF_SERIES = ("higher_is_better", "unit", "low", "high", "of", "interval", "resolution")
"""What the metrics of a series have in common."""
