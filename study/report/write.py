"""Write a report: its files, each whole or not at all, the same bytes for the same input."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from study.aggregate import CellSummary, GroupSummary
from study.report import figure, files, keyed, latex, page
from study.report.compare import Comparison
from study.report.words import Labels

FORMATS: Mapping[str, Sequence[str]] = {
    "html": ("report.html",),
    "md": ("report.md",),
    "csv": ("cells.csv", "comparison.csv"),
    "parquet": ("cells.parquet",),
    "latex": ("cells.tex",),
    "png": ("figure.png",),
    "svg": ("figure.svg",),
}
"""The files of a report of a study, by format."""

GROUP_FORMATS: Mapping[str, Sequence[str]] = {
    "md": ("cells.md",),
    "csv": ("cells.csv",),
    "parquet": ("cells.parquet",),
    "latex": ("cells.tex",),
}
"""The files of tables by columns, by format."""


def write_report(
    folder: Path,
    *,
    name: str,
    question: str,
    summaries: Sequence[CellSummary],
    labels: Labels,
    comparison: Sequence[Comparison],
    provenance: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    command: str,
    formats: Collection[str] = tuple(FORMATS),
) -> list[Path]:
    """Write report.html, report.md, cells.csv, .parquet and .tex, figure.png and .svg, and comparison.csv if any.

    Args:
        folder: where; made if it isn't there. Files of an earlier report are replaced.
        name: of the study.
        question: that the study answers.
        summaries: what `study.aggregate.aggregate` gave, at least one.
        labels: names of points that several hyperparameters share.
        comparison: what `study.report.compare` gave; may be empty.
        provenance: of the results: one mapping for each different one.
        notes: sentences the reader must know.
        command: that remakes the report.
        formats: those of `FORMATS` to write; files of others are left as they are.

    Returns:
        The files written.

    Raises:
        ValueError: if there is no cell to report.
    """
    if not summaries:
        raise ValueError("a report needs at least one cell, but got none: run the study first")
    drawn = figure.draw(summaries, labels, comparison)
    svg = figure.render(drawn, "svg")
    rows = files.cells_rows(summaries, labels)
    contents: dict[str, Callable[[], bytes | str]] = {
        "report.html": lambda: page.page(
            name=name,
            question=question,
            summaries=summaries,
            labels=labels,
            comparison=comparison,
            provenance=provenance,
            notes=notes,
            command=command,
            svg=svg.decode(),
        ),
        "report.md": lambda: files.markdown(
            name=name, question=question, summaries=summaries, labels=labels, comparison=comparison
        ),
        "cells.csv": lambda: files.to_csv(rows),
        "cells.parquet": lambda: files.to_parquet(rows),
        "cells.tex": lambda: latex.latex(keyed.cells(summaries, labels), command=command),
        "figure.png": lambda: figure.render(drawn, "png"),
        "figure.svg": lambda: svg,
    }
    if comparison:
        contents["comparison.csv"] = lambda: files.comparison_csv(comparison)
    return _write_all(
        folder, [name for kind in FORMATS if kind in formats for name in FORMATS[kind]], contents
    )


def write_groups(
    folder: Path,
    *,
    title: str,
    groups: Sequence[GroupSummary],
    by: pa.Schema,
    notices: Sequence[str],
    command: str,
    formats: Collection[str] = tuple(GROUP_FORMATS),
) -> list[Path]:
    """Write cells.md, cells.csv, cells.parquet and cells.tex: one row a group.

    Args:
        folder: where; made if it isn't there. Files of an earlier report are replaced.
        title: over the table.
        groups: what `study.aggregate.aggregate_by` gave.
        by: the columns it was given, and their types.
        notices: sentences the reader must know.
        command: that makes the files again.
        formats: those of `GROUP_FORMATS` to write; files of others are left as they are.

    Returns:
        The files written.
    """
    rows = files.groups_rows(groups, by)
    shown = keyed.groups(groups, by.names)
    contents: dict[str, Callable[[], bytes | str]] = {
        "cells.md": lambda: files.groups_markdown(title=title, rows=shown, notices=notices),
        "cells.csv": lambda: files.to_csv(rows),
        "cells.parquet": lambda: files.to_parquet(rows),
        "cells.tex": lambda: latex.latex(shown, command=command),
    }
    names = [name for kind in GROUP_FORMATS if kind in formats for name in GROUP_FORMATS[kind]]
    return _write_all(folder, names, contents)


def _write_all(
    folder: Path, names: Sequence[str], contents: Mapping[str, Callable[[], bytes | str]]
) -> list[Path]:
    """Write what there is of some files, and take away what an earlier report left of them."""
    made = {name: contents[name]() for name in names if name in contents}
    folder.mkdir(parents=True, exist_ok=True)
    for stale in set(names) - set(made):
        (folder / stale).unlink(missing_ok=True)
    return [_write(folder / name, content) for name, content in made.items()]


def _write(path: Path, content: bytes | str) -> Path:
    """Put a file in place whole: a reader sees the old one or the new one."""
    data = content.encode() if isinstance(content, str) else content
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
