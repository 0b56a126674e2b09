"""What many tests begin with."""

from __future__ import annotations

import pytest

from study.summaries.aggregate import CellSummary
from tests.study import builders


@pytest.fixture
def dashboard() -> builders.Dashboard:
    """Return links into a dashboard."""
    return builders.Dashboard()


@pytest.fixture
def demo() -> tuple[list[CellSummary], dict[str, dict[str, str]]]:
    """Return a small study like the demo, and its labels."""
    return builders.demo()
