"""Marks of what a study's views, report and MLflow, are to show: whether they do is known without making them again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from study.environment import versions

NAME = "report.json"
"""A file beside the results: the mark of the last report, and the digest of each of its files."""

_PACKAGES = ("jinja2", "matplotlib", "pyarrow", "scipy")
"""Packages that have a part in a report, beside those of `study.environment.versions`."""


class ReportStore(Protocol):
    """A study's part of the store, as marks need it."""

    def keep(self, name: str, data: bytes) -> None:
        """Put a file beside the results."""

    def kept(self, name: str) -> bytes | None:
        """Give a file that was kept; None if there is none."""


def mark(results: pa.Table, *said: object) -> str:
    """Name what is to be shown by all that it is made of, the code that shows it among it.

    Args:
        results: one row a trial.
        said: whatever else has a part in it; equal things must print alike.

    Example:
        >>> some = pa.table({"seed": [0, 1]})
        >>> mark(some, "a question") == mark(some, "a question") != mark(some, "another")
        True
    """
    digest = hashlib.sha256()
    code = versions() | {name: version(name) for name in _PACKAGES}
    digest.update(json.dumps([code, [repr(one) for one in said]]).encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, results.schema) as stream:
        stream.write_table(results.combine_chunks())
    digest.update(sink.getvalue())
    return digest.hexdigest()


def keep_mark(folder: ReportStore, shown: str, files: Sequence[Path]) -> None:
    """Keep a report's mark, and what its files are.

    Args:
        folder: the study's.
        shown: its mark.
        files: that were written.
    """
    digests = {file.name: _digest(file.read_bytes()) for file in files}
    folder.keep(NAME, json.dumps({"mark": shown, "files": digests}, indent=1).encode())


def is_kept(folder: ReportStore, shown: str) -> bool:
    """Say whether the study's report has this mark, and each of its files is there as it was written."""
    try:
        before = json.loads(folder.kept(NAME) or b"{}")
        files: Mapping[str, str] = before["files"] if before["mark"] == shown else {}
        return bool(files) and all(_digest(folder.kept(f"report/{name}")) == files[name] for name in files)
    except (ValueError, KeyError, TypeError):  # somebody's own file of that name, or a torn one
        return False


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()
