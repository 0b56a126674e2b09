"""Writing of a report: each file atomically, and the same bytes for the same input."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from study.errors import InputError
from study.interface.json_text import parse_json
from study.reports import columns, files, latex, metric_series, overall, references, standardised
from study.reports.claims import claims_rows
from study.reports.content import Report
from study.reports.csv_text import csv_text
from study.reports.figures.names import KINDS, NAMES
from study.reports.markdown import markdown
from study.reports.search.tables import candidates_rows
from study.reports.sources import sources_rows
from study.summaries.parts import Parts
from study.visible import visible


def _csv(rows: Sequence[Mapping[str, Any]], header: Iterable[str] | None = None) -> str | None:
    return csv_text(rows, header) if rows else None


_CONTENTS: Mapping[str, Callable[[Report], bytes | str | None]] = {
    "cells.csv": lambda r: files.to_csv(r.data),
    "comparison.csv": lambda r: _csv(files.comparison_rows(r.rows, r.against)) if r.against else None,
    "tests.csv": lambda r: _csv(files.tests_rows(r.contrasts), columns.TESTS),
    "claims.csv": lambda r: _csv(claims_rows(r.claims), columns.CLAIMS),
    "sources.csv": lambda r: _csv(sources_rows(r.rows, r.sources), columns.SOURCES),
    "standardised.csv": lambda r: _csv(standardised.rates_rows(r.rows, r.standardised)) if r.standardised else None,
    "standardised-differences.csv": lambda r: (
        _csv(standardised.differences_rows(r.standardised)) if r.standardised else None
    ),
    "candidates.csv": lambda r: files.to_csv(candidates_rows(r.search)) if r.search and r.search.candidates else None,
    "bounds.csv": lambda r: _csv(references.bounds_rows(r.rows, r.references)) if r.references else None,
    "series.csv": lambda r: _csv(metric_series.series_rows(r.rows)),
    "methods.csv": lambda r: _csv(overall.methods_rows(r.overall), columns.METHODS) if r.overall else None,
    "profiles.csv": lambda r: _csv(overall.profiles_rows(r.overall), columns.PROFILES) if r.overall else None,
    "cells.parquet": lambda r: files.to_parquet(r.data),
    "winner.yaml": lambda r: r.search.file if r.search else None,
    "cells.tex": lambda r: latex.latex(r.rows, command=r.command, names=r.columns),
    "bounds.tex": lambda r: references.bounds_latex(r.rows, r.references, command=r.command) if r.references else None,
    "series.tex": lambda r: metric_series.series_latex(r.rows, command=r.command),
}
"""The maker of each file except pages and figures; it returns None or an empty text if the report lacks the content."""

FORMATS: Mapping[str, Sequence[str]] = {
    "html": ("report.html",),
    "md": ("report.md",),
    **{kind: tuple(name for name in _CONTENTS if name.endswith(kind)) for kind in ("csv", "parquet", "yaml")},
    "latex": tuple(name for name in _CONTENTS if name.endswith("tex")),
    **{kind: tuple(f"{name}.{kind}" for name in NAMES) for kind in KINDS},
}
"""The files of a report, by format; files without content are left out."""

USUAL = tuple(kind for kind in FORMATS if kind != "pdf")
"""The formats written by default: all but PDF, which takes as long as all others together."""


_LAST = ("report.html", "report.md")

_LIST = ".report.json"
"""The file in a report's folder that lists the files written there, with the digests of their contents."""


def draws(formats: Collection[str]) -> bool:
    """Return True if a report in these formats has figures, and so shows curves and weights of single trials."""
    return not {"html", "md", *KINDS}.isdisjoint(formats)


def write_report(
    folder: Path, report: Report, formats: Collection[str] = USUAL, *, is_ours: bool = False, parts: Parts | None = None
) -> list[Path]:
    """Write a report's files, and their list ``.report.json``; a figure or file that fails is left out.

    Only if a part raises a `StudyError`, it is raised before anything is written.

    Args:
        folder: the folder to write to, created if missing, with `is_ours` only if its parent exists. Files that an
            earlier report wrote there are replaced, or deleted if they are unchanged and the report has no such content
            any more, or if making it failed.
        report: the report, with at least one row.
        formats: the formats of `FORMATS` to write; files of other formats are left unchanged.
        is_ours: whether the folder belongs to the store, so that files with the names of a report's files may be
            overwritten.
        parts: collects the parts that fail; None to raise an error that names them after all others are written.

    Returns:
        The files written, without the list.

    Raises:
        ReportError: if a part failed, and `parts` is None.
        ValueError: if the report has no row.
        InputError: if a format or a statistic of the report's `columns` doesn't exist, a file that no report has
            written would be overwritten, or a package's vocabulary can't be imported.
        OSError: if a file can't be read, written or deleted, or `is_ours` and the folder's parent doesn't exist.
    """
    if not report.rows.summaries:
        raise ValueError("a report needs at least one row, but got none: run the study first")
    if unknown := [name for name in formats if name not in FORMATS]:
        raise InputError(f"no such format: {unknown[0]!r}; choose from {', '.join(FORMATS)}")
    kept = Parts() if parts is None else parts
    contents: dict[str, Callable[[], bytes | str | None]] = {
        name: partial(make, report) for name, make in _CONTENTS.items()
    }
    contents |= _figure_contents(report, kept) if draws(formats) else {}
    names = [name for kind in FORMATS if kind in formats for name in FORMATS[kind]]
    written = _write_all(folder, names, contents, kept, is_ours=is_ours)
    if parts is None:
        kept.check(str(folder))
    return written


