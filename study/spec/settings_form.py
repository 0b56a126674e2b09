"""Normalization of the tables that set hyperparameters.

Conditions move out of axes: ``grid: {momentum: {values: [0, 0.9], when: {optimizer: sgd}}}`` becomes
``grid: {momentum: [0, 0.9]}`` and ``when: {momentum: {optimizer: sgd}}``. In studies of functions and programs, nested
tables become dotted names: ``fixed: {model: {width: 8}}`` becomes ``fixed: {model.width: 8}``. Values keep their lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from study.spec.document import Document, Path
from study.spec.tables import POINTS, RangeTable

_IN_AXES = {"fixed": {"value", "when"}, "grid": {"values", "when"}, "ranges": set(RangeTable.model_fields)}


def has_nested_settings(data: Mapping[str, Any]) -> bool:
    """Return True if nested tables may set hyperparameters: in studies of functions and programs."""
    return "train" in data or "command" in data


def normalize(document: Document) -> None:
    """Move conditions of values, axes and ranges into `when`, and flatten nested tables of hyperparameters.

    The document is changed in place. Only studies of functions and programs have nested tables, which become dotted
    names. Invalid parts stay for later checks; names and conditions that become repeated are added to the document's
    problems.
    """
    if not isinstance(document.data, dict):
        return
    is_nested = has_nested_settings(document.data)
    for level, at in _levels(document.data):
        for kind in _IN_AXES:
            if isinstance(table := level.get(kind), dict):
                level[kind] = _flattened(document, table, (*at, kind), kind) if is_nested else table
                _take_out_conditions(document, level, (*at, kind), kind)
        if is_nested:
            if isinstance(when := level.get("when"), dict):
                level["when"] = _flattened(document, when, (*at, "when"), "when")
            for points, place in _lists_of_points(level, at):
                points[:] = [
                    _flattened(document, point, (*place, i), POINTS) if isinstance(point, dict) else point
                    for i, point in enumerate(points)
                ]


def join_path(path: Path, data: Mapping[str, Any]) -> Path:
    """Join the keys of a nested hyperparameter in a place to one dotted key; return other places unchanged.

    It applies to `fixed`, `grid` and `ranges` in studies of functions and programs. A last key that describes a value
    or range, such as `value`, `when` or `low`, isn't joined.

    Example:
        >>> join_path(("ranges", "model", "width", "low"), {"train": "lab:fit"})
        ('ranges', 'model.width', 'low')
    """
    if not has_nested_settings(data) or not path or path[0] not in _IN_AXES:
        return path
    kind, *names = map(str, path)
    last = [names.pop()] if len(names) > 1 and names[-1] in _IN_AXES[kind] else []
    return (kind, *([".".join(names)] if names else []), *last)


def given_values(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return all values of each hyperparameter that a study file sets under fixed, grid, zip, points or ranges.

    Hyperparameters are in the order of first occurrence in these tables. Of a range, the values are its choices, or
    low, high and step. Settings of single models, and under task, protocol and success, don't count.

    Args:
        data: the file's content, normalized, valid or not.

    Example:
        >>> given_values({"fixed": {"a": 1}, "grid": {"b": [1, 2]}, "zip": {"pairs": [{"c": 3}, {"c": 4}]}})
        {'a': [1], 'b': [1, 2], 'c': [3, 4]}
    """
    given: dict[str, list[Any]] = {}

    def table(name: str) -> Mapping[str, Any]:
        content = data.get(name)
        return content if isinstance(content, Mapping) else {}

    for name, value in table("fixed").items():
        given.setdefault(str(name), []).append(value)
    for name, values in table("grid").items():
        given.setdefault(str(name), []).extend(values if isinstance(values, list) else [values])
    for points in (*table("zip").values(), data.get(POINTS)):
        for point in points if isinstance(points, list) else ():
            for name, value in point.items() if isinstance(point, Mapping) else ():
                if name == "label":  # the point's name
                    continue
                given.setdefault(str(name), []).append(value)
    for name, limits in table("ranges").items():
        if isinstance(limits, Mapping):
            choices = limits.get("choices")
            ends = [limits[key] for key in ("low", "high", "step") if key in limits]
            given.setdefault(str(name), []).extend(choices if isinstance(choices, list) else ends)
    return given


def _levels(data: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Path]]:
    yield data, ()
    models = data.get("models")
    for i, model in enumerate(models if isinstance(models, list) else ()):
        if isinstance(model, dict):
            yield model, ("models", i)


def _lists_of_points(level: Mapping[str, Any], at: Path) -> Iterator[tuple[list[Any], Path]]:
    axes = level.get("zip")
    for axis, points in axes.items() if isinstance(axes, dict) else ():
        if isinstance(points, list):
            yield points, (*at, "zip", axis)
    if isinstance(points := level.get(POINTS), list):
        yield points, (*at, POINTS)


def _flattened(document: Document, table: Mapping[str, Any], at: Path, kind: str) -> dict[str, Any]:
    """Return a table with nested tables flattened to dotted names; values keep their lines, repeats become problems."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        is_nested = isinstance(value, dict) and value and not _is_axis(kind, value)
        inner = _flattened(document, value, (*at, name), kind) if is_nested else {}
        for key in inner:
            _move(document, (*at, name, key), (*at, f"{name}.{key}"))
        for key, leaf in {f"{name}.{key}": leaf for key, leaf in inner.items()}.items() if inner else [(name, value)]:
            if key in flat:
                document.problems.append(document.problem((*at, key), "is given twice; keep one"))
            flat[key] = leaf
    return flat


def _is_axis(kind: str, value: Mapping[str, Any]) -> bool:
    """Return True if a table describes one hyperparameter, rather than holding several."""
    if kind == "when":
        return not any(isinstance(content, dict) for content in value.values())
    keys = set(value) & (_IN_AXES.get(kind, set()) | ({"low", "high"} if kind == "fixed" else set()))
    return any(key == "when" or not isinstance(value[key], dict) for key in keys)


def _take_out_conditions(document: Document, level: dict[str, Any], at: Path, kind: str) -> None:
    table, inner = level[kind], {"fixed": "value", "grid": "values"}.get(kind)
    for name, value in table.items():
        if not isinstance(value, dict):
            continue
        if inner is not None and not {inner} <= set(value) <= _IN_AXES[kind]:
            continue
        if "when" in value:
            place = (*at[:-1], "when", name)
            when = level.setdefault("when", {})
            if isinstance(when, dict) and name in when:
                document.problems.append(document.problem((*at, name, "when"), "is also given under when; keep one"))
            elif isinstance(when, dict):
                when[name] = value.pop("when")
                _move(document, (*at, name, "when"), place)
        if inner is not None:
            table[name] = value[inner]
            _move(document, (*at, name, inner), (*at, name))


def _move(document: Document, source: Path, target: Path) -> None:
    """Copy the lines of values to another place."""
    count = len(source)
    moved = {(*target, *path[count:]): line for path, line in document.lines.items() if path[:count] == source}
    document.lines.update(moved)
