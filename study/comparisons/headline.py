"""The headline of a report: its findings in a sentence. Nothing is tested here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from study import words
from study.comparisons.contrasts import Contrasts, best
from study.comparisons.finding import LEVEL, Finding, Verdict
from study.comparisons.methods import Method
from study.comparisons.plan import Question
from study.summaries.rows import ResultRows
from study.summaries.search import SearchFindings
from study.summaries.summary import Summary

_MOST_QUESTIONS = 4
_MOST_NAMED = 3
"""The greatest number of methods with equal rates that are named, or one more if that names all."""


def headline(rows: ResultRows, contrasts: Contrasts) -> str:
    """Return a sentence on the best method, and on its success and time over the swept hyperparameter.

    A method is called best only if its finding against every other one says so. Without a success criterion, the
    sentence is on the main metric. If no trial has ended, been solved or has a finite value, or no metric is averaged,
    the sentence says only that. Otherwise it counts the incomplete rows, too, and says if nothing can be compared.

    Args:
        rows: the results of the trials.
        contrasts: the comparisons between the rows.

    Raises:
        InputError: if the vocabulary of an installed package can't be imported.
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
        return f"{trials} ended; there is no success criterion, and no metric is averaged."
    if all(_number(rows, row) is None for row in among):
        return f"No trial has a finite {_title(rows)}."
    plan = contrasts.plan
    questions = () if plan is None else plan.by_method
    if len(questions) == 1 and plan is not None:
        parts = _full_parts(rows, questions[0], plan.x, contrasts)
    elif any(question.settings for question in questions):
        parts = _average_parts(rows, questions, contrasts)
    elif any(question.factor for question in questions):
        parts = _factor_parts(rows, questions, contrasts)
    else:
        parts = [
            f"{_question_name(rows, question)}, {_sentence(rows, question, contrasts)}"
            for question in questions[:_MOST_QUESTIONS]
        ]
        more = len(questions) - _MOST_QUESTIONS
        parts += [f"and {words.count_of(more, 'more comparison')}"] if more > 0 else []
    if not parts:
        alike = f"no two {rows.noun}s that differ in one hyperparameter alone have all of their trials"
        parts = [f"nothing can be compared: {alike}"]
    labels = [method.label for question in questions[:1] for method in question.methods if method.label]
    if len(questions) > 1 or not parts[0].startswith(tuple(labels)):  # names keep their case
        parts[0] = parts[0][0].upper() + parts[0][1:]
    incomplete = sum(not s.complete for s in rows.summaries)
    if incomplete:
        parts.append(f"incomplete: {incomplete} of {words.count_of(len(rows.summaries), rows.noun)}")
    return "; ".join(part for part in parts if part) + "."


def stopped_sentence(rows: ResultRows, unstopped: ResultRows, contrasts: Contrasts) -> str:
    """Return the headline of the rows without trials that were stopped early, and a sentence on the others.

    If every row has such trials, there is only that sentence.

    Args:
        rows: all rows; at least one has such trials.
        unstopped: the rows without such trials; all rows if each has some.
        contrasts: the comparisons between them.

    Raises:
        InputError: if the vocabulary of an installed package can't be imported.
    """
    summaries = rows.summaries
    stopped, trials = sum(s.stopped for s in summaries), words.count_of(sum(s.seeds for s in summaries), "trial")
    complete = [row for row, summary in enumerate(summaries) if not summary.stopped]
    lacking = words.count_of(len(summaries), rows.noun)
    lack = f"{len(summaries) - len(complete)} of {lacking} have no" if complete else "no row has"
    sentence = (
        f"{stopped:,} of {trials} were stopped early by comparison with others, so {lack} rates, times or means: "
        "the stopped trials might have been as good."
    )
    if not complete:
        return sentence
    finding = headline(unstopped, contrasts)
    if len(complete) == 1 and (name := rows.name(complete[0])):  # alone it has no name: nothing varies
        finding = f"{name}: {finding[0].lower()}{finding[1:]}"
    return f"{finding} {sentence}"


