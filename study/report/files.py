"""Cells, groups and the comparison as files: CSV and Parquet with full precision, Markdown to read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from study.aggregate import CellSummary, GroupSummary
from study.records import CELL_FIELDS, Interval, Outcome, format_range
from study.reference.published import SOURCE
from study.report.compare import Comparison
from study.report.keyed import Keyed
from study.report.table import TextTable, cells_table, comparison_table, summaries_table
from study.report.words import Labels
from study.summary import Summary
from study.table import RESULT_SCHEMA

STATISTICS_COLUMNS: Mapping[str, str] = {
    "seeds": "trials planned",
    "solved": "trials that solved the task",
    "unsolved": "trials that ran to the end without",
    "diverged": "trials whose weights became NaN or infinite",
    "failed": "trials that crashed: no result",
    "pending": "trials planned and not done",
    "complete": "true if no trial is failed or pending",
    "success_rate": "solved / (solved + unsolved + diverged)",
    "success_rate_lower": "Wilson, 95%",
    "success_rate_upper": "Wilson, 95%",
    "solved_at_median": "iterations; median over the solved trials",
    "solved_at_mean": "iterations; mean over the solved trials",
    "solved_at_lower": "gamma law's mean, profile likelihood, 95%",
    "solved_at_upper": "gamma law's mean, profile likelihood, 95%",
    "sparsity_error_mean": "mean over the solved trials",
    "sparsity_error_lower": "beta law on [0, 1/2], its mean, profile likelihood, 95%",
    "sparsity_error_upper": "beta law on [0, 1/2], its mean, profile likelihood, 95%",
    "training_s_mean": "seconds of training a finished trial",
    "stopped_early": "trials that stop: when_decided ended",
}
"""The columns of cells.csv after cell_id, the labels (label_...) and every field of `study.records.Cell`."""

AS_PUBLISHED_COLUMNS: Mapping[str, str] = {
    "as_published_solved_at_mean": "the published estimate of the mean of solved-at",
    "as_published_solved_at_lower": "its interval",
    "as_published_solved_at_upper": "its interval",
    "as_published_sparsity_error_mean": "the published estimate of the mean of the sparsity error",
    "as_published_sparsity_error_lower": "its interval",
    "as_published_sparsity_error_upper": "its interval",
}
"""With `--as-published`, the columns after these. The success rate and the median were published right."""

_TYPES = {
    **dict.fromkeys(("seeds", *Outcome, "pending", "stopped_early"), pa.int64()),
    "complete": pa.bool_(),
}

_COMPARISON_COLUMNS = (
    "cell_id", "model", "hidden_size", "operation", "solved", "trials", "success_rate", "success_rate_lower",
    "success_rate_upper", "published_solved", "published_seeds", "published_success_rate",
    "published_success_rate_lower", "published_success_rate_upper", "p_value", "p_adjusted", "verdict",
    "solved_at_median", "solved_at_mean", "published_solved_at_median", "published_solved_at_mean",
    "complete", "source",
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Rows for other programs.

    Args:
        schema: the columns.
        rows: by column; what is left out is nothing.
    """

    schema: pa.Schema
    rows: Sequence[Mapping[str, Any]]


def cells_rows(summaries: Sequence[CellSummary], labels: Labels) -> Rows:
    """Give one row a cell: id, labels, every hyperparameter, every statistic; None where there is none."""
    axes = list(dict.fromkeys(axis for s in summaries for axis in labels.get(s.cell_id, {})))
    types = [
        ("cell_id", pa.string()),
        *((f"label_{axis}", pa.string()) for axis in axes),
        *((name, RESULT_SCHEMA.field(name).type) for name in CELL_FIELDS),
        *_statistics_types(STATISTICS_COLUMNS),
    ]
    return Rows(pa.schema(types), [_cell_row(summary, labels) for summary in summaries])


def groups_rows(groups: Sequence[GroupSummary], by: pa.Schema) -> Rows:
    """Give one row a group: its columns as they are, every statistic, the published estimators' numbers."""
    columns = {**STATISTICS_COLUMNS}
    if any(group.as_published for group in groups):
        columns |= AS_PUBLISHED_COLUMNS
    return Rows(
        pa.schema([*by, *_statistics_types([name for name in columns if name not in by.names])]),
        [_statistics_row(g) | _published_row(g) | dict(zip(by.names, g.values, strict=True)) for g in groups],
    )


