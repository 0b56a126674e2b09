"""A report's rows compared with the published cells that they repeat, or with those of another study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from study import statistics, words
from study.analysis import rows as result_rows
from study.analysis import seed_pairs
from study.analysis.aggregate import CellSummary
from study.analysis.method_tests import LEVEL, PairTest, fisher, test_of_two
from study.analysis.metrics import MetricSummary, main
from study.analysis.published import SOURCE, Published, choose
from study.analysis.questions import varying
from study.analysis.rows import ResultRows
from study.analysis.seed_pairs import SeedSample, SeedTrials
from study.analysis.summary import Summary
from study.errors import InputError
from study.records import Cell, Interval, names_of

PUBLISHED = "published"


BothTrials = tuple[SeedTrials, SeedTrials]
"""The trials of what is compared: those here, and the others."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The numbers that a row is compared with. None means that there is no such number.

    Args:
        source: the published table, or the study or file.
        ended: the number of trials that ran to a result.
        solved: the number of trials that solved the task.
        judged: the number of trials of which it is known whether they did.
        success_rate: solved / judged.
        success_rate_interval: Wilson, 95%.
        solved_at_median: iterations; of the solved trials, as are the next two.
        solved_at_mean: iterations.
        solved_at_interval: of the mean, 95%.
        metrics: those that are averaged, by name.
        complete: whether none of its trials is failed or pending.
    """

    source: str
    ended: int
    solved: int = 0
    judged: int = 0
    success_rate: float | None = None
    success_rate_interval: Interval | None = None
    solved_at_median: float | None = None
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
        difference: of the success rates, or of a metric's means, this row's minus the other's.
        difference_interval: 95%; the one that belongs to the test; None where there are too few values.
        p_value: of equal rates, or of equal means, two-sided; None where they can't be tested, since a row has too few
            values, or only equal ones.
        p_adjusted: `p_value` after Holm's correction over all rows compared.
        verdict: ``differs`` if `p_adjusted` is below `LEVEL`, else ``agrees``: no difference was detected; ``not
            tested`` without a p-value.
        log_rank_p: of the log-rank test of equal times to success, after Holm's correction; None where the times of
            either aren't known.
        test: McNemar or sign-flip, seed by seed, or Fisher or Welch; empty where nothing can be tested.
        seeds: those that were compared; None if trials weren't compared seed by seed.
    """

    row: int
    summary: Summary
    beside: Reference
    difference: float
    difference_interval: Interval | None
    p_value: float | None
    p_adjusted: float | None
    verdict: str
    log_rank_p: float | None = None
    test: str = ""
    seeds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """A report's rows compared with others.

    Args:
        name: ``published``, or the name of the study or file.
        source: where the other rows come from, for people to read.
        comparisons: one for each row that has a counterpart; may be empty.
        notes: sentences that the reader must know.
        metric: the metric whose means are compared; None if success rates are.
    """

    name: str
    source: str
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()
    metric: str | None = None

    @property
    def is_published(self) -> bool:
        """Whether the other rows are the published cells."""
        return self.name == PUBLISHED


def with_published(summaries: Sequence[CellSummary]) -> Comparisons:
    """Compare each cell that repeats a published cell and has a success rate with that published cell.

    Where several published cells have the same protocol, a study that sweeps the hidden size is compared with the
    published sweeps (the NMU with the ablation's, of 50 seeds), and any other study with the published seeds.
    """
    cells = [summary.cell for summary in summaries]
    pairs = [
        (row, summary, _published(published_cell, summary))
        for row, summary in enumerate(summaries)
        if summary.judged and (published_cell := choose(summary.cell, cells)) is not None
    ]
    counts = [(s.solved, s.judged, beside.solved, beside.judged) for _, s, beside in pairs]
    tests = [fisher(*count) for count in counts]
    return Comparisons(name=PUBLISHED, source=SOURCE, comparisons=_compared(pairs, tests, None))


