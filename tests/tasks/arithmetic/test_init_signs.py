"""`init_signs: two_negative`: an NMU starts with two negative factors, with only signs changed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.starts import after_updates, cell_of, factors_at_start, negative
from study.records import Trial
from study.spec.cells import canonical_cell
from tasks.arithmetic.engine.shared.initial_weights import initial_state
from tasks.arithmetic.own_family import ARITHMETIC

FIRST, SECOND = "part/weight/first.weight", "part/weight/second.weight"


@pytest.mark.parametrize("hidden_size", [2, 3, 5, 10])
def test_two_factors_start_negative(hidden_size: int) -> None:
    """Two of a trial's factors are negative, or fewer if signs don't allow it; weights keep their magnitudes."""
    cell, seeds = cell_of(hidden_size), range(200)
    signed = cell.replace(init_signs="two_negative")
    counts = negative(factors_at_start(signed, seeds))
    assert counts.max() == 2
    assert (counts == 2).mean() > {2: 0.2, 3: 0.5, 5: 0.85, 10: 0.99}[hidden_size]
    drawn, chosen = (initial_state([Trial(variant, seed) for seed in seeds]) for variant in (cell, signed))
    assert np.array_equal(np.abs(drawn[FIRST]), np.abs(chosen[FIRST]))
    assert np.array_equal(drawn[SECOND], chosen[SECOND])


def test_two_factors_stay_negative() -> None:
    """After a thousand updates two factors are still negative; with random signs half of the trials have 4 to 6."""
    assert (after_updates(cell_of(10), range(20)) > 2).any()
    assert set(after_updates(cell_of(10, init_signs="two_negative"), range(20)).tolist()) == {2}


def test_inputs_around_0_are_refused() -> None:
    """Inputs with a mean of 0, and other models, are refused."""
    around_0 = {"init_signs": "two_negative", "interpolation_range": ((-2.0, 2.0),)}
    assert "mean isn't 0" in str(ARITHMETIC.impossible("arithmetic", "NMU", around_0))
    assert (
        ARITHMETIC.why_without_effect("init_signs", "arithmetic", "NAC-mul", {}) == "NAC-mul isn't an NMU after an NAU"
    )


def test_models_beside_an_nmu_are_unchanged() -> None:
    """A study's setting changes only the models that multiply sums."""
    values = {"init_signs": "two_negative", "interpolation_range": ((-2.0, 2.0),)}
    assert ARITHMETIC.impossible("arithmetic", "NAC-mul", values) is None
    assert canonical_cell("arithmetic", "NAC-mul", {"init_signs": "two_negative"}) == canonical_cell(
        "arithmetic", "NAC-mul", {}
    )
