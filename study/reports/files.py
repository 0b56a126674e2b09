"""Cells, groups and comparisons as rows for CSV and Parquet files, with full precision."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from study.arrow import column_names, encoded, kinds_of
from study.comparisons.comparison import Comparison, Comparisons, Reference
from study.comparisons.contrasts import Contrasts
from study.records import Cell, Labels, Outcome
from study.reports import columns, metric_columns
from study.reports.columns import ColumnNote
from study.reports.content import DataRows
from study.reports.csv_text import csv_text, ends, key_values
from study.summaries import rows as result_rows
from study.summaries.aggregate import CellSummary, GroupSummary, published_error
from study.summaries.metrics import metrics_of, single
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary


def statistics_columns(summaries: Sequence[Summary], named_metrics: Collection[str] = ()) -> dict[str, ColumnNote]:
    """Describe the statistics columns of cells.csv by name; they follow cell_id, labels and hyperparameters.

    Only columns that the rows can fill are included. Rates and counts of solved and unsolved trials need a success
    criterion; times, and counts of trials that ended early, need a known time to success, or a known censoring time;
    seconds need a criterion or a measured time. The count of stopped trials needs such a trial; so does that of
    finished trials if there are rates. Metrics of series are only in series.csv, except the main metric and named ones.

    Args:
        summaries: the rows.
        named_metrics: metrics that have columns even if they belong to a series.
    """
    counts = dict(columns.COUNTS)
    has_rates, has_times = result_rows.have_rates(summaries), result_rows.have_times(summaries)
    if not has_rates:
        counts = {name: note for name, note in counts.items() if name not in ("solved", "unsolved")}
    for name in ["stopped", *(["finished"] if has_rates else [])]:
        if not any(getattr(s, name) for s in summaries):
            del counts[name]
    metrics = single(metrics_of(summaries), named_metrics)
    return {
        **counts,
        **(columns.RATES if has_rates else {}),
        **(columns.SOLVED_AT if has_times else {}),
        **{
            column: note for name, metric in metrics.items() for column, note in columns.of_metric(name, metric).items()
        },
        **(columns.TIMES if has_times else {}),
        **(columns.SECONDS if has_rates or any(s.training_s_mean is not None for s in summaries) else {}),
        **(columns.SECONDS_TO_SUCCESS if has_times else {}),
        **(columns.STOPPED if has_times else {}),
    }


_WITH_INTERVALS = ("success_rate", "solved_at_median", "solved_at", "time_to_success", "solved_at_s")
_TYPES = {
    **dict.fromkeys(("seeds", *Outcome, "pending", "stopped_early", "ended_early"), pa.int64()),
    "complete": pa.bool_(),
}


def cells_rows(summaries: Sequence[CellSummary], labels: Labels, named_metrics: Collection[str] = ()) -> DataRows:
    """Make one row per cell: id, labels (``label_AXIS``), task, model, hyperparameters and statistics.

    A hyperparameter with a statistic's name becomes ``NAME (hyperparameter)``.

    Args:
        summaries: the cells with their results.
        labels: the names of grid points, by cell id and axis.
        named_metrics: as for `statistics_columns`.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    axes = list(dict.fromkeys(axis for s in summaries for axis in labels.get(s.cell_id, {})))
    statistics = statistics_columns(summaries, named_metrics)
    columns = _cell_columns([summary.cell for summary in summaries], statistics)
    types = [
        ("cell_id", pa.string()),
        *((f"label_{axis}", pa.string()) for axis in axes),
        *((name, column.type) for name, column in columns.items()),
        *_statistics_types(statistics),
    ]
    values = {name: column.to_pylist() for name, column in columns.items()}
    rows = [
        {"cell_id": s.cell_id}
        | {f"label_{axis}": label for axis, label in labels.get(s.cell_id, {}).items()}
        | {name: column[row] for name, column in values.items()}
        | {name: value for name, value in _statistics_row(s).items() if name in statistics}
        for row, s in enumerate(summaries)
    ]
    return DataRows(pa.schema(types), rows)


def groups_rows(groups: Sequence[GroupSummary], by: pa.Schema, named_metrics: Collection[str] = ()) -> DataRows:
    """Make one row per group: its key columns, the statistics, and the published estimators' numbers if it has them.

    Args:
        groups: the groups.
        by: the key columns, whose values are written unchanged; one with a statistic's name replaces the statistic.
        named_metrics: as for `statistics_columns`.
    """
    error = published_error(metrics_of(groups)) if any(group.as_published for group in groups) else None
    names = [*statistics_columns(groups, named_metrics), *(columns.as_published(error) if error else ())]
    return DataRows(
        pa.schema([*by, *_statistics_types([name for name in names if name not in by.names])]),
        [_statistics_row(g) | _published_row(g, error) | dict(zip(by.names, g.values, strict=True)) for g in groups],
    )


def to_csv(rows: DataRows) -> str:
    """Return rows as CSV with the schema's columns, as `csv_text` writes them."""
    return csv_text(rows.rows, rows.schema.names)


