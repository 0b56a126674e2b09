"""The tables of docs/which-unit.md are those of the results."""

from __future__ import annotations

from docs import which_unit

TEXT = which_unit.PAGE.read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_results() -> None:
    """Each table of the page follows from cells that docs/results holds."""
    assert which_unit.updated(TEXT) == TEXT, "stale: run `python -m docs.which_unit`"


def test_a_changed_number_is_stale() -> None:
    """A number that isn't a result's is put right; what stands outside the marks is left alone."""
    row = next(line for line in TEXT.splitlines() if line.startswith("| + | NAU |"))
    assert which_unit.updated(TEXT.replace(row, row.replace("25", "24"))) == TEXT


def test_what_the_page_says_first_is_so() -> None:
    """The units that it names have the highest rate on the ranges that it names, and the others have it nowhere."""
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
