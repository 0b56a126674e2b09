"""Installed plug-ins, which packages offer under names, and the versions of installed packages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from importlib.metadata import PackageNotFoundError, distribution, entry_points, packages_distributions, version
from typing import Final

from study.errors import InputError, nearest
from study.source.import_string import ImportString

GROUPS: Final = {kind: f"seeded_study.{kind}" for kind in ("tasks", "models", "units", "engines")}
"""The groups of entry points that plug-ins are offered in, by what is offered."""


def find_plugin(kind: str, name: str, known: Collection[str] = ()) -> ImportString:
    """Find a plug-in by the name under which an installed package offers it; nothing is imported.

    Args:
        kind: what it is, a key of `GROUPS`.
        name: its name in the study file.
        known: built-in names, which are suggested, too.

    Raises:
        InputError: if no package offers it, or more than one does.
    """
    offers = entry_points(group=GROUPS[kind])
    matches = [offer for offer in offers if offer.name == name]
    if len(matches) > 1:
        packages = ", ".join(sorted(f"{offer.dist.name} ({offer.value})" for offer in matches if offer.dist))
        raise InputError(
            f"{name!r} is offered by more than one installed package: {packages}. Uninstall all but one, or name the "
            "object itself, as package.module:object"
        )
    names = {*known, *offers.names}
    if not matches:
        hint = nearest(name, names) or (f"; there is {', '.join(sorted(names))}" if names else "")
        raise InputError(
            f"{name!r} is no name of {kind} that are built in or offered by installed packages, and no "
            f"package.module:object, by which code of your own is named{hint}"
        )
    offer = matches[0]
    if not re.fullmatch(r"[\w.]+\s*:\s*\w+", offer.value.partition("[")[0].strip()):
        raise InputError(
            f"{name!r} is offered by {offer.dist.name if offer.dist else 'a package'} as {offer.value!r}, which must "
            "be package.module:object: its entry point must be corrected"
        )
    return ImportString(offer.module, offer.attr)


def is_offered(kind: str, name: str) -> bool:
    """Tell whether an installed package offers a plug-in under a name; nothing is imported.

    Args:
        kind: what it is, a key of `GROUPS`.
        name: its name in the study file.
    """
    return name in entry_points(group=GROUPS[kind]).names


def distribution_of(import_string: ImportString) -> str:
    """Return the name and the version of the installed package that a module belongs to, as ``name==1.2``.

    Raises:
        InputError: if it belongs to none, and so has no version.
    """
    names = sorted(set(packages_distributions().get(import_string.package, ())))
    if len(names) > 1:  # several packages share one top-level name, and one of them has the module
        file = import_string.module.replace(".", "/")
        names = [name for name in names if _has(name, (f"{file}.py", f"{file}/__init__.py"))]
    if len(names) != 1:
        raise InputError(
            f"{import_string}: the module is installed, but belongs to no package with a version, by which results "
            "could be told apart: install it with pip, or put it into the folder of the study file"
        )
    return f"{_normal(names[0])}=={version(names[0])}"


def check_distributions(expected: Iterable[str]) -> None:
    """Check that packages are installed here in the versions that a study was started with.

    Args:
        expected: names and versions, as ``name==1.2``.

    Raises:
        InputError: if they aren't.
    """
    for entry in expected:
        name, _, wanted = entry.partition("==")
        try:
            here = version(name)
        except PackageNotFoundError:
            here = "not installed"
        if here != wanted:
            raise InputError(
                f"the study was started with {name} {wanted}, which on this machine is {here}: install {entry} here"
            )


def _has(name: str, files: Collection[str]) -> bool:
    return any(str(file) in files for file in distribution(name).files or ())


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
