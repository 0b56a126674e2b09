"""Shared fixtures: reports without figures, a dashboard's links, a small study."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from study.reports.figures import all as all_figures
from study.summaries.aggregate import CellSummary
from tests.figures import plot_all
from tests.study import builders
from tests.study.lab import lab, packed_lab

__all__ = ["lab", "packed_lab"]


@pytest.fixture(scope="module", autouse=True)
def _no_figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave figures out of reports: drawing them takes most of the time of a small study.

    Tests that need figures use the fixture `figures`. If a module-scoped fixture needs them, the file's ``pytestmark``
    uses `figures`. Processes started by tests always draw them.
    """
    marks = request.node.iter_markers("usefixtures")
    with pytest.MonkeyPatch.context() as patch:
        if not any("figures" in mark.args for mark in marks):
            patch.setattr(all_figures, "plot_all", lambda report, parts=None: [])
        yield


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore all figures of reports."""
    monkeypatch.setattr(all_figures, "plot_all", plot_all)


@pytest.fixture
def dashboard() -> builders.Dashboard:
    """Return builders of links into a dashboard."""
    return builders.Dashboard()


@pytest.fixture
def demo() -> tuple[list[CellSummary], dict[str, dict[str, str]]]:
    """Return summaries of a small study like the demo, and its labels."""
    return builders.demo()
