"""The files of a report."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import stat
from dataclasses import replace
from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from matplotlib.figure import Figure

from study.arrow import cell_columns
from study.console import Console
from study.errors import InputError
from study.reports import (
    FORMATS,
    Findings,
    brief_sections,
    cell_rows,
    print_section,
    summaries_table,
    with_published,
    write_report,
)  # fmt: skip
from study.reports.figures.inline import inline, panels
from study.reports.figures.style import INK, Drawn, Tips, render
from study.reports.files import statistics_columns
from tests.study.builders import contrasts_of, listed, published_cell, report_of, summaries_of

HOSTILE = '_<script>alert("x")</script> & [bold]*|` $x^ --> ]]> {{ 1 }} {% raw %}'


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


def trials_of(text):
    """Read the trials that a page gives its script."""
    (content,) = re.findall(r'id="trials">(.*?)</script>', text)
    return json.loads(content)


@pytest.fixture(name="write")
def _write(demo, tmp_path):
    """Return a function that writes the demo's report, or that of other summaries."""

    def write(folder="report", summaries=None, labels=None, formats=tuple(FORMATS), is_ours=False, **changes):
        arguments = demo if summaries is None else (summaries, labels or {})
        if labels is not None:
            arguments = (arguments[0], labels)
        report = report_of(*arguments, **changes)
        return {path.name: path for path in write_report(tmp_path / folder, report, formats, is_ours=is_ours)}

    return write


@pytest.mark.usefixtures("figures")
def test_the_report_is_the_files_it_names(write, tmp_path):
    """Every returned file exists and is readable, and the folder has no others."""
    files = write()
    assert set(files) <= {name for kind in FORMATS.values() for name in kind} - {"comparison.csv"}
    tables = {"report.html", "report.md", "cells.csv", "cells.parquet", "cells.tex", "tests.csv"}
    assert set(files) >= tables | {f"figure.{kind}" for kind in ("png", "svg")}
    assert {path.name for path in (tmp_path / "report").iterdir()} == {*files, ".report.json"}
    assert all(path.stat().st_mode & stat.S_IRUSR and path.stat().st_size for path in files.values())


@pytest.mark.usefixtures("figures")
def test_the_same_input_gives_the_same_bytes(write):
    """Two reports of the same results are equal byte by byte."""
    first, second = write("a"), write("b")
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes(), name


def test_cells_csv_has_every_hyperparameter_and_statistic_in_full(write, demo):
    """A spreadsheet gets ASCII names and exact numbers."""
    summaries, _ = demo
    rows = list(csv.DictReader(io.StringIO(write()["cells.csv"].read_text())))
    assert list(rows[0]) == ["cell_id", "label_schedule", *cell_columns(), *statistics_columns(summaries)]
    for row, s in zip(rows, summaries, strict=True):
        assert row["cell_id"] == s.cell_id
        assert row["model"] == s.cell.model
        assert row["model"].isascii()
        assert int(row["pending"]) == s.pending
        assert row["complete"] == str(s.complete).lower()
        assert float(row["success_rate_upper"]) == s.success_rate_interval[1]
        assert row["solved_at_mean"] == ("" if s.solved_at_mean is None else repr(s.solved_at_mean))


def test_tests_csv_has_every_test(write, demo):
    """Each trend, pair and log-rank test of the report is a row with all digits."""
    summaries, labels = demo
    tests = contrasts_of(cell_rows(summaries, labels))
    rows = list(csv.DictReader(io.StringIO(write()["tests.csv"].read_text())))
    pairs, times = [row for row in rows if row["first"]], [row for row in rows if row["test"] == "log-rank"]
    assert len(rows) == len(tests.trends) + len(tests.slopes) + len(tests.pairs) + len(tests.speeds)
    assert [float(row["p_adjusted"]) for row in pairs] == [p.p_adjusted for p in tests.pairs]
    assert [float(row["lower"]) for row in pairs] == [p.interval[0] for p in tests.pairs]
    assert [float(row["statistic"]) for row in times] == [s.statistic for s in tests.speeds]


def test_a_comparison_adds_a_file_and_a_later_report_removes_it(write):
    """comparison.csv exists only after a comparison; a stale one is removed."""
    summaries = summaries_of((published_cell("NMU"), {"solved": 50, "unsolved": 50}))
    files = write(summaries=summaries)
    (row,) = csv.DictReader(io.StringIO(files["comparison.csv"].read_text()))
    assert (row["solved"], row["other_solved"], row["verdict"]) == ("50", "94", "differs")
    text = Page(files["report.html"].read_text()).text
    assert "NMU: 50/100 differs from the published 94/100" in text
    assert "ICLR 2020" in text
    assert "Published times and sparsity errors of these cells aren't comparable" in text
    assert "comparison.csv" not in write()
    assert not files["comparison.csv"].exists()


