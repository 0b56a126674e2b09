"""Reports of metrics: available numbers are shown, and without a criterion success isn't mentioned."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from study.arrow import curves_table
from study.interface.declarations import Metric
from study.records import Curve
from study.reports import (
    FORMATS,
    Report,
    ResultRows,
    contrasts,
    groups,
    groups_rows,
    headline,
    metric_notes,
    with_groups,
    write_report,
)
from study.reports.content import DataRows
from study.reports.figures import all as all_figures
from study.reports.figures import learning_curves, panels
from study.reports.figures.dots import ITERATIONS, lines
from study.reports.table import comparison_table, summaries_table
from study.summaries.aggregate import aggregate_by
from study.summaries.learning import LearningCurve, learning_curve
from study.trials.table import TrialTable
from tests.study.builders import outcomes_table, summarised_by

pytestmark = pytest.mark.usefixtures("figures")  # of texts that a file has once

METRICS = {
    "test_accuracy": Metric(higher_is_better=True, low=0.0, high=1.0),
    "test_loss": Metric(low=0.0),
    "wait": Metric(title="waiting time", unit="s"),
    "norm": Metric(),
    "train_loss": Metric(of="none"),
}
OF_SUCCESS = re.compile(r"success|solved", re.IGNORECASE)


def rows_of(
    outcome: str = "finished", *, shift: float = 0.0, metrics: Mapping[str, Metric] = METRICS, diverged: int = 0
) -> tuple[ResultRows, DataRows, TrialTable]:
    """Make rows of two models at three widths, of eight trials each; some trials diverge."""
    keys = [(model, width) for model in ("A", "B") for width in (2, 4, 8) for _ in range(8)]
    steps = np.tile(np.linspace(-0.02, 0.02, 8), 6)
    accuracy = np.array([0.7 + 0.1 * (model == "A") + 0.01 * width for model, width in keys]) + steps + shift
    accuracy[:diverged] = np.nan
    table = outcomes_table(
        outcome=["diverged"] * diverged + [outcome] * (48 - diverged),
        model=[model for model, _ in keys],
        width=[width for _, width in keys],
        test_accuracy=accuracy,
        test_loss=10 ** (-20 * accuracy),
        wait=100 * accuracy,
        norm=-accuracy,
    )
    by = ["model", "width"]
    trials = TrialTable(table, metrics, tuple(by))
    summaries = aggregate_by(trials)
    rows = groups(summaries, by)
    return rows, groups_rows(summaries, pa.schema([table.schema.field(name) for name in by])), trials


def report_of(rows, data, trials, **more):
    """Build a report as `study report FILE` does."""
    tests = contrasts(rows, trials)
    finding = headline(rows, tests)
    content = {"name": "runs.csv", "question": "", "rows": rows, "data": data, "command": "study report runs.csv"}
    return Report(**content, headline=finding, contrasts=tests, notes=metric_notes(rows), **more)


@pytest.fixture(scope="module")
def report_files(tmp_path_factory):
    """Write a report without success, compared with another, in all formats."""
    rows, data, trials = rows_of(diverged=2)
    other_rows, _, other_trials = rows_of(shift=0.05)
    against = with_groups(rows, other_rows, "other.csv", (trials, other_trials))
    folder = tmp_path_factory.mktemp("report")
    return {
        path.name: path for path in write_report(folder, report_of(rows, data, trials, against=against), list(FORMATS))
    }


@pytest.mark.parametrize("name", ["report.html", "report.md", "cells.csv", "cells.tex", "comparison.csv", "tests.csv"])
def test_reports_without_a_criterion_omit_success(report_files, name):
    """No file has a column, a figure or a sentence about success rates or solved trials."""
    text = report_files[name].read_text(encoding="utf-8")
    text = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not OF_SUCCESS.findall(text)


def test_the_figures_are_those_of_means(report_files):
    """Panels of means are drawn; the figure of times is omitted."""
    assert {name.removesuffix(".png") for name in report_files if name.endswith(".png")} == {"differences", "figure"}


def test_cells_csv_has_every_statistic_of_every_metric(report_files):
    """Mean, median, interquartile mean, their intervals and the number of trials are exact."""
    rows = list(csv.DictReader(io.StringIO(report_files["cells.csv"].read_text(encoding="utf-8"))))
    summaries = rows_of(diverged=2)[0].summaries
    for row, summary in zip(rows, summaries, strict=True):
        assert (int(row["finished"]), int(row["diverged"])) == (summary.finished, summary.diverged)
        for name, metric_summary in summary.metrics.items():
            assert (float(row[f"{name}_mean"]), int(row[f"{name}_trials"])) == (
                metric_summary.mean,
                metric_summary.count,
            )
            for field in ("mean", "median", "interquartile_mean"):
                ends = getattr(metric_summary, f"{field}_interval")
                prefix = name if field == "mean" else f"{name}_{field}"
                assert float(row[f"{name}_{field}"]) == getattr(metric_summary, field)
                assert (float(row[f"{prefix}_lower"]), float(row[f"{prefix}_upper"])) == ends


def test_the_table_has_a_mean_a_median_and_an_interquartile_mean():
    """The page has all statistics of every metric, a terminal the means of the first ones."""
    rows, *_ = rows_of()
    wide, narrow = summaries_table(rows), summaries_table(rows, is_narrow=True)
    assert wide.header[:6] == (
        "model", "width", "seeds", "test accuracy, mean", "test accuracy, median", "test accuracy, interquartile mean",
    )  # fmt: skip
    assert "norm, median" in wide.header
    assert narrow.header == ("model", "width", "seeds", "test accuracy", "test loss", "waiting time (s)")
    _, _, trials = rows_of()
    winners = contrasts(rows, trials).winners
    assert winners == {0, 1, 2}  # A is better than B at each width
    assert summaries_table(replace(rows, winners=winners)).columns[3].best == winners
    assert all(column.best == frozenset() for column in wide.columns)


def test_a_success_rate_stands_beside_means():
    """With a criterion the rate is shown beside the metrics of all trials."""
    rows, data, _ = rows_of("unsolved")
    assert {"success rate", "test accuracy, mean"} <= set(summaries_table(rows).header)
    assert {"success_rate", "test_accuracy_mean"} <= set(data.schema.names)
    assert "solved at iteration, mean" not in summaries_table(rows).header  # no time is known
    assert [axes.get_ylabel() for axes in panels.plot(rows).figure.axes] == [
        "success rate", "test accuracy", "test loss",
    ]  # fmt: skip


def test_a_metric_without_values_has_no_column():
    """A metric that no trial reported isn't shown."""
    table = outcomes_table(outcome=["finished"] * 2, model=["A", "B"], loss=[1.0, 2.0], norm=pa.nulls(2, pa.float64()))
    rows = groups(summarised_by(table, ["model"], {"loss": Metric(), "norm": Metric()}), ["model"])
    assert not [title for title in summaries_table(rows).header if title.startswith("norm")]
    assert len(panels.plot(rows).figure.axes) == 1