def _figure_contents(report: Report, parts: Parts) -> dict[str, Callable[[], bytes | str | None]]:
    # Imported here, since matplotlib takes half a second to import and tables don't need it.
    from study.reports import page
    from study.reports.figures.all import plot_all
    from study.reports.figures.style import render

    drawn = plot_all(report, parts)
    figures = [plot for plot in drawn if parts.attempt(f"figure {plot.name}", partial(render, plot, "svg"), b"")]
    return {
        **{f"{figure.name}.{kind}": partial(render, figure, kind) for figure in figures for kind in KINDS},
        "report.html": lambda: page.page(report, figures, parts),
        "report.md": lambda: markdown(report, figures, parts),
    }


def _write_all(
    folder: Path,
    names: Sequence[str],
    contents: Mapping[str, Callable[[], bytes | str | None]],
    parts: Parts,
    *,
    is_ours: bool,
) -> list[Path]:
    """Write the named files that have content, and delete the others if they are as an earlier report wrote them.

    Raises InputError, before any change, if a file that no report has written would be overwritten.
    """
    made: dict[str, bytes] = {}
    # The page and the Markdown file name the failed parts, so they are made last.
    for name in sorted((name for name in names if name in contents), key=lambda name: name in _LAST):
        made[name] = parts.attempt(name, lambda name=name: _as_bytes(contents[name]()), b"")  # type: ignore[misc]
    data = {name: content for name in names if (content := made.get(name))}
    before = _read_list(folder)
    if before is None and is_ours:  # written by a version that kept no list
        before = {name: _digest(folder / name) for name in names}
    before = before or {}
    others = [name for name in data if name not in before and (folder / name).exists() and not is_ours]
    if others:
        raise InputError(
            f"{folder} has {', '.join(others)}, which its {_LIST} doesn't list as written by a report: nothing was "
            "changed there; give another --out, or move the files"
        )
    # Don't recreate the folder of a study that was deleted from the store.
    folder.mkdir(parents=not is_ours, exist_ok=True)
    for name in names:
        if name not in data and before.get(name) == _digest(folder / name):
            (folder / name).unlink(missing_ok=True)
    digests = {name: digest for name, digest in before.items() if (folder / name).exists()}
    digests |= {name: hashlib.sha256(content).hexdigest() for name, content in data.items()}
    # Write the list first, so that every file left behind by a kill is known to be a report's.
    _write(folder / _LIST, json.dumps({"files": digests}, indent=1, sort_keys=True).encode())
    return [_write(folder / name, content) for name, content in data.items()]


def _read_list(folder: Path) -> dict[str, str] | None:
    """Read a folder's list of files; None if it is missing or unreadable."""
    try:
        digests = parse_json((folder / _LIST).read_bytes())["files"]
        return {str(name): str(digest) for name, digest in digests.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _digest(path: Path) -> str:
    """Compute the digest of a file; empty if it doesn't exist."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def write_page(path: Path, text: str) -> Path:
    """Replace a page atomically, and return its path; terminal control characters are made visible.

    Raises:
        OSError: if the page can't be written.
    """
    return _write(path, _as_bytes(text))


def _as_bytes(content: bytes | str | None) -> bytes:
    """Encode a text, with terminal control characters made visible; bytes are unchanged, None is empty."""
    return content if isinstance(content, bytes) else visible(content or "").encode()


def _write(path: Path, data: bytes) -> Path:
    """Replace a file atomically: a reader sees the old content or the new one."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
        draft.write(data)
    os.umask(mask := os.umask(0))  # it can be read only by setting it
    try:
        Path(draft.name).chmod(0o666 & ~mask)
        Path(draft.name).replace(path)
    except OSError:
        Path(draft.name).unlink(missing_ok=True)
        raise
    return path
