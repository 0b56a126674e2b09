"""Notes on incomplete rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from study import words
from study.summaries.metrics import series_of
from study.summaries.rows import ResultRows

_MOST_NAMES = 8
_MOST_TITLES = 3


def times_notes(rows: ResultRows) -> list[str]:
    """Note rows with trials that ended unsolved before the restriction time of the mean time to success.

    Returns:
        A note with these rows, then, if any have no mean time for this reason, a note with those; empty without such
        trials. A note names up to eight rows and counts the others.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    early = [(row, s) for row, s in enumerate(rows.summaries) if s.ended_early]
    if not early:
        return []
    trials = sum(s.ended_early for _, s in early)
    counts = [f"{rows.name(row) or 'all'} ({s.ended_early:,} of {s.judged:,})" for row, s in early]
    notes = [
        f"{words.count_of(trials, 'trial')} ended unsolved before the iteration up to which times to success are "
        f"averaged (censored): {_join(counts)}"
    ]
    without = [rows.name(row) or "all" for row, s in early if s.time_to_success_mean is None]
    if without:
        notes.append(f"no mean time to success, since no trial was observed that long: {_join(without)}")
    return notes


def metric_notes(rows: ResultRows) -> list[str]:
    """Note rows with trials that ended without a finite value of a metric, so that its means omit them.

    Rows with stopped trials, metrics of solved trials, and metrics without any value are skipped. A series counts as
    one metric, in each row with the values at the place that has the fewest; its single metrics count, too. Metrics
    that the same number of trials of the same rows lack share a note. A note names up to eight rows and three metrics,
    and counts the others.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    titles: dict[tuple[str, str], list[str]] = {}
    single = {words.metric_title(name, metric): {name: metric} for name, metric in rows.single_metrics.items()}
    for title, metrics in (single | {series.heading: series.metrics for series in series_of(rows.metrics)}).items():
        metric = next(iter(metrics.values()))
        counts = [
            (row, values, s.ended)
            for row, s in enumerate(rows.summaries)
            if not s.stopped and (values := [s.metrics[name].count for name in metrics if name in s.metrics])
        ]
        if metric.of != "ended" or not any(any(values) for _, values, _ in counts):
            continue
        lacking = [(row, ended - min(values), ended) for row, values, ended in counts if min(values) < ended]
        if lacking:
            trials = words.count_of(sum(count for _, count, _ in lacking), "trial")
            names = [f"{rows.name(row) or 'all'} ({count:,} of {ended:,})" for row, count, ended in lacking]
            titles.setdefault((trials, _join(names)), []).append(title)
    return [
        f"{trials} ended without a finite {_metrics(titled)}, and {'its' if len(titled) == 1 else 'their'} averages "
        f"leave them out: {names}"
        for (trials, names), titled in titles.items()
    ]


def _metrics(titles: Sequence[str]) -> str:
    more = len(titles) - _MOST_TITLES
    return words.join_and(titles if more <= 0 else [*titles[:_MOST_TITLES], words.count_of(more, "more metric")])


def _join(names: Sequence[str]) -> str:
    first = "; ".join(names[:_MOST_NAMES])
    return first if len(names) <= _MOST_NAMES else f"{first}; and {len(names) - _MOST_NAMES:,} more rows"
