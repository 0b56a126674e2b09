"""Learning curves: metrics over the iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import prod
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from study import words
from study.interface.declarations import Metric
from study.reports.figures import axes as axes_of
from study.reports.figures import scales, texts
from study.reports.figures.multiples import MOST_PANELS, MOST_TIPS, grid, part_of, sampled
from study.reports.figures.style import INK, PALETTE, STYLE, Drawn, Tips
from study.summaries import series
from study.summaries.learning import QUANTILES, LearningCurve, spread
from study.summaries.metrics import of_curves, single
from study.summaries.rows import ResultRows

Floats = npt.NDArray[np.float64]

_MAIN, _OTHER = PALETTE[0], PALETTE[1]
_THRESHOLD: dict[str, Any] = {"color": INK, "linewidth": 0.6, "linestyle": (0, (4, 2))}
_WIDE, _NARROW = 0.14, 0.22
"""The opacity of the bands."""
_LEAST_IN_GRID, _MOST_ACROSS = 5, 4
_RIGHT: dict[str, Any] = {"xycoords": "axes fraction", "rotation": 270, "va": "center", "annotation_clip": False}
_MEDIAN = len(QUANTILES) // 2
_MOST_DECADES = 24
"""The most decades of an axis; an error beyond is practically zero or infinite."""


@dataclass(frozen=True)
class _Content:
    """The content of the panels, and the ends `low` and `high` of their y axis.

    The first metric of `names` has bands; the others are drawn as medians alone. `metrics` begins with those of
    `names`.
    """

    names: tuple[str, ...]
    metrics: Mapping[str, Metric]
    is_log: bool
    low: float
    high: float

    def title(self, name: str) -> str:
        """Return a metric's title for readers."""
        return words.metric_title(name, self.metrics[name])

    @property
    def axis(self) -> str:
        """The name of the y axis: the last words that the metrics' titles share, or else all titles."""
        titles = [self.title(name).split() for name in self.names]
        last = zip(*map(reversed, titles), strict=False)
        common = [last_words[0] for last_words in takewhile(lambda last_words: len(set(last_words)) == 1, last)]
        return " ".join(reversed(common)) or ", ".join(map(self.title, self.names))

    @property
    def scale(self) -> scales.Scale:
        """The y axis; values beyond it are marked at its edge."""
        return scales.Scale("log" if self.is_log else "linear", (), (0.0 if self.is_log else self.low, self.high))

    def first_beyond(self, curve: LearningCurve) -> int | None:
        """Return the index of the first evaluation with a finite median beyond the axis; None without one."""
        median = curve.quantiles[self.names[0]][_MEDIAN]
        low, high = self.scale.ends
        beyond = np.flatnonzero(np.isfinite(median) & ((median < low) | (median > high)))
        return int(beyond[0]) if beyond.size else None

    def clipped(self, values: Floats) -> Floats:
        """Clip values a little beyond the ends of the axis, so that bands leave the panel."""
        room = self.high - self.low
        ends = (self.low / 10, self.high * 10) if self.is_log else (self.low - room, self.high + room)
        return np.clip(values, *ends)

    def line(self, values: Floats) -> Floats:
        """Replace infinities by NaN, and on a logarithmic axis values below its lower end, such as 0, by that end."""
        return np.where(np.isfinite(values), np.maximum(values, self.low) if self.is_log else values, np.nan)


