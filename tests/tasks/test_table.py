"""Tables: read as a whole, or refused with the line, the column and the rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.tabular.table import column_names, read_table

CONTENT = "width,height,part,area\n1,2.5,train,-3e-1\n\n4,5,test,6\n"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return tmp_path / "ingots.csv"


def written(csv: Path, content: str | bytes) -> Path:
    csv.write_bytes(content if isinstance(content, bytes) else content.encode())
    return csv


@pytest.mark.parametrize("content", [CONTENT, "\ufeff" + CONTENT, CONTENT.replace("\n", "\r\n"), CONTENT.strip()])
def test_columns_are_read_by_their_names(csv: Path, content: str) -> None:
    """Columns are read by name, with or without byte order mark or last line break; blank lines are skipped."""
    table = read_table(written(csv, content), ["area", "width"], label="part", choices=("train", "test"))
    assert {name: column.tolist() for name, column in table.numbers.items()} == {"area": [-0.3, 6], "width": [1, 4]}
    assert (table.labels, table.dropped, len(table)) == (("train", "test"), 0, 2)
    assert column_names(csv) == ["width", "height", "part", "area"]


def test_only_the_used_columns_must_be_numbers(csv: Path) -> None:
    """Unused columns may contain quoted texts with line breaks; reported line numbers are those of the file."""
    written(csv, 'note,x\n"a, b\nc",1\n,2\n"",z\n')
    with pytest.raises(ValueError, match=r"^ingots\.csv, line 5, column 'x': must be a number"):
        read_table(csv, ["x"])
    written(csv, 'note,x\n"a, b\nc",1\n,2\n')
    assert read_table(csv, ["x"]).numbers["x"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: must be a header with the columns' names, but has nothing"),
        ("1,2.5\n3,4\n", "line 1: must be a header with the columns' names, but has only numbers"),
        ("width;area\n1;2\n", "line 1: must have commas between columns, but is 'width;area'"),
        ("width,area,width\n1,2,3\n", "line 1: must name each column once, but has 'width' 2 times"),
        ("weight,area\n1,2\n", "line 1: must have a column 'width', but has none; the nearest name is 'weight'"),
        ("width,area\n1,2\n3\n", "line 3: must have 2 fields, as the header has, but has 1; the file may be partial"),
        ("width,area\n1,2,3\n", "line 2: must have 2 fields, as the header has, but has 3; the file may be partial"),
        ('width,area\n1,"2\n', "line 2: must be CSV, but unexpected end of data"),
        ('width,area\n"1,5",2\n', "line 2, column 'width': must be a number with a decimal point, but is '1,5'"),
        ("width,area\n1,2\n1_000,2\n", "line 3, column 'width': must be a number with a decimal point, but is '1_000'"),
        ("width,area\n١,2\n", "line 2, column 'width': must be a number with a decimal point, but is '١'"),
        ("width,area\n1,wide\n", "line 2, column 'area': must be a number with a decimal point, but is 'wide'"),
        ("größe,area\n1,2\n".encode("latin-1"), "line 1: must be UTF-8, but has the byte 0xf6; save it as UTF-8"),
        (b"width,area\n1,2\n\xff,2\n", "line 3: must be UTF-8, but has the byte 0xff; save it as UTF-8"),
    ],
)
def test_invalid_files_are_refused(csv: Path, content: str | bytes, message: str) -> None:
    """An invalid file is refused in one line, with or without dropping of rows."""
    for missing in ("refuse", "drop"):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole message is compared)
            read_table(written(csv, content), ["width", "area"], missing=missing)
        assert str(caught.value) == f"ingots.csv, {message}"


@pytest.mark.parametrize("cell", ["", " ", "NA", "n/a", "null", "None", "nan", "+nan", "-Infinity", "1e999"])
def test_missing_numbers_are_refused_or_dropped_and_counted(csv: Path, cell: str) -> None:
    """The first missing number is named, with a count; dropped rows are counted, and lose their labels."""
    written(csv, f"x,part,y\n1,train,2\n{cell},train,{cell}\n3,test,4\n5,test,{cell}\n")
    with pytest.raises(ValueError, match=r"line 3, column 'x': must be a finite number, but is .*: 2 of 4\."):
        read_table(csv, ["x", "y"])
    table = read_table(csv, ["x", "y"], label="part", choices=("train", "test"), missing="drop")
    assert table.numbers["x"].tolist() == [1, 3]
    assert (table.labels, table.dropped) == (("train", "test"), 2)
    assert read_table(csv, ["x"], missing="drop").dropped == 1


def test_labels_are_among_the_choices(csv: Path) -> None:
    """An unknown label is named with its line."""
    written(csv, "x,part\n1,train\n2,holdout\n")
    message = r"^ingots\.csv, line 3, column 'part': must be one of train, test, but got 'holdout'$"
    with pytest.raises(ValueError, match=message):
        read_table(csv, ["x"], label="part", choices=("train", "test"))
