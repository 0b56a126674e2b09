"""Headlines without a success criterion: the best mean, and the significance of its lead."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from study.interface.declarations import Metric
from study.reports import contrasts, groups, headline
from study.summaries.aggregate import aggregate_by
from study.trials.table import TrialTable
from tests.study.builders import outcomes_table

ACCURACY = Metric(higher_is_better=True, title="test accuracy", low=0.0, high=1.0)


def headline_of(means, metric=ACCURACY, *, spread=0.01, by=("model",), outcome="finished"):
    """Return the headline of groups of ten trials, with values evenly spread around their means; NaN: no value."""
    values = [mean + spread * step for mean in means.values() for step in np.linspace(-1, 1, 10)]
    keys = {name: [group[i] for group in means for _ in range(10)] for i, name in enumerate(by)}
    table = outcomes_table(outcome=[outcome] * len(values), accuracy=pa.array(values), **keys)
    trials = TrialTable(table, {"accuracy": metric}, tuple(by))
    rows = groups(aggregate_by(trials), by)
    return headline(rows, contrasts(rows, trials))


def test_the_best_mean_is_named_with_its_interval():
    """The headline names the best mean in the metric's direction with its interval, then the others."""
    means = {("A",): 0.94, ("B",): 0.91, ("C",): 0.8, ("D",): 0.7}
    text = headline_of(means)
    assert text.startswith("A has the highest test accuracy: 0.940 [0.93")
    assert "then B 0.91" in text
    assert text.endswith("(p < 0.001).")
    lower = headline_of(means, Metric(title="waiting time", unit="s"))
    assert lower.startswith("D has the lowest waiting time (s): 0.700 [")
    assert "then C 0.8" in lower


@pytest.mark.parametrize(("second", "is_named"), [(0.939, False), (0.90, True)])
def test_a_lead_that_may_be_chance_has_no_winner(second, is_named):
    """A method is called best only if the test distinguishes it; else the headline gives both numbers and p."""
    text = headline_of({("A",): 0.94, ("B",): second})
    assert text.startswith("A has the highest test accuracy") == is_named
    assert ("A and B are not distinguished (p = " in text) != is_named


def test_equal_means_have_no_winner():
    """The headline doesn't distinguish two methods with equal means."""
    text = headline_of({("A",): 0.5, ("B",): 0.5})
    assert "A 0.500 [" in text
    assert "A and B are not distinguished (p = 1" in text


def test_methods_are_compared_at_shared_settings():
    """A method that was also tried at easy settings gains no advantage from them."""
    means = {("A", 2): 0.6, ("A", 4): 0.9, ("B", 2): 0.7}
    text = headline_of(means, by=("model", "hidden_size"))
    assert text.startswith("B has the highest test accuracy: 0.700 [")
    assert "A 0.6" in text


def test_a_mean_over_rows_weights_them_equally():
    """A method's mean over swept values is the mean of its rows' means."""
    means = {("A", 2): 0.6, ("A", 4): 0.8, ("B", 2): 0.5, ("B", 4): 0.6}
    assert headline_of(means, by=("model", "hidden_size")).startswith(
        "A has the highest test accuracy over hidden units: 0.7, B 0.55"
    )


def test_one_method_is_described_by_its_best_value():
    """The headline gives a single method's best value, and the means at both ends of the sweep."""
    text = headline_of({(2,): 0.6, (4,): 0.7, (8,): 0.9}, by=("hidden_size",))
    assert text.startswith("The test accuracy is highest at hidden units 8: 0.900 [")
    assert text.endswith("]; 0.600 at 2.")
    equal = headline_of({(2,): 0.6, (4,): 0.6}, by=("hidden_size",))
    assert equal.startswith("The test accuracy is 0.600 [")
    assert "at each of 2 values of hidden units" in equal


def test_each_question_has_its_own_headline():
    """Rows of different questions aren't compared with each other."""
    means = {("add", "A"): 0.9, ("add", "B"): 0.5, ("mul", "A"): 0.2, ("mul", "B"): 0.4}
    text = headline_of(means, by=("operation", "model"))
    assert text.startswith("At +, A has the highest test accuracy")
    assert "; at ×, B has the highest test accuracy" in text


def test_missing_numbers_are_reported():
    """Without finite values, or without an averaged metric, the headline says so."""
    diverged = {("A",): float("nan"), ("B",): float("nan")}
    assert headline_of(diverged) == "No trial has a finite test accuracy."
    by_three = {(lr, width, name): float("nan") for lr in (0.1, 0.2) for width in (4, 8) for name in "ab"}
    assert headline_of(by_three, by=("lr", "width", "opt")) == "No trial has a finite test accuracy."
    without_metric = headline_of({("A",): 0.5}, Metric(of="none"))
    assert without_metric == "10 trials ended; there is no success criterion, and no metric is averaged."


def test_pairs_are_tested_by_their_means():
    """Without success rates, methods are compared in pairs by Welch's test; rates and times are not tested."""
    table = outcomes_table(
        outcome=["finished"] * 6, model=list("aabbcc"), loss=pa.array([1.0, 2.0, 3.0, 5.0, 7.0, 7.0])
    )
    trials = TrialTable(table, {"loss": Metric()}, ("model",))
    tests = contrasts(groups(aggregate_by(trials), ["model"]), trials)
    assert tests.metric == "loss"
    assert [(pair.first, pair.second, pair.estimate) for pair in tests.pairs] == [
        ("a", "b", -2.5),
        ("a", "c", -5.5),
        ("b", "c", -3.0),
    ]
    assert (tests.trends, tests.slopes, tests.speeds) == ((), (), ())


def test_diverged_trials_rank_worst_among_many_factors():
    """If trials diverged, the leading value has the largest share of won pairs; diverged trials rank worst."""
    settings = [setting for setting in product("xy", "12", "34", "56") for _ in range(9)]
    worse = [setting[0] == "y" for setting in settings]
    diverged = [place % 9 == 0 for place in range(len(settings))]
    table = outcomes_table(
        **{name: [setting[place] for setting in settings] for place, name in enumerate("abcd")},
        outcome=["diverged" if is_lost else "finished" for is_lost in diverged],
        seed=[*range(9)] * 16,
        loss=pa.array([None if lost else float(bad) for lost, bad in zip(diverged, worse, strict=True)]),
    )
    trials = TrialTable(table, {"loss": Metric()}, tuple("abcd"))
    rows = groups(aggregate_by(trials), list("abcd"))
    text = headline(rows, contrasts(rows, trials))
    assert text.startswith("Loss on average over all else: a x is better than a y in ")
    assert "of pairs of trials (p = 0.0" in text
