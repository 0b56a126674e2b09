"""Results of candidates by their first seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from study.interface.declarations import Metric
from study.records import Cell, Outcome
from study.search.objectives import Sample, value_of
from study.summaries.search import Value
from study.trials.table import MEASURED, TrialTable


class Evidence:
    """The results of a search's trials.

    Args:
        table: trials by cells, with the declarations of their metrics; it may have other trials, too.
    """

    def __init__(self, table: TrialTable) -> None:
        self._table = table
        self._samples: dict[tuple[str, tuple[int, ...]], Sample | None] = {}

    def value(self, cell: Cell, seeds: Sequence[int], names: Sequence[str], most_iterations: int) -> Value | None:
        """Compute a candidate's values from its trials with given seeds.

        Args:
            cell: the candidate's cell.
            seeds: the seeds whose trials count; one without a trial is pending.
            names: the names of the objectives.
            most_iterations: the most iterations of any cell of the search.

        Returns:
            One value for each objective; None while a trial is pending.

        Raises:
            KeyError: if a name is neither an objective of success nor a metric of the table.
        """
        key = (cell.id, tuple(seeds))
        if key not in self._samples:
            self._samples[key] = self._sample(cell, seeds)
        sample = self._samples[key]
        return None if sample is None else value_of(sample, names, self._table.metrics, most_iterations)

    def _sample(self, cell: Cell, seeds: Sequence[int]) -> Sample | None:
        """Collect the sample that values are computed from; None while a trial is pending."""
        trials = self._table.cell(cell.id).of_seeds(seeds)
        if trials.is_pending.any():
            return None
        # A trial that was stopped early counts as unsolved, with its best number so far. This is conservative, because
        # it might have become better.
        solved, measured = trials.select(trials.is_solved), trials.select(trials.are(*MEASURED, Outcome.STOPPED))
        metrics: Mapping[str, Metric] = self._table.metrics
        return Sample(
            finished=trials.rows.size - trials.count(Outcome.FAILED),
            solved_at=solved.solved_at,
            metrics={
                name: (solved if metric.of == "solved" else measured).values_so_far(name)
                for name, metric in metrics.items()
            },
            failed=trials.count(Outcome.FAILED),
        )
