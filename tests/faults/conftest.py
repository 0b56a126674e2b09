"""The test beds of the fault campaign, started once for all faults."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.faults.bed import Bed, opened, undisturbed
from tests.faults.places import missing
from tests.servers import postgres_programs


@pytest.fixture(scope="module")
def bed() -> Iterator[Bed]:
    """Yield a cluster of three nodes, MLflow on PostgreSQL, and an object store."""
    _prepare()
    with opened() as test_bed:
        yield test_bed


@pytest.fixture
def bed_with_clock() -> Iterator[Bed]:
    """Yield such a test bed with a clock that can be set back."""
    _prepare()
    if shutil.which("cc") is None:
        pytest.skip("a clock that can be set back needs a C compiler")
    with opened(own_clock=True) as test_bed:
        yield test_bed


def _prepare() -> None:
    reason = missing()
    if reason is None and postgres_programs() is None:
        reason = "these faults need PostgreSQL: Debian's package is postgresql"
    if reason is not None:
        pytest.skip(reason)
    undisturbed()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failure when it happens: the others take minutes."""
    if report.failed:
        print(report.longreprtext, flush=True)
