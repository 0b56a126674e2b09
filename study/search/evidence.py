"""The results of candidates, by the first of their seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.analysis.aggregate import rows_by
from study.analysis.search import Value
from study.arrow import with_metrics
from study.records import Cell, Outcome
from study.search.objectives import Floats, Sample, value_of
from tasks.declarations import Metric


class Evidence:
    """The results of a search's trials.

    Args:
        results: as `study.arrow.results_table` makes them, one row a trial; may have rows of other trials, too.
        metrics: the metrics of these trials, by name.
    """

    def __init__(self, results: pa.Table, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics
        self._results = with_metrics(results, metrics)
        ids = results["cell_id"].combine_chunks().dictionary_encode()
        rows = rows_by(np.asarray(ids.indices), len(ids.dictionary))
        self._rows = dict(zip(ids.dictionary.to_pylist(), rows, strict=True))
        self._samples: dict[tuple[str, tuple[int, ...]], Sample | None] = {}

    def value(self, cell: Cell, seeds: Sequence[int], names: Sequence[str], most_iterations: int) -> Value | None:
        """Compute a candidate's values from its trials with some seeds; None while one of them is pending.

        Args:
            cell: the candidate.
            seeds: the seeds.
            names: the names of the objectives.
            most_iterations: the most iterations that any cell of the search has.
        """
        key = (cell.id, tuple(seeds))
        if key not in self._samples:
            self._samples[key] = self._sample(cell, seeds)
        sample = self._samples[key]
        return None if sample is None else value_of(sample, names, self._metrics, most_iterations)

    def _sample(self, cell: Cell, seeds: Sequence[int]) -> Sample | None:
        """Collect what values depend on."""
        rows = self._results.take(pa.array(self._rows.get(cell.id, []), pa.int64()))
        table = rows.filter(pc.is_in(rows["seed"], pa.array(list(seeds), pa.int64())))
        if table.num_rows < len(seeds):
            return None
        outcomes = table["outcome"].to_pylist()
        solved, ended = (
            table.filter(pa.array([outcome in some for outcome in outcomes], pa.bool_()))
            for some in ((Outcome.SOLVED,), (Outcome.SOLVED, Outcome.UNSOLVED, Outcome.FINISHED))
        )
        failed = outcomes.count(Outcome.FAILED)
        return Sample(
            finished=len(outcomes) - failed,
            solved_at=_floats(solved["solved_at_iteration"]),
            metrics={
                name: _floats((solved if metric.of == "solved" else ended)[name])
                for name, metric in self._metrics.items()
            },
            failed=failed,
        )


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(pc.fill_null(pc.cast(column, pa.float64()), np.nan), dtype=np.float64)
