"""The source code that import strings name: its files, their digest, and what stands for it in an id."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from study.errors import InputError, nearest
from study.plugins.import_string import ImportString
from study.source.archive import code_cache, digest_of, pack_archive, unpacked
from study.source.code_files import imported_names, included_files, python_files, read_files
from study.source.distributions import distribution_of
from study.source.parsed import parsed_digest
from study.source.places import OURS, modules_in, own_place, place_elsewhere


@dataclass(frozen=True, slots=True)
class SourceCode:
    """The code that trials run: the user's own files, and installed packages by their versions.

    Args:
        files: contents by name, relative to the folder that Python finds them in, with slashes.
        distributions: installed packages that import strings name, as ``name==1.2``, in order.
        digest: SHA-256 of `files`, byte by byte, by which workers know their copy; it doesn't depend on the machine,
            on times, or on where the files lie.
    """

    files: Mapping[str, bytes] = field(repr=False)
    distributions: tuple[str, ...] = ()
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.files))

    @property
    def archive(self) -> bytes:
        """The files as bytes for the store, which `study.source.archive.unpacked` unpacks."""
        return pack_archive(self.files)

    def unpacked(self) -> Path | None:
        """Return the folder of the copy that is imported, which is made if need be; None if there are no files."""
        return unpacked(self.archive, self.digest, code_cache()) if self.files else None

    @property
    def parsed(self) -> str:
        """SHA-256 of `files` as they are parsed: comments, docstrings and formatting don't count."""
        return parsed_digest(self.files)

    def identity(self, version: str | int | None = None, files: str | None = None) -> str:
        """Return the code's identity, which is part of the ids of trials.

        Args:
            version: a user-supplied identity, which stays the same when the code changes.
            files: identity of the files; None for that of the parsed code.

        Example:
            >>> code = SourceCode({"train.py": b"x = 1"}, ("mylab==1.2",))
            >>> code.identity() == f"parsed:{code.parsed};mylab==1.2", code.identity(version=3)
            (True, 'version:3')
            >>> code.identity() == SourceCode({"train.py": b"x = 1  # one"}, ("mylab==1.2",)).identity()
            True
        """
        if version is not None:
            return f"version:{version}"
        return ";".join([*([files or f"parsed:{self.parsed}"] if self.files else []), *self.distributions])


def read_source_code(import_strings: Collection[ImportString], folder: Path, include: Sequence[str] = ()) -> SourceCode:
    """Read the code that import strings name; nothing is imported.

    The user's own code is, of each import string, the module's top-level package, or its file if it is in none; of
    these, whatever of the user's own they import by name, and so on. Which modules that are is read from the sources,
    so it is the same whatever a process has imported before. Of a package, all ``*.py`` are taken, except in hidden
    folders, `__pycache__` and virtual environments.

    Args:
        import_strings: what a trial runs, such as its task and its model.
        folder: the folder of the study file.
        include: patterns of further files, relative to the folder or to where a package lies, such as ``data/*.csv``.

    Raises:
        InputError: if a module isn't there, if two have one name, if a file can't be read, if a link leaves the folder
            that the code lies in, or if there is too much.
    """
    importlib.invalidate_caches()  # files may be younger than what Python knows of their folders
    folder = folder.absolute()
    places = {import_string.package: _place(import_string, folder) for import_string in import_strings}
    waiting = [place for place in places.values() if place is not None]
    roots = list(dict.fromkeys([folder, *(place.parent for place in waiting)]))
    files = included_files(include, roots)
    known = set(places)
    unread = dict(files)
    while True:
        imported = imported_names(unread) - known
        known |= imported
        waiting += [place for name in sorted(imported) if (place := own_place(name, folder)) is not None]
        if not waiting:
            break
        place = waiting.pop()
        inside = folder if place.is_relative_to(folder) else place.parent
        unread = read_files(
            ((path, path.relative_to(place.parent)) for path in python_files(place, inside)), files, inside
        )
        files |= unread
    for import_string in import_strings:
        if places[import_string.package] is not None:
            _check_module(import_string, files)
    installed = {
        distribution_of(import_string) for import_string in import_strings if places[import_string.package] is None
    }
    return SourceCode(files, tuple(sorted(installed)))


def _place(import_string: ImportString, folder: Path) -> Path | None:
    """Return where the user's own top-level module of an import string is; None if it is installed."""
    name = import_string.package
    place = own_place(name, folder)
    if place is not None:
        return place
    if name in OURS:
        raise InputError(
            f"{import_string}: {name} is a package of this program, whose tasks and models have short names; a module "
            "of your own must have another name"
        )
    if name in sys.stdlib_module_names:
        raise InputError(
            f"{import_string}: {name} is a module of Python itself, which has nothing that a study may call"
        )
    if place_elsewhere(name) is None:
        raise InputError(
            f"{import_string}: no module is called {name}, neither in {folder} nor among the installed ones"
            f"{nearest(name, modules_in(folder))}"
        )
    return None


def _check_module(import_string: ImportString, files: Mapping[str, bytes]) -> None:
    path = import_string.module.replace(".", "/")
    if not {f"{path}.py", f"{path}/__init__.py"} & files.keys():
        modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files]
        hint = nearest(import_string.module, [name for name in modules if name.startswith(f"{import_string.package}.")])
        raise InputError(f"{import_string}: there is no {path}.py, and no folder {path} with an __init__.py{hint}")
