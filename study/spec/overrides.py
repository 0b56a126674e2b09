"""Overrides of a study file's values: `seeds=50`, `grid.hidden_size=[2,4]`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from study.errors import InputError
from study.plugins.families import is_family_task
from study.spec.document import Document, Path, as_yaml, read, where
from study.spec.seeds import format_seeds
from study.spec.settings_form import join_path, normalize
from study.spec.tables import POINTS

Overrides = Mapping[Path, Any]
"""New values by their places in the file: keys from the top."""


def parse_overrides(texts: Sequence[str]) -> Overrides:
    """Parse overrides from a command line.

    Args:
        texts: overrides KEY=VALUE, with keys from the top joined by dots, and a YAML value.

    Raises:
        InputError: if a text isn't an override, or a key is given twice.

    Example:
        >>> parse_overrides(["seeds=50", "grid.hidden_size=[2, 4]"])
        {('seeds',): 50, ('grid', 'hidden_size'): [2, 4]}
    """
    overrides: dict[Path, Any] = {}
    for text in texts:
        keys, equals, value = text.partition("=")
        path = tuple(keys.strip().split("."))
        document = read(f"value: {value}")
        if not equals or not all(path) or document.problems or not isinstance(document.data, dict):
            raise InputError(
                f"{text!r} must be KEY=VALUE with a key of the study file, such as seeds=50 or grid.hidden_size=[2,4]"
            )
        if path in overrides:
            raise InputError(f"{where(path)} must be given once, but is given twice")
        overrides[path] = document.data["value"]
    return overrides


def override(document: Document, overrides: Overrides) -> None:
    """Put overrides into a file's data, in place; missing tables are created.

    An override of a hyperparameter for all models removes all other settings of it for all models, unless they are
    overridden, too. An override of a nested table, as in ``fixed.model={width: 8}``, removes no other settings of its
    keys. One with its own `when` removes the hyperparameter's condition under `when`. The document's `notices` name
    each axis of the grid, and each range, that is removed or changed without being overridden itself. Finally, the
    document is normalized (`study.spec.settings_form.normalize`).

    Args:
        document: the file, normalized; its data must be a table.
        overrides: the new values.

    Raises:
        InputError: if a place is inside a value that isn't a table.
    """
    overrides = {join_path(path, document.data): value for path, value in overrides.items()}
    for path, value in overrides.items():
        _displace(document, path, value, overrides)
        table = document.data
        for depth, key in enumerate(path[:-1], start=1):
            table = table.setdefault(key, {}) if isinstance(table, dict) else None
            if not isinstance(table, dict):
                raise InputError(f"{where(path)}: {where(path[:depth])} isn't a table: override it as a whole")
        table[path[-1]] = value
        _replaced(document, path)
        if isinstance(value, dict) and "when" in value and isinstance(document.data.get("when"), dict):
            document.data["when"].pop(path[-1], None)
    normalize(document)


def _replaced(document: Document, path: Path) -> None:
    document.lines = {at: line for at, line in document.lines.items() if at[: len(path)] != path}
    document.replaced.add(path)


def _displace(document: Document, path: Path, value: Any, overrides: Overrides) -> None:
    """Remove an override's hyperparameters from all other tables for all models, with notices on axes and ranges.

    Settings that are overridden themselves stay. An override of another key is a no-op.
    """
    prefixes = _prefixes(document.data)
    if path[0] not in prefixes or (len(path) > 2 and path[0] != "ranges"):
        return
    keys = list(value) if len(path) == 1 and isinstance(value, Mapping) else list(path[1:2])
    names = {f"{prefixes[str(path[0])]}{key}" for key in keys} - ({"name"} if path[0] == "task" else set())
    for table, prefix in prefixes.items():
        content = document.data.get(table)
        if not isinstance(content, dict) or table == path[0]:
            continue
        for name in names:
            key = name.removeprefix(prefix)
            if (
                name == f"{prefix}{key}"
                and key in content
                and (table, key) not in overrides
                and (table,) not in overrides
            ):
                if table in ("grid", "ranges"):
                    document.notices.append(f"{where(path)} replaces {table}.{key} of the file")
                del content[key]
    axes = document.data.get("zip")
    for axis in list(axes) if isinstance(axes, dict) and ("zip",) not in overrides else ():
        if ("zip", axis) not in overrides:
            _displace_in_axis(document, axes, ("zip", axis), names, where(path))
    if POINTS in document.data and (POINTS,) not in overrides:
        _displace_in_axis(document, document.data, (POINTS,), names, where(path))


def _displace_in_axis(document: Document, axes: dict[str, Any], place: Path, names: set[str], by: str) -> None:
    """Remove hyperparameters from the points of an axis, merge points that become equal, and add a notice.

    A merged point keeps only a label that all its points share. An axis that sets nothing else is removed. If no point
    sets these hyperparameters, or a point isn't a table, this is a no-op.
    """
    axis = str(place[-1])
    points = axes[axis]
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        return  # a mistake, reported when the file is checked
    displaced = [name for name in names if any(name in point for point in points)]
    if not displaced:
        return
    merged: list[dict[str, Any]] = []
    for point in points:
        kept = {key: content for key, content in point.items() if key not in names}
        same = next((other for other in merged if _without_label(other) == _without_label(kept)), None)
        if same is None:
            merged.append(kept)
        elif same.get("label") != kept.get("label"):
            same.pop("label", None)  # it no longer identifies the point
    is_lost = len(merged) == 1 and not _without_label(merged[0])
    notice = f"{by} replaces {', '.join(displaced)} of the axis {where(place)}"
    if is_lost:
        del axes[axis]
        notice += ", which sets nothing else and is removed"
    else:
        axes[axis] = merged
    if not is_lost and len(merged) < len(points):
        notice += f", whose {len(points)} points become {len(merged)}"
    document.notices.append(notice)
    _replaced(document, place)


def _without_label(point: Mapping[str, Any]) -> dict[str, Any]:
    return {key: content for key, content in point.items() if key != "label"}


def _prefixes(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables whose keys are hyperparameters for all models, with the prefix that completes a key to a name.

    The prefix is ``success_`` for `success`, which only files of families have, and empty otherwise.
    """
    task = data.get("task")
    name = task.get("name") if isinstance(task, dict) else None
    has_family = isinstance(name, str) and is_family_task(name)
    return dict.fromkeys(("task", "protocol", "fixed", "grid", "ranges"), "") | (
        {"success": "success_"} if has_family else {}
    )


