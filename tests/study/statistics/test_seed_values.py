"""Values by cell and seed; repeated values of a seed are refused or averaged, as requested."""

from __future__ import annotations

import math

import numpy as np
import pytest

from study.statistics import SeedValues, seed_values
from study.statistics.seed_values import blocks, student


def test_rows_are_arranged_by_cell_and_seed():
    """Each value has its row's place, whatever the order of rows."""
    rows = [("a", 0, 1.0), ("b", 0, 2.0), ("a", 5, 3.0)]
    expected = {"a": {0: 1.0, 5: 3.0}, "b": {0: 2.0}}
    for ordered in (rows, rows[::-1]):
        cells, seeds, values = zip(*ordered, strict=True)
        assert seed_values(cells=cells, seeds=seeds, values=values).by_cell == expected


def test_repeated_values_of_a_seed_are_refused_or_averaged():
    """Several values of a seed in a cell are refused with instructions; averaged they are one value."""
    rows = {"cells": ["a"] * 4, "seeds": [0, 0, 1, 1], "values": [1.0, 3.0, 5.0, 6.0]}
    with pytest.raises(ValueError, match=r"seed 0 has 2 values in cell 'a'.*average them with repeats=\"mean\""):
        seed_values(**rows)
    assert seed_values(**rows, repeats="mean").by_cell == {"a": {0: 2.0, 1: 5.5}}


def test_columns_of_different_lengths_are_refused():
    """A value without a seed is an error."""
    with pytest.raises(ValueError, match="got 2, 1, 2"):
        seed_values(cells=["a", "b"], seeds=[0], values=[1.0, 2.0])


@pytest.mark.parametrize("by_cell", [{}, {"a": {}}, {"a": {0: math.nan}}])
def test_nothing_and_nan_are_refused(by_cell):
    """Values without any seed, and NaN, are refused."""
    with pytest.raises(ValueError, match=r"there must be at least one cell|NaN is among them"):
        SeedValues(by_cell)
    assert SeedValues({"a": {0: math.inf}}).cell_names == ["a"]


def test_cells_that_share_seeds_are_one_block():
    """Samples are linked by common seeds, also indirectly; seeds missing in a sample are NaN."""
    linked, alone = blocks([{0: 1.0, 1: 2.0}, {8: 5.0, 9: 6.0}, {1: 3.0, 2: 4.0}, {2: 7.0}])
    assert (linked.places, alone.places) == ((0, 2, 3), (1,))
    expected = [[1, 2, np.nan], [np.nan, 3, 4], [np.nan, np.nan, 7]]
    assert np.array_equal(linked.values, expected, equal_nan=True)
    assert (linked.least, alone.least) == (1, 2)


def test_degrees_of_freedom_add_up_where_variances_are_equal():
    """Two equal parts of n seeds have 2 (n - 1) degrees of freedom; a part without variance adds none."""
    assert student([3.0, 3.0], [6, 6], 0.95) == pytest.approx(2.2281, abs=1e-4)
    assert student([3.0, 0.0], [6, 99], 0.95) == pytest.approx(2.5706, abs=1e-4)
    assert student([0.0, 0.0], [6, 99], 0.95) == pytest.approx(2.5706, abs=1e-4)
