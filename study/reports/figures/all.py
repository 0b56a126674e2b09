"""All figures of a report, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable

from study.reports.content import Report
from study.reports.figures import (
    along_axis,
    effects,
    gates,
    heat_map,
    improvement,
    learning_curves,
    panels,
    profiles,
    ranking,
    sources,
    survival,
    weights,
)
from study.reports.figures.dots import SECONDS, paces_differ
from study.reports.figures.style import Drawn
from study.reports.search.figures import contour, front, history, importance, slices
from study.summaries.parts import Parts


def plot_all(report: Report, parts: Parts | None = None) -> list[Drawn]:
    """Draw the figures, in the order of the page; those without content are left out.

    While a search is running, only its own figures are drawn, since its rows are candidates, most of them bad and none
    confirmed.

    Args:
        report: the content.
        parts: collects the figures that fail other than by a `StudyError`; None to raise their errors.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
        Exception: as a figure raises, if `parts` is None.
    """
    rows, search = report.rows, report.search
    has_many_axes = len(rows.varying()) >= effects.LEAST_AXES and not (report.against and report.against.comparisons)
    has_seconds = not has_many_axes and paces_differ(rows)
    compared = ("ranking of methods", lambda: ranking.plot(rows, report.contrasts))
    # The names are used in messages.
    drawings: list[tuple[str, Callable[[], Drawn | None]]] = [
        ("search history", lambda: history.plot(search, rows)),
        ("Pareto front", lambda: front.plot(search, rows)),
        ("importance of parameters", lambda: importance.plot(search)),
        ("slices of the search", lambda: slices.plot(search, rows)),
        ("contours of the search", lambda: contour.plot(search)),
    ]
    if search is None or search.is_over:
        drawings += [
            *([compared] if ranking.leads(report.contrasts) else []),
            ("results", lambda: effects.plot(rows) if has_many_axes else panels.plot(rows, report.against)),
            *([] if ranking.leads(report.contrasts) else [compared]),
            ("seconds", lambda: panels.plot(rows, report.against, SECONDS) if has_seconds else None),
            ("sources of randomness", lambda: sources.plot(rows, report.sources)),
            ("profiles", lambda: profiles.plot(report.overall)),
            ("probability of improvement", lambda: improvement.plot(report.overall)),
            ("series", lambda: along_axis.plot(rows, report.references)),
            ("survival", lambda: survival.plot(rows)),
            # Candidates don't fill a grid.
            ("heat map", lambda: None if search is not None else heat_map.plot(rows)),
            ("learning curves", lambda: learning_curves.plot(rows, report.learning, report.metrics)),
            ("gates", lambda: gates.plot(rows, report.gates)),
            ("weights", lambda: weights.plot(rows, report.weights)),
        ]
    figures = [make() if parts is None else parts.attempt(f"figure of {title}", make, None) for title, make in drawings]
    return [figure for figure in figures if figure is not None]
