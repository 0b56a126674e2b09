"""The index of a store in a real browser."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from docs.pictures import SCHEMES, SIZES
from study.reports import cell_rows, headline, with_study
from study.reports.beside import beside
from study.reports.index_page import FailureEntry, IndexEntry, StoreIndex, index_page
from study.reports.strip import strip
from study.reports.write import write_page
from study.results.serve import ServedFile, served
from study.summaries.heartbeat import CellTraining, CellValue, Heartbeat
from tests.study.builders import contrasts_of, published_cell, summaries_of, table_of

in_every_scheme = pytest.mark.parametrize("scheme", SCHEMES)
at_every_width = pytest.mark.parametrize("width", SIZES)

_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_FOCUS = """(() => {
  const focused = document.activeElement;
  return focused.id || (focused.closest("label") ?? focused).textContent.trim();
})()"""
_IN_VIEW = "document.dispatchEvent(new Event('visibilitychange'))"


def entry_of(name, summaries, labels, **changes):
    """Build the entry of a study, as `study.results.index` does."""
    rows = cell_rows(summaries, labels)
    content = {
        "question": "How often?",
        "finding": headline(rows, contrasts_of(rows)),
        "trials": sum(s.seeds for s in summaries),
        "done": sum(s.seeds - s.pending for s in summaries),
        "cells": len(summaries),
        "strip": strip(rows),
        "beside": beside(rows, summaries),
        "written_at": datetime.now(UTC) - timedelta(hours=2),
        "folder": name,
        "report": f"{name}/report/report.html",
        "dashboard": "http://127.0.0.1:5000/#/experiments/1/runs",
    }
    return IndexEntry(name=name, **content | changes)


@pytest.fixture(name="others")
def _others():
    """Return the cells of another study: three of the demo at another learning rate, and one that the demo lacks."""
    counts = {"solved": 3, "unsolved": 7}
    shared = [published_cell("NAC-mul", hidden_size=size, iterations=100_000) for size in (2, 3, 10, 20)]
    return summaries_of(*((cell.replace(learning_rate=0.01), counts) for cell in shared))


@pytest.fixture(name="entries")
def _entries(demo, others):
    """Return entries of each kind: complete, with a name as wide as a phone, without results, unreadable."""
    return [
        entry_of("demo", *demo),
        entry_of("other", others, {}, question='<script>alert("x")</script><b>bold</b>?'),
        entry_of("long" * 30, others, {}, question="question" * 60, finding="finding" * 60, failed=3),
        IndexEntry(name="new", question="What?", trials=100),
        IndexEntry(name="broken", error="/a/long/path" * 30 + "\n  line 1: a mistake"),
    ]


@pytest.fixture(name="write")
def _write(tmp_path):
    """Return a function that writes a page of entries and returns its path."""

    def write(entries, refresh_s=1000.0, **changes):
        path = tmp_path / "index.html"
        content = StoreIndex(**{"where": "studies", "entries": entries} | changes)
        # a page that updates itself may read the file at any moment
        return write_page(path, index_page(content, datetime.now(UTC), refresh_s=refresh_s))

    return write


def tick(page, *names):
    """Tick studies."""
    for name in names:
        page.get_by_label(f"compare {name}", exact=True).check()


def comparison(page):
    """Read the visible rows of the comparison."""
    return [row.locator("td").all_inner_texts() for row in page.locator("#comparison tbody tr").all()]


@in_every_scheme
@at_every_width
def test_the_page_opens_from_disk_in_silence(visit, write, entries, scheme, width):
    """The page gives no errors, warnings or requests in light and dark, on laptop and phone; foreign text is text."""
    visited = visit(write(entries), width=width, scheme=scheme)
    assert visited.page.get_by_text('<script>alert("x")</script><b>bold</b>?').is_visible()
    assert visited.page.get_by_text("line 1: a mistake").is_visible()
    tick(visited.page, "demo", "other")
    assert visited.page.locator("#comparison").is_visible()
    assert visited.complaints == []
    assert visited.requests == []


@at_every_width
def test_the_page_is_as_wide_as_the_screen(visit, write, entries, width):
    """Only the comparison's table scrolls sideways, whatever the length of names, questions and errors."""
    page = visit(write(entries), width=width).page
    assert page.evaluate(_OVERFLOW) == 0
    tick(page, "demo", "long" * 30)
    assert page.locator("#comparison table").is_visible()
    assert page.evaluate(_OVERFLOW) == 0


