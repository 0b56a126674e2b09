"""Links lead to the dashboard's pages, and the pages show their contents."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from study.records import Outcome, Trial
from study.tracking import CURVE, LINE, CellRun, ChartLine, Publisher, links, links_of, studies_page, sync
from study.tracking.address import connect
from study.tracking.pages import CELLS, CURVES, LINES, TRIALS
from tests.processes import free_port
from tests.servers import dashboard
from tests.study.tracking.made import CELL, Made, curve, failed, solved
from tests.traps import MODULES, lay_traps

CHARTS = f"{LINES}&compareRunsMode=CHART"

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_without_mlflow_links_are_none(uri: str, tmp_path: Path) -> None:
    """Tracking off, unpublished and deleted studies, and missing or invalid databases give None, and no file."""
    (tmp_path / "text.db").write_text("no database")
    assert links(None, "demo") is None
    assert links(uri, "demo") is None
    assert links(f"sqlite:///{tmp_path}/text.db", "demo") is None
    assert links(f"sqlite:///{tmp_path}/none/mlflow.db", "demo") is None
    assert not (tmp_path / "none").exists()
    sync(uri, "demo", Made([], []))
    study_links = links(uri, "demo")
    assert study_links is not None
    connect(uri).delete_experiment(study_links.experiment_id)
    assert links(uri, "demo") is None


def test_links_wait_for_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable or unresponsive server gives no links, whatever MLflow's own timeout."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1000")
    assert links(f"http://127.0.0.1:{free_port()}", "demo") is None
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert links(f"http://127.0.0.1:{silent.getsockname()[1]}", "demo", timeout_s=0.1) is None


def test_a_study_can_be_linked_to_once_its_publisher_has_begun(uri: str) -> None:
    """A study can be linked once its publisher has begun; if MLflow is down, the wait ends."""
    with Publisher(uri, "demo", Made([])) as publisher:
        publisher.wait_for_study(250)
        assert links(uri, "demo") is not None
    with Publisher(f"http://127.0.0.1:{free_port()}", "demo", Made([])) as publisher:
        publisher.wait_for_study(250)
        assert publisher.trouble is not None


def test_many_studies_are_linked_at_once(uri: str) -> None:
    """Studies linked at once have the same links as one by one; unknown ones have none."""
    for name in ("first", "second"):
        sync(uri, name, Made([]))
    study_links = links_of(uri, ["first", "second", "third"], address="http://127.0.0.1:5001/")
    assert study_links == {name: links(uri, name, address="http://127.0.0.1:5001") for name in ("first", "second")}
    assert links_of(uri, []) == links_of(None, ["first"]) == {}


@pytest.mark.slow
def test_a_dashboard_imports_nothing_of_the_working_folder(uri: str, tmp_path: Path) -> None:
    """Files in the working folder of `study ui` aren't imported by MLflow or its processes."""
    trapped = lay_traps(tmp_path, *MODULES)
    with dashboard(uri, tmp_path):
        assert trapped() == []


def shown_runs(page: Page, *names: str) -> None:
    """Wait until the dashboard's table has exactly one row of each name."""
    rows = page.locator("a[href*='/runs/']")
    for name in names:
        expect(rows.filter(has_text=re.compile(f"^{name}$"))).to_have_count(1)
    expect(rows).to_have_count(len(names))


def test_the_view_of_trials_has_columns_worth_seeing(uri: str, tmp_path: Path, visit: Callable[..., Any]) -> None:
    """The list of experiments shows question and progress; its view lists trials with outcomes."""
    results = [solved(0), solved(1, outcome=Outcome.UNSOLVED, solved_at_iteration=None)]
    counts = {"trials": 2, "done": 2, "solved": 1}
    sync(uri, "demo", Made(results), question="Which is solved?", finding="One.", counts=counts)
    with dashboard(uri, tmp_path) as address:
        study_links = links(uri, "demo", address=address)
        assert study_links is not None
        page = visit(f"{address}/#/experiments", width=1280).page
        expect(page.get_by_text("Which is solved?")).to_be_visible()
        expect(page.get_by_text("2 of 2, 1 solved")).to_be_visible()
        page.goto(study_links.study.replace(CHARTS, TRIALS))
        shown_runs(page, "NMU h4 seed 0", "NMU h4 seed 1")
        expect(page.get_by_role("gridcell", name="unsolved")).to_be_visible()


