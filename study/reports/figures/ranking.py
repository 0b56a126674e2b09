"""Methods in order, and their differences to the best one: two panels with shared rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import matplotlib as mpl
from matplotlib.axes import Axes

from study import words
from study.comparisons.contrasts import Contrasts
from study.comparisons.finding import Finding
from study.comparisons.plan import Question
from study.interface.declarations import Metric
from study.reports.figures import axes as axes_of
from study.reports.figures import texts
from study.reports.figures.dots import Panel, panel_of
from study.reports.figures.multiples import grid, left_out
from study.reports.figures.scales import Point, Scale, clipped_note
from study.reports.figures.style import INK, STYLE, Drawn, Tips
from study.summaries.rows import ResultRows

_MOST_LEADING, _MOST_METHODS, _MOST_QUESTIONS = 12, 24, 6
_NAME_IN, _TITLE_IN, _ROW_IN, _AROUND_IN = 1.5, 2.5, 0.19, 0.3
_BAR, _BAR_STEP = 1.02, 0.02
"""The position of bars right of a panel, and their distance, as shares of its width."""


@dataclass(frozen=True)
class _Ranked:
    """The methods of a question, the best first, with their rates or means; an average over rows has no interval.

    `changes` are differences to the best method, or probabilities of being better. `ties` are the first and the last
    places of each run of methods that aren't distinguished from one another.
    """

    name: str
    methods: tuple[str, ...]
    points: tuple[Point, ...]
    changes: tuple[Point, ...]
    are_probabilities: bool
    ties: tuple[tuple[int, int], ...]


def leads(contrasts: Contrasts) -> bool:
    """Return True if the figure comes first: it compares 2 to 12 methods at one question, without a swept key.

    It doesn't come first if factors are varied one at a time.
    """
    plan = contrasts.plan
    if plan is None or [plan.x] * len(plan.by_method) != ["model"]:
        return False
    return not plan.by_method[0].factor and 2 <= len(plan.by_method[0].methods) <= _MOST_LEADING


def plot(rows: ResultRows, contrasts: Contrasts) -> Drawn | None:
    """Draw the methods of each question in order, and beside them the differences to the best one.

    If most comparisons with the best method are by ranks, the probabilities of being better replace the differences.
    Bars join methods that no corrected test distinguishes. The rate or mean of a method with one row, and nothing
    tuned, is that row's; all other numbers are those of the contrasts. Up to six questions are drawn, with up to 24
    methods each.

    Returns:
        The figure; None without tests, or if factors are varied one at a time.
    """
    questions = () if contrasts.plan is None else contrasts.plan.by_method
    compared = [
        (question, findings)
        for question in questions
        if not question.factor and (findings := contrasts.findings.get(question))
    ]
    if not compared:
        return None
    panel, tips = panel_of(rows, contrasts.metric), Tips()
    ranked = [_rank(rows, *comparison, panel) for comparison in compared[:_MOST_QUESTIONS]]
    with mpl.rc_context(STYLE | {"axes.grid.axis": "x"}):
        titles = [text for entry in ranked for text in (entry.name, "")]
        height = _ROW_IN * max(len(entry.methods) for entry in ranked) + _AROUND_IN
        figure, panels = grid(titles, height, across=2, sharex=False)
        clipped = sum(
            _plot_question(left, right, entry, panel, tips)
            for entry, left, right in zip(ranked, panels[::2], panels[1::2], strict=True)
        )
    most = max(len(question.methods) for question, _ in compared)
    caption = _caption(panel.title, ranked, compared) + clipped_note(clipped)
    caption += left_out(_MOST_METHODS, most, "methods") + left_out(len(ranked), len(compared), "questions")
    name, title = ("ranking", "Ranking of methods") if most > 2 else ("differences", "Difference of methods")
    return Drawn(name, f"{title} by {panel.title}", caption, figure, tips)


def _rank(rows: ResultRows, question: Question, findings: Sequence[Finding], panel: Panel) -> _Ranked:
    tested = {f.first: f.values[0] for f in findings} | {f.second: f.values[1] for f in findings}
    points: dict[str, Point] = {
        method.name: (tested[method.name], None)
        if question.tuned or len(method.rows) > 1
        else panel.point(rows.summaries[method.rows[0]])
        for method in question.methods
    }
    sign = -1 if panel.metric is None or panel.metric.higher_is_better else 1
    order = sorted(points, key=lambda name: (points[name][0] is None, sign * (points[name][0] or 0.0)))[:_MOST_METHODS]
    pairs = {frozenset((f.first, f.second)): f for f in findings}
    places = range(len(order))
    apart = {(i, j) for i, j in combinations(places, 2) if pairs[frozenset((order[i], order[j]))].winner is not None}
    ends = [next((j for j in places if any((k, j) in apart for k in range(i, j))), len(order)) - 1 for i in places]
    ties = [(i, end) for i, end in enumerate(ends) if end > i and (i == 0 or ends[i - 1] < end)]
    against = [None, *(pairs[frozenset((order[0], other))] for other in order[1:])]
    kinds = [f.is_probability for f in against if f is not None and f.estimate is not None]
    are_probabilities = 2 * sum(kinds) > len(kinds)
    changes = [_change(f, order[0]) if f and f.is_probability is are_probabilities else (None, None) for f in against]
    return _Ranked(
        question.name,
        tuple(order),
        tuple(points[name] for name in order),
        tuple(changes),
        are_probabilities,
        tuple(ties),
    )


def _change(finding: Finding, best: str) -> Point:
    """Return the other method's difference to the best one, or its probability of being better, with the interval."""
    if finding.estimate is None or finding.second == best:
        return finding.estimate, finding.interval
    total = 1.0 if finding.is_probability else 0.0
    interval = finding.interval
    return total - finding.estimate, None if interval is None else (total - interval[1], total - interval[0])


