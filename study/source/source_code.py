"""Source code of import strings: its files, their digest, and its identity in trial ids."""

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
    """Code that trials run: the user's own files, and installed packages by version.

    Args:
        files: contents by name, with slashes, relative to the folder from which Python imports them.
        distributions: installed packages of import strings, as ``name==1.2``, sorted.

    Attributes:
        digest: SHA-256 of the names and bytes of `files`, by which workers identify their copy.
    """

    files: Mapping[str, bytes] = field(repr=False)
    distributions: tuple[str, ...] = ()
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.files))

    @property
    def archive(self) -> bytes:
        """The files as an archive for the store; `study.source.archive.unpacked` unpacks it."""
        return pack_archive(self.files)

    def unpacked(self) -> Path | None:
        """Return the folder of this machine's copy, written if necessary; None without files.

        Raises:
            InputError: if the copy was changed, or the cache of code isn't private.
            OSError: if the cache can't be written.
        """
        return unpacked(self.archive, self.digest, code_cache()) if self.files else None

    @property
    def parsed(self) -> str:
        """SHA-256 of `files` as parsed, without comments, docstrings and formatting (`parsed_digest`)."""
        return parsed_digest(self.files)

    def identity(self, version: str | int | None = None, files: str | None = None) -> str:
        """Return the code's identity in trial ids.

        Args:
            version: a user-supplied version, used instead of the code's digest and the installed packages.
            files: identity of the files; None for the digest of the parsed code.

        Returns:
            ``version:VERSION``, or the identities of files and installed packages, joined by semicolons; empty without
            files and packages.

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
    """Read the code of import strings, without importing it.

    The code consists of each import string's top-level package or module, and the user's own modules that these
    import, recursively. Imports are read from the sources, so the result doesn't depend on the state of the process.
    A package contributes all its ``*.py`` files, except hidden ones and those in hidden folders, `__pycache__`,
    `site-packages` and virtual environments. Of installed import strings, only the packages' names and versions are
    read.

    Args:
        import_strings: the objects that a trial calls, such as its task and its model.
        folder: the folder of the study file.
        include: glob patterns of further files such as ``data/*.csv``, relative to the study's folder or to the parent
            folder of a package. Of a Python file, its package and imports belong to the code, too.

    Raises:
        InputError: if a module doesn't exist or is Python's or this package's, two modules have the same name, an
            installed module belongs to no single package, a pattern is invalid or matches nothing, a file can't be
            read, a link leaves the folder of the code, or the code is too large.
    """
    importlib.invalidate_caches()  # files may be newer than Python's cache of their folders
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
        boundary = folder if place.is_relative_to(folder) else place.parent
        unread = read_files(
            ((path, path.relative_to(place.parent)) for path in python_files(place, boundary)), files, boundary
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
    """Return the location of an import string's top-level module; None if it is installed.

    Raise InputError if it doesn't exist, is Python's or this package's, or is the user's own under the name of an
    installed module.
    """
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
        raise InputError(f"{import_string}: {name} is a module of Python itself, whose objects a study can't call")
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
        raise InputError(f"{import_string}: neither {path}.py nor {path}/__init__.py exists{hint}")