def test_files_of_others_are_neither_replaced_nor_removed(write, tmp_path):
    """A report changes only the files listed as its own, even if others have similar names."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "cells.csv").write_text("mine")
    with pytest.raises(InputError, match=r"has cells\.csv, which its \.report\.json doesn't list"):
        write("results", formats=["csv"])
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"cells.csv": "mine"}
    (folder / "cells.csv").unlink()
    write("results", formats=["csv"])
    (folder / "comparison.csv").write_text("mine")
    write("results", formats=["csv"])
    assert (folder / "comparison.csv").read_text() == "mine"
    summaries = summaries_of((published_cell("NMU"), {"solved": 50, "unsolved": 50}))
    with pytest.raises(InputError, match=r"comparison\.csv"):
        write("results", formats=["csv"], summaries=summaries)
    (folder / "comparison.csv").unlink()
    assert "comparison.csv" in write("results", formats=["csv"], summaries=summaries)
    (folder / "comparison.csv").write_text("changed by hand")
    write("results", formats=["csv"])
    assert (folder / "comparison.csv").read_text() == "changed by hand"


def test_a_report_without_a_list_is_replaced_in_the_store(write, tmp_path):
    """A report without the list of its files is replaced only in the store's own folder."""
    folder = tmp_path / "old"
    write("old", formats=["csv"])
    (folder / ".report.json").unlink()
    (folder / "comparison.csv").write_text("stale")
    with pytest.raises(InputError):
        write("old", formats=["csv"])
    write("old", formats=["csv"], is_ours=True)
    assert not (folder / "comparison.csv").exists()
    write("old", formats=["csv"])


@pytest.mark.usefixtures("figures")
def test_the_page_needs_nothing_else(write):
    """No link, image or address is fetched, and only the page's own script runs: the page is one file."""
    text = write()["report.html"].read_text()
    page = Page(text)
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "svg" in page.tags
    fetched = [value for name, value in page.attributes if name in ("src", "href", "xlink:href", "action")]
    assert all(value.startswith("#") for value in fetched)


def test_the_page_shows_counts_and_missing_trials(write):
    """Question, counts, missing trials, notes, provenance and the command are on the page."""
    text = Page(write()["report.html"].read_text()).text
    for sentence in (
        "How often?",
        "7 trials not yet done",
        "1 trial failed and left no result",
        "in 1 cell of 9",
        "a note",
        "2.13.0",
        "study report demo",
        "2/10",
    ):
        assert sentence in text


def test_the_page_says_that_trials_were_stopped(write):
    """The page states stop: when_decided if the study has it."""
    cell = published_cell("NMU", stop="when_decided")
    summaries = summaries_of((cell, {"solved": 3}))
    assert "when_decided was on" in write(summaries=summaries)["report.html"].read_text()
    assert "when_decided was on" not in write()["report.html"].read_text()


@pytest.mark.usefixtures("figures")
def test_names_cannot_become_markup(write, demo):
    """Names are text on the page, in Markdown and in the terminal."""
    summaries, labels = demo
    hostile = {cell_id: {axis: HOSTILE + label for axis, label in axes.items()} for cell_id, axes in labels.items()}
    files = write(
        name=HOSTILE,
        question=HOSTILE,
        labels=hostile,
        notes=[HOSTILE],
        command=HOSTILE,
        provenance=[{HOSTILE: {HOSTILE: [HOSTILE]}}],
    )
    page = Page(files["report.html"].read_text())
    assert page.tags.count("script") == 1
    assert page.text.count(HOSTILE) >= 8
    assert "<script>" not in files["report.md"].read_text()
    assert "<script>" not in files["figure.svg"].read_text()
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(summaries_table(cell_rows(summaries, hostile), title=HOSTILE))
    assert HOSTILE in console.export_text()


def test_names_in_markdown_are_escaped(write):
    """A name written like an image or a link stays text."""
    text = write(name="![x](http://a.invalid/b.png)", notes=["[y](c)"])["report.md"].read_text()
    assert r"\!\[x\](http://a.invalid/b.png)" in text
    assert r"\[y\](c)" in text


def test_only_a_figures_colours_and_ids_become_the_pages():
    """Ids, styles and colours change in tags only; similar texts stay, and comments are removed."""
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot(title="#262626 url(#b)")
    axes.plot([0, 1], [0, 1], color=INK)
    tips = Tips()
    tips.add(axes, 0.5, 0.5, '#262626 url(#a) id="c" style="fill: #ffffff"')
    drawing = inline(Drawn("one", "#262626", "url(#d)", figure, tips))
    page = Page(drawing)
    assert '#262626 url(#a) id="c" style="fill: #ffffff"' in page.text
    assert ("aria-label", "#262626") in page.attributes
    assert "<!--" not in drawing
    assert "style" not in {name for name, _ in page.attributes}
    styles = re.fullmatch(r"<svg[^>]*><style>(.*?)</style>.*", drawing, re.DOTALL)[1]
    assert "stroke: var(--ink)" in styles
    assert INK not in styles
    assert {value for name, value in page.attributes if name == "class"} >= set(re.findall(r"\.(one-\d+){", styles))
    ids = {value for name, value in page.attributes if name == "id"}
    assert all(value.startswith("one-") for value in ids)
    used = {value[1:] for name, value in page.attributes if name == "xlink:href"}
    clips = {value[5:-1] for name, value in page.attributes if name == "clip-path"}
    assert used
    assert clips
    assert ids == used | clips | {"one-figure_1"}