def search_headline(search: SearchFindings, rows: Sequence[Summary]) -> str:
    """Return a sentence on the best candidate of a search, and on its results with fresh seeds alone.

    While the search goes on, or before the best candidate has such results, the sentence says that instead.

    Args:
        search: the search and its candidates.
        rows: the summaries of the confirmed candidates, the best first; at least one if the search is over.
    """
    effort = f"{len(search.candidates)} candidates in {search.trials:,} trials"
    if not search.is_over:
        return f"The search goes on: {effort} so far, of {search.budget:,}."
    best = rows[0]
    finding = _best_phrase(search, best)
    if not finding:
        return f"The best of {effort} is yet to be confirmed with fresh seeds."
    numbers = {row: f"#{number}" for number, row in search.rows.items()}
    equal = [
        numbers[row]
        for row, other in enumerate(rows[1:], 1)
        if _best_phrase(search, other) == finding and row in numbers
    ]
    parts = [f"The best of {effort}, {numbers[0]}, {finding} with fresh seeds"]
    parts += [f"{words.join_and(equal)} did as well"] if equal else []
    parts += [] if best.complete else [f"incomplete: {numbers[0]} lacks {best.seeds - best.ended} of its trials"]
    parts += [f"{len(rows)} candidates were confirmed"] if len(rows) > 1 else []
    return "; ".join(parts) + "."


def _best_phrase(search: SearchFindings, best: Summary) -> str:
    """Describe a candidate's success rate or, without one, its first objective with a value; empty without any."""
    if best.success_rate is not None and best.success_rate_interval is not None:
        rate = words.rate(best.success_rate, best.success_rate_interval)
        return f"solves {best.solved} of {best.judged} ({rate})"
    for objective in search.objectives:
        summary = best.metrics.get(objective.name)
        value = None if summary is None else getattr(summary, objective.statistic)
        if summary is not None and value is not None:
            interval = getattr(summary, f"{objective.statistic}_interval")
            title = words.metric_title(objective.name, summary.metric)
            text = words.metric_notation(summary.metric)(value, interval)
            return f"has a {objective.statistic} {title} of {text}"
    return ""


def _question_name(rows: ResultRows, question: Question) -> str:
    """Name a question by its values of the question's keys; without any, by the keys that it lacks."""
    if question.name:
        return f"at {question.name}"
    return f"without {words.join_and([rows.title(key) for key in rows.question_keys])}"


@dataclass(frozen=True)
class _Standing:
    """A method's place at a question.

    Args:
        method: the method.
        value: its success rate, or its mean of the metric; None where there is none.
        text: the value for readers.
    """

    method: Method
    value: float | None
    text: str


def _standings(rows: ResultRows, question: Question) -> list[_Standing]:
    """Sort the methods of a question by their rates or means, the best first, those without a number last."""
    standings = [_standing(rows, method) for method in question.methods]
    name = rows.main_metric
    descends = rows.has_rates or name is None or rows.metrics[name].higher_is_better
    known = [standing for standing in standings if standing.value is not None]
    known.sort(key=lambda standing: standing.value or 0.0, reverse=descends)
    return [*known, *(standing for standing in standings if standing.value is None)]


def _standing(rows: ResultRows, method: Method) -> _Standing:
    """Return a method's standing: its rate over the trials of all its rows, or the unweighted mean of its rows' means.

    Its value is None if a row has no mean.
    """
    summaries = [rows.summaries[row] for row in method.rows]
    if rows.has_rates:
        rate = sum(s.solved for s in summaries) / sum(s.judged for s in summaries)
        interval = summaries[0].success_rate_interval if len(summaries) == 1 else None
        return _Standing(method, rate, words.percent(rate, interval))
    metric = rows.main_metric or ""
    means = [value for s in summaries if (value := s.metrics[metric].mean) is not None]
    if len(means) < len(summaries):
        return _Standing(method, None, words.NONE)
    mean = sum(means) / len(means)
    interval = summaries[0].metrics[metric].mean_interval if len(summaries) == 1 else None
    return _Standing(method, mean, words.metric_notation(rows.metrics[metric])(mean, interval))


