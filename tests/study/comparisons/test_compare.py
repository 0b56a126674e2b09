"""Comparisons of rows: seed by seed if their trials share seeds, else as independent samples."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from study import statistics
from study.arrow import results_table
from study.comparisons.contrasts import contrasts
from study.comparisons.headline import headline
from study.interface.declarations import Metric
from study.outcomes import Source, gather
from study.records import Outcome, Result, Sources, Trial
from study.reports import cell_rows, files, groups
from study.reports.csv_text import csv_text
from study.results.groups import assemble_group_report
from study.summaries.aggregate import aggregate, aggregate_by
from study.trials.table import TrialTable
from tests.study.builders import published_cell, summarised

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
    return cell_rows(summarised(table, metrics), {}), TrialTable(table, metrics)


def shared(seeds, shift):
    """Return losses by seed; they depend mostly on the seed, and `shift` is added."""
    return {seed: seed + shift + 0.01 * (seed * 7 % 5) for seed in seeds}


def test_trials_of_the_same_seeds_are_compared_seed_by_seed():
    """The test uses differences within seeds, so that variation between seeds doesn't hide the effect."""
    first, second = shared(range(10), 0.0), {seed: seed + 0.1 for seed in range(10)}
    rows, table = finished({"NMU": first, "NAU": second})
    (finding,) = contrasts(rows, table).pairs
    test = statistics.sign_flip([first[seed] - second[seed] for seed in range(10)])
    assert (finding.test, finding.seeds) == ("sign-flip", 10)
    assert finding.estimate == pytest.approx(test.estimate)
    assert (finding.interval, finding.p_value) == (pytest.approx(test.interval), test.p_value)
    assert (finding.sample.first_better, finding.sample.second_better) == (10, 0)
    assert finding.verdict == "first better"
    rows, table = finished({"NMU": first, "NAU": {seed + 100: value for seed, value in second.items()}})
    (independent,) = contrasts(rows, table).pairs
    assert (independent.test, independent.seeds) == ("Welch", None)
    assert finding.p_value < 0.01 < 0.5 < independent.p_value


@pytest.mark.parametrize("shared_seeds", range(2, 11))
def test_partly_shared_seeds_use_all_trials(shared_seeds):
    """Paired and unpaired trials enter one test and one estimate, however many seeds are shared."""
    first = {seed: seed % 5 + 0.1 * (seed % 3) for seed in range(20)}
    second = {seed + 20 - shared_seeds: value + 0.5 for seed, value in first.items()}
    rows, table = finished({"NMU": first, "NAU": second})
    (finding,) = contrasts(rows, table).pairs
    assert (finding.test, finding.sample.pairs) == ("paired and Welch", shared_seeds)
    assert (finding.sample.first_alone, finding.sample.second_alone) == (20 - shared_seeds,) * 2
    assert finding.estimate == pytest.approx(-0.5)
    assert finding.values[0] - finding.values[1] == pytest.approx(finding.estimate)


def test_a_trial_without_a_number_ranks_worst():
    """If trials diverged, ranks of all trials are compared, since means would cover survivors only."""
    first = dict.fromkeys(range(12), 0.5) | {seed: 0.5 + seed / 100 for seed in range(12)}
    second = {seed: 0.1 if seed < 3 else math.nan for seed in range(12)}
    rows, table = finished({"NMU": first, "NAU": second})
    (finding,) = contrasts(rows, table).pairs
    assert finding.test == "sign-flip of ranks"
    assert (finding.is_probability, finding.winner) == (True, "NMU")
    assert finding.estimate == pytest.approx(9 / 12)
    assert finding.values[1] == pytest.approx(0.1)  # the mean over trials with a number
    assert finding.lacking[1].diverged == 9
    text = headline(rows, contrasts(rows, table))
    assert text.startswith("NMU has the best loss: better than NAU in 75% of pairs of trials (p = ")
    assert "NAU: 9 of 12 trials diverged" in text


@pytest.mark.parametrize("better", [10, 7])
def test_ranks_over_several_rows_give_the_share_of_pairs(better):
    """The estimate is the share of pairs of trials, row by row, in which the first method is better."""
    results = [
        Result(
            trial=Trial(published_cell(model, hidden_size=size), seed),
            outcome=Outcome.FINISHED,
            metrics={"loss": loss},
            iterations=10,
            training_s=1.0,
        )
        for size in (2, 4)
        for seed in range(10)
        for model, loss in (("NMU", 1.0 if seed < better else 3.0), ("NAU", 2.0 if seed else math.nan))
    ]
    table = results_table(results)
    metrics = {"loss": METRICS["loss"]}
    compared = contrasts(cell_rows(summarised(table, metrics), {}), TrialTable(table, metrics))
    (question,) = compared.plan.by_method
    (finding,) = compared.findings[question]
    assert finding.is_probability
    assert finding.estimate == pytest.approx((10 * better + (10 - better)) / 100)
    low, high = finding.interval
    assert low <= finding.estimate <= high


