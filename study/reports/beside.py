"""Texts of a study for the index, to set several studies side by side without further computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from study import words
from study.records import names_of
from study.reports import metric_columns, table
from study.reports.text_table import Column, estimates_column
from study.summaries.aggregate import CellSummary
from study.summaries.rows import ResultRows

MOST_ROWS = 500
"""The most rows of a study that the index can set beside another's; 500 rows take some 50 KB."""


def beside(rows: ResultRows, summaries: Sequence[CellSummary]) -> dict[str, Any] | None:
    """Return the keys and the results of a study's cells as texts for JSON.

    Args:
        rows: the results of the study.
        summaries: the same results, with their cells, in the same order.

    Returns:
        A dictionary; None if there are more than `MOST_ROWS` cells:

        - ``same``: the texts that all cells share, by name: task, model and hyperparameters
        - ``keys``: the names of the others
        - ``titles``: the titles of both, by name
        - ``columns``: the titles of the results
        - ``rows``: for each cell its id, its name, its values of `keys` and its texts of `columns`

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    if len(summaries) > MOST_ROWS:
        return None
    cells = [s.cell for s in summaries]
    texts = {name: [words.format_value(name, cell.value(name)) for cell in cells] for name in names_of(cells)}
    keys = [name for name, values in texts.items() if len(set(values)) > 1]
    columns = _columns(rows)
    return {
        "same": {name: values[0] for name, values in texts.items() if name not in keys},
        "keys": keys,
        "titles": {name: rows.title(name) for name in texts},
        "columns": [column.title for column in columns],
        "rows": [
            [cell.id, rows.name(row), [texts[key][row] for key in keys], [column.texts[row] for column in columns]]
            for row, cell in enumerate(cells)
        ],
    }


def titles(studies: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return titles by name of task, model and hyperparameter, sorted, from results of `beside` for several studies.

    If studies have different titles for a name, the last study's is returned.
    """
    merged = {name: title for study in studies for name, title in study["titles"].items()}
    return dict(sorted(merged.items()))


def _columns(rows: ResultRows) -> list[Column]:
    """Lay out the seeds, the success rate or else the main metric, and the median time to success, where known."""
    summaries, name = rows.summaries, rows.main_metric
    columns = [table.seeds_column("seeds", summaries)]
    if rows.has_rates:
        columns.append(estimates_column(summaries, "success rate", "success_rate", words.rate, "success_rate_interval"))
    elif name is not None:
        columns += metric_columns.columns(rows, name, is_narrow=True)
    if rows.has_times:
        columns.append(table.solved_at_median_column(summaries))
    return columns
