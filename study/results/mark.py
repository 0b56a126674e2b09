"""Marks of a study's content: a run compares them to skip an up-to-date report and MLflow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from study.environment import versions
from study.interface.json_text import parse_json

NAME = "report.json"
"""The file next to the results with the last report's mark and the digests of its files."""

_PACKAGES = ("jinja2", "matplotlib", "pyarrow", "scipy")
"""Packages that a report depends on, in addition to those of `study.environment.versions`."""


class ReportStore(Protocol):
    """A study's part of the store, as far as marks need it."""

    def write_file(self, name: str, data: bytes) -> None:
        """Store a file next to the results; may raise StudyError."""

    def read_file(self, name: str) -> bytes | None:
        """Return the content of a file next to the results; None if it doesn't exist; may raise StoreError."""


def mark(results: pa.Table, *parts: object) -> str:
    """Return a digest of everything that a report depends on, including the versions of the code.

    Args:
        results: one row a trial.
        parts: everything else that the report depends on; equal objects must have equal representations.

    Example:
        >>> results = pa.table({"seed": [0, 1]})
        >>> mark(results, "a question") == mark(results, "a question") != mark(results, "another")
        True
    """
    digest = hashlib.sha256()
    code = versions() | {name: version(name) for name in _PACKAGES}
    digest.update(json.dumps([code, [repr(part) for part in parts]]).encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, results.schema) as stream:
        stream.write_table(results.combine_chunks())
    digest.update(sink.getvalue())
    return digest.hexdigest()


def write_mark(folder: ReportStore, content_mark: str, files: Sequence[Path]) -> None:
    """Store a report's mark and the digests of its files.

    Args:
        folder: the study's part of the store.
        content_mark: the mark of what the report shows.
        files: the report's files.

    Raises:
        OSError: if a file of the report can't be read.
        StoreError: if the file can't be written.
        StudyError: if the study is gone, or another run has taken it over.
    """
    digests = {file.name: _digest(file.read_bytes()) for file in files}
    folder.write_file(NAME, json.dumps({"mark": content_mark, "files": digests}, indent=1).encode())


def has_mark(folder: ReportStore, content_mark: str) -> bool:
    """Return True if the study's report has this mark, and all of its files are unchanged.

    Raises:
        StoreError: if the store can't be read.
    """
    try:
        before = parse_json(folder.read_file(NAME) or b"{}")
        files: Mapping[str, str] = before["files"] if before["mark"] == content_mark else {}
        return bool(files) and all(_digest(folder.read_file(f"report/{name}")) == files[name] for name in files)
    except (ValueError, KeyError, TypeError):  # a truncated file, or a foreign file of that name
        return False


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()
