"""Entry points of installed packages, listed without importing them.

This package offers its own tasks, models, engines, presets and published results in the same groups.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

from study.errors import InputError, nearest
from study.interface.error_text import error_line
from study.plugins.import_string import ImportString

KINDS: Final = (
    "families", "tasks", "stable_tasks", "models", "model_sets", "units", "engines", "presets", "published", "scripts",
    "vocabularies",
)  # fmt: skip
"""Kinds of plug-ins; docs/guides/plugins.md describes the entries of each kind."""

GROUPS: Final = {kind: f"seeded_study.{kind}" for kind in KINDS}
"""Groups of entry points by kind."""

_FILE_KINDS = ("presets", "published")
"""Kinds whose entries may be packages of files."""

_OWN_DISTRIBUTION = "seeded-study"
_OWN_PACKAGES = ("tasks", "units")


Offers = Mapping[str, Sequence[EntryPoint]]
"""Entry points of installed packages by name; more than one if several packages offer the same name."""


def offers(kind: str) -> Offers:
    """Return all installed packages' entry points of a kind, sorted by name.

    Args:
        kind: a key of `GROUPS`.

    Raises:
        KeyError: if there is no such kind.

    Example:
        >>> "identity" in offers("stable_tasks")
        True
    """
    return _offers(kind, tuple(sys.path))


@cache
def _offers(kind: str, path: tuple[str, ...]) -> Offers:
    # Reading the metadata of installed packages takes 20 ms, so the list is cached per search path.
    by_name: dict[str, list[EntryPoint]] = {}
    for offer in sorted(entry_points(group=GROUPS[kind]), key=lambda offer: offer.name):
        by_name.setdefault(offer.name, []).append(offer)
    return by_name


def names(kind: str) -> tuple[str, ...]:
    """Return the offered names of a kind, a key of `GROUPS`, sorted; empty if no package offers any.

    Raises:
        KeyError: if there is no such kind.
    """
    return tuple(offers(kind))


def is_offered(kind: str, name: str) -> bool:
    """Return True if an installed package offers a plug-in of a kind under a name.

    Args:
        kind: a key of `GROUPS`.
        name: the plug-in's name in the study file.

    Raises:
        KeyError: if there is no such kind.
    """
    return name in offers(kind)


def find_plugin(kind: str, name: str, known: Collection[str] = ()) -> ImportString:
    """Return the import string of a plug-in, without importing it.

    Args:
        kind: a key of `GROUPS`, but neither ``presets`` nor ``published``, whose entries may be packages.
        name: the plug-in's name in the study file.
        known: further valid names, to suggest in the error message.

    Raises:
        InputError: if no package or more than one offers the plug-in, or its entry point isn't an import string.
        KeyError: if there is no such kind.
    """
    offer = _find(kind, name, known)
    return ImportString(offer.module, offer.attr)


def load(kind: str, name: str) -> Any:
    """Import a plug-in; later calls return the cached object.

    Modules in the working folder can't shadow those of the package that offers the plug-in, unless they were imported
    before.

    Args:
        kind: a key of `GROUPS`.
        name: the plug-in's name.

    Raises:
        InputError: if no package or more than one offers the plug-in, its entry point isn't an import string, or it
            can't be imported.
        KeyError: if there is no such kind.

    Example:
        >>> load("families", "simple").plainest_model
        'linear'
    """
    return _load(kind, name, tuple(sys.path))


@cache
def _load(kind: str, name: str, path: tuple[str, ...]) -> Any:
    """Import a plug-in, once per search path; raise InputError if that fails."""
    offer = _find(kind, name)
    try:
        with _package_first(offer):
            return offer.load()
    except InputError:
        raise
    except Exception as error:  # a package's module may raise anything
        package = offer.dist.name if offer.dist else "a package"
        raise InputError(
            f"{name!r}, offered by {package} as {offer.value}, can't be imported: {error_line(error)}"
        ) from error


def _find(kind: str, name: str, known: Collection[str] = ()) -> EntryPoint:
    """Return the entry point of a name; raise InputError if there are none, several, or its value is invalid."""
    matches = offers(kind).get(name, ())
    if len(matches) > 1:
        packages = ", ".join(sorted(f"{offer.dist.name} ({offer.value})" for offer in matches if offer.dist))
        raise InputError(
            f"{name!r} is offered by more than one installed package: {packages}. Uninstall all but one, or name the "
            "object itself, as package.module:object"
        )
    suggested = {*known, *offers(kind)}
    if not matches:
        hint = nearest(name, suggested) or (f"; choose from {', '.join(sorted(suggested))}" if suggested else "")
        raise InputError(
            f"{name!r} isn't among the {kind} that are built in or offered by installed packages; name code of your "
            f"own as package.module:object{hint}"
        )
    offer = matches[0]
    if kind not in _FILE_KINDS and not re.fullmatch(r"[\w.]+\s*:\s*\w+", offer.value.partition("[")[0].strip()):
        raise InputError(
            f"{name!r} is offered by {offer.dist.name if offer.dist else 'a package'} as {offer.value!r}, which must "
            "be package.module:object: its entry point must be corrected"
        )
    return offer


@contextmanager
def _package_first(offer: EntryPoint) -> Iterator[None]:
    """Put the folder of the offering package first on Python's search path.

    For this package's own offers, import `tasks` and `units` from there; raise InputError if others have these names.
    """
    is_own = offer.dist is not None and offer.dist.name == _OWN_DISTRIBUTION
    if is_own:
        site = Path(__file__).resolve().parents[2]
    elif offer.dist is not None:
        site = Path(str(offer.dist.locate_file("")))
    else:
        yield
        return
    sys.path.insert(0, str(site))
    try:
        for package in _OWN_PACKAGES if is_own else ():
            _import_own(package, site)
        yield
    finally:
        sys.path.remove(str(site))


def _import_own(package: str, site: Path) -> None:
    # Imported as a whole, so that later imports inside functions resolve, too.
    module = importlib.import_module(package)
    places = [Path(place).resolve() for place in module.__path__]
    if site / package not in places:
        raise InputError(
            f"this process has imported {package} from {places[0] if places else 'elsewhere'}, but the tasks that come "
            f"with study are a package of that name: run this in a process of its own, or rename your package {package}"
        )
