"""Agreement of tasks/docs/which-unit.md and the tables of hidden units with the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import which_unit


@pytest.mark.parametrize("page", which_unit.PAGES, ids=lambda page: page.parent.name)
def test_the_tables_are_those_of_the_results(page: Path) -> None:
    """Each table of the page follows from the cells of tasks/docs/results."""
    text = page.read_text(encoding="utf-8")
    assert which_unit.updated(text) == text, "stale: run `python -m docs.which_unit`"


@pytest.mark.parametrize("page", which_unit.PAGES, ids=lambda page: page.parent.name)
def test_a_changed_number_is_stale(page: Path) -> None:
    """A changed number is restored; text outside the marks is kept."""
    text = page.read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| − | NAU |"))
    assert which_unit.updated(text.replace(row, row.replace("2", "1"))) == text


def test_the_summary_of_the_page_is_true() -> None:
    """The named units have the highest rates on the named ranges; other units never have them."""
    rows = which_unit.cells("single-module/cells.csv")
    solved = {(row["operation"], row["model"], row["label_range"]): int(row["solved"]) for row in rows}
    ranges = list(dict.fromkeys(row["label_range"] for row in rows))
    for operations, models in ((("add", "sub"), ("NAU",)), (("mul", "div"), ("NRU", "NMRU"))):
        assert all(solved[operation, model, on] == 25 for operation in operations for model in models for on in ranges)
    assert sorted(solved["mul", "NMU", on] for on in ranges) == [17, 21, *[25] * 7]
    modified = {on: solved["div", "RealNPU-modified", on] for on in ranges}
    assert modified == {on: 0 if on == "U[-2,2]" else 25 for on in ranges}
    for operation, model, on in solved:
        if model in ("NAC-add", "NAC-mul", "NALU", "NALU-separate", "G-NALU"):
            assert solved[operation, model, on] < max(n for (o, _, r), n in solved.items() if (o, r) == (operation, on))
