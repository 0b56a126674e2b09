"""Performance profiles of methods: the shares of trials better than a threshold, over tasks."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from study import words
from study.comparisons.overall import Overall, OverallMethod
from study.reports.figures import axes as axes_of
from study.reports.figures import scales
from study.reports.figures.multiples import MOST_PANELS, MOST_TIPS, grid, left_out
from study.reports.figures.style import RULE, STYLE, Drawn, Tips
from study.statistics import PerformanceProfile
from study.summaries.learning import spread
from study.words import Notation

Floats = npt.NDArray[np.float64]

_FEW_CURVES = 4
"""The most profiles in one panel; more bands hide each other."""
_BAND = 0.15
"""The opacity of bands."""
_MARGIN = 0.03


def plot(overall: Overall | None) -> Drawn | None:
    """Draw the profile of each method with its band.

    More than four methods have a panel each, with the others in grey; the first `MOST_PANELS` are drawn.

    Returns:
        The figure; None without methods, or without numbers.
    """
    if overall is None or not any(method.profile.thresholds.size for method in overall.methods):
        return None
    methods = overall.methods
    is_single = len(methods) <= _FEW_CURVES
    in_panels = methods if is_single else methods[:MOST_PANELS]
    looks = [axes_of.line_style(slot) for slot in range(len(methods))]
    handles = [axes_of.handle(m.name, look) for m, look in zip(methods, looks, strict=True)] if is_single else []
    write, tips = words.metric_notation(overall.metric), Tips()
    with mpl.rc_context(STYLE):
        titles = [""] if is_single else [method.name for method in in_panels]
        height = 2.4 if is_single else 1.6
        figure, panels = grid(titles, height, handles, x=overall.title, y="share better")
        is_log, low, high = _limits(overall)
        for axes in panels:
            scales.set_ends(axes, low, high, "x", is_log=is_log)
            axes.set_ylim(-0.03, 1.03)
            axes.set_yticks([0, 0.25, 0.5, 0.75, 1] if is_single else [0, 0.5, 1])
        for place, (method, look) in enumerate(zip(in_panels, looks, strict=False)):
            axes = panels[0] if is_single else panels[place]
            for other in () if is_single else methods:
                axes.plot(*_steps(other.profile, other.profile.shares, low, high), color=RULE, linewidth=0.7, zorder=1)
            at, under = _steps(method.profile, method.profile.low, low, high)
            over = _steps(method.profile, method.profile.high, low, high)[1]
            axes.fill_between(at, under, over, color=look["color"], alpha=_BAND, linewidth=0)
            for edge in (under, over):
                axes.plot(at, edge, color=look["color"], linewidth=0.4, alpha=0.6, zorder=2)
            axes.plot(*_steps(method.profile, method.profile.shares, low, high), zorder=3, **look | {"marker": "None"})
            marked = axes_of.marker_places(place, len(methods))
            marked = low * (high / low) ** marked if is_log else low + (high - low) * marked
            axes.plot(marked, method.profile.at(marked), zorder=3, **look | {"linestyle": "none"})
            for x, y, text in _marks(method, write, MOST_TIPS // len(in_panels)):
                tips.add(axes, x, y, text)
    return Drawn(
        "profiles", "Aggregate over tasks: performance profiles", _caption(overall, len(in_panels)), figure, tips
    )


def _limits(overall: Overall) -> tuple[bool, float, float]:
    """Choose the x axis: return True if it is logarithmic, and its ends, without exploded thresholds."""
    every = np.concatenate([method.profile.thresholds for method in overall.methods])
    is_log = scales.spans_decades(overall.metric, every.tolist())
    least, most = scales.fences(every.tolist(), overall.metric, is_log=is_log)
    values = every[(every >= least) & (every <= most) & ((every > 0) | (not is_log))]
    low, high = float(values.min()), float(values.max())
    if is_log:
        return True, low / 1.5, max(high, 2 * low) * 1.5
    margin = _MARGIN * (high - low) or 0.05 * abs(high) or 1.0
    return False, low - margin, high + margin


def _steps(profile: PerformanceProfile, heights: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """Return the corners of a step function between the ends of an axis; `heights[0]` is that below all thresholds."""
    edges = np.concatenate([[low], np.clip(profile.thresholds, low, high), [high]])
    return np.repeat(edges, 2)[1:-1], np.repeat(heights, 2)


def _marks(method: OverallMethod, write: Notation, most: int) -> Iterator[tuple[float, float, str]]:
    """Yield the places of evenly chosen thresholds, with texts on the share there and its band."""
    profile = method.profile
    shares = profile.at(profile.thresholds)
    for place in spread(profile.thresholds.size, max(most, 1)):
        threshold, share = float(profile.thresholds[place]), float(shares[place])
        band = max(0.0, share - profile.reach), min(1.0, share + profile.reach)
        name = f"{method.name}, " if method.name else ""
        yield threshold, share, f"{name}better than {write(threshold)}: {words.rate(share, band)}"


def _caption(overall: Overall, in_panels: int) -> str:
    better = "higher" if overall.metric.higher_is_better else "lower"
    lacking = any(method.without_number for method in overall.methods)
    without = " A trial without a number is never better." if lacking else ""
    grey = " Grey: the other methods." if len(overall.methods) > _FEW_CURVES else ""
    return (
        f"Share of trials whose {overall.title} is {better} than the threshold, the mean over {len(overall.questions)} "
        "tasks. Bands are simultaneous 95% bands over all thresholds, with seeds as the sampling unit."
        f"{without}{grey}{left_out(in_panels, len(overall.methods), 'methods')}"
    )
