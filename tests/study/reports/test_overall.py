"""Methods aggregated over tasks in a report: a table, two figures, and all numbers as CSV."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

from study.comparisons.overall import overall as overall_of
from study.interface.declarations import Metric
from study.reports import groups, groups_rows, write_report
from study.reports.columns import METHODS, PROFILES
from study.reports.content import Report
from study.reports.figures import improvement, profiles
from study.reports.figures.style import render
from study.reports.overall import overall_table
from study.trials.table import TrialTable
from tests.study.builders import outcomes_table, summarised_by

pytestmark = pytest.mark.usefixtures("figures")  # of texts that a file has once

BY = ["task", "model"]
TEXTS = ("metric", "method", "other")


def report_of(models=3, tasks=2, *, metric=None, diverged=1, scale=1.0):
    """Make a report of ten seeds of each model on each task; each model is better, and the last diverges."""
    keys = [(f"task {t}", f"model {m}", s) for t in range(tasks) for m in range(models) for s in range(10)]
    rng = np.random.default_rng(0)
    values = np.array([0.3 * int(m[-1]) + 0.1 * s for _, m, s in keys]) + 0.3 * rng.normal(size=len(keys))
    values = np.exp(scale * values) if scale != 1 else values
    values[len(values) - diverged :] = np.nan
    table = outcomes_table(
        task=[task for task, _, _ in keys],
        model=[model for _, model, _ in keys],
        seed=[seed for _, _, seed in keys],
        outcome=["finished"] * (len(keys) - diverged) + ["diverged"] * diverged,
        score=values,
    )
    metrics = {"score": metric or Metric(higher_is_better=True)}
    summaries = summarised_by(table, BY, metrics)
    rows = groups(summaries, BY)
    data = groups_rows(summaries, table.select(BY).schema)
    return Report(
        name="runs.csv",
        question="",
        rows=rows,
        data=data,
        command="",
        overall=overall_of(rows, TrialTable(table, metrics, tuple(BY))),
    )


@pytest.fixture(scope="module", name="report_files")
def _report_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return {path.name: path for path in write_report(folder, report_of())}


def test_methods_csv_has_every_pair(report_files):
    """Each pair of methods has a row with the numbers of the analysis."""
    lines = list(csv.DictReader(io.StringIO(report_files["methods.csv"].read_text())))
    methods = report_of().overall.methods
    assert len(lines) == 6
    for line in lines:
        method = next(candidate for candidate in methods if candidate.name == line["method"])
        other = next(place for place, candidate in enumerate(methods) if candidate.name == line["other"])
        improvement = method.improvements[other]
        assert float(line["probability"]) == improvement.value
        assert (float(line["probability_lower"]), float(line["probability_upper"])) == improvement.interval
        assert float(line["interquartile_mean"]) == method.interquartile_mean.value
        ends = (float(line["interquartile_mean_lower"]), float(line["interquartile_mean_upper"]))
        assert ends == method.interquartile_mean.interval
        assert [int(line[name]) for name in ("questions", "trials", "without_number")] == [
            2,
            method.trials,
            method.without_number,
        ]


@pytest.mark.parametrize(("name", "columns"), [("methods.csv", METHODS), ("profiles.csv", PROFILES)])
def test_files_have_the_columns_that_are_described(report_files, name, columns):
    """The header has the columns of docs/reference/columns.md, and every number is parsable."""
    lines = list(csv.DictReader(io.StringIO(report_files[name].read_text())))
    assert list(lines[0]) == list(columns)
    for line in lines:
        assert all(text == "" or float(text) == float(text) for key, text in line.items() if key not in TEXTS)


def test_profiles_csv_has_every_step(report_files):
    """The first interval has no start; the shares fall to zero, within their bands."""
    lines = [
        line
        for line in csv.DictReader(io.StringIO(report_files["profiles.csv"].read_text()))
        if line["method"] == "model 2"
    ]
    assert [line["from"] for line in lines[:1]] == [""]
    shares = [float(line["share"]) for line in lines]
    assert shares[0] == pytest.approx(0.95)
    assert shares[-1] == 0
    assert shares == sorted(shares, reverse=True)
    assert all(float(line["share_lower"]) <= float(line["share"]) <= float(line["share_upper"]) for line in lines)


def test_the_page_and_markdown_show_the_table_and_its_notes(report_files):
    """Page and Markdown have a section with the table and its notes; the page contains both figures."""
    page, markdown = report_files["report.html"].read_text(), report_files["report.md"].read_text()
    section = re.search(r'<section id="aggregate-over-tasks">.*?</section>', page, re.DOTALL)[0]
    for name in ("profiles", "improvement"):
        assert f'id="figure-{name}"' in section
        assert page.count(f'id="figure-{name}"') == 1
    for text in (section, markdown):
        assert "averaged over the 2 tasks" in text
        assert "better than model 1" in text
        assert "model 2 (1 of 20)" in text


def test_no_method_is_better_than_itself_and_none_is_bold_by_its_mean_alone():
    """Few methods are compared pairwise, many with the best."""
    overall = report_of().overall
    table = overall_table(overall)
    assert table.header[:3] == ("method", "seeds", "without a number")
    assert [sorted(column.best) for column in table.columns] == [[]] * 7
    assert [column.texts[place] for place, column in enumerate(table.columns[4:])] == ["–"] * 3
    many = report_of(7, diverged=0).overall
    assert overall_table(many).header == ("method", "seeds", "score, interquartile mean", "better than model 6")


def test_the_profile_figure_has_a_line_and_a_band_for_each_method():
    """Few methods share a panel; of many, each has its own, with the others in grey."""
    few = profiles.plot(report_of().overall)
    [axes] = few.figure.axes
    assert len(axes.collections) == 3
    assert [text.get_text() for text in few.figure.legends[0].get_texts()] == ["model 0", "model 1", "model 2"]
    assert "A trial without a number is never better" in few.caption
    many = profiles.plot(report_of(7).overall)
    assert [axes.get_title(loc="left") for axes in many.figure.axes] == [f"model {n}" for n in range(7)]
    assert all(len(axes.collections) == 1 for axes in many.figure.axes)
    assert b"better than" in render(few, "svg")


def test_values_over_decades_have_a_logarithmic_axis():
    """Losses have a logarithmic axis; their profile increases with the threshold."""
    drawn = profiles.plot(report_of(2, metric=Metric(low=0.0), scale=9.0).overall)
    [axes] = drawn.figure.axes
    assert axes.get_xscale() == "log"
    assert "is lower than the threshold" in drawn.caption


def test_the_improvement_figure_has_a_dot_for_each_pair():
    """The method that is better more often is named first; many methods are compared with the best."""
    drawn = improvement.plot(report_of(diverged=0).overall)
    [axes] = drawn.figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["model 1 over model 0", "model 2 over model 0", "model 2 over model 1"]
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert all(0.5 <= dot <= 1 for dot in dots)
    assert len(dots) == 3
    many = improvement.plot(report_of(7, diverged=0).overall)
    assert len(many.figure.axes[0].get_yticklabels()) == 6
    assert "compared with the one that has the best interquartile mean" in many.caption


def test_there_are_no_figures_without_methods():
    """Without a comparison, nothing is drawn or written."""
    assert report_of(1).overall is None
    assert report_of(3, 1).overall is None
    assert profiles.plot(None) is None
    assert improvement.plot(None) is None


def test_values_that_are_all_equal_can_be_drawn():
    """With one threshold and all ties, the probability is a half, and the axis has a positive width."""
    table = outcomes_table(
        task=["x", "y"] * 6,
        model=["A"] * 6 + ["B"] * 6,
        seed=[0, 0, 1, 1, 2, 2] * 2,
        outcome=["finished"] * 12,
        score=[1.0] * 12,
    )
    rows = groups(summarised_by(table, BY, {"score": Metric()}), BY)
    overall = overall_of(rows, TrialTable(table, {"score": Metric()}, tuple(BY)))
    assert overall.methods[0].improvements[1].value == 0.5
    assert render(profiles.plot(overall), "png")
    assert render(improvement.plot(overall), "svg")
