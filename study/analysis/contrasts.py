"""Statements between rows: trends of the success rate over what is swept, and tests between methods.

Families: the trends, the pairs and the log-rank tests are one family each, whose p-values are adjusted by Holm's
method, and so are the pairs by each metric; the coefficients of a regression answer one question together and are not
adjusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from study import statistics
from study.analysis import seed_pairs, series
from study.analysis.method_tests import Pair, Speed, pairs, shared_seeds, speeds
from study.analysis.rows import ResultRows
from study.analysis.seed_pairs import SeedTrials
from study.analysis.summary import Summary
from study.records import Interval

_FACTOR = 10.0
"""A key whose values span this factor or more was swept by factors: its logarithm is the regressor."""


@dataclass(frozen=True, kw_only=True)
class TrendTest:
    """How the success rate of one method changes with an ordered key.

    Args:
        name: the name of the rows: what they have in common; empty if these are all rows.
        key: the key that is swept.
        low: its least value, and the rate there.
        high: its greatest value, and the rate there.
        z: of the test, seed by seed or Cochran and Armitage's; positive where the rate grows with the key.
        p_value: two-sided.
        p_adjusted: after Holm's correction over all trends.
        seeds: the seeds that were compared; None if trials weren't compared seed by seed.
    """

    name: str
    key: str
    low: tuple[float, float]
    high: tuple[float, float]
    z: float
    p_value: float
    p_adjusted: float
    seeds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Slope:
    """The effect of one key in a logistic regression, the others held fixed.

    Args:
        name: the name of the rows: what they have in common; empty if these are all rows.
        key: the hyperparameter.
        is_log: whether the regressor is its logarithm to base 10.
        odds_ratio: of success, for a unit of the key (of its logarithm: a factor of 10); None where successes and
            failures are separated.
        interval: 95%, by profile likelihood.
        p_value: Wald's, two-sided.
    """

    name: str
    key: str
    is_log: bool
    odds_ratio: float | None
    interval: Interval | None
    p_value: float | None


@dataclass(frozen=True, kw_only=True)
class Contrasts:
    """The statements that rows allow about each other; each may be empty.

    Args:
        trends: trends of success rates over ordered keys.
        slopes: logistic regressions on several keys.
        pairs: methods two by two, at each question.
        speeds: log-rank tests at each question.
        notes: what was left out, and why.
        metric: the metric whose means the pairs differ in; None if success rates are tested.
        more_pairs: returns the same pairs by further metrics, where means are tested; each metric is a family of tests.
            Only a file has them, and they take as long as all else.
    """

    trends: tuple[TrendTest, ...] = ()
    slopes: tuple[Slope, ...] = ()
    pairs: tuple[Pair, ...] = ()
    speeds: tuple[Speed, ...] = ()
    notes: tuple[str, ...] = ()
    metric: str | None = None
    more_pairs: Callable[[], Mapping[str, tuple[Pair, ...]]] = dict[str, tuple[Pair, ...]]

    @property
    def has_any(self) -> bool:
        """Whether anything was tested."""
        return bool(self.trends or self.slopes or self.pairs or self.speeds)


def contrasts(rows: ResultRows, trials: SeedTrials | None = None) -> Contrasts:
    """Compute every statement that the rows allow: without success rates, differences of metrics' means.

    Args:
        rows: the results.
        trials: their trials, by which rows that have the same seeds are compared seed by seed; None if they aren't
            known.
    """
    if not rows.has_rates:
        main = rows.main_metric
        if main is None:
            return Contrasts()
        some, notes = pairs(rows, trials, main)
        more = partial(_more_pairs, rows, trials)
        return Contrasts(pairs=_adjusted(some), notes=notes, metric=main, more_pairs=more)
    (some, pair_notes), (times, speed_notes) = pairs(rows, trials), speeds(rows, trials)
    return Contrasts(
        trends=_trends(rows, trials),
        slopes=_slopes(rows),
        pairs=_adjusted(some),
        speeds=_adjusted(times),
        notes=(*pair_notes, *speed_notes),
    )


def _more_pairs(rows: ResultRows, trials: SeedTrials | None) -> dict[str, tuple[Pair, ...]]:
    others = [name for name, metric in rows.single_metrics.items() if metric.of == "ended" and name != rows.main_metric]
    return {name: _adjusted(pairs(rows, trials, name)[0]) for name in others}


def _ordered_keys(rows: ResultRows) -> list[str]:
    """List the numeric keys that vary; a key with a default or infinity among its values has no order."""
    return [
        key
        for key in rows.varying()
        if rows.is_number[rows.keys.index(key)]
        and all(level is not None and math.isfinite(level) for level in series.levels(rows, key))
    ]


def _trends(rows: ResultRows, trials: SeedTrials | None) -> tuple[TrendTest, ...]:
    return _adjusted([test for key in _ordered_keys(rows) for test in _trends_over(rows, key, trials)])


_Test = TypeVar("_Test", TrendTest, Pair, Speed)


def _adjusted(tests: Sequence[_Test]) -> tuple[_Test, ...]:
    """Adjust the p-values of a family by Holm's method."""
    adjusted = statistics.holm([test.p_value for test in tests])
    return tuple(replace(test, p_adjusted=p) for test, p in zip(tests, adjusted, strict=True))


