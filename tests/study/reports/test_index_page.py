"""The index as text: outside text isn't markup, and equal content gives equal bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from study.errors import InputError
from study.reports import cell_rows
from study.reports.beside import MOST_ROWS, beside
from study.reports.index_page import IndexEntry, StoreIndex, index_page, write_index
from tests.study.builders import published_cell, summaries_of

AT = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
EVIL = '<script>alert("x")</script>&\x1b[2J'


def test_outside_text_is_escaped() -> None:
    """Names, questions, findings, errors, addresses and compared values are text on the page."""
    texts = dict.fromkeys(("name", "question", "finding", "error", "holder"), EVIL)
    content = {"same": {EVIL: EVIL}, "keys": [], "titles": {EVIL: EVIL}, "columns": [], "rows": []}
    entry = IndexEntry(**texts, report='r"><script>', beside=content)
    page = index_page(StoreIndex(where=EVIL, entries=[entry], option=EVIL, dashboard='d"><script>'), AT)
    plain = index_page(StoreIndex(where="", entries=[], dashboard=""), AT)
    assert page.count("<script") == plain.count("<script") == 2
    assert "&lt;script&gt;alert" in page


def test_the_page_loads_nothing() -> None:
    """The page's policy allows only the page's own style and script."""
    page = index_page(StoreIndex(where="", entries=[]), AT)
    assert "default-src 'none'" in page
    assert "script-src 'sha256-" in page
    assert "<link" not in page


def test_a_page_is_written_in_place_of_an_index_only(tmp_path: Path) -> None:
    """An earlier index is replaced; any other file is named and kept. Control characters are escaped."""
    path = tmp_path / "index.html"
    write_index(path, StoreIndex(where=EVIL, entries=[]), AT)
    assert "\x1b" not in path.read_text()
    write_index(path, StoreIndex(where="there", entries=[]), AT)
    assert "there" in path.read_text()
    path.write_text("<!doctype html>mine")
    with pytest.raises(InputError, match="move it away"):
        write_index(path, StoreIndex(where="", entries=[]), AT)
    assert path.read_text() == "<!doctype html>mine"


def test_compared_cells_have_a_limit() -> None:
    """Each cell has its id, name, varying values and numbers as texts; too many cells have none of these."""
    of_sizes = summaries_of(*((published_cell(hidden_size=size), {"solved": 3, "unsolved": 1}) for size in (2, 3)))
    content = beside(cell_rows(of_sizes, {}), of_sizes)
    assert content is not None
    assert content["keys"] == ["hidden_size"]
    assert content["same"]["model"] == "NMU"
    assert content["columns"] == ["seeds", "success rate", "solved at iteration, median"]
    assert content["rows"][0] == [
        of_sizes[0].cell_id, "hidden units 2", ["2"], ["4", "0.75 [0.30, 0.95]", "11.0k"]
    ]  # fmt: skip
    many = of_sizes * (MOST_ROWS // 2) + of_sizes[:1]
    assert beside(cell_rows(of_sizes, {}), many) is None