def test_two_ticked_studies_stand_side_by_side(visit, write, entries, demo, others):
    """The cells compared by `study report --compare` are rows of both; the others are in one column."""
    visited = visit(write(entries))
    tick(visited.page, "demo", "other")
    compared = with_study(demo[0], others, "other", (table_of(demo[0]), table_of(others)))
    rows = comparison(visited.page)
    matched_rows = [row for row in rows if len(row) == 7 and row[1] and row[4]]
    assert len(matched_rows) == len(compared.comparisons) == 3
    names = [cell_rows(*demo).name(c.row) for c in compared.comparisons]
    assert [row[0] for row in matched_rows] == names
    for row, c in zip(matched_rows, compared.comparisons, strict=True):
        assert row[2].startswith(f"{c.summary.success_rate:.2f} [")
        assert row[5].startswith("0.30 [")
    assert [row[0] for row in rows if len(row) == 7 and not row[1]] == ["hidden units 20"]
    assert sum(len(row) == 7 and not row[4] for row in rows) == 6
    assert "learning rate 0.001 in demo, 0.01 in other" in visited.page.locator("#comparison").inner_text()
    assert visited.page.locator("#comparison code").inner_text() == "study report demo --compare other"


def test_equal_cells_are_matched_whatever_else_a_study_has(visit, write, demo):
    """A study that shares some exact cells with another, and has other sweeps, is matched on just these."""
    summaries, labels = demo
    subset = entry_of("some", summaries[4:6], labels)
    page = visit(write([entry_of("demo", summaries, labels), subset], option="--store 'a b'")).page
    tick(page, "demo", "some")
    matched_rows = [row for row in comparison(page) if len(row) == 7 and row[1] and row[4]]
    assert (
        len(matched_rows)
        == len(
            with_study(summaries, summaries[4:6], "some", (table_of(summaries), table_of(summaries[4:6]))).comparisons
        )
        == 2
    )
    assert page.locator("#comparison code").inner_text() == "study report demo --compare some --store 'a b'"


def test_any_number_of_ticked_studies_stand_in_one_table(visit, write, demo, others):
    """A row is a cell, with columns for each study; studies match by shared cells, or else by sweeps."""
    summaries, labels = demo
    ticked = {"demo": demo, "other": (others, {}), "some": (summaries[4:6], labels)}
    page = visit(write([entry_of(name, *cells) for name, cells in ticked.items()])).page
    tick(page, "some", "demo", "other")  # columns are in the order of the ticks
    rows = [row for row in comparison(page) if len(row) == 10]
    names = [cell_rows(*demo).name(row) for row in range(len(summaries))]
    by_name = {row[0]: [bool(row[1]), bool(row[4]), bool(row[7])] for row in rows}
    compared = with_study(summaries, others, "other", (table_of(summaries), table_of(others))).comparisons
    with_other = {names[c.row] for c in compared}
    assert len(rows) == len(by_name) == len(names) + 1
    for row, name in enumerate(names):
        assert by_name[name] == [row in (4, 5), True, name in with_other]
    assert by_name["hidden units 20"] == [False, False, True]
    text = page.locator("#comparison").inner_text()
    assert "learning rate 0.001 in some and demo, 0.01 in other" in text
    assert page.locator("#comparison code").count() == 0  # a test compares two
    page.get_by_role("button", name="Untick all").click()
    assert page.locator("#comparison").is_hidden()


def test_ticks_explain_themselves(visit, write, entries):
    """No tick shows nothing; one tick asks for others; studies without results can't be ticked."""
    page = visit(write(entries)).page
    section, status = page.locator("#comparison"), page.locator("#ticked")
    assert page.locator(".tick input").count() == 3
    assert section.is_hidden()
    assert status.is_hidden()
    tick(page, "demo")
    assert "demo is ticked" in status.inner_text()
    tick(page, "other")
    assert section.is_visible()


def test_all_controls_work_by_keyboard(visit, write, entries):
    """Tab leads to each study's named tick, then to its links, tags and details."""
    entries = [replace(entries[0], tags=("paper",), failed=1, failures=[FailureEntry(1, "no luck")]), entries[1]]
    page = visit(write(entries)).page
    focused = []
    for _ in range(14):
        page.keyboard.press("Tab")
        focused.append(page.evaluate(_FOCUS))
        if focused[-1] in ("compare demo", "compare other"):
            page.keyboard.press("Space")
    demo_links = ["demo", "paper", "1 trial failed of demo", "Report of demo", "MLflow runs of demo"]
    assert focused[:11] == ["filter", "state", "sort", "reversed", "paper 1", "compare demo", *demo_links]
    assert focused[11] == "compare other"
    assert page.locator("#comparison").is_visible()
    page.get_by_role("link", name="Compared: demo and other").press("Enter")
    assert page.locator("#comparison").evaluate("e => e.getBoundingClientRect().top < innerHeight")


