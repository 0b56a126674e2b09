"""Writing a report: each file whole or not at all, and the same bytes for the same input."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from study.errors import InputError
from study.reports import files, latex, metric_series
from study.reports import references as bounds
from study.reports.claims import claims_csv
from study.reports.content import Report
from study.reports.figures.names import KINDS, NAMES
from study.reports.markdown import markdown
from study.reports.overall import methods_csv, profiles_csv
from study.reports.search import tables as search_tables
from study.reports.sources import sources_csv
from study.summaries.parts import Parts
from study.visible import visible

FORMATS: Mapping[str, Sequence[str]] = {
    "html": ("report.html",),
    "md": ("report.md",),
    "csv": (
        "cells.csv",
        "comparison.csv",
        "tests.csv",
        "claims.csv",
        "sources.csv",
        "candidates.csv",
        "bounds.csv",
        "series.csv",
        "methods.csv",
        "profiles.csv",
    ),
    "parquet": ("cells.parquet",),
    "yaml": ("winner.yaml",),
    "latex": ("cells.tex", "bounds.tex", "series.tex"),
    **{kind: tuple(f"{name}.{kind}" for name in NAMES) for kind in KINDS},
}
"""The files of a report, by format; a file for which the report has no content is left out."""

USUAL = tuple(kind for kind in FORMATS if kind != "pdf")
"""The formats written by default: not PDF, since PDFs take as long as all else, and a paper needs only a few."""


_LAST = ("report.html", "report.md")

_LIST = ".report.json"
"""Lists the files that a report has written into a folder, each with the digest of its content."""


def draws(formats: Collection[str]) -> bool:
    """Return whether a report in these formats has figures, and so shows curves and weights of single trials."""
    return not {"html", "md", *KINDS}.isdisjoint(formats)


def write_report(
    folder: Path, report: Report, formats: Collection[str] = USUAL, *, is_ours: bool = False, parts: Parts | None = None
) -> list[Path]:
    """Write a report's files; a figure or file that fails is left out, and all others are written.

    Args:
        folder: the folder to write to; made if there is none. Files that an earlier report wrote there are replaced.
        report: the report, with at least one row.
        formats: those of `FORMATS` to write; files of other formats are left as they are.
        is_ours: whether the folder is the store's, so that every file with the name of a report's file is one.
        parts: keeps the parts that failed; None to raise an error that names them once all others are written.

    Returns:
        The files written.

    Raises:
        ReportError: if a part failed, and `parts` is None.
        ValueError: if there is no row to report.
        InputError: if a file that no report has written would be overwritten.
    """
    if not report.rows.summaries:
        raise ValueError("a report needs at least one row, but got none: run the study first")
    kept = Parts() if parts is None else parts
    contents: dict[str, Callable[[], bytes | str]] = {
        "cells.csv": lambda: files.to_csv(report.data),
        "cells.parquet": lambda: files.to_parquet(report.data),
        "cells.tex": lambda: latex.latex(report.rows, command=report.command, names=report.columns),
    }
    if draws(formats):
        contents |= _with_figures(report, kept)
    if (against := report.against) is not None and against.comparisons:
        contents["comparison.csv"] = lambda: files.comparison_csv(report.rows, against)
    if (search := report.search) is not None and search.candidates:
        contents["candidates.csv"] = lambda: files.to_csv(search_tables.candidates_rows(search))
    if search is not None and search.file:
        contents["winner.yaml"] = lambda: search.file
    if (references := report.references) is not None:
        contents["bounds.csv"] = lambda: bounds.bounds_csv(report.rows, references)
        contents["bounds.tex"] = lambda: bounds.bounds_latex(report.rows, references, command=report.command)
    if metric_series.series_with_values(report.rows):
        contents["series.csv"] = lambda: metric_series.series_csv(report.rows)
        contents["series.tex"] = lambda: metric_series.series_latex(report.rows, command=report.command)
    if report.sources:
        contents["sources.csv"] = lambda: sources_csv(report.rows, report.sources)
    if report.claims:
        contents["claims.csv"] = lambda: claims_csv(report.claims)
    if (overall := report.overall) is not None and overall.methods:
        contents["methods.csv"] = lambda: methods_csv(overall)
        contents["profiles.csv"] = lambda: profiles_csv(overall)
    if report.contrasts.has_any:
        contents["tests.csv"] = lambda: files.tests_csv(report.contrasts)
    names = [name for kind in FORMATS if kind in formats for name in FORMATS[kind]]
    written = _write_all(folder, names, contents, kept, is_ours=is_ours)
    if parts is None:
        kept.check(str(folder))
    return written


def _with_figures(report: Report, parts: Parts) -> dict[str, Callable[[], bytes | str]]:
    # Imported only here: matplotlib takes half a second to import, and tables do without it.
    from study.reports import page
    from study.reports.figures.all import plot_all
    from study.reports.figures.style import render

    figures = [
        figure
        for figure in plot_all(report, parts)
        if parts.attempt(f"figure {figure.name}", partial(render, figure, "svg"), b"")
    ]

    contents: dict[str, Callable[[], bytes | str]] = {
        f"{figure.name}.{kind}": partial(render, figure, kind) for figure in figures for kind in KINDS
    }
    contents["report.html"] = lambda: page.page(report, figures, parts)
    contents["report.md"] = lambda: markdown(report, figures, parts)
    return contents


def _write_all(
    folder: Path,
    names: Sequence[str],
    contents: Mapping[str, Callable[[], bytes | str]],
    parts: Parts,
    *,
    is_ours: bool,
) -> list[Path]:
    """Write those of some files that have a content, and delete the others if an earlier report has written them."""
    made: dict[str, bytes | None] = {}
    # The page and the Markdown file name the parts that failed, so they are made last.
    for name in sorted((name for name in names if name in contents), key=lambda name: name in _LAST):
        made[name] = parts.attempt(name, lambda name=name: _as_bytes(contents[name]()), None)  # type: ignore[misc]
    data = {name: content for name in names if (content := made.get(name)) is not None}
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
    # A report must not make the folder of a study again that is gone from the store.
    folder.mkdir(parents=not is_ours, exist_ok=True)
    for name in names:
        if name not in data and before.get(name) == _digest(folder / name):
            (folder / name).unlink(missing_ok=True)
    digests = {name: digest for name, digest in before.items() if (folder / name).exists()}
    digests |= {name: hashlib.sha256(content).hexdigest() for name, content in data.items()}
    # The list comes first, so that whatever a kill leaves behind is known to be ours.
    _write(folder / _LIST, json.dumps({"files": digests}, indent=1, sort_keys=True).encode())
    return [_write(folder / name, content) for name, content in data.items()]


def _read_list(folder: Path) -> dict[str, str] | None:
    """Read a folder's list; None if there is none, or none that can be read."""
    try:
        digests = json.loads((folder / _LIST).read_bytes())["files"]
        return {str(name): str(digest) for name, digest in digests.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _digest(path: Path) -> str:
    """Compute the digest of a file; empty if it isn't one."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def write_page(path: Path, text: str) -> Path:
    """Put a page in place: who reads it meanwhile sees the old one or the new one.

    Raises:
        OSError: if it can't be written.
    """
    return _write(path, _as_bytes(text))


def _as_bytes(content: bytes | str) -> bytes:
    """Encode a text, with characters that would control a terminal made visible."""
    return content if isinstance(content, bytes) else visible(content).encode()


def _write(path: Path, data: bytes) -> Path:
    """Put a whole file in place: a reader sees the old one or the new one."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
        draft.write(data)
    try:
        Path(draft.name).chmod(0o666 & ~_umask())
        Path(draft.name).replace(path)
    except OSError:
        Path(draft.name).unlink(missing_ok=True)
        raise
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
