"""`init: independent`: cells of one seed have the same rows and different initial weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from study.records import Sources, Trial
from study.spec.cells import canonical_cell
from tasks.arithmetic.engine.shared.initial_weights import initial_state
from tasks.arithmetic.family import ArithmeticFamily

SEEDS = range(50)


def first_rows(hidden_size: int, seeds: Iterable[int] = SEEDS, **values: Any) -> npt.NDArray[np.float32]:
    """Return the flattened initial weights of the first two hidden units of a cell's trials."""
    cell = canonical_cell("arithmetic", "NMU", {"hidden_size": hidden_size, **values})
    state = initial_state([Trial(cell, seed) for seed in seeds])
    return state["part/weight/first.weight"][:, :2].ravel()


def test_sizes_share_weights_unless_they_are_independent() -> None:
    """Two sizes share initial weights by default; with `independent` they are uncorrelated."""
    assert np.corrcoef(first_rows(8), first_rows(9))[0, 1] == pytest.approx(1)
    eight, nine = (first_rows(size, init="independent") for size in (8, 9))
    assert abs(np.corrcoef(eight, nine)[0, 1]) < 4 / np.sqrt(len(eight))
    assert abs(np.corrcoef(eight, first_rows(8))[0, 1]) < 4 / np.sqrt(len(eight))


def test_a_longer_trial_begins_as_the_shorter_one() -> None:
    """Length of training and criterion don't change the initial weights."""
    short, long = (first_rows(8, init="independent", iterations=count) for count in (1000, 2000))
    assert np.array_equal(short, long)


def test_seeds_of_one_cell_differ() -> None:
    """Seeds of a cell have different weights; of combined seeds only the init seed determines them."""
    drawn = first_rows(8, init="independent").reshape(len(SEEDS), -1)
    assert len(np.unique(drawn, axis=0)) == len(SEEDS)
    combined = [Sources(3, data).seed for data in (4, 5)]
    by_data = first_rows(8, combined, init="independent").reshape(2, -1)
    assert np.array_equal(by_data[0], by_data[1])


def test_rows_stay_shared() -> None:
    """A seed draws the same rows with both settings."""
    cells = [canonical_cell("arithmetic", "NMU", values) for values in ({}, {"init": "independent"})]
    assert len({ArithmeticFamily().rows_of(cell) for cell in cells}) == 1


def test_shared_weights_keep_their_ids() -> None:
    """The explicit default changes no id, so stored results stay valid."""
    assert canonical_cell("simple", "NMU", {"init": "shared"}) == canonical_cell("simple", "NMU", {})
    assert canonical_cell("simple", "NMU", {}).id == "df9503067f19e91f"