def _sentence(rows: ResultRows, question: Question, contrasts: Contrasts) -> str:
    """Describe the best method of a question, or the lack of one."""
    if not question.methods:
        return "no two methods were tried at the same values of the swept hyperparameter"
    if question.tuned:
        return _tuned_sentence(rows, question, contrasts.findings.get(question, ()))
    standings = _standings(rows, question)
    first, *others = standings
    if not rows.has_rates and first.value is None:
        return f"no trial has a finite {_title(rows)}"
    if not others:
        return _single_sentence(rows, first)
    findings = contrasts.findings.get(question, ())
    winner = best(question, findings)
    if winner is not None:
        return _winner_sentence(rows, question, winner, standings, findings)
    return _undecided_sentence(rows, question, standings, findings)


def _single_sentence(rows: ResultRows, only: _Standing) -> str:
    """Describe the only method of a question."""
    label = only.method.label
    if rows.has_rates:
        counts = [rows.summaries[row] for row in only.method.rows]
        rate = (
            f"{sum(s.solved for s in counts):,} of {sum(s.judged for s in counts):,} trials ({only.text}) were solved"
        )
        return f"{label}: {rate}" if label else rate
    described = f"the {_title(rows)} is {only.text} on average"
    return f"{label}: {described}" if label else described


def _winner_sentence(
    rows: ResultRows, question: Question, winner: Method, standings: Sequence[_Standing], findings: Sequence[Finding]
) -> str:
    """Describe a method that is better than all others, with its lead."""
    over = f" over {rows.title(question.swept)}" if question.swept else ""
    if any(finding.is_probability for finding in findings if winner.name in (finding.first, finding.second)):
        return f"{_best(rows, winner)}{over}: {_lead(rows, winner, standings, findings)}"
    if rows.has_rates:
        trials = words.count_of(sum(rows.summaries[row].judged for row in winner.rows), "trial")
        lead = _lead(rows, winner, standings, findings, count=f" of {trials}")
        return f"{winner.label} succeeds most often{over}: {lead}"
    superlative = "highest" if rows.metrics[rows.main_metric or ""].higher_is_better else "lowest"
    return f"{winner.label} has the {superlative} {_title(rows)}{over}: {_lead(rows, winner, standings, findings)}"


def _lead(
    rows: ResultRows,
    winner: Method,
    standings: Sequence[_Standing],
    findings: Sequence[Finding],
    count: str = "",
    mark: str = "",
) -> str:
    """Give the winner's number and the next, or its probability of being better, with p and the lacking trials.

    Args:
        rows: the rows.
        winner: the method that is better than every other one.
        standings: all methods, the best first.
        findings: the findings of their question.
        count: the text after the winner's number.
        mark: the text after the name of the next method.
    """
    mine = [finding for finding in findings if winner.name in (finding.first, finding.second)]
    test = f"({_largest_p(mine)}{_lacking(mine)})"
    if any(finding.is_probability for finding in mine):
        return f"{_better_than(rows, winner, mine)} {test}"
    own = next(standing for standing in standings if standing.method is winner)
    others = [standing for standing in standings if standing is not own]
    return (
        f"{own.text}{count}, {'then ' if len(others) > 1 else ''}{others[0].method.label}{mark} {others[0].text} {test}"
    )


