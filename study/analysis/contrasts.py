"""Statements between rows: trends of the success rate over what is swept, and tests between methods.

Families: trends, pairs and log-rank tests are a family each, whose p-values are adjusted by Holm; coefficients of a
regression answer one question together and are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from study import statistics
from study.analysis import series
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.records import Interval

MOST_PAIRS = 2000
"""Pairs of rows that are tested at most: beyond, nobody reads them and Holm leaves nothing."""

_FACTOR = 10.0
"""What spans so many times its least value was swept by factors: its logarithm is regressed on."""


@dataclass(frozen=True, kw_only=True)
class TrendTest:
    """How the success rate of one method goes with an ordered key.

    Args:
        name: of the rows: what they have in common; empty if these are all.
        key: what is swept.
        low: its least value, and the rate there.
        high: its greatest value, and the rate there.
        z: Cochran-Armitage; positive where the rate grows with the key.
        p_value: two-sided.
        p_adjusted: after Holm, over all trends.
    """

    name: str
    key: str
    low: tuple[float, float]
    high: tuple[float, float]
    z: float
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, kw_only=True)
class Slope:
    """What a logistic regression says of one key, the others held fixed.

    Args:
        name: of the rows: what they have in common; empty if these are all.
        key: the hyperparameter.
        is_log: whether its logarithm to base 10 was regressed on.
        odds_ratio: of success, a unit of the key (of its logarithm: a factor of 10); None where successes and failures
            are separated.
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
class Pair:
    """Two methods at one question.

    Args:
        question: what both answer; empty if there is one question.
        first: name of one.
        second: name of the other.
        difference: of success rates, first minus second.
        interval: Newcombe, 95%.
        p_value: Fisher's exact test.
        p_adjusted: after Holm, over all pairs.
    """

    question: str
    first: str
    second: str
    difference: float
    interval: Interval
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Whether the methods of one question take equally long to succeed.

    Args:
        question: what they answer; empty if there is one question.
        names: the methods.
        statistic: of the log-rank test.
        degrees_of_freedom: of it.
        p_value: of it.
        p_adjusted: after Holm, over all questions.
    """

    question: str
    names: tuple[str, ...]
    statistic: float
    degrees_of_freedom: int
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, kw_only=True)
class Contrasts:
    """What can be said between rows; each may be empty.

    Args:
        trends: of success rates over ordered keys.
        slopes: logistic regressions on several keys.
        pairs: methods two by two, at each question.
        speeds: log-rank tests at each question.
        notes: what was left out, and why.
    """

    trends: tuple[TrendTest, ...] = ()
    slopes: tuple[Slope, ...] = ()
    pairs: tuple[Pair, ...] = ()
    speeds: tuple[Speed, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_any(self) -> bool:
        """Say whether anything was tested."""
        return bool(self.trends or self.slopes or self.pairs or self.speeds)


def contrasts(rows: ResultRows) -> Contrasts:
    """Compute every statement that the rows allow."""
    (pairs, notes), (speeds, unknown) = _pairs(rows), _speeds(rows)
    return Contrasts(
        trends=_trends(rows), slopes=_slopes(rows), pairs=pairs, speeds=speeds, notes=(*notes, *unknown)
    )


def _ordered(rows: ResultRows) -> list[str]:
    """List the keys of numbers that vary; a key with a default or infinity among its values has no order."""
    return [
        key
        for key in rows.varying()
        if rows.is_number[rows.keys.index(key)]
        and all(level is not None and math.isfinite(level) for level in series.levels(rows, key))
    ]


def _trends(rows: ResultRows) -> tuple[TrendTest, ...]:
    found = [trend for key in _ordered(rows) for trend in _trends_over(rows, key)]
    adjusted = statistics.holm([trend[-1] for trend in found])
    return tuple(
        TrendTest(name=name, key=key, low=low, high=high, z=z, p_value=p, p_adjusted=after)
        for (name, key, low, high, z, p), after in zip(found, adjusted, strict=True)
    )


_Found = tuple[str, str, tuple[float, float], tuple[float, float], float, float]


def _trends_over(rows: ResultRows, key: str) -> list[_Found]:
    rest = [other for other in rows.varying() if other != key]
    found = []
    for members in rows.alike(rest, rows.finished()).values():
        members.sort(key=lambda row: rows.value(row, key))
        summaries = [rows.summaries[row] for row in members]
        if len(members) < 3:  # of two values, the pair's test says more
            continue
        # The order is what is tested: scores 0, 1, 2 ... don't let one far value decide.
        trend = statistics.cochran_armitage(
            range(len(members)), [s.solved for s in summaries], [s.finished for s in summaries]
        )
        if trend is not None:
            ends = [
                (float(rows.value(row, key)), _rate(rows.summaries[row])) for row in (members[0], members[-1])
            ]
            found.append((rows.name(members[0], rest), key, ends[0], ends[1], trend.z, trend.p_value))
    return found


def _rate(summary: Summary) -> float:
    return summary.solved / summary.finished


def _slopes(rows: ResultRows) -> tuple[Slope, ...]:
    """Regress on all ordered keys at once, where there are at least two of them."""
    keys = _ordered(rows)
    if len(keys) < 2:
        return ()
    rest = [key for key in rows.varying() if key not in keys]
    by_factors = {key: _by_factors(series.levels(rows, key)) for key in keys}
    everything, found = keys, []
    for members in rows.alike(rest, rows.finished()).values():
        # what is constant among these rows has no slope, and would take the others' with it
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
        fit = statistics.logistic_regression(
            points, [s.solved for s in summaries], [s.finished for s in summaries]
        )
        if fit is None:
            continue
        name = rows.name(members[0], rest)
        slopes: Sequence[statistics.Coefficient | None] = fit.slopes or [None] * len(keys)
        for key, log, slope in zip(keys, is_log, slopes, strict=True):
            found.append(_slope(name, key, log, slope))
    return tuple(found)


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


def _questions(rows: ResultRows) -> list[tuple[str, list[int]]]:
    """Give the rows of each question that two or more methods answer."""
    asked: dict[tuple[Any, ...], list[int]] = {}
    for row, question in enumerate(rows.questions()):
        if rows.summaries[row].finished:
            asked.setdefault(question, []).append(row)
    keys = [key for key in rows.varying() if key not in rows.methods]
    return [(rows.name(members[0], keys), members) for members in asked.values() if len(members) > 1]


def _method(rows: ResultRows, row: int) -> str:
    return rows.name(row, [key for key in rows.varying() if key in rows.methods])


def _pairs(rows: ResultRows) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    questions = _questions(rows)
    count = sum(math.comb(len(members), 2) for _, members in questions)
    if count > MOST_PAIRS:
        return (), (f"{count:,} pairs of rows are too many to be tested two by two.",)
    found = [(question, a, b) for question, members in questions for a, b in combinations(members, 2)]
    counted = [
        (
            rows.summaries[a].solved,
            rows.summaries[a].finished,
            rows.summaries[b].solved,
            rows.summaries[b].finished,
        )
        for _, a, b in found
    ]
    p_values = [statistics.fisher_exact(*counts) for counts in counted]
    return tuple(
        Pair(
            question=question,
            first=_method(rows, a),
            second=_method(rows, b),
            difference=counts[0] / counts[1] - counts[2] / counts[3],
            interval=statistics.newcombe(*counts),
            p_value=p,
            p_adjusted=after,
        )
        for (question, a, b), counts, p, after in zip(
            found, counted, p_values, statistics.holm(p_values), strict=True
        )
    ), ()


def _speeds(rows: ResultRows) -> tuple[tuple[Speed, ...], tuple[str, ...]]:
    found, unknown = [], 0
    for question, members in _questions(rows):
        known = [t.known("iterations") if (t := rows.summaries[row].times) else None for row in members]
        if any(sample is None for sample in known):
            unknown += any(sample is not None for sample in known)
            continue
        test = statistics.log_rank([sample for sample in known if sample is not None])
        if test is not None:
            found.append((question, tuple(_method(rows, row) for row in members), test))
    adjusted = statistics.holm([test.p_value for *_, test in found])
    notes = (f"No log-rank test at {unknown} questions: times of some rows aren't known.",) if unknown else ()
    return tuple(
        Speed(
            question=question,
            names=names,
            statistic=test.statistic,
            degrees_of_freedom=test.degrees_of_freedom,
            p_value=test.p_value,
            p_adjusted=after,
        )
        for (question, names, test), after in zip(found, adjusted, strict=True)
    ), notes