def to_csv(rows: Rows) -> str:
    """Write rows with full precision; empty where there is nothing."""
    return _csv(rows.schema.names, rows.rows)


def to_parquet(rows: Rows) -> bytes:
    """Write rows with their types; null where there is nothing."""
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(
        [{n: row.get(n) for n in rows.schema.names} for row in rows.rows], rows.schema
    )
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def comparison_csv(comparison: Sequence[Comparison]) -> str:
    """Write one row a compared cell."""
    return _csv(_COMPARISON_COLUMNS, [_comparison_row(compared) for compared in comparison])


def markdown(
    *,
    name: str,
    question: str,
    summaries: Sequence[CellSummary],
    labels: Labels,
    comparison: Sequence[Comparison],
) -> str:
    """Write the tables as Markdown, to paste into an issue or a notebook."""
    parts = [f"# {_cell(name)}", _cell(question), "![success rate, solved at and sparsity error](figure.png)"]
    parts.append(_markdown_table(cells_table(summaries, labels)))
    if comparison:
        parts += [f"## Against {SOURCE}", _markdown_table(comparison_table(comparison, labels))]
    return "\n\n".join(part for part in parts if part) + "\n"


def groups_markdown(*, title: str, rows: Keyed, notices: Sequence[str]) -> str:
    """Write the groups' table as Markdown, with what the reader must know."""
    parts = [f"# {_cell(title)}", _markdown_table(summaries_table(rows)), *map(_cell, notices)]
    return "\n\n".join(parts) + "\n"


def _cell_row(s: CellSummary, labels: Labels) -> dict[str, Any]:
    row: dict[str, Any] = {"cell_id": s.cell_id}
    row |= {f"label_{axis}": label for axis, label in labels.get(s.cell_id, {}).items()}
    row |= {name: getattr(s.cell, name) for name in CELL_FIELDS}
    row |= {name: format_range(row[name]) for name in ("interpolation_range", "extrapolation_range")}
    return row | _statistics_row(s)


def _statistics_row(s: Summary) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(s, name) for name in STATISTICS_COLUMNS if hasattr(s, name)}
    row |= _ends("success_rate", s.success_rate_interval)
    row |= _ends("solved_at", s.solved_at_interval)
    return row | _ends("sparsity_error", s.sparsity_error_interval)


def _published_row(group: GroupSummary) -> dict[str, Any]:
    published = group.as_published
    if published is None:
        return {}
    return {
        "as_published_solved_at_mean": published.solved_at_mean,
        **_ends("as_published_solved_at", published.solved_at_interval),
        "as_published_sparsity_error_mean": published.sparsity_error_mean,
        **_ends("as_published_sparsity_error", published.sparsity_error_interval),
    }


def _statistics_types(names: Iterable[str]) -> list[tuple[str, pa.DataType]]:
    return [(name, _TYPES.get(name, pa.float64())) for name in names]


def _comparison_row(c: Comparison) -> dict[str, Any]:
    s, published = c.summary, c.published
    return {
        "cell_id": s.cell_id,
        "model": s.cell.model,
        "hidden_size": s.cell.hidden_size,
        "operation": s.cell.operation,
        "solved": s.solved,
        "trials": s.finished,
        "success_rate": s.success_rate,
        **_ends("success_rate", s.success_rate_interval),
        "published_solved": published.solved,
        "published_seeds": published.seeds,
        "published_success_rate": c.published_rate,
        **_ends("published_success_rate", c.published_interval),
        "p_value": c.p_value,
        "p_adjusted": c.p_adjusted,
        "verdict": c.verdict,
        "solved_at_median": s.solved_at_median,
        "solved_at_mean": s.solved_at_mean,
        "published_solved_at_median": published.solved_at_median,
        "published_solved_at_mean": published.solved_at_mean,
        "complete": s.complete,
        "source": f"{SOURCE}: {published.table}",
    }


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_lower": low, f"{name}_upper": high}


def _csv(header: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, header, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _plain(value) for name, value in row.items()})
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _markdown_table(table: TextTable) -> str:
    rule = ["---:" if is_number else "---" for is_number in table.is_number]
    body = [
        [
            f"**{_cell(text)}**" if (i, j) in table.best else _cell(text)
            for j, text in enumerate(row)
        ]
        for i, row in enumerate(table.rows)
    ]  # fmt: skip
    lines = [[_cell(text) for text in table.header], rule, *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    """Keep a text from breaking a table or turning into markup."""
    flat = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\|`*_<>#" else c for c in flat)
