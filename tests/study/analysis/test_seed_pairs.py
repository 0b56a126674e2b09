"""Rows whose trials have the same seeds are compared seed by seed; others as independent samples."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from scipy import stats

from study import statistics
from study.analysis import seed_pairs
from study.analysis.aggregate import aggregate
from study.analysis.contrasts import contrasts
from study.arrow import results_table
from study.records import Outcome, Result, Trial
from study.reports import cells, files
from tasks.declarations import Metric
from tests.study.builders import published_cell

METRICS = {"loss": Metric(low=0.0), "accuracy": Metric(higher_is_better=True)}


def finished(values_by_model, metrics=METRICS):
    """Build rows and the table of finished trials: seeds and losses by model; the accuracy is 1 - loss."""
    results = [
        Result(
            trial=Trial(published_cell(model), seed),
            outcome=Outcome.FINISHED,
            metrics={"loss": loss, "accuracy": 1 - loss},
            iterations=10,
            training_s=1.0,
        )
        for model, losses in values_by_model.items()
        for seed, loss in losses.items()
    ]
    table = results_table(results)
    return cells(aggregate(table, metrics), {}), table


def shared(seeds, shift):
    """Losses that mostly hang on the seed."""
    return {seed: seed + shift + 0.01 * (seed * 7 % 5) for seed in seeds}


def test_trials_of_the_same_seeds_are_compared_seed_by_seed():
    """The test is Student's of the differences: what a seed does to both doesn't hide the difference."""
    first, second = shared(range(10), 0.0), {seed: seed + 0.1 for seed in range(10)}
    rows, table = finished({"NMU": first, "NAU": second})
    (pair,) = contrasts(rows, table).pairs
    expected = stats.ttest_rel(list(first.values()), list(second.values()))
    assert pair.is_paired
    assert pair.p_value == pytest.approx(expected.pvalue)
    assert pair.interval == pytest.approx(tuple(expected.confidence_interval()))
    (independent,) = contrasts(rows).pairs
    assert not independent.is_paired
    assert pair.p_value < 1e-4 < 0.5 < independent.p_value


def test_other_seeds_are_other_samples():
    """One seed more on one side: the samples are compared as independent ones."""
    rows, table = finished({"NMU": shared(range(5), 0.0), "NAU": shared(range(6), 0.5)})
    with_table, without = contrasts(rows, table).pairs, contrasts(rows).pairs
    assert with_table == without
    assert not with_table[0].is_paired


def test_seeds_without_a_number_are_left_out():
    """A seed counts where both trials have a finite number; fewer than two are no test."""
    first = {0: 1.0, 1: float("nan"), 2: 3.0, 3: 8.0, 4: 2.0}
    second = {0: 0.5, 1: 1.0, 2: 2.0, 3: 7.5, 4: float("inf")}
    differences = [0.5, 1.0, 0.5]
    found = seed_pairs.difference(first, second)
    assert found is not None
    assert found.estimate == pytest.approx(np.mean(differences))
    assert found.p_value == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert seed_pairs.difference({0: 1.0, 1: float("nan")}, {0: 0.0, 1: 1.0}) is None
    assert seed_pairs.difference({0: 1.0, 1: 2.0}, {0: 0.0, 1: 1.0}) is None  # all differences are equal


def test_each_metric_is_a_family_in_the_file():
    """tests.csv has the pairs by every metric, and Holm's correction is over those of one."""
    values = {
        "NMU": shared(range(8), 0.0),
        "NAU": shared(range(8)[::-1], 0.3),
        "NAC-mul": {s: 3.0 - s for s in range(8)},
    }
    rows, table = finished(values)
    found = contrasts(rows, table)
    assert found.metric == "loss"
    assert set(found.more_pairs()) == {"accuracy"}
    assert [pair.difference for pair in found.more_pairs()["accuracy"]] == pytest.approx(
        [-pair.difference for pair in found.pairs]
    )
    for pairs in (found.pairs, found.more_pairs()["accuracy"]):
        assert [p.p_adjusted for p in pairs] == statistics.holm([p.p_value for p in pairs])
    lines = list(csv.DictReader(io.StringIO(files.tests_csv(found))))
    assert [(line["test"], line["metric"]) for line in lines] == [
        ("Student, paired", metric) for metric in ("loss", "accuracy") for _ in range(3)
    ]