def plot(rows: ResultRows, learning: Sequence[LearningCurve], metrics: Mapping[str, Metric]) -> Drawn | None:
    """Draw for each curve the main metric's median and bands over trials, and the median of another on its scale.

    Returns:
        The figure, of the first `MOST_PANELS` curves; None without curves, or without a metric that all of them have
        and that is shown outside of a series.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    curves = learning[:MOST_PANELS]
    content = _choose(curves, single(metrics, rows.named_metrics))
    if content is None:
        return None
    longest = max(1, *(int(curve.iteration[-1]) for curve in curves))
    unit, unit_name = axes_of.unit(longest)
    tips, layout = Tips(), _layout(rows, curves)
    with mpl.rc_context(STYLE):
        height = 2.3 if len(curves) == 1 else 1.75 if len(curves) < 4 else 1.5
        handles, titles = _handles(curves, content), layout.titles
        figure, every = grid(titles, height, handles, across=layout.across, x=unit_name, y=content.axis)
        panels = [every[place] for place in layout.places]
        for axes in every:
            axes.set_axis_off() if axes not in panels else None
        for place, title in layout.right.items():
            every[place].annotate(texts.fit(title, height), (1.03, 0.5), fontweight="bold", **_RIGHT)
        for axes, curve in zip(panels, curves, strict=True):
            _plot_curve(axes, curve, unit, content)
        panels[0].set_xlim(0, 1.04 * longest / unit)
        scales.set_ends(panels[0], content.low, content.high, is_log=content.is_log)
        for axes, curve in zip(panels, curves, strict=True):
            _add_tips(axes, rows.name(curve.row), curve, unit, content, tips, MOST_TIPS // len(curves) // 2)
    shown = [curve.row for curve in curves]
    caption = _caption(curves, content) + part_of(rows, shown)
    fixed = [key for key in rows.varying() if key not in rows.select(shown).varying()]
    if fixed and len(shown) > 1:
        values = words.join_and([f"{rows.title(key)} {rows.text(shown[0], key)}" for key in fixed])
        caption += f" All have {values}, like the best {rows.noun}."
    return Drawn("learning-curves", "Learning curves", caption, figure, tips)


@dataclass(frozen=True)
class _Layout:
    """The grid of panels: a title for each place, titles at the right, and the place of each curve.

    `across` is None if panels are laid out one after another.
    """

    titles: list[str]
    places: Sequence[int]
    across: int | None = None
    right: Mapping[int, str] = field(default_factory=dict)


def _layout(rows: ResultRows, curves: Sequence[LearningCurve]) -> _Layout:
    """Arrange five or more panels in a grid of the two keys that vary between their rows.

    Fewer panels are laid out one after another, and so are panels in which one key or more than two vary, or whose grid
    would be too large.
    """
    shown = [curve.row for curve in curves]
    selected = rows.select(shown)
    keys = sorted(selected.varying(), key=lambda key: -len(series.levels(selected, key)))
    sizes = [len(series.levels(selected, key)) for key in keys]
    if len(curves) < _LEAST_IN_GRID or len(keys) != 2 or sizes[0] > _MOST_ACROSS or prod(sizes) > MOST_PANELS:
        return _Layout([rows.name(row) for row in shown], range(len(shown)))
    across, down = (series.levels(selected, key) for key in keys)
    places = [down.index(rows.value(row, keys[1])) * sizes[0] + across.index(rows.value(row, keys[0])) for row in shown]
    titles = [""] * prod(sizes)
    right = {}
    for row, place in zip(shown, places, strict=True):
        titles[place % sizes[0]] = rows.name(row, keys[:1]) or words.NONE
        right[(place // sizes[0] + 1) * sizes[0] - 1] = rows.name(row, keys[1:]) or words.NONE
    return _Layout(titles, places, sizes[0], right)


def _choose(curves: Sequence[LearningCurve], metrics: Mapping[str, Metric]) -> _Content | None:
    """Choose the metrics and the y axis; None without curves, or without a metric of curves that all of them have."""
    available = {name: metric for name, metric in metrics.items() if all(name in curve.quantiles for curve in curves)}
    names = of_curves(available)
    if not curves or not names:
        return None
    first = available[names[0]]
    values = np.concatenate([curve.quantiles[name].ravel() for curve in curves for name in names])
    is_error = first.low == 0 and first.high is None
    is_log = is_error or scales.spans_decades(first, values.tolist())
    low, high = _limits(curves, names, first) if is_log else _linear_limits(curves, names, first)
    ordered = {name: available[name] for name in (*names, *available)}
    return _Content(names, ordered, is_log, low, high)


def _linear_limits(curves: Sequence[LearningCurve], names: Sequence[str], metric: Metric) -> tuple[float, float]:
    """Return the ends of a linear y axis for all finite quantiles and thresholds but exploded ones.

    It exceeds a limit that all of them keep by at most 1% of the metric's range, or not at all if that is infinite.
    """
    thresholds = [np.array([np.nan if curve.threshold is None else curve.threshold for curve in curves])]
    values = np.concatenate([*(curve.quantiles[name].ravel() for curve in curves for name in names), *thresholds])
    ends = scales.fences(values.tolist(), metric, is_log=False)
    finite = values[np.isfinite(values) & (values >= ends[0]) & (values <= ends[1])]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    least, greatest = (-np.inf if metric.low is None else metric.low), (np.inf if metric.high is None else metric.high)
    edge = 0.01 * max(greatest - least, 0) if np.isfinite(greatest - least) else 0.0
    return max(low - room, least - edge) if low >= least else low - room, (
        min(high + room, greatest + edge) if high <= greatest else high + room
    )


def _limits(curves: Sequence[LearningCurve], names: Sequence[str], metric: Metric) -> tuple[float, float]:
    """Choose the ends of a logarithmic y axis.

    The upper end is the largest median or quantile of the first evaluation, without exploded values. The lower end is
    the smallest positive quantile or threshold, but at most 24 decades below. Both are moved outwards by 5% of the
    decades between them, and at least by 0.15 decades.
    """
    both = [curve.quantiles[name] for curve in curves for name in names]
    every = [part.ravel() for part in both] + [np.array([curve.threshold or np.nan for curve in curves])]
    large, small = (
        values[np.isfinite(values) & (values > 0)]
        for values in map(
            np.concatenate, ([quantile for part in both for quantile in (part[:, 0], part[_MEDIAN])], every)
        )
    )
    least = small.min() if small.size else 1.0
    highest = scales.fences(large.tolist(), metric, is_log=True)[1]
    top = np.log10(large[large <= highest].max(initial=least))
    bottom = max(np.log10(least), top - _MOST_DECADES)
    room = max(0.05 * (top - bottom), 0.15)
    return float(10 ** (bottom - room)), float(10 ** (top + room))


def _plot_curve(axes: Axes, curve: LearningCurve, unit: float, content: _Content) -> None:
    x = curve.iteration / unit
    main, others = curve.quantiles[content.names[0]], content.names[1:]
    for band, alpha in ((0, _WIDE), (1, _NARROW)):
        # Infinity and zero are beyond the axis: a band leaves the panel there, and a line ends.
        axes.fill_between(x, *content.clipped(main[[band, -1 - band]]), color=_MAIN, alpha=alpha, linewidth=0)
    for name in others:
        axes.plot(x, content.line(curve.quantiles[name][_MEDIAN]), color=_OTHER, linewidth=0.7, zorder=2.5)
    axes.plot(x, content.line(main[_MEDIAN]), color=_MAIN, linewidth=1.2, zorder=3)
    if (first_beyond := content.first_beyond(curve)) is not None:
        content.scale.mark(
            axes, [(float(x[first_beyond]), float(main[_MEDIAN, first_beyond]))], {"color": _MAIN, "zorder": 3}
        )
    if not np.isfinite(main[_MEDIAN, -1]):
        subject = "all have" if not np.isfinite(main[:, -1]).any() else "half or more have"
        axes.text(0.98, 0.94, f"{subject} diverged", transform=axes.transAxes, ha="right", va="top", fontsize=7)
    if curve.threshold is not None and (curve.threshold > 0 or not content.is_log):
        axes.axhline(curve.threshold, zorder=2, **_THRESHOLD)


def _add_tips(
    axes: Axes, name: str, curve: LearningCurve, unit: float, content: _Content, tips: Tips, most: int
) -> None:
    """Add texts with the quantiles at evenly chosen evaluations."""
    main, *others = content.metrics
    main_quantiles = curve.quantiles[main]
    for i in spread(len(curve.iteration), most):
        median = float(main_quantiles[_MEDIAN, i])
        text = (
            f"{name}, iteration {curve.iteration[i]:,}: {content.title(main)} {words.error(median)} "
            f"(90% of {curve.trials:,} trials in "
            f"[{words.error(main_quantiles[0, i])}, {words.error(main_quantiles[-1, i])}])"
        )
        for other in others:
            text += f", {content.title(other)} {words.error(float(curve.quantiles[other][_MEDIAN, i]))}"
        tips.add(axes, curve.iteration[i] / unit, float(np.clip(median, content.low, content.high)), text)


def _handles(curves: Sequence[LearningCurve], content: _Content) -> list[Artist]:
    main, *others = content.names
    handles: list[Artist] = [
        Line2D([], [], color=_MAIN, linewidth=1.2, label=f"{content.title(main)}: median"),
        Patch(color=_MAIN, alpha=1 - (1 - _WIDE) * (1 - _NARROW), linewidth=0, label="50%"),
        Patch(color=_MAIN, alpha=_WIDE, linewidth=0, label="90% of the trials"),
    ]
    handles += [Line2D([], [], color=_OTHER, linewidth=0.7, label=f"{content.title(name)}: median") for name in others]
    if any(curve.threshold is not None for curve in curves):
        handles.append(Line2D([], [], label="success threshold", **_THRESHOLD))
    return handles


def _caption(curves: Sequence[LearningCurve], content: _Content) -> str:
    main, *others = content.names
    values = np.concatenate([curve.quantiles[main].ravel() for curve in curves])
    beside = "".join(f" and the median of {content.title(name)}" for name in others)
    title = content.title(main)
    sentences = [
        f"{title[:1].upper()}{title[1:]}{beside}, at evenly spaced evaluations. Quantiles are over all trials at each "
        "iteration, so a line isn't the curve of one trial. Trials that were stopped early keep their last value."
    ]
    if not np.isfinite(values).all():
        sentences.append("Where trials have diverged, bands leave the panel and lines end.")
    if content.is_log and (values == 0).any():
        sentences.append(f"Where {title} is exactly 0, it is drawn at the bottom.")
    exceeding = sum(content.first_beyond(curve) is not None for curve in curves)
    return (
        " ".join(sentences) + scales.clipped_note(exceeding) + sampled((curve.trials, curve.total) for curve in curves)
    )