def test_the_dashboard_opens_at_the_studies_runs_without_other_requests(
    uri: str, tmp_path: Path, visit: Callable[..., Any]
) -> None:
    """On a first visit the printed address lists a run for each study; all requests stay on this machine.

    MLflow tells the browser that telemetry is off.
    """
    for name in ("first", "second"):
        sync(uri, name, Made([solved(0)]), question="Which?")
    with dashboard(uri, tmp_path) as address:
        study_links = links_of(uri, ["first", "second"], address=address)
        visited = visit(studies_page(address, [*study_links.values()]), width=1280)
        shown_runs(visited.page, "first", "second")
        visited.page.goto(studies_page(address, [study_links["first"]]))
        shown_runs(visited.page, "first")
        assert [url for url in visited.requests if not url.startswith(f"{address}/")] == []
        with urllib.request.urlopen(f"{address}/ajax-api/3.0/mlflow/ui-telemetry") as answer:
            assert json.load(answer)["disable_ui_telemetry"] is True


def test_links_lead_to_the_right_runs(uri: str, tmp_path: Path, visit: Callable[..., Any]) -> None:
    """Links show just a trial's run, a cell's run with its trials, or the study's run.

    The server and the database give the same links, without the password.
    """
    other = CELL.replace(hidden_size=2)
    results = [*(solved(seed) for seed in range(3)), replace(solved(7), trial=Trial(other, 7)), failed(4)]
    sync(uri, "first", Made([solved(1)], []))
    sync(uri, "demo", Made(results, [curve(1)]), cells=[CellRun(CELL, "NMU h4"), CellRun(other, "NMU h2")])
    with dashboard(uri, tmp_path) as address:
        study_links = links(uri, "demo", address=address)
        assert study_links is not None
        assert study_links == links(f"{address.replace('//', '//me:secret@')}/", "demo")
        page = visit(study_links.trial(results[1].trial.id)).page
        shown_runs(page, "NMU h4 seed 1")
        page.goto(study_links.cell(CELL.id))
        shown_runs(page, "NMU h4", *(f"NMU h4 seed {seed}" for seed in (0, 1, 2, 4)))
        page.goto(study_links.cell(other.id))
        shown_runs(page, "NMU h2", "NMU h2 seed 7")
        page.goto(study_links.trial("none"))
        expect(page.get_by_text("0 matching runs")).to_be_visible()
        page.goto(study_links.study)
        shown_runs(page, "demo")
        page = visit(study_links.study.replace(CHARTS, CELLS)).page
        shown_runs(page, "demo", "NMU h4", "NMU h2")


def test_a_studys_page_begins_with_its_finding_and_its_rates(
    uri: str, tmp_path: Path, visit: Callable[..., Any]
) -> None:
    """On a first visit the finding is visible, and the chart of success rates comes first."""
    points = [("success_rate", 2, 0.5), ("success_rate", 10, 1.0), ("loss_mean", 2, 0.5), ("loss_mean", 10, 1.0)]
    packs, counts = Made([solved(0)]), {"trials": 1, "done": 1, "solved": 1}
    lines = [ChartLine(LINE, "NMU", points)]
    sync(uri, "demo", packs, question="Which?", finding="NMU is best.", counts=counts, charts=lambda: lines)
    with dashboard(uri, tmp_path) as address:
        study_links = links(uri, "demo", address=address)
        assert study_links is not None
        page = visit(study_links.study, width=1280).page
        shown_runs(page, "demo", "NMU")
        expect(page.get_by_text("NMU is best.")).to_be_in_viewport()
        titles = page.get_by_text(re.compile("^(done|loss_mean|solved|success_rate|trials)$"))
        expect(titles.first).to_have_text("success_rate")


def test_lines_are_drawn_into_one_chart(uri: str, tmp_path: Path, visit: Callable[..., Any]) -> None:
    """The views of charts and learning curves have one chart a metric, with a line for each method or cell."""
    rates = [
        ChartLine(LINE, name, [("success_rate", 2, 0.5), ("success_rate", 10, 1.0)]) for name in ("NMU", "NAC-mul")
    ]
    medians = [("curve/test_mse_median", 0, 1.0), ("curve/test_mse_median", 1000, 0.1)]
    curves = [ChartLine(CURVE, f"NMU h{size}", medians) for size in range(2, 14)]
    sync(uri, "demo", Made([solved(0)]), charts=lambda: [*rates, *curves])
    with dashboard(uri, tmp_path) as address:
        study_links = links(uri, "demo", address=address)
        assert study_links is not None
        for view, lines, others in ((LINES, rates, ["demo"]), (CURVES, curves, [])):
            page = visit(study_links.study.replace(LINES, view)).page
            shown_runs(page, *others, *(line.name for line in lines))
            (metric,) = {metric for line in lines for metric, _, _ in line.points}
            expect(page.locator(".js-plotly-plot")).to_have_count(1)
            for line in lines:
                expect(page.get_by_text(f"{line.name} ({metric})", exact=True)).to_have_count(1)
