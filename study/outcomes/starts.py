"""Files of starts: a covariate of each start, and optionally the group that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.comparisons.standardised import Starts
from study.errors import InputError
from study.outcomes.files import read_table
from study.outcomes.gather import infer_type
from study.trials.table import TrialTable


def read_starts(path: Path, covariate: str, by: Sequence[str]) -> Starts:
    """Read the starts of a population, one a row.

    Args:
        path: a CSV, TSV or Parquet file.
        covariate: the column with the covariate of each start.
        by: the columns that distinguish groups; if the file has any of them, each start belongs to a group.

    Raises:
        InputError: as for `read_table`; if the file lacks the covariate, or has a value there that isn't a finite
            number.
        StoreError: if results of an earlier version can't be converted to the current format, which is a bug in this
            package.
    """
    table, _ = read_table(path, [covariate], {covariate, *by})
    if covariate not in table.column_names:
        raise InputError(f"{path}: no column {covariate}; choose from {', '.join(table.column_names)}")
    numbers = infer_type(table[covariate])
    if not (pa.types.is_integer(numbers.type) or pa.types.is_floating(numbers.type)):
        raise InputError(f"{path}: column {covariate} must hold numbers, but holds texts; correct or remove those rows")
    values = np.asarray(pc.fill_null(pc.cast(numbers, pa.float64(), safe=False), np.nan))
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
        raise InputError(f"{path}: row {row}: column {covariate} must hold a finite number; correct or remove the row")
    keys = tuple(name for name in by if name in table.column_names)
    columns = {name: infer_type(table[name]) for name in keys}
    grouped = TrialTable(pa.table({**columns, covariate: numbers}), by=keys)
    return Starts(path.name, {group: values[rows] for group, rows in grouped.rows_of.items()}, keys)
