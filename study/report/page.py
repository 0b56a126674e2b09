"""The report as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

import pyarrow as pa

from study import words
from study.analysis.aggregate import CellSummary
from study.analysis.comparison import LEVEL, Comparison, Comparisons
from study.analysis.contrasts import Contrasts
from study.analysis.headline import count_of
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.report import html
from study.report.content import PageLinks, Report
from study.report.figures.style import Drawn
from study.report.files import STATISTICS_COLUMNS
from study.report.search import page as search_page
from study.report.table import (
    comparison_table,
    pairs_table,
    slopes_table,
    speeds_table,
    summaries_table,
    trends_table,
    verdicts_note,
    verdicts_table,
)

MOST_SENTENCES = 12
"""Compared rows told one by one; of more, those that differ."""

_PLACE = "0000TRIAL0000"
"""Stands for a trial's id in the address that the page's script completes."""
_CODES = {"solved": "s", "unsolved": "u", "diverged": "d", "failed": "f"}


def page(report: Report, drawn: Sequence[Drawn]) -> str:
    """Write the page. Whatever comes from outside is escaped.

    Args:
        report: what it says.
        drawn: figures that this package drew.
    """
    rows, against = report.rows, report.against
    summaries = rows.summaries
    notes = [*report.notes, *_stop_note(summaries)]
    trials = "" if report.trials is None else _trials(report.trials, len(summaries), report.links)
    cells = html.table(
        summaries_table(rows),
        marked=[not s.complete for s in summaries],
        opens=[rows.name(row) for row in range(len(summaries))] if trials else (),
        label="results, one row a cell",
    )
    body = [
        f"<header><h1>{escape(report.name)}</h1>",
        f"<p class=question>{escape(report.question)}</p>" if report.question else "",
        f"<p class=headline>{escape(report.headline)}</p>" if report.headline else "",
        f"<p class=counts>{escape(_counts(rows))}</p></header>",
        html.section("What is missing", html.items(_missing(rows)), kind="warning"),
        *(html.figure(figure) for figure in drawn[:1]),
        html.section("Results", f"{_table_note(bool(trials))}{cells}"),
        search_page.section(report.search, rows, drawn),
        html.section(_against_title(against), _comparison(rows, against)) if against else "",
        html.section("Are the seeds enough?", _verdicts(report)),
        html.section("Trends and tests", _contrasts(report.contrasts)),
        html.section("More figures", _more(drawn)),
        html.section("Protocol", _protocol(report)),
        html.section("Notes", html.items(notes)),
        html.section("What the columns mean", _definitions()),
        html.section("Provenance", "".join(html.mapping(entry) for entry in report.provenance)),
        html.section("Remake this report", f"<pre><code>{escape(report.command)}</code></pre>"),
        trials,
    ]
    return _head(report.name) + "\n".join(part for part in body if part) + _foot()


def _more(drawn: Sequence[Drawn]) -> str:
    return "".join(html.figure(figure) for figure in drawn[1:] if figure.name != search_page.IMPORTANCE)


def _asset(name: str) -> str:
    return resources.files("study.report").joinpath(name).read_text(encoding="utf-8")


def _head(name: str) -> str:
    digest = base64.b64encode(hashlib.sha256(_asset("page.js").encode()).digest()).decode()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'">
<title>{escape(name)}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<main>
"""


def _foot() -> str:
    return f"\n</main>\n<script>{_asset('page.js')}</script>\n</body>\n</html>\n"


def _counts(rows: ResultRows) -> str:
    summaries = rows.summaries
    planned = sum(s.seeds for s in summaries)
    parts = [f"{count_of(len(summaries), rows.noun)}, {count_of(planned, 'trial')}"]
    for outcome in ("solved", "unsolved", "diverged", "failed", "pending"):
        count = sum(getattr(s, outcome) for s in summaries)
        parts += [f"{count:,} {outcome}"] if count else []
    return ": ".join([parts[0], ", ".join(parts[1:])])


def _missing(rows: ResultRows) -> list[str]:
    summaries = rows.summaries
    pending, failed = sum(s.pending for s in summaries), sum(s.failed for s in summaries)
    lacking = sum(not s.complete for s in summaries)
    sentences = []
    if pending:
        sentences.append(
            f"{count_of(pending, 'trial')} not yet done. Run the study again to train what is missing."
        )
    if failed:
        sentences.append(
            f"{count_of(failed, 'trial')} crashed and left no result. Run the study again to retry."
        )
    if sentences:
        sentences.append(
            f"Trials are missing in {count_of(lacking, rows.noun)} of {len(summaries)}: rates there are over the "
            "trials that finished, marked with done/planned seeds in the table and half-filled markers in figures."
        )
    return sentences


def _stop_note(summaries: Sequence[Summary]) -> list[str]:
    early = sum(s.stopped_early for s in summaries)
    if not early and all(s.cell.stop == "never" for s in summaries if isinstance(s, CellSummary)):
        return []
    return [
        f"stop: when_decided was on: {count_of(early, 'trial')} ended once the outcome could no longer change. "
        f"Outcomes and solved-at are those of full runs; seconds of training are not, and the sparsity error "
        f"is that of the best step so far."
    ]


def _table_note(opens: bool) -> str:
    text = (
        "Intervals are at 95%; solved at and sparsity error are of the solved trials. The best value of a question "
        "is bold."
    )
    hint = " A row opens to its trials." if opens else ""
    return f"<p class=small>{text}<span class=screen> A click on a column's title sorts.{hint}</span></p>"


