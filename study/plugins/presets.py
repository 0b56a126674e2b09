"""Presets: study files that installed packages offer by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from study.errors import InputError, nearest
from study.plugins import offers

_SUFFIX = ".yaml"


def preset_names() -> list[str]:
    """Return the names of all presets, sorted.

    Raises:
        InputError: if a package of presets can't be imported, or two packages offer presets by the same entry point.

    Example:
        >>> "demo" in preset_names()
        True
    """
    return sorted(_presets(offers.names("presets")))


def preset_text(name: str) -> str:
    """Return the text of a preset; of several with this name, that of the last package by its entry point's name.

    Raises:
        InputError: if no preset has this name, a package of presets can't be imported, or two packages offer presets by
            the same entry point.
    """
    presets = _presets(offers.names("presets"))
    if name not in presets:
        raise InputError(f"no preset is called {name!r}{nearest(name, presets)}")
    return presets[name].read_text(encoding="utf-8")


@cache
def _presets(packages: tuple[str, ...]) -> dict[str, Traversable]:
    return {file.name.removesuffix(_SUFFIX): file for package in packages for file in _files(package)}


def _files(name: str) -> Iterator[Traversable]:
    """Yield the study files of the package behind an entry point."""
    package = offers.load("presets", name)
    return (file for file in resources.files(package).iterdir() if file.name.endswith(_SUFFIX))
