"""References in a report: their bounds in notes, and both rates in a table and its files."""

from __future__ import annotations

import csv
import io
from itertools import product

import pytest

from study.arrow import results_table
from study.interface.criterion import Bound
from study.interface.declarations import Metric
from study.interface.references import ReferenceCriterion
from study.records import Cell, Outcome, Result, Trial
from study.reports import Report, ResultRows, cell_rows, cells_rows, reference_notes, write_report
from study.reports.columns import OWN_OF_BOUNDS
from study.reports.csv_text import csv_text, key_values
from study.reports.references import bounds_table
from study.summaries.aggregate import aggregate
from study.summaries.references import ReferenceFindings, reference_findings
from study.trials.table import TrialTable

METRICS = {"loss": Metric(title="test loss"), "accuracy": Metric(higher_is_better=True)}
CELLS = [Cell("lab:Sums", model, {"size": size}) for size in (2, 3) for model in ("lab:Exact", "NMU")]


def rows_and_findings(seeds: int = 4, **keep: Bound) -> tuple[ResultRows, ReferenceFindings]:
    """Make rows and findings of two questions; each question has a reference model and another one."""
    results = [
        Result(
            trial=Trial(cell, seed),
            outcome=Outcome.FINISHED,
            metrics={"loss": seed / 10 + 0.6 * (cell.model == "NMU"), "accuracy": 0.9 - seed / 100},
        )
        for cell in CELLS
        for seed in range(seeds)
    ]
    criterion = ReferenceCriterion(
        model="lab:Exact",
        higher_is_better={"loss": False, "accuracy": True},
        keep=keep,
        reference_of={cell.id: CELLS[2 * (cell.values["size"] == 3)].id for cell in CELLS},
        seeds={cell.id: range(seeds) for cell in CELLS if cell.model == "lab:Exact"},
    )
    table = TrialTable(results_table(results), METRICS)
    summaries = aggregate(table)
    return cell_rows(summaries, {}), reference_findings(table, criterion, [s.cell_id for s in summaries])


def test_notes_say_the_bounds_and_how_many_references_set_them() -> None:
    """Each question has its bounds, the number of references, and the number dropped."""
    (note,) = reference_notes(*rows_and_findings(loss=Bound(below=0.25)))
    assert note.startswith("trials are judged by the 99% prediction bound of references: Exact, size 2: test loss ≤ ")
    assert note.count("accuracy ≥ ") == 2
    assert note.count("(3 references; 1 of 4 were dropped)") == 2
    (note,) = reference_notes(*rows_and_findings())
    assert note.count("(4 references)") == 2


def test_notes_say_why_nothing_is_judged() -> None:
    """With too few references no trial is judged, and the note gives the number needed."""
    (note,) = reference_notes(*rows_and_findings(loss=Bound(below=0.05)))
    assert note.startswith("a bound needs at least 2 references; with fewer, trials are finished")
    assert "Exact, size 3 (1 reference; 3 of 4 were dropped)" in note
    (note,) = reference_notes(*rows_and_findings(seeds=1))
    assert "Exact, size 2 (1 reference)" in note


def test_the_table_has_both_rates_of_each_metric() -> None:
    rows, findings = rows_and_findings()
    table = bounds_table(rows, findings)
    assert table.header[:4] == ("model", "size", "metric", "trials")
    assert [title for title in table.header if "bound" in title] == [
        "bound of the mean",
        "rate within bound of the mean",
        "prediction bound",
        "rate within prediction bound",
    ]
    assert [row[:4] for row in table.rows[:3]] == [
        ("Exact", "2", "test loss", "4"),
        ("Exact", "2", "accuracy", "4"),
        ("NMU", "2", "test loss", "4"),
    ]
    assert table.rows[0][-1].startswith("1.00 [0.51, 1.00]")
    assert (table.rows[2][-3][:6], table.rows[2][-1][:6]) == ("0.00 [", "0.75 [")


@pytest.mark.parametrize("with_references", [True, False])
def test_every_format_has_the_table(tmp_path, with_references: bool) -> None:
    """Page, Markdown, CSV with full precision and LaTeX have the table of bounds; without references it is absent."""
    rows, findings = rows_and_findings()
    report = Report(
        name="sums",
        question="",
        rows=rows,
        data=cells_rows(rows.summaries, {}),  # type: ignore[arg-type]
        command="study report sums",
        references=findings if with_references else None,
    )
    files = {file.name: file for file in write_report(tmp_path / "report", report, ["html", "md", "csv", "latex"])}
    assert ("bounds.csv" in files) == ("bounds.tex" in files) == with_references
    for name in ("report.html", "report.md"):
        assert ("Bounds of references" in files[name].read_text()) == with_references
    if not with_references:
        return
    lines = list(csv.DictReader(io.StringIO(files["bounds.csv"].read_text())))
    assert len(lines) == 4 * 2 * 2
    assert [(line["model"], line["metric"], line["kind"]) for line in lines[:3]] == [
        ("lab:Exact", "loss", "mean"),
        ("lab:Exact", "loss", "prediction"),
        ("lab:Exact", "accuracy", "mean"),
    ]
    assert [float(line["bound"]) for line in lines] == [rate.bound for rate in findings.rates]
    tex = files["bounds.tex"].read_text()
    assert len(tex.partition("\\midrule")[2].split("\\\\\n")) == 9
    assert {line.count("&") for line in tex.partition("\\midrule")[2].splitlines() if "&" in line} == {4}


def test_keys_are_written_as_in_other_files() -> None:
    """Flags are lower case, ranges are texts, and a key with a column's name is marked."""
    values = {"clipped": (False, True), "span": (((1.0, 2.5),), ((1.0, 3.5),)), "rate": (0.0, 0.5)}
    cells = [
        Cell("lab:Sums", "NMU", dict(zip(values, combination, strict=True)))
        for combination in product(*values.values())
    ]
    results = [Result(trial=Trial(cell, 0), outcome=Outcome.SOLVED, metrics={}) for cell in cells]
    rows = cell_rows(aggregate(TrialTable(results_table(results), {})), {})
    text = csv_text([key_values(rows, row, OWN_OF_BOUNDS, "{} (hyperparameter)") for row in range(len(cells))])
    lines = list(csv.DictReader(io.StringIO(text)))
    assert {line["clipped"] for line in lines} == {"false", "true"}
    assert {line["span"] for line in lines} == {"[1,2.5]", "[1,3.5]"}
    assert {line["rate (hyperparameter)"] for line in lines} == {"0.0", "0.5"}
