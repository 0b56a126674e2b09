"""Notes on the rows of a table."""

from __future__ import annotations

import pyarrow as pa

from study.reports import groups
from study.reports.notes import times_notes
from study.reports.table import summaries_table
from tests.study.builders import summarised_by


def rows_of(ends: dict[str, list[float]], **columns: list[object]):
    """Make a row for each model, whose unsolved trials end at the given iterations."""
    trials = [(name, end) for name, of_model in ends.items() for end in of_model]
    table = pa.table(
        {
            "model": [name for name, _ in trials],
            "outcome": ["unsolved"] * len(trials),
            "solved_at_iteration": pa.nulls(len(trials), pa.float64()),
            "sparsity_error": pa.nulls(len(trials), pa.float64()),
            "training_s": pa.nulls(len(trials), pa.float64()),
            "trained_iterations": [end for _, end in trials],
            "stopped_early": [False] * len(trials),
            **columns,
        }
    )
    by = [*columns, "model"]
    return groups(summarised_by(table, by), by)


def test_trials_that_ended_early_are_named_by_row():
    """A note counts trials that ended early by row, and another names rows that therefore have no mean."""
    notes = times_notes(rows_of({"A": [100.0, 50.0, 20.0], "B": [100.0], "C": [100.0], "D": [30.0]}))
    assert len(notes) == 2
    assert notes[0].startswith("3 trials ended unsolved before")
    assert notes[0].endswith("A (2 of 3); D (1 of 1)")
    assert notes[1].endswith(": D")


def test_complete_rows_have_no_note():
    """Rows that ran to their planned end need no note."""
    assert times_notes(rows_of({"A": [100.0, 100.0], "B": [100.0]})) == []


def test_very_many_rows_are_counted():
    """Of twenty rows that ended early eight are named, and the others counted."""
    ends = {f"whole {i}": [100.0] for i in range(30)} | {f"short {i}": [10.0] for i in range(20)}
    notes = times_notes(rows_of(ends))
    assert all("short 7" in note and "short 8" not in note and "12 more rows" in note for note in notes)


def test_means_show_their_restriction():
    """The limit is above the column if all rows share it, and beside each mean if questions differ."""

    def column(rows):
        table = summaries_table(rows)
        [place] = [i for i, title in enumerate(table.header) if title.startswith("iterations to success")]
        return table.header[place], [row[place] for row in table.rows]

    title, texts = column(rows_of({"A": [5000.0], "B": [5000.0]}))
    assert title == "iterations to success, mean up to 5.00k"
    assert not any("up to" in text for text in texts)
    title, texts = column(rows_of({"A": [5000.0, 70_000.0]}, task=["x", "y"]))
    assert title == "iterations to success, mean"
    assert [text.split(" up to ")[1] for text in texts] == ["5.00k", "70.0k"]
