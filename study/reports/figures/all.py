"""Every figure that a report has something for."""

from __future__ import annotations

from study.reports.content import Report
from study.reports.figures import (
    along_axis,
    gates,
    heat_map,
    improvement,
    learning_curves,
    panels,
    profiles,
    sources,
    survival,
    weights,
)
from study.reports.figures.dots import SECONDS
from study.reports.figures.style import Drawn
from study.reports.search.figures import contour, front, history, importance, slices


def draw(report: Report) -> list[Drawn]:
    """Draw the figures, in the order of `names.NAMES`; those without content are left out.

    While a search goes on, only its own figures are drawn: its rows are candidates, most bad and none confirmed.
    """
    rows, search = report.rows, report.search
    figures = [
        history.draw(search, rows),
        front.draw(search, rows),
        importance.draw(search),
        slices.draw(search, rows),
        contour.draw(search),
    ]
    if search is None or search.is_over:
        has_seconds = rows.has_times and any(s.solved_at_s_mean is not None for s in rows.summaries)
        figures = [
            *figures,
            panels.draw(rows, report.against),
            panels.draw(rows, report.against, SECONDS) if has_seconds else None,
            sources.draw(rows, report.sources),
            profiles.draw(report.overall),
            improvement.draw(report.overall),
            along_axis.draw(rows, report.references),
            survival.draw(rows),
            None if search is not None else heat_map.draw(rows),  # candidates fill no grid
            learning_curves.draw(rows, report.learning, report.metrics),
            gates.draw(rows, report.gates),
            weights.draw(rows, report.weights),
        ]
    return [figure for figure in figures if figure is not None]
