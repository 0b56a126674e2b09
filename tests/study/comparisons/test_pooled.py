"""Rows that pool several trials of a seed: the seed is the unit, and repetitions add no evidence."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from study.comparisons.contrasts import Contrasts, contrasts
from study.comparisons.finding import Finding
from study.outcomes import Source, gather, wanted
from study.reports import groups
from study.summaries.aggregate import aggregate_by

SEEDS, SIZES = range(12), (2, 3, 4)


def compared(by: list[str], rates: tuple[float, ...], optimizers: tuple[str, ...]) -> Contrasts:
    """Compare rows of two models at three sizes; outcomes don't depend on the optimizer."""
    rows: list[dict[str, Any]] = []
    for place, (model, size) in enumerate(itertools.product(("A", "B"), SIZES)):
        solved = np.random.default_rng(place).random(len(SEEDS)) < rates[place % len(SIZES)]
        rows += [
            {"model": model, "size": size, "optimizer": optimizer, "seed": seed, "solved": bool(is_solved)}
            | {"solved_at": 100 * size + seed if is_solved else None, "iterations": 1000}
            for optimizer in optimizers
            for seed, is_solved in zip(SEEDS, solved, strict=True)
        ]
    outcomes = gather([Source("a.csv", pa.Table.from_pylist(rows), np.arange(len(rows)))], by)
    return contrasts(groups(aggregate_by(outcomes.trials), outcomes.by), outcomes.trials)


def test_repeated_trials_of_a_seed_add_no_evidence() -> None:
    """A trend has the same p-value with four equal outcomes per seed as with one."""
    single = compared(["model", "size"], (0.9, 0.6, 0.3), ("adam",))
    repeated = compared(["model", "size"], (0.9, 0.6, 0.3), ("adam", "sgd", "rmsprop", "lion"))
    assert [(t.name, t.z, t.p_value, t.seeds) for t in repeated.trends] == [
        (t.name, t.z, t.p_value, t.seeds) for t in single.trends
    ]
    assert [finding.p_value for finding in repeated.pairs] == pytest.approx(
        [finding.p_value for finding in single.pairs]
    )


def test_tests_of_independent_trials_are_left_out() -> None:
    """Log-rank tests need one trial per seed; with several, a note explains their absence."""
    assert compared(["model", "size"], (0.9, 0.9, 0.9), ("adam",)).speeds
    pooled = compared(["model", "size"], (0.9, 0.9, 0.9), ("adam", "sgd"))
    assert (pooled.speeds, pooled.slopes) == ((), ())
    assert "Some rows have several trials of a seed" in pooled.notes[0]


def test_rows_that_share_few_seeds_are_not_tested() -> None:
    """With only a few shared seeds the finding has a reason instead of a test; without any, Welch's test is used."""

    def finding(first_seed: int) -> Finding:
        rows = [
            {"model": model, "size": size, "seed": place * first_seed + seed, "loss": place + seed % 5 + (model == "A")}
            for model in "AB"
            for place, size in enumerate(SIZES)
            for seed in range(12)
        ]
        source = Source("a.csv", pa.Table.from_pylist(rows), np.arange(len(rows)))
        outcomes = gather([source], ["model", "size"], wanted(["loss"]))
        tests = contrasts(groups(aggregate_by(outcomes.trials), outcomes.by), outcomes.trials)
        return next(finding for finding in tests.pairs if not finding.question)

    assert (finding(0).test, finding(3).test) == ("sign-flip", "sign-flip")
    assert "give all rows the same seeds" in finding(10).reason
    assert finding(12).test == "Welch"
