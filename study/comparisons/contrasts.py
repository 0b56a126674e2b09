"""Comparisons between the rows of a report: findings between methods, trends, times to success.

The findings are one family of tests, whose p-values are adjusted by Holm's method. So are the trends, the tests of
times, and the findings by each further metric. The coefficients of a regression answer one question together and are
not adjusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TypeVar

import numpy as np

from study import statistics
from study.comparisons.compare import Side, by_seed, compare, side_of
from study.comparisons.finding import Finding, adjusted
from study.comparisons.methods import Method
from study.comparisons.plan import MOST_PAIRS, ComparisonPlan, Question, Statement, comparison_plan
from study.comparisons.tuned import compare_tuned
from study.records import Interval
from study.summaries import series
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary
from study.trials.seed_design import Sizes
from study.trials.table import Ints, Trials, TrialTable
from study.words import count_of

_FACTOR = 10.0
"""The ratio of a key's greatest and least value from which its logarithm is the regressor."""


@dataclass(frozen=True, kw_only=True)
class TrendTest:
    """The trend of a method's success rate, or of its metric, over an ordered key.

    Args:
        name: the name of the rows: their common values; empty for all rows.
        key: the swept key.
        title: its name for readers.
        low: its least value, and the rate or mean there.
        high: its greatest value, and the rate or mean there.
        z: the statistic of the paired test, or Cochran and Armitage's; positive where the rate or metric grows with the
            key.
        p_value: two-sided.
        p_adjusted: after Holm's correction over all trends.
        seeds: the number of paired seeds; None for an unpaired test.
        metric: the metric; None for the success rate.
    """

    name: str
    key: str
    title: str
    low: tuple[float, float]
    high: tuple[float, float]
    z: float
    p_value: float
    p_adjusted: float
    seeds: int | None = None
    metric: str | None = None


@dataclass(frozen=True, kw_only=True)
class Slope:
    """The effect of one key in a logistic regression, the others held fixed.

    Args:
        name: the name of the rows: their common values; empty for all rows.
        key: the hyperparameter.
        title: its name for readers.
        is_log: whether the regressor is its logarithm to base 10.
        odds_ratio: of success, for a unit of the regressor (of a logarithm: a factor of 10); None where successes and
            failures are separated.
        interval: 95%, by profile likelihood.
        p_value: Wald's, two-sided.
    """

    name: str
    key: str
    title: str
    is_log: bool
    odds_ratio: float | None = None
    interval: Interval | None = None
    p_value: float | None = None


@dataclass(frozen=True, kw_only=True)
class TimesTest:
    """A log-rank test of the methods of one question.

    Args:
        question: the question that the methods answer; empty if there is only one.
        names: the methods.
        statistic: the statistic of the log-rank test.
        degrees_of_freedom: its degrees of freedom.
        p_value: its p-value.
        p_adjusted: after Holm's correction over all questions.
        seeds: the number of paired seeds; None for an unpaired test.
    """

    question: str
    names: tuple[str, ...]
    statistic: float
    degrees_of_freedom: int
    p_value: float
    p_adjusted: float
    seeds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Contrasts:
    """The comparisons between the rows of a report; each kind may be empty.

    Args:
        plan: the planned comparisons; None if there are none.
        findings: the findings of each question of the plan, in its order.
        trends: trends of success rates, or of the metric, over ordered keys.
        slopes: logistic regressions on several keys.
        speeds: tests of times to success at each question.
        notes: omitted comparisons, with the reasons.
        metric: the compared metric; None for success.
        more_findings: returns the findings by further metrics; each metric is a family of tests. They are needed for
            files only, and take as long as all else.
    """

    plan: ComparisonPlan | None = None
    findings: Mapping[Question, tuple[Finding, ...]] = field(default_factory=dict)
    trends: tuple[TrendTest, ...] = ()
    slopes: tuple[Slope, ...] = ()
    speeds: tuple[TimesTest, ...] = ()
    notes: tuple[str, ...] = ()
    metric: str | None = None
    more_findings: Callable[[], Mapping[str, tuple[Finding, ...]]] = dict[str, tuple[Finding, ...]]

    @property
    def pairs(self) -> tuple[Finding, ...]:
        """All findings, in the order of the questions."""
        return tuple(finding for findings in self.findings.values() for finding in findings)

    @property
    def has_any(self) -> bool:
        """True if anything was compared."""
        return bool(self.trends or self.slopes or self.findings or self.speeds)

    @property
    def winners(self) -> frozenset[int]:
        """The rows that are better than every other one at each question that they answer, by their findings."""
        if self.plan is None:
            return frozenset()
        at = [(question, best(question, self.findings.get(question, ()))) for question in self.plan.by_row]
        won = {method.rows[0] for _, method in at if method is not None}
        lost = {
            other.rows[0]
            for question, method in at
            for other in question.methods
            if method is None or other is not method
        }
        return frozenset(won - lost)