def _undecided_sentence(
    rows: ResultRows, question: Question, standings: Sequence[_Standing], findings: Sequence[Finding]
) -> str:
    """Give the numbers of methods without a winner, and the reason."""
    over = f" over {rows.title(question.swept)}" if question.swept else ""
    first, second = standings[:2]
    equal = [standing for standing in standings if standing.value is not None and standing.value == first.value]
    if rows.has_rates and not first.value:
        return f"{_none_of([standing.method.label for standing in standings])} solved a trial{over}"
    if rows.has_rates and len(equal) > 1:
        named = [standing.method.label for standing in equal]
        if len(equal) > _MOST_NAMED + 1:
            named = [*named[:_MOST_NAMED], words.count_of(len(equal) - _MOST_NAMED, "other")]
        number = "both" if len(equal) == 2 else "all"
        return f"{words.join_and(named)} {number} solved {first.text} of their trials{over}"
    listed = [f"{standing.method.label} {standing.text}" for standing in standings[:_MOST_NAMED]]
    more = len(standings) - _MOST_NAMED
    listed += [words.count_of(more, "other")] if more > 0 else []
    subject = f"success rate{over}" if rows.has_rates else f"{_title(rows)}{over}"
    pair = next((f for f in findings if {f.first, f.second} == {first.method.name, second.method.name}), None)
    return f"{subject}: {words.join_and(listed)}: {_reason(pair, first.method.label, second.method.label)}"


def _none_of(names: Sequence[str]) -> str:
    """List methods as "neither A nor B" or "none of A, B and C"; count them if they are many."""
    if len(names) == 2:
        return f"neither {names[0]} nor {names[1]}"
    return f"none of {words.join_and(names) if len(names) <= _MOST_NAMED + 1 else f'{len(names)} methods'}"


def _tuned_sentence(rows: ResultRows, question: Question, findings: Sequence[Finding]) -> str:
    """Describe the comparison of methods at their own best values of the tuned hyperparameters."""
    tuned = words.join_and([rows.title(key) for key in question.tuned])
    at_best = f"each method at its own best {tuned}"
    winner = best(question, findings)
    if winner is None:
        pairs = [f"{_values(f, rows)}: {_reason(f, f.first, f.second)}" for f in findings[:_MOST_NAMED]]
        return f"{at_best}, {'; '.join(pairs)}"
    mine = [finding for finding in findings if winner.name in (finding.first, finding.second)]
    note = f"{_largest_p(mine)}; {mine[0].note}{_lacking(mine)}"
    return f"{at_best}, {_best(rows, winner)}: {_better_than(rows, winner, mine)}, {note}"


def _best(rows: ResultRows, winner: Method) -> str:
    """Say that a method is best."""
    return f"{winner.label} {'succeeds most often' if rows.has_rates else f'has the best {_title(rows)}'}"


def _better_than(rows: ResultRows, winner: Method, findings: Sequence[Finding]) -> str:
    """Name up to two methods that the winner is better than, with the margins, and count the others."""
    margins = [_margin(finding, winner, rows) for finding in findings[:2]]
    margins += [words.count_of(len(findings) - 2, "other")] if len(findings) > 2 else []
    return f"better than {words.join_and(margins)}"


def _largest_p(findings: Sequence[Finding]) -> str:
    """Give the largest p-value of findings."""
    return f"p {_compared_with(max(finding.p_adjusted or 0.0 for finding in findings))}"


def _values(finding: Finding, rows: ResultRows) -> str:
    """Give the names and the values of two methods."""
    first, second = (words.rate(v) if rows.has_rates else words.measure(v) for v in finding.values)
    return f"{finding.first} {first}, {finding.second} {second}"


def _reason(finding: Finding | None, first: str, second: str) -> str:
    """Compare the two leading methods in a sentence that explains why none is called the best."""
    if finding is None or finding.verdict is Verdict.NOT_TESTED:
        reason = finding.reason if finding is not None and finding.reason else "too many pairs"
        return f"{first} and {second} were not tested ({reason})"
    p = f"p {_compared_with(finding.p_adjusted or 0.0)}"
    if finding.winner is not None:
        other = finding.second if finding.winner == finding.first else finding.first
        return f"{finding.winner} is better than {other} ({p}{_lacking([finding])}), but isn't known to beat all others"
    return f"{first} and {second} are not distinguished ({p}{_lacking([finding])})"


