"""Points of a study's grid, with the place of each value in the file.

Hyperparameters have two levels: values for all models, and a model's own values, which replace them. On each level a
hyperparameter is set only once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from study.errors import InputError
from study.spec.conditions import Conditions
from study.spec.document import Path
from study.spec.seeds import MOST_TRIALS
from study.spec.table import Table
from study.spec.tables import POINTS, ModelTable, Spec

_ASK_ABOVE = 100_000
_MOST_CELLS = 100_000  # planning them takes ten seconds


@dataclass(frozen=True)
class GridValue:
    """A hyperparameter's value, and its place in the file."""

    value: Any
    path: Path


GridValues = dict[str, GridValue]


@dataclass(frozen=True)
class Axis:
    """One axis of the grid.

    Args:
        name: the name of the hyperparameter, or of the zip.
        points: the values of each point.
        labels: the label of each point; None without one.
    """

    name: str
    points: tuple[GridValues, ...]
    labels: tuple[str | None, ...]

    def without(self, names: Collection[str]) -> Axis:
        """Return the axis without the named hyperparameters; it keeps all points, even empty ones, and labels."""
        points = ({k: v for k, v in point.items() if k not in names} for point in self.points)
        return Axis(self.name, tuple(points), self.labels)

    @property
    def names(self) -> set[str]:
        """The names of the hyperparameters that any point sets."""
        return set().union(*self.points)


@dataclass(frozen=True)
class Level:
    """Hyperparameters set for all models, or for one.

    Args:
        fixed: hyperparameters with one value.
        axes: the swept axes; in a search, also an axis for each range, with its ends or choices.
        ranges: hyperparameters that a search chooses, each a `RangeTable`.
        conditions: the conditions under which hyperparameters apply.
    """

    fixed: GridValues
    axes: tuple[Axis, ...]
    ranges: GridValues = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)

    @property
    def names(self) -> set[str]:
        """The names of the hyperparameters that the level sets."""
        return set(self.fixed).union(*(axis.names for axis in self.axes))


@dataclass(frozen=True)
class Point:
    """One point of a model's grid.

    Args:
        settings: the value of each hyperparameter that is set and applies.
        labels: the point's labels, by axis.
        inapplicable: hyperparameters whose conditions aren't met.
    """

    settings: GridValues
    labels: dict[str, str]
    inapplicable: frozenset[str] = frozenset()


def common_level(spec: Spec) -> Level:
    """Return the hyperparameters that the file sets for all models; in a search, `points` doesn't count."""
    fixed: GridValues = {}
    for table, prefix in (*spec.tables, ("fixed", "")):
        for name, value in getattr(spec, table).explicit.items():
            if (table, name) != ("task", "name"):
                fixed.setdefault(prefix + name, GridValue(value, (table, name)))
    axes = (*_axes(spec, ()), *_points_axis(spec))
    return Level(fixed, axes, _ranges(spec, ()), _conditions(spec))


def own_level(spec: Spec, index: int) -> Level:
    """Return the hyperparameters that a model's own table sets."""
    model, at = spec.model_tables[index], ("models", index)
    fixed = {name: GridValue(value, (*at, "fixed", name)) for name, value in model.fixed.explicit.items()}
    return Level(fixed, _axes(model, at), _ranges(model, at), _conditions(model))


def setting_tables(spec: Spec) -> list[tuple[Spec | ModelTable, Path]]:
    """Return the tables that set hyperparameters, for all models and for each model, with their places."""
    return [(spec, ()), *((model, ("models", i)) for i, model in enumerate(spec.model_tables))]


def places(spec: Spec | ModelTable, at: Path = ()) -> Iterator[tuple[str, Path]]:
    """Yield the name and place of each hyperparameter that a level sets, once for each fixed value, range or axis.

    Those that `points` of a search set aren't among them.

    Args:
        spec: the study, for the settings of all models; or a model's table.
        at: the place of the model's table.
    """
    if isinstance(spec, Spec):
        for table, prefix in spec.tables:
            names = (name for name in getattr(spec, table).explicit if (table, name) != ("task", "name"))
            yield from ((prefix + name, (*at, table, name)) for name in names)
    for table in ("fixed", "grid", "ranges"):
        yield from ((name, (*at, table, name)) for name in getattr(spec, table).explicit)
    for axis in (*_zip_axes(spec, at), *(_points_axis(spec) if isinstance(spec, Spec) else ())):
        first = {name: setting.path for point in reversed(axis.points) for name, setting in point.items()}
        yield from first.items()


def _axes(table: Spec | ModelTable, at: Path) -> tuple[Axis, ...]:
    grid = (
        Axis(
            name,
            tuple({name: GridValue(value, (*at, "grid", name, i))} for i, value in enumerate(values)),
            (None,) * len(values),
        )
        for name, values in table.grid.explicit.items()
    )
    return (*grid, *_zip_axes(table, at), *_range_axes(table, at))


def _ranges(table: Spec | ModelTable, at: Path) -> GridValues:
    return {name: GridValue(limits, (*at, "ranges", name)) for name, limits in table.ranges.explicit.items()}


def _conditions(table: Spec | ModelTable) -> Conditions:
    return Conditions({name: condition.explicit for name, condition in table.when.explicit.items()})


