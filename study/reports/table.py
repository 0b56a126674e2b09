"""The tables of a report, with the columns and texts shown in a terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import add
from typing import TYPE_CHECKING

from study import words
from study.comparisons.comparison import Comparisons, Reference
from study.comparisons.contrasts import Contrasts
from study.comparisons.finding import Finding
from study.interface.declarations import Metric
from study.records import Cell
from study.reports import metric_columns
from study.reports.text_table import (
    Column,
    TextTable,
    count_column,
    estimates_column,
    names_column,
    places,
    select,
    text_column,
)
from study.summaries.aggregate import CellSummary, published_error
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary
from study.words import Notation

if TYPE_CHECKING:
    from study.plan.verdict import Verdict  # its imports take long, and tables of files don't need them


def summaries_table(
    rows: ResultRows, *, is_narrow: bool = False, most: int | None = None, is_full: bool = False
) -> TextTable:
    """Lay out one row a summary: its keys, then the statistics, with any numbers of the published estimators.

    Rows that lack trials are marked. Columns without information are left out: counts (diverged, failed) that are all
    zero, unknown times, unmeasured seconds, and success rates without a success criterion. Without one, the count of
    finished trials is left out, too.

    Args:
        rows: the summaries, in order.
        is_narrow: whether to omit, for a terminal, the restricted mean, seconds to success, beta intervals of metrics,
            all statistics of metrics but means, and all but the first three metrics of ended trials.
        most: the number of rows to lay out; None for all.
        is_full: whether to include counts that are all zero, and times that repeat others.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    summaries = rows.summaries[:most]
    published = [] if rows.as_published is None else rows.as_published[:most]
    error = published_error(rows.metrics)

    def as_published(name: str, write: Notation, interval: str, *, is_alone: bool = False) -> list[Column]:
        if not published:
            return []
        column = estimates_column(published, "as published", name, write, interval, is_alone=is_alone)
        return [replace(column, name=f"as_published_{name.replace('error', error or name)}")]

    columns = [*key_columns(rows, range(len(summaries))), seeds_column("seeds", summaries)]
    if rows.has_rates:
        columns.append(count_column("solved", [s.solved for s in summaries], "solved"))
        rates = estimates_column(summaries, "success rate", "success_rate", words.rate, "success_rate_interval")
        columns.append(replace(rates, best=rows.winners))
    if rows.has_times:
        columns.append(solved_at_median_column(summaries))
        title, name = "solved at iteration, mean", "solved_at_mean"
        columns.append(estimates_column(summaries, title, name, words.iterations, "solved_at_interval"))
        columns += as_published("solved_at_mean", words.iterations, "solved_at_interval")
    if not is_narrow and (is_full or any(s.solved < s.judged for s in summaries)):
        columns += _times_to_success(summaries)
    for name in metric_columns.names_to_show(rows, is_narrow=is_narrow):
        columns += metric_columns.columns(rows, name, most, is_narrow=is_narrow)
        if published and name == error:
            columns += as_published("error_mean", words.error, "error_interval", is_alone=is_narrow)
    for name in (*(["finished"] if rows.has_rates else []), "stopped", "diverged", "failed"):
        counts = [getattr(s, name) for s in summaries]
        columns += [count_column(name, counts, name)] if is_full or any(counts) else []
    if any(s.training_s_mean is not None for s in summaries):
        columns.append(estimates_column(summaries, "seconds a trial", "training_s_mean", words.seconds))
    if any(s.solved_at_s_mean is not None for s in summaries) and not is_narrow:
        title, name = "seconds to success, mean", "solved_at_s_mean"
        columns.append(estimates_column(summaries, title, name, words.seconds, "solved_at_s_interval", is_alone=True))
    return TextTable(tuple(columns), places(not s.complete for s in summaries), len(rows.keys))


def chosen_table(rows: ResultRows, names: Sequence[str]) -> TextTable:
    """Lay out the keys of each row and the chosen statistics.

    Args:
        rows: the summaries, in order.
        names: the names of columns of the full `summaries_table`, as in cells.csv; a name without its statistic, such
            as ``solved_at``, stands for all of them. Empty for the usual columns.

    Raises:
        InputError: if that table has no such column, a package's vocabulary can't be imported, or two packages offer
            one of the same name.
    """
    if not names:
        return summaries_table(rows)
    content, count = summaries_table(rows, is_full=True), len(rows.keys)
    return replace(content, columns=(*content.columns[:count], *select(content.columns[count:], names)))


def check_columns(rows: ResultRows, names: Sequence[str]) -> None:
    """Check the names of statistics for all tables whose columns can be chosen.

    Raises:
        InputError: if a statistic doesn't exist, or a package's vocabulary can't be imported.
    """
    chosen_table(rows, names)


