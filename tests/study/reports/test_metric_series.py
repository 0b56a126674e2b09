"""Metrics of series in a report: one figure, a short table each, and all numbers as CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from study.arrow import results_table
from study.interface.declarations import Metric
from study.interface.references import ReferenceCriterion
from study.records import Cell, Outcome, Result, Trial
from study.reports import Report, ResultRows, cell_rows, cells_rows, metric_notes, write_report
from study.reports.figures import along_axis
from study.reports.figures.scales import ARROW
from study.reports.metric_series import series_table, series_with_values
from study.reports.table import summaries_table
from study.summaries.references import reference_findings
from study.trials.table import TrialTable
from tests.study.builders import summarised

LENGTHS = (1, 2, 3, 5, 10, 20, 50, 100)
METRICS = {
    "validation_loss": Metric(low=0),
    **{
        f"test_mse_at_{n}": Metric(series="MSE", along="length", at=n, low=0, is_trained=n < 4)
        for n in reversed(LENGTHS)
    },
    **{f"test_hits_at_{n}": Metric(series="hits", along="size", at=n, higher_is_better=True, high=1) for n in (-1, 0)},
}
CELLS = [Cell("lab:Sums", model, {"size": size}) for model in ("exact", "NMU") for size in (2, 3)]


def results(trials: int = 4) -> list[Result]:
    """Make trials whose errors at length n are about n^3; the exact model's are exactly 0 up to 3."""
    return [
        Result(
            trial=Trial(cell, seed),
            outcome=Outcome.FINISHED,
            metrics={"validation_loss": 0.5 + seed, "test_hits_at_-1": 0.5, "test_hits_at_0": 0.1 * seed}
            | {
                f"test_mse_at_{n}": 0.0 if cell.model == "exact" and n <= 3 else n**3 * (1 + 0.1 * seed)
                for n in LENGTHS
            },
        )
        for cell in CELLS
        for seed in range(trials)
    ]


def rows_of(results: list[Result], *named: str) -> ResultRows:
    return cell_rows(summarised(results_table(results), METRICS), {}, named)


def report_of(rows: ResultRows) -> Report:
    data = cells_rows(rows.summaries, {}, rows.named_metrics)  # type: ignore[arg-type]
    return Report(name="sums", question="", rows=rows, data=data, command="study report sums", metrics=METRICS)


def test_series_are_left_out_of_the_main_table() -> None:
    """The main table omits metrics of series except named ones, on the page and in the terminal."""
    for is_narrow in (True, False):
        alone = " ".join(summaries_table(rows_of(results()), is_narrow=is_narrow).header)
        named = " ".join(summaries_table(rows_of(results(), "test_mse_at_50"), is_narrow=is_narrow).header)
        assert "validation loss" in alone
        assert "test" not in alone
        assert "test mse at 50" in named
        assert "test mse at 100" not in named


def test_a_short_table_has_the_ends_of_the_axis() -> None:
    """The short table has at most six places in order, with the means of cells.csv."""
    rows = rows_of(results())
    mse, hits = series_with_values(rows)
    table = series_table(rows, mse)
    assert table.header == ("model", "size", *(f"length {n}" for n in (1, 2, 5, 10, 50, 100)))
    assert series_table(rows, hits).header[2:] == ("size −1", "size 0")
    assert [column.values for column in table.columns[2:]] == [
        tuple(s.metrics[f"test_mse_at_{n}"].mean for s in rows.summaries) for n in (1, 2, 5, 10, 50, 100)
    ]


def test_csv_has_every_place(tmp_path: Path) -> None:
    """Each row, series and place appears once, with the number of trials and the exact mean; cells.csv has none."""
    trials = results()
    lacking = Result(trial=trials[0].trial, outcome=Outcome.FINISHED, metrics={})
    rows = rows_of([lacking, *trials[1:]])
    files = {file.name: file.read_text() for file in write_report(tmp_path, report_of(rows), ["csv", "latex", "md"])}
    lines = list(csv.DictReader(io.StringIO(files["series.csv"])))
    assert len(lines) == len(CELLS) * (len(LENGTHS) + 2)
    for line in lines:
        summary = next(s for s in rows.summaries if s.cell_id == line["cell_id"])  # type: ignore[attr-defined]
        metric_summary = summary.metrics[line["metric"]]
        assert (int(line["trials"]), float(line["mean"])) == (metric_summary.count, metric_summary.mean)
        ends = tuple(float(line[name]) for name in ("mean_lower", "mean_upper") if line[name])
        assert ends == (metric_summary.mean_interval or ())
        assert line["metric"].endswith(f"_at_{line['at']}")
    assert "test_mse" not in files["cells.csv"]
    assert files["series.tex"].count("\\begin{tabular}") == 2
    assert "Model & Size & $-$1 & 0 " in files["series.tex"]
    assert "| model | size | length 1 |" in files["report.md"]


def test_lists_are_texts_in_csv(tmp_path: Path) -> None:
    """A hyperparameter with lists has them in every file as cells.csv has them."""
    cells = [Cell("lab:Sums", "exact", {"layers": layers}) for layers in ((8, 16), (8, 4))]
    trials = [
        Result(trial=Trial(cell, seed), outcome=Outcome.FINISHED, metrics=results()[0].metrics)
        for cell in cells
        for seed in range(3)
    ]
    files = {file.name: file for file in write_report(tmp_path, report_of(rows_of(trials)), ["csv"])}
    for name in ("cells.csv", "series.csv"):
        with files[name].open() as file:
            assert {line["layers"] for line in csv.DictReader(file)} == {"[8, 16]", "[8, 4]"}


