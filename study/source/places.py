"""Origin of top-level modules: the user's own, an installed package's, Python's, or this package's.

The user's own modules lie beside the study file, or on the search path outside the folders of installed packages.
`PYTHONPATH` and `pip install -e` add such folders to the search path.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final

from study.errors import InputError

OURS: Final = ("study", "tasks", "units")
"""Top-level names of this package."""

COPIES: Final[set[str]] = set()
"""Folders of copied code that this process has imported from; they aren't searched for the user's own modules."""

_STDLIB = Path(sysconfig.get_path("stdlib"))
_SITES = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Place:
    """Location of a top-level module.

    Args:
        path: the folder of a package, or the file of a module.
        is_regular: True for a file and for a folder with an ``__init__.py``; False for a namespace package, which
            Python imports only if it finds no regular module anywhere.
    """

    path: Path
    is_regular: bool


def own_place(name: str, folder: Path) -> Path | None:
    """Return the location of a top-level module if it is the user's own.

    The study's folder comes first, but a namespace package in it comes after any regular module of Python, this or an
    installed package, or of the search path.

    Args:
        name: the module's name.
        folder: the folder of the study file.

    Returns:
        The folder of the package or the file of the module; None if it isn't the user's own, doesn't exist, is
        compiled, or is a namespace package in the folder without a ``*.py`` file.

    Raises:
        InputError: if a module in the folder has the name of a module of Python, this or an installed package; for a
            namespace package, only if it has that of an installed namespace package.
    """
    beside, elsewhere = place_beside(name, folder), place_elsewhere(name)
    if beside is not None and beside.is_regular:
        _check_name(name, beside.path, elsewhere)
        return beside.path
    if name in OURS or name in sys.stdlib_module_names:
        return None
    if elsewhere is not None and elsewhere.is_regular:
        return None if is_installed(elsewhere.path) else elsewhere.path
    if beside is not None:
        _check_name(name, beside.path, elsewhere)
        return beside.path
    return None if elsewhere is None or is_installed(elsewhere.path) else elsewhere.path


def place_beside(name: str, folder: Path) -> Place | None:
    """Return the location of a top-level module in a folder, in Python's order: package, file, namespace package.

    Returns:
        The location; None if the folder has no such module, or the module has no ``*.py`` file.
    """
    package, module = folder / name, folder / f"{name}.py"
    if (package / "__init__.py").is_file():
        return Place(package, is_regular=True)
    if module.is_file():
        return Place(module, is_regular=True)
    return Place(package, is_regular=False) if has_python(package) else None


def place_elsewhere(name: str) -> Place | None:
    """Return the location of a top-level module on Python's search path, outside `COPIES`, without importing it.

    Returns:
        The location; None if the module doesn't exist, or is built in, frozen (as `os` is) or compiled.
    """
    spec = _spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations is not None and spec.origin is None:
        folders = list(spec.submodule_search_locations)
        return Place(Path(folders[0]), is_regular=False) if folders else None
    if not spec.has_location or not str(spec.origin).endswith(".py"):  # built-in or compiled: no source to copy
        return None
    path = Path(str(spec.origin)).absolute()
    return Place(path.parent if spec.submodule_search_locations else path, is_regular=True)


def has_python(folder: Path) -> bool:
    """Return True if a path is a folder with Python files, at any depth."""
    return folder.is_dir() and next(folder.rglob("*.py"), None) is not None


def modules_in(folder: Path) -> list[str]:
    """Return the names of the top-level modules and packages in a folder, in no particular order.

    They are those of the ``*.py`` files, and of folders with such files at any depth, if their names are identifiers. A
    name of both is repeated.
    """
    packages = [path.name for path in folder.glob("*/") if path.name.isidentifier() and has_python(path)]
    return [path.stem for path in folder.glob("*.py")] + [name for name in packages if name != "__pycache__"]


def is_installed(path: Path) -> bool:
    """Return True if a top-level module belongs to Python or was written by an installer.

    Installers write into folders with well-known names; in any other folder, they leave a RECORD of their files.

    Args:
        path: the folder of a package, or the file of a module.
    """
    if any(site in path.parts for site in _SITES) or path.is_relative_to(_STDLIB):
        return True
    starts = (f"{path.name}/", f"{path.name},")
    lists = (record.read_text("utf-8", "replace") for record in path.parent.glob("*.dist-info/RECORD"))
    return any(line.startswith(starts) for text in lists for line in text.splitlines())


def _check_name(name: str, path: Path, elsewhere: Place | None) -> None:
    """Check that no module of Python, this package or an installed package has the name of a user's module."""
    if name in OURS:
        other = "and this program has one, too"
    elif name in sys.stdlib_module_names:
        other = "and Python itself has one"
    elif elsewhere is not None and elsewhere.path != path and is_installed(elsewhere.path):
        other = f"and the installed {elsewhere.path}, which you may uninstall"
    else:
        return
    raise InputError(
        f"two modules are called {name}: {path}, {other}. A process can import only one of them: rename yours"
    )


def _spec(name: str) -> ModuleSpec | None:
    path = [entry for entry in sys.path if entry not in COPIES]
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = None if find is None else find(name, path if finder is PathFinder else None)
        if spec is not None:
            return spec  # type: ignore[no-any-return]
    return None
