"""The tables of a report: the columns and texts that the terminal, Markdown and HTML show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from study import words
from study.analysis import rows as result_rows
from study.analysis.aggregate import CellSummary
from study.analysis.comparison import Comparisons
from study.analysis.contrasts import Contrasts
from study.analysis.rows import ResultRows
from study.records import Cell, Interval
from study.statistics import AsPublished

if TYPE_CHECKING:
    from study.plan.until import Verdict  # what it imports takes long, and tables of files do without


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: over it.
        texts: one a row.
        values: one a row, to sort by; None where there is none.
        is_number: whether it is aligned at its right.
        best: rows of the best values of their groups.
    """

    title: str
    texts: tuple[str, ...]
    values: tuple[Any, ...]
    is_number: bool = True
    best: frozenset[int] = frozenset()


@dataclass(frozen=True)
class TextTable:
    """A table of texts."""

    columns: tuple[Column, ...]

    @property
    def header(self) -> tuple[str, ...]:
        """Give the columns' titles."""
        return tuple(column.title for column in self.columns)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Give the texts by row."""
        return list(zip(*(column.texts for column in self.columns), strict=True))


def summaries_table(rows: ResultRows, *, is_narrow: bool = False, most: int | None = None) -> TextTable:
    """Lay out one row a summary: what tells it apart, then the statistics, the published estimators' beside.

    A column of counts that are all zero (diverged, failed), or of seconds that nobody measured, is left out.

    Args:
        rows: the summaries, in order.
        is_narrow: for a terminal: no interval of the sparsity error, no restricted mean.
        most: rows to lay out; None for all.
    """
    of_times = _interval_of(words.iterations)
    of_errors = _nothing if is_narrow else _interval_of(words.error)
    some = rows.summaries[:most]
    columns = [
        *_keys(rows, range(len(some))),
        Column(
            "seeds",
            tuple(f"{s.finished}" if s.complete else f"{s.finished}/{s.seeds}" for s in some),
            tuple(s.finished for s in some),
        ),
        Column("solved", tuple(f"{s.solved}" for s in some), tuple(s.solved for s in some)),
        _estimates(rows, most, "success rate", "success_rate", words.rate, _interval_of(words.rate)),
        _estimates(rows, most, "solved at, median", "solved_at_median", words.iterations),
        _estimates(
            rows, most, "solved at, mean", "solved_at_mean", words.iterations, of_times, "solved_at_interval"
        ),
        *_published(rows, most, "solved_at", words.iterations, of_times),
    ]
    if not is_narrow and any(s.solved < s.finished for s in some):
        columns += _times_to_success(rows, most)
    columns.append(
        _estimates(
            rows,
            most,
            "sparsity error",
            "sparsity_error_mean",
            words.error,
            of_errors,
            "sparsity_error_interval",
        )
    )
    columns += _published(rows, most, "sparsity_error", words.error, of_errors)
    for name in ("diverged", "failed"):
        counts = tuple(getattr(s, name) for s in some)
        columns += [Column(name, tuple(map(str, counts)), counts)] if any(counts) else []
    for title, name in (("s/trial", "training_s_mean"), ("s to success", "solved_at_s_mean")):
        if any(getattr(s, name) is not None for s in some) and not (is_narrow and name == "solved_at_s_mean"):
            columns.append(_estimates(rows, most, title, name, words.seconds))
    return TextTable(tuple(columns))


def _keys(rows: ResultRows, some: Iterable[int], keys: Sequence[str] | None = None) -> list[Column]:
    chosen = list(some)
    return [
        Column(
            words.title(key),
            tuple(words.show_value(key, rows.value(row, key)) for row in chosen),
            tuple(rows.value(row, key) for row in chosen),
            rows.is_number[rows.keys.index(key)],
        )
        for key in (rows.keys if keys is None else keys)
    ]


_BEST = ("success_rate", "solved_at_median", "solved_at_mean", "sparsity_error_mean")


def _estimates(
    rows: ResultRows,
    most: int | None,
    title: str,
    name: str,
    show: Callable[[Any], str],
    show_interval: Callable[[Interval | None], str] = lambda interval: "",
    interval: str | None = None,
) -> Column:
    some = rows.summaries[:most]
    values = tuple(getattr(s, name) for s in some)
    intervals = [getattr(s, interval or f"{name}_interval", None) for s in some]
    best: Collection[int] = result_rows.best(rows, name, show) if name in _BEST else ()
    texts = tuple(_pair(show(v), show_interval(i)) for v, i in zip(values, intervals, strict=True))
    return Column(title, texts, values, best=frozenset(best))


def _times_to_success(rows: ResultRows, most: int | None) -> list[Column]:
    """Lay out restricted means, with what they are restricted to: over them, or beside each if questions differ."""
    untils = [s.time_to_success_until for s in rows.summaries[:most]]
    known = {until for until in untils if until is not None}
    if not known:
        return []
    up_to = f" up to {words.iterations(*known)}" if len(known) == 1 else ""
    of_times = _interval_of(words.iterations)
    column = _estimates(
        rows,
        most,
        f"time to success, mean{up_to}",
        "time_to_success_mean",
        words.iterations,
        of_times,
        "time_to_success_interval",
    )
    if up_to:
        return [column]
    texts = zip(column.texts, column.values, untils, strict=True)
    beside = (t if v is None else f"{t} up to {words.iterations(until)}" for t, v, until in texts)
    return [replace(column, texts=tuple(beside))]


def _published(
    rows: ResultRows,
    most: int | None,
    name: str,
    show: Callable[[Any], str],
    show_interval: Callable[[Interval | None], str],
) -> list[Column]:
    if rows.as_published is None:
        return []
    some: Sequence[AsPublished] = rows.as_published[:most]
    values = tuple(getattr(p, f"{name}_mean") for p in some)
    intervals = [getattr(p, f"{name}_interval") for p in some]
    texts = tuple(_pair(show(v), show_interval(i)) for v, i in zip(values, intervals, strict=True))
    return [Column("as published", texts, values)]


def comparison_table(rows: ResultRows, against: Comparisons) -> TextTable:
    """Lay out one row a compared row: the numbers here beside the others'."""
    compared = against.comparisons
    at = [c.row for c in compared]
    keys = [key for key in rows.keys if key == "model" or len({rows.value(row, key) for row in at}) > 1]
    there = "published" if against.is_published else "there"
    columns = [
        *_keys(rows, at, keys),
        text_column("here", [(_of(c.summary.solved, c.summary), c.summary.solved) for c in compared]),
        text_column("success rate here", [_rate(c.summary) for c in compared]),
        text_column(there, [(_of(c.beside.solved, c.beside), c.beside.solved) for c in compared]),
        text_column(f"success rate {there}", [_rate(c.beside) for c in compared]),
        text_column("difference", [_change(c.difference, c.difference_interval) for c in compared]),
        text_column("p", [(words.p_value(c.p_value), c.p_value) for c in compared]),
        text_column("p, Holm", [(words.p_value(c.p_adjusted), c.p_adjusted) for c in compared]),
        text_column("verdict", [(c.verdict, c.verdict) for c in compared], is_number=False),
        text_column("solved at here: median, mean", [_both(c.summary) for c in compared]),
        text_column(f"solved at {there}: median, mean", [_both(c.beside) for c in compared]),
    ]
    if any(c.log_rank_p is not None for c in compared):
        columns.append(text_column("p, log-rank, Holm", [_p(c.log_rank_p) for c in compared]))
    return TextTable(tuple(columns))