def test_without_series_their_files_are_not_written(tmp_path: Path) -> None:
    rows = cell_rows(summarised(results_table(results()), {"validation_loss": METRICS["validation_loss"]}), {})
    names = [file.name for file in write_report(tmp_path, report_of(rows), ["html", "csv", "latex", "svg"])]
    assert not any("series" in name for name in names)
    assert "Along an axis" not in (tmp_path / "report.html").read_text()


def test_each_series_has_a_panel_and_each_row_a_line() -> None:
    """Long axes are logarithmic, zeros are marked at the foot, and training's places are shaded."""
    rows = rows_of(results())
    drawn = along_axis.plot(rows)
    assert drawn is not None
    mse, hits = drawn.figure.axes
    assert (mse.get_xscale(), mse.get_yscale(), hits.get_xscale(), hits.get_yscale()) == ("log", "log", *["linear"] * 2)
    assert (mse.get_xlabel(), mse.get_ylabel()) == ("length", "MSE")
    lines = [line for line in mse.lines if len(line.get_xdata()) == len(LENGTHS)]
    assert [list(line.get_xdata()) for line in lines] == [list(LENGTHS)] * len(CELLS)
    for line, summary in zip(lines, rows.summaries, strict=True):
        means = [summary.metrics[f"test_mse_at_{n}"].mean for n in LENGTHS]
        drawn_y = [None if y != y else y for y in line.get_ydata()]
        assert drawn_y == [mean or None for mean in means]
    zeros = [list(line.get_xdata()) for line in mse.lines if line.get_marker() == "v" and line not in lines]
    assert zeros == [[1, 2, 3]] * 2
    (trained,) = mse.patches
    assert trained.get_extents().transformed(mse.transData.inverted()).intervalx == pytest.approx([1, 3])
    assert any("NMU, size 3, length 100" in text for text in drawn.tips.texts)
    assert along_axis.plot(cell_rows(summarised(results_table(results()), {}), {})) is None


def test_errors_that_explode_leave_the_others_readable() -> None:
    """Lines of exploding errors leave the panel, without intervals, and marks at the edge show their place."""
    trials = results()
    for result in trials:
        if result.trial.cell.model == "NMU":
            result.metrics["test_mse_at_50"] = result.metrics["test_mse_at_100"] = 1e28  # type: ignore[index]
    drawn = along_axis.plot(rows_of(trials))
    assert drawn is not None
    mse = drawn.figure.axes[0]
    assert mse.get_ylim()[1] < 1e10
    assert [list(line.get_xdata()) for line in mse.lines if line.get_marker() == ARROW] == [[50, 100]] * 2
    assert max(line.get_ydata()[-1] for line in mse.lines if len(line.get_xdata()) == len(LENGTHS)) == 1e28
    assert "MSE beyond the axis" in [text.get_text() for legend in drawn.figure.legends for text in legend.get_texts()]


def test_rates_by_place_are_drawn_with_references(tmp_path: Path) -> None:
    """Each kind of bound has a panel; bounds.csv has the bounds of all places once."""
    criterion = ReferenceCriterion(
        model="exact",
        higher_is_better={"test_mse_at_5": False},
        reference_of={cell.id: CELLS[cell.values["size"] - 2].id for cell in CELLS},
        seeds={cell.id: range(4) for cell in CELLS[:2]},
    )
    table = results_table(results())
    rows = rows_of(results(), "test_mse_at_5")
    findings = reference_findings(TrialTable(table, METRICS), criterion, [s.cell_id for s in rows.summaries])  # type: ignore[attr-defined]
    drawn = along_axis.plot(rows, findings)
    assert drawn is not None
    panels = {axes.get_ylabel(): axes for axes in drawn.figure.axes}
    assert list(panels) == ["MSE", "hits", "MSE: within bound of mean", "MSE: within prediction bound"]
    nmu = panels["MSE: within prediction bound"].lines[-1]
    assert list(nmu.get_ydata()) == [0, 0, 0, 1, 1, 1, 1, 1]
    report = Report(**vars(report_of(rows)) | {"references": findings})
    (file,) = [file for file in write_report(tmp_path, report, ["csv"]) if file.name == "bounds.csv"]
    lines = list(csv.DictReader(io.StringIO(file.read_text())))
    metrics = [line["metric"] for line in lines]
    assert metrics[: 2 * len(CELLS)] == ["test_mse_at_5"] * 2 * len(CELLS)
    assert all(metrics.count(f"test_mse_at_{n}") == 2 * len(CELLS) for n in LENGTHS)


def test_many_rows_are_split_into_facets_with_the_same_axes() -> None:
    """Each row has a line in one facet only."""
    many = [Cell("lab:Sums", model, {"size": size}) for model in ("a", "b", "c") for size in range(4)]
    trials = [
        Result(
            trial=Trial(cell, seed),
            outcome=Outcome.FINISHED,
            metrics={f"test_mse_at_{n}": (n + seed) * (1 + cell.values["size"]) for n in LENGTHS},
        )
        for cell in many
        for seed in range(2)
    ]
    drawn = along_axis.plot(rows_of(trials))
    assert drawn is not None
    lines = [line for axes in drawn.figure.axes for line in axes.lines]
    assert (len(drawn.figure.axes), len(lines)) == (4, len(many))
    assert len({axes.get_ylim() for axes in drawn.figure.axes}) == 1


def test_each_series_has_one_note_of_trials_without_a_number() -> None:
    """A series with trials without a number has one note, rather than one for each of its metrics."""
    trials = results()
    infinite = trials[0].metrics | {"test_mse_at_5": float("inf")}
    broken = Result(trial=trials[0].trial, outcome=Outcome.FINISHED, metrics=infinite)
    assert metric_notes(rows_of(trials)) == []
    (note,) = metric_notes(rows_of([broken, *trials[1:]]))
    assert note.startswith("1 trial ended without a finite MSE along length, ")