def with_study(
    summaries: Sequence[CellSummary], others: Sequence[CellSummary], name: str, trials: BothTrials | None = None
) -> Comparisons:
    """Compare each cell with the cell of another study that has equal values in all that either study sweeps.

    Args:
        summaries: the cells.
        others: those of the other study.
        name: of the other study.
        trials: those of both, by which cells that have the same seeds are compared seed by seed; None if they aren't
            known.

    Raises:
        InputError: if no cell of the other study has a counterpart here, or one has several, or there is nothing that
            both studies measure.
    """
    cells, their_cells = [s.cell for s in summaries], [s.cell for s in others]
    swept = dict.fromkeys([*varying(cells), *varying(their_cells)])
    same = {cell.id for cell in cells} & {cell.id for cell in their_cells}
    keys = names_of([*cells, *their_cells]) if same else list(dict.fromkeys(["model", *swept]))
    here, there = (_by(group, keys) for group in (summaries, others))
    notes = [] if same else _differences(cells, their_cells, keys, name)
    return _with_rows(here, there, name, notes, trials)


def _differences(cells: Sequence[Cell], their_cells: Sequence[Cell], keys: Sequence[str], name: str) -> list[str]:
    """Describe the values of each hyperparameter that isn't matched, and in which the studies differ."""
    notes = []
    for key in names_of([*cells, *their_cells]):
        here, there = (dict.fromkeys(cell.value(key) for cell in some) for some in (cells, their_cells))
        if key not in keys and set(here) != set(there):
            values = [", ".join(words.show_value(key, value) for value in some) for some in (here, there)]
            notes.append(f"{words.title(key)}: {values[0]} here, {values[1]} in {name}")
    return notes


def with_groups(rows: ResultRows, others: ResultRows, name: str, trials: BothTrials | None = None) -> Comparisons:
    """Compare each group with the group of another file or study that has equal values in the same columns.

    Args:
        rows: the groups.
        others: those of the other file or study.
        name: of the other file or study.
        trials: as for `with_study`.

    Raises:
        InputError: if no group has a counterpart, or there is nothing that both files or studies measure.
    """
    return _with_rows(rows, others, name, [], trials)


def _by(summaries: Sequence[CellSummary], keys: Sequence[str]) -> ResultRows:
    """Make rows of cells that are identified by some of their fields."""
    values = tuple(tuple(s.cell.value(key) for key in keys) for s in summaries)
    return replace(result_rows.cells(summaries, {}), keys=tuple(keys), values=values)


def _with_rows(
    rows: ResultRows, others: ResultRows, name: str, notes: Sequence[str], trials: BothTrials | None
) -> Comparisons:
    there: dict[tuple[Any, ...], Summary] = {}
    for values, summary in zip(others.values, others.summaries, strict=True):
        if there.setdefault(values, summary) is not summary:
            raise InputError(
                f"--compare {name}: several of its cells have one value of {', '.join(rows.keys)}; "
                "compare with a study in which these tell the cells apart"
            )
    matched = [
        (row, s, there[v]) for row, (v, s) in enumerate(zip(rows.values, rows.summaries, strict=True)) if v in there
    ]
    if not matched:
        raise InputError(f"--compare {name}: none of its cells has the values of a cell here in {', '.join(rows.keys)}")
    metric = _compared_metric(rows, others, name)
    pairs = [(row, s, other) for row, s, other in matched if _has(s, metric) and _has(other, metric)]
    alone = len(rows.summaries) - len(pairs)
    missing = (
        [f"{alone} of {len(rows.summaries)} {rows.noun}s have nothing finished to be compared with"] if alone else []
    )
    beside = [(row, s, _reference(name, other)) for row, s, other in pairs]
    samples = [None if trials is None else [trials[0].sample(s), trials[1].sample(o)] for _, s, o in pairs]
    tests = [test_of_two(s, other, some, metric) for (_, s, other), some in zip(pairs, samples, strict=True)]
    compared = _compared(beside, tests, metric)
    if metric is not None:
        return Comparisons(name=name, source=name, comparisons=compared, notes=(*notes, *missing), metric=metric)
    p_values = [_log_rank(s, other, some) for (_, s, other), some in zip(pairs, samples, strict=True)]
    adjusted = iter(statistics.holm([p for p in p_values if p is not None]))
    timed = tuple(
        replace(c, log_rank_p=None if p is None else next(adjusted)) for c, p in zip(compared, p_values, strict=True)
    )
    return Comparisons(name=name, source=name, comparisons=timed, notes=(*notes, *missing))