def to_parquet(rows: DataRows) -> bytes:
    """Return rows as a Parquet file with the schema's types; missing values are null.

    A fraction in a column of integers is cut to an integer.

    Raises:
        pyarrow.ArrowException: if a value doesn't fit its column's type.
        OverflowError: if an integer doesn't fit 64 bits.
        UnicodeEncodeError: if a text isn't Unicode.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows.records, rows.schema), sink, compression="zstd")
    return bytes(sink.getvalue())


def tests_rows(contrasts: Contrasts) -> list[dict[str, Any]]:
    """Return one mapping for each trend, coefficient of a regression, finding and log-rank test, in this order.

    Its keys are columns of tests.csv; those that it doesn't use are absent. Findings without a test are included, with
    the reason. If means are compared, findings by each other single metric of all ended trials follow those by the main
    metric.
    """
    rows: list[dict[str, Any]] = [
        {"test": "Cochran-Armitage" if t.seeds is None else "paired trend", "metric": t.metric}
        | {"rows": t.name, "key": t.key}
        | {"statistic": t.z, "p_value": t.p_value, "p_adjusted": t.p_adjusted, "seeds": t.seeds}
        for t in contrasts.trends
    ]
    rows += [
        {"test": "logistic regression", "rows": s.name, "key": f"log10 {s.key}" if s.is_log else s.key}
        | {"estimate": s.odds_ratio, **ends("", s.interval), "p_value": s.p_value}
        for s in contrasts.slopes
    ]
    rows += [
        {"test": f.test, "metric": metric, "at": f.question, "first": f.first, "second": f.second}
        | {"first_value": f.values[0], "second_value": f.values[1]}
        | {"estimate": f.estimate, "estimate_of": "probability" if f.is_probability else "difference"}
        | {**ends("", f.interval), "p_value": f.p_value, "p_adjusted": f.p_adjusted, "family": f.family}
        | ({} if f.seeds is None else {"seeds": f.seeds, "first_better": f.sample.first_better})
        | ({} if f.seeds is None else {"second_better": f.sample.second_better})
        | {"first_alone": f.sample.first_alone, "second_alone": f.sample.second_alone}
        | {"verdict": str(f.verdict), "reason": f.reason, "note": f.note}
        for metric, findings in ((contrasts.metric, contrasts.pairs), *contrasts.more_findings().items())
        for f in findings
    ]
    rows += [
        {"test": "log-rank" if s.seeds is None else "paired log-rank", "at": s.question, "rows": "; ".join(s.names)}
        | {"statistic": s.statistic, "degrees_of_freedom": s.degrees_of_freedom, "p_value": s.p_value}
        | {"p_adjusted": s.p_adjusted, "seeds": s.seeds}
        for s in contrasts.speeds
    ]
    return rows


def _cell_columns(cells: Sequence[Cell], statistics: Collection[str]) -> dict[str, pa.Array]:
    """Return task, model and each hyperparameter as a column; one with a statistic's name gets a suffix."""
    kinds = {"task": "text", "model": "text", **kinds_of(cells)}
    return {
        f"{name} (hyperparameter)" if name in statistics else name: encoded(
            [cell.value(name) for cell in cells], kinds[name]
        )
        for name in column_names(cells)
    }


def _statistics_row(s: Summary) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(s, name) for name in columns.STATISTICS if hasattr(s, name)}
    for name in _WITH_INTERVALS:
        row |= ends(f"{name}_", getattr(s, f"{name}_interval"))
    return row | metric_columns.numbers(s.metrics)


def _published_row(group: GroupSummary, error: str | None) -> dict[str, Any]:
    fields = {} if group.as_published is None or error is None else {"solved_at": "solved_at", error: "error"}
    row = {}
    for name, field in fields.items():
        row[f"as_published_{name}_mean"] = getattr(group.as_published, f"{field}_mean")
        row |= ends(f"as_published_{name}_", getattr(group.as_published, f"{field}_interval"))
    return row


def _statistics_types(names: Iterable[str]) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.int64() if name.endswith("_trials") else _TYPES.get(name, pa.float64())) for name in names]


def comparison_rows(rows: ResultRows, against: Comparisons) -> list[dict[str, Any]]:
    """Return one mapping per compared row, with the columns of comparison.csv.

    They are the row's keys, its numbers and its counterpart's, and the test of their difference.
    """
    return [_comparison_row(rows, c, against) for c in against.comparisons]


def _comparison_row(rows: ResultRows, c: Comparison, against: Comparisons) -> dict[str, Any]:
    both: dict[str, Summary | Reference] = {"": c.summary, "other_": c.beside}
    finding = c.finding
    value, interval = (None, None) if finding.is_probability else (finding.estimate, finding.interval)
    numbers = _compared(c.summary, against.metric, "") | _compared(c.beside, against.metric, "other_")
    numbers |= {"difference": value, **ends("difference_", interval)}
    numbers |= {"probability": finding.estimate if finding.is_probability else None}
    numbers |= {name: getattr(finding, name) for name in ("test", "seeds", "p_value", "p_adjusted")}
    numbers |= {"verdict": c.verdict}
    if not against.metric:
        times = ("solved_at_median", "solved_at_mean")
        numbers |= {f"{prefix}{name}": getattr(summary, name) for prefix, summary in both.items() for name in times}
        numbers |= {"log_rank_p": c.log_rank_p}
    numbers |= {f"{prefix}complete": summary.complete for prefix, summary in both.items()}
    source = c.beside.source
    numbers |= {"source": f"{c.beside.publication}: {source}" if against.is_published else source}
    return key_values(rows, c.row) | {
        f"compared_{name}" if name in rows.keys else name: n for name, n in numbers.items()
    }


def _compared(summary: Summary | Reference, metric: str | None, prefix: str) -> dict[str, Any]:
    if metric is not None:
        mean, name = summary.metrics[metric], f"{prefix}{metric}_"
        return {f"{prefix}trials": mean.count, f"{name}mean": mean.mean, **ends(name, mean.mean_interval)}
    rate = f"{prefix}success_rate"
    counts = {f"{prefix}solved": summary.solved, f"{prefix}trials": summary.judged, rate: summary.success_rate}
    return counts | ends(f"{rate}_", summary.success_rate_interval)