def best(question: Question, findings: Sequence[Finding]) -> Method | None:
    """Return the method that the findings call better than every other one; None if there is none.

    Args:
        question: the compared methods.
        findings: the findings of its pairs.
    """
    wins = [finding.winner for finding in findings]
    return next(
        (method for method in question.methods if 0 < wins.count(method.name) == len(question.methods) - 1), None
    )


def contrasts(
    rows: ResultRows, trials: TrialTable, sizes: Sizes = "fixed", statements: Sequence[Statement] = ()
) -> Contrasts:
    """Compare the rows of a report: by success or, without a success criterion, by the main metric.

    Args:
        rows: the rows.
        trials: their trials.
        sizes: whether the numbers of seeds were fixed in advance or adapted to results. Tests other than those of
            findings need fixed numbers.
        statements: the comparisons that the user asks for; none for the default.

    Returns:
        The comparisons; empty without a success criterion and a metric of all ended trials. With more than `MOST_PAIRS`
        pairs, there are no findings, and a note says so.

    Raises:
        InputError: if the vocabulary of an installed package can't be imported.
        KeyError: if the trials' table doesn't declare the compared metric.
    """
    metric = None if rows.has_rates else rows.main_metric
    if metric is None and not rows.has_rates:
        return Contrasts()
    plan = comparison_plan(rows, statements)
    others = _trends_and_times(rows, trials, sizes)
    if plan.pairs_count > MOST_PAIRS:
        note = f"{plan.pairs_count:,} pairs of rows are too many to be tested two by two."
        return replace(others, plan=plan, metric=metric, notes=(*others.notes, note))
    findings = _findings(plan, rows, trials, metric, sizes)
    more = partial(_more_findings, plan, rows, trials, sizes)
    more_findings = others.more_findings if metric is None else more
    return replace(others, plan=plan, findings=findings, metric=metric, more_findings=more_findings)


def _findings(
    plan: ComparisonPlan, rows: ResultRows, trials: TrialTable, metric: str | None, sizes: Sizes
) -> dict[Question, tuple[Finding, ...]]:
    """Compare the pairs of a plan by success or by a metric, as one family of tests."""
    declared = None if metric is None else rows.metrics[metric]

    def side(method: Method) -> Side:
        """Collect the trials of a method."""
        return side_of(method.name, trials, [rows.summaries[row] for row in method.rows], metric)

    def compared(question: Question, first: Method, second: Method) -> Finding:
        """Compare two methods, each at its best values if the question tunes any."""
        sides = side(first), side(second)
        if not question.tuned:
            return compare(question.name, *sides, metric, declared, sizes)
        values = [[rows.name(row, question.tuned) for row in method.rows] for method in (first, second)]
        return compare_tuned(question.name, *sides, (values[0], values[1]), metric, declared, sizes)

    pairs = plan.pairs()
    adjusted_findings = adjusted([compared(*pair) for pair in pairs])
    by_question: dict[Question, list[Finding]] = {}
    for (question, _, _), finding in zip(pairs, adjusted_findings, strict=True):
        by_question.setdefault(question, []).append(finding)
    return {question: tuple(findings) for question, findings in by_question.items()}


def _more_findings(
    plan: ComparisonPlan, rows: ResultRows, trials: TrialTable, sizes: Sizes
) -> dict[str, tuple[Finding, ...]]:
    """Compare the pairs of a plan by each further metric that covers all ended trials and isn't part of a series."""
    others = [name for name, metric in rows.single_metrics.items() if metric.of == "ended" and name != rows.main_metric]
    return {
        name: tuple(f for findings in _findings(plan, rows, trials, name, sizes).values() for f in findings)
        for name in others
    }


_NOT_FIXED = (
    "Trends, regressions and tests of times take the number of seeds as fixed in advance. Here it depends on the "
    "results, so they are left out."
)
_DEPENDENT = (
    "Trends, regressions and tests of times need independent trials, and these share initial weights or training rows. "
    "So they are left out, as are all intervals but that of the success rate, which allows for shared seeds."
)

_REPEATED = (
    "Some rows have several trials of a seed. Trends use the mean of each seed. Regressions and tests of times need "
    "independent trials and are left out."
)


