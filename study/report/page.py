"""The report as one HTML page that needs nothing else: no network, no other file.

This file says what the page shows; the templates beside it, page.html.j2 and pieces.html.j2, say how.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from study import words
from study.analysis.aggregate import CellSummary
from study.analysis.comparison import LEVEL, Comparison, Comparisons
from study.analysis.headline import count_of
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.report import table
from study.report.content import PageLinks, Report
from study.report.figures.inline import inline
from study.report.figures.style import Drawn
from study.report.files import STATISTICS_COLUMNS
from study.report.search.names import confirmed, objectives_note
from study.report.search.tables import CAUTION, candidates_table, progress_note, winners_table
from study.report.table import TextTable

MOST_SENTENCES = 12
"""The most rows that the comparison describes one by one; of more, only those that differ."""

_PLACE = "0000TRIAL0000"
"""A placeholder for a trial's id in the address that the page's script completes."""
_CODES = {"solved": "s", "unsolved": "u", "diverged": "d", "failed": "f"}
_OUTCOMES = ("solved", "unsolved", "diverged", "failed", "pending")


def page(report: Report, figures: Sequence[Drawn]) -> str:
    """Write the page. Whatever comes from outside is escaped.

    Args:
        report: its content.
        figures: the report's figures; the first stands at the top.
    """
    rows, trials = report.rows, report.trials
    return _template().render(
        report=report,
        figures=figures,
        tables=_tables(report),
        planned=sum(s.seeds for s in rows.summaries),
        counts={name: sum(getattr(s, name) for s in rows.summaries) for name in _OUTCOMES},
        notes=[*report.notes, *_stop_note(rows.summaries)],
        trials=None if trials is None else _trials(trials, len(rows.summaries), report.links),
        row_names=[rows.name(row) for row in range(len(rows.summaries))],
    )


@cache
def _template() -> Template:
    """Load the page's template with what it calls, and with the style and the script of every page."""
    environment = Environment(
        loader=PackageLoader("study.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= {
        "anchor": lambda title: re.sub(r"[^a-z]+", "-", title.lower()).strip("-"),
        "comparison_note": _comparison_note,
        "comparison_sentences": _comparison_sentences,
        "count_of": count_of,
        "inline": inline,
        "objectives_note": objectives_note,
        "progress_note": progress_note,
        "verdicts_note": table.verdicts_note,
    }
    script = _asset("page.js")
    environment.globals |= {
        "caution": CAUTION,
        "columns": STATISTICS_COLUMNS,
        "importance": "search-importance",
        "none_shown": words.NONE,
        "script": script,
        "script_digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "style": _asset("page.css"),
    }
    return environment.get_template("page.html.j2")


def _asset(name: str) -> str:
    return resources.files("study.report").joinpath(name).read_text(encoding="utf-8")


def _tables(report: Report) -> dict[str, TextTable | None]:
    """Lay out every table; None where the report has nothing for one."""
    rows, against, search, contrasts = report.rows, report.against, report.search, report.contrasts
    return {
        "results": table.summaries_table(rows),
        "winners": winners_table(search, rows) if search and confirmed(search) else None,
        "candidates": candidates_table(search) if search and search.candidates else None,
        "comparison": table.comparison_table(rows, against) if against and against.comparisons else None,
        "verdicts": table.verdicts_table(rows, report.verdicts) if report.verdicts else None,
        "trends": table.trends_table(contrasts) if contrasts.trends else None,
        "slopes": table.slopes_table(contrasts) if contrasts.slopes else None,
        "pairs": table.pairs_table(contrasts) if contrasts.pairs else None,
        "speeds": table.speeds_table(contrasts) if contrasts.speeds else None,
    }


def _stop_note(summaries: Sequence[Summary]) -> list[str]:
    early = sum(s.stopped_early for s in summaries)
    if not early and all(s.cell.value("stop") == "never" for s in summaries if isinstance(s, CellSummary)):
        return []
    return [
        f"stop: when_decided was on: {count_of(early, 'trial')} ended once the outcome could no longer change. "
        "Outcomes and solved-at are those of full runs; seconds of training are not, and the sparsity error "
        "is that of the best step so far."
    ]


def _comparison_note(against: Comparisons, rows: ResultRows) -> str:
    count = len(against.comparisons)
    repeats = f"{'repeats' if count == 1 else 'repeat'} the protocol of"
    differing = sum(c.verdict == "differs" for c in against.comparisons)
    return (
        f"{count_of(count, rows.noun)} {repeats if against.is_published else 'set beside'} {against.source}. "
        f"Success rates differ in {count_of(differing, rows.noun) if differing else 'none'} "
        f"(Fisher's exact test, two-sided, at {LEVEL:g} with Holm's correction). To agree means that no difference "
        "was detected with these seeds."
    )


def _comparison_sentences(against: Comparisons, rows: ResultRows) -> list[str]:
    """Describe the compared rows one by one; of very many, only those that differ."""
    are_few = len(against.comparisons) <= MOST_SENTENCES
    return [_sentence(c, against, rows) for c in against.comparisons if are_few or c.verdict == "differs"]


def _sentence(c: Comparison, against: Comparisons, rows: ResultRows) -> str:
    verb = "differs from" if c.verdict == "differs" else "agrees with"
    others = "the published" if against.is_published else f"{against.source}'s"
    source = f"; {c.beside.source}" if against.is_published else ""
    lacking = "" if c.summary.complete and c.beside.complete else f", over an incomplete {rows.noun}"
    return (
        f"{rows.name(c.row)}: {c.summary.solved}/{c.summary.finished} {verb} {others} {c.beside.solved}/"
        f"{c.beside.finished} (p {_equals(c.p_value)}, after Holm {_equals(c.p_adjusted)}{source}{lacking})."
    )


def _equals(p: float) -> str:
    text = words.p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _trials(trials: pa.Table, rows: int, links: PageLinks | None) -> dict[str, Any]:
    """List what the page's script shows of the rows' trials, one list per column."""
    columns = trials.to_pydict()
    cell_ids = dict(zip(columns["row"], columns["cell_id"], strict=True))
    numbers = ("solved_at_iteration", "sparsity_error", "test_mse", "training_s")
    return {
        "outcome": "".join(_CODES.get(str(outcome), "?") for outcome in columns["outcome"]),
        "errors": {str(i): error for i, error in enumerate(columns["error"]) if error},
        "link": links and links.trial(_PLACE),
        "place": _PLACE,
        "cells": links and [links.cell(cell_ids[row]) if row in cell_ids else None for row in range(rows)],
        **{name: columns[name] for name in ("row", "seed", "trial_id")},
        **{name: [_short(value) for value in columns[name]] for name in numbers},
    }


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")
