"""The cells' table, once: the columns and texts that the terminal, Markdown and HTML show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from study.aggregate import CellSummary
from study.report import words
from study.report.compare import Comparison
from study.report.words import Labels


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Args:
        header: titles of the columns.
        rows: as many texts each.
        is_number: of each column, whether it is aligned at its right.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_number: tuple[bool, ...]


def cells_table(summaries: Sequence[CellSummary], labels: Labels, *, is_narrow: bool = False) -> TextTable:
    """Lay out one row a cell: the hyperparameters that vary, then the statistics.

    A column of counts that are all zero (diverged, failed) is left out.

    Args:
        summaries: the rows, in order.
        labels: names of points that several hyperparameters share.
        is_narrow: for a terminal: half the width of the interval of solved-at, none of the sparsity error.
    """
    cells = [summary.cell for summary in summaries]
    keys = words.varying(cells, labels)
    if "model" not in keys:
        keys = ["model", *keys]
    counts = [name for name in ("diverged", "failed") if any(getattr(s, name) for s in summaries)]
    header = (
        *(words.title(key) for key in keys),
        *("seeds", "solved", "success rate", "solved at, median", "solved at, mean", "sparsity error"),
        *counts,
        "s/trial",
    )
    rows = tuple(
        (
            *(words.show(s.cell, key, labels) for key in keys),
            f"{s.finished}" if s.complete else f"{s.finished}/{s.seeds}",
            f"{s.solved}",
            _pair(words.rate(s.success_rate), words.interval(s.success_rate_interval)),
            words.iterations(s.solved_at_median),
            _pair(words.iterations(s.solved_at_mean), _solved_at_interval(s, is_narrow)),
            _pair(words.error(s.sparsity_error_mean), "" if is_narrow else _error_interval(s)),
            *(f"{getattr(s, name)}" for name in counts),
            words.seconds(s.training_s_mean),
        )
        for s in summaries
    )
    statistics = len(header) - len(keys)
    is_number = (*(_is_number(key, labels) for key in keys), *([True] * statistics))
    return TextTable(header, rows, is_number)


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
    return TextTable(header, rows, (*(_is_number(key, labels) for key in keys), *numbers))


def _pair(value: str, interval: str) -> str:
    return f"{value} {interval}".rstrip()


def _both(median: float | None, mean: float | None) -> str:
    if median is None and mean is None:
        return words.NONE
    return f"{words.iterations(median)}, {words.iterations(mean)}"


def _solved_at_interval(s: CellSummary, is_narrow: bool) -> str:
    if s.solved_at_interval is None:
        return ""
    low, high = s.solved_at_interval
    return (
        f"±{words.iterations((high - low) / 2)}"
        if is_narrow
        else words.interval((low, high), words.iterations)
    )


def _error_interval(s: CellSummary) -> str:
    return words.interval(s.sparsity_error_interval, words.error)


def _is_number(key: str, labels: Labels) -> bool:
    return key not in ("model", "operation") and not key.endswith("_range") and not _is_axis(key, labels)


def _is_axis(key: str, labels: Labels) -> bool:
    return any(key in axes for axes in labels.values())
