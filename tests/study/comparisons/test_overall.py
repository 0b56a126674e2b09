"""Methods aggregated over tasks: included trials, statistics and notes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from study import statistics
from study.arrow import results_table
from study.comparisons import overall as of_all
from study.comparisons.overall import overall as overall_of
from study.interface.declarations import Metric
from study.records import Cell, Outcome, Result, Trial
from study.reports import cell_rows, groups
from study.statistics import SeedValues
from study.summaries.aggregate import aggregate
from study.trials.table import TrialTable
from tests.study.builders import outcomes_table, summarised, summarised_by

BY = ("task", "model")
METRICS = {"accuracy": Metric(higher_is_better=True)}


def results(values, outcomes=None):
    """Build rows and results of cells: the accuracy of each seed, by model and number of turns."""
    trials = [
        Result(
            trial=Trial(Cell("lab:Spirals", f"lab:{model}", {"turns": turns}), seed),
            outcome=(outcomes or {}).get((model, turns, seed), Outcome.FINISHED),
            metrics={} if math.isnan(value) else {"accuracy": value},
        )
        for (model, turns), seed_values in values.items()
        for seed, value in seed_values.items()
    ]
    table = results_table(trials)
    return cell_rows(summarised(table, METRICS), {}, question_fields=["turns"]), TrialTable(table, METRICS)


def some_values(models=("mlp", "rnn", "cnn"), questions=(1, 2), seeds=8):
    rng = np.random.default_rng(0)
    return {
        (model, turns): {seed: float(rng.normal() + place) for seed in range(seeds)}
        for place, model in enumerate(models)
        for turns in questions
    }


def test_methods_are_compared_over_shared_questions():
    """The numbers are the statistics over the shared questions; a note counts the others."""
    values = some_values() | {("mlp", 3): {0: 99.0, 1: 98.0}}
    overall = overall_of(*results(values))
    assert overall.questions == ("turns 1", "turns 2")
    assert [method.name for method in overall.methods] == ["mlp", "rnn", "cnn"]
    own = {model: SeedValues({turns: values[model, turns] for turns in (1, 2)}) for model in ("mlp", "rnn", "cnn")}
    for method in overall.methods:
        assert method.interquartile_mean == statistics.interquartile_mean_over_cells(own[method.name])
        assert method.profile.reach == statistics.performance_profile(own[method.name], higher_is_better=True).reach
        for other, improvement in zip(own, method.improvements, strict=True):
            expected = None
            if other != method.name:
                expected = statistics.probability_of_improvement(
                    of=own[method.name], over=own[other], higher_is_better=True
                )
            assert improvement == expected
        assert (method.trials, method.seeds, method.without_number) == (16, (8, 8), 0)
    assert overall.methods[overall.best].name == "cnn"
    assert any("1 task left out" in note for note in overall.notes)
    assert any("must be on one scale" in note for note in overall.notes)


def test_a_trial_without_a_number_ranks_worst():
    """A diverged trial isn't in interquartile means, reaches no threshold and loses pairs; a failed one is ignored."""
    values = some_values(("mlp", "rnn"), seeds=6)
    values["mlp", 1] |= {0: math.nan, 1: math.nan}
    values |= {("mlp", 2): values["mlp", 1], ("rnn", 2): values["rnn", 1]}
    diverged = {("mlp", t, 0): Outcome.DIVERGED for t in (1, 2)} | {("rnn", t, 5): Outcome.FAILED for t in (1, 2)}
    overall = overall_of(*results(values, diverged))
    mlp, rnn = overall.methods
    assert (mlp.trials, mlp.without_number, rnn.trials) == (12, 4, 10)
    numbers = [value for value in values["mlp", 1].values() if not math.isnan(value)]
    assert mlp.interquartile_mean.value == pytest.approx(statistics.interquartile_means(numbers)[0])
    assert mlp.profile.at([-1e300])[0] == pytest.approx(4 / 6)
    remaining = {seed: value for seed, value in values["rnn", 1].items() if seed != 5}
    lost = {seed: -math.inf if math.isnan(value) else value for seed, value in values["mlp", 1].items()}
    assert mlp.improvements[1] == statistics.probability_of_improvement(
        of=SeedValues({0: lost, 1: lost}), over=SeedValues({0: remaining, 1: remaining}), higher_is_better=True
    )
    assert [note for note in overall.notes if "mlp (4 of 12)" in note]