def test_links_lead_to_report_and_runs(visit, write, entries):
    """Each study's links name the study; a study without report or runs has no link."""
    page = visit(write(entries)).page
    assert page.get_by_role("link", name="Report of demo").get_attribute("href") == "demo/report/report.html"
    runs = page.get_by_role("link", name="MLflow runs of demo")
    assert runs.get_attribute("href") == "http://127.0.0.1:5000/#/experiments/1/runs"
    assert page.locator("li[data-study=new] a").count() == 0


@pytest.fixture(name="many")
def _many(entries):
    """Return entries of many studies, each with its own name, number, share, age and set of tags."""
    now = datetime.now(UTC)
    return [
        replace(
            entries[3],
            name=f"study-{n}",
            question=f"Question {n}?",
            trials=30 + n,
            done=n * n % 12,
            failed=n % 5,
            tags=tuple(tag for tag, every in (("even", 2), ("third", 3)) if n % every == 0),
            holder="process 12 on here" if n == 7 else "",
            written_at=now - timedelta(hours=n * 5 % 12) if n else None,
        )
        for n in range(12)
    ]


def names(page):
    """Return the numbers of the visible studies, in order."""
    visible = page.locator("li[data-study]:visible").all()
    return [int(item.get_attribute("data-study").removeprefix("study-")) for item in visible]


def test_studies_are_filtered_by_words_states_and_tags(visit, write, many):
    """Studies with every word, the state and every tag stay; clicking a tag filters, another click releases it."""
    page = visit(write(many)).page
    search, state = page.get_by_role("searchbox"), page.get_by_label("Show")
    search.fill("QUESTION 1")
    assert names(page) == [1, 10, 11]
    assert page.get_by_text("3 of 12").is_visible()
    search.fill("")
    for word, wanted in {"running": [7], "failures": [n for n in range(12) if n % 5], "unreadable": []}.items():
        state.select_option(word)
        assert names(page) == wanted
    state.select_option("")
    page.locator("li[data-study=study-2]").get_by_role("button", name="even").click()
    assert names(page) == [0, 2, 4, 6, 8, 10]
    page.locator("#tags").get_by_role("button", name="third").click()
    assert names(page) == [0, 6]
    assert page.locator("#tags [aria-pressed=true]").count() == 2
    for tag in ("even", "third"):
        page.locator("#tags").get_by_role("button", name=tag).click()
    assert len(names(page)) == 12


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("name", lambda entry: int(entry.name.removeprefix("study-"))),
        ("newest", lambda entry: -(entry.written_at.timestamp() if entry.written_at else 0)),
        ("trials", lambda entry: -entry.trials),
        ("done", lambda entry: -entry.done / entry.trials),
        ("failed", lambda entry: -entry.failed),
    ],
)
def test_studies_are_sorted(visit, write, many, order, key):
    """Sorting is stable and reversible, and a reload keeps it."""
    page = visit(write(many)).page
    page.get_by_label("Sort by").select_option(order)
    wanted = [int(entry.name.removeprefix("study-")) for entry in sorted(many, key=key)]
    assert names(page) == wanted
    page.get_by_label("reversed").check()
    assert names(page) == wanted[::-1]
    page.reload()
    assert names(page) == wanted[::-1]


def test_the_axis_of_a_strip_is_read_without_a_pointer(visit, write, entries):
    """The strip's limits are at the ends of its axis, and the unit is above the axis."""
    page = visit(write(entries), width=390).page
    figure = page.locator("li[data-study=demo] figure")
    assert figure.locator("figcaption").inner_text() == "success rate (share of trials)"
    top, bottom = figure.locator(".axis span").all()
    assert (top.inner_text(), bottom.inner_text()) == ("1.00", "0.00")
    box = figure.locator("svg").bounding_box()
    assert abs(top.bounding_box()["y"] - box["y"]) < 8
    assert abs(bottom.bounding_box()["y"] + bottom.bounding_box()["height"] - box["y"] - box["height"]) < 8


