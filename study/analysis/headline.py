"""The finding in a sentence, computed from the rows."""

from __future__ import annotations

from collections.abc import Sequence

from study import statistics, words
from study.analysis import series
from study.analysis.best_mean import best_mean, swept_means
from study.analysis.contrasts import Contrasts, TrendTest
from study.analysis.method_tests import LEVEL, lead
from study.analysis.methods import Method, methods_of
from study.analysis.rows import ResultRows
from study.analysis.search import SearchFindings
from study.analysis.seed_pairs import SeedTrials
from study.analysis.summary import Summary

_MOST_QUESTIONS = 4
_MOST_NAMED = 3
"""Of methods that succeed equally often; of one more, all are named."""


def headline(rows: ResultRows, contrasts: Contrasts, by_seed: SeedTrials | None = None) -> str:
    """Return a sentence on which method succeeds most often, and how its success and its time change with the sweep.

    Where nothing says what success is, it is on which method has the best mean of the first metric. Methods are
    compared within a question (an operation, a range, ...), over the swept values at which all of them have trials that
    ended.

    Args:
        rows: the results of the trials.
        contrasts: their trends.
        by_seed: their trials, by which rows that have the same seeds are compared seed by seed; None if they aren't
            known.
    """
    if not rows.ended():
        return "No trial has finished yet."
    is_rate, metric = rows.has_rates, rows.main_metric
    among = rows.judged() if is_rate else rows.ended()
    counts = [s.judged if is_rate else s.ended for s in (rows.summaries[row] for row in among)]
    trials = words.count_of(sum(counts), "trial")
    if is_rate and not any(rows.summaries[row].solved for row in among):
        return f"None of {trials} was solved."
    if not is_rate and metric is None:
        return f"{trials} ended; nothing says what success is, and no metric is averaged."
    x = series.x_axis(rows)
    if x not in rows.keys or not rows.is_number[rows.keys.index(x)]:
        x = "model"  # names aren't swept: a different name is a different question or a different method
    elif x in rows.methods and not methods_of(rows, among, x, ()):
        x = "model"  # not all methods have it: those that do are methods with one value of it or another
    question_keys = [key for key in rows.varying() if key not in rows.methods and key != x]
    questions = rows.alike(question_keys, among)
    if len(questions) == 1:
        parts = _in_full(rows, among, x, contrasts, by_seed)
    else:
        first = list(questions.values())[:_MOST_QUESTIONS]
        parts = [
            f"{_at(rows, some[0], question_keys)}, {_most(rows, methods_of(rows, some, x, question_keys), by_seed)}"
            for some in first
        ]
        more = len(questions) - len(first)
        parts += [f"and {more} questions more"] if more else []
    if len(questions) > 1 or (not is_rate and parts[0].startswith(("the ", "no "))):  # names keep their letters
        parts[0] = parts[0][0].upper() + parts[0][1:]
    incomplete = sum(not s.complete for s in rows.summaries)
    if incomplete:
        parts.append(f"incomplete: {incomplete} of {words.count_of(len(rows.summaries), rows.noun)}")
    return "; ".join(part for part in parts if part) + "."


def search_headline(search: SearchFindings, rows: Sequence[Summary]) -> str:
    """Return a sentence on what a search found, and on how good its best candidate is by fresh seeds alone.

    Args:
        search: the search and its candidates.
        rows: the summaries of the candidates that were confirmed, the best first.
    """
    effort = f"{len(search.candidates)} candidates in {search.trials:,} trials"
    if not search.is_over:
        return f"The search goes on: {effort} so far, of {search.budget:,}."
    best = rows[0]
    finding = _of_best(search, best)
    if not finding:
        return f"The best of {effort} is yet to be confirmed with fresh seeds."
    parts = [f"The best of {effort} {finding} with fresh seeds"]
    parts += [] if best.complete else [f"incomplete: {best.seeds - best.ended} of them are missing"]
    parts += [f"{len(rows)} candidates of its front were confirmed"] if len(rows) > 1 else []
    return "; ".join(parts) + "."


def _of_best(search: SearchFindings, best: Summary) -> str:
    """Say how good the best candidate is: how often it succeeds or, without a criterion, its first metric."""
    if best.success_rate is not None and best.success_rate_interval is not None:
        low, high = best.success_rate_interval
        return f"solves {best.solved} of {best.judged} ({words.rate(best.success_rate)}, {low:.2f} to {high:.2f})"
    for objective in search.objectives:
        summary = best.metrics.get(objective.name)
        value = None if summary is None else getattr(summary, objective.statistic)
        if summary is not None and value is not None:
            interval = words.spaced_interval(getattr(summary, f"{objective.statistic}_interval"), words.measure)
            title = words.metric_title(objective.name, summary.metric)
            return f"has a {objective.statistic} {title} of {words.measure(value)}{interval}"
    return ""


