"""Published results of any lab, as CSV files of an installed package."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from pathlib import Path

import pytest

from study.comparisons import published
from study.comparisons.published import PublishedCell, PublishedTables, published_sources, repeated_cell
from study.errors import InputError
from study.records import Cell
from tests.study.source.builders import installed, write

TABLE = """\
source,task,model,width,label,solved,seeds,solved_at_mean,solved_at_mean_lower,solved_at_mean_upper,test_loss_mean
Doe 2025,lab:Sum,lab:mlp,8,,41,50,1200,1000,1500,0.12
Doe 2025,lab:Sum,lab:mlp,16,late,50,50,,,,0.08
"""
WIDE = Cell("lab:Sum", "lab:mlp", {"width": 16, "label": "late", "depth": 2})


def test_a_cell_repeats_a_row_with_its_values() -> None:
    """A row matches a cell in task, model and each hyperparameter; an empty field matches any value."""
    tables = PublishedTables.of_texts({"sums.csv": TABLE})
    wide = tables.choose(WIDE, [WIDE])
    assert wide is not None
    assert (wide.source, wide.table, wide.solved, wide.seeds) == ("Doe 2025", "sums", 50, 50)
    assert (wide.solved_at_mean, wide.solved_at_interval) == (None, None)
    assert wide.metrics == {"test_loss": (0.08, None)}
    narrow = tables.choose(WIDE.replace(width=8.0), [])
    assert narrow is not None
    assert (narrow.solved_at_mean, narrow.solved_at_interval) == (1200, (1000, 1500))
    for other in (WIDE.replace(width=4), WIDE.replace(label="early"), Cell("lab:Sum", "lab:mlp", {"width": 16})):
        assert tables.choose(other, []) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,model,solved,seeds\n", "a.csv: published results lack the columns source"),
        (TABLE.replace("41,50", "many,50"), r"a.csv, line 2: solved must be a whole number, but is 'many'"),
        (TABLE.replace("41,50", ",50"), r"a.csv, line 2: solved must be a whole number, but is ''"),
        (
            TABLE.replace("41,50", "51,50"),
            r"a.csv, line 2: must have 1 <= seeds and solved <= seeds, but has solved 51 and seeds 50",
        ),
        (
            TABLE.replace("41,50", "0,0"),
            r"a.csv, line 2: must have 1 <= seeds and solved <= seeds, but has solved 0 and seeds 0",
        ),
        (TABLE.replace("41,50", "4.5,50"), r"a.csv, line 2: solved must be a whole number, but is '4\.5'"),
        (TABLE.replace("1200", "soon"), r"a.csv, line 2: solved_at_mean must be a number, but is 'soon'"),
        (TABLE.replace(",0.08", ""), r"a.csv, line 3: must have a field for each of 11 columns"),
        (TABLE.replace(",0.08", ",0.08,9"), r"a.csv, line 3: must have a field for each of"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, message: str) -> None:
    """A missing column or an invalid field is an error with the line."""
    with pytest.raises(InputError, match=message):
        PublishedTables.of_texts({"a.csv": text})


def test_a_table_that_is_not_utf8_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package's file in another encoding is an error with its name."""
    site = write(tmp_path, latinlab__published__="")
    (site / "latinlab" / "published" / "sums.csv").write_bytes(TABLE.replace("Doe", "Dö").encode("latin-1"))
    monkeypatch.syspath_prepend(site)
    with pytest.raises(InputError, match=r"sums.csv: published results must be UTF-8: .*0xf6"):
        PublishedTables.of_package(importlib.import_module("latinlab.published"))


def test_cells_without_published_seeds_repeat_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A published cell of 0 seeds has no rate to compare with."""

    class Empty:
        sources = ("Doe 2025",)

        def choose(self, cell: Cell, cells: Collection[Cell]) -> PublishedCell:
            return PublishedCell(source="Doe 2025", table="t", solved=0, seeds=0)

    monkeypatch.setattr(published, "_offered", lambda: [Empty()])
    assert repeated_cell(WIDE, [WIDE]) is None


def test_a_package_offers_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package offers tables by an entry point with its name; the built-in results stay."""
    site = write(tmp_path, tablelab__published__="")
    (site / "tablelab" / "published" / "sums.csv").write_text(TABLE)
    entry = "[seeded_study.published]\ntablelab = tablelab.published\n"
    monkeypatch.syspath_prepend(installed(site, entry_points=entry, name="tablelab"))
    repeated = repeated_cell(WIDE, [WIDE])
    assert repeated is not None
    assert repeated.solved == 50
    assert "Doe 2025" in published_sources()
    assert len(published_sources()) == 2
