"""The option `--columns`: published tables have exactly the requested statistics."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from study.errors import InputError
from study.reports import cell_rows, check_columns, write_report
from study.reports.latex import latex
from study.reports.table import chosen_table, summaries_table
from tests.study.builders import demo, report_of

Read = Callable[[Sequence[str]], dict[str, str]]


@pytest.fixture
def write(tmp_path: Path) -> Read:
    """Return a function that writes the demo's LaTeX and Markdown with given columns, and returns their texts."""

    def read(names: Sequence[str]) -> dict[str, str]:
        files = write_report(tmp_path / "out", report_of(*demo(), columns=names), ["latex", "md"])
        return {path.name: path.read_text() for path in files}

    return read


def rows_of(tex: str) -> list[list[str]]:
    """Return the cells of a LaTeX tabular's rows; a header cell is repeated for each column that it spans."""
    rows = []
    for line in tex.splitlines():
        if line.endswith(" \\\\") and "seeds that have" not in line:
            parts = re.split(r"\s*&\s*", line.removesuffix(" \\\\"))
            rows.append(
                [part for part in parts for _ in range(int((re.findall(r"multicolumn\{(\d)", part) or [1])[0]))]
            )
    return rows


def columns_of(tex: str) -> str:
    match = re.search(r"\\begin\{tabular\}\{@\{\}(\w+)@\{\}\}", tex)
    assert match is not None
    return match[1]


@pytest.mark.parametrize(
    ("names", "titles"),
    [
        ([], ["success rate", "solved at iteration, median", "solved at iteration, mean", "sparsity error"]),
        (["success_rate"], ["success rate"]),
        (["success_rate", "solved_at"], ["success rate", "solved at iteration, median", "solved at iteration, mean"]),
        (["sparsity_error_mean", "solved_at_mean"], ["sparsity error", "solved at iteration, mean"]),
        (["seeds", "failed", "finished"], ["seeds", "failed", "finished"]),
        (["time_to_success", "training_s"], ["iterations to success, mean up to 100k", "seconds a trial"]),
    ],
)
def test_tables_have_the_columns_that_were_chosen(write: Read, names: list[str], titles: list[str]) -> None:
    """Label columns stay, statistics follow in the given order; each row of LaTeX has as many cells."""
    files = write(names)
    head = next(line for line in files["report.md"].splitlines() if line.startswith("| model"))
    markdown = [cell.strip() for cell in head.strip("|").split("|")]
    assert markdown[:3] == ["model", "schedule", "hidden units"]
    assert markdown[3:] == titles or not names
    shape = columns_of(files["cells.tex"])
    assert shape == "llr" + "r" * (len(titles) if names else 2)
    assert {len(row) for row in rows_of(files["cells.tex"])} == {len(shape)}


def test_numbers_are_those_of_the_whole_table(write: Read) -> None:
    """A chosen column has the same texts as in the full table, in LaTeX and in Markdown."""
    few, more = (rows_of(write(names)["cells.tex"]) for names in (["solved_at_mean"], ["success_rate", "solved_at"]))
    assert [row[3] for row in few[-9:]] == [row[5] for row in more[-9:]]
    rows = cell_rows(*demo())
    usual = {column.name: column for column in summaries_table(rows).columns}
    assert chosen_table(rows, ["solved_at"]).columns[3:] == (usual["solved_at_median"], usual["solved_at_mean"])


def test_every_column_of_the_table_can_be_chosen() -> None:
    """LaTeX has each statistic of the page's table, under the same name."""
    rows = cell_rows(*demo())
    for column in summaries_table(rows, is_full=True).columns[len(rows.keys) :]:
        assert columns_of(latex(rows, command="x", names=[column.name])) == "llrr"


def test_unknown_columns_are_one_error() -> None:
    """The error names all unknown columns, each with the nearest name, and lists the available ones."""
    with pytest.raises(InputError) as raised:
        check_columns(cell_rows(*demo()), ["succes_rate", "seeds", "foo"])
    text = str(raised.value)
    assert "succes_rate: no such column; did you mean 'success_rate'?; foo: no such column; choose from seeds," in text
