"""Reports of a DataFrame of outcomes, equal to those of a file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import study
from study.errors import InputError
from tests.commands import invoke


def outcomes() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "optimiser": ["Adam"] * 6 + ["SGD"] * 6,
            "seed": list(range(6)) * 2,
            "val_mse": [1e-3, 2e-3, 5e-3, 1e-3, 1.5e-3, 1e-3, 5e-3, 6e-3, 1e-3, 7e-3, 8e-3, 9e-3],
        }
    )


def test_a_frame_is_reported_as_a_file_is(tmp_path: Path) -> None:
    """Rates, means and the finding of a DataFrame equal those that the command prints for a CSV file."""
    trials = outcomes()
    report = study.report(trials, by=["optimiser"], success="val_mse < 2e-3", metrics=["val_mse"])
    cells = report.cells()
    assert cells[["optimiser", "solved", "seeds"]].values.tolist() == [["Adam", 4, 6], ["SGD", 1, 6]]
    assert cells["val_mse_mean"].tolist() == pytest.approx(trials.groupby("optimiser")["val_mse"].mean().tolist())
    trials.to_csv(tmp_path / "trials.csv", index=False)
    words = ("--by", "optimiser", "--success", "val_mse < 2e-3", "--metric", "val_mse", "--out", str(tmp_path / "out"))
    printed = invoke("report", str(tmp_path / "trials.csv"), *words, "--format", "csv").output
    assert " ".join(report.finding.split()) in " ".join(printed.split())
    stored_cells = pd.read_csv(tmp_path / "out" / "cells.csv", float_precision="round_trip")
    assert stored_cells["success_rate_lower"].tolist() == cells["success_rate_lower"].tolist()


@pytest.mark.usefixtures("figures")
def test_a_report_is_written_shown_and_compared(tmp_path: Path) -> None:
    """A report writes tables and figures, shows a table in a notebook, and compares another frame."""
    trials = outcomes().assign(solved=lambda frame: frame["val_mse"] < 2e-3)
    report = study.report(trials, by=["optimiser"], compare=trials.assign(solved=True), name="trials")
    names = {path.name for path in report.write(tmp_path / "report", ["html", "csv", "png"])}
    assert {"report.html", "cells.csv", "comparison.csv", "figure.png"} <= names
    assert "study.report(trials, by=[&#39;optimiser&#39;])" in (tmp_path / "report" / "report.html").read_text()
    assert "<b>trials by optimiser</b>" in report._repr_html_()
    assert "Adam" in repr(report)


def test_data_and_columns_are_those_of_the_command(tmp_path: Path) -> None:
    """The table's data has the rows of cells.csv; LaTeX has the selected columns."""
    report = study.report(outcomes(), by=["optimiser"], success="val_mse < 2e-3")
    data = report.table().data
    assert [(row["optimiser"], row["solved"]) for row in data["cells"]] == [("Adam", 4), ("SGD", 1)]
    assert data["finding"] == report.finding
    report.write(tmp_path / "report", ["latex"], columns=["success_rate"])
    assert "\\begin{tabular}{@{}lr@{}}" in (tmp_path / "report" / "cells.tex").read_text()
    with pytest.raises(InputError, match="did you mean 'success_rate'"):
        report.write(tmp_path / "other", ["latex"], columns=["sucess_rate"])
    with pytest.raises(InputError, match="no such format: 'xls'; choose from html, md, csv"):
        report.write(tmp_path / "other", ["xls"])
    assert not (tmp_path / "other").exists()


def test_mistakes_are_errors() -> None:
    """Missing columns, and a frame without rows, are errors."""
    with pytest.raises(InputError, match="seed"):
        study.report(outcomes().drop(columns="seed"), success="val_mse < 2e-3")
    with pytest.raises(InputError, match="there must be a row for each trial"):
        study.report(outcomes()[:0])
    with pytest.raises(InputError, match="give each column a name of its own, and values of one type"):
        study.report(outcomes().assign(note=[1, "y"] * 6))