def _margin(finding: Finding, winner: Method, rows: ResultRows) -> str:
    """Name the method that the winner is better than, with the probability or both numbers."""
    is_first = finding.first == winner.name
    other = finding.second if is_first else finding.first
    if finding.is_probability:
        share = finding.estimate or 0.0
        return f"{other} in {words.percent(share if is_first else 1 - share)} of pairs of trials"
    values = finding.values if is_first else finding.values[::-1]
    if None in values:
        return other
    own, others = (words.rate(value) if rows.has_rates else words.measure(value) for value in values)
    return f"{other} ({own} against {others})"


def _lacking(findings: Sequence[Finding]) -> str:
    """Describe each method's trials without a value to compare; empty if all methods have equal numbers of them."""
    of_method = {
        name: lacking
        for finding in findings
        for name, lacking in zip((finding.first, finding.second), finding.lacking, strict=True)
    }
    counts = {(lacking.diverged, lacking.failed, lacking.pending, lacking.stopped) for lacking in of_method.values()}
    if len(counts) < 2:
        return ""
    return "".join(f"; {name}: {lacking.phrase}" for name, lacking in of_method.items() if lacking.phrase)


def _average_parts(rows: ResultRows, questions: Sequence[Question], contrasts: Contrasts) -> list[str]:
    """Name the best value of each factor on average over all else; empty if no factor has one."""
    parts, without = [], []
    for question in questions:
        findings = contrasts.findings.get(question, ())
        winner = best(question, findings)
        if winner is None:
            without.append(" and ".join(rows.title(key) for key in question.factor))
            continue
        lead = _lead(rows, winner, _standings(rows, question), findings, mark=":")
        parts.append(f"{winner.label}{' is' if lead.startswith('better than') else ':'} {lead}")
    if without:
        parts.append(f"no value of {words.join_and(without, 'or')} is known to be best")
    quantity = "success rate" if rows.has_rates else _title(rows)
    left_out = "" if all(s.complete for s in rows.summaries) else ", without settings that lack trials"
    return [f"{quantity} on average over all else{left_out}: {parts[0]}", *parts[1:]] if parts else []


def _factor_parts(rows: ResultRows, questions: Sequence[Question], contrasts: Contrasts) -> list[str]:
    """Name the best and the worst row and the trends, and count the settings won by each value of a factor."""
    parts, without = [_extremes(rows), *_trends(contrasts)], []
    for factor in dict.fromkeys(question.factor for question in questions):
        own = [question for question in questions if question.factor == factor]
        winners = [best(question, contrasts.findings.get(question, ())) for question in own]
        counts: dict[str, int] = {}
        for winner in winners:
            if winner is not None:
                counts[winner.label] = counts.get(winner.label, 0) + 1
        if not counts:
            without.append(" and ".join(rows.title(key) for key in factor))
            continue
        settings = f"{words.count_of(len(own), 'setting')} of all else"
        names = sorted(counts, key=lambda name: -counts[name])
        won = [f"{name} {'' if place else 'is best '}at {counts[name]:,}" for place, name in enumerate(names)]
        undecided = f", none at {count:,}" if (count := winners.count(None)) else ""
        parts.append(f"{words.join_and(won[:_MOST_NAMED])} of {settings}{undecided}")
    if without:
        parts.append(f"no value of {words.join_and(without, 'or')} is known to be best")
    return parts


def _extremes(rows: ResultRows) -> str:
    """Name the rows with the best and the worst number, or say that all numbers are equal; empty without numbers."""
    numbers = {row: number for row in range(len(rows.summaries)) if (number := _number(rows, row)) is not None}
    quantity = "success rate" if rows.has_rates else _title(rows)
    ends = [max(numbers.values()), min(numbers.values())] if numbers else []
    if len(set(ends)) < 2:
        return f"the {quantity} is {_estimate(rows, next(iter(numbers)))} at each setting" if numbers else ""
    texts = []
    for superlative, end in zip(("highest", "lowest"), ends, strict=True):
        first, *others = (row for row, number in numbers.items() if number == end)
        more = f" and {words.count_of(len(others), f'other {rows.noun}')}" if others else ""
        texts.append(f"{superlative} at {rows.name(first)}{more} ({_estimate(rows, first)})")
    if _top(rows, ends) != ends[0]:
        texts.reverse()
    return f"the {quantity} is {' and '.join(texts)}"


