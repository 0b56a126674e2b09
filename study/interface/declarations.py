"""Declarations of hyperparameters and metrics by tasks, models and training functions.

Study files are checked against these declarations. Tables and figures take names, units and directions from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from study.interface.data import DataFile


class _Required:
    """Type of `REQUIRED`."""

    def __repr__(self) -> str:
        return "REQUIRED"


MOST_IN_PACK: Final = 128
"""Default limit of trials in a pack: with small networks, larger packs are hardly faster per trial."""

UPDATE_US: Final = 60.0
"""Default estimate of an update of one trial in a pack on one core, in microseconds, for small networks."""

REQUIRED: Final = _Required()
"""Placeholder for the default of a hyperparameter that a study file must give."""


@dataclass(frozen=True, kw_only=True)
class Hyperparameter:
    """A value that a study file can fix or sweep, and that is part of a trial's id.

    Args:
        type: annotation of its values with their limits, as pydantic reads it.
        default: value if a study file gives none; `REQUIRED` if it must give one.
        title: name in reports; empty for the hyperparameter's name with spaces for underscores.
        unit: unit of its values; empty without one.
        meaning: valid values, for the documentation.
        otherwise: effect of omitting it, for the documentation.
        none: text for None in tables.
        table: table of a study file in which it can be given, besides `fixed`, `grid` and `zip`; empty without one.
        is_method: True if it belongs to the method, and is compared; False if it belongs to the question.
        is_searchable: True if a search may choose it.
        data: the `DataFile` marker if its values name data files; None otherwise.

    Example:
        >>> rate = Hyperparameter(type=float, default=1e-3, title="learning rate", is_method=True)
        >>> rate.default, rate.kind
        (0.001, 'number')
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
        """Kind of its values: ``whole`` or ``number`` for those that may have ranges in a search, else ``other``.

        Raises:
            PydanticUserError: if pydantic can't make a JSON schema of `type`.

        Example:
            >>> Hyperparameter(type=int).kind, Hyperparameter(type=float | None).kind, Hyperparameter(type=str).kind
            ('whole', 'number', 'other')
        """
        from pydantic import TypeAdapter  # only here: a trial's process imports this module and must start fast

        schema = TypeAdapter(self.type).json_schema()
        options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
        if len(options) != 1 or "enum" in options[0] or "const" in options[0]:
            return "other"
        kinds: dict[Any, Literal["whole", "number"]] = {"integer": "whole", "number": "number"}
        return kinds.get(options[0].get("type"), "other")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number that a trial reports.

    Metrics of one kind at several places, such as errors at several lengths, form a series: `series` and `along` are
    equal, and each metric has its own `at`. Reports draw a series along its axis instead of one panel per metric.

    Args:
        higher_is_better: True if greater values are better.
        title: name in reports; empty for the metric's name with spaces for underscores.
        unit: unit of its values; empty without one.
        low: lower limit of its values, inclusive; None without one.
        high: upper limit of its values, inclusive; None without one.
        of: trials over which reports average it: all that ended with a finite value, the solved ones, or none.
        interval: method of the mean's confidence interval: ``bootstrap``, or ``beta`` for a beta distribution on
            [low, high], as publications on arithmetic units compute it.
        resolution: smallest distance from `low` that is distinguishable from 0, for values that are compared by ratio;
            in (0, high - low). None for values that are compared by difference.
        series: name of its series in reports; empty if it isn't part of one.
        along: name of the series' axis, such as ``length``.
        at: its finite place on that axis.
        is_trained: True if training covers its place.

    Raises:
        ValueError: if only some of `series`, `along` and `at` are given, or `at` isn't finite; if a beta interval or a
            resolution lacks one of the limits; if a metric with a resolution has higher_is_better; or if
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
            raise ValueError("a resolution needs both limits, low and high, and a metric whose lower values are better")
        if not 0 < self.resolution < self.limits[1] - self.limits[0]:
            raise ValueError(f"0 < resolution < high - low must hold, but got {self.resolution}")

    @property
    def limits(self) -> tuple[float, float] | None:
        """The pair (low, high); None if either is None."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def check_series(metrics: Mapping[str, Metric]) -> None:
    """Check that the metrics of each series are consistent and at different places.

    Args:
        metrics: all metrics of the trials, by name.

    Raises:
        ValueError: if two metrics of a series are at the same place, or differ in direction, unit, limits, averaged
            trials, interval or resolution.
    """
    first: dict[tuple[str, str], str] = {}
    names: dict[tuple[str, str, float | None], str] = {}
    for name, metric in metrics.items():
        if not metric.series:
            continue
        other = first.setdefault((metric.series, metric.along), name)
        series = f"of the series {metric.series!r} along {metric.along!r}"
        if differing := [field for field in _SERIES_FIELDS if getattr(metric, field) != getattr(metrics[other], field)]:
            raise ValueError(
                f"{other!r} and {name!r} {series} may differ in their places only, but differ in {', '.join(differing)}"
            )
        if (other := names.setdefault((metric.series, metric.along, metric.at), name)) != name:
            raise ValueError(
                f"{other!r} and {name!r} {series} must be at different places, but both are at {metric.at:g}"
            )


_SERIES_FIELDS = ("higher_is_better", "unit", "low", "high", "of", "interval", "resolution")
"""Fields that are equal for all metrics of a series."""
