"""The report's page in a real browser."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from axe_playwright_python.sync_playwright import Axe

from docs.pictures import SCHEMES, SIZES
from study.records import Trial
from study.reports import write_report
from tests.study.builders import listed, published_cell, report_of, summaries_of

pytestmark = pytest.mark.usefixtures("figures")
in_every_scheme = pytest.mark.parametrize("scheme", SCHEMES)
at_every_width = pytest.mark.parametrize("width", SIZES)

_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Perceived brightness, 0..255, of the ink and of the paper.
_BRIGHTNESS = """() => ["color", "backgroundColor"].map(name => {
    const [red, green, blue] = getComputedStyle(document.body)[name].match(/[0-9.]+/g).map(Number);
    return 0.299 * red + 0.587 * green + 0.114 * blue;
})"""


@pytest.fixture(name="report")
def _report(demo, tmp_path, dashboard):
    """Write the demo's page, with a name and a note wider than a phone, and links that end in the trial."""
    report = report_of(
        *demo,
        name="demo_" + "long" * 30,
        provenance=[{"git_commit": "abc" * 30, "packages": {"torch": "2.13.0"}}],
        notes=["a " + "note" * 60],
        trials=listed(demo[0]),
        links=dashboard,
    )
    write_report(tmp_path, report, ["html"])
    return tmp_path / "report.html"


def results_of(page):
    """Find the table of results."""
    return page.locator("#results table.sortable")


def column(page, title):
    """Read a column of the visible results."""
    table = results_of(page)
    place = [text.strip() for text in table.locator("thead th").all_inner_texts()].index(title)
    return [row.locator("td").nth(place).inner_text() for row in table.locator("tbody tr[data-row]:visible").all()]


@in_every_scheme
@at_every_width
def test_the_page_opens_from_disk_in_silence(visit, report, scheme, width):
    """The page gives no errors, warnings or requests, in light and dark, on laptop and phone."""
    visited = visit(report, width=width, scheme=scheme)
    assert visited.page.get_by_role("heading", name="Results").is_visible()
    assert visited.complaints == []
    assert visited.requests == []


@at_every_width
def test_only_tables_and_figures_scroll_sideways(visit, report, width):
    """The document is as wide as the screen, whatever the names; the table scrolls within its frame."""
    page = visit(report, width=width).page
    assert page.evaluate(_OVERFLOW) == 0
    last = page.locator("#results table thead th").last
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate("window.scrollX") == 0


_PLACES = """box => [...box.querySelectorAll("tbody tr[data-row] > :is(.key, .name), thead :is(.key, .name)")]
    .filter(cell => getComputedStyle(cell).display !== "none" && getComputedStyle(cell).position === "sticky")
    .map(cell => [Math.round(cell.getBoundingClientRect().left - box.getBoundingClientRect().left), cell.innerText])"""
# The topmost element at the centre of each first label, and its background's opacity.
_ON_TOP = """box => [...box.querySelectorAll("tbody :is(.k0, .name)")].every(cell => {
    if (getComputedStyle(cell).display === "none") return true;
    const {left, top, width, height} = cell.getBoundingClientRect();
    const drawn = document.elementFromPoint(left + width / 2, top + height / 2);
    const [, , , opacity = 1] = getComputedStyle(cell).backgroundColor.match(/[0-9.]+/g).map(Number);
    return cell.contains(drawn) && opacity === 1;
})"""


_FIRST_MARK = """svg => {
    const mark = svg.closest("figure").querySelector(".tips circle");
    const at = new DOMPoint(mark.cx.baseVal.value, mark.cy.baseVal.value).matrixTransform(svg.getScreenCTM());
    return [at.x, at.y];
}"""


def scrolled(box, offset):
    """Scroll a table sideways, and wait until the page has handled it."""
    box.evaluate(
        """(box, left) => new Promise(seen => {
        const before = box.scrollLeft;
        box.scrollLeft = left;
        if (box.scrollLeft === before) seen();
        else box.addEventListener("scroll", () => requestAnimationFrame(seen), {once: true});
    })""",
        offset,
    )


