"""What units compute is the same in any pack on one thread of torch's, as the engine trains them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from study.engine.device import one_thread


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield
