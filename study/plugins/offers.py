"""Entry points: what installed packages offer to studies by name; nothing is imported to list it.

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
"""The groups of entry points, by kind."""

_OF_FILES = ("presets", "published")
"""Kinds of which an entry may be a package that holds files."""

_OWN_DISTRIBUTION = "seeded-study"
_OWN_PACKAGES = ("tasks", "units")


Offers = Mapping[str, Sequence[EntryPoint]]
"""Entry points of installed packages by name; more than one where several packages offer a name."""


def offers(kind: str) -> Offers:
    """Return the entry points of a kind, of all installed packages, sorted by name.

    Args:
        kind: a key of `GROUPS`.

    Example:
        >>> "identity" in offers("stable_tasks")
        True
    """
    return _offers(kind, tuple(sys.path))


@cache
def _offers(kind: str, path: tuple[str, ...]) -> Offers:
    # Installed packages are listed anew only if the search path has changed: reading their metadata takes 20 ms.
    by_name: dict[str, list[EntryPoint]] = {}
    for offer in sorted(entry_points(group=GROUPS[kind]), key=lambda offer: offer.name):
        by_name.setdefault(offer.name, []).append(offer)
    return by_name


def names(kind: str) -> tuple[str, ...]:
    """List the names that are offered, sorted."""
    return tuple(offers(kind))


def is_offered(kind: str, name: str) -> bool:
    """Tell whether an installed package offers something of a kind under a name.

    Args:
        kind: a key of `GROUPS`.
        name: its name in the study file.
    """
    return name in offers(kind)


def find_plugin(kind: str, name: str, known: Collection[str] = ()) -> ImportString:
    """Find what an installed package offers under a name; nothing is imported.

    Args:
        kind: a key of `GROUPS`.
        name: its name in the study file.
        known: further names, which are suggested, too.

    Raises:
        InputError: if no package offers it, or more than one does.
    """
    offer = _find(kind, name, known)
    return ImportString(offer.module, offer.attr)


def load(kind: str, name: str) -> Any:
    """Import what an installed package offers under a name, once.

    Modules of the working folder don't stand in for those of the package that offers it.

    Args:
        kind: a key of `GROUPS`.
        name: its name.

    Raises:
        InputError: if no package offers it, more than one does, or it can't be imported.

    Example:
        >>> load("families", "simple").plainest_model
        'linear'
    """
    return _load(kind, name, tuple(sys.path))


@cache
def _load(kind: str, name: str, path: tuple[str, ...]) -> Any:
    offer = _find(kind, name)
    try:
        with _package_first(offer):
            return offer.load()
    except InputError:
        raise
    except Exception as error:  # whatever the module of a package raises
        package = offer.dist.name if offer.dist else "a package"
        raise InputError(
            f"{name!r}, offered by {package} as {offer.value}, can't be imported: {error_line(error)}"
        ) from error


def _find(kind: str, name: str, known: Collection[str] = ()) -> EntryPoint:
    matches = offers(kind).get(name, ())
    if len(matches) > 1:
        packages = ", ".join(sorted(f"{offer.dist.name} ({offer.value})" for offer in matches if offer.dist))
        raise InputError(
            f"{name!r} is offered by more than one installed package: {packages}. Uninstall all but one, or name the "
            "object itself, as package.module:object"
        )
    suggested = {*known, *offers(kind)}
    if not matches:
        hint = nearest(name, suggested) or (f"; there is {', '.join(sorted(suggested))}" if suggested else "")
        raise InputError(
            f"{name!r} is no name of {kind} that are built in or offered by installed packages, and no "
            f"package.module:object, by which code of your own is named{hint}"
        )
    offer = matches[0]
    if kind not in _OF_FILES and not re.fullmatch(r"[\w.]+\s*:\s*\w+", offer.value.partition("[")[0].strip()):
        raise InputError(
            f"{name!r} is offered by {offer.dist.name if offer.dist else 'a package'} as {offer.value!r}, which must "
            "be package.module:object: its entry point must be corrected"
        )
    return offer


@contextmanager
def _package_first(offer: EntryPoint) -> Iterator[None]:
    """Let Python look for modules where the offering package is installed before it looks anywhere else.

    Raises:
        InputError: if this process has imported another package by the name of one of this package's own.
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
    # All at once: what functions import later is then found, too.
    module = importlib.import_module(package)
    places = [Path(place).resolve() for place in module.__path__]
    if site / package not in places:
        raise InputError(
            f"this process has imported {package} from {places[0] if places else 'elsewhere'}, but the tasks that come "
            f"with study are a package of that name: run this in a process of its own, or rename your package {package}"
        )