@in_every_scheme
@at_every_width
def test_names_of_rows_stay_in_sight(visit, report, width, scheme):
    """While a table scrolls sideways, the first labels stay in place with an opaque background."""
    box = visit(report, width=width, scheme=scheme).page.locator("#results .scroll")
    box.scroll_into_view_if_needed()
    before = box.evaluate(_PLACES)
    assert {"NMU", "NAC•"} <= {text.split(" ")[0] for _, text in before}
    assert any("late mild" in text for _, text in before)
    for offset in (150, 400, 10_000):
        scrolled(box, offset)
        assert box.evaluate("box => box.scrollLeft") > 0
        assert box.evaluate(_PLACES) == before
        assert box.evaluate(_ON_TOP)


def test_on_a_phone_one_column_names_the_rows(visit, report):
    """One column has the texts of all identifying columns, and the first numbers are beside it."""
    page = visit(report, width=390).page
    names = results_of(page).locator("tbody td.name")
    assert names.first.is_visible()
    assert "NMU · late mild · hidden units 3" in names.all_inner_texts()
    assert not results_of(page).locator("td.key").first.is_visible()
    assert page.locator("#results .scroll").bounding_box()["width"] > 2 * names.first.bounding_box()["width"]


def test_on_a_phone_panels_stand_below_each_other(visit, report):
    """Each panel is as wide as the screen, with the legend above, and touching a point shows its value."""
    page = visit(report, width=390).page
    stack = page.locator("#figure-figure .stack")
    parts = [part.bounding_box() for part in stack.locator("> svg").all()]
    assert len(parts) == 3
    assert all(a["y"] + a["height"] <= b["y"] for a, b in pairwise(parts))
    assert all(part["width"] > 300 and part["x"] + part["width"] <= 390 for part in parts)
    entries = [entry.bounding_box() for entry in stack.locator(".entry").all()]
    assert entries
    assert all(entry["x"] + entry["width"] <= 390 and entry["height"] > 15 for entry in entries)
    stack.locator("> svg").first.scroll_into_view_if_needed()
    x, y = stack.locator("> svg").first.evaluate(_FIRST_MARK)
    page.mouse.move(x, y)
    assert "NMU, off, hidden units 2: 0.80" in page.locator(".tip").inner_text()


def test_a_long_table_keeps_its_head(visit, tmp_path):
    """While the table scrolls, its column titles stay above."""
    cells = [(published_cell(hidden_size=h), {"solved": 3, "unsolved": 2}) for h in range(1, 41)]
    write_report(tmp_path, report_of(summaries_of(*cells)), ["html"])
    page = visit(tmp_path / "report.html").page
    box, head = page.locator("#results .scroll"), page.locator("#results thead th").last
    box.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    assert box.evaluate("box => box.scrollTop") > 100
    assert abs(head.bounding_box()["y"] - box.bounding_box()["y"]) < 2


@in_every_scheme
@at_every_width
def test_axe_finds_no_barrier(visit, report, width, scheme):
    """The automated rules of WCAG 2.2, level AA, hold: contrast, names, roles, order, size of targets."""
    page = visit(report, width=width, scheme=scheme).page
    page.locator("button.open").first.click()
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    assert results.violations_count == 0, results.generate_report()


def test_figures_are_described_and_list_their_numbers(visit, report):
    """Screen readers get title, caption and the value of each point below the figure."""
    page = visit(report).page
    drawing = page.locator("#figure-figure svg").first
    assert drawing.get_attribute("aria-label") == "Success rate, solved at and sparsity error"
    caption = page.locator(f"#{drawing.get_attribute('aria-describedby')}")
    assert "Wilson" in caption.inner_text()
    numbers = page.locator("#figure-figure .numbers")
    numbers.locator("summary").click()
    assert any(text.startswith("NMU, off, hidden units 2: 0.80") for text in numbers.locator("li").all_inner_texts())


def test_a_table_scrolls_by_keyboard(visit, report):
    """A table's frame has a name, is reached by the tab key, and scrolls by the arrow keys."""
    page = visit(report, width=390).page
    box = page.get_by_role("region", name="results, one row a cell")
    box.focus()
    box.press("ArrowRight")
    page.wait_for_function("box => box.scrollLeft > 0", arg=box.element_handle())