def trends_table(contrasts: Contrasts) -> TextTable:
    """Lay out one row a trend of the success rate."""
    some = contrasts.trends
    return TextTable(
        (
            *_named("rows", [t.name for t in some]),
            text_column("over", [(words.title(t.key), t.key) for t in some], is_number=False),
            text_column("from", [_end(t.low) for t in some]),
            text_column("to", [_end(t.high) for t in some]),
            text_column("z", [(f"{t.z:+.2f}", t.z) for t in some]),
            text_column("p", [_p(t.p_value) for t in some]),
            text_column("p, Holm", [_p(t.p_adjusted) for t in some]),
        )
    )


def slopes_table(contrasts: Contrasts) -> TextTable:
    """Lay out one row a coefficient of a logistic regression."""
    some = contrasts.slopes
    odds = [
        ("separated", None)
        if s.odds_ratio is None
        else (_pair(words.factor(s.odds_ratio), words.interval(s.interval, words.factor)), s.odds_ratio)
        for s in some
    ]
    return TextTable(
        (
            *_named("rows", [s.name for s in some]),
            text_column("hyperparameter", [(words.title(s.key), s.key) for s in some], is_number=False),
            text_column(
                "unit", [("a factor of 10" if s.is_log else "1", s.is_log) for s in some], is_number=False
            ),
            text_column("odds of success change by", odds),
            text_column("p", [_p(s.p_value) for s in some]),
        )
    )


def pairs_table(contrasts: Contrasts) -> TextTable:
    """Lay out one row a pair of methods."""
    some = contrasts.pairs
    return TextTable(
        (
            *_named("at", [p.question for p in some]),
            text_column("first", [(p.first, p.first) for p in some], is_number=False),
            text_column("second", [(p.second, p.second) for p in some], is_number=False),
            text_column("difference of success rates", [_change(p.difference, p.interval) for p in some]),
            text_column("p", [_p(p.p_value) for p in some]),
            text_column("p, Holm", [_p(p.p_adjusted) for p in some]),
        )
    )


