"""Values that stand in for those of a study file: `seeds=50`, `grid.hidden_size=[2,4]`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from study.errors import InputError
from study.spec.document import Document, Path, read, where

Overrides = Mapping[Path, Any]
"""Values by their places in a file: keys from the top."""


def parse_overrides(texts: Sequence[str]) -> Overrides:
    """Read overrides as a command line has them.

    Args:
        texts: each the keys from the top, with dots between them, an equals sign, and a value as YAML has it.

    Raises:
        InputError: if one of them isn't that.

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
    """Put values into a file's data, in place; tables that aren't there are made.

    Raises:
        InputError: if a place is within something that isn't a table.
    """
    for path, value in overrides.items():
        table = document.data
        for depth, key in enumerate(path[:-1], start=1):
            table = table.setdefault(key, {}) if isinstance(table, dict) else None
            if not isinstance(table, dict):
                raise InputError(f"{where(path)}: {where(path[:depth])} is no table, so nothing in it can be replaced")
        table[path[-1]] = value
        document.lines = {at: line for at, line in document.lines.items() if at[: len(path)] != path}
        document.replaced.add(path)


class _Dumper(yaml.SafeDumper):
    """Writes what `read` takes: no anchors, and a list of plain values on one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(data: Mapping[str, Any], comment: str = "") -> str:
    """Write a file's data as YAML.

    Raises:
        InputError: if there is a value that no file can have.

    Example:
        >>> print(dump({"study": "mine", "grid": {"hidden_size": (2, 4)}, "seeds": 3}), end="")
        study: mine
        grid:
          hidden_size: [2, 4]
        seeds: 3
    """
    try:
        text = yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None)
    except yaml.YAMLError as error:
        reason = " ".join(map(str, error.args))
        raise InputError(f"a study has only texts, numbers, lists and tables, as a file has: {reason}") from None
    return f"# {comment}\n{text}" if comment else text


def describe(overrides: Overrides) -> str:
    """Write overrides as a command line has them."""
    return " ".join(f"{where(path)}={_in_line(value)}" for path, value in overrides.items())


def _in_line(value: Any) -> str:
    text = yaml.dump([value], Dumper=_Dumper, allow_unicode=True, default_flow_style=True, width=math.inf)
    return text.strip()[1:-1]