def _trends_and_times(rows: ResultRows, trials: TrialTable, sizes: Sizes) -> Contrasts:
    """Test trends and times, and fit regressions, as far as the seeds allow; notes name the omitted ones."""
    if sizes == "adaptive":
        return Contrasts(notes=(_NOT_FIXED,))
    if (trials.seeds < 0).any():
        return Contrasts(notes=(_DEPENDENT,))
    if not rows.has_rates:
        return Contrasts(trends=_trends(rows, trials))
    if any(trials.group(summary.key).repeat_seeds for summary in rows.summaries):
        return Contrasts(trends=_trends(rows, trials), notes=(_REPEATED,))
    times, notes = _speeds(rows, trials)
    return Contrasts(trends=_trends(rows, trials), slopes=_slopes(rows), speeds=_adjusted(times), notes=notes)


def _samples(trials: TrialTable, summaries: Sequence[Summary]) -> list[Trials]:
    """Return the trials of each row."""
    return [trials.group(summary.key) for summary in summaries]


def _judged_seeds(samples: Sequence[Trials]) -> list[Trials] | None:
    """Select the trials of the seeds at which each sample has a judged trial, in the same order for all.

    Returns:
        None if they share less than half of the seeds of the smallest sample: then they count as independent samples.
    """
    common = _common([sample.seeds for sample in samples])
    if common is None:
        return None
    shared = [sample.of_seeds(common) for sample in samples]
    judged = np.all([sample.is_judged for sample in shared], axis=0)
    return [sample.select(judged) for sample in shared]


def _common(seeds: Sequence[Ints]) -> Ints | None:
    """Return the seeds that all samples have; None if there are none, or less than half of the smallest sample's."""
    common = reduce(np.intersect1d, seeds)
    return None if not common.size or 2 * common.size < min(own.size for own in seeds) else common


def _speeds(rows: ResultRows, trials: TrialTable) -> tuple[list[TimesTest], tuple[str, ...]]:
    """Compare the times to success of each question's methods by log-rank tests; p-values are not adjusted.

    Trials are paired if the methods share enough seeds (`_judged_seeds`). Questions with unknown times are skipped; a
    note counts those of which some rows' times are known.
    """
    tests, untimed = [], 0
    for members in rows.alike(rows.question_keys, rows.judged()).values():
        summaries = [rows.summaries[row] for row in members]
        samples = [summary.times.known("iterations") if summary.times else None for summary in summaries]
        known = [sample for sample in samples if sample is not None]
        if len(members) < 2 or len(known) < len(samples):
            untimed += bool(known) and len(members) > 1
            continue
        shared, seeds = _judged_seeds(_samples(trials, summaries)), None
        if shared is not None:
            seeds = shared[0].rows.size
            test = statistics.paired_log_rank([sample.times for sample in shared]) if seeds else None
        else:
            test = statistics.log_rank(known)
        if test is not None:
            names = tuple(rows.name(row, rows.method_keys) for row in members)
            fields = vars(test) | {"p_adjusted": test.p_value, "seeds": seeds}
            tests.append(TimesTest(question=rows.name(members[0], rows.question_keys), names=names, **fields))
    questions = count_of(untimed, "question")
    return tests, (f"No log-rank test at {questions}: times of some rows aren't known.",) if untimed else ()


def _ordered_keys(rows: ResultRows) -> list[str]:
    """List the numeric keys that vary, without keys that have None (a default) or infinity among their values."""
    return [
        key
        for key in rows.varying()
        if rows.is_number[rows.keys.index(key)]
        and all(level is not None and math.isfinite(level) for level in series.levels(rows, key))
    ]


def _trends(rows: ResultRows, trials: TrialTable) -> tuple[TrendTest, ...]:
    """Test the trends over each ordered key, as one family of tests."""
    return _adjusted([test for key in _ordered_keys(rows) for test in _trends_over(rows, key, trials)])


_Test = TypeVar("_Test", TrendTest, TimesTest)


def _adjusted(tests: Sequence[_Test]) -> tuple[_Test, ...]:
    """Adjust the p-values of a family of tests by Holm's method."""
    adjusted = statistics.holm([test.p_value for test in tests])
    return tuple(replace(test, p_adjusted=p) for test, p in zip(tests, adjusted, strict=True))


def _trends_over(rows: ResultRows, key: str, trials: TrialTable) -> list[TrendTest]:
    """Test the trend over a key at each setting of the other keys that has three values or more; p isn't adjusted."""
    fixed_keys = [other for other in rows.varying() if other != key]
    tests = []
    metric = None if rows.has_rates else rows.main_metric
    for members in rows.alike(fixed_keys, rows.judged() if metric is None else rows.ended()).values():
        members.sort(key=lambda row: rows.value(row, key))
        summaries = [rows.summaries[row] for row in members]
        if len(members) < 3:  # two values are compared as a pair instead
            continue
        trend, seeds = _trend(summaries, trials) if metric is None else _metric_trend(summaries, trials, metric)
        ends = [
            (float(rows.value(row, key)), average)
            for row in (members[0], members[-1])
            if (average := _average(rows.summaries[row], metric)) is not None
        ]
        if trend is not None and len(ends) == 2:
            name, p = rows.name(members[0], fixed_keys), trend.p_value
            test = TrendTest(
                name=name, key=key, title=rows.title(key), low=ends[0], high=ends[1], z=trend.z, p_value=p,
                p_adjusted=p, seeds=seeds, metric=metric,
            )  # fmt: skip
            tests.append(test)
    return tests


