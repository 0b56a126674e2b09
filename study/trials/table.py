"""Trials as columns: outcomes, times to success and metrics.

| outcome | success rate | time to success | metric of all trials | metric of solved trials | rank by a metric |
| --- | --- | --- | --- | --- | --- |
| solved | a success | observed at `solved_at` | its number | its number | by its number |
| unsolved | no success | censored at its last iteration | its number | left out | by its number |
| diverged | no success | censored at the planned iterations | left out | left out | worse than any number |
| finished | left out | left out | its number | left out | by its number |
| stopped | its row has none | its row has none | its row has none | its row has none | left out |
| failed | left out | left out | left out | left out | worse than any number |
| pending | left out | left out | left out | left out | left out |

A trial that ended without a finite value of a metric counts as diverged for that metric. So does an unsolved trial, in
ranks by a metric of solved trials. A trial that was stopped early without success can't be solved any more, so its time
is also censored at the planned iterations. If the table doesn't state these, they are those of its longest trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.interface.declarations import Metric
from study.records import Outcome, sources_of
from study.trials.grouping import group_codes, rows_by

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

OUTCOME_CODES: Mapping[str, int] = {str(outcome): code for code, outcome in enumerate(Outcome)}
PENDING = len(OUTCOME_CODES)
"""The code of a trial without a result."""

JUDGED = (Outcome.SOLVED, Outcome.UNSOLVED, Outcome.DIVERGED)
"""Outcomes in the denominator of a success rate."""
ENDED = (*JUDGED, Outcome.FINISHED)
"""Outcomes of trials that ended with a result."""
MEASURED = (Outcome.SOLVED, Outcome.UNSOLVED, Outcome.FINISHED)
"""Outcomes of trials that have values of metrics."""

COLUMNS = ("outcome", "solved_at_iteration", "training_s", "trained_iterations", "stopped_early")
"""Required columns of a table of trials, besides its grouping columns."""


@dataclass(frozen=True, eq=False)
class TrialTable:
    """Results of trials, one row a trial, with columns read on first use.

    Each array has one more element than the table has rows. The last element stands for a trial without a result, so
    that row -1 is a pending trial. The first use of a column raises ValueError if an outcome isn't in `Outcome`, or a
    text isn't a number.

    Args:
        results: a table from `study.arrow.results_table`, or with the columns of `study.outcomes.OUTCOME_SCHEMA`, in
            any order; a null outcome is a pending trial.
        metrics: the declarations of the metrics, by name.
        by: the grouping columns of a report.

    Example:
        >>> from study.arrow import results_table
        >>> TrialTable(results_table([])).cell("none").outcomes.size
        0
    """

    results: pa.Table
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    by: tuple[str, ...] = ("cell_id",)

    def group(self, values: tuple[Any, ...] | None) -> Trials:
        """Return the trials with these values in the columns `by`; empty if there are none, or for None.

        Raises:
            KeyError: if the table lacks one of these columns.
        """
        rows = None if values is None else self.rows_of.get(values)
        return Trials(self, np.empty(0, np.int64) if rows is None else rows)

    def cell(self, cell_id: str) -> Trials:
        """Return the trials of a cell; the table must be grouped by cells."""
        return self.group((cell_id,))

    def select(self, rows: Ints) -> Trials:
        """Return the trials in the given rows; -1 is a pending trial."""
        return Trials(self, rows)

    @cached_property
    def rows_of(self) -> dict[tuple[Any, ...], Ints]:
        """The rows of each group, by its values in the columns `by`, in order of first occurrence.

        Raises:
            KeyError: if the table lacks one of these columns.
        """
        if not self.by:
            return {(): np.arange(self.results.num_rows)} if self.results.num_rows else {}
        codes = group_codes(self.results, self.by)
        first = pa.array(np.unique(codes, return_index=True)[1])
        values = zip(*(self.results[name].take(first).to_pylist() for name in self.by), strict=True)
        return dict(zip(values, rows_by(codes, len(first)), strict=True))

    @cached_property
    def outcomes(self) -> npt.NDArray[np.int8]:
        """The code of each trial's outcome: its index in `Outcome`, or `PENDING`.

        Raises:
            ValueError: if an outcome isn't in `Outcome`.
        """
        column = self.results["outcome"].combine_chunks().dictionary_encode()
        names = column.dictionary.to_pylist()
        if foreign := [name for name in names if name is not None and name not in OUTCOME_CODES]:
            raise ValueError(f"an outcome must be one of {', '.join(Outcome)}, but got {foreign[0]!r}")
        codes = np.array([*(PENDING if name is None else OUTCOME_CODES[name] for name in names), PENDING], np.int8)
        return np.append(codes[np.asarray(pc.fill_null(column.indices, len(names)))], np.int8(PENDING))

    @cached_property
    def seeds(self) -> Ints:
        """The seed of each trial; negative if it encodes the seeds of several sources (`study.records.Sources`).

        Without a column of seeds, each trial has a different seed.
        """
        if "seed" not in self.results.column_names:
            return np.arange(self.results.num_rows + 1)
        return np.append(np.asarray(self.results["seed"]).astype(np.int64), 0)

    @cached_property
    def solved_at(self) -> Floats:
        """Each trial's iteration of success; NaN if unsolved or unknown."""
        return np.where(self._are(Outcome.SOLVED), self.numbers("solved_at_iteration"), np.nan)

    @cached_property
    def training_s(self) -> Floats:
        """The seconds of training of each trial; NaN if unknown."""
        return self.numbers("training_s")

    @cached_property
    def trained_iterations(self) -> Floats:
        """The last iteration of each trial; NaN if unknown."""
        return self.numbers("trained_iterations")

    @cached_property
    def planned_iterations(self) -> Floats:
        """The planned iterations of each trial's cell; NaN if the table doesn't state them as a number."""
        kind = self.results.schema.field("iterations").type if "iterations" in self.results.column_names else None
        is_number = kind is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
        return self.numbers("iterations") if is_number else np.full(self.results.num_rows + 1, np.nan)

    @cached_property
    def stopped_early(self) -> Flags:
        """True for each trial that was stopped early; False if unknown.

        Raises:
            ValueError: if a text isn't a Boolean.
        """
        column = pc.fill_null(pc.cast(self.results["stopped_early"], pa.bool_()), False)
        return np.append(np.asarray(column), False)

    @cached_property
    def is_lost(self) -> Flags:
        """True for each trial that can't be solved any more: diverged, or stopped early without success."""
        return self._are(Outcome.DIVERGED) | (self.stopped_early & self._are(Outcome.UNSOLVED))

    @cached_property
    def last_iteration(self) -> Floats:
        """Each trial's last iteration, or the planned one if it is lost or its last is unknown; NaN if unknown.

        An unsolved trial is censored there. For a lost trial without planned iterations, those of the table's longest
        trial count.
        """
        trained, planned = self.trained_iterations, self.planned_iterations
        longest = np.max(trained, initial=-np.inf, where=np.isfinite(trained))
        planned_or_longest = np.where(np.isfinite(planned), planned, longest)
        trained_or_planned = np.where(np.isfinite(trained), trained, planned)
        return np.where(self.is_lost & np.isfinite(planned_or_longest), planned_or_longest, trained_or_planned)

    @cached_property
    def success_iteration(self) -> Floats:
        """Each trial's iteration of success or censoring; NaN if unknown."""
        return np.where(self._are(Outcome.SOLVED), self.solved_at, self.last_iteration)

    @cached_property
    def success_s(self) -> Floats:
        """Each trial's seconds of training until `success_iteration`, in proportion to its iterations.

        They exceed `training_s` if a lost trial is censored after its last iteration. NaN if unknown, or if the last
        iteration is 0.
        """
        # Every trial of a pack takes part in every iteration, so seconds are proportional to iterations.
        until, trained = self.success_iteration, self.trained_iterations
        share: Floats = np.divide(until, trained, out=np.full(until.size, np.nan), where=trained > 0)
        return self.training_s * share

    def values(self, metric: str) -> Floats:
        """Return each trial's value of a metric; NaN without a finite one, or if its outcome doesn't count for it.

        Raises:
            ValueError: if a text isn't a number, an integer is beyond ±2**53, or an outcome isn't in `Outcome`.
        """
        if metric not in self._values:
            declared = self.metrics.get(metric)
            outcomes = (Outcome.SOLVED,) if declared is not None and declared.of == "solved" else MEASURED
            numbers = self.numbers(metric)
            self._values[metric] = np.where(self._are(*outcomes) & np.isfinite(numbers), numbers, np.nan)
        values: Floats = self._values[metric]
        return values

    def numbers(self, column: str) -> Floats:
        """Return each trial's number in a column, regardless of its outcome; NaN if number or column are missing.

        Raises:
            ValueError: if a text isn't a number, or an integer is beyond ±2**53.
        """
        if column not in self.results.column_names:
            return np.full(self.results.num_rows + 1, np.nan)
        values = pc.fill_null(pc.cast(self.results[column], pa.float64()), np.nan)
        return np.append(np.asarray(values), np.nan)

    def values_so_far(self, metric: str) -> Floats:
        """Return each trial's value of a metric, including last values of pruned trials; NaN if it has none.

        A pruned trial's value may be infinite, and also counts for a metric of solved trials.

        Raises:
            ValueError: as `values` raises.
        """
        stopped = self._are(Outcome.STOPPED)
        return np.where(stopped, self.numbers(metric), self.values(metric)) if stopped.any() else self.values(metric)

    @cached_property
    def _values(self) -> dict[str, Floats]:
        return {}

    def _are(self, *outcomes: Outcome) -> Flags:
        """Return a mask of all trials with one of the outcomes."""
        return np.isin(self.outcomes, [OUTCOME_CODES[outcome] for outcome in outcomes])


