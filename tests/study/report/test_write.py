"""Laws of a report's files."""

from __future__ import annotations

import csv
import io
import stat
from html.parser import HTMLParser

import pytest
from rich.console import Console

from study.records import CELL_FIELDS
from study.report import FORMATS, compare, comparisons_table, summaries_table, write_report
from study.report.files import STATISTICS_COLUMNS

HOSTILE = '_<script>alert("x")</script> & [bold]*|` $x^ --> ]]>'


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@pytest.fixture(name="write")
def _write(demo, tmp_path):
    """Write the demo's report."""

    def write(folder="report", **changes):
        summaries, labels = demo
        content = {
            "name": "demo",
            "question": "How often?",
            "summaries": summaries,
            "labels": labels,
            "comparison": [],
            "provenance": [{"git_commit": "abc", "packages": {"torch": "2.13.0"}, "dirty": False}],
            "notes": ["a note"],
            "command": "study report demo",
        }
        paths = write_report(tmp_path / folder, **content | changes)
        return {path.name: path for path in paths}

    return write


def test_the_report_is_the_files_it_names(write, tmp_path):
    """Every file returned is there, readable, and nothing else is left in the folder."""
    files = write()
    assert set(files) == {name for kind in FORMATS.values() for name in kind} - {"comparison.csv"}
    assert {path.name for path in (tmp_path / "report").iterdir()} == set(files)
    assert all(path.stat().st_mode & stat.S_IRUSR and path.stat().st_size for path in files.values())


def test_the_same_input_gives_the_same_bytes(write):
    """Two reports of the same results are equal byte for byte."""
    first, second = write("a"), write("b")
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes(), name


def test_cells_csv_has_every_hyperparameter_and_statistic_in_full(write, demo):
    """A spreadsheet gets ASCII names and numbers that read back exactly."""
    summaries, _ = demo
    rows = list(csv.DictReader(io.StringIO(write()["cells.csv"].read_text())))
    assert list(rows[0]) == ["cell_id", "label_schedule", *CELL_FIELDS, *STATISTICS_COLUMNS]
    for row, s in zip(rows, summaries, strict=True):
        assert row["cell_id"] == s.cell_id
        assert row["model"] == s.cell.model
        assert row["model"].isascii()
        assert int(row["pending"]) == s.pending
        assert row["complete"] == str(s.complete).lower()
        assert float(row["success_rate_upper"]) == s.success_rate_interval[1]
        assert row["solved_at_mean"] == ("" if s.solved_at_mean is None else repr(s.solved_at_mean))


def test_a_comparison_adds_a_file_and_a_later_report_takes_it_away(write, published_cell, summaries_of):
    """comparison.csv is there when something was compared, and no stale one stays."""
    summaries = summaries_of((published_cell("NMU"), {"solved": 50, "unsolved": 50}))
    files = write(summaries=summaries, labels={}, comparison=compare(summaries))
    (row,) = csv.DictReader(io.StringIO(files["comparison.csv"].read_text()))
    assert (row["solved"], row["published_solved"], row["verdict"]) == ("50", "94", "differs")
    text = Page(files["report.html"].read_text()).text
    assert "NMU: 50/100 differs from the published 94/100" in text
    assert "ICLR 2020" in text
    assert "comparison.csv" not in write()
    assert not files["comparison.csv"].exists()


def test_the_page_needs_nothing_else(write):
    """No script, no link, no image, no address is fetched: the page is one file."""
    page = Page(write()["report.html"].read_text())
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "svg" in page.tags
    fetched = [value for name, value in page.attributes if name in ("src", "href", "xlink:href", "action")]
    assert all(value.startswith("#") for value in fetched)


def test_the_page_says_what_there_is_and_what_is_missing(write):
    """Question, counts, missing trials, notes, provenance and the command are on the page."""
    text = Page(write()["report.html"].read_text()).text
    for sentence in (
        "How often?",
        "7 trials not yet done",
        "1 trial crashed",
        "in 1 cell of 9",
        "a note",
        "2.13.0",
        "study report demo",
        "2/10",
    ):
        assert sentence in text


def test_the_page_says_that_trials_were_stopped(write, published_cell, summaries_of):
    """stop: when_decided is confessed; without it nothing is said."""
    cell = published_cell("NMU", stop="when_decided")
    summaries = summaries_of((cell, {"solved": 3}))
    assert "when_decided was on" in write(summaries=summaries, labels={})["report.html"].read_text()
    assert "when_decided was on" not in write()["report.html"].read_text()


def test_names_cannot_become_markup(write, demo):
    """Whatever a name holds is text on the page, in Markdown and in the terminal."""
    summaries, labels = demo
    hostile = {
        cell_id: {axis: HOSTILE + label for axis, label in axes.items()} for cell_id, axes in labels.items()
    }
    files = write(
        name=HOSTILE,
        question=HOSTILE,
        labels=hostile,
        notes=[HOSTILE],
        command=HOSTILE,
        provenance=[{HOSTILE: {HOSTILE: [HOSTILE]}}],
    )
    page = Page(files["report.html"].read_text())
    assert "script" not in page.tags
    assert page.text.count(HOSTILE) >= 8
    assert "<script>" not in files["report.md"].read_text()
    assert "<script>" not in files["figure.svg"].read_text()
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(summaries_table(summaries, hostile, title=HOSTILE))
    assert HOSTILE in console.export_text()


def test_the_terminal_shows_only_what_varies(demo):
    """Constants are no columns; a cell that lacks trials shows done of planned."""
    summaries, labels = demo
    console = Console(width=200, record=True, file=io.StringIO())
    table = summaries_table(summaries, labels)
    console.print(table)
    text = console.export_text()
    assert [str(column.header) for column in table.columns][:3] == ["model", "schedule", "hidden units"]
    assert "2/10" in text
    assert "0.80 [0.49, 0.94]" in text
    assert "learning rate" not in text


def test_the_terminal_shows_the_comparison(published_cell, summaries_of):
    """Ours, theirs, p and verdict stand in one row."""
    compared = compare(summaries_of((published_cell("NMU"), {"solved": 50, "unsolved": 50})))
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(comparisons_table(compared, {}))
    text = console.export_text()
    assert all(word in text for word in ("50/100", "94/100", "< 0.001", "differs"))


def test_nothing_is_no_report(write, tmp_path):
    """Without a cell there is nothing to write, and nothing is."""
    with pytest.raises(ValueError, match="at least one cell"):
        write(summaries=[])
    assert not (tmp_path / "report").exists()


def test_a_report_that_fails_leaves_the_old_one(write, monkeypatch):
    """A file is replaced whole: when the disk refuses, the old file stands and no draft is left."""
    files = write()
    before = files["report.html"].read_bytes()

    def refuse(self, target):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write(question="another")
    assert files["report.html"].read_bytes() == before
    assert not [path for path in files["report.html"].parent.iterdir() if path.name.startswith(".")]
