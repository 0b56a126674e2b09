"""The ranking figure: order of methods, differences to the best one, and ties."""

from __future__ import annotations

import numpy as np
import pytest

from study.arrow import results_table
from study.comparisons.contrasts import contrasts
from study.interface.declarations import Metric
from study.reports import cell_rows, groups
from study.reports.figures import ranking
from study.trials.table import TrialTable
from tests.study.builders import outcomes_table, published_cell, results_of, summarised, summarised_by


def compared(means, *, higher=True, diverged=(), seeds=12, tasks=("x",)):
    """Compare methods with scores around given means."""
    rng = np.random.default_rng(0)
    keys = [(task, name, seed) for task in tasks for name in means for seed in range(seeds)]
    scores = np.array([means[name] + 0.3 * rng.normal() for _, name, _ in keys])
    lost = np.array([name in diverged and seed == 0 for _, name, seed in keys])
    columns = {"task": [key[0] for key in keys]} if len(tasks) > 1 else {}
    table = outcomes_table(
        **columns,
        model=[name for _, name, _ in keys],
        seed=[seed for *_, seed in keys],
        outcome=np.where(lost, "diverged", "finished").tolist(),
        score=np.where(lost, np.nan, scores),
    )
    metrics, by = {"score": Metric(higher_is_better=higher)}, [*columns, "model"]
    rows = groups(summarised_by(table, by, metrics), by)
    return rows, contrasts(rows, TrialTable(table, metrics, tuple(by)))


def dots(axes):
    """Return the value of each line with a dot."""
    return {float(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"}


def bars(axes):
    """Return the first and last place of each bar beside a panel."""
    return [tuple(np.round(line.get_ydata()).astype(int)) for line in axes.lines if line.get_linewidth() == 1.6]


MEANS = {"sgd": 0.0, "adam": 2.0, "lion": 1.0, "adamw": 2.1}


def test_methods_stand_in_order_beside_their_differences_to_the_best():
    """The left panel has the estimates, best first; the right one the findings, signed relative to the best."""
    rows, findings = compared(MEANS)
    drawn = ranking.plot(rows, findings)
    left, right = drawn.figure.axes
    order = [label.get_text() for label in left.get_yticklabels()]
    assert order == ["adamw", "adam", "lion", "sgd"]
    means = {rows.name(row): s.metrics["score"].mean for row, s in enumerate(rows.summaries)}
    assert dots(left) == {place: pytest.approx(means[name]) for place, name in enumerate(order)}
    expected = {}
    for finding in findings.pairs:
        if "adamw" in (finding.first, finding.second):
            other, sign = (finding.second, -1) if finding.first == "adamw" else (finding.first, 1)
            expected[order.index(other)] = pytest.approx(sign * finding.estimate)
    assert dots(right) == expected
    assert drawn.name == "ranking"


def test_bars_join_methods_that_no_test_tells_apart():
    """Methods without a winner among them share a bar; if every pair has a winner, bars are omitted."""
    rows, findings = compared({"sgd": 0.0, "adam": 2.1, "lion": 1.0, "adamw": 2.0})
    assert [{f.first, f.second} for f in findings.pairs if f.winner is None] == [{"adam", "adamw"}]
    left, _ = ranking.plot(rows, findings).figure.axes
    assert bars(left) == [(0, 1)]
    apart, _ = ranking.plot(*compared({"a": 0.0, "b": 5.0, "c": 10.0})).figure.axes
    assert bars(apart) == []
    alike, _ = ranking.plot(*compared(dict.fromkeys("abcd", 1.0))).figure.axes
    assert bars(alike) == [(0, 3)]


def test_a_minimised_metric_ranks_the_lowest_first():
    """The method with the lowest mean comes first, and all differences to it are positive."""
    left, right = ranking.plot(*compared(MEANS, higher=False)).figure.axes
    assert left.get_yticklabels()[0].get_text() == "sgd"
    assert min(dots(right).values()) > 0


def test_two_methods_have_their_difference_and_one_has_nothing():
    """The figure of two methods is named by its difference."""
    drawn = ranking.plot(*compared({"a": 0.0, "b": 1.0}))
    assert drawn.name == "differences"
    assert ranking.plot(*compared({"a": 0.0})) is None


def test_ranks_are_shown_as_probabilities():
    """If all methods have trials without a number, the right panel shows the probability of beating the best."""
    drawn = ranking.plot(*compared(MEANS, diverged=tuple(MEANS)))
    _, right = drawn.figure.axes
    assert right.get_xlabel().startswith("probability of being better")
    assert all(0 <= value <= 1 for value in dots(right).values())
    mixed = ranking.plot(*compared(MEANS, diverged=("sgd",)))
    assert len(dots(mixed.figure.axes[1])) == 2
    assert "compared by ranks" in mixed.caption


def test_each_question_has_its_panels():
    """Methods on two tasks are ordered on each task."""
    drawn = ranking.plot(*compared(MEANS, tasks=("x", "y")))
    assert [axes.get_title("left") for axes in drawn.figure.axes[::2]] == ["task x", "task y"]


@pytest.mark.parametrize(("changes", "is_first"), [([{}], True), ([{"hidden_size": h} for h in (2, 3)], False)])
def test_the_ranking_comes_first_without_a_swept_number(changes, is_first):
    """With a swept number, curves come first, and averages over that number have no intervals."""
    cells = [published_cell(model, **change) for model in ("NMU", "NAU", "NALU") for change in changes]
    table = results_table(
        [result for i, cell in enumerate(cells) for result in results_of(cell, solved=i, unsolved=9 - i)]
    )
    rows = cell_rows(summarised(table, {}), {})
    findings = contrasts(rows, TrialTable(table))
    assert ranking.leads(findings) is is_first
    drawn = ranking.plot(rows, findings)
    intervals = [line for line in drawn.figure.axes[0].lines if line.get_linewidth() == 0.8 and len(line.get_xdata())]
    assert len(intervals) == (3 if is_first else 0)