@dataclass(frozen=True, eq=False)
class Trials:
    """A selection of a table's trials.

    Args:
        table: the table.
        rows: the rows of the trials; -1 for a trial without a result.
    """

    table: TrialTable
    rows: Ints

    def select(self, mask: Flags) -> Trials:
        """Return the trials selected by a Boolean mask."""
        return Trials(self.table, self.rows[mask])

    def first(self, count: int | None) -> Trials:
        """Return the first `count` trials; None for all."""
        return Trials(self.table, self.rows[:count])

    def of_seeds(self, seeds: Sequence[int] | Ints) -> Trials:
        """Return the trial of each seed, in order: the first of several, or a pending trial if there is none."""
        wanted, own = np.asarray(seeds, np.int64), self.seeds
        if not own.size:
            return Trials(self.table, np.full(wanted.size, -1))
        order = np.argsort(own, kind="stable")
        places = np.minimum(np.searchsorted(own[order], wanted), own.size - 1)
        is_there = own[order][places] == wanted
        return Trials(self.table, np.where(is_there, self.rows[order][places], -1))

    @property
    def seeds(self) -> Ints:
        """The seeds of the trials."""
        return self.table.seeds[self.rows]

    @property
    def repeat_seeds(self) -> bool:
        """True if several trials have the same seed."""
        return np.unique(self.seeds).size < self.rows.size

    @property
    def outcomes(self) -> npt.NDArray[np.int8]:
        """The codes of the outcomes."""
        return self.table.outcomes[self.rows]

    def are(self, *outcomes: Outcome) -> Flags:
        """Return a mask of the trials with one of the outcomes."""
        return np.isin(self.outcomes, [OUTCOME_CODES[outcome] for outcome in outcomes])

    def count(self, *outcomes: Outcome) -> int:
        """Count the trials with one of the outcomes."""
        return int(np.count_nonzero(self.are(*outcomes)))

    @property
    def is_solved(self) -> Flags:
        """True for each solved trial."""
        return self.are(Outcome.SOLVED)

    @property
    def is_judged(self) -> Flags:
        """True for each trial in the denominator of a success rate."""
        return self.are(*JUDGED)

    @property
    def is_failed(self) -> Flags:
        """True for each trial that failed by an error."""
        return self.are(Outcome.FAILED)

    @property
    def is_pending(self) -> Flags:
        """True for each trial without a result."""
        return np.asarray(self.outcomes == PENDING)

    @property
    def successes(self) -> Floats:
        """1 for a solved trial, 0 for any other judged trial, NaN otherwise."""
        return np.where(self.is_judged, self.is_solved, np.nan)

    @property
    def solved_at(self) -> Floats:
        """The trials' iterations of success; NaN if unsolved or unknown."""
        return self.table.solved_at[self.rows]

    @property
    def training_s(self) -> Floats:
        """The seconds of training of the trials; NaN if unknown."""
        return self.table.training_s[self.rows]

    @property
    def times(self) -> tuple[Floats, Flags]:
        """The trials' iterations of success or censoring, NaN if unknown; and True for each solved trial."""
        return self.table.success_iteration[self.rows], self.is_solved

    def values(self, metric: str) -> Floats:
        """Return the trials' values of a metric; NaN if a trial has none."""
        return self.table.values(metric)[self.rows]

    def values_so_far(self, metric: str) -> Floats:
        """Return the trials' values of a metric, including last values of pruned trials; NaN if a trial has none.

        A pruned trial's value may be infinite, and counts for a metric of solved trials, too.

        Raises:
            ValueError: as `TrialTable.values` raises.
        """
        return self.table.values_so_far(metric)[self.rows]

    def losses(self, metric: str) -> Floats:
        """Return the trials' losses by a metric, lower is better: infinity without a value, NaN while pending.

        Raises:
            KeyError: if the table doesn't declare the metric.
            ValueError: as `TrialTable.values` raises.
        """
        declared, values = self.table.metrics[metric], self.values(metric)
        losses = -values if declared.higher_is_better else values
        return np.where(self.is_pending, np.nan, np.where(np.isnan(losses), np.inf, losses))