def test_panels_have_axes_that_fit_the_numbers():
    """Means and intervals fit; non-negative numbers over decades have a logarithmic axis."""
    rows, *_ = rows_of()
    drawing = panels.plot(rows)
    assert drawing.title == "Test accuracy, test loss and waiting time (s)"
    assert [axes.get_yscale() for axes in drawing.figure.axes] == ["linear", "log", "linear"]
    for axes, name in zip(drawing.figure.axes, METRICS, strict=False):
        low, high = axes.get_ylim()
        assert all(low < summary.metrics[name].mean < high for summary in rows.summaries)
    assert drawing.figure.axes[0].get_ylim()[0] > 0.6


def test_a_wide_interval_flattens_nothing():
    """A row with few scattered values doesn't hide the differences of the others."""
    values = [0.5, 0.52, 0.51, 0.49, 0.5, 0.7, 0.72, 0.71, 0.69, 0.7, -90.0, 0.6, 0.6, 0.6, 91.0]
    table = outcomes_table(outcome=["finished"] * 15, model=list("AAAAABBBBBCCCCC"), loss=values)
    rows = groups(summarised_by(table, ["model"], {"loss": Metric()}), ["model"])
    drawing = panels.plot(rows)
    low, high = drawing.figure.axes[0].get_ylim()
    assert high - low < 2
    assert "continues beyond it" in drawing.caption


def test_means_are_compared_with_another_file():
    """Without rates, rows are compared by the first metric's means; untestable rows aren't called equal."""
    (rows, _, trials), (other_rows, _, other_trials) = rows_of(), rows_of(shift=0.1)
    against = with_groups(rows, other_rows, "other.csv", (trials, other_trials))
    assert against.metric == "test_accuracy"
    assert {c.verdict for c in against.comparisons} == {"differs"}
    assert [c.finding.estimate for c in against.comparisons] == pytest.approx([-0.1] * 6)
    header = comparison_table(rows, against).header
    assert {"trials here", "test accuracy here", "test accuracy there", "difference"} <= set(header)
    table = outcomes_table(outcome=["finished"], model=["A"], width=[2], test_accuracy=[0.5])
    single_trial = TrialTable(table, {"test_accuracy": Metric()}, ("model", "width"))
    (alone,) = with_groups(
        groups(aggregate_by(single_trial), single_trial.by), rows, "other.csv", (single_trial, trials)
    ).comparisons
    assert (alone.verdict, alone.finding.p_value, alone.finding.interval) == ("not tested", None, None)


