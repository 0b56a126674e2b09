"""Comparison of a report's rows with the published cells that they repeat, or with those of another study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from study import statistics, words
from study.comparisons.compare import compare, side_of
from study.comparisons.finding import Finding, Verdict, adjusted
from study.comparisons.published import PublishedCell, published_sources, repeated_cell
from study.errors import InputError
from study.records import Cell, Interval, names_of
from study.summaries import rows as result_rows
from study.summaries.aggregate import CellSummary
from study.summaries.metrics import MetricSummary, main
from study.summaries.questions import varying
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary
from study.trials.seed_design import Sizes
from study.trials.table import TrialTable

PUBLISHED = "published"

BothTrials = tuple[TrialTable, TrialTable]
"""The trials on both sides: here, and in the other results."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The numbers on the other side of a comparison. A missing number is None.

    Args:
        source: the published table, or the study or file.
        publication: the publication of the table; empty for a study or file.
        caution: a sentence that limits the comparison of its numbers; empty for none.
        ended: the number of trials that ran to a result.
        solved: the number of trials that solved the task.
        judged: the number of trials known to be solved or not.
        success_rate: solved / judged.
        success_rate_interval: Wilson, 95%.
        solved_at_median: iterations; of the solved trials, as are the next three.
        solved_at_median_interval: at least 95%.
        solved_at_mean: iterations.
        solved_at_interval: of the mean, 95%.
        metrics: the averaged metrics, by name.
        complete: whether none of its trials is failed or pending.
    """

    source: str
    publication: str = ""
    caution: str = ""
    ended: int
    solved: int = 0
    judged: int = 0
    success_rate: float | None = None
    success_rate_interval: Interval | None = None
    solved_at_median: float | None = None
    solved_at_median_interval: Interval | None = None
    solved_at_mean: float | None = None
    solved_at_interval: Interval | None = None
    metrics: Mapping[str, MetricSummary] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A row compared with another.

    Args:
        row: the index of the row in the report.
        summary: the results of its trials.
        beside: the numbers of the other row.
        finding: the finding on this row, as the first method, and the other row.
        log_rank_p: the p-value of the log-rank test of equal times to success, after Holm's correction; None where the
            times of either aren't known, or trials of a row share seeds.
    """

    row: int
    summary: Summary
    beside: Reference
    finding: Finding
    log_rank_p: float | None = None

    @property
    def verdict(self) -> str:
        """``differs``, ``agrees`` if no difference was detected, or ``not tested``."""
        words_of = {Verdict.NOT_DISTINGUISHED: "agrees", Verdict.NOT_TESTED: "not tested"}
        return words_of.get(self.finding.verdict, "differs")


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """A report's rows compared with others.

    Args:
        name: ``published``, or the name of the study or file.
        source: where the other rows come from, for readers.
        comparisons: one for each row with a counterpart; may be empty.
        notes: sentences for the reader.
        metric: the metric whose means are compared; None for success rates.
    """

    name: str
    source: str
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()
    metric: str | None = None

    @property
    def is_published(self) -> bool:
        """True if the other rows are the published cells."""
        return self.name == PUBLISHED


def with_published(summaries: Sequence[CellSummary], untested: str = "") -> Comparisons:
    """Compare each cell that has a success rate with the published cell that it repeats, if any; skip others.

    If several published cells have its protocol, the package that published them chooses one, by all cells.

    Args:
        summaries: the cells.
        untested: the reason why rates can't be tested by their counts; empty if they can.

    Raises:
        InputError: if the published results of an installed package are invalid.
        ValueError: if a published cell has more solved seeds than seeds.
    """
    cells = [summary.cell for summary in summaries]
    pairs = [
        (row, summary, _published(published_cell, summary))
        for row, summary in enumerate(summaries)
        if summary.judged and (published_cell := repeated_cell(summary.cell, cells)) is not None
    ]
    findings = adjusted([_with_counts(summary, beside, untested) for _, summary, beside in pairs])
    compared = (Comparison(row=r, summary=s, beside=b, finding=f) for (r, s, b), f in zip(pairs, findings, strict=True))
    sources = dict.fromkeys(beside.publication for _, _, beside in pairs) or published_sources()
    return Comparisons(name=PUBLISHED, source="; ".join(sources), comparisons=tuple(compared))


