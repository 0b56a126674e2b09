"""Bounds of references: notes, and the rates of trials within them as a table, CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from study import words
from study.interface.declarations import Metric
from study.interface.references import FEWEST, KINDS, Kind, References
from study.reports import latex
from study.reports.columns import OWN_OF_BOUNDS
from study.reports.csv_text import ends, key_values
from study.reports.latex_table import fitting, tabular
from study.reports.table import key_columns
from study.reports.text_table import Column, TextTable, count_column, text_column
from study.summaries.references import BoundRate, ReferenceFindings
from study.summaries.rows import ResultRows

_MOST_QUESTIONS = 8
_MOST_METRICS = 3
_TITLES: dict[Kind, str] = {"mean": "bound of the mean", "prediction": "prediction bound"}


def reference_notes(rows: ResultRows, findings: ReferenceFindings) -> list[str]:
    """List notes on the bounds, their references and those that were dropped, and on questions without a bound.

    Questions whose references aren't a row are skipped. A note names up to eight questions and counts the others.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    row_of = _rows_of(rows)
    known, unknown = [], []
    for cell, references in findings.references.items():
        if cell not in row_of:
            continue
        name = rows.name(row_of[cell])
        if references.count < FEWEST:
            unknown.append(f"{name} ({_counts(references)})")
        else:
            known.append(f"{name}: {_bounds(rows, findings, cell)} ({_counts(references)})")
    kind = f"{100 * findings.criterion.level:g}% {_TITLES[findings.criterion.kind]}"
    notes = [f"trials are judged by the {kind} of references: {_join(known)}"] if known else []
    if unknown:
        notes.append(
            f"a bound needs at least {FEWEST} references; with fewer, trials are finished and not judged: "
            f"{_join(unknown)}"
        )
    return notes


def _counts(references: References) -> str:
    """Count the references, and those that were dropped."""
    count, dropped = references.count, references.dropped
    text = words.count_of(count, "reference")
    return f"{text}; {dropped} of {count + dropped} were dropped" if dropped else text


def _bounds(rows: ResultRows, findings: ReferenceFindings, cell: str) -> str:
    """Write the judging bounds of up to three metrics, from the references in a cell."""
    rates = [r for r in findings.rates if r.cell_id == cell and r.kind == findings.criterion.kind]
    is_higher = findings.criterion.higher_is_better
    texts = [f"{_title(rows, r.metric)} {'≤≥'[is_higher[r.metric]]} {words.measure(r.bound)}" for r in rates]
    more = [f"{len(texts) - _MOST_METRICS} more in the table of bounds"] if len(texts) > _MOST_METRICS else []
    return words.join_and([*texts[:_MOST_METRICS], *more])


def _join(parts: Sequence[str]) -> str:
    more = f"; and {len(parts) - _MOST_QUESTIONS:,} more" if len(parts) > _MOST_QUESTIONS else ""
    return "; ".join(parts[:_MOST_QUESTIONS]) + more


def _title(rows: ResultRows, metric: str) -> str:
    return words.metric_title(metric, rows.metrics.get(metric, Metric()))


def _rows_of(rows: ResultRows) -> dict[str, int]:
    """Return the row index of each cell, by id."""
    return {str(getattr(summary, "cell_id", "")): row for row, summary in enumerate(rows.summaries)}


def bounds_note(findings: ReferenceFindings) -> str:
    """Explain the two bounds, and name the one that judges."""
    return (
        f"Trials within the bounds that references set at a level of {100 * findings.criterion.level:g}%, with "
        "Wilson's interval; diverged trials are outside. The bound of the mean is the published criterion: the share "
        "of references within it is below the level. A trial that is as good as a reference is within the prediction "
        "bound with a probability equal to the level. Here, a solved trial is within the "
        f"{_TITLES[findings.criterion.kind]} in all metrics."
    )