def key_columns(rows: ResultRows, indices: Iterable[int], keys: Sequence[str] | None = None) -> list[Column]:
    """Lay out the keys of rows.

    Args:
        rows: all rows.
        indices: the indices of the rows to lay out, which may repeat.
        keys: the keys to lay out, among those of `rows`; None for all.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    chosen = list(indices)
    return [
        Column(
            rows.title(key),
            tuple(rows.text(row, key) for row in chosen),
            tuple(rows.value(row, key) for row in chosen),
            rows.is_number[rows.keys.index(key)],
            name=key,
        )
        for key in (rows.keys if keys is None else keys)
    ]


def _times_to_success(summaries: Sequence[Summary]) -> list[Column]:
    """Lay out the restricted mean iterations to success: one column, or none if no row has a limit.

    A common limit is in the title, different limits are in the cells.
    """
    untils = [s.time_to_success_until for s in summaries]
    distinct = {until for until in untils if until is not None}
    if not distinct:
        return []
    up_to = f" up to {words.iterations(max(distinct))}" if len(distinct) == 1 else ""
    title, mean = f"iterations to success, mean{up_to}", "time_to_success_mean"
    column = estimates_column(summaries, title, mean, words.iterations, "time_to_success_interval")
    pairs = zip(column.values, untils, strict=True)
    limits = ["" if up_to or v is None else f" up to {words.iterations(u)}" for v, u in pairs]
    return [replace(column, texts=tuple(map(add, column.texts, limits)))]


def comparison_table(rows: ResultRows, against: Comparisons) -> TextTable:
    """Lay out one row for each comparison: the numbers of both rows, and their test; rows that differ are marked.

    Keys that all compared rows share are left out, except the model, and unless none would remain. So are unknown
    times.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    compared = against.comparisons
    at = [c.row for c in compared]
    keys = [key for key in rows.keys if key == "model" or len({rows.value(row, key) for row in at}) > 1] or rows.keys
    other_place = "published" if against.is_published else "there"
    change = words.change if against.metric is None else words.signed
    # The verdict gives the direction of a probability.
    differences = [_estimate(c.finding, change, is_probability=False) for c in compared]
    columns = [
        *key_columns(rows, at, keys),
        *_compared_columns("here", "", [c.summary for c in compared], rows, against.metric),
        *_compared_columns(other_place, "other_", [c.beside for c in compared], rows, against.metric),
        text_column("difference", differences, name="difference"),
        text_column("p", [_p(c.finding.p_value) for c in compared], name="p_value"),
        text_column("p, Holm", [_p(c.finding.p_adjusted) for c in compared], name="p_adjusted"),
        replace(names_column("verdict", [c.verdict for c in compared]), name="verdict"),
    ]
    times = [mean for c in compared for mean in (c.summary.solved_at_mean, c.beside.solved_at_mean) if mean is not None]
    if against.metric is None and times:
        title, name = "solved at iteration {}: median, mean", "solved_at_mean"
        columns.append(text_column(title.format("here"), [_both(c.summary) for c in compared], name=name))
        columns.append(
            text_column(title.format(other_place), [_both(c.beside) for c in compared], name=f"other_{name}")
        )
    if any(c.log_rank_p is not None for c in compared):
        columns.append(text_column("p, log-rank, Holm", [_p(c.log_rank_p) for c in compared], name="log_rank_p"))
    return TextTable(tuple(columns), places(c.verdict == "differs" for c in compared), len(keys))


def _compared_columns(
    where: str, prefix: str, results: Sequence[Summary | Reference], rows: ResultRows, metric: str | None
) -> tuple[Column, Column]:
    """Lay out the compared success rate, or the mean of a metric, with its number of trials."""
    incomplete = ["" if result.complete else ", incomplete" for result in results]
    if metric is None:
        counts = [
            (f"{result.solved}/{result.judged}{text}", result.solved)
            for result, text in zip(results, incomplete, strict=True)
        ]
        interval, name = "success_rate_interval", f"{prefix}success_rate"
        rates = estimates_column(results, f"success rate {where}", "success_rate", words.rate, interval)
        return text_column(where, counts, name=f"{prefix}solved"), replace(rates, name=name)
    title, write = words.metric_title(metric, rows.metrics[metric]), words.metric_notation(rows.metrics[metric])
    means = [result.metrics[metric] for result in results]
    counts = [(f"{mean.count}{text}", mean.count) for mean, text in zip(means, incomplete, strict=True)]
    estimates = estimates_column(means, f"{title} {where}", "mean", write, "mean_interval")
    name = f"{prefix}{metric}_mean"
    return text_column(f"trials {where}", counts, name=f"{prefix}trials"), replace(estimates, name=name)