def test_trials_without_a_number_are_named():
    """Means exclude trials that diverged without a value, and a note counts them by row."""
    (note,) = metric_notes(rows_of(diverged=2, metrics={"test_accuracy": METRICS["test_accuracy"]})[0])
    assert note == "2 trials ended without a finite test accuracy, and its averages leave them out: A, width 2 (2 of 8)"
    assert metric_notes(rows_of()[0]) == []


def test_metrics_that_the_same_trials_lack_share_a_note():
    """A diverged trial lacks all of them, and is noted once; only a few metrics are named."""
    losses = {f"loss_of_{name}": METRICS["test_accuracy"] for name in "abcde"}
    table = outcomes_table(outcome=["finished", "diverged"], model=["A", "A"], **{name: [0.5, None] for name in losses})
    rows = groups(summarised_by(table, ["model"], losses), ["model"], list(losses))
    (note,) = metric_notes(rows)
    assert note == (
        "1 trial ended without a finite loss of a, loss of b, loss of c and 2 more metrics, and their averages leave "
        "them out: A (1 of 2)"
    )


def curves(values):
    """Make curves of one metric, one row a trial."""
    return curves_table(
        Curve(str(i), np.arange(len(curve_values)) * 1000, {"test_accuracy": np.array(curve_values)})
        for i, curve_values in enumerate(values)
    )


def test_curves_of_maximised_metrics():
    """A diverged trial is among the worst; the axis is linear, within the metric's limits."""
    table = curves([[0.1, 0.5, 0.9], [0.1, 0.6, 0.8], [0.1, np.nan, np.nan]])
    curve = learning_curve(0, table, higher=["test_accuracy"], threshold=0.85)
    assert curve.quantiles["test_accuracy"][:, -1].tolist() == [-np.inf, -np.inf, 0.8, 0.9, 0.9]
    rows, *_ = rows_of()
    (axes,) = learning_curves.plot(rows, [curve], METRICS).figure.axes
    low, high = axes.get_ylim()
    assert (axes.get_yscale(), axes.get_ylabel()) == ("linear", "test accuracy")
    assert -0.05 < low < 0.1 < 0.9 < high < 1.05


def test_curves_without_a_declared_metric_are_not_drawn():
    """An undeclared metric has no panel."""
    curve = LearningCurve(row=0, trials=1, total=1, iteration=np.arange(2), quantiles={"other": np.ones((5, 2))})
    assert learning_curves.plot(rows_of()[0], [curve], METRICS) is None
    assert all_figures.plot_all(report_of(*rows_of(metrics={}))) == []


@pytest.mark.parametrize(
    ("outcome", "titles"), [("unsolved", ["success rate"]), ("solved", ["success rate", "solved at"])]
)
def test_no_panel_is_empty(outcome, titles):
    """Without solved trials, the panel of times is omitted, and metrics are still shown."""
    table = outcomes_table(outcome=[outcome] * 4, width=[2, 2, 4, 4], test_loss=[0.1, 0.2, 0.3, 0.4])
    if outcome == "solved":
        times = pa.array([10.0, 12.0, 11.0, 15.0])
        table = table.set_column(table.column_names.index("solved_at_iteration"), "solved_at_iteration", times)
    rows = groups(summarised_by(table, ["width"], {"test_loss": METRICS["test_loss"]}), ["width"])
    drawn = [panel.title for panel in lines(rows, None, ITERATIONS).panels]
    assert drawn == [*titles, "test loss"]


@pytest.mark.parametrize(
    ("models", "texts"),
    [
        (["lab.models:mlp", "lab.models:wide", "NMU"], ["mlp", "wide", "NMU"]),
        (["lab.models:mlp", "lab.others:mlp"], ["lab.models:mlp", "lab.others:mlp"]),
        (["lab.models:NAU", "NAU"], ["lab.models:NAU", "NAU"]),
    ],
)
def test_a_users_model_has_its_objects_name(models, texts):
    """If objects have different names, readers see these; files have the full import strings."""
    table = outcomes_table(outcome=["finished"] * len(models), model=models, test_loss=[0.1] * len(models))
    summaries = summarised_by(table, ["model"], {"test_loss": METRICS["test_loss"]})
    rows = groups(summaries, ["model"])
    (column, *_) = summaries_table(rows).columns
    assert list(column.texts) == texts
    assert [rows.name(row) for row in range(len(models))] == texts
    data = groups_rows(summaries, pa.schema([table.schema.field("model")]))
    assert [row["model"] for row in data.rows] == models
