"""Installed packages: which one a module belongs to, and their versions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version

from study.errors import InputError
from study.plugins.import_string import ImportString


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
