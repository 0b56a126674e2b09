"""Laws of a store's index as a real browser shows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from docs.pictures import SCHEMES, SIZES
from study.reports import cell_rows, headline, with_study
from study.reports.beside import beside
from study.reports.index_page import IndexEntry, StoreIndex, index_page
from study.reports.strip import strip
from study.reports.write import write_page
from tests.study.builders import contrasts_of, published_cell, summaries_of, table_of

in_every_scheme = pytest.mark.parametrize("scheme", SCHEMES)
at_every_width = pytest.mark.parametrize("width", SIZES)

_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
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
        "report": f"{name}/report/report.html",
        "dashboard": "http://127.0.0.1:5000/#/experiments/1/runs",
    }
    return IndexEntry(name=name, **content | changes)


@pytest.fixture(name="others")
def _others():
    """Return the cells of another study: three of the demo's with another learning rate, and one that it lacks."""
    counts = {"solved": 3, "unsolved": 7}
    shared = [published_cell("NAC-mul", hidden_size=size, iterations=100_000) for size in (2, 3, 10, 20)]
    return summaries_of(*((cell.replace(learning_rate=0.01), counts) for cell in shared))


@pytest.fixture(name="entries")
def _entries(demo, others):
    """Return entries of each kind: whole, with a name as long as a phone is wide, without results, unreadable."""
    return [
        entry_of("demo", *demo),
        entry_of("other", others, {}, question='<script>alert("x")</script><b>bold</b>?'),
        entry_of("long" * 30, others, {}, question="question" * 60, finding="finding" * 60, failed=3),
        IndexEntry(name="new", question="What?", trials=100),
        IndexEntry(name="broken", error="/a/long/path" * 30 + "\n  line 1: a mistake"),
    ]


@pytest.fixture(name="write")
def _write(tmp_path):
    """Return what writes a page of entries and returns its path."""

    def write(entries, refresh_s=1000.0, **changes):
        path = tmp_path / "index.html"
        content = StoreIndex(**{"where": "studies", "entries": entries} | changes)
        # a page that follows a study may read the file at any moment
        return write_page(path, index_page(content, datetime.now(UTC), refresh_s=refresh_s))

    return write


def tick(page, *names):
    """Tick studies."""
    for name in names:
        page.get_by_label(f"compare {name}", exact=True).check()


def comparison(page):
    """Read the rows of the comparison, as they are shown."""
    return [row.locator("td").all_inner_texts() for row in page.locator("#comparison tbody tr").all()]


@in_every_scheme
@at_every_width
def test_the_page_opens_from_disk_in_silence(visit, write, entries, scheme, width):
    """No error, no warning and no request, in light and dark, on a laptop and on a phone; what is outside is text."""
    visited = visit(write(entries), width=width, scheme=scheme)
    assert visited.page.get_by_text('<script>alert("x")</script><b>bold</b>?').is_visible()
    assert visited.page.get_by_text("line 1: a mistake").is_visible()
    tick(visited.page, "demo", "other")
    assert visited.page.locator("#comparison").is_visible()
    assert visited.complaints == []
    assert visited.requests == []


@at_every_width
def test_the_page_is_as_wide_as_the_screen(visit, write, entries, width):
    """Nothing but the comparison's table scrolls sideways, whatever a name, a question or an error is."""
    page = visit(write(entries), width=width).page
    assert page.evaluate(_OVERFLOW) == 0
    tick(page, "demo", "long" * 30)
    assert page.locator("#comparison table").is_visible()
    assert page.evaluate(_OVERFLOW) == 0


def test_two_ticked_studies_stand_side_by_side(visit, write, entries, demo, others):
    """The cells that `study report --compare` compares are the rows of both, with their texts; others are in one."""
    visited = visit(write(entries))
    tick(visited.page, "demo", "other")
    compared = with_study(demo[0], others, "other", (table_of(demo[0]), table_of(others)))
    rows = comparison(visited.page)
    both = [row for row in rows if len(row) == 7 and row[1] and row[4]]
    assert len(both) == len(compared.comparisons) == 3
    names = [cell_rows(*demo).name(c.row) for c in compared.comparisons]
    assert [row[0] for row in both] == names
    for row, c in zip(both, compared.comparisons, strict=True):
        assert row[2].startswith(f"{c.summary.success_rate:.2f} [")
        assert row[5].startswith("0.30 [")
    assert [row[0] for row in rows if len(row) == 7 and not row[1]] == ["hidden units 20"]
    assert sum(len(row) == 7 and not row[4] for row in rows) == 6
    assert "learning rate 0.001 in demo, 0.01 in other" in visited.page.locator("#comparison").inner_text()
    assert visited.page.locator("#comparison code").inner_text() == "study report demo --compare other"


