"""Metrics of rows: included trials, statistics, and missing rates of unjudged trials."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import statistics
from study.interface.declarations import Metric
from study.records import Outcome
from study.summaries.metrics import MetricSummary, difference, main, of_curves, of_trials, series_of, single
from tests.study.builders import outcomes_table, summarised_by

LOSS, ACCURACY = Metric(), Metric(higher_is_better=True, low=0.0, high=1.0)
OUTCOMES = st.sampled_from([*map(str, Outcome), None])
NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([math.inf, -math.inf, math.nan]))
TRIALS = st.lists(st.tuples(st.sampled_from("ab"), OUTCOMES, NUMBERS), min_size=1, max_size=30)


def groups_of(trials, metric=LOSS):
    """Summarise trials by model, and return the groups by the model's name."""
    models, ends, values = zip(*trials, strict=True)
    table = outcomes_table(model=models, outcome=ends, loss=pa.array(values, pa.float64()))
    return {group.values[0]: group for group in summarised_by(table, ["model"], {"loss": metric})}


def test_an_interval_of_a_mean_ends_at_the_limits_of_the_metric():
    """An error's mean can't be below 0, so the interval is clipped; values beyond the limits disable clipping."""
    values = [*np.geomspace(1e-9, 1e-7, 19), 1e-3]
    trials = [("a", "solved", value) for value in values]
    (low, high) = groups_of(trials)["a"].metrics["loss"].mean_interval
    assert low < 0 < high
    assert groups_of(trials, Metric(low=0.0))["a"].metrics["loss"].mean_interval == (0.0, high)
    assert groups_of(trials, Metric(low=1.0))["a"].metrics["loss"].mean_interval == (low, high)
    assert groups_of(trials, Metric(low=0.0, high=values[-2]))["a"].metrics["loss"].mean_interval == (0.0, high)


def finite(trials, model, outcomes):
    """Return the finite values of a model's trials with given outcomes; empty if one of its trials was stopped."""
    if any(trial_model == model and outcome == "stopped" for trial_model, outcome, _ in trials):
        return np.array([])
    values = [
        value
        for trial_model, outcome, value in trials
        if trial_model == model and outcome in outcomes and value is not None
    ]
    return np.array([value for value in values if math.isfinite(value)])


@given(trials=TRIALS)
def test_a_metric_covers_all_trials_that_ended_with_a_number(trials):
    """Mean, median, interquartile mean and intervals use the finite values of ended trials."""
    for model, group in groups_of(trials).items():
        values = finite(trials, model, {"solved", "unsolved", "finished"})
        metric_summary = group.metrics["loss"]
        assert metric_summary.count == values.size
        if not values.size:
            assert metric_summary == MetricSummary(metric=LOSS)
            continue
        assert metric_summary.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
        assert metric_summary.median == np.median(values)
        assert metric_summary.interquartile_mean == statistics.interquartile_means(values)[0]
        for interval, bound in (
            (metric_summary.mean_interval, statistics.mean_intervals),
            (metric_summary.median_interval, statistics.median_intervals),
            (metric_summary.interquartile_mean_interval, statistics.interquartile_mean_intervals),
        ):
            (expected,) = bound(values)
            assert (interval is None) == bool(np.isnan(expected[0]))
            assert interval is None or interval == tuple(expected)


@given(trials=TRIALS)
def test_a_metric_of_solved_trials_ignores_all_others(trials):
    """With `of: solved`, a metric covers solved trials only."""
    for model, group in groups_of(trials, Metric(of="solved")).items():
        assert group.metrics["loss"].count == finite(trials, model, {"solved"}).size