def _trend(summaries: Sequence[Summary], trials: TrialTable) -> tuple[statistics.Trend | None, int | None]:
    """Test the trend of success over rows in order; return the number of paired seeds, too, None if unpaired.

    Rows that share at least half of their seeds are paired by seed. (None, None) if they don't, and a row has several
    trials of a seed. The scores are the ranks 0, 1, 2, ..., so that a distant value has no greater influence.
    """
    samples = _samples(trials, summaries)
    if any(sample.repeat_seeds for sample in samples):
        rates = [by_seed([sample], [sample.successes]) for sample in samples]
        common = _common([of_row.seeds for of_row in rates])
        if common is None:
            return None, None
        return statistics.paired_trend(np.column_stack([of_row.at(common) for of_row in rates])), common.size
    judged = _judged_seeds(samples)
    if judged is None:
        counts = [s.solved for s in summaries], [s.judged for s in summaries]
        return statistics.cochran_armitage(range(len(summaries)), *counts), None
    return statistics.paired_trend(np.column_stack([sample.is_solved for sample in judged])), judged[0].rows.size


def _metric_trend(
    summaries: Sequence[Summary], trials: TrialTable, metric: str
) -> tuple[statistics.Trend | None, int | None]:
    """Test the trend of a metric over rows in order, by ranks within each seed; trials without a number are worst.

    The statistic is Page's (JASA 58, 1963, 216-230). Only seeds that all rows have are used; their number is
    returned, too. (None, None) if these are too few, or rows have several trials of a seed.
    """
    samples = _samples(trials, summaries)
    common = _common([sample.seeds for sample in samples])
    if common is None or any(sample.repeat_seeds for sample in samples):
        return None, None
    losses = np.column_stack([sample.of_seeds(common).losses(metric) for sample in samples])
    losses = losses[~np.isnan(losses).any(axis=1)]
    if not losses.size:
        return None, None
    above, equal = (holds(losses[:, :, None], losses[:, None, :]).sum(axis=2) for holds in (np.greater, np.equal))
    sign = -1.0 if trials.metrics[metric].higher_is_better else 1.0
    return statistics.paired_trend(sign * (above + equal / 2)), len(losses)


def _average(summary: Summary, metric: str | None) -> float | None:
    """Return the rate of a row with judged trials, or a row's mean of the metric; None if no trial has a number."""
    return summary.solved / summary.judged if metric is None else summary.metrics[metric].mean


def _slopes(rows: ResultRows) -> tuple[Slope, ...]:
    """Regress success on all ordered keys together, for each setting of the other keys.

    Settings at which fewer than two ordered keys vary, or whose slopes aren't determined, are skipped.
    """
    keys = _ordered_keys(rows)
    if len(keys) < 2:
        return ()
    fixed_keys = [key for key in rows.varying() if key not in keys]
    by_factors = {key: _by_factors(series.levels(rows, key)) for key in keys}
    everything, regressions = keys, []
    for members in rows.alike(fixed_keys, rows.judged()).values():
        # a key that is constant among these rows has no slope, and would leave the other slopes undetermined
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
        name = rows.name(members[0], fixed_keys)
        slopes: Sequence[statistics.Coefficient | None] = fit.slopes or [None] * len(keys)
        for key, log, slope in zip(keys, is_log, slopes, strict=True):
            regressions.append(_slope(Slope(name=name, key=key, title=rows.title(key), is_log=log), slope))
    return tuple(regressions)


def _slope(unknown: Slope, slope: statistics.Coefficient | None) -> Slope:
    """Add the numbers of a coefficient; unchanged for None."""
    if slope is None:
        return unknown
    low, high = map(_exp, slope.profile_interval)
    return replace(unknown, odds_ratio=_exp(slope.estimate), interval=(low, high), p_value=slope.p_value)


def _exp(value: float) -> float:
    """Return e to the power of a value; infinity for a large one."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(value))


def _by_factors(levels: Sequence[float]) -> bool:
    """Return True if all levels are positive and span at least a factor of 10."""
    return min(levels) > 0 and max(levels) / min(levels) >= _FACTOR
