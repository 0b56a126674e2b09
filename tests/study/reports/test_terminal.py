"""Output on narrow terminals: columns may be left out, digits may not."""

from __future__ import annotations

import io
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from study.cli.standings import checks_table
from study.comparisons.comparison import with_published
from study.console import Console, ConsoleTable
from study.doctor.nodes import Check
from study.reports import Findings, brief_sections, cell_rows, print_section, summaries_table
from study.reports.table import comparison_table
from study.reports.terminal import section_table
from study.results.listing import presets_table
from tests.study.builders import demo, published_cell, search_of, summaries_of

WIDTHS = range(40, 201, 16)
LEFT_OUT = re.compile(r"left out: (.*); all columns need a width of (\d+)(?:, and (.*) has them)?", re.DOTALL)


def printed(content: Any, width: int, **options: Any) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, **options)
    if callable(content):
        content(console)
    else:
        console.print(content)
    return out.getvalue()


def numbers(text: str) -> Counter[str]:
    """Count the words with digits in a printed table, without the line on omitted columns."""
    text = LEFT_OUT.sub("", " ".join(text.split()))
    return Counter(word for word in re.findall(r"[^\s\[\]│┃]+", text) if re.search(r"\d", word))


def results() -> ConsoleTable:
    summaries, labels = demo()
    return summaries_table(cell_rows(summaries, labels), title="How often?")


def comparison() -> ConsoleTable:
    rows = cell_rows(summaries_of((published_cell("NMU"), {"solved": 50, "unsolved": 50})), {})
    return section_table(comparison_table(rows, with_published(rows.summaries)), "Against others", "comparison")


def search(console: Console) -> None:
    findings, rows = search_of(["success_rate", "time_to_success"], winners=(11, 6, 4))
    for section in brief_sections(Findings(name="", question="", rows=rows, search=findings)):
        print_section(console, section)


TABLES = {"results": results(), "comparison": comparison(), "presets": presets_table(), "search": search}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_is_cut_at_any_width(name: str, width: int) -> None:
    """Every number on a narrow terminal is one of the full table, and no line exceeds the terminal."""
    narrow, wide = printed(TABLES[name], width), printed(TABLES[name], 400)
    assert numbers(narrow) <= numbers(wide)
    assert max(map(cell_len, narrow.splitlines())) <= width
    assert "…" not in narrow


@pytest.mark.parametrize("name", ["results", "comparison", "presets"])
def test_omitted_columns_are_named(name: str) -> None:
    """Each title is in the table or in the line below it; the width named there shows every column."""
    table = TABLES[name]
    assert isinstance(table, ConsoleTable)
    titles = [str(column.header) for column in table.columns]
    assert LEFT_OUT.search(printed(table, 400)) is None
    lines = 0
    for width in WIDTHS:
        line = LEFT_OUT.search(" ".join(printed(table, width).split()))
        if line is None:
            continue
        lines += 1
        omitted, needed, elsewhere = line.groups()
        assert set(omitted.split("; ")) < set(titles)
        assert not {*titles[:1]} & set(omitted.split("; "))
        assert elsewhere
        assert width < int(needed)
        assert LEFT_OUT.search(printed(table, int(needed))) is None
        assert LEFT_OUT.search(" ".join(printed(table, int(needed) - 1).split()))
    assert lines


def test_rows_keep_their_names_and_rate_at_80_columns() -> None:
    """Identifying columns and the success rate are there, one line a row; the least important columns are not."""
    text = printed(results(), 80)
    assert re.search(r"^NMU +late mild +10 .* 0\.\d\d \[0\.\d\d, 0\.\d\d\]", text, re.MULTILINE)
    line = LEFT_OUT.search(" ".join(text.split()))
    assert line is not None
    assert {"seconds a trial", "solved at iteration, mean"} <= set(line[1].split("; "))


def test_without_room_for_a_table_rows_are_blocks() -> None:
    """On a terminal too narrow for names and success rate, each row is a block with a line for each column."""
    text = printed(results(), 40)
    assert LEFT_OUT.search(text) is None
    assert text.count("success rate") == 9
    assert re.search(r"^success rate +0\.\d\d \[0\.\d\d, 0\.\d\d\]", text, re.MULTILINE)
    assert numbers(text) == numbers(printed(results(), 400))


def test_a_pipe_gets_the_whole_table() -> None:
    """A console without a width folds texts at its default, and tables have all columns, titles in a line."""
    table = results()
    text = printed(table, 60, has_own_width=False)
    assert numbers(text) == numbers(printed(table, 400))
    assert max(map(cell_len, text.splitlines())) > 100
    assert LEFT_OUT.search(text) is None
    assert "solved at iteration, median" in text
    presets = printed(presets_table(), 150, has_own_width=False)
    assert max(map(cell_len, presets.splitlines())) == 150
    assert numbers(presets) == numbers(printed(presets_table(), 400))
    assert max(map(cell_len, printed("word " * 40, 60, has_own_width=False).splitlines())) <= 60


def test_findings_of_the_doctor_are_folded() -> None:
    """A long address is folded, with the check and its state beside it."""
    check = Check("store", "failed", "can't reach s3://" + "bucket/" * 12, "")
    lines = printed(checks_table([check]), 60).splitlines()
    assert lines[1].startswith("store  failed  ")
    assert "".join(line[15:].strip() for line in lines[1:]).endswith("bucket/" * 3)


texts = st.text(st.sampled_from("ab1.,k- "), min_size=1, max_size=30).filter(str.strip)


@given(
    st.lists(st.tuples(texts, st.booleans(), st.integers(0, 3)), min_size=1, max_size=9),
    st.data(),
    st.integers(30, 200),
)
def test_any_table_fits_any_width(columns: list[tuple[str, bool, int]], data: st.DataObject, width: int) -> None:
    """With any columns, lines fit, mandatory columns stay, and words aren't broken."""
    rows = data.draw(st.lists(st.tuples(*(texts for _ in columns)), max_size=3))
    table = ConsoleTable(box=None, pad_edge=False)
    for title, is_number, rank in columns:
        table.add_column(title, justify="right" if is_number else "left", rank=rank)
    for row in rows:
        table.add_row(*row)
    narrow = printed(table, width)
    assert max(map(cell_len, narrow.splitlines()), default=0) <= width
    every = Counter(
        word for part in [*(title for title, *_ in columns), *(t for row in rows for t in row)] for word in part.split()
    )
    line = LEFT_OUT.search(" ".join(narrow.split()))
    shown = Counter(LEFT_OUT.sub("", " ".join(narrow.split())).split())
    if max(len(word) for word in every) <= 10:  # longer ones don't fit into blocks
        assert set(shown) <= set(every)
        stay = [i for i, (_, _, rank) in enumerate(columns) if not rank]
        assert set(shown) >= {word for row in rows for i in stay for word in row[i].split()}
        if line is None:
            assert set(shown) >= {word for row in rows for text in row for word in text.split()}
