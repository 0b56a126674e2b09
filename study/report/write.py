"""Write a report: its files, each whole or not at all, the same bytes for the same input."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from study.report import files, latex, search_table
from study.report.content import Report
from study.report.figures.names import KINDS, NAMES
from study.visible import visible

FORMATS: Mapping[str, Sequence[str]] = {
    "html": ("report.html",),
    "md": ("report.md",),
    "csv": ("cells.csv", "comparison.csv", "tests.csv", "candidates.csv"),
    "parquet": ("cells.parquet",),
    "yaml": ("winner.yaml",),
    "latex": ("cells.tex",),
    **{kind: tuple(f"{name}.{kind}" for name in NAMES) for kind in KINDS},
}
"""The files of a report, by format; those that a report has nothing for are left out."""

USUAL = tuple(kind for kind in FORMATS if kind != "pdf")
"""What is written unless asked otherwise: PDFs, with their fonts, take as long as all else, and papers need a few."""


def write_report(folder: Path, report: Report, formats: Collection[str] = USUAL) -> list[Path]:
    """Write a report's files.

    Args:
        folder: where; made if it isn't there. Files of an earlier report are replaced.
        report: at least one row.
        formats: those of `FORMATS` to write; files of others are left as they are.

    Returns:
        The files written.

    Raises:
        ValueError: if there is no row to report.
    """
    if not report.rows.summaries:
        raise ValueError("a report needs at least one row, but got none: run the study first")
    contents: dict[str, Callable[[], bytes | str]] = {
        "cells.csv": lambda: files.to_csv(report.data),
        "cells.parquet": lambda: files.to_parquet(report.data),
        "cells.tex": lambda: latex.latex(report.rows, command=report.command),
    }
    if {"html", "md", *KINDS} & set(formats):
        contents |= _with_figures(report)
    if (against := report.against) is not None and against.comparisons:
        contents["comparison.csv"] = lambda: files.comparison_csv(report.rows, against)
    if (search := report.search) is not None and search.candidates:
        contents["candidates.csv"] = lambda: files.to_csv(search_table.candidates_rows(search))
    if search is not None and search.file:
        contents["winner.yaml"] = lambda: search.file
    if report.contrasts.has_any:
        contents["tests.csv"] = lambda: files.tests_csv(report.contrasts)
    names = [name for kind in FORMATS if kind in formats for name in FORMATS[kind]]
    return _write_all(folder, names, contents)


def _with_figures(report: Report) -> dict[str, Callable[[], bytes | str]]:
    # only here, since matplotlib takes half a second to import, and tables do without
    from study.report import page
    from study.report.figures.all import draw
    from study.report.figures.style import render

    drawn = draw(report)
    found: dict[str, Callable[[], bytes | str]] = {
        f"{figure.name}.{kind}": partial(render, figure, kind) for figure in drawn for kind in KINDS
    }
    found["report.html"] = lambda: page.page(report, drawn)
    found["report.md"] = lambda: files.markdown(report, drawn)
    return found


def _write_all(
    folder: Path, names: Sequence[str], contents: Mapping[str, Callable[[], bytes | str]]
) -> list[Path]:
    """Write what there is of some files, and take away what an earlier report left of them.

    Only where a report has been: elsewhere a file of such a name is somebody's.
    """
    made = {name: _shown(contents[name]()) for name in names if name in contents}
    folder.mkdir(parents=True, exist_ok=True)
    if any((folder / name).exists() for name in made):
        for stale in set(names) - set(made):
            (folder / stale).unlink(missing_ok=True)
    return [_write(folder / name, content) for name, content in made.items()]


def _shown(content: bytes | str) -> bytes:
    """Write out what would steer the terminal of whoever looks at a file there."""
    return content if isinstance(content, bytes) else visible(content).encode()


def _write(path: Path, data: bytes) -> Path:
    """Put a file in place whole: a reader sees the old one or the new one."""
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