def _against_title(against: Comparisons | None) -> str:
    if against is None or against.is_published:
        return "Against the published numbers"
    return f"Against {against.source}"


def _comparison(rows: ResultRows, against: Comparisons) -> str:
    comparison = against.comparisons
    if not comparison:
        return html.items(against.notes)
    differing = [c for c in comparison if c.verdict == "differs"]
    verb = "repeats" if len(comparison) == 1 else "repeat"
    what = f"{verb} the protocol of" if against.is_published else "set beside"
    finding = f"differ in {count_of(len(differing), rows.noun)}" if differing else "differ in none"
    head = (
        f"{count_of(len(comparison), rows.noun)} {what} {against.source}. Success rates {finding} "
        f"(Fisher's exact test, two-sided, at {LEVEL:g} with Holm's correction). To agree means that no "
        f"difference was detected with these seeds."
    )
    told = comparison if len(comparison) <= MOST_SENTENCES else differing
    note = (
        "Published means are shown as printed, except for the table static_seeds, where they are estimated "
        "from the published seeds as this study's are. As printed, solved-at means are off by 1 to 2%, and "
        "most sparsity errors are half the true mean."
    )
    table = html.table(
        comparison_table(rows, against),
        marked=[c.verdict == "differs" for c in comparison],
        label="comparison",
    )
    sentences = html.items([_verdict(rows, c, against) for c in told])
    small = f"<p class=small>{escape(note)}</p>" if against.is_published else ""
    return f"<p>{escape(head)}</p>{sentences}{table}{small}{html.items(against.notes)}"


def _verdict(rows: ResultRows, c: Comparison, against: Comparisons) -> str:
    word = "differs from" if c.verdict == "differs" else "agrees with"
    incomplete = "" if c.summary.complete and c.beside.complete else f", over an incomplete {rows.noun}"
    other = "the published" if against.is_published else f"{against.source}'s"
    table = f"; {c.beside.source}" if against.is_published else ""
    return (
        f"{rows.name(c.row)}: {c.summary.solved}/{c.summary.finished} {word} {other} "
        f"{c.beside.solved}/{c.beside.finished} (p {_equals(c.p_value)}, after Holm "
        f"{_equals(c.p_adjusted)}{table}{incomplete})."
    )


def _equals(p: float) -> str:
    text = words.p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _verdicts(report: Report) -> str:
    if not report.verdicts:
        return ""
    table = html.table(
        verdicts_table(report.rows, report.verdicts),
        marked=[not verdict.is_sure for verdict in report.verdicts],
        label="seeds enough",
    )
    return f"<p>{escape(verdicts_note(report.verdicts))}</p>{table}"


def _contrasts(contrasts: Contrasts) -> str:
    parts = []
    if contrasts.trends:
        title = (
            "Does the success rate grow or fall with what is swept? Cochran-Armitage, by rank of the values"
        )
        parts.append(html.details(title, html.table(trends_table(contrasts), label="trends"), is_open=True))
    if contrasts.slopes:
        title = (
            "Several hyperparameters at once: logistic regression of success, profile-likelihood intervals"
        )
        parts.append(html.details(title, html.table(slopes_table(contrasts), label="logistic regression")))
    if contrasts.pairs:
        title = "Methods two by two: Newcombe's interval of the difference, Fisher's exact test"
        parts.append(html.details(title, html.table(pairs_table(contrasts), label="pairs of methods")))
    if contrasts.speeds:
        title = "Do methods take equally long to succeed, unsolved trials counted? Log-rank test"
        parts.append(html.details(title, html.table(speeds_table(contrasts), label="log-rank tests")))
    notes = html.items(contrasts.notes)
    if not parts:
        return notes
    small = (
        "Where there is Holm's correction it is over the rows of the table. Tests take trials as independent, also "
        "those of one seed in different rows."
    )
    return "".join([*parts, notes, f"<p class=small>{escape(small)}</p>"])


def _protocol(report: Report) -> str:
    parts = [html.mapping(report.protocol)] if report.protocol else []
    if report.spec:
        parts.append(html.details("The study's file", f"<pre><code>{escape(report.spec)}</code></pre>"))
    return "".join(parts)


def _definitions() -> str:
    return html.details("Columns of cells.csv, after the hyperparameters", html.mapping(STATISTICS_COLUMNS))


def _trials(trials: pa.Table, rows: int, links: PageLinks | None) -> str:
    """Give the page's script what it shows of a row's trials, a list a column."""
    content: dict[str, Any] = {
        "outcome": "".join(_CODES.get(str(name), "?") for name in trials["outcome"].to_pylist()),
        "errors": {str(i): error for i, error in enumerate(trials["error"].to_pylist()) if error},
        "link": None if links is None else links.trial(_PLACE),
        "place": _PLACE,
        "cells": None if links is None else [cell and links.cell(cell) for cell in _cell_ids(trials, rows)],
    }
    for name in ("row", "seed", "trial_id"):
        content[name] = trials[name].to_pylist()
    for name in ("solved_at_iteration", "sparsity_error", "test_mse", "training_s"):
        content[name] = [_short(value) for value in trials[name].to_pylist()]
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c")  # nothing in a script element may look like its end
    return f'<script type="application/json" id="trials">{safe}</script>'


def _cell_ids(trials: pa.Table, rows: int) -> list[str | None]:
    """Give each row's cell; None of a row without trials."""
    found = dict(zip(trials["row"].to_pylist(), trials["cell_id"].to_pylist(), strict=True))
    return [found.get(row) for row in range(rows)]


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")
