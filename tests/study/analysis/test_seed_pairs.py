"""Rows whose trials have the same seeds are compared seed by seed; others as independent samples."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from study import statistics
from study.analysis import seed_pairs
from study.analysis.aggregate import aggregate, aggregate_by
from study.analysis.contrasts import contrasts
from study.analysis.headline import headline
from study.analysis.seed_pairs import SeedTrials
from study.arrow import results_table
from study.outcomes import Source, gather
from study.records import Outcome, Result, Trial
from study.reports import cells, files, groups
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
    return cells(aggregate(table, metrics), {}), SeedTrials(table)


def shared(seeds, shift):
    """Losses that mostly hang on the seed."""
    return {seed: seed + shift + 0.01 * (seed * 7 % 5) for seed in seeds}


def test_trials_of_the_same_seeds_are_compared_seed_by_seed():
    """The test is of the differences: what a seed does to both doesn't hide the difference."""
    first, second = shared(range(10), 0.0), {seed: seed + 0.1 for seed in range(10)}
    rows, table = finished({"NMU": first, "NAU": second})
    (pair,) = contrasts(rows, table).pairs
    both = statistics.sign_flip([first[seed] - second[seed] for seed in range(10)])
    assert (pair.test, pair.seeds) == ("sign-flip", 10)
    assert (pair.difference, pair.interval, pair.p_value) == (both.estimate, both.interval, both.p_value)
    assert (pair.first_only, pair.second_only) == (0, 10)
    (independent,) = contrasts(rows).pairs
    assert (independent.test, independent.seeds) == ("Welch", None)
    assert pair.p_value < 0.01 < 0.5 < independent.p_value


def test_seeds_in_common_are_compared_and_other_seeds_are_other_samples():
    """The seeds of both enter, whatever their order; cells that share few are independent samples."""
    rows, table = finished({"NMU": shared(range(8)[::-1], 0.0), "NAU": shared(range(2, 14), 0.5)})
    (pair,) = contrasts(rows, table).pairs
    assert (pair.test, pair.seeds, pair.difference) == ("sign-flip", 6, pytest.approx(-0.5))
    rows, table = finished({"NMU": shared(range(8), 0.0), "NAU": shared(range(5, 14), 0.5)})
    assert contrasts(rows, table).pairs == contrasts(rows).pairs
    assert contrasts(rows, table).pairs[0].test == "Welch"


def test_seeds_without_a_number_are_left_out():
    """A seed counts where both trials have a finite number; fewer than two are no test."""
    first, second = np.array([1.0, math.nan, 3.0, 8.0, 2.0]), np.array([0.5, 1.0, 2.0, 7.5, math.inf])
    both, seeds = seed_pairs.means(first, second)
    assert both == statistics.sign_flip([0.5, 1.0, 0.5])
    assert seeds == (3, 3, 0)
    assert seed_pairs.means(first[:2], second[:2]) is None
    assert seed_pairs.means(first, first) is None


def test_few_seeds_that_differ_are_no_verdict_and_a_number_of_seeds_to_come():
    """With five seeds nothing can be told, and the table says what it would take."""
    rows, table = finished({"NMU": shared(range(5), 0.0), "NAU": shared(range(5), 5.0)})
    (pair,) = contrasts(rows, table).pairs
    assert (pair.interval, pair.has_verdict, pair.verdict) == (None, False, "no verdict: 1 more seed")


def judged(outcomes_by_model, at=1000):
    """Build rows and the table of judged trials: by model, a letter a seed; s is solved, later from seed to seed."""
    kinds = {"s": Outcome.SOLVED, "u": Outcome.UNSOLVED, "d": Outcome.DIVERGED, "f": Outcome.FAILED}
    results = [
        Result(
            trial=Trial(published_cell(model), seed),
            outcome=kinds[letter],
            solved_at_iteration=at * (seed + 1) + len(model) if letter == "s" else None,
            iterations=5_000_000,
            training_s=1.0,
            error="" if letter != "f" else "lost",
        )
        for model, letters in outcomes_by_model.items()
        for seed, letter in enumerate(letters)
    ]
    table = results_table(results)
    return cells(aggregate(table, {}), {}), SeedTrials(table)


def test_success_is_compared_seed_by_seed():
    """McNemar's test is of the seeds that only one solved; failed trials' seeds enter nowhere."""
    rows, table = judged({"NMU": "ssssssssuuf", "NAU": "uuudddudsus"})
    (pair,) = contrasts(rows, table).pairs
    assert (pair.test, pair.seeds, pair.first_only, pair.second_only) == ("McNemar", 10, 8, 1)
    assert (pair.interval, pair.p_value) == (statistics.mcnemar_interval(8, 1, 10), statistics.mcnemar(8, 1))
    assert pair.verdict == "differ"
    (independent,) = contrasts(rows).pairs
    assert (independent.test, independent.p_value) == ("Fisher", statistics.fisher_exact(8, 10, 2, 11))