def _trends(contrasts: Contrasts) -> list[str]:
    """Describe the significant trends over each key, with p and the number of settings of all else that have them."""
    parts = []
    for key in dict.fromkeys(trend.key for trend in contrasts.trends):
        own = [trend for trend in contrasts.trends if trend.key == key]
        for verb, sign in (("grows", 1), ("falls", -1)):
            shown = [trend for trend in own if trend.p_adjusted < LEVEL and sign * trend.z > 0]
            if shown:
                where = f" at {len(shown)} of {words.count_of(len(own), 'setting')} of all else"
                p = _compared_with(max(trend.p_adjusted for trend in shown))
                most = "greatest trend p" if len(shown) > 1 else "trend p"
                parts.append(f"it {verb} with {own[0].title}{where if len(own) > 1 else ''} ({most} {p})")
    return parts


def _full_parts(rows: ResultRows, question: Question, x: str, contrasts: Contrasts) -> list[str]:
    """Describe the only question: its best method, the trend, and the times of solved trials."""
    methods = question.methods
    if len(methods) == 1 and len(methods[0].rows) > 1 and not question.tuned:
        members = methods[0].rows
        trend = _trend(rows, methods[0], x, contrasts, has_best=True)
        return [_best_value(rows, members, x), trend, _time_phrase(rows, members, x)]
    parts = [_sentence(rows, question, contrasts)]
    winner = methods[0] if len(methods) == 1 else best(question, contrasts.findings.get(question, ()))
    if question.tuned or winner is None:
        return parts
    if len(winner.rows) == 1:
        return [*parts, _solved_at(rows.summaries[winner.rows[0]]) if rows.has_rates else ""]
    is_alone = len(methods) == 1
    trend = _trend(rows, winner, x, contrasts, is_alone=is_alone)
    return [*parts, trend, _time_phrase(rows, winner.rows, x, is_alone=is_alone)]


def _best_value(rows: ResultRows, members: Sequence[int], x: str) -> str:
    """Name the swept values at which a method is best."""
    numbers = {row: number for row in members if (number := _number(rows, row)) is not None}
    if not numbers:
        return f"no trial has a finite {_title(rows)}"
    top = _top(rows, numbers.values())
    at = [words.format_value(x, rows.value(row, x)) for row, number in numbers.items() if number == top]
    quantity = "success rate" if rows.has_rates else _title(rows)
    text = _text(rows, next(row for row, number in numbers.items() if number == top))
    if len(at) == len(numbers):
        return f"the {quantity} is {text} at each of {words.count_of(len(at), 'value')} of {rows.title(x)}"
    at = [*at[:_MOST_NAMED], f"{len(at) - _MOST_NAMED} more"] if len(at) > _MOST_NAMED + 1 else at
    superlative = "highest" if top == max(numbers.values()) else "lowest"
    return f"the {quantity} is {superlative} at {rows.title(x)} {words.join_and(at)}: {text}"


def _top(rows: ResultRows, numbers: Collection[float]) -> float:
    """Return the best number."""
    is_higher = rows.has_rates or rows.metrics[rows.main_metric or ""].higher_is_better
    return max(numbers) if is_higher else min(numbers)


def _number(rows: ResultRows, row: int) -> float | None:
    """Return a row's rate, or its mean of the metric; None without one."""
    summary = rows.summaries[row]
    if rows.has_rates:
        return summary.solved / summary.judged if summary.judged else None
    return summary.metrics[rows.main_metric or ""].mean


def _text(rows: ResultRows, row: int) -> str:
    """Format a row's rate with its counts, or its mean with its interval."""
    summary = rows.summaries[row]
    if rows.has_rates:
        return f"{_estimate(rows, row)} ({summary.solved:,} of {summary.judged:,})"
    measured = summary.metrics[rows.main_metric or ""]
    return words.metric_notation(measured.metric)(measured.mean, measured.mean_interval)