@dataclass(frozen=True, eq=False)
class SourceArray:
    """Values of trials of combined seeds, with an axis for each source of randomness.

    Args:
        sources: the names of the axes: init and data, or seed if these are always equal; and evaluation.
        values: the values; NaN if a trial is missing or has none. If data seeds are nested in init seeds, each row
            holds the data seeds of its init seed.
        is_nested: whether data seeds are nested in init seeds; False with an axis for evaluation.
    """

    sources: tuple[str, ...]
    values: Floats
    is_nested: bool = False


def source_array(seeds: Ints, values: Floats) -> SourceArray | None:
    """Arrange values of trials in an array with an axis for each source of randomness.

    Args:
        seeds: the trials' seeds, shape [trials]; negative seeds encode those of several sources. Of equal ones, the
            last counts.
        values: shape [trials]; NaN if a trial has none.

    Returns:
        The array; None if no seeds are combined.

    Raises:
        ValueError: if a negative seed encodes no seeds of sources (`study.records.sources_of`).

    Example:
        >>> from study.records import Sources
        >>> seeds = np.array([Sources(init, data).seed for init in (0, 1) for data in (0, 1, 2)])
        >>> array = source_array(seeds, np.arange(6.0))
        >>> array.sources, array.values.tolist(), array.is_nested
        (('init', 'data'), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], False)
    """
    if not (seeds < 0).any():
        return None
    decoded = [sources_of(int(seed)) for seed in seeds]
    labels = {"init": [sources.init for sources in decoded], "data": [sources.data for sources in decoded]}
    if labels["init"] == labels["data"]:
        labels = {"seed": labels["init"]}
    if any(sources.evaluation is not None for sources in decoded):
        labels["evaluation"] = [-1 if sources.evaluation is None else sources.evaluation for sources in decoded]
    places = [np.unique(column, return_inverse=True)[1] for column in labels.values()]
    is_nested = list(labels) == ["init", "data"] and _is_nested(*places)
    if is_nested:
        places[1] = _within(*places)
    array = np.full([int(column.max()) + 1 for column in places], np.nan)
    array[tuple(places)] = values
    return SourceArray(tuple(labels), array, is_nested)


def _is_nested(outer: Ints, inner: Ints) -> bool:
    """Return True if each inner label has one outer label, and an outer label has several inner labels."""
    pairs = np.unique(np.stack([outer, inner]), axis=1)
    count = np.unique(inner).size
    return bool(pairs.shape[1] == count > np.unique(outer).size)


def _within(outer: Ints, inner: Ints) -> Ints:
    """Enumerate the inner labels of each outer label from 0."""
    places = np.zeros(outer.size, np.int64)
    for label in np.unique(outer):
        places[outer == label] = np.unique(inner[outer == label], return_inverse=True)[1]
    return places