def test_the_direction_follows_the_metric():
    """If lower is better, a trial without a number ranks above all numbers."""
    table = outcomes_table(
        task=["x"] * 10 + ["y"] * 10,
        model=(["A"] * 5 + ["B"] * 5) * 2,
        seed=[*range(5)] * 4,
        outcome=(["finished"] * 9 + ["diverged"]) * 2,
        loss=[1.0, 2, 3, 4, 5, 2.5, 3.5, 4.5, 5.5, np.nan] * 2,
    )
    rows = groups(summarised_by(table, BY, {"loss": Metric()}), BY)
    first, second = overall_of(rows, TrialTable(table, {"loss": Metric()}, BY)).methods
    assert first.improvements[1].value > 0.5 > second.improvements[0].value
    assert second.profile.at([1e300])[0] == pytest.approx(0.8)


def test_rows_of_one_seed_are_averaged_with_a_note():
    """Folds pooled under one seed are averaged, and a note says so."""
    table = outcomes_table(
        task=["x"] * 9 + ["y"] * 9,
        model=(["A"] * 6 + ["B"] * 3) * 2,
        fold=([0, 1] * 3 + [0] * 3) * 2,
        seed=[0, 0, 1, 1, 2, 2, 0, 1, 2] * 2,
        outcome=["finished"] * 18,
        loss=[1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 1.0, 2.0, 3.0] * 2,
    )
    rows = groups(summarised_by(table, BY, {"loss": Metric()}), BY)
    overall = overall_of(rows, TrialTable(table, {"loss": Metric()}, BY))
    first, second = overall.methods
    assert (first.trials, first.seeds) == (12, (3, 3))
    assert first.improvements[1] == statistics.probability_of_improvement(
        of=SeedValues({key: {0: 2.0, 1: 3.0, 2: 6.0} for key in (0, 1)}),
        over=SeedValues({key: {0: 1.0, 1: 2.0, 2: 3.0} for key in (0, 1)}),
        higher_is_better=False,
    )
    assert any("their mean is the seed's value" in note for note in overall.notes)
    assert second.improvements[0].value == pytest.approx(1 - first.improvements[1].value)


def test_aggregation_needs_a_metric_two_methods_and_two_tasks(monkeypatch):
    """One method, metrics of solved trials only, or fewer than two shared tasks give None; too many methods a note."""
    assert overall_of(*results(some_values(("mlp",), (1,)))) is None
    _, table = results(some_values())
    solved_only = TrialTable(table.results, {"accuracy": Metric(of="solved")})
    assert overall_of(cell_rows(aggregate(solved_only), {}, question_fields=["turns"]), solved_only) is None
    apart = results({(model, turns): {0: 1.0} for model, turns in (("mlp", 1), ("rnn", 2), ("cnn", 1), ("cnn", 2))})
    assert overall_of(*apart) is None
    assert overall_of(*results(some_values(questions=(1,)))) is None
    assert overall_of(*results(some_values(questions=(1,)) | {("mlp", 2): {0: 1.0}})) is None
    monkeypatch.setattr(of_all, "MOST_METHODS", 2)
    overall = overall_of(*results(some_values()))
    assert (overall.methods, overall.notes) == ((), ("3 methods are too many to be aggregated over tasks.",))


def test_one_seed_per_question_gives_no_probability():
    """One seed per question gives no probability of improvement and no interval."""
    first, second = overall_of(*results(some_values(("mlp", "rnn"), seeds=1))).methods
    assert (first.improvements, second.improvements) == ((None, None), (None, None))
    assert first.interquartile_mean.interval is None