def _plot_question(left: Axes, right: Axes, ranked: _Ranked, panel: Panel, tips: Tips) -> int:
    """Draw a question's two panels, and return the number of values beyond the axes."""
    write_change = words.rate if ranked.are_probabilities else words.change if panel.metric is None else words.signed
    null = 0.5 if ranked.are_probabilities else 0.0
    best = ranked.methods[0]
    change_title = f"probability of being better than {best}" if ranked.are_probabilities else f"difference to {best}"
    names = [texts.fit(method, _NAME_IN) for method in ranked.methods]
    right.axvline(null, **axes_of.NULL)
    scales = (
        Scale.of_metric(panel.metric, ranked.points, "x"),
        Scale.of_metric(Metric(higher_is_better=True), [*ranked.changes, (null, None)], "x"),
    )
    for axes, scale, points, text, form in (
        (left, scales[0], ranked.points, panel.title, panel.notation),
        (right, scales[1], ranked.changes, change_title, write_change),
    ):
        drawn = [point if scale.has(point[0]) else (None, None) for point in points]
        tip_texts = [f"{method}: {text} {form(*point)}" for method, point in zip(ranked.methods, points, strict=True)]
        axes_of.forest(axes, names, drawn, tip_texts, tips)
        scale.limit([axes])
        scale.mark(axes, [(place, value) for place, (value, _) in enumerate(points)], axes_of.neutral())
        axes.set_xlabel(texts.fit(text, _TITLE_IN))
    ends: list[int] = []  # the last place of each column of bars
    for first, last in ranked.ties:
        column = next((place for place, end in enumerate(ends) if end < first), len(ends))
        ends[column:] = [last, *ends[column + 1 :]]
        x, transform = _BAR + column * _BAR_STEP, left.get_yaxis_transform()
        left.plot([x, x], [first - 0.2, last + 0.2], color=INK, linewidth=1.6, transform=transform, clip_on=False)
    return sum(scale.clipped for scale in scales)


def _caption(title: str, ranked: Sequence[_Ranked], compared: Sequence[tuple[Question, Sequence[Finding]]]) -> str:
    findings = [finding for _, group in compared for finding in group]
    family = max(finding.family for finding in findings)
    text = f"Left: {title} of each method, the best first, with 95% intervals"
    if any(value is not None and interval is None for entry in ranked for value, interval in entry.points):
        text += " if they come from one row"
    text += ". Right: the comparisons with the best method, with 95% intervals that aren't corrected."
    if any(entry.ties for entry in ranked):
        text += (
            f" Bars join methods that no test distinguishes ({words.count_of(family, 'test')}, corrected by "
            "Holm's method, at 5%)."
        )
    if any(f.is_probability for f in findings) and not all(f.is_probability for f in findings):
        text += " Methods without a dot on the right are compared by ranks, since trials have no number."
    return text
