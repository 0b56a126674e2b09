"""Tables, page and files of a search: results on fresh seeds, and the search's own values apart."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import yaml

from study.console import Console
from study.reports import FORMATS, Findings, brief_sections, page, print_section, write_report
from study.reports.figures.names import SEARCH
from study.reports.search import names as search_names
from study.reports.search import tables as search_tables
from study.reports.search.tables import MOST_CANDIDATES
from tasks.arithmetic import ArithmeticTask
from tests.study.builders import report_of, search_of


def columns(table):
    """Return the texts of a table's columns by title."""
    return {column.title: list(column.texts) for column in table.columns}


@pytest.fixture(name="write")
def _write(tmp_path):
    """Return a function that writes the report of a search, or, with ``search=None``, of a study."""

    def write(folder="report", formats=tuple(kind for kind in FORMATS if kind != "pdf"), **changes):
        search, rows = search_of(**changes) if "search" not in changes else (None, search_of()[1])
        report = replace(report_of(rows.summaries), rows=rows, search=search)
        return {path.name: path for path in write_report(tmp_path / folder, report, formats)}

    return write


@pytest.fixture(name="section")
def _section():
    """Return a function that renders a page without figures and returns its search section, or an empty text."""

    def section(search, rows):
        text = page.page(replace(report_of(rows.summaries), rows=rows, search=search), [])
        return "".join(re.findall(r'<section[^>]* id="search">.*?</section>', text, re.DOTALL))

    return section


def test_winners_stand_with_their_choices_and_fresh_rates():
    """A row for each confirmed candidate: choices to three digits, the search's value and seeds, the fresh interval."""
    search, rows = search_of(winners=(11, 6))
    table = columns(search_tables.winners_table(search, rows))
    assert table["candidate"] == ["#11", "#6"]
    assert table["model"] == ["NMU", "NMU"]
    assert table["learning rate"] == [f"{search.candidates[n].params['learning_rate']:.3g}" for n in (11, 6)]
    assert table["in the search: success rate, lower end"] == ["0.92, 40 seeds", "0.50, 5 seeds"]
    assert table["by fresh seeds: success rate"] == ["0.90 [0.83, 0.94]", "0.89 [0.81, 0.94]"]
    assert table["fresh seeds"] == ["100", "100"]


def test_fresh_rates_are_shown_for_any_objective():
    """A search for short times also shows the success rates of its winners."""
    search, rows = search_of(["time_to_success"])
    table = columns(search_tables.winners_table(search, rows))
    assert table["by fresh seeds: success rate"] == ["0.90 [0.83, 0.94]"]
    (text,) = table["by fresh seeds: iterations to success, mean"]
    assert re.fullmatch(r"[\d.]+k \[[\d.]+k, [\d.]+k\]", text)


@pytest.mark.usefixtures("figures")
def test_different_trials_of_search_and_fresh_seeds_are_noted(write):
    """Only the search's solved-at includes unsolved trials: page, Markdown and captions say so."""
    objectives = ["success_rate", "solved_at", "sparsity_error"]
    text = search_names.objectives_note(search_of(objectives)[0], ArithmeticTask.metrics)
    assert text.startswith("For solved at and sparsity error the search takes the geometric mean of all trials")
    search = search_of(["success_rate", "time_to_success"])[0]
    assert search_names.objectives_note(search, ArithmeticTask.metrics) == ""
    files = write(objectives=objectives, formats=("html", "md"))
    assert files["report.html"].read_text().count(text) == 3  # the section and two captions
    assert text in files["report.md"].read_text()


def test_all_candidates_are_listed_with_the_front_set_off():
    """Each candidate has its row, with rounds counted from one; a value that doesn't apply is a dash."""
    search, _ = search_of(winners=(11,))
    table = columns(search_tables.candidates_table(search))
    assert len(table["candidate"]) == 30
    assert table["round"][:1] + table["round"][-1:] == ["1", "3"]
    assert table["NMU: λ̂"][1] == "–"  # NAC•
    assert [i for i, text in enumerate(table["front"]) if text] == [11]
    assert table["front"][11] == "confirmed"


def test_the_table_lists_part_of_very_many_candidates(section):
    """The table has 500 candidates, the front among them, and the page names the file with all."""
    search, rows = search_of(count=MOST_CANDIDATES + 100, winners=(11, 577))
    table = columns(search_tables.candidates_table(search))
    assert len(set(table["candidate"])) == MOST_CANDIDATES
    assert {"#11", "#577"} <= set(table["candidate"])
    text = section(search, rows)
    assert f"{MOST_CANDIDATES} of the candidates are listed, all of the front among them; candidates.csv" in text
    assert len(search_tables.candidates_rows(search).rows) == MOST_CANDIDATES + 100


def test_the_page_summarises_the_search():
    """Sampler, candidates, rounds, impossible suggestions, budget and fresh seeds are shown."""
    search, _ = search_of()
    assert search_tables.progress_note(search) == (
        "TPE, Optuna 5.0.0 suggested 30 candidates in 3 rounds, and 2 impossible settings. They took 600 of 600 "
        "trials, 5 to 40 seeds each. 1 of them was run again with 100 fresh seeds, on which no decision of the search "
        "depends: only these say how good it is."
    )
    going_on, _ = search_of(winners=())
    assert search_tables.progress_note(going_on).endswith(
        "The search is running; at its end, its best candidates are run again with 100 fresh seeds each."
    )
    none_yet, _ = search_of(count=0, winners=())
    assert "suggested 0 candidates" in search_tables.progress_note(none_yet)