def test_ink_and_paper_follow_the_reader(visit, report):
    """Colours follow the browser's light or dark setting with sufficient contrast; print is on white."""
    for scheme in SCHEMES:
        page = visit(report, scheme=scheme).page
        ink, paper = page.evaluate(_BRIGHTNESS)
        assert (ink < paper) == (scheme == "light")
        assert abs(ink - paper) > 128
        page.emulate_media(media="print", color_scheme=scheme)
        ink, paper = page.evaluate(_BRIGHTNESS)
        assert paper == 255
        assert ink < 64


def test_the_page_prints(visit, report):
    """Printed on A4 it is a PDF of a few pages."""
    pdf = visit(report).page.pdf(format="A4")
    assert pdf.startswith(b"%PDF-")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5


def test_print_shows_folded_and_filtered_parts(visit, report):
    """During printing all parts are open and all rows shown; afterwards the page is as before."""
    page = visit(report).page
    folded = page.locator("details:not([open])")
    before = folded.count()
    assert before > 0
    page.locator("#results").get_by_role("searchbox").fill("nmu mild")
    assert len(column(page, "schedule")) == 3
    page.emulate_media(media="print")
    for _ in range(2):  # a preview may begin again before it ends
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert folded.count() == 0
    assert len(column(page, "schedule")) == 9
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert folded.count() == before
    assert len(column(page, "schedule")) == 3
    page.evaluate("addEventListener('beforeprint', () => document.body.dataset.printed = 'yes')")
    page.pdf()
    assert page.locator("body").get_attribute("data-printed") == "yes"  # a browser announces printing
    assert folded.count() == before


_MORE_COLUMNS = """(table, count) => {
    for (const row of table.rows) for (let i = 0; i < count; i++) row.append(row.cells[6].cloneNode(true));
}"""


@pytest.mark.parametrize("columns", [0, 4])
def test_on_paper_a_table_that_is_too_wide_folds(visit, report, columns):
    """Nothing lies beyond the width that browsers fit on A4; a table that fits has one line a row."""
    page = visit(report).page
    page.set_viewport_size({"width": 1000, "height": 900})
    table = results_of(page)
    table.evaluate(_MORE_COLUMNS, columns)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert table.evaluate("table => table.scrollWidth") <= 1000
    lines = table.locator("tbody tr").first.evaluate(
        "row => row.offsetHeight / parseFloat(getComputedStyle(row).lineHeight)"
    )
    assert (lines > 2) is bool(columns)


def test_on_a_phone_an_edge_says_that_a_drawing_goes_on(visit, report):
    """The edge fades while content is hidden to the right."""
    box = visit(report, width=390).page.locator("#figure-survival .drawing.more")
    assert "linear-gradient" in box.evaluate("box => getComputedStyle(box).maskImage")
    scrolled(box, 10_000)
    assert box.count() == 0


def test_buttons_name_the_row_that_they_open(visit, report):
    """Screen readers get each button's row; no two buttons have the same name."""
    buttons = results_of(visit(report).page).locator("button.open")
    names = [button.get_attribute("aria-label") for button in buttons.all()]
    assert "show trials of NMU, off, hidden units 2" in names
    assert len(set(names)) == 9


def test_a_click_on_a_title_sorts_by_the_numbers_behind_the_text(visit, report, demo):
    """Order is ascending, then descending; missing numbers stay last, and rows keep their cells."""
    visited = visit(report)
    rates = sorted(s.success_rate for s in demo[0])
    header = results_of(visited.page).get_by_role("columnheader", name="success rate")
    for order, expected in (("ascending", rates), ("descending", rates[::-1])):
        header.get_by_role("button").click()
        assert header.get_attribute("aria-sort") == order
        assert [text.split()[0] for text in column(visited.page, "success rate")] == [f"{r:.2f}" for r in expected]
    times = (
        results_of(visited.page).get_by_role("columnheader", name="solved at iteration, median").get_by_role("button")
    )
    for _ in range(2):
        times.click()
        assert column(visited.page, "solved at iteration, median")[-1] == "–"
    times.press("Enter")  # by keyboard, too
    assert column(visited.page, "solved at iteration, median")[0] != "–"
    assert visited.complaints == []


