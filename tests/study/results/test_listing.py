"""The presets are listed as they are."""

from __future__ import annotations

from study.presets import preset_names
from study.results.listing import presets_table


def test_presets_are_listed_with_what_they_ask_and_take() -> None:
    """Each preset is a row with its question, its trials, and a time."""
    table = presets_table()
    columns = {column.header: list(column.cells) for column in table.columns}
    assert columns["preset"] == preset_names()
    place = columns["preset"].index("language")
    assert columns["task"][place] == "language"
    assert columns["trials"][place] == "100"
    assert "last layer" in str(columns["question"][place])
    assert all(columns["core time"])
    assert all(columns["question"])