def test_equal_seeds_are_no_verdict():
    """Methods that solve the same seeds can't be told apart by any number of seeds that is known."""
    rows, table = judged({"NMU": "ssuu", "NAU": "ssuu", "NAC-mul": "ssus"})
    verdicts = {(pair.first, pair.second): pair.verdict for pair in contrasts(rows, table).pairs}
    assert verdicts[("NMU", "NAU")] == "no verdict: equal on all seeds"
    assert verdicts[("NMU", "NAC•")] == "no verdict: 20 more seeds"


def test_times_are_compared_seed_by_seed():
    """Every seed is solved a little later by one method: the pairs show it, the samples don't."""
    rows, table = judged({"NMU": "s" * 12, "NAC-mul": "s" * 12})
    (paired,), (independent,) = contrasts(rows, table).speeds, contrasts(rows).speeds
    assert (paired.seeds, independent.seeds) == (12, None)
    assert paired.p_value < 0.01 < 0.5 < independent.p_value


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
        ("sign-flip", metric) for metric in ("loss", "accuracy") for _ in range(3)
    ]


def test_the_headline_compares_the_leaders_seed_by_seed():
    """Over several rows, a seed counts once: what it does to all rows of both methods isn't evidence."""
    rows, table = judged({"NMU": "ssssssssuuuuuuuuuuuu", "NAC-mul": "uuuuuuuuuuuuuuuuuuuu"})
    assert "chance" not in headline(rows, contrasts(rows, table), table)
    rows, table = judged({"NMU": "ssssssssssssssssuuuu", "NAC-mul": "ssssssssssssuuuuuuuu"})
    assert "NMU succeeds most often (which may be chance)" in headline(rows, contrasts(rows, table), table)
    first, second = shared(range(10), 0.0), {seed: seed + 0.1 for seed in range(10)}
    rows, table = finished({"NMU": first, "NAU": second})
    assert "NMU has the lowest loss, " in headline(rows, contrasts(rows, table), table)
    assert "NMU has the lowest loss (which may be chance), " in headline(rows, contrasts(rows))


def test_trends_are_tested_seed_by_seed():
    """Every seed is solved up to a size of its own: the seeds' slopes show it."""
    solved = {2: 12, 3: 11, 4: 9, 5: 7}
    results = [
        Result(
            trial=Trial(published_cell("NMU", hidden_size=size), seed),
            outcome=Outcome.SOLVED if seed < count else Outcome.UNSOLVED,
            solved_at_iteration=1000 if seed < count else None,
            iterations=5_000_000,
            training_s=1.0,
        )
        for size, count in solved.items()
        for seed in range(15)
    ]
    table = results_table(results)
    rows, table = cells(aggregate(table, {}), {}), SeedTrials(table)
    (trend,), (independent,) = contrasts(rows, table).trends, contrasts(rows).trends
    outcomes = np.array([[seed < count for count in solved.values()] for seed in range(15)], float)
    expected = statistics.paired_trend(outcomes)
    assert (trend.seeds, trend.z, trend.p_value) == (15, expected.z, expected.p_value)
    assert independent.seeds is None
    lines = list(csv.DictReader(io.StringIO(files.tests_csv(contrasts(rows, table)))))
    assert (lines[0]["test"], lines[0]["seeds"]) == ("paired trend", "15")


def file_of(letters_by_model, seeds_from=None):
    """Read outcomes as a file has them: by model, an s or u a seed."""
    lines = [
        {"model": model, "seed": seed + (seeds_from or {}).get(model, 0), "solved": letter == "s"}
        for model, letters in letters_by_model.items()
        for seed, letter in enumerate(letters)
    ]
    return gather([Source("trials.csv", pa.Table.from_pylist(lines), np.arange(1, len(lines) + 1))])


def test_rows_of_files_with_the_same_seeds_are_compared_seed_by_seed():
    """Where seeds match, they are paired; where they don't, or a row has several trials of one, they aren't."""

    def pair_of(outcomes, by=("model",)):
        rows = groups(aggregate_by(outcomes.table, by), by)
        (pair,) = contrasts(rows, SeedTrials(outcomes.table, by)).pairs
        return pair

    letters = {"A": "sssssssuuu", "B": "uuuuuuuuus"}
    pair = pair_of(file_of(letters))
    assert (pair.test, pair.seeds, pair.first_only, pair.second_only) == ("McNemar", 10, 7, 1)
    assert pair_of(file_of(letters, {"B": 100})).test == "Fisher"
    twice = file_of({"A": "sssssssuuu", "B": "uuuuuuuuus"})
    doubled = replace(twice, table=pa.concat_tables([twice.table, twice.table]))
    assert pair_of(doubled).test == "Fisher"