def trends_table(contrasts: Contrasts) -> TextTable:
    """Lay out one row for each trend of the success rate, or of the metric."""
    trends, write = contrasts.trends, words.rate if contrasts.metric is None else words.measure

    def end(point: tuple[float, float]) -> tuple[str, float]:
        return f"{write(point[1])} at {point[0]:g}", point[1]

    return TextTable(
        (
            *_names_columns("rows", [t.name for t in trends]),
            text_column("over", [(t.title, t.key) for t in trends], is_number=False),
            text_column("from", [end(t.low) for t in trends]),
            text_column("to", [end(t.high) for t in trends]),
            text_column("z", [(f"{t.z:+.2f}", t.z) for t in trends]),
            text_column("p", [_p(t.p_value) for t in trends]),
            text_column("p, Holm", [_p(t.p_adjusted) for t in trends]),
        )
    )


def slopes_table(contrasts: Contrasts) -> TextTable:
    """Lay out one row for each coefficient of a logistic regression."""
    slopes = contrasts.slopes
    odds = [
        ("separated", None) if s.odds_ratio is None else (words.factor(s.odds_ratio, s.interval), s.odds_ratio)
        for s in slopes
    ]
    return TextTable(
        (
            *_names_columns("rows", [s.name for s in slopes]),
            text_column("hyperparameter", [(s.title, s.key) for s in slopes], is_number=False),
            text_column("unit", [("a factor of 10" if s.is_log else "1", s.is_log) for s in slopes], is_number=False),
            text_column("odds of success change by", odds),
            text_column("p", [_p(s.p_value) for s in slopes]),
        )
    )


def pairs_table(contrasts: Contrasts) -> TextTable:
    """Lay out one row for each finding: differences of rates or means, and probabilities that the first is better.

    Findings that tell methods apart are marked. The columns of seeds are blank for a finding without paired seeds, and
    left out if none has any.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    pairs, metric = contrasts.pairs, contrasts.metric
    at = [
        "on average" if question.swept and len(contrasts.findings) > 1 else finding.question
        for question, findings in contrasts.findings.items()
        for finding in findings
    ]
    quantity, change = (
        ("success rates", words.change) if metric is None else (f"mean {words.title(metric)}", words.signed)
    )
    kinds: Sequence[tuple[bool, str, Notation]] = (
        (False, f"difference of {quantity}", change),
        (True, "probability that the first is better", words.rate),
    )
    estimates = [
        text_column(title, [_estimate(f, write, is_probability=is_probability) for f in pairs])
        for is_probability, title, write in kinds
        if any(f.is_probability is is_probability and f.estimate is not None for f in pairs)
    ]
    paired = [None if f.seeds is None else (f.seeds, f.sample.first_better, f.sample.second_better) for f in pairs]
    titles = ("seeds", "first better", "second better")
    by_seed = [
        count_column(title, [counts and counts[k] for counts in paired])
        for k, title in enumerate(titles)
        if any(paired)
    ]
    return TextTable(
        (
            *_names_columns("at", at),
            names_column("first", [p.first for p in pairs]),
            names_column("second", [p.second for p in pairs]),
            *estimates,
            text_column("p", [_p(p.p_value) for p in pairs]),
            text_column("p, Holm", [_p(p.p_adjusted) for p in pairs]),
            *by_seed,
            names_column("verdict", [p.statement for p in pairs]),
        ),
        places(p.winner is not None for p in pairs),
    )


def verdicts_table(rows: ResultRows, verdicts: Sequence[Verdict]) -> TextTable:
    """Lay out one row for each cell, or pair of cells, whose seeds are added until they are enough.

    Rows without enough seeds are marked.

    Raises:
        KeyError: if a verdict's cell isn't in `rows`.
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    row_of = {s.cell_id: row for row, s in enumerate(rows.summaries) if isinstance(s, CellSummary)}

    def name(cell: Cell | None) -> tuple[str, str]:
        text = "" if cell is None else rows.name(row_of[cell.id])
        return text, text

    columns = [
        text_column("cell", [name(v.cell) for v in verdicts], is_number=False),
        *_names_columns("compared with", [name(v.versus)[0] for v in verdicts]),
        count_column("seeds", [v.seeds for v in verdicts], "seeds"),
    ]
    are_pairs, metric = [v.p_value is not None for v in verdicts], next((v.metric for v in verdicts if v.metric), "")
    if any(are_pairs):
        titles = ("it is better", "the other is better") if metric else ("it alone solved", "the other alone")
        columns.append(count_column(titles[0], [None if v.p_value is None else v.wins for v in verdicts]))
        columns.append(count_column(titles[1], [None if v.p_value is None else v.losses for v in verdicts]))
        columns.append(text_column("p, at any time", [_p(v.p_value) for v in verdicts], name="p_value"))
    if not all(are_pairs):
        halves = [None if v.interval is None else (v.interval[1] - v.interval[0]) / 2 for v in verdicts]
        title = f"{words.metric_title(metric, rows.metrics.get(metric, Metric()))}, mean"
        means = [
            (f"none: {v.without:,} without a number", None)
            if v.without
            else (words.estimate_alone(words.measure, v.mean, v.interval), v.mean)
            for v in verdicts
        ]
        columns += [text_column(title, means)] if metric else []
        widths = [("" if half is None else words.measure(half), half) for half in halves]
        columns.append(text_column("half-width", widths, name="half_width"))
    columns.append(names_column("enough?", ["yes" if v.is_sure else "no" for v in verdicts]))
    return TextTable(tuple(columns), marked=places(not v.is_sure for v in verdicts))


