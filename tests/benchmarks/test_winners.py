"""Simulations of reports of equal methods: reproducible, and rarely with a winner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import winners


@pytest.mark.parametrize("place", range(len(winners.DESIGNS)), ids=[design.name for design in winners.DESIGNS])
def test_each_design_is_reproducible(place: int) -> None:
    """A row has the shares of studies with a winner in the sentence, in bold or in a verdict; equal seeds repeat it."""
    row = winners.row(place, studies=6, seed=0)
    assert row == winners.row(place, studies=6, seed=0)
    assert float(row["any"]) >= max(float(row[name]) for name in ("sentence", "bold", "verdict"))
    assert float(row["any"]) <= 50


def test_a_difference_is_named() -> None:
    """A method that always succeeds beside one that never does is named everywhere."""

    def different(rng: np.random.Generator) -> Any:
        columns = winners.plain(rng, 2, 30)
        return columns | {"outcome": ["solved" if model == "m0" else "unsolved" for model in columns["model"]]}

    design = winners.Design("different", different)
    assert winners.report_names_winner(design, np.random.default_rng(0)) == (True, True, True)
