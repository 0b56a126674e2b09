"""LaTeX tables: they fit a column of a two-column paper, by the estimate that chooses columns and by LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from study.reports import cell_rows, groups, latex
from study.reports.latex_table import COLUMN_IN
from study.reports.metric_series import series_latex
from study.reports.references import bounds_latex
from study.reports.table import summaries_table
from study.summaries.aggregate import GroupSummary
from tests.study.builders import demo, error_of
from tests.study.reports import test_groups, test_metric_series, test_metrics, test_references

WIDE = ["success_rate", "solved_at", "sparsity_error_mean", "time_to_success", "seeds", "training_s"]
ASKED_FOR = {"names", "wide"}
HOSTILE = GroupSummary(seeds=1, values=(test_groups.HOSTILE, "–•σλ×₊"), metrics=error_of(0.0))
PAPER = r"""
\documentclass[twocolumn]{article}
\usepackage{booktabs}
\newsavebox{\measured}
\begin{document}
%s
\end{document}
"""
TABLE = r"""
\sbox{\measured}{\input{%(name)s}}\typeout{width of %(name)s: \the\wd\measured}
\begin{table}[tp]\centering\input{%(name)s}\caption{%(name)s}\end{table}
"""


def tables() -> dict[str, str]:
    """Return LaTeX tables of each kind, by name."""
    finished, *_ = test_metrics.rows_of()
    judged, *_ = test_metrics.rows_of("solved")
    series = test_metric_series.rows_of(test_metric_series.results())
    first, second = series_latex(series, command="x").split("\n\n")
    return {
        "demo": latex.latex(cell_rows(*demo()), command="x"),
        "metrics": latex.latex(finished, command="x"),
        "rates": latex.latex(judged, command="x"),
        "names": latex.latex(finished, command="x", names=["norm_median", "wait", "seeds"]),
        "published": latex.latex(groups(test_groups.published(False), ["operation", "model"]), command="x"),
        "bounds": bounds_latex(*test_references.rows_and_findings(), command="x"),
        "series": first,
        "places": second,
        "hostile": latex.latex(groups([HOSTILE], ["a_b", "model"]), command="x"),
        "wide": latex.latex(cell_rows(*demo()), command="x", names=WIDE),
    }


def estimate_in(tex: str) -> float:
    match = re.search(r"About ([\d.]+) in wide", tex)
    assert match is not None
    return float(match[1])


def test_usual_columns_fit_a_column() -> None:
    """Omitted columns are named; requested columns aren't dropped, but a note says that they are too wide."""
    for name, tex in tables().items():
        assert (estimate_in(tex) <= COLUMN_IN) == (name not in ASKED_FOR), name
        assert ("wider than a column" in tex) == (name in ASKED_FOR), name
    assert "Omitted because it would be too wide: solved_at" in tables()["demo"]


def test_latex_sets_them_into_a_column(tmp_path: Path) -> None:
    """LaTeX accepts every table, usual ones aren't overfull, and widths are within a tenth of the estimate."""
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("pdflatex isn't installed, see CONTRIBUTING.md")
    written = tables()
    for name, tex in written.items():
        (tmp_path / f"{name}.tex").write_text(tex)
    of_paper, on_pages = (
        "".join(TABLE % {"name": name} for name in written if (name in ASKED_FOR) == is_wide)
        for is_wide in (False, True)
    )
    (tmp_path / "paper.tex").write_text(PAPER % f"{of_paper}\\clearpage\\onecolumn{on_pages}")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "Overfull" not in ran.stdout
    widths = dict(re.findall(r"width of (\w+): ([\d.]+)pt", ran.stdout))
    assert set(widths) == set(written)
    for name, width in widths.items():
        assert float(width) / 72.27 == pytest.approx(estimate_in(written[name]), rel=0.1), name


def test_formats_round_alike() -> None:
    """Narrow tables, without intervals, have the same digits as full ones."""
    rows = cell_rows(*demo())
    narrow, full = (
        {column.name: column.texts for column in summaries_table(rows, is_narrow=is_narrow).columns}
        for is_narrow in (True, False)
    )
    for name in narrow.keys() & full.keys():
        assert [text.partition(" [")[0] for text in narrow[name]] == [text.partition(" [")[0] for text in full[name]]
