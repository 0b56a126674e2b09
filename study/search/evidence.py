"""What is known of candidates: their results, by the first of their seeds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.aggregate import CellSummary, aggregate, rows_by
from study.records import Cell
from study.search.objectives import Value, value_of


class Evidence:
    """Results of a search's trials.

    Args:
        results: columns of `study.table.RESULT_SCHEMA`, one row a trial; of other trials, too.
    """

    def __init__(self, results: pa.Table) -> None:
        self._results = results
        ids = results["cell_id"].combine_chunks().dictionary_encode()
        rows = rows_by(np.asarray(ids.indices), len(ids.dictionary))
        self._rows = dict(zip(ids.dictionary.to_pylist(), rows, strict=True))
        self._found: dict[tuple[str, tuple[int, ...]], CellSummary | None] = {}

    def summary(self, cell: Cell, seeds: Collection[int]) -> CellSummary | None:
        """Summarise a cell's trials of some seeds; None while one has no result, not even that it failed."""
        asked = (cell.id, tuple(seeds))
        if asked not in self._found:
            self._found[asked] = self._summarised(cell, seeds)
        return self._found[asked]

    def _summarised(self, cell: Cell, seeds: Collection[int]) -> CellSummary | None:
        rows = self._results.take(pa.array(self._rows.get(cell.id, []), pa.int64()))
        table = rows.filter(pc.is_in(rows["seed"], pa.array(list(seeds), pa.int64())))
        if table.num_rows < len(seeds):
            return None
        return aggregate(table, planned={cell: len(seeds)})[0]

    def value(self, cell: Cell, seeds: Sequence[int], names: Sequence[str]) -> Value | None:
        """Give a candidate's values by some seeds; None while one is pending."""
        summary = self.summary(cell, seeds)
        return None if summary is None else value_of(summary, names)