def _compared_metric(rows: ResultRows, others: ResultRows, name: str) -> str | None:
    """Return the metric by which rows are compared; None for success rates."""
    if rows.has_rates and others.has_rates:
        return None
    metric = main({name: metric for name, metric in rows.metrics.items() if name in others.metrics})
    if metric is None:
        raise InputError(
            f"--compare {name}: there are no success rates on both sides, and no metric that both average over their "
            "trials; compare results that measure the same"
        )
    return metric


def _has(summary: Summary, metric: str | None) -> bool:
    """Return whether a row has what is compared."""
    return bool(summary.judged if metric is None else summary.metrics[metric].count)


def _log_rank(here: Summary, there: Summary, samples: Sequence[SeedSample] | None) -> float | None:
    times = [s.times.known("iterations") if s.times else None for s in (here, there)]
    if any(of is None for of in times):
        return None
    shared = None if samples is None else seed_pairs.shared(samples)
    if shared is not None:
        judged = seed_pairs.judged(shared)
        test = statistics.paired_log_rank([of.times for of in judged]) if judged[0].rows.size else None
    else:
        test = statistics.log_rank([of for of in times if of is not None])
    return None if test is None else test.p_value


_Pairs = Sequence[tuple[int, Summary, Reference]]


def _compared(pairs: _Pairs, tests: Sequence[PairTest | None], metric: str | None) -> tuple[Comparison, ...]:
    """Put rows and their tests together, with p-values adjusted by Holm's method."""
    adjusted = iter(statistics.holm([test["p_value"] for test in tests if test is not None]))
    compared = []
    for (row, summary, beside), test in zip(pairs, tests, strict=True):
        p_adjusted = None if test is None else next(adjusted)
        compared.append(
            Comparison(
                row=row,
                summary=summary,
                beside=beside,
                difference=_middle(summary, metric) - _middle(beside, metric) if test is None else test["difference"],
                difference_interval=None if test is None else test["interval"],
                p_value=None if test is None else test["p_value"],
                p_adjusted=p_adjusted,
                verdict="not tested" if p_adjusted is None else "differs" if p_adjusted < LEVEL else "agrees",
                test="" if test is None else test["test"],
                seeds=None if test is None else test.get("seeds"),
            )
        )
    return tuple(compared)


def _middle(of: Summary | Reference, metric: str | None) -> float:
    """Return a row's rate, or the mean of its metric."""
    return of.solved / of.judged if metric is None else of.metrics[metric].mean or 0.0


def _reference(source: str, of: Summary) -> Reference:
    return Reference(source=source, ended=of.ended, metrics=of.metrics, complete=of.complete, **_success(of, of.judged))


def _published(of: Published, beside: Summary) -> Reference:
    """Return a published cell's numbers, with those metrics of a row that were published."""
    metrics = {
        name: MetricSummary(
            metric=summary.metric,
            mean=getattr(of, f"{name}_mean", None),
            mean_interval=getattr(of, f"{name}_interval", None),
        )
        for name, summary in beside.metrics.items()
    }
    return Reference(source=of.table, ended=of.seeds, metrics=metrics, **_success(of, of.seeds))


def _success(of: Summary | Published, judged: int) -> dict[str, Any]:
    if not judged:
        return {}
    return {
        "solved": of.solved,
        "judged": judged,
        "success_rate": of.solved / judged,
        "success_rate_interval": statistics.wilson(of.solved, judged),
        "solved_at_median": of.solved_at_median,
        "solved_at_mean": of.solved_at_mean,
        "solved_at_interval": of.solved_at_interval,
    }
