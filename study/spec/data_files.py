"""The data files that a study file of a packed task names: read, and replaced by their digests."""

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
"""Of each field that names data, the digests by the paths that the file has."""


def named_data(data: Any, fields: Mapping[str, Hyperparameter], folder: Path) -> Iterator[tuple[Place, Any]]:
    """Read the data that a study file names, each once.

    Args:
        data: the study file's.
        fields: those of its task.
        folder: the folder of the study file.

    Yields:
        The place in the file, and the field's name with the data, or the message of a mistake.
    """
    kinds = {name: one.data for name, one in fields.items() if one.data is not None}
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
    return name, source


def with_digests(data: Any, digests: Digests) -> None:
    """Replace the paths of data in a study file's data by the digests that stand for them.

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
    """Yield each value of hyperparameters with some names: its place, and the table or list that has it, with the key.

    A hyperparameter has a value, or, where it is swept, a list of values.
    """
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        if key in names and isinstance(node, dict):
            several = value if isinstance(value, list) else None
            yield from ((((*place, key, i), (value, i))) for i in range(len(several or ())))
            if several is None:
                yield (*place, key), (node, key)
        else:
            yield from _values_of(value, names, (*place, key))