def dump(data: Mapping[str, Any], comment: str = "") -> str:
    """Return a file's data as YAML text, with Python ranges of seeds as a file writes them.

    Args:
        data: the data.
        comment: a comment for the first lines; empty for none.

    Raises:
        InputError: if a value has a type that `study.spec.document.as_yaml` can't write, such as another Python range.

    Example:
        >>> print(dump({"study": "mine", "grid": {"hidden_size": (2, 4)}, "seeds": 3}), end="")
        study: mine
        grid:
          hidden_size: [2, 4]
        seeds: 3
    """
    text = _yaml(dict(data) | ({"seeds": _seeds_as_text(data["seeds"])} if "seeds" in data else {}))
    return "".join(f"# {line}\n" for line in comment.splitlines()) + text


def _seeds_as_text(seeds: Any) -> Any:
    """Return seeds with each Python range in the form of `format_seeds`."""
    if isinstance(seeds, Mapping):
        return {name: _seeds_as_text(value) for name, value in seeds.items()}
    return format_seeds(seeds) if isinstance(seeds, range) else seeds


def describe(overrides: Overrides) -> str:
    """Format overrides as on a command line, joined by spaces.

    Raises:
        InputError: if a value has a type that `study.spec.document.as_yaml` can't write, such as a Python range.
    """
    return " ".join(f"{where(path)}={_in_line(value)}" for path, value in overrides.items())


def _in_line(value: Any) -> str:
    return _yaml([value], width=math.inf, is_inline=True).strip()[1:-1]


def _yaml(value: Any, **options: Any) -> str:
    try:
        return as_yaml(value, **options)
    except yaml.YAMLError as error:
        reason = " ".join(map(str, error.args))
        raise InputError(f"a study's values must be texts, numbers, lists or tables, as in a file: {reason}") from None