def _with_counts(summary: Summary, beside: Reference, untested: str) -> Finding:
    """Compare two rates by Fisher's exact test and Newcombe's interval; no test if `untested` gives a reason."""
    counts = summary.solved, summary.judged, beside.solved, beside.judged
    rates = summary.solved / summary.judged, beside.solved / beside.judged
    blank = Finding(
        question="", first="here", second=PUBLISHED, metric=None, is_higher_better=True, values=rates, reason=untested
    )
    if untested:
        return blank
    p_value = statistics.fisher_exact(*counts)
    return replace(
        blank,
        estimate=rates[0] - rates[1],
        interval=statistics.newcombe(*counts),
        test="Fisher",
        p_value=p_value,
        p_adjusted=p_value,
    )


def with_study(
    summaries: Sequence[CellSummary],
    others: Sequence[CellSummary],
    name: str,
    trials: BothTrials,
    sizes: Sizes = "fixed",
    titles: Mapping[str, str] | None = None,
) -> Comparisons:
    """Compare each cell with the cell of another study that has the same values of the hyperparameters swept by either.

    The models must be equal, too. If the studies have a cell in common, all hyperparameters must be equal.

    Args:
        summaries: the cells.
        others: the cells of the other study.
        name: of the other study.
        trials: of both studies.
        sizes: whether the numbers of seeds were fixed in advance or adapted to results.
        titles: declared titles of hyperparameters, by name.

    Raises:
        InputError: if no cell of the other study has a counterpart here, several of its cells have equal values, the
            studies have no measure in common, or the vocabulary of an installed package can't be imported.
        KeyError: if a table of trials doesn't declare the compared metric.
    """
    cells, their_cells = [s.cell for s in summaries], [s.cell for s in others]
    swept = dict.fromkeys([*varying(cells), *varying(their_cells)])
    same = {cell.id for cell in cells} & {cell.id for cell in their_cells}
    keys = names_of([*cells, *their_cells]) if same else list(dict.fromkeys(["model", *swept]))
    here, there = (_rows_by(group, keys) for group in (summaries, others))
    notes = [] if same else _differences(cells, their_cells, keys, name, titles or {})
    return _with_rows(here, there, name, notes, trials, sizes)


def _differences(
    cells: Sequence[Cell], their_cells: Sequence[Cell], keys: Sequence[str], name: str, titles: Mapping[str, str]
) -> list[str]:
    """Describe each hyperparameter outside of `keys` whose values differ between the studies."""
    notes = []
    for key in names_of([*cells, *their_cells]):
        here, there = (dict.fromkeys(cell.value(key) for cell in group) for group in (cells, their_cells))
        if key not in keys and set(here) != set(there):
            values = [", ".join(words.format_value(key, value) for value in group) for group in (here, there)]
            notes.append(f"{words.title(key, titles)}: {values[0]} here, {values[1]} in {name}")
    return notes


def with_groups(
    rows: ResultRows, others: ResultRows, name: str, trials: BothTrials, sizes: Sizes = "fixed"
) -> Comparisons:
    """Compare each group with the group of another file or study that has equal values in the same columns.

    Args:
        rows: the groups.
        others: the groups of the other file or study.
        name: of the other file or study.
        trials: of both.
        sizes: whether the numbers of seeds were fixed in advance or adapted to results.

    Raises:
        InputError: if no group has a counterpart, several groups of the other have equal values, there is no measure in
            common, or the vocabulary of an installed package can't be imported.
        KeyError: if a table of trials doesn't declare the compared metric.
    """
    return _with_rows(rows, others, name, [], trials, sizes)


def _rows_by(summaries: Sequence[CellSummary], keys: Sequence[str]) -> ResultRows:
    """Make rows of cells, with the given fields as their keys."""
    values = tuple(tuple(s.cell.value(key) for key in keys) for s in summaries)
    return replace(result_rows.cell_rows(summaries, {}), keys=tuple(keys), values=values)