def test_parts_of_a_figure_do_not_depend_on_which_files_were_made():
    """Panels and legend entries are cut where they are drawn, whatever the dots per inch of an earlier file."""
    boxes = []
    for kinds in ([], ["svg"], ["svg", "png"]):
        figure = Figure(figsize=(4, 2), layout="constrained")
        for axes in figure.subplots(1, 2):
            axes.plot([0, 1], [0, 1], label="a name")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center")
        drawn = Drawn("one", "title", "caption", figure)
        for kind in kinds:
            render(drawn, kind)
        boxes.append(panels(drawn))
    assert boxes[0] == boxes[1] == boxes[2]
    assert [len(part) for part in boxes[0]] == [2, 1]


def test_a_row_without_trials_has_no_link(write, demo, dashboard):
    """The page's script gets an address for each cell with trials, and none for a cell without."""
    trials = listed(demo[0])
    remaining = trials.filter(pc.not_equal(trials["row"], 1))
    text = write(trials=remaining, links=dashboard)["report.html"].read_text()
    expected = [dashboard.cell(s.cell_id) for s in demo[0]]
    assert trials_of(text)["cells"] == [expected[0], None, *expected[2:]]


def test_a_trials_error_stays_inside_the_script(write, demo):
    """An error that looks like the end of the script, or the start of a comment, is passed on unchanged."""
    trials = listed(demo[0])
    error = "</script><!--<b>it & that"
    column = trials.schema.get_field_index("error")
    trials = trials.set_column(column, "error", pa.array([error] * len(trials)))
    text = write(trials=trials)["report.html"].read_text()
    assert Page(text).tags.count("script") == 2
    assert set(trials_of(text)["errors"].values()) == {error}


def test_the_terminal_shows_only_varying_columns(demo):
    """Constants aren't columns; an incomplete cell shows done of planned."""
    summaries, labels = demo
    console = Console(width=200, record=True, file=io.StringIO())
    table = summaries_table(cell_rows(summaries, labels))
    console.print(table)
    text = console.export_text()
    assert [str(column.header) for column in table.columns][:3] == ["model", "schedule", "hidden units"]
    assert "2/10" in text
    assert "0.80 [0.49, 0.94]" in text
    assert "learning rate" not in text


SKEWED = {
    "3.0M [1.3M, 9.6M]": (3.04e6, (1.32e6, 9.59e6), r"3.0\;{}^{+6.6}_{-1.7}"),
    "850 [121, 3,761]": (850.0, (121.0, 3761.0), r"850\;{}^{+2{,}911}_{-729}"),
}


@pytest.mark.parametrize("text", SKEWED)
def test_an_interval_is_written_by_its_ends_wherever_people_read(write, text):
    """Page, Markdown and terminal have both ends, and LaTeX the distances to them, not a half-width."""
    mean, interval, reach = SKEWED[text]
    (summary,) = summaries_of((published_cell("NMU"), {"solved": 7, "unsolved": 13}))
    summaries = [replace(summary, solved_at_mean=mean, solved_at_interval=interval)]
    files = write(summaries=summaries, formats=("html", "md", "latex"))
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(summaries_table(cell_rows(summaries, {})))
    markdown = files["report.md"].read_text().replace("\\", "")
    for output in (console.export_text(), markdown, files["report.html"].read_text()):
        assert text in output
        assert "±" not in output
    assert reach in files["cells.tex"].read_text()


def test_the_terminal_shows_the_comparison():
    """The terminal has both rates, the p-value and the verdict."""
    summaries = summaries_of((published_cell("NMU"), {"solved": 50, "unsolved": 50}))
    console = Console(width=200, record=True, file=io.StringIO())
    against = with_published(summaries)
    for section in brief_sections(Findings(name="", question="", rows=cell_rows(summaries, {}), against=against)):
        print_section(console, section)
    text = console.export_text()
    assert all(word in text for word in ("50/100", "94/100", "< 0.001", "differs"))


def test_a_report_without_cells_writes_nothing(write, tmp_path):
    """A report without cells raises ValueError and writes no file."""
    with pytest.raises(ValueError, match="at least one row"):
        write(summaries=[])
    assert not (tmp_path / "report").exists()


def test_a_report_that_fails_leaves_the_old_one(write, monkeypatch):
    """Files are replaced atomically: on a full disk the old file stays, and no draft is left."""
    files = write()
    before = files["report.html"].read_bytes()

    def refuse(self, target):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write(question="another")
    assert files["report.html"].read_bytes() == before
    hidden = {path.name for path in files["report.html"].parent.iterdir() if path.name.startswith(".")}
    assert hidden == {".report.json"}