def _trends_over(rows: ResultRows, key: str, trials: SeedTrials | None) -> list[TrendTest]:
    """Test each method's trend; the p-values are not adjusted yet."""
    rest = [other for other in rows.varying() if other != key]
    tests = []
    for members in rows.alike(rest, rows.judged()).values():
        members.sort(key=lambda row: rows.value(row, key))
        summaries = [rows.summaries[row] for row in members]
        if len(members) < 3:  # for two values, the test of the pair says more
            continue
        trend, seeds = _trend(summaries, trials)
        if trend is not None:
            low, high = ((float(rows.value(row, key)), _rate(rows.summaries[row])) for row in (members[0], members[-1]))
            name, p = rows.name(members[0], rest), trend.p_value
            ends = {"low": low, "high": high}
            tests.append(TrendTest(name=name, key=key, **ends, z=trend.z, p_value=p, p_adjusted=p, seeds=seeds))
    return tests


def _trend(summaries: Sequence[Summary], trials: SeedTrials | None) -> tuple[statistics.Trend | None, int | None]:
    """Test the trend over rows in order, seed by seed if they share seeds; give the seeds, too.

    The scores are ranks 0, 1, 2, ..., so that one distant value doesn't decide: only the order is tested.
    """
    shared = shared_seeds(trials, summaries)
    if shared is None:
        counts = [s.solved for s in summaries], [s.judged for s in summaries]
        return statistics.cochran_armitage(range(len(summaries)), *counts), None
    judged = seed_pairs.judged(shared)
    return statistics.paired_trend(np.column_stack([of.solved for of in judged])), judged[0].rows.size


def _rate(summary: Summary) -> float:
    return summary.solved / summary.judged


def _slopes(rows: ResultRows) -> tuple[Slope, ...]:
    """Regress on all ordered keys at once, where there are at least two of them."""
    keys = _ordered_keys(rows)
    if len(keys) < 2:
        return ()
    rest = [key for key in rows.varying() if key not in keys]
    by_factors = {key: _by_factors(series.levels(rows, key)) for key in keys}
    everything, regressions = keys, []
    for members in rows.alike(rest, rows.judged()).values():
        # a key that is constant among these rows has no slope, and would make the others' slopes undetermined
        keys = [key for key in everything if len({rows.value(row, key) for row in members}) > 1]
        if len(keys) < 2:
            continue
        is_log = [by_factors[key] for key in keys]
        points = [
            [
                math.log10(rows.value(row, key)) if log else float(rows.value(row, key))
                for key, log in zip(keys, is_log, strict=True)
            ]
            for row in members
        ]
        summaries = [rows.summaries[row] for row in members]
        fit = statistics.logistic_regression(points, [s.solved for s in summaries], [s.judged for s in summaries])
        if fit is None:
            continue
        name = rows.name(members[0], rest)
        slopes: Sequence[statistics.Coefficient | None] = fit.slopes or [None] * len(keys)
        for key, log, slope in zip(keys, is_log, slopes, strict=True):
            regressions.append(_slope(name, key, log, slope))
    return tuple(regressions)


def _slope(name: str, key: str, is_log: bool, slope: statistics.Coefficient | None) -> Slope:
    if slope is None:
        return Slope(name=name, key=key, is_log=is_log, odds_ratio=None, interval=None, p_value=None)
    low, high = slope.profile_interval
    return Slope(
        name=name,
        key=key,
        is_log=is_log,
        odds_ratio=_exp(slope.estimate),
        interval=(_exp(low), _exp(high)),
        p_value=slope.p_value,
    )


def _exp(value: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(value))


def _by_factors(levels: Sequence[float]) -> bool:
    return min(levels) > 0 and max(levels) / min(levels) >= _FACTOR