def test_too_few_seeds_give_no_verdict_but_a_required_number():
    """Five seeds give no verdict; the table gives the number of seeds that the family of tests requires."""
    rows, table = finished({"NMU": shared(range(5), 0.0), "NAU": shared(range(5), 5.0)})
    (finding,) = contrasts(rows, table).pairs
    assert (finding.interval, finding.has_enough_seeds) == (None, False)
    assert finding.statement == "not distinguished: it takes about 1 more seed, at the rate so far"
    models = {name: shared(range(6), float(place)) for place, name in enumerate(("NMU", "NAU", "NAC-mul", "NALU"))}
    rows, table = finished(models)
    findings = contrasts(rows, table).pairs
    assert {finding.statement for finding in findings} == {
        "not distinguished: it takes about 2 more seeds for 6 tests, at the rate so far"
    }


def judged(outcomes_by_model, at=1000):
    """Build rows and the table of judged trials: one letter per seed and model, `s` for solved; later seeds later."""
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
    return cell_rows(summarised(table, {}), {}), TrialTable(table)


def test_success_is_compared_seed_by_seed():
    """McNemar's test uses the seeds that only one method solved, and ignores seeds of failed trials."""
    rows, table = judged({"NMU": "ssssssssuuf", "NAU": "uuudddudsus"})
    (finding,) = contrasts(rows, table).pairs
    assert (finding.test, finding.seeds) == ("McNemar", 10)
    assert (finding.sample.first_better, finding.sample.second_better) == (8, 1)
    assert (finding.interval, finding.p_value) == (statistics.mcnemar_interval(8, 1, 10), statistics.mcnemar(8, 1))
    assert finding.verdict == "first better"
    assert "NMU: 1 of 11 trials failed" in headline(rows, contrasts(rows, table))


def test_equal_outcomes_give_no_verdict():
    """Methods that solve the same seeds aren't distinguished, and no required number of seeds is given."""
    rows, table = judged({"NMU": "ssuu", "NAU": "ssuu", "NAC-mul": "ssus"})
    verdicts = {(pair.first, pair.second): pair.statement for pair in contrasts(rows, table).pairs}
    assert verdicts[("NMU", "NAU")] == "not distinguished: equal at all seeds"
    assert (
        verdicts[("NMU", "NAC•")] == "not distinguished: it takes about 24 more seeds for 3 tests, at the rate so far"
    )


def test_times_are_compared_seed_by_seed():
    """Pairs show that one method solves every seed a little later; independent samples don't."""
    rows, table = judged({"NMU": "s" * 12, "NAC-mul": "s" * 12})
    (paired,) = contrasts(rows, table).speeds
    assert paired.seeds == 12
    assert paired.p_value < 0.01


def test_each_metric_is_a_family_of_tests():
    """tests.csv has the pairs of every metric; Holm's correction covers those of one metric."""
    values = {
        "NMU": shared(range(8), 0.0),
        "NAU": shared(range(8)[::-1], 0.3),
        "NAC-mul": {s: 3.0 - s for s in range(8)},
    }
    rows, table = finished(values)
    tests = contrasts(rows, table)
    assert tests.metric == "loss"
    assert set(tests.more_findings()) == {"accuracy"}
    assert [pair.estimate for pair in tests.more_findings()["accuracy"]] == pytest.approx(
        [-pair.estimate for pair in tests.pairs]
    )
    for pairs in (tests.pairs, tests.more_findings()["accuracy"]):
        assert [p.p_adjusted for p in pairs] == statistics.holm([p.p_value for p in pairs])
    lines = list(csv.DictReader(io.StringIO(csv_text(files.tests_rows(tests)))))
    assert [(line["test"], line["metric"]) for line in lines] == [
        ("sign-flip", metric) for metric in ("loss", "accuracy") for _ in range(3)
    ]


def test_the_headline_follows_the_findings():
    """A method is called best if its finding says so; else the headline names both methods with p."""
    rows, table = judged({"NMU": "ssssssssuuuuuuuuuuuu", "NAC-mul": "uuuuuuuuuuuuuuuuuuuu"})
    assert headline(rows, contrasts(rows, table)).startswith("NMU succeeds most often: 40% of 20 trials, NAC• 0%")
    rows, table = judged({"NMU": "ssssssssssssssssuuuu", "NAC-mul": "ssssssssssssuuuuuuuu"})
    expected = "Success rate: NMU 80% and NAC• 60%: NMU and NAC• are not distinguished (p = 0.12)"
    assert headline(rows, contrasts(rows, table)).startswith(expected)