def _lines(rows: ResultRows, findings: ReferenceFindings) -> Iterator[tuple[int, Sequence[BoundRate]]]:
    """Yield the row index and the rates by both bounds, for each cell and metric with rates."""
    row_of = _rows_of(rows)
    for first in range(0, len(findings.rates), len(KINDS)):
        bounds = findings.rates[first : first + len(KINDS)]
        yield row_of[bounds[0].cell_id], bounds


def bounds_table(rows: ResultRows, findings: ReferenceFindings) -> TextTable:
    """Lay out one row for each row of the study and metric with a reference bound: trials, both bounds, rates within.

    Without enough references, bounds and rates are en dashes.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    lines = list(_lines(rows, findings))
    metrics = [(_title(rows, bounds[0].metric), bounds[0].metric) for _, bounds in lines]
    columns = [
        *key_columns(rows, [row for row, _ in lines]),
        text_column("metric", metrics, is_number=False),
        count_column("trials", [bounds[0].judged for _, bounds in lines]),
    ]
    for place, kind in enumerate(KINDS):
        of_kind = [bounds[place] for _, bounds in lines]
        columns.append(text_column(_TITLES[kind], [(words.measure(rate.bound), rate.bound) for rate in of_kind]))
        texts = [(words.rate(rate.rate, rate.interval), rate.rate) for rate in of_kind]
        columns.append(text_column(f"rate within {_TITLES[kind]}", texts))
    return TextTable(tuple(columns), keys=len(rows.keys) + 1)


def bounds_rows(rows: ResultRows, findings: ReferenceFindings) -> list[dict[str, Any]]:
    """Return one mapping for each row of the study, metric with a reference bound and kind of bound, as in bounds.csv.

    Metrics of the same series that don't decide success follow. Without enough references, ``passed`` is None.
    """
    success, along = findings.criterion.higher_is_better, findings.along
    every = [(findings, *line) for line in _lines(rows, findings)]
    every += [(along, *line) for line in _lines(rows, along) if line[1][0].metric not in success] if along else []
    lines = []
    for source, row, bounds in every:
        for rate in bounds:
            references = source.references.get(
                source.criterion.reference_of.get(rate.cell_id, ""), References(values={})
            )
            numbers = (
                source.criterion.level,
                references.count,
                references.dropped,
                rate.bound,
                None if rate.bound is None else rate.passed,
                rate.judged,
            )
            own = dict(zip(OWN_OF_BOUNDS, (rate.metric, rate.kind, *numbers, rate.rate), strict=False))
            lines.append(key_values(rows, row, OWN_OF_BOUNDS, "{} (hyperparameter)") | own | ends("", rate.interval))
    return lines


def bounds_latex(rows: ResultRows, findings: ReferenceFindings, *, command: str) -> str:
    """Return the table of bounds as a tabular, with the judging bound alone if both don't fit a paper's column.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    content, key_count = bounds_table(rows, findings), len(rows.keys)
    metrics = Column("Metric", tuple(map(latex.escape, content.columns[key_count].texts)), is_number=False)
    keys = [*latex.key_columns(rows, [row for row, _ in _lines(rows, findings)]), metrics]
    pairs = [
        [
            latex.number_column(content.columns[place], _TITLES[kind], "bound"),
            latex.number_column(content.columns[place + 1], _TITLES[kind], "within", is_rate=True),
        ]
        for kind, place in zip(KINDS, range(key_count + 2, len(content.columns), 2), strict=True)
    ]
    judging = pairs[KINDS.index(findings.criterion.kind)]
    chosen = fitting(keys, [column for pair in pairs for column in pair], [judging, *pairs])
    comments = [command, "Rates of trials within bounds of references; intervals are at 95%."]
    comments += (
        ["The columns of the other bound don't fit; bounds.csv has them."] if len(chosen) < len(KINDS) * 2 else []
    )
    return tabular([*keys, *chosen], comments=comments)