def _range_axes(table: Spec | ModelTable, at: Path) -> Iterator[Axis]:
    """Yield an axis for each range, with its ends and choices."""
    for name, limits in table.ranges.explicit.items():
        keys = [key for key in ("low", "high") if getattr(limits, key) is not None]
        settings = [GridValue(getattr(limits, key), (*at, "ranges", name, key)) for key in keys]
        settings += [GridValue(v, (*at, "ranges", name, "choices", i)) for i, v in enumerate(limits.choices or ())]
        if settings:
            yield Axis(name, tuple({name: setting} for setting in settings), (None,) * len(settings))


def _zip_axes(table: Spec | ModelTable, at: Path) -> Iterator[Axis]:
    for axis, points in table.zip.items():
        yield _axis_of_points(axis, points, (*at, "zip", axis))


def _points_axis(spec: Spec) -> Iterator[Axis]:
    if spec.points and spec.search is None:
        yield _axis_of_points(POINTS, spec.points, (POINTS,))


def _axis_of_points(name: str, points: Sequence[Table], at: Path) -> Axis:
    tables = [point.explicit for point in points]
    labels = tuple(point.pop("label", None) for point in tables)
    settings = tuple(
        {key: GridValue(value, (*at, i, key)) for key, value in point.items()} for i, point in enumerate(tables)
    )
    return Axis(name, settings, labels)


def model_level(spec: Spec, index: int) -> Level:
    """Return the level of one model: its own settings, and the common ones that it doesn't replace."""
    common, own = common_level(spec), own_level(spec, index)
    names = own.names
    fixed = {name: setting for name, setting in common.fixed.items() if name not in names} | own.fixed
    shared = (axis.without(names) if axis.names & names else axis for axis in common.axes)
    ranges = {name: setting for name, setting in common.ranges.items() if name not in names} | own.ranges
    axes = (*(axis for axis in shared if axis.names or not names), *own.axes)
    return Level(fixed, axes, ranges, common.conditions.without(names) | own.conditions)


def points(level: Level, names: Collection[str] | None = None) -> Iterator[Point]:
    """Yield the points of a model's grid; the last axis varies fastest.

    Args:
        level: the model's level, whose conditions must not form a cycle.
        names: the hyperparameters to yield; None for all. Axes vary only if they set one of these hyperparameters, or
            one on which these depend. `Point.inapplicable` is right for these hyperparameters only.
    """
    conditions = level.conditions
    needed = None if names is None else conditions.controls(names).union(names)
    axes = [axis for axis in level.axes if needed is None or axis.names & needed]
    for chosen in itertools.product(*(zip(axis.points, axis.labels, strict=True) for axis in axes)):
        settings = dict(level.fixed)
        for point, _ in chosen:
            settings |= point
        labels = {axis.name: label for axis, (_, label) in zip(axes, chosen, strict=True) if label is not None}
        missing: set[str] = set()
        if conditions.allowed:
            missing = conditions.inapplicable({name: setting.value for name, setting in settings.items()})
        if missing or names is not None:
            settings = {
                name: setting
                for name, setting in settings.items()
                if name not in missing and (names is None or name in names)
            }
        yield Point(settings, labels, frozenset(missing))


def largest_size(spec: Spec) -> int:
    """Return an upper bound of the number of trials, without making them; equal cells aren't merged yet."""
    if spec.search is not None:
        return spec.search.trials + spec.search.confirm_seeds * spec.search.confirm_candidates
    return _cell_limit(spec) * spec.most_seeds


def _cell_limit(spec: Spec) -> int:
    if spec.search is not None:
        return 0  # a search plans its cells one by one
    levels = (model_level(spec, index) for index in range(len(spec.model_tables)))
    return sum(math.prod(len(axis.points) for axis in level.axes) for level in levels)


def is_too_large(spec: Spec) -> bool:
    """Return True if a study has more cells or trials than can be planned, 100,000 and `MOST_TRIALS`.

    Cells of a search aren't limited, since it plans them one by one.
    """
    return _cell_limit(spec) > _MOST_CELLS or largest_size(spec) > MOST_TRIALS


def check_limits(spec: Spec) -> None:
    """Check that a study has no more cells and trials than can be planned (`is_too_large`).

    Raises:
        InputError: if it has more.
    """
    if not is_too_large(spec):
        return
    cells, trials = _cell_limit(spec), largest_size(spec)
    size, most = (f"{trials:,} trials", MOST_TRIALS) if trials > MOST_TRIALS else (f"{cells:,} cells", _MOST_CELLS)
    raise InputError(
        f"study {spec.study!r} asks for up to {size}, but {most:,} is the most that can be planned: each list under "
        "grid and zip multiplies them; split it or shorten a list"
    )


def check_size(spec: Spec, yes: bool) -> None:
    """Check that a study isn't huge by mistake, before its cells are made.

    Args:
        spec: the study.
        yes: whether more than 100,000 trials are intended.

    Raises:
        InputError: if it may have more than 100,000 trials (`largest_size`) without `yes`, or more cells or trials than
            can be planned (`is_too_large`).
    """
    check_limits(spec)
    trials = largest_size(spec)
    if trials > _ASK_ABOVE and not yes:
        raise InputError(
            f"study {spec.study!r} asks for up to {trials:,} trials, more than {_ASK_ABOVE:,}. Each list "
            "under grid and zip multiplies them: shorten a list, or allow this number with --yes"
        )