def test_failures_and_what_trains_now_are_reported(visit, write, entries):
    """Reasons with their counts lead to logs; each cell in training shows its progress."""
    cells = (CellTraining("lr 0.1", 4, 0.25), CellTraining("lr 0.01", 1, None))
    beat = Heartbeat(
        "demo", 7, 90, 5, 2, 0, 0, left_s=65.0, workers=2, at=datetime.now(UTC), metric="loss",
        values=(CellValue("lr 0.1", 0.5, 4),), cells=3, training=cells,
    )  # fmt: skip
    failures = [FailureEntry(3, "ValueError: <b>", "files/0c/log.txt"), FailureEntry(1, "time limit")]
    entry = replace(entries[0], failed=4, failures=failures, more_failures=2, holder="process 12", heartbeat=beat)
    page = visit(write([entry])).page
    lines = page.locator(".now li").all_inner_texts()
    assert lines == ["lr 0.1: 4 trials, 25% of the iterations, loss 0.5 so far", "lr 0.01: 1 trial", "and 1 more cell"]
    assert page.get_by_text("2 packs in training, 1 min 5 s left").is_visible()
    assert page.get_by_text("7 of 90 trials").is_visible()
    page.get_by_text("4 trials failed").click()
    reasons = page.locator(".failures li").all_inner_texts()
    assert [reason.split(" Log")[0] for reason in reasons[:2]] == ["3 trials: ValueError: <b>", "1 trial: time limit"]
    assert "2 more reasons" in reasons[2]
    assert page.locator(".failures a").get_attribute("href") == "demo/files/0c/log.txt"


@pytest.fixture(name="serve")
def _serve(write):
    """Return a function that writes a page, serves it until the test ends, and returns its address."""
    with ExitStack() as stack:

        def serve(entries, **changes):
            path = write(entries, is_live=True, **changes)
            return f"http://127.0.0.1:{stack.enter_context(served(lambda _: ServedFile(path), 0))}/"

        yield serve


def test_a_served_page_follows_the_store(visit, write, serve, entries):
    """Updates appear without a reload, and the reader's settings are kept."""
    running = [replace(entries[0], holder="process 12", failed=1, failures=[FailureEntry(1, "no luck")]), *entries[1:]]
    visited = visit(serve(running, refresh_s=0.2))
    page = visited.page
    page.evaluate("document.body.dataset.mark = 'same'")
    page.get_by_text("1 trial failed").click()
    tick(page, "demo", "other")
    page.get_by_label("Sort by").select_option("name")
    page.get_by_role("searchbox").fill("o")
    page.get_by_role("link", name="Report of demo").focus()
    second = replace(entries[1], name="second", question="New?", tags=("paper",))
    write([second, replace(running[0], finding="Something new."), *entries[1:3]], is_live=True, refresh_s=0.2)
    expect(page.get_by_text("Something new.")).to_be_visible()
    expect(page.get_by_text("New?")).to_be_visible()
    assert page.locator("li[data-study]:visible").evaluate_all("items => items.map(item => item.dataset.study)") == [
        "demo", "long" * 30, "other", "second",
    ]  # fmt: skip
    assert page.get_by_role("searchbox").input_value() == "o"
    expect(page.get_by_role("link", name="Report of demo")).to_be_focused()
    expect(page.get_by_text("no luck")).to_be_visible()
    expect(page.locator("#comparison")).to_be_visible()
    expect(page.get_by_label("compare other", exact=True)).to_be_checked()
    expect(page.locator("#tags").get_by_role("button", name="paper")).to_be_visible()
    write([replace(entries[0], finding="The end."), entries[1]], is_live=True, refresh_s=0.2)
    expect(page.get_by_text("The end.")).to_be_visible()
    expect(page.locator(".badge.running")).to_have_count(0)
    expect(page.locator("header")).to_contain_text("2 studies")
    assert page.locator("body").get_attribute("data-mark") == "same"
    assert visited.complaints == []


def test_a_page_without_its_server_shows_a_notice(visit, write, serve, entries):
    """The page keeps its content, and continues when its server answers again."""
    page = visit(serve(entries, refresh_s=0.2)).page
    page.context.set_offline(True)
    expect(page.get_by_text("No answer from study ui")).to_be_visible()
    assert page.get_by_role("heading", name="demo").is_visible()
    write([replace(entries[0], finding="Back.")], is_live=True, refresh_s=0.2)
    page.context.set_offline(False)
    expect(page.get_by_text("Back.")).to_be_visible()
    expect(page.get_by_text("No answer from study ui")).to_be_hidden()


def test_a_page_opened_as_a_file_asks_for_nothing(visit, write, entries):
    """A live page that is opened as a file reads the same, and makes no request when it comes into view."""
    visited = visit(write([replace(entries[0], holder="process 12")], is_live=True))
    visited.page.evaluate(_IN_VIEW)
    visited.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert visited.page.locator(".badge.running").is_visible()
    assert visited.requests == visited.complaints == []
