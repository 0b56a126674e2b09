"""The effects figure: for each value of each axis, the mean over all rows with that value."""

from __future__ import annotations

import numpy as np
import pytest

from study.interface.declarations import Metric
from study.reports import groups
from study.reports.figures import effects
from study.summaries.aggregate import GroupSummary
from study.summaries.metrics import MetricSummary

KEYS = ["norm", "act", "lr", "depth"]
POINTS = [(n, a, lr, d) for n in (False, True) for a in ("relu", "tanh") for lr in (0.1, 0.2) for d in (1, 2, 3)]


def row(point, reward=None):
    """Make a row with a rate, or with a mean reward."""
    n, a, lr, d = point
    if reward is not None:
        metrics = {"reward": MetricSummary(metric=Metric(higher_is_better=True), mean=reward, count=9)}
        return GroupSummary(values=point, seeds=9, finished=9, is_judged=False, metrics=metrics)
    rate = 0.1 + 0.4 * n + 0.1 * (a == "tanh") + lr + 0.01 * d
    return GroupSummary(values=point, seeds=9, solved=5, unsolved=4, success_rate=rate)


def means(axes):
    """Return the heights of a panel's points."""
    [line] = axes.lines
    return line.get_ydata().tolist()


def test_points_are_means_over_all_else():
    """Each panel has an axis, the most influential first; all panels share a y axis, and have no intervals."""
    drawn = effects.plot(groups([row(point) for point in POINTS], KEYS))
    panels = drawn.figure.axes
    assert panels[0].get_xlabel() == "norm"
    assert {axes.get_xlabel() for axes in panels} == set(KEYS)
    for axes in panels:
        key = KEYS.index(axes.get_xlabel())
        levels = list(dict.fromkeys(point[key] for point in POINTS))
        expected = [np.mean([row(p).success_rate for p in POINTS if p[key] == level]) for level in levels]
        assert means(axes) == pytest.approx(expected)
        assert not axes.collections
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert "don't fill the grid" not in drawn.caption
    assert "don't fill the grid" in effects.plot(groups([row(point) for point in POINTS[:-1]], KEYS)).caption


def test_three_axes_have_curves_instead():
    """With three axes the effects figure is omitted."""
    assert effects.plot(groups([row(point) for point in POINTS if point[3] == 1], KEYS)) is None


def test_a_value_that_explodes_is_left_out():
    """A reward of 1e30 is excluded from the means, and the caption counts it."""
    rows = [row(point, -1e30 if i == 5 else 1.0 + i / 100) for i, point in enumerate(POINTS)]
    drawn = effects.plot(groups(rows, KEYS))
    assert all(0.9 < mean < 1.5 for axes in drawn.figure.axes for mean in means(axes))
    assert "1 value far beyond" in drawn.caption