@given(trials=TRIALS, random=st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(trials, random):
    """A group's counts and metrics don't depend on the order of rows, except for the last bits of sums."""
    shuffled = random.sample(trials, len(trials))
    groups, shuffled_groups = groups_of(trials), groups_of(shuffled)
    assert set(groups) == set(shuffled_groups)
    for model, group in groups.items():
        metric_summary, other = group.metrics["loss"], shuffled_groups[model].metrics["loss"]
        assert (group.ended, group.judged, group.is_judged) == (
            shuffled_groups[model].ended,
            shuffled_groups[model].judged,
            shuffled_groups[model].is_judged,
        )
        assert (metric_summary.count, metric_summary.median, metric_summary.interquartile_mean) == (
            other.count,
            other.median,
            other.interquartile_mean,
        )
        assert (metric_summary.mean is None) == (other.mean is None)
        assert (metric_summary.mean or 0.0) == pytest.approx(other.mean or 0.0, rel=1e-9, abs=1e-6)


@given(trials=TRIALS)
def test_finished_trials_are_not_in_rates(trials):
    """Finished trials aren't in a rate's denominator; without solved or unsolved trials the rate is None."""
    judged_outcomes = {"solved", "unsolved"}
    for model, group in groups_of(trials).items():
        ends = [outcome for trial_model, outcome, _ in trials if trial_model == model]
        assert group.finished == ends.count("finished")
        assert group.ended == sum(outcome not in (None, "failed", "stopped") for outcome in ends)
        if not judged_outcomes & set(ends) and "finished" in ends:
            assert (group.is_judged, group.judged, group.success_rate) == (False, 0, None)
            assert group.time_to_success_mean is None
        elif group.judged:
            assert group.judged == sum(outcome in (*judged_outcomes, "diverged") for outcome in ends)
            assert group.success_rate == pytest.approx(ends.count("solved") / group.judged)


def test_rows_where_all_diverged_have_no_rate_beside_unjudged_rows():
    """If other rows finished unjudged, an all-diverged row doesn't have a rate of zero."""
    groups = groups_of([("a", "finished", 1.0), ("b", "diverged", None)])
    assert [groups[name].success_rate for name in "ab"] == [None, None]
    assert groups_of([("b", "diverged", None)])["b"].success_rate == 0.0
    assert groups_of([("a", "unsolved", 1.0), ("b", "diverged", None)])["b"].success_rate == 0.0


def test_a_beta_interval_is_on_the_declared_limits():
    """A beta interval scales with the metric's declared limits; it is missing if a value is beyond a limit."""
    values = np.array([0.1, 0.2, 0.2, 0.3, 0.1])
    (expected,) = statistics.beta_mean_intervals(values)
    moved = Metric(low=-1.0, high=0.0, interval="beta")
    metric_summary = groups_of([("a", "finished", value) for value in 2 * values - 1], moved)["a"].metrics["loss"]
    assert metric_summary.mean_interval == pytest.approx(2 * expected - 1)
    assert metric_summary.median is None
    for beyond in (-1.5, 0.5):
        trials = [("a", "finished", value) for value in (*(2 * values - 1), beyond)]
        assert groups_of(trials, moved)["a"].metrics["loss"].mean_interval is None


def test_metrics_that_are_not_averaged_are_not_read():
    """With `of: none` a metric has no summary, and its column may be absent."""
    table = outcomes_table(model=["a"], outcome=["solved"])
    (group,) = summarised_by(table, ["model"], {"absent": Metric(of="none")})
    assert group.metrics == {}


def test_declarations_choose_the_shown_metrics():
    """The main metric is the first metric of all trials; curves show a metric on its scale, lists the averaged ones."""
    metrics = {"validation_loss": Metric(of="none"), "train_loss": Metric(of="none"), "error": Metric(of="solved")}
    assert main(metrics) is None
    assert of_curves(metrics) == ("train_loss", "validation_loss")
    assert of_trials(metrics) == ["error", "train_loss"]
    extended = {**metrics, "accuracy": ACCURACY, "loss": LOSS}
    assert main(extended) == "accuracy"
    assert of_curves(extended) == ("accuracy",)
    assert of_curves({}) == ()


def test_a_difference_needs_values_that_vary():
    """A difference needs two values on each side, with a variance on at least one side."""
    varied, equal = ([("a", "finished", value) for value in values] for values in ((1.0, 3.0), (2.0, 2.0)))
    first, second = (groups_of(trials)["a"].metrics["loss"] for trials in (varied, equal))
    assert difference(first, second).estimate == 0.0
    assert difference(second, second) is None
    assert difference(first, None) is None


PLACES = st.lists(st.integers(-20, 20), min_size=1, unique=True)


@given(places=PLACES, named=st.integers(-20, 20), has_main=st.booleans())
def test_a_metric_is_shown_alone_or_in_its_series(places, named, has_main):
    """A metric that isn't shown alone is in a series; the series has all its metrics in ascending places."""
    errors = {f"error_at_{n}": Metric(series="error", along="number", at=n) for n in places}
    metrics = ({"loss": LOSS} if has_main else {}) | errors | {"accuracy": ACCURACY}
    singles, (series,) = single(metrics, [f"error_at_{named}"]), series_of(metrics)
    first = [] if has_main else [f"error_at_{places[0]}"]
    assert {*singles} == {*metrics} - {*errors} | {*errors} & {*first, f"error_at_{named}"}
    assert [*singles] == [name for name in metrics if name in singles]
    assert (series.title, series.along, series.places) == ("error", "number", tuple(sorted(places)))
    assert series.metrics == {f"error_at_{n}": errors[f"error_at_{n}"] for n in sorted(places)}


def test_series_differ_by_name_and_axis():
    """The same error along another axis is another series, with its own trained places."""
    metrics = {
        f"error_at_{along}_{n}": Metric(series="error", along=along, at=n, unit="m", is_trained=n in trained)
        for along, trained in (("length", (2, 3)), ("width", ()))
        for n in (3, 1, 2)
    }
    series = series_of(metrics)
    assert [metric_series.heading for metric_series in series] == ["error (m) along length", "error (m) along width"]
    assert [metric_series.trained for metric_series in series] == [(2, 3), None]