def test_words_filter_rows(visit, report):
    """Every word must be in a row, in any column and case; the count shows the number of rows."""
    page = visit(report).page
    box = page.locator("#results").get_by_role("searchbox")
    box.fill("nmu MILD")
    assert column(page, "schedule") == ["late mild"] * 3
    assert page.locator("#results").get_by_role("status").inner_text() == "3 of 9"
    box.fill("")
    assert len(column(page, "schedule")) == 9


def test_a_row_opens_to_its_trials_with_links(visit, report, demo):
    """Each trial of the cell has its numbers and its run's address; a crash shows its reason as text."""
    summaries, _ = demo
    visited = visit(report)
    row = next(i for i, s in enumerate(summaries) if s.failed)
    button = results_of(visited.page).locator(f"tr[data-row='{row}'] button.open")
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    trials = results_of(visited.page).locator("tr.trials")
    lines = trials.locator("tbody tr").all_inner_texts()
    assert [line.split()[1] for line in lines] == ["solved", "solved", "failed"]
    assert "10,000" in lines[0]
    assert "it <crashed>" in lines[2]
    addresses = [link.get_attribute("href") for link in trials.locator("tbody a").all()]
    ids = [Trial(summaries[row].cell, seed).id for seed in range(2)]
    assert addresses == [f"http://127.0.0.1:5000/#/runs?trial={trial}&more=1" for trial in ids]
    cell = trials.get_by_role("link", name="All of them in MLflow").get_attribute("href")
    assert cell.endswith(f"cell={summaries[row].cell_id}")
    results_of(visited.page).get_by_role("columnheader", name="seeds").get_by_role("button").click()
    after = results_of(visited.page).locator(f"tr[data-row='{row}'] + tr")
    assert after.get_attribute("class") == "trials"
    button.click()
    assert trials.count() == 0
    assert visited.complaints == []


def test_points_of_a_figure_tell_their_values(visit, report):
    """The point nearest to the pointer shows its row and its value; away from all points nothing is shown."""
    page = visit(report).page
    figure = page.locator("figure svg").first
    figure.scroll_into_view_if_needed()
    mark = figure.locator(".tips > *").first.bounding_box()
    page.mouse.move(mark["x"] + mark["width"] / 2 + 2, mark["y"] + mark["height"] / 2)
    assert "NMU, off, hidden units 2: 0.80" in page.locator(".tip").inner_text()
    assert page.locator(".tip").is_visible()
    corner = figure.bounding_box()
    page.mouse.move(corner["x"] + 3, corner["y"] + 3)
    assert not page.locator(".tip").is_visible()


def test_links_within_the_page_lead_somewhere(visit, report):
    """Every reference to an id matches exactly one element."""
    page = visit(report).page
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(ids) == len(set(ids))
    named = page.evaluate("[...document.querySelectorAll('use')].map(use => use.getAttribute('xlink:href').slice(1))")
    assert set(named) <= set(ids)


def test_without_its_script_the_page_reads_the_same(browser, report):
    """Tables and figures are there; controls that need a script are hidden."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#results tbody tr").count() == 9
    assert not page.locator("button.open").first.is_visible()
    assert not page.get_by_text("A click on a column's title sorts").is_visible()
    box = page.locator("#results .scroll")
    assert {text for _, text in box.evaluate(_PLACES)} >= {"model", "NMU", "NAC•"}
    context.close()


def test_requests_logs_and_errors_of_a_page_are_detected(visit, tmp_path):
    """Logs, errors and requests of a page are all detected, so the checks above can fail."""
    noisy = tmp_path / "noisy.html"
    noisy.write_text(
        "<img src=beside.png><link rel=stylesheet href=http://nowhere.invalid/far.css>"
        "<script>console.warn('careful'); console.error('broken'); throw new Error('thrown')</script>"
    )
    visited = visit(noisy)
    assert {"careful", "broken", "thrown"} <= set(visited.complaints)
    assert {address.rsplit("/", 1)[1] for address in visited.requests} == {"beside.png", "far.css"}
