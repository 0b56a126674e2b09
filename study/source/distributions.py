"""Installed distributions of modules, and their versions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version

from study.errors import InputError
from study.plugins.import_string import ImportString


def distribution_of(import_string: ImportString) -> str:
    """Return the name and version of the installed package that owns a module, as ``name==1.2``.

    The name is normalized, as ``my-lab`` for ``My_Lab``. A package that alone has the module's top-level name counts as
    its owner, even if it lacks the module.

    Raises:
        InputError: if no installed package owns the module, or several do.
    """
    names = sorted(set(packages_distributions().get(import_string.package, ())))
    if len(names) > 1:  # several packages share the top-level name, but only one has the module
        file = import_string.module.replace(".", "/")
        names = [name for name in names if _has_file(name, (f"{file}.py", f"{file}/__init__.py"))]
    if len(names) != 1:
        raise InputError(
            f"{import_string}: the module is installed, but belongs to no package with a version that "
            "could identify its results: install it with pip, or put it into the folder of the study file"
        )
    return f"{_normalized(names[0])}=={version(names[0])}"


def check_distributions(expected: Iterable[str]) -> None:
    """Check that this machine has the package versions of a study's start.

    Args:
        expected: names and versions, as ``name==1.2``.

    Raises:
        InputError: if a package is missing or has another version.
    """
    for entry in expected:
        name, _, wanted = entry.partition("==")
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = "none"
        if installed != wanted:
            raise InputError(
                f"the study was started with {name} {wanted}, but this machine has {installed}: install {entry}"
            )


def _has_file(name: str, files: Collection[str]) -> bool:
    return any(str(file) in files for file in distribution(name).files or ())


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
