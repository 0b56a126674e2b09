"""The code of a program: the files in its command, and the modules that they import."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath

from study.errors import InputError, nearest
from study.interface.program import Program, words_of
from study.source.code_files import included_files, python_files, read_files
from study.source.imports import imported_packages
from study.source.places import OURS, is_installed, place_beside, place_elsewhere
from study.source.source_code import SourceCode

CODE = "{code}/"
"""Prefix of code paths in a command; optional unless a shell runs the command."""

SCRIPTS = (".py", ".sh", ".R", ".r", ".jl", ".js", ".ts", ".pl", ".rb", ".lua")
"""Suffixes of script files."""


def read_program_code(program: Program, folder: Path, include: Sequence[str] = ()) -> SourceCode:
    """Read the code of a program, without running it.

    The code consists of the folder's files that the command names, the package or module after ``-m`` if it is the
    user's own, the user's own modules that these import, recursively, and the files of `include`.

    Args:
        program: the program.
        folder: the folder of the study file.
        include: glob patterns of further files, relative to the folder; imports of these files aren't followed.

    Raises:
        InputError: if a script or a path after ``{code}/`` in the command doesn't exist, a pattern is invalid or
            matches nothing, a file can't be read, a link leaves the folder of the code, a shell's command names a file
            without ``{code}/``, or the code is too large.
    """
    folder = folder.absolute()
    files = included_files(include, [folder])
    words = _words(program)
    names = [_file_of(word, folder, is_program=place == 0) for place, word in enumerate(words)]
    named = [folder / name for name in names if name is not None]
    if program.is_shell:
        _check_shell(words, folder)
    unread = [(path, folder) for path in named]
    for module in _modules(words):
        unread += _place(module, folder, folder)
    known: set[tuple[str, Path]] = set()
    searched: set[str] = set()
    while unread:
        place, root = unread.pop()
        paths = python_files(place, root) if place.is_dir() else iter([place])
        read = read_files(((path, path.relative_to(root)) for path in paths), files, root)
        new = {name: content for name, content in read.items() if name not in searched}
        files |= read
        searched |= new.keys()
        # Python searches a script's own folder first; a package's modules are searched beside the package.
        beside = place.parent
        sources = (content for name, content in new.items() if name.endswith(".py"))
        for name in sorted(set().union(*map(imported_packages, sources))):
            if (name, beside) not in known:
                known.add((name, beside))
                unread += _place(name, beside, folder)
    return SourceCode(files)


def program_words(words: Sequence[str], names: Sequence[str], code: Path) -> list[str]:
    """Return a command's words with paths of code files replaced by paths in the copy.

    Args:
        words: the words, with placeholders replaced.
        names: the names of the code's files, relative to the study's folder.
        code: the folder of the copy.

    Example:
        >>> program_words(["python", "train.py", "--config=conf/a.yaml"], ["train.py", "conf/a.yaml"], Path("/code"))
        ['python', '/code/train.py', '--config=/code/conf/a.yaml']
    """
    known = set(names)

    def copied(word: str) -> str:
        before, equals, path = word.rpartition("=")
        name = str(PurePosixPath(path))
        return f"{before}{equals}{code / name}" if path and name in known else word

    return [copied(word) for word in words]


def _words(program: Program) -> Sequence[str]:
    if not program.is_shell:
        return program.words
    try:
        return words_of(program.words[0])
    except ValueError:
        return program.words[0].split()


def _file_of(word: str, folder: Path, *, is_program: bool = False) -> str | None:
    """Return the name of the folder's file that a word of a command names, or None.

    Raise InputError if the word looks like a code file that doesn't exist.
    """
    path = word.rpartition("=")[2].removeprefix(CODE)
    is_code = word.endswith(f"{CODE}{path}")
    if not path or "{" in path or " " in word or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        return None
    try:
        is_there = (folder / path).is_file()
    except (OSError, ValueError):  # a name that is too long or invalid
        is_there = False
    looks_like_code = is_code or (is_program and path.startswith("./")) or PurePosixPath(path).suffix in SCRIPTS
    if looks_like_code and not is_there and not (folder / path).is_dir():
        names = [file.relative_to(folder).as_posix() for file in folder.rglob(f"*{PurePosixPath(path).suffix}")]
        raise InputError(f"the command names {path}, and there is no such file in {folder}{nearest(path, names)}")
    return str(PurePosixPath(path)) if is_there else None


def _check_shell(words: Sequence[str], folder: Path) -> None:
    """Check that file names in a shell's command start with ``{code}/``: the shell runs in the trial's folder."""
    for word in words:
        if CODE not in word and (name := _file_of(word, folder)) is not None:
            raise InputError(
                f"the command names the file {name}, which a shell looks for in the trial's folder: write {CODE}{name}"
            )


def _modules(words: Sequence[str]) -> Iterator[str]:
    return (word.partition(".")[0] for before, word in pairwise(words) if before == "-m")


def _place(name: str, beside: Path, folder: Path) -> list[tuple[Path, Path]]:
    """Return the path of a user's module and the base folder of its name in the copy, or an empty list."""
    place = place_beside(name, beside)
    if place is not None and beside.is_relative_to(folder):
        return [(place.path, folder)]
    if place is not None and not is_installed(place.path):
        return [(place.path, beside)]
    if name in OURS or name in sys.stdlib_module_names:
        return []
    elsewhere = place_elsewhere(name)
    if elsewhere is not None:  # includes a package of the folder installed by `pip install -e`, such as src/mylab
        return [] if is_installed(elsewhere.path) else [(elsewhere.path, elsewhere.path.parent)]
    above = place_beside(name, folder)  # the folder is on the program's PYTHONPATH
    return [] if above is None else [(above.path, folder)]