def _at(rows: ResultRows, row: int, keys: Sequence[str]) -> str:
    """Say which question a row is of; of one whose keys have no value there, that it is without them."""
    name = rows.name(row, keys)
    return f"at {name}" if name else f"without {words.join_and([words.title(key) for key in keys])}"


def _most(rows: ResultRows, methods: Sequence[Method], trials: SeedTrials | None) -> str:
    name = rows.main_metric
    if rows.has_rates or name is None:
        return _most_often(methods, trials)
    return best_mean(methods, name, rows.metrics[name], trials)


def _in_full(
    rows: ResultRows, among: Sequence[int], x: str, contrasts: Contrasts, trials: SeedTrials | None
) -> list[str]:
    methods = methods_of(rows, among, x, ())
    parts = [_most(rows, methods, trials)]
    if not rows.has_rates:
        is_swept = len(methods) == 1 and len(methods[0].rows) > 1 and rows.main_metric is not None
        return [*parts, swept_means(rows, methods[0].rows, x, rows.main_metric or "")] if is_swept else parts
    best = _best(methods)
    if len(best) != 1:
        return parts
    (first,) = best
    if len(first.rows) == 1:
        return [*parts, _solved_at(rows.summaries[first.rows[0]])]
    trend = next((t for t in contrasts.trends if t.key == x and t.name == first.name), None)
    return [*parts, _changes(rows, first.rows, x, trend), _time(rows, first.rows, x)]


def _best(methods: Sequence[Method]) -> list[Method]:
    most = max((method.rate for method in methods), default=0.0)
    return [method for method in methods if method.rate == most > 0]


def _most_often(methods: Sequence[Method], trials: SeedTrials | None) -> str:
    if not methods:
        return "no two methods were tried at the same values of what is swept"
    best = _best(methods)
    if not best:
        return "nothing was solved"
    first = best[0]
    rate = f"{first.solved:,} of {first.judged:,} trials ({words.percent(first.rate)})"
    if len(methods) == 1:
        return f"{first.label}: {rate} were solved" if first.name else f"{rate} were solved"
    others = sorted((method for method in methods if method not in best), key=lambda method: -method.rate)
    if len(best) > 1:
        number = "both" if len(best) == 2 else "all"
        named = [method.label for method in best]
        if len(best) > _MOST_NAMED + 1:
            named = [*named[:_MOST_NAMED], words.count_of(len(best) - _MOST_NAMED, "other")]
        return f"{words.join_and(named)} {number} solved {words.percent(first.rate)} of their trials"
    second = others[0]
    chance = " (which may be chance)" if _may_be_chance(first, second, trials) else ""
    rates = [f"{method.label} {words.percent(method.rate)}" for method in others[:2]]
    rates += [words.count_of(len(others) - 2, "other") + " less"] if len(others) > 2 else []
    return f"{first.label} succeeds most often{chance}, in {rate}, {words.join_and(rates)}"


def _may_be_chance(first: Method, second: Method, trials: SeedTrials | None) -> bool:
    """Return whether the tests of two methods' rates leave room for equal ones: seed by seed if they share seeds."""
    if (by_seed := lead(trials, first.compared, second.compared)) is not None:
        return by_seed.p_value >= LEVEL
    return statistics.newcombe(first.solved, first.judged, second.solved, second.judged)[0] <= 0


def _changes(rows: ResultRows, members: Sequence[int], x: str, trend: TrendTest | None) -> str:
    first, last = (rows.summaries[row] for row in (members[0], members[-1]))
    here, there = (words.percent(s.solved / s.judged) for s in (first, last))
    at_first, at_last = (words.show_value(x, rows.value(row, x)) for row in (members[0], members[-1]))
    name = words.title(x)
    if trend is None:
        return f"its success rate is {here} at {name} {at_first} and {there} at {at_last}"
    p = words.p_value(trend.p_adjusted)
    test = f"trend p {p if p.startswith('<') else f'= {p}'} after Holm"
    if trend.p_adjusted >= LEVEL:
        return f"no trend with {name} was detected ({here} at {at_first}, {there} at {at_last}; {test})"
    verb = "grows" if trend.z > 0 else "falls"
    return f"its success rate {verb} with {name}, from {here} at {at_first} to {there} at {at_last} ({test})"


def _time(rows: ResultRows, members: Sequence[int], x: str) -> str:
    there = [row for row in members if rows.summaries[row].solved_at_mean is not None]
    if len(there) < 2:
        return ""
    first, last = there[0], there[-1]
    at = [words.show_value(x, rows.value(row, x)) for row in (first, last)]
    means = [words.iterations(rows.summaries[row].solved_at_mean) for row in (first, last)]
    return f"solved trials take {means[0]} iterations on average at {at[0]} and {means[1]} at {at[1]}"


def _solved_at(summary: Summary) -> str:
    if summary.solved_at_mean is None:
        return ""
    return f"solved trials take {words.iterations(summary.solved_at_mean)} iterations on average"
