"""A report's rows compared with the published cells that they repeat, or with those of another study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from study import statistics, words
from study.analysis import rows as result_rows
from study.analysis.aggregate import CellSummary
from study.analysis.published import SOURCE, Published, choose
from study.analysis.questions import varying
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.errors import InputError
from study.records import Cell, Interval, names_of

LEVEL = 0.05
"""Chance of any false 'differs' in one comparison."""

PUBLISHED = "published"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The numbers that a row is compared with. None means that there is no such number.

    Args:
        source: the published table, or the study or file.
        solved: the number of trials that solved the task.
        finished: the number of trials that finished.
        success_rate: solved / finished.
        success_rate_interval: Wilson, 95%.
        solved_at_median: iterations; of the solved trials, as are the next four.
        solved_at_mean: iterations.
        solved_at_interval: of the mean, 95%.
        sparsity_error_mean: of the solved trials.
        sparsity_error_interval: of the mean, 95%.
        complete: whether none of its trials is failed or pending.
    """

    source: str
    solved: int
    finished: int
    success_rate: float
    success_rate_interval: Interval
    solved_at_median: float | None = None
    solved_at_mean: float | None = None
    solved_at_interval: Interval | None = None
    sparsity_error_mean: float | None = None
    sparsity_error_interval: Interval | None = None
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A row compared with another.

    Args:
        row: the index of the row in the report.
        summary: the results of its trials.
        beside: the numbers of the other row.
        difference: of the success rates, this row's minus the other's.
        difference_interval: Newcombe, 95%.
        p_value: Fisher's exact test of equal success rates, two-sided.
        p_adjusted: `p_value` after Holm's correction over all rows compared.
        verdict: ``differs`` if `p_adjusted` is below `LEVEL`, else ``agrees``: no difference was detected.
        log_rank_p: of the log-rank test of equal times to success, after Holm's correction; None where the times of
            either aren't known.
    """

    row: int
    summary: Summary
    beside: Reference
    difference: float
    difference_interval: Interval
    p_value: float
    p_adjusted: float
    verdict: str
    log_rank_p: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """A report's rows compared with others.

    Args:
        name: ``published``, or the name of the study or file.
        source: where the other rows come from, for people to read.
        comparisons: one for each row that has a counterpart; may be empty.
        notes: sentences that the reader must know.
    """

    name: str
    source: str
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_published(self) -> bool:
        """Whether the other rows are the published cells."""
        return self.name == PUBLISHED


def with_published(summaries: Sequence[CellSummary]) -> Comparisons:
    """Compare each cell that repeats a published cell and has a finished trial with that published cell.

    Where several published cells have the same protocol, a study that sweeps the hidden size is compared with the
    published sweeps (the NMU with the ablation's, of 50 seeds), and any other study with the published seeds.
    """
    cells = [summary.cell for summary in summaries]
    pairs = [
        (row, summary, _reference(published_cell.table, published_cell, published_cell.seeds))
        for row, summary in enumerate(summaries)
        if summary.finished and (published_cell := choose(summary.cell, cells)) is not None
    ]
    return Comparisons(name=PUBLISHED, source=SOURCE, comparisons=_compare(pairs))


def with_study(summaries: Sequence[CellSummary], others: Sequence[CellSummary], name: str) -> Comparisons:
    """Compare each cell with the cell of another study that has equal values in all that either study sweeps.

    Raises:
        InputError: if no cell of the other study has a counterpart here, or one has several.
    """
    cells, their_cells = [s.cell for s in summaries], [s.cell for s in others]
    swept = dict.fromkeys([*varying(cells), *varying(their_cells)])
    same = {cell.id for cell in cells} & {cell.id for cell in their_cells}
    keys = names_of([*cells, *their_cells]) if same else list(dict.fromkeys(["model", *swept]))
    here, there = (_by(group, keys) for group in (summaries, others))
    notes = [] if same else _differences(cells, their_cells, keys, name)
    return _with_rows(here, there, name, notes)


def _differences(cells: Sequence[Cell], their_cells: Sequence[Cell], keys: Sequence[str], name: str) -> list[str]:
    """Describe the values of each hyperparameter that isn't matched, and in which the studies differ."""
    notes = []
    for key in names_of([*cells, *their_cells]):
        here, there = (dict.fromkeys(cell.value(key) for cell in some) for some in (cells, their_cells))
        if key not in keys and set(here) != set(there):
            values = [", ".join(words.show_value(key, value) for value in some) for some in (here, there)]
            notes.append(f"{words.title(key)}: {values[0]} here, {values[1]} in {name}")
    return notes


def with_groups(rows: ResultRows, others: ResultRows, name: str) -> Comparisons:
    """Compare each group with the group of another file or study that has equal values in the same columns.

    Raises:
        InputError: if no group has a counterpart.
    """
    return _with_rows(rows, others, name, [])


def _by(summaries: Sequence[CellSummary], keys: Sequence[str]) -> ResultRows:
    """Make rows of cells that are identified by some of their fields."""
    values = tuple(tuple(s.cell.value(key) for key in keys) for s in summaries)
    return replace(result_rows.cells(summaries, {}), keys=tuple(keys), values=values)


def _with_rows(rows: ResultRows, others: ResultRows, name: str, notes: Sequence[str]) -> Comparisons:
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
    pairs = [(row, s, other) for row, s, other in matched if s.finished and other.finished]
    alone = len(rows.summaries) - len(pairs)
    missing = (
        [f"{alone} of {len(rows.summaries)} {rows.noun}s have nothing finished to be compared with"] if alone else []
    )
    compared = _compare(
        [(row, s, _reference(name, other, other.finished, complete=other.complete)) for row, s, other in pairs]
    )
    p_values = [_log_rank(s, other) for _, s, other in pairs]
    adjusted = iter(statistics.holm([p for p in p_values if p is not None]))
    timed = tuple(
        replace(c, log_rank_p=None if p is None else next(adjusted)) for c, p in zip(compared, p_values, strict=True)
    )
    return Comparisons(name=name, source=name, comparisons=timed, notes=(*notes, *missing))


def _log_rank(here: Summary, there: Summary) -> float | None:
    samples = [s.times.known("iterations") if s.times else None for s in (here, there)]
    if any(sample is None for sample in samples):
        return None
    test = statistics.log_rank([sample for sample in samples if sample is not None])
    return None if test is None else test.p_value


def _compare(pairs: Sequence[tuple[int, Summary, Reference]]) -> tuple[Comparison, ...]:
    p_values = [statistics.fisher_exact(s.solved, s.finished, b.solved, b.finished) for _, s, b in pairs]
    adjusted = statistics.holm(p_values)
    return tuple(
        Comparison(
            row=row,
            summary=summary,
            beside=beside,
            difference=summary.solved / summary.finished - beside.success_rate,
            difference_interval=statistics.newcombe(summary.solved, summary.finished, beside.solved, beside.finished),
            p_value=p_value,
            p_adjusted=p_adjusted,
            verdict="differs" if p_adjusted < LEVEL else "agrees",
        )
        for (row, summary, beside), p_value, p_adjusted in zip(pairs, p_values, adjusted, strict=True)
    )


def _reference(source: str, of: Summary | Published, finished: int, *, complete: bool = True) -> Reference:
    return Reference(
        source=source,
        solved=of.solved,
        finished=finished,
        success_rate=of.solved / finished,
        success_rate_interval=statistics.wilson(of.solved, finished),
        solved_at_median=of.solved_at_median,
        solved_at_mean=of.solved_at_mean,
        solved_at_interval=of.solved_at_interval,
        sparsity_error_mean=of.sparsity_error_mean,
        sparsity_error_interval=of.sparsity_error_interval,
        complete=complete,
    )