def test_importance_is_a_line():
    """The most important comes first; an unknown importance is omitted."""
    search, _ = search_of(["success_rate", "time_to_success"])
    assert search_tables.importance_line(search) == (
        "Parameter importance (PED-ANOVA, mean over the objectives): learning rate 0.50, λ end 0.30, NMU: λ̂ 0.15, "
        "model 0.05."
    )
    assert search_tables.importance_line(search_of(importance={})[0]) == ""


def print_search(console: Console, *args: Any, **options: Any) -> None:
    search, rows = search_of(*args, **options)
    for section in brief_sections(Findings(name="", question="", rows=rows, search=search)):
        print_section(console, section)


def test_the_terminal_shows_winners_and_importance():
    """Each winner is a column, so that no line wraps."""
    console = Console(width=100, record=True, file=io.StringIO())
    print_search(console, ["success_rate", "time_to_success"], winners=(11, 6))
    lines = console.export_text().splitlines()
    assert next(line.split() for line in lines if line.startswith("candidate")) == ["candidate", "#11", "#6"]
    fresh = next(line for line in lines if line.startswith("by fresh seeds: success rate"))
    assert re.findall(r"0\.\d\d \[0\.\d\d, 0\.\d\d\]", fresh) == ["0.90 [0.83, 0.94]", "0.89 [0.81, 0.94]"]
    assert any(line.startswith("Parameter importance") for line in lines)


def test_the_terminal_shows_the_first_of_many_winners():
    """Six winners are printed, and then the number of those that only the files have."""
    console = Console(width=200, record=True, file=io.StringIO())
    print_search(console, winners=tuple(range(9)))
    text = console.export_text()
    assert "#5" in text
    assert "#6" not in text
    assert "... and 3 more, in the files" in text


@pytest.mark.usefixtures("figures")
def test_the_page_has_the_search_before_the_results(write):
    """Winners, file and candidates share a section before the results; the results don't explain candidates."""
    text = write()["report.html"].read_text()
    places = [text.index(f'id="{name}"') for name in ("search", "results", "more-figures", "figure-search-importance")]
    assert places == sorted(places)
    assert [text.count(f'id="figure-{name}"') for name in SEARCH] == [1, 0, 1, 1, 1]
    assert "study: demo-winner" in text
    section = text[places[0] : places[1]]
    assert section.count("<tr data-row=") == 1 + 30
    assert section.count('class="marked"') == 1


@pytest.mark.usefixtures("figures")
def test_a_report_of_a_search_has_its_files_and_a_study_takes_them_away(write):
    """winner.yaml is unchanged, candidates.csv has full precision; a later report without a search removes both."""
    files = write()
    assert {f"{name}.png" for name in SEARCH if name != "search-front"} <= set(files)
    assert yaml.safe_load(files["winner.yaml"].read_text()) == {"study": "demo-winner", "seeds": [40, 41]}
    table = list(csv.DictReader(io.StringIO(files["candidates.csv"].read_text())))
    assert list(table[0]) == [
        "candidate", "round", "model", "learning_rate", "sparsity_end", "NMU.sparsity_strength", "seeds",
        "value_success_rate", "front", "confirmed",
    ]  # fmt: skip
    assert table[1]["NMU.sparsity_strength"] == ""
    assert float(table[7]["value_success_rate"]) == 7 / 12
    assert [row["candidate"] for row in table if row["confirmed"] == "true"] == ["11"]
    markdown = files["report.md"].read_text()
    assert files["winner.yaml"].read_text() in markdown
    assert r"| #11 |" in markdown.replace("\\#", "#")
    assert not {"winner.yaml", "candidates.csv", "search-history.png"} & set(write(search=None))
    assert not any(files[name].exists() for name in ("winner.yaml", "candidates.csv", "search-history.png"))


def test_one_format_writes_the_winners_file_alone(write):
    """--format yaml writes only the study file of the winner."""
    assert set(write(formats=["yaml"])) == {"winner.yaml"}
    assert set(write("none", formats=["yaml"], winners=())) == set()


@pytest.mark.usefixtures("figures")
def test_a_running_search_reports_no_winner(write):
    """The report has the search's progress and figures; winners, their file and figures of rows are omitted."""
    files = write(winners=())
    assert "winner.yaml" not in files
    assert {name.removesuffix(".png") for name in files if name.endswith(".png")} == set(SEARCH) - {"search-front"}
    text = files["report.html"].read_text()
    assert "The search is running" in text
    assert "confirmed candidates" not in text


def test_before_the_first_candidate_there_is_a_report(write):
    """A search without candidates is reported without figures and candidates.csv."""
    files = write(count=0, winners=(), importance={})
    assert not [name for name in files if name.endswith(".png")]
    assert "candidates.csv" not in files
    assert "The search is running" in files["report.html"].read_text()


def test_the_same_search_gives_the_same_bytes(write):
    """Two reports of the same search are equal byte by byte."""
    sought_too = {"objectives": ["success_rate", "sparsity_error"], "winners": (11, 6)}
    formats = ("html", "md", "csv", "yaml")
    first, second = (write(folder, formats=formats, **sought_too) for folder in "ab")
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes(), name


def test_user_texts_are_escaped(section):
    """The winner's file repeats names from the study file: on the page they are text."""
    search, rows = search_of(file="question: </code><script>alert(1)</script>\n")
    text = section(search, rows)
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert section(None, rows) == ""


def test_thinned_candidates_are_spread_evenly():
    """The front is kept whole if there is room; the others are taken at equal steps, in order."""
    search, _ = search_of(count=100, winners=(50, 99))
    numbers = [candidate.number for candidate in search_names.selected(search, 10)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 10
    assert {0, 50, 99} <= set(numbers)
    assert max(b - a for a, b in pairwise(numbers)) < 20
    assert len(search_names.selected(search, 1)) == 1
