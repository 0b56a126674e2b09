"""The report as one HTML page that needs nothing else: no network, no other file.

This file says what the page shows; the templates beside it, page.html.j2 and pieces.html.j2, say how.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from jinja2 import Template

from study import statistics, words
from study.comparisons.comparison import Comparison, Comparisons, Reference
from study.comparisons.finding import LEVEL, Finding
from study.records import sources_of
from study.reports import metric_columns, table
from study.reports.claims import claims_note, claims_table, verdict_line
from study.reports.content import Report
from study.reports.failures import MOST_REASONS, example, more_reasons
from study.reports.failures import advice as failures_advice
from study.reports.figures.inline import inline
from study.reports.figures.names import OVERALL
from study.reports.figures.style import Drawn
from study.reports.files import statistics_columns
from study.reports.metric_series import series_table, series_with_values
from study.reports.overall import overall_note, overall_table
from study.reports.references import bounds_note, bounds_table
from study.reports.search.names import confirmed, objectives_note
from study.reports.search.tables import CAUTION, candidates_table, progress_note, winners_table
from study.reports.sources import advice, next_table, sources_note, sources_table
from study.reports.templates import asset, template
from study.reports.text_table import TextTable
from study.summaries.aggregate import CellSummary
from study.summaries.parts import Parts
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

MOST_SENTENCES = 12
"""The most rows that the comparison describes one by one; of more, only those that differ."""

_PLACE = "0000TRIAL0000"
"""A placeholder for a trial's id in the address that the page's script completes."""
_CODES = {"solved": "s", "unsolved": "u", "finished": "e", "stopped": "p", "diverged": "d", "failed": "f"}
_OUTCOMES = ("solved", "unsolved", "finished", "stopped", "diverged", "failed", "pending")


def page(report: Report, figures: Sequence[Drawn], parts: Parts | None = None) -> str:
    """Write the page. Whatever comes from outside is escaped.

    Args:
        report: its content.
        figures: the report's figures; the first stands at the top.
        parts: keeps the tables that fail; None to raise.
    """
    rows, trials = report.rows, report.trials
    tables = _tables(report, parts)
    failed = [] if parts is None else [str(failure) for failure in parts.failures]
    notes = [*report.notes, *(sentence for sentence in failed if sentence not in report.notes)]
    return _template().render(
        report=report,
        figures=figures,
        tables=tables,
        planned=sum(s.seeds for s in rows.summaries),
        counts={name: sum(getattr(s, name) for s in rows.summaries) for name in _OUTCOMES},
        columns={name: note.text for name, note in statistics_columns(rows.summaries, rows.named_metrics).items()},
        series=[(one.heading, series_table(rows, one)) for one in series_with_values(rows)],
        intervals_note=_intervals_note(rows),
        pairs_note=_pairs_note(report),
        speeds_note=_speeds_note(report),
        trends_note=_trends_note(report),
        notes=[*notes, *_stop_note(rows)],
        trials=None if trials is None else _trials(trials, report),
        failed=sum(one.trials for one in report.failures) or sum(s.failed for s in rows.summaries),
        failures=[(one, example(one, rows)) for one in report.failures[:MOST_REASONS]],
        failures_advice=failures_advice(report.failures),
        more_reasons=more_reasons(report.failures, report.name),
        row_names=[rows.name(row) for row in range(len(rows.summaries))],
    )


@cache
def _template() -> Template:
    return template(
        "page.html.j2",
        style=asset("page.css"),
        script=asset("page.js"),
        filters={
            "advice": advice,
            "bounds_note": bounds_note,
            "claims_note": claims_note,
            "comparison_note": _comparison_note,
            "comparison_sentences": _comparison_sentences,
            "inline": inline,
            "objectives_note": objectives_note,
            "overall_note": overall_note,
            "progress_note": progress_note,
            "sources_note": sources_note,
            "verdict_line": verdict_line,
            "verdicts_note": table.verdicts_note,
        },
        caution=CAUTION,
        importance="search-importance",
        overall_figures=OVERALL,
        with_tables=("search-importance", "series", "sources", *OVERALL),
    )


def _tables(report: Report, parts: Parts | None) -> dict[str, TextTable | None]:
    """Lay out every table; None where the report has nothing for one, or where it failed."""
    rows, against, search, contrasts = report.rows, report.against, report.search, report.contrasts
    layouts: dict[str, Callable[[], TextTable | None]] = {
        "winners": lambda: winners_table(search, rows) if search and confirmed(search) else None,
        "candidates": lambda: candidates_table(search) if search and search.candidates else None,
        "comparison": lambda: table.comparison_table(rows, against) if against and against.comparisons else None,
        "overall": lambda: overall_table(report.overall) if report.overall and report.overall.methods else None,
        "bounds": lambda: bounds_table(rows, report.references) if report.references else None,
        "sources": lambda: sources_table(rows, report.sources) if report.sources else None,
        "next": lambda: next_table(rows, report.sources) if report.sources else None,
        "claims": lambda: claims_table(rows, report.claims) if report.claims else None,
        "verdicts": lambda: table.verdicts_table(rows, report.verdicts) if report.verdicts else None,
        "trends": lambda: table.trends_table(contrasts) if contrasts.trends else None,
        "slopes": lambda: table.slopes_table(contrasts) if contrasts.slopes else None,
        "pairs": lambda: table.pairs_table(contrasts) if contrasts.pairs else None,
        "speeds": lambda: table.speeds_table(contrasts) if contrasts.speeds else None,
    }
    return {"results": table.summaries_table(rows)} | {
        name: make() if parts is None else parts.attempt(f"table of {name}", make, None)
        for name, make in layouts.items()
    }


def _intervals_note(rows: ResultRows) -> str:
    """Say which trials the table's numbers are of."""
    of_solved = ["solved at"] if rows.has_times else []
    of_solved += [
        words.metric_title(n, m) for n, m in rows.single_metrics.items() if m.of == "solved" and rows.has_rates
    ]
    solved = f"; {words.join_and(of_solved)} are of the solved trials" if of_solved else ""
    of_all = [words.metric_title(name, rows.metrics[name]) for name in metric_columns.with_values(rows)]
    of_all = [title for title in of_all if title not in of_solved]
    ended = f"; {words.join_and(of_all)} of all trials that ended with a number" if of_all else ""
    bold = "Bold is what the corrected tests call better than every other row of its question"
    return f"Intervals are at 95%{solved}{ended}. {bold}."


