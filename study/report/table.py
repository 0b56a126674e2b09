"""The table of results, once: the columns and texts that the terminal, Markdown and HTML show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from study.aggregate import CellSummary
from study.records import Interval
from study.report import keyed, words
from study.report.compare import Comparison
from study.report.keyed import Keyed
from study.report.words import Labels
from study.statistics import AsPublished
from study.summary import Summary


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Args:
        header: titles of the columns.
        rows: as many texts each.
        is_number: of each column, whether it is aligned at its right.
        best: (row, column) of the best values of their groups.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_number: tuple[bool, ...]
    best: frozenset[tuple[int, int]] = frozenset()


_BEST_TITLES = {
    "success_rate": "success rate",
    "solved_at_median": "solved at, median",
    "solved_at_mean": "solved at, mean",
    "sparsity_error_mean": "sparsity error",
}
_SHOWN_BY = {
    "success_rate": words.rate,
    "solved_at_median": words.iterations,
    "solved_at_mean": words.iterations,
    "sparsity_error_mean": words.error,
}


def cells_table(summaries: Sequence[CellSummary], labels: Labels, *, is_narrow: bool = False) -> TextTable:
    """Lay out one row a cell: the hyperparameters that vary, then the statistics.

    A column of counts that are all zero (diverged, failed) is left out.

    Args:
        summaries: the rows, in order.
        labels: names of points that several hyperparameters share.
        is_narrow: for a terminal: half the width of the interval of solved-at, none of the sparsity error.
    """
    return summaries_table(keyed.cells(summaries, labels), is_narrow=is_narrow)


def summaries_table(rows: Keyed, *, is_narrow: bool = False) -> TextTable:
    """Lay out one row a summary: what tells it apart, then the statistics, the published estimators' beside.

    Args:
        rows: the summaries, in order.
        is_narrow: as for `cells_table`.
    """
    counts = [name for name in ("diverged", "failed") if any(getattr(s, name) for s in rows.summaries)]
    seconds = ["s/trial"] if any(s.training_s_mean is not None for s in rows.summaries) else []
    as_published = rows.as_published is not None
    header = [
        *(words.title(key) for key in rows.keys),
        *("seeds", "solved", "success rate", "solved at, median", "solved at, mean"),
        *(["as published"] if as_published else []),
        "sparsity error",
        *(["as published"] if as_published else []),
        *counts,
        *seconds,
    ]
    published: Sequence[AsPublished | None] = rows.as_published or [None] * len(rows.summaries)
    texts = tuple(
        (
            *shown,
            *_statistics(s, is_narrow, counts, beside),
            *(words.seconds(s.training_s_mean) for _ in seconds),
        )
        for shown, s, beside in zip(rows.shown(), rows.summaries, published, strict=True)
    )
    statistics = len(header) - len(rows.keys)
    columns = {name: header.index(title) for name, title in _BEST_TITLES.items()}
    best = frozenset(
        (row, columns[name]) for name in columns for row in keyed.best(rows, name, _SHOWN_BY[name])
    )
    return TextTable(tuple(header), texts, (*rows.is_number, *([True] * statistics)), best)


def _statistics(
    s: Summary, is_narrow: bool, counts: Sequence[str], published: AsPublished | None
) -> tuple[str, ...]:
    solved_at, error = [], []
    if published is not None:
        of_solved_at, of_error = published.solved_at_interval, published.sparsity_error_interval
        solved_at = [
            _pair(words.iterations(published.solved_at_mean), _of_iterations(of_solved_at, is_narrow))
        ]
        error = [_pair(words.error(published.sparsity_error_mean), "" if is_narrow else _of_error(of_error))]
    return (
        f"{s.finished}" if s.complete else f"{s.finished}/{s.seeds}",
        f"{s.solved}",
        _pair(words.rate(s.success_rate), words.interval(s.success_rate_interval)),
        words.iterations(s.solved_at_median),
        _pair(words.iterations(s.solved_at_mean), _of_iterations(s.solved_at_interval, is_narrow)),
        *solved_at,
        _pair(words.error(s.sparsity_error_mean), "" if is_narrow else _of_error(s.sparsity_error_interval)),
        *error,
        *(f"{getattr(s, name)}" for name in counts),
    )


def comparison_table(comparison: Sequence[Comparison], labels: Labels) -> TextTable:
    """Lay out one row a compared cell: this study's numbers beside the published ones."""
    cells = [c.summary.cell for c in comparison]
    keys = words.varying(cells, labels)
    if "model" not in keys:
        keys = ["model", *keys]
    header = (
        *(words.title(key) for key in keys),
        *("here", "success rate here", "published", "success rate published", "p", "p, Holm", "verdict"),
        *("solved at here: median, mean", "solved at published: median, mean"),
    )
    rows = tuple(
        (
            *(words.show(c.summary.cell, key, labels) for key in keys),
            f"{c.summary.solved}/{c.summary.finished}",
            _pair(words.rate(c.summary.success_rate), words.interval(c.summary.success_rate_interval)),
            f"{c.published.solved}/{c.published.seeds}",
            _pair(words.rate(c.published_rate), words.interval(c.published_interval)),
            words.p_value(c.p_value),
            words.p_value(c.p_adjusted),
            c.verdict,
            _both(c.summary.solved_at_median, c.summary.solved_at_mean),
            _both(c.published.solved_at_median, c.published.solved_at_mean),
        )
        for c in comparison
    )
    numbers = [True] * 6 + [False] + [True] * 2
    return TextTable(header, rows, (*(keyed.is_number(key, labels) for key in keys), *numbers))


def _pair(value: str, interval: str) -> str:
    return f"{value} {interval}".rstrip()


def _both(median: float | None, mean: float | None) -> str:
    if median is None and mean is None:
        return words.NONE
    return f"{words.iterations(median)}, {words.iterations(mean)}"


def _of_iterations(interval: Interval | None, is_narrow: bool) -> str:
    if interval is None:
        return ""
    low, high = interval
    return (
        f"±{words.iterations((high - low) / 2)}" if is_narrow else words.interval(interval, words.iterations)
    )


def _of_error(interval: Interval | None) -> str:
    return words.interval(interval, words.error)