def _estimate(rows: ResultRows, row: int) -> str:
    """Format a row's rate, or its mean, without counts and interval."""
    summary = rows.summaries[row]
    if rows.has_rates:
        return words.percent(summary.solved / summary.judged, summary.success_rate_interval)
    measured = summary.metrics[rows.main_metric or ""]
    return words.estimate_alone(words.metric_notation(measured.metric), measured.mean, measured.mean_interval)


def _trend(
    rows: ResultRows, method: Method, x: str, contrasts: Contrasts, *, has_best: bool = False, is_alone: bool = True
) -> str:
    """Describe a method's trend over the swept hyperparameter: with p if it is tested, else by both ends.

    Empty with fewer than two known numbers.

    Args:
        rows: the rows.
        method: the method, with at least two rows.
        x: the swept hyperparameter.
        contrasts: the tests.
        has_best: whether the reader knows the best value, so that it can be left out.
        is_alone: whether this is the only method, so that the trend can't be another's.
    """
    known = [(row, number) for row in method.rows if (number := _number(rows, row)) is not None]
    if len(known) < 2:
        return ""
    trend = next((t for t in contrasts.trends if t.key == x and t.name == method.name), None)
    here, there = known[0][1], known[-1][1]
    shown = [known[0], known[-1]]
    if trend is None and has_best:
        top = _top(rows, [number for _, number in known])
        shown = [end for end in shown if end[1] != top]
    ends = ", ".join(f"{_estimate(rows, row)} at {words.format_value(x, rows.value(row, x))}" for row, _ in shown)
    if trend is None:
        return ends
    test = f"{ends}; trend p {_compared_with(trend.p_adjusted)}"
    quantity, direction = "rate" if rows.has_rates else "mean", "grow" if trend.z > 0 else "fall"
    if trend.p_adjusted >= LEVEL:
        return f"no trend {'' if is_alone else f'of its {quantity} '}with {rows.title(x)} was detected ({test})"
    whose = "the" if is_alone else "its"
    if (trend.z > 0) == (there > here):
        return f"{whose} {quantity} {direction}s with {rows.title(x)} ({test})"
    extreme = "higher" if trend.z > 0 else "lower"
    return (
        f"{whose} {quantity} tends to {direction} with {rows.title(x)}, "
        f"but its last value isn't {extreme} than its first ({test})"
    )


def _title(rows: ResultRows) -> str:
    """Return the main metric's name for readers."""
    name = rows.main_metric or ""
    return words.metric_title(name, rows.metrics[name])


def _compared_with(p: float) -> str:
    """Format a p-value with its relation, such as = 0.03 or < 0.001."""
    text = words.p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _time_phrase(rows: ResultRows, members: Sequence[int], x: str, *, is_alone: bool = True) -> str:
    """Give the mean times of solved trials at the first and last value with a known one; empty for fewer than two."""
    if not rows.has_rates:
        return ""
    there = [row for row in members if rows.summaries[row].solved_at_mean is not None]
    if len(there) < 2:
        return ""
    first, last = there[0], there[-1]
    at = [words.format_value(x, rows.value(row, x)) for row in (first, last)]
    means = [_mean_solved_at(rows.summaries[row]) for row in (first, last)]
    whose = "" if is_alone else "its "
    return f"{whose}solved trials take {means[0]} iterations on average at {at[0]}, {means[1]} at {at[1]}"


def _mean_solved_at(summary: Summary) -> str:
    """Format a row's mean iterations to success, without the interval."""
    return words.estimate_alone(words.iterations, summary.solved_at_mean, summary.solved_at_interval)


def _solved_at(summary: Summary) -> str:
    """Give the mean time of a row's solved trials; empty if it is unknown."""
    if summary.solved_at_mean is None:
        return ""
    return f"solved trials take {_mean_solved_at(summary)} iterations on average"
