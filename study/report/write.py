"""Write a report: its files, each whole or not at all, the same bytes for the same input."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from study.aggregate import CellSummary
from study.report import figure, files, page
from study.report.compare import Comparison
from study.report.words import Labels

_NAMES = ("report.html", "report.md", "cells.csv", "comparison.csv", "figure.png", "figure.svg")


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
) -> list[Path]:
    """Write report.html, report.md, cells.csv, figure.png, figure.svg, and comparison.csv where there is one.

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

    Returns:
        The files written.

    Raises:
        ValueError: if there is no cell to report.
    """
    if not summaries:
        raise ValueError("a report needs at least one cell, but got none: run the study first")
    drawn = figure.draw(summaries, labels, comparison)
    svg = figure.render(drawn, "svg")
    contents: dict[str, bytes | str] = {
        "report.html": page.page(
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
        "report.md": files.markdown(
            name=name, question=question, summaries=summaries, labels=labels, comparison=comparison
        ),
        "cells.csv": files.cells_csv(summaries, labels),
        "figure.png": figure.render(drawn, "png"),
        "figure.svg": svg,
    }
    if comparison:
        contents["comparison.csv"] = files.comparison_csv(comparison)
    folder.mkdir(parents=True, exist_ok=True)
    for stale in set(_NAMES) - set(contents):
        (folder / stale).unlink(missing_ok=True)
    return [_write(folder / name, contents[name]) for name in _NAMES if name in contents]


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