def test_trends_are_tested_seed_by_seed():
    """The trend test uses each seed's slope over sizes."""
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
    rows, table = cell_rows(summarised(table, {}), {}), TrialTable(table)
    (trend,) = contrasts(rows, table).trends
    outcomes = np.array([[seed < count for count in solved.values()] for seed in range(15)], float)
    expected = statistics.paired_trend(outcomes)
    assert (trend.seeds, trend.z, trend.p_value) == (15, expected.z, expected.p_value)
    lines = list(csv.DictReader(io.StringIO(csv_text(files.tests_rows(contrasts(rows, table))))))
    assert (lines[0]["test"], lines[0]["seeds"]) == ("paired trend", "15")


def file_of(letters_by_model, seeds_from=None):
    """Read outcomes as from a file: by model, one letter `s` or `u` per seed."""
    lines = [
        {"model": model, "seed": seed + (seeds_from or {}).get(model, 0), "solved": letter == "s"}
        for model, letters in letters_by_model.items()
        for seed, letter in enumerate(letters)
    ]
    return gather([Source("trials.csv", pa.Table.from_pylist(lines), np.arange(1, len(lines) + 1))])


def findings_of(outcomes):
    """Return the findings of a file's groups."""
    return contrasts(groups(aggregate_by(outcomes.trials), outcomes.by), outcomes.trials).pairs


def test_rows_of_files_with_the_same_seeds_are_compared_seed_by_seed():
    """Matching seeds are paired; other trials are independent samples."""
    letters = {"A": "sssssssuuu", "B": "uuuuuuuuus"}
    (finding,) = findings_of(file_of(letters))
    assert (finding.test, finding.seeds) == ("McNemar", 10)
    assert (finding.sample.first_better, finding.sample.second_better) == (7, 1)
    (finding,) = findings_of(file_of(letters, {"B": 100}))
    assert (finding.test, finding.p_value) == ("Fisher", statistics.fisher_exact(7, 10, 1, 10))


def test_reports_by_columns_know_that_seeds_were_added_by_results():
    """Reports by columns of such a study use an any-time valid test, also together with a file."""
    lines = [{"model": model, "seed": seed, "solved": model == "A"} for model in "AB" for seed in range(9)]
    table, rows = pa.Table.from_pylist(lines), np.arange(1, 19)
    outcomes = gather([Source("study", table, rows, sizes="adaptive"), Source("runs.csv", table, rows)], ["model"])
    assert outcomes.sizes == "adaptive"
    (finding,) = assemble_group_report("both", outcomes).contrasts.pairs
    assert finding.test == "sign test at any time"


def test_several_trials_of_a_seed_count_as_one():
    """Repeated trials add no evidence: a seed's trials are averaged, and the seeds are the sample."""
    single = file_of({"A": "sssssssuuu", "B": "uuuuuuuuus"})
    (finding,) = findings_of(replace(single, table=pa.concat_tables([single.table] * 5)))
    outcomes = np.array([1.0] * 7 + [0.0] * 3), np.array([0.0] * 9 + [1.0])
    assert (finding.test, finding.seeds) == ("sign-flip", 10)
    assert finding.p_value == statistics.sign_flip(outcomes[0] - outcomes[1]).p_value


def combined(lucky):
    """Build trials of eight by eight combined seeds: by model, the number of init seeds solved for all data seeds."""
    results = [
        Result(
            trial=Trial(published_cell(model), Sources(init, data).seed),
            outcome=Outcome.SOLVED if init < count else Outcome.UNSOLVED,
            solved_at_iteration=1000 if init < count else None,
            iterations=5_000_000,
            training_s=1.0,
        )
        for model, count in lucky.items()
        for init in range(8)
        for data in range(10, 18)
    ]
    table = TrialTable(results_table(results))
    return cell_rows(aggregate(table), {}), table


def test_combined_seeds_are_compared_on_the_level_of_independent_seeds():
    """Sixteen trials decided by two init seeds count as two pairs; the headline agrees with the table."""
    rows, table = combined({"NMU": 6, "NAU": 4})
    (finding,) = contrasts(rows, table).pairs
    assert (finding.test, finding.seeds) == ("t over crossed seeds", 8)
    assert (finding.sample.first_better, finding.sample.unit) == (2, "init seed")
    assert statistics.mcnemar(16, 0) < 0.001 < 0.1 < finding.p_value
    assert "NMU 75% and NAU 50%: NMU and NAU are not distinguished" in headline(rows, contrasts(rows, table))
    assert rows.summaries[0].success_rate_by == "dependence-adjusted"


def test_seeds_added_by_results_are_tested_at_any_time():
    """If results determined the number of seeds, the any-time valid sign test is used."""
    rows, table = judged({"NMU": "s" * 14, "NAU": "u" * 12 + "ss"})
    (finding,) = contrasts(rows, table, "adaptive").pairs
    assert (finding.test, finding.p_value) == ("sign test at any time", statistics.anytime_sign_test(12, 0))
    assert finding.estimate == pytest.approx(12 / 14)
    assert contrasts(rows, table, "adaptive").trends == ()
