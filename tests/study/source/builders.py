"""Builders of packages, as written by users and by installers."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from study.source import CodeFolder, ImportString, code_folder, parse_import_string, read_source_code, unpacked

MARKED = """
from study import seeded

@seeded
def train(seed):
    return {value}
"""


def write(folder: Path, **texts: str) -> Path:
    """Write modules: ``mylab__spirals`` is ``mylab/spirals.py``, ``mylab__`` its ``__init__.py``."""
    for name, text in texts.items():
        package, _, module = name.rpartition("__")
        path = folder / package.replace("__", "/") / f"{module or '__init__'}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder


def marked(value: str, before: str = "") -> str:
    """Return the text of a module with a seeded function `train` that returns a value; `before` precedes it."""
    return before + MARKED.format(value=value)


def copied(folder: Path, import_string: str, cache: Path, *include: str) -> CodeFolder:
    """Copy the code of an import string into the cache, as a study does, and return the copy."""
    code = read_source_code([parse_import_string(import_string)], folder, include)
    return CodeFolder(unpacked(code.archive, code.digest, cache))


def installed(site: Path, version: str = "1.2", entry_points: str = "", name: str = "mylab") -> Path:
    """Write an installed package's metadata, list of files and entry points, and return the folder."""
    info = site / f"{name.lower().replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(dedent(entry_points))
    files = [path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in [*files, f"{info.name}/RECORD"]))
    return site


def deactivate() -> None:
    """Remove the active folder's modules from this process, if a folder is active."""
    if code_folder._active is not None:
        code_folder._active.deactivate()


def train(code: CodeFolder, import_string: str = "mylab.spirals:train") -> object:
    """Load a function from a copy, call it with seed 0, and return the result."""
    return code.load(parse_import_string(import_string))(0)


def source_files(folder: Path, *import_strings: str) -> list[str]:
    """Return the sorted names of the files that belong to import strings."""
    parsed: list[ImportString] = [parse_import_string(import_string) for import_string in import_strings]
    return sorted(read_source_code(parsed, folder).files)