def verdicts_note(verdicts: Sequence[Verdict]) -> str:
    """Return sentences with the number of cells or pairs that have enough seeds, and the method that decides it."""
    sure = f"{sum(v.is_sure for v in verdicts)} of {len(verdicts)}"
    is_metric = any(v.metric for v in verdicts)
    if any(v.p_value is not None for v in verdicts):
        if is_metric:
            return (
                f"{sure} pairs differ by a sign test over seeds, without ties, in which a trial without a number is "
                "worse than any with one. It stays valid however often it is evaluated, at a level of 5% each."
            )
        return (
            f"{sure} pairs differ by a sign test of their seeds, which stays valid however often it is evaluated, at "
            "a level of 5% each."
        )
    if not is_metric:
        return (
            f"{sure} cells have an interval as narrow as asked for. Intervals are Clopper and Pearson's, widened so "
            "that their coverage is at least 95% although they are evaluated after every batch."
        )
    note = (
        f"{sure} cells have a mean known as precisely as asked for, by Student's interval, which is evaluated after "
        "every batch from 40 seeds on: for skewed values, its coverage is below 95%."
    )
    without = sum(v.without > 0 for v in verdicts)
    return note + (
        f" {words.count_of(without, 'cell')} had trials that ended without a number and so have no mean: these "
        "cells get the most seeds, and aren't sure."
        if without
        else ""
    )


def speeds_table(contrasts: Contrasts) -> TextTable:
    """Lay out one row for each log-rank test."""
    tests = contrasts.speeds
    return TextTable(
        (
            *_names_columns("at", [s.question for s in tests]),
            names_column("methods", ["; ".join(s.names) for s in tests]),
            text_column("χ²", [(f"{s.statistic:.1f}", s.statistic) for s in tests]),
            count_column("degrees of freedom", [s.degrees_of_freedom for s in tests]),
            text_column("p", [_p(s.p_value) for s in tests]),
            text_column("p, Holm", [_p(s.p_adjusted) for s in tests]),
        )
    )


def solved_at_median_column(summaries: Sequence[Summary]) -> Column:
    """Lay out the median of solved-at, without its interval; an en dash without one."""
    title, name = "solved at iteration, median", "solved_at_median"
    return estimates_column(summaries, title, name, words.iterations, f"{name}_interval", is_alone=True)


def seeds_column(title: str, summaries: Sequence[Summary]) -> Column:
    """Make a column with the number of ended trials, such as ``20``.

    It is ``18/20``, with the number of all trials, if the row has failed, stopped or pending trials.
    """
    texts = (str(s.ended) if s.complete else f"{s.ended}/{s.seeds}" for s in summaries)
    return text_column(title, [(text, s.ended) for text, s in zip(texts, summaries, strict=True)], name="seeds")


def _names_columns(title: str, names: Sequence[str]) -> list[Column]:
    """Make a column of names; none if all are empty."""
    return [names_column(title, names)] if any(names) else []


def _p(value: float | None) -> tuple[str, float | None]:
    return (words.NONE if value is None else words.p_value(value)), value


def _estimate(finding: Finding, write: Notation, *, is_probability: bool) -> tuple[str, float | None]:
    """Return the text and value of a finding's estimate; an en dash and None if it is of the other kind."""
    value = finding.estimate if finding.is_probability is is_probability else None
    return write(value, None if value is None else finding.interval), value


def _both(s: Summary | Reference) -> tuple[str, float | None]:
    median, mean = s.solved_at_median, s.solved_at_mean
    if median is None and mean is None:
        return words.NONE, None
    pairs = ((median, s.solved_at_median_interval), (mean, s.solved_at_interval))
    return ", ".join(words.estimate_alone(words.iterations, *pair) for pair in pairs), mean
