"""Every figure that a report has something for."""

from __future__ import annotations

from study.report.content import Report
from study.report.figures import gates, heat_map, learning_curves, panels, survival, weights
from study.report.figures.dots import SECONDS
from study.report.figures.style import Drawn


def draw(report: Report) -> list[Drawn]:
    """Draw the figures, in the order of `names.NAMES`; one that the report has nothing for is left out."""
    rows = report.rows
    has_seconds = any(s.solved_at_s_mean is not None for s in rows.summaries)
    found = [
        panels.draw(rows, report.against),
        panels.draw(rows, report.against, SECONDS) if has_seconds else None,
        survival.draw(rows),
        heat_map.draw(rows),
        learning_curves.draw(rows, report.learning),
        gates.draw(rows, report.gates),
        weights.draw(rows, report.weights),
    ]
    return [figure for figure in found if figure is not None]
