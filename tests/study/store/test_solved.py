"""The times when trials were solved are read separately, with equal values."""

from __future__ import annotations

from pathlib import Path

import pytest

import study
from study.interface.criterion import in_words
from study.records import Cell
from study.store import Store

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = {
    "study": "words",
    "question": "Is it learned?",
    "task": {"name": "identity"},
    "models": ["NAU", "tanh"],
    "seeds": 3,
    "success": {"train_error": {"below": 1e9}},
    "protocol": {"iterations": 20, "evaluate_every": 10},
}


def test_solved_cells_are_those_of_the_results(tmp_path: Path) -> None:
    """Times read separately equal those of the results, cell by cell; other models, tasks and criteria have none."""
    study.load(WORDS, store=tmp_path, tracking_uri="off").run(local=True, pack_size=2)
    folder, opened = Store(tmp_path, read_only=True).study("words"), study.open("words", store=tmp_path).results()
    times: dict[str, list[int]] = {}
    for row in opened.table.to_pylist():
        if row["outcome"] == "solved":
            times.setdefault(row["cell_id"], []).append(row["solved_at_iteration"])
    assert len(times) == 2

    def solved(task: str, models: list[str], criterion: str | None) -> list[tuple[Cell, list[int]]]:
        return [(cell, sorted(at)) for cell, at in folder.solved_cells(task, models, criterion)]

    text = in_words(opened.plan.criterion)  # type: ignore[arg-type]
    solved_cells = solved("identity", ["NAU", "tanh"], text)
    assert {cell.id: at for cell, at in solved_cells} == {cell_id: sorted(at) for cell_id, at in times.items()}
    assert {cell for cell, _ in solved_cells} == set(opened.plan.cells)
    assert [cell.model for cell, _ in solved("identity", ["NAU"], text)] == ["NAU"]
    assert solved("simple", ["NAU"], text) == solved("identity", ["NAU"], None) == solved("identity", [], text) == []
    assert solved("identity", ["NAU"], "train_error < 2.0") == []
