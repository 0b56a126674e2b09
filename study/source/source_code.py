"""The source code that import strings name: its files, their digest, and what stands for it in an id."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from study.errors import InputError, nearest
from study.plugins.import_string import ImportString
from study.source.archive import SIZE_LIMIT_BYTES, code_cache, digest_of, pack_archive, unpacked
from study.source.distributions import distribution_of
from study.source.imports import imported_packages
from study.source.parsed import parsed_digest
from study.source.places import OURS, modules_in, own_place, place_elsewhere
from study.visible import visible


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
    files = _included(include, roots)
    known = set(places)
    unread = dict(files)
    while True:
        imported = _imported(unread) - known
        known |= imported
        waiting += [place for name in sorted(imported) if (place := own_place(name, folder)) is not None]
        if not waiting:
            break
        place = waiting.pop()
        inside = folder if place.is_relative_to(folder) else place.parent
        unread = _read(((path, path.relative_to(place.parent)) for path in _python_files(place, inside)), files, inside)
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


def _imported(files: Mapping[str, bytes]) -> set[str]:
    """Return the top-level names of the modules that files are, and of those that they import."""
    modules = {name: content for name, content in files.items() if name.endswith(".py")}
    tops = {PurePosixPath(name).parts[0].removesuffix(".py") for name in modules}
    return tops.union(*(imported_packages(content) for content in modules.values()))


def _python_files(place: Path, inside: Path) -> Iterator[Path]:
    return (path for path in _files_in(place, inside) if path.suffix == ".py")


def _files_in(path: Path, inside: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Yield a file, or the files of a folder. Links are followed, except those to a folder that contains them.

    Hidden files and folders, `__pycache__`, virtual environments and what an installer put into them are left out.

    Args:
        path: the file or the folder.
        inside: the folder that no link to a folder may leave.
        above: the real paths of the folders that contain it.

    Raises:
        InputError: if a folder can't be read, or a link to one leaves.
    """
    try:
        entries = sorted(path.iterdir()) if path.is_dir() else None
    except OSError as error:
        raise _unreadable(path, error) from None
    if entries is None:
        yield path
        return
    real = path.resolve()
    if real in above or path.name == "site-packages" or path / "pyvenv.cfg" in entries:
        return
    _check_inside(path, inside)
    for entry in entries:
        if not entry.name.startswith(".") and entry.name != "__pycache__":
            yield from _files_in(entry, inside, (*above, real))


def _read(paths: Iterable[tuple[Path, Path]], others: Mapping[str, bytes], inside: Path) -> dict[str, bytes]:
    """Read files by the names that they get.

    Args:
        paths: the path of each file, and the name that it gets.
        others: files that were read before; together they must not be too large.
        inside: the folder that no link may leave.

    Raises:
        InputError: if a link leaves the folder, if a file can't be read, or if there is too much.
    """
    sizes = {name: len(content) for name, content in others.items()}
    files: dict[str, bytes] = {}
    for path, relative in paths:
        name = relative.as_posix()
        try:
            name.encode()
            if not path.is_file():
                raise OSError("it must be a file, or a link to one")
            _check_inside(path, inside)
            sizes[name] = path.stat().st_size
            _check_size(sizes)
            files[name] = path.read_bytes()
        except (OSError, UnicodeEncodeError) as error:
            raise _unreadable(path, error) from None
    return files


def _check_inside(path: Path, inside: Path) -> None:
    """Check that no link leads out of the folder of the code: another author's code could copy private files.

    Raises:
        InputError: if it is.
    """
    real = path.resolve()
    if not real.is_relative_to(inside.resolve()):
        raise InputError(
            f"{visible(str(path))} is part of the study's code, but leads by a link to {visible(str(real))}, outside "
            f"of {visible(str(inside))}: links must stay in the folder of the code. Copy the file there, or name its "
            "package in PYTHONPATH"
        )


def _check_size(sizes: Mapping[str, int]) -> None:
    if sum(sizes.values()) > SIZE_LIMIT_BYTES:
        largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
        raise InputError(
            f"the study's code must have at most {SIZE_LIMIT_BYTES >> 20} MB, since each version of it is stored; it "
            f"has more, of which most is in {', '.join(f'{name} ({sizes[name] / 2**20:.1f} MB)' for name in largest)}. "
            "Move what isn't code elsewhere, or install the package instead"
        )


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{visible(str(path))} is part of the study's code and can't be read: {reason}")


def _included(patterns: Sequence[str], roots: Sequence[Path]) -> dict[str, bytes]:
    """Read the files that patterns name, in the first folder that has any."""
    files: dict[str, bytes] = {}
    for pattern in patterns:
        path = PurePosixPath(pattern)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise InputError(f"{pattern!r} must name files in the folder of the study file, relative to that folder")
        first = next(((root, matches) for root in roots if (matches := _matches(root, pattern))), None)
        if first is None:
            raise InputError(f"{pattern!r} matches no file in {' or '.join(map(str, roots))}")
        root, matches = first
        files |= _read(matches, files, root)
    return files


def _matches(root: Path, pattern: str) -> list[tuple[Path, Path]]:
    files = (file for path in sorted(root.glob(pattern)) for file in _files_in(path, root))
    return [(file, file.relative_to(root)) for file in files]


def _check_module(import_string: ImportString, files: Mapping[str, bytes]) -> None:
    path = import_string.module.replace(".", "/")
    if not {f"{path}.py", f"{path}/__init__.py"} & files.keys():
        modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files]
        hint = nearest(import_string.module, [name for name in modules if name.startswith(f"{import_string.package}.")])
        raise InputError(f"{import_string}: there is no {path}.py, and no folder {path} with an __init__.py{hint}")