def test_equal_cells_are_matched_whatever_else_a_study_has(visit, write, demo):
    """A study with some of the very cells of another, and different sweeps, shares just these."""
    summaries, labels = demo
    some = entry_of("some", summaries[4:6], labels)
    page = visit(write([entry_of("demo", summaries, labels), some], option="--store 'a b'")).page
    tick(page, "demo", "some")
    both = [row for row in comparison(page) if len(row) == 7 and row[1] and row[4]]
    assert (
        len(both)
        == len(
            with_study(summaries, summaries[4:6], "some", (table_of(summaries), table_of(summaries[4:6]))).comparisons
        )
        == 2
    )
    assert page.locator("#comparison code").inner_text() == "study report demo --compare some --store 'a b'"


def test_ticks_say_what_they_do(visit, write, entries):
    """None shows nothing; one asks for another; three ask to untick one; studies without results have no tick."""
    page = visit(write(entries)).page
    section, status = page.locator("#comparison"), page.locator("#ticked")
    assert page.get_by_role("checkbox").count() == 3
    assert section.is_hidden()
    assert status.is_hidden()
    tick(page, "demo")
    assert status.inner_text() == "demo is ticked: tick the study to compare it with."
    tick(page, "other")
    assert section.is_visible()
    tick(page, "long" * 30)
    assert section.is_hidden()
    assert status.inner_text() == "3 studies are ticked, but two are compared: untick 1."


def test_ticks_are_reached_and_set_by_keyboard(visit, write, entries):
    """Tab leads to each study's tick, which has a name, then to its links; space ticks; a link leads to the table."""
    page = visit(write(entries)).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('label').innerText") == "compare demo"
    page.keyboard.press("Space")
    for _ in range(4):  # the name, the report, MLflow, the next tick
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('label').innerText") == "compare other"
    page.keyboard.press("Space")
    assert page.locator("#comparison").is_visible()
    page.get_by_role("link", name="Compared: demo and other").press("Enter")
    assert page.locator("#comparison").evaluate("e => e.getBoundingClientRect().top < innerHeight")


def test_links_lead_to_report_and_runs(visit, write, entries):
    """Each study's links say whose they are; a study that has none has no link."""
    page = visit(write(entries)).page
    assert page.get_by_role("link", name="Report of demo").get_attribute("href") == "demo/report/report.html"
    runs = page.get_by_role("link", name="MLflow runs of demo")
    assert runs.get_attribute("href") == "http://127.0.0.1:5000/#/experiments/1/runs"
    assert page.locator("li[data-study=new] a").count() == 0


def test_words_filter_studies(visit, write, entries):
    """Of many studies, those that have every word stay."""
    many = [replace(entries[3], name=f"study-{n}", question=f"Question {n}?", trials=30) for n in range(12)]
    page = visit(write(many)).page
    page.get_by_role("searchbox").fill("QUESTION 1")
    assert page.locator("li[data-study]:visible h2").all_inner_texts() == ["study-1", "study-10", "study-11"]
    assert page.get_by_text("3 of 12").is_visible()


def test_a_live_page_follows_a_running_study(visit, write, entries):
    """It shows what is written anew without being asked, and keeps ticks and focus; once nothing runs, it stays."""
    running = [replace(entries[0], holder="process 12 on here"), *entries[1:]]
    page = visit(write(running, is_live=True)).page
    tick(page, "demo", "other")
    write([replace(running[0], finding="Something new."), *running[1:]], is_live=True, refresh_s=0.2)
    page.evaluate(_IN_VIEW)
    expect(page.get_by_text("Something new.")).to_be_visible()
    expect(page.get_by_text("running", exact=True)).to_be_visible()
    expect(page.locator("#comparison")).to_be_visible()
    expect(page.get_by_label("compare other", exact=True)).to_be_focused()
    write(entries, is_live=True, refresh_s=0.2)
    expect(page.get_by_text("running", exact=True)).to_have_count(0)
    expect(page.get_by_label("compare demo", exact=True)).to_be_checked()


def test_a_page_that_is_not_live_stays(visit, write, entries):
    """A live page that comes into view loads itself again; one that nothing writes anew doesn't, whatever runs."""
    running = [replace(entries[0], holder="process 12 on here")]
    page = visit(write(running, is_live=True)).page
    with page.expect_event("load"):
        page.evaluate(_IN_VIEW)
    page = visit(write(running)).page
    page.evaluate("document.body.dataset.mark = 'same'")
    page.evaluate(_IN_VIEW)
    assert page.locator("body").get_attribute("data-mark") == "same"