_TESTS = {
    "McNemar": "seed by seed, by McNemar's exact test, with the interval of the difference that belongs to it",
    "Fisher": "as independent samples, by Fisher's exact test, with Newcombe's interval of the difference",
    "McNemar and Fisher": "by one exact test of the seeds that both methods have and of those that only one has",
    "sign-flip": "seed by seed, by flipping the signs of differences, with the interval that belongs to it",
    "Welch": "as independent samples, by Welch's test, with his interval of the difference of means",
    "paired and Welch": "by one t test of the seeds that both methods have and of those that only one has",
    "sign-flip of ranks": "by ranks, in which trials that diverged or failed are worse than all others, seed by seed",
    "permutation of ranks": "by ranks, in which trials that diverged or failed are worse than all others",
    "sign-flip and permutation of ranks": "by ranks, in which trials that diverged or failed are worse than all others",
    "t over crossed seeds": "by a t test whose error allows for the seeds that trials of combined seeds share",
    "tuned sign-flip": "seed by seed, each method at values that other seeds choose, by flipping signs",
    "tuned sign-flip of ranks": "the same by ranks, in which trials that diverged or failed are worse than all others",
    "sign test at any time": "seed by seed, by a sign test that is valid however often one looks",
}


def _test_names(findings: Sequence[Finding]) -> str:
    """Describe the tests of some findings."""
    used = dict.fromkeys(finding.test for finding in findings if finding.test)
    return "; ".join(dict.fromkeys(_TESTS.get(name, name) for name in used))


def _pairs_note(report: Report) -> str:
    """Say what the tests of pairs are, and when there is no verdict."""
    findings = report.contrasts.pairs
    enough = ""
    if any(not finding.has_enough_seeds for finding in findings):
        least = statistics.seeds_needed(LEVEL / max(1, *(finding.family for finding in findings)))
        enough = f". With {words.count_of(len(findings), 'test')}, methods must differ at {least} seeds for any verdict"
    return _test_names(findings) + enough


def _trends_note(report: Report) -> str:
    """Say what the tests of trends are."""
    kinds = {trend.seeds is not None for trend in report.contrasts.trends}
    paired, independent = "Slopes of the seeds' outcomes, by flipping signs", "Cochran-Armitage"
    return paired if kinds == {True} else independent if kinds == {False} else f"{paired}, or {independent}"


def _speeds_note(report: Report) -> str:
    """Say what the tests of times are."""
    kinds = {speed.seeds is not None for speed in report.contrasts.speeds}
    paired, independent = "log-rank scores compared seed by seed", "log-rank test of independent samples"
    return paired if kinds == {True} else independent if kinds == {False} else f"{paired}, or a {independent}"


