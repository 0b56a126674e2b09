"""One torch thread for the units' tests, as in the engine: results are then the same in any pack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from study.engine.device import one_thread


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield
