"""Data files named in the study file of a packed task: reading, and replacement by digests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from study.errors import InputError
from study.interface.data import DataFile
from study.interface.declarations import Hyperparameter
from study.source import SourceData, data_cache, read_data
from study.spec.document import Path as Place

Digests = Mapping[str, Mapping[str, str]]
"""The digests of data, by field and path in the file."""


def named_data(data: Any, fields: Mapping[str, Hyperparameter], folder: Path) -> Iterator[tuple[Place, Any]]:
    """Read each data file that a study file names, once, copy it to the data cache, and register it in this process.

    Args:
        data: the study file's data.
        fields: the fields of its task.
        folder: the folder of the study file.

    Yields:
        The place in the file; and the field's name with its data, or an error message if the data can't be read, the
        cache can't be written or isn't private, or the copy in it was changed.
    """
    kinds = {name: declared.data for name, declared in fields.items() if declared.data is not None}
    seen = set()
    for place, (table, key) in _values_of(data, kinds):
        name, value = str(next(part for part in reversed(place) if part in kinds)), table[key]
        kind: DataFile = kinds[name]
        if isinstance(value, str) and kind.names_path(value) and (name, value) not in seen:
            seen.add((name, value))
            yield place, _read(name, value, kind, folder)


def _read(name: str, path: str, kind: DataFile, folder: Path) -> tuple[str, SourceData] | str:
    try:
        source = read_data(path, kind, folder)
        source.provide(data_cache())
    except InputError as error:
        return str(error)
    except OSError as error:
        return f"the cache {data_cache()} can't be written: {error.strerror or error}"
    return name, source


def with_digests(data: Any, digests: Digests) -> None:
    """Replace paths of data files by their digests, in place; other values stay.

    Example:
        >>> data = {"task": {"file": "a.csv"}, "grid": {"file": ["a.csv", "example"]}}
        >>> with_digests(data, {"file": {"a.csv": "sha256:12"}})
        >>> data
        {'task': {'file': 'sha256:12'}, 'grid': {'file': ['sha256:12', 'example']}}
    """
    for place, (table, key) in list(_values_of(data, digests)):
        name = str(next(part for part in reversed(place) if part in digests))
        if isinstance(table[key], str):
            table[key] = digests[name].get(table[key], table[key])


def _values_of(node: Any, names: Mapping[str, Any], place: Place = ()) -> Iterator[tuple[Place, tuple[Any, Any]]]:
    """Yield each value, or swept value, of the named hyperparameters: its place, its container and its key there."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        if key in names and isinstance(node, dict):
            swept = value if isinstance(value, list) else None
            yield from ((((*place, key, i), (value, i))) for i in range(len(swept or ())))
            if swept is None:
                yield (*place, key), (node, key)
        else:
            yield from _values_of(value, names, (*place, key))