def _with_rows(
    rows: ResultRows, others: ResultRows, name: str, notes: Sequence[str], trials: BothTrials, sizes: Sizes
) -> Comparisons:
    """Compare rows of equal values, by rates or a common metric.

    Raises InputError if no rows match, several of the other rows are equal, or there is no common measure.
    """
    there: dict[tuple[Any, ...], Summary] = {}
    for values, summary in zip(others.values, others.summaries, strict=True):
        if there.setdefault(values, summary) is not summary:
            raise InputError(
                f"--compare {name}: several of its cells have equal values of {', '.join(rows.keys)}; "
                "choose a study in which these values identify a cell"
            )
    matched = [
        (row, s, there[v]) for row, (v, s) in enumerate(zip(rows.values, rows.summaries, strict=True)) if v in there
    ]
    if not matched:
        raise InputError(
            f"--compare {name}: no cell of {name} has the same {', '.join(rows.keys)} as a row of this report; choose "
            "a study that has a cell equal to a row in all of these"
        )
    metric = _compared_metric(rows, others, name)
    pairs = [(row, s, other) for row, s, other in matched if _has_value(s, metric) and _has_value(other, metric)]
    alone = len(rows.summaries) - len(pairs)
    missing = [f"{alone} of {len(rows.summaries)} {rows.noun}s have no finished counterpart"] if alone else []
    declared = None if metric is None else rows.metrics[metric]
    findings = adjusted(
        [
            compare(
                rows.name(row),
                side_of("here", trials[0], [summary], metric),
                side_of(name, trials[1], [other], metric),
                metric,
                declared,
                sizes,
            )
            for row, summary, other in pairs
        ]
    )
    p_values: list[float | None] = [None] * len(pairs)
    if metric is None and sizes == "fixed":
        p_values = [_log_rank(trials, summary, other) for _, summary, other in pairs]
    corrected = iter(statistics.holm([p for p in p_values if p is not None]))
    compared = tuple(
        Comparison(
            row=row,
            summary=summary,
            beside=_reference(name, other),
            finding=finding,
            log_rank_p=None if p is None else next(corrected),
        )
        for (row, summary, other), finding, p in zip(pairs, findings, p_values, strict=True)
    )
    return Comparisons(name=name, source=name, comparisons=compared, notes=(*notes, *missing), metric=metric)


def _compared_metric(rows: ResultRows, others: ResultRows, name: str) -> str | None:
    """Return the compared metric, None for success rates; raise InputError without a common measure."""
    if rows.has_rates and others.has_rates:
        return None
    metric = main({name: metric for name, metric in rows.metrics.items() if name in others.metrics})
    if metric is None:
        raise InputError(
            f"--compare {name}: the two sides have neither success rates nor an averaged metric in common; choose "
            "results with a common measure"
        )
    return metric


def _has_value(summary: Summary, metric: str | None) -> bool:
    """Return True if a row has a value to compare."""
    return bool(summary.judged if metric is None else summary.metrics[metric].count)


def _log_rank(trials: BothTrials, here: Summary, there: Summary) -> float | None:
    """Return the p-value of the log-rank test of two rows' times, paired at the seeds that both have.

    None if times are unknown, nothing can be tested, or trials of a row share seeds.
    """
    times = [s.times.known("iterations") if s.times else None for s in (here, there)]
    samples = [table.group(s.key) for table, s in zip(trials, (here, there), strict=True)]
    if any(known is None for known in times) or any(
        (sample.seeds < 0).any() or sample.repeat_seeds for sample in samples
    ):
        return None
    judged = [sample.select(sample.is_judged) for sample in samples]
    seeds = np.intersect1d(judged[0].seeds, judged[1].seeds)
    first, second = (sample.of_seeds(seeds).times for sample in judged)
    first_alone, second_alone = (sample.select(~np.isin(sample.seeds, seeds)).times for sample in judged)
    test = statistics.partly_paired_times(first, second, first_alone, second_alone)
    return None if test is None else test.p_value


def _reference(source: str, summary: Summary) -> Reference:
    """Return a row's numbers for the other side of a comparison."""
    return Reference(
        source=source,
        ended=summary.ended,
        metrics=summary.metrics,
        complete=summary.complete,
        **_success(summary, summary.judged),
    )


def _published(cell: PublishedCell, beside: Summary) -> Reference:
    """Return a published cell's numbers, with the published ones of a row's metrics."""
    estimates = {name: cell.metrics.get(name, (None, None)) for name in beside.metrics}
    metrics = {
        name: MetricSummary(metric=beside.metrics[name].metric, mean=mean, mean_interval=interval)
        for name, (mean, interval) in estimates.items()
    }
    return Reference(
        source=cell.table,
        publication=cell.source,
        caution=cell.caution,
        ended=cell.seeds,
        metrics=metrics,
        **_success(cell, cell.seeds),
    )


def _success(result: Summary | PublishedCell, judged: int) -> dict[str, Any]:
    """Return the fields of `Reference` on success and times; empty without judged trials."""
    if not judged:
        return {}
    return {
        "solved": result.solved,
        "judged": judged,
        "success_rate": result.solved / judged,
        "success_rate_interval": statistics.wilson(result.solved, judged),
        "solved_at_median": result.solved_at_median,
        "solved_at_median_interval": result.solved_at_median_interval if isinstance(result, Summary) else None,
        "solved_at_mean": result.solved_at_mean,
        "solved_at_interval": result.solved_at_interval,
    }
