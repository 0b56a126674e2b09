"""Lists of presets and studies."""

from __future__ import annotations

from pathlib import Path

from study.plugins.presets import preset_names
from study.results.listing import StudyRow, presets_table, studies
from study.store import Store
from tests.study.results.bad_studies import BAD, GOOD, make_store


def test_presets_are_listed_with_question_and_time() -> None:
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


def test_one_bad_study_does_not_keep_the_others_from_being_listed(tmp_path: Path) -> None:
    """A study that is too large or unreadable is listed at once with its reason, and the others as usual."""
    rows = {row.study: row for row in studies(make_store(tmp_path / "studies"))}
    assert rows.pop("good") == StudyRow("good", "Does it learn?", 6, 6, 2)
    assert rows.keys() == BAD.keys()
    for name, (_, _, reason) in BAD.items():
        assert reason in rows[name].error


def test_a_large_study_is_listed_without_making_its_trials(tmp_path: Path) -> None:
    """For a study near the limit of trials, only finished trials are counted."""
    store = make_store(tmp_path / "studies")
    Store(store).study("good").write_spec(GOOD.replace("seeds: 3", "seeds: 4000000"))
    assert StudyRow("good", "Does it learn?", 6, 8_000_000, 2) in studies(store)
