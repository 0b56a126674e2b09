"""Search, checks and reading of the user's code files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from study.errors import InputError
from study.source.archive import SIZE_LIMIT_BYTES
from study.source.imports import imported_packages
from study.visible import visible


def imported_names(files: Mapping[str, bytes]) -> set[str]:
    """Return the top-level names of the modules in `files`, and of all modules that they import.

    Files that aren't Python, or can't be parsed, import nothing.
    """
    modules = {name: content for name, content in files.items() if name.endswith(".py")}
    tops = {PurePosixPath(name).parts[0].removesuffix(".py") for name in modules}
    return tops.union(*(imported_packages(content) for content in modules.values()))


def python_files(place: Path, boundary: Path) -> Iterator[Path]:
    """Yield the ``*.py`` files among those of `files_in`, with the same arguments.

    Raises:
        InputError: if a folder can't be read or, by a link, lies outside of `boundary`.
    """
    return (path for path in files_in(place, boundary) if path.suffix == ".py")


def files_in(path: Path, boundary: Path, ancestors: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Yield a file, or all files of a folder.

    Links are followed, except those to a parent folder. Hidden files and folders, `__pycache__`, virtual environments
    and `site-packages` are skipped.

    Args:
        path: the file or the folder; a path that doesn't exist is yielded as a file.
        boundary: the folder that links to folders must not leave.
        ancestors: the resolved paths of the parent folders visited so far.

    Raises:
        InputError: if a folder can't be read or, by a link, lies outside of `boundary`.
    """
    try:
        entries = sorted(path.iterdir()) if path.is_dir() else None
    except OSError as error:
        raise _unreadable(path, error) from None
    if entries is None:
        yield path
        return
    real = path.resolve()
    if real in ancestors or path.name == "site-packages" or path / "pyvenv.cfg" in entries:
        return
    _check_inside(path, boundary)
    for entry in entries:
        if not entry.name.startswith(".") and entry.name != "__pycache__":
            yield from files_in(entry, boundary, (*ancestors, real))


def read_files(paths: Iterable[tuple[Path, Path]], others: Mapping[str, bytes], boundary: Path) -> dict[str, bytes]:
    """Read files into a dict of contents by name.

    Args:
        paths: the path of each file, and its name in the result.
        others: files read before, which count towards the size limit.
        boundary: the folder that links must not leave.

    Raises:
        InputError: if a file lies outside of `boundary`, doesn't exist or can't be read, its name isn't UTF-8, or all
            files together exceed `SIZE_LIMIT_BYTES`.
    """
    sizes = {name: len(content) for name, content in others.items()}
    files: dict[str, bytes] = {}
    for path, relative in paths:
        name = relative.as_posix()
        try:
            name.encode()
            if not path.is_file():
                raise OSError("it must be a file, or a link to one")
            _check_inside(path, boundary)
            sizes[name] = path.stat().st_size
            _check_size(sizes)
            files[name] = path.read_bytes()
        except (OSError, UnicodeEncodeError) as error:
            raise _unreadable(path, error) from None
    return files


def _check_inside(path: Path, boundary: Path) -> None:
    """Check that a link stays in the code's folder; otherwise foreign code could copy private files into the store."""
    real = path.resolve()
    if not real.is_relative_to(boundary.resolve()):
        raise InputError(
            f"{visible(str(path))} is part of the study's code, but leads by a link to {visible(str(real))}, outside "
            f"of {visible(str(boundary))}: links must stay in the folder of the code. Copy the file there, or name its "
            "package in PYTHONPATH"
        )


def _check_size(sizes: Mapping[str, int]) -> None:
    if sum(sizes.values()) > SIZE_LIMIT_BYTES:
        largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
        raise InputError(
            f"the study's code must have at most {SIZE_LIMIT_BYTES >> 20} MiB, since each version of it is stored, but "
            f"has more; the largest are {', '.join(f'{name} ({sizes[name] / 2**20:.1f} MiB)' for name in largest)}. "
            "Move what isn't code elsewhere, or install the package instead"
        )


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{visible(str(path))} is part of the study's code and can't be read: {reason}")


def included_files(patterns: Sequence[str], roots: Sequence[Path]) -> dict[str, bytes]:
    """Read the files that match glob patterns.

    Args:
        patterns: patterns such as ``data/*.csv``, relative to a folder.
        roots: the folders. Each pattern is matched in the first folder with a match.

    Returns:
        Contents by path relative to that folder; of a matched folder, all its files (`files_in`).

    Raises:
        InputError: if a pattern is invalid or absolute, leads out of the folder or matches nothing, or as `files_in`
            and `read_files` raise.
    """
    files: dict[str, bytes] = {}
    for pattern in patterns:
        path = PurePosixPath(pattern)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise InputError(f"{pattern!r} must name files in the folder of the study file, relative to that folder")
        try:
            first = next(((root, matches) for root in roots if (matches := _matches(root, pattern))), None)
        except ValueError as error:
            raise InputError(f"{pattern!r} isn't a pattern of files: {error}") from None
        if first is None:
            raise InputError(f"{pattern!r} matches no file in {' or '.join(map(str, roots))}")
        root, matches = first
        files |= read_files(matches, files, root)
    return files


def _matches(root: Path, pattern: str) -> list[tuple[Path, Path]]:
    files = (file for path in sorted(root.glob(pattern)) for file in files_in(path, root))
    return [(file, file.relative_to(root)) for file in files]
