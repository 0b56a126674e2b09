"""The report as one self-contained HTML page that loads nothing from the network or from other files.

page.html.j2 and pieces.html.j2 are its templates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
from jinja2 import Template

from study import words
from study.records import sources_of
from study.reports import sections
from study.reports.content import Report
from study.reports.figures.inline import inline, panels
from study.reports.figures.style import Drawn
from study.reports.templates import asset, template
from study.summaries.parts import Parts

_MOST_NUMBERS = 200
"""The most points of a figure listed below it."""
_PLACE = "0000TRIAL0000"
"""A placeholder for a trial's id in an address, which the page's script replaces."""
_CODES = {"solved": "s", "unsolved": "u", "finished": "e", "stopped": "p", "diverged": "d", "failed": "f"}


def page(report: Report, figures: Sequence[Drawn], parts: Parts | None = None) -> str:
    """Return the report as one HTML page; all inserted text is escaped.

    The table of results has the usual statistics, whatever `report.columns` says.

    Args:
        report: the report's content.
        figures: the report's figures.
        parts: as for `study.reports.sections.sections`.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    rows, trials, names = report.rows, report.trials, [figure.name for figure in figures]
    return _template().render(
        report=report,
        sections=sections.sections(replace(report, columns=()), parts, names),
        figures={figure.name: figure for figure in figures},
        planned=sum(s.seeds for s in rows.summaries),
        counts={name: sum(getattr(s, name) for s in rows.summaries) for name in (*_CODES, "pending")},
        trials=None if trials is None else _trials(trials, report),
        row_names=[rows.name(row) for row in range(len(rows.summaries))],
    )


@cache
def _template() -> Template:
    return template(
        "page.html.j2",
        style=asset("page.css"),
        script=asset("page.js"),
        filters={"inline": inline, "panels": panels},
        most_numbers=_MOST_NUMBERS,
    )


def _trials(trials: pa.Table, report: Report) -> dict[str, Any]:
    """Collect the columns of trials for the page's script, one item a trial, and the addresses of trials and cells."""
    columns, rows, links = trials.to_pydict(), len(report.rows.summaries), report.links
    cell_ids = dict(zip(columns["row"], columns["cell_id"], strict=True))
    numbers = {"solved_at_iteration": "solved at"} if report.rows.has_times else {}
    numbers |= {name: words.metric_title(name, m) for name, m in report.metrics.items() if name in columns}
    order = sorted(numbers, key=trials.column_names.index)
    titles = {name: numbers[name] for name in order} | {"training_s": "seconds"}
    return {
        "numbers": [[title, [_rounded(value) for value in columns[name]]] for name, title in titles.items()],
        "outcome": "".join(_CODES.get(str(outcome), "?") for outcome in columns["outcome"]),
        "errors": {str(i): error for i, error in enumerate(columns["error"]) if error},
        "link": links and links.trial(_PLACE),
        "place": _PLACE,
        "cells": links and [links.cell(cell_ids[row]) if row in cell_ids else None for row in range(rows)],
        "seed": [seed if seed >= 0 else str(sources_of(seed)) for seed in columns["seed"]],
        "files": {trial_id: report.files[trial_id] for trial_id in columns["trial_id"] if trial_id in report.files},
        **{name: columns[name] for name in ("row", "trial_id")},
    }


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")