def verdicts_table(rows: ResultRows, verdicts: Sequence[Verdict]) -> TextTable:
    """Lay out one row a cell, or a pair of cells, whose seeds were added until there were enough."""
    row_of = {s.cell_id: row for row, s in enumerate(rows.summaries) if isinstance(s, CellSummary)}

    def name(cell: Cell | None) -> tuple[str, str]:
        text = "" if cell is None else rows.name(row_of[cell.id])
        return text, text

    common = [
        text_column("cell", [name(v.cell) for v in verdicts], is_number=False),
        *_named("told from", [name(v.versus)[0] for v in verdicts]),
        text_column("seeds", [(str(v.seeds), v.seeds) for v in verdicts]),
    ]
    if any(v.p_value is not None for v in verdicts):
        measured = [
            text_column("it alone solved", [(str(v.wins), v.wins) for v in verdicts]),
            text_column("the other alone", [(str(v.losses), v.losses) for v in verdicts]),
            text_column("p, at any time", [_p(v.p_value) for v in verdicts]),
        ]
    else:
        widths = [(v.interval[1] - v.interval[0]) / 2 for v in verdicts if v.interval is not None]
        measured = [text_column("half-width", [(f"{width:.3f}", width) for width in widths])]
    sure = text_column(
        "enough?", [(word := "yes" if v.is_sure else "no", word) for v in verdicts], is_number=False
    )
    return TextTable((*common, *measured, sure))


def verdicts_note(verdicts: Sequence[Verdict]) -> str:
    """Say how many are sure, and by what."""
    sure = sum(v.is_sure for v in verdicts)
    if any(v.p_value is not None for v in verdicts):
        return (
            f"{sure} of {len(verdicts)} pairs are told apart, by a sign test of their seeds that is valid however "
            "often it is looked at; each at 5%."
        )
    return (
        f"{sure} of {len(verdicts)} cells have an interval as narrow as asked for. Intervals are Clopper and "
        "Pearson's, widened so that looking after every batch leaves them a coverage of 95% at least."
    )


def speeds_table(contrasts: Contrasts) -> TextTable:
    """Lay out one row a log-rank test."""
    some = contrasts.speeds
    return TextTable(
        (
            *_named("at", [s.question for s in some]),
            text_column("methods", [(", ".join(s.names), ", ".join(s.names)) for s in some], is_number=False),
            text_column("χ²", [(f"{s.statistic:.1f}", s.statistic) for s in some]),
            text_column(
                "degrees of freedom", [(str(s.degrees_of_freedom), s.degrees_of_freedom) for s in some]
            ),
            text_column("p", [_p(s.p_value) for s in some]),
            text_column("p, Holm", [_p(s.p_adjusted) for s in some]),
        )
    )


def text_column(title: str, pairs: Sequence[tuple[str, Any]], *, is_number: bool = True) -> Column:
    """Make a column of texts, each with the value that it is sorted by."""
    return Column(title, tuple(text for text, _ in pairs), tuple(value for _, value in pairs), is_number)


def _named(title: str, names: Sequence[str]) -> list[Column]:
    """Name what rows are of, unless all are of one that needs no name."""
    return [text_column(title, [(name, name) for name in names], is_number=False)] if any(names) else []


def _p(value: float | None) -> tuple[str, float | None]:
    return (words.NONE if value is None else words.p_value(value)), value


def _end(end: tuple[float, float]) -> tuple[str, float]:
    at, rate = end
    return f"{words.rate(rate)} at {at:g}", rate


def _rate(s: Any) -> tuple[str, float | None]:
    return _pair(words.rate(s.success_rate), words.interval(s.success_rate_interval)), s.success_rate


def _change(value: float, interval: Interval) -> tuple[str, float]:
    return _pair(words.change(value), words.interval(interval, words.change)), value


def _of(solved: int, of: Any) -> str:
    return f"{solved}/{of.finished}" if of.complete else f"{solved}/{of.finished}, incomplete"


def _pair(value: str, interval: str) -> str:
    return f"{value} {interval}".rstrip()


def _both(s: Any) -> tuple[str, float | None]:
    median, mean = s.solved_at_median, s.solved_at_mean
    if median is None and mean is None:
        return words.NONE, None
    return f"{words.iterations(median)}, {words.iterations(mean)}", mean


def _interval_of(write: Callable[[float | None], str]) -> Callable[[Interval | None], str]:
    return lambda interval: words.interval(interval, write)


def _nothing(interval: Interval | None) -> str:
    return ""