def _stop_note(rows: ResultRows) -> list[str]:
    summaries = rows.summaries
    early = sum(s.stopped_early for s in summaries)
    stops = {s.cell.value("stop") for s in summaries if isinstance(s, CellSummary)}
    if not early and stops <= {"never", None}:
        return []
    of_solved = [
        words.metric_title(name, metric) for name, metric in rows.single_metrics.items() if metric.of == "solved"
    ]
    metrics = f", and the {words.join_and(of_solved)} is that of the best step so far" if of_solved else ""
    return [
        f"stop: when_decided was on: {words.count_of(early, 'trial')} ended once the outcome could no longer change. "
        f"Outcomes and solved-at are those of full runs; seconds of training are not{metrics}."
    ]


def _comparison_note(against: Comparisons, rows: ResultRows) -> str:
    count = len(against.comparisons)
    repeats = f"{'repeats' if count == 1 else 'repeat'} the protocol of"
    differing = sum(c.verdict == "differs" for c in against.comparisons)
    what = "Success rates differ"
    if against.metric is not None:
        what = f"Means of {words.metric_title(against.metric, rows.metrics[against.metric])} differ"
    test = _test_names([c.finding for c in against.comparisons]) or "not tested"
    return (
        f"{words.count_of(count, rows.noun)} {repeats if against.is_published else 'set beside'} {against.source}. "
        f"{what} in {words.count_of(differing, rows.noun) if differing else 'none'} "
        f"({test}, two-sided, at {LEVEL:g} with Holm's correction). To agree means that no difference "
        "was detected with these seeds."
    )


def _comparison_sentences(against: Comparisons, rows: ResultRows) -> list[str]:
    """Describe the compared rows one by one; of very many, only those that differ."""
    are_few = len(against.comparisons) <= MOST_SENTENCES
    return [_sentence(c, against, rows) for c in against.comparisons if are_few or c.verdict == "differs"]


def _sentence(c: Comparison, against: Comparisons, rows: ResultRows) -> str:
    verb = {"differs": "differs from", "agrees": "agrees with"}.get(c.verdict, "can't be tested against")
    others = "the published" if against.is_published else f"{against.source}'s"
    source = f"; {c.beside.source}" if against.is_published else ""
    lacking = "" if c.summary.complete and c.beside.complete else f", over an incomplete {rows.noun}"
    here, there = (_compared(of, against.metric) for of in (c.summary, c.beside))
    test = f"p {_equals(c.finding.p_value)}, after Holm {_equals(c.finding.p_adjusted)}"
    return f"{rows.name(c.row)}: {here} {verb} {others} {there} ({test}{source}{lacking})."


def _compared(of: Summary | Reference, metric: str | None) -> str:
    if metric is None:
        return f"{of.solved}/{of.judged}"
    mean = of.metrics[metric]
    return f"{words.measure(mean.mean)} ({words.count_of(mean.count, 'trial')})"


def _equals(p: float | None) -> str:
    if p is None:
        return words.NONE
    text = words.p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _trials(trials: pa.Table, report: Report) -> dict[str, Any]:
    """List what the page's script shows of the rows' trials, one list per column."""
    columns, rows, links = trials.to_pydict(), len(report.rows.summaries), report.links
    cell_ids = dict(zip(columns["row"], columns["cell_id"], strict=True))
    numbers = {"solved_at_iteration": "solved at"} if report.rows.has_times else {}
    numbers |= {name: words.metric_title(name, m) for name, m in report.metrics.items() if name in columns}
    order = sorted(numbers, key=trials.column_names.index)
    titles = {name: numbers[name] for name in order} | {"training_s": "seconds"}
    return {
        "numbers": [[title, [_short(value) for value in columns[name]]] for name, title in titles.items()],
        "outcome": "".join(_CODES.get(str(outcome), "?") for outcome in columns["outcome"]),
        "errors": {str(i): error for i, error in enumerate(columns["error"]) if error},
        "link": links and links.trial(_PLACE),
        "place": _PLACE,
        "cells": links and [links.cell(cell_ids[row]) if row in cell_ids else None for row in range(rows)],
        "seed": [seed if seed >= 0 else str(sources_of(seed)) for seed in columns["seed"]],
        "files": {trial_id: report.files[trial_id] for trial_id in columns["trial_id"] if trial_id in report.files},
        **{name: columns[name] for name in ("row", "trial_id")},
    }


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")
