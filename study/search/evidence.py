"""What is known about candidates: their results, by the first of their seeds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.analysis.aggregate import rows_by
from study.analysis.search import Value
from study.records import Cell, Outcome
from study.search.objectives import Floats, Sample, value_of


class Evidence:
    """Results of a search's trials.

    Args:
        results: columns of `study.arrow.RESULT_SCHEMA`, one row a trial; of other trials, too.
    """

    def __init__(self, results: pa.Table) -> None:
        self._results = results
        ids = results["cell_id"].combine_chunks().dictionary_encode()
        rows = rows_by(np.asarray(ids.indices), len(ids.dictionary))
        self._rows = dict(zip(ids.dictionary.to_pylist(), rows, strict=True))
        self._samples: dict[tuple[str, tuple[int, ...]], Sample | None] = {}

    def value(self, cell: Cell, seeds: Sequence[int], names: Sequence[str], most_iterations: int) -> Value | None:
        """Compute a candidate's values by some seeds; None while one is pending.

        Args:
            cell: the candidate.
            seeds: by which it is judged.
            names: of objectives.
            most_iterations: of any cell of the search.
        """
        key = (cell.id, tuple(seeds))
        if key not in self._samples:
            table = self._table(cell, seeds)
            self._samples[key] = None if table is None else _sample(table)
        sample = self._samples[key]
        return None if sample is None else value_of(sample, names, most_iterations)

    def _table(self, cell: Cell, seeds: Collection[int]) -> pa.Table | None:
        rows = self._results.take(pa.array(self._rows.get(cell.id, []), pa.int64()))
        table = rows.filter(pc.is_in(rows["seed"], pa.array(list(seeds), pa.int64())))
        return table if table.num_rows >= len(seeds) else None


def _sample(table: pa.Table) -> Sample:
    """Take what values depend on; trials that failed have no result, and no part in them."""
    outcomes = table["outcome"].to_pylist()
    solved = table.filter(pa.array([outcome == Outcome.SOLVED for outcome in outcomes], pa.bool_()))
    return Sample(
        finished=sum(outcome != Outcome.FAILED for outcome in outcomes),
        solved_at=_floats(solved["solved_at_iteration"]),
        sparsity_error=_floats(solved["sparsity_error"]),
    )


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(pc.fill_null(pc.cast(column, pa.float64()), np.nan), dtype=np.float64)
