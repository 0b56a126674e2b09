"""Text files with any separator, decimal commas, and error values of spreadsheets."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.outcomes import gather, outcomes_of_runs, read_runs, read_source, wanted
from study.outcomes.files import read_table
from tests.commands import invoke

ROWS = [["model", "seed", "acc"], ["a", "0", "0.3"], ["a", "1", "0.4"], ["b", "0", "0.5"], ["b", "1", "0.6"]]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".CSV"])
def test_any_separator_is_read(tmp_path: Path, separator: str, suffix: str) -> None:
    """Comma, semicolon, tab and pipe are read, also after Excel's byte order mark."""
    path = tmp_path / f"runs{suffix}"
    path.write_text("\ufeff" + "\n".join(separator.join(row) for row in ROWS), encoding="utf-8")
    outcomes = gather([read_source(path, metrics=["acc"])], None, wanted(["acc"]))
    assert outcomes.by == ("model",)
    assert outcomes.table["acc"].to_pylist() == [0.3, 0.4, 0.5, 0.6]
    assert outcomes_of_runs(read_runs(path)).table["acc"].to_pylist() == [0.3, 0.4, 0.5, 0.6]


def column(tmp_path: Path, *values: str, separator: str = ";", beside: str = "x") -> tuple[list[str | None], list[str]]:
    """Return the values that a file's column is read as, and the notices."""
    lines = [separator.join((value, beside)) for value in ("value", *values)]
    lines[0] = f"value{separator}other"
    (tmp_path / "a.csv").write_text("\n".join(lines))
    table, notices = read_table(tmp_path / "a.csv")
    return table["value"].to_pylist(), notices


@pytest.mark.parametrize(("values", "read"), [
    (["0,835", "-1,5", "2", "nan", "1e-3"], None),
    (["0,835", "-1,5", "2", "nan"], ["0.835", "-1.5", "2", "nan"]),
    (["1.234,5", "12,25"], ["1234.5", "12.25"]),
    (["1,234,567", "12"], ["1234567", "12"]),
    (["1,234.5", "2,000.0"], ["1234.5", "2000.0"]),
    (["0.5", "1.25"], ["0.5", "1.25"]),
    (["64,32,16", "8,4"], ["64,32,16", "8,4"]),
    (["relu, tanh", "1,5"], ["relu, tanh", "1,5"]),
])  # fmt: skip
def test_decimal_commas_are_points(tmp_path: Path, values: list[str], read: list[str] | None) -> None:
    """Decimal commas are read in columns of numbers only; thousands separators are removed."""
    values_read, notices = column(tmp_path, *values)
    expected = [value.replace(",", ".") for value in values] if read is None else read
    assert values_read == expected
    assert bool(notices) == (values_read != values)


def test_an_ambiguous_column_is_reported(tmp_path: Path) -> None:
    """In 1,234, or in 1.234 beside decimal commas, the separator is ambiguous, and a notice says so."""
    assert column(tmp_path, "1,234", "2,500") == (
        ["1.234", "2.500"],
        ["decimal or thousands separators; ambiguous, so check it: 1,234 was read as 1.234: value"],
    )
    values, notices = column(tmp_path, "1.234", "2.500", beside="0,5")
    assert values == ["1234", "2500"]
    assert "1.234 was read as 1234: value" in " ".join(notices)
    assert column(tmp_path, "1.234", "2.500", beside="0.5") == (["1.234", "2.500"], [])


def test_a_quoted_number_with_a_comma_is_refused(tmp_path: Path) -> None:
    """A quoted number with a comma is refused as ambiguous."""
    (tmp_path / "a.csv").write_text('model,seed,acc\na,0,"0,5"\na,1,0.5\n')
    result = invoke("report", str(tmp_path / "a.csv"), "--metric", "acc")
    assert result.exit_code == 2
    assert "row 1: acc: '0,5' isn't a number" in result.output


def test_error_values_of_spreadsheets_are_missing_with_a_notice(tmp_path: Path) -> None:
    """A cell with #N/A is empty in any column, and one sentence counts such cells."""
    (tmp_path / "a.csv").write_text("model,note,seed,acc\na,#REF!,0,0.5\na,x,1,#N/A\nb,x,0,#N/A\nb,x,1,0.75\n")
    outcomes = gather([read_source(tmp_path / "a.csv", metrics=["acc"])], ["model"], wanted(["acc"]))
    assert outcomes.table["acc"].to_pylist() == [0.5, None, None, 0.75]
    assert outcomes.table["note"].to_pylist() == [None, "x", "x", "x"]
    file_notices = [notice for notice in outcomes.notices if notice.startswith("a.csv")]
    assert file_notices == [
        "a.csv: no value: 3 cells with a spreadsheet's error, such as #N/A: note, acc",
        "a.csv: no number in acc: 2 trials, counted as diverged",
    ]
