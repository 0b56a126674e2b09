"""User-requested comparisons: by one factor, or each method at its own best value of another."""

from __future__ import annotations

import numpy as np
import pytest

from study.comparisons.contrasts import contrasts
from study.comparisons.headline import headline
from study.comparisons.plan import Statement, comparison_plan
from study.interface.declarations import Metric
from study.reports import groups
from study.summaries.aggregate import aggregate_by
from study.trials.table import TrialTable
from tests.study.builders import outcomes_table

ACCURACY = {"accuracy": Metric(higher_is_better=True)}


def table_of(means, *, seeds=20, by=("kind", "rate"), spread=0.05, outcomes=None):
    """Build trials by group; their accuracy is the group's mean plus an effect of the seed and noise.

    Trials are finished, but for the `outcomes` by row.
    """
    rng = np.random.default_rng(0)
    seed_effects = rng.normal(size=seeds) * spread
    lines = [
        (*values, seed, mean + seed_effects[seed] + 0.02 * rng.normal())
        for values, mean in means.items()
        for seed in range(seeds)
    ]
    *columns, seed, accuracy = zip(*lines, strict=True)
    named = {name: list(column) for name, column in zip(by, columns, strict=True)}
    outcome = [(outcomes or {}).get(row, "finished") for row in range(len(lines))]
    table = outcomes_table(outcome=outcome, seed=list(seed), accuracy=list(accuracy), **named)
    return TrialTable(table, ACCURACY, by)


def rows_of(trials):
    return groups(aggregate_by(trials), trials.by)


GOOD = {("adam", 0.1): 0.5, ("adam", 0.01): 0.9, ("sgd", 0.1): 0.9, ("sgd", 0.01): 0.5}


def test_one_factor_is_compared_at_each_value_of_the_others():
    """The named factor is compared at each value of the other factor, without averaging."""
    trials = table_of(GOOD)
    tests = contrasts(rows_of(trials), trials, statements=[Statement(("kind",))])
    assert [(f.question, f.first, f.second, str(f.verdict)) for f in tests.pairs] == [
        ("rate 0.01", "kind adam", "kind sgd", "first better"),
        ("rate 0.1", "kind adam", "kind sgd", "second better"),
    ]
    assert "at rate 0.01, kind adam has the highest accuracy" in headline(rows_of(trials), tests).lower()


def test_tuned_methods_are_compared_at_their_own_best_values():
    """Methods that differ at equal values are alike at their own best values; a note gives the best values."""
    trials = table_of(GOOD)
    tests = contrasts(rows_of(trials), trials, statements=[Statement(("kind",), ("rate",))])
    (finding,) = tests.pairs
    assert finding.test == "tuned sign-flip"
    assert finding.values == pytest.approx((0.9, 0.9), abs=0.05)
    assert finding.winner is None
    assert finding.note == (
        "each at the values that other seeds choose: kind adam rate 0.01 (40 of 40); kind sgd rate 0.1 (40 of 40)"
    )
    sentence = headline(rows_of(trials), tests)
    assert sentence.startswith("Each method at its own best rate, kind adam 0.898")
    assert "kind adam and kind sgd are not distinguished (p = " in sentence
    assert tests.winners == frozenset()


def test_tuned_methods_with_stopped_trials_are_not_tested():
    """As in other comparisons, a trial that pruning stopped leaves no valid test: its last value isn't its result."""
    trials = table_of(GOOD, outcomes={0: "stopped"})
    (finding,) = contrasts(rows_of(trials), trials, statements=[Statement(("kind",), ("rate",))]).pairs
    assert (finding.p_value, finding.reason) == (None, "trials were stopped early")


def test_a_tuned_method_that_is_better_is_named():
    """If the best values differ clearly, the better method is named with both numbers."""
    trials = table_of(GOOD | {("sgd", 0.1): 0.6})
    tests = contrasts(rows_of(trials), trials, statements=[Statement(("kind",), ("rate",))])
    (finding,) = tests.pairs
    assert finding.winner == "kind adam"
    sentence = headline(rows_of(trials), tests)
    assert "kind adam has the best accuracy: better than kind sgd (0.898 against 0.596), p < 0.001; each at" in sentence


def test_tuning_does_not_reward_more_values():
    """A method with ten equal values isn't better than one with a single value."""
    rng = np.random.default_rng(1)
    lines = [
        (kind, rate, seed, rng.normal())
        for kind, n in (("many", 10), ("one", 1))
        for rate in range(n)
        for seed in range(20)
    ]
    kind, rate, seed, accuracy = zip(*lines, strict=True)
    table = outcomes_table(
        outcome=["finished"] * len(lines), kind=list(kind), rate=list(rate), seed=list(seed), accuracy=list(accuracy)
    )
    trials = TrialTable(table, ACCURACY, ("kind", "rate"))
    (finding,) = contrasts(rows_of(trials), trials, statements=[Statement(("kind",), ("rate",))]).pairs
    assert finding.winner is None


def test_the_default_for_undeclared_columns_is_one_factor_at_a_time():
    """Each factor is compared within each value of the other, without diagonal pairs."""
    plan = comparison_plan(rows_of(table_of(GOOD)))
    assert [(", ".join(question.factor), question.name) for question in plan.questions] == [
        ("kind", "rate 0.01"),
        ("kind", "rate 0.1"),
        ("rate", "kind adam"),
        ("rate", "kind sgd"),
    ]
