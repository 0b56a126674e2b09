"""CSV and Parquet files of outcomes, read as they are."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from study.errors import InputError
from study.outcomes.columns import MEASURED, NUMBERS, from_mlflow, own_name
from study.outcomes.text_cells import MARKED, from_text
from study.store import formats
from study.store.files import UNREADABLE, UnbelievableError, is_ours, version_of

SUFFIXES = (".csv", ".parquet")
_KIND = "tags.study.kind"
_SHOWN = 10


@dataclass(frozen=True)
class Source:
    """Rows of one file or study, unchecked.

    Args:
        name: of the file or study, for messages.
        table: the columns as they are; what a CSV file holds is text.
        rows: where each row stands in the file, 1 right below the header.
        has_pending: whether an outcome may be null: a trial that is planned and not done.
    """

    name: str
    table: pa.Table
    rows: npt.NDArray[np.int64]
    has_pending: bool = False


def read_source(path: Path, *, also: Collection[str] = ()) -> Source:
    """Read a file of outcomes.

    Args:
        path: ending in one of `SUFFIXES`.
        also: columns to read although they usually tell no groups apart.

    Raises:
        InputError: if it isn't there, can't be read, has no rows, or a newer package wrote it.
    """
    _check_there(path)
    try:
        table = _read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path, also)
    except UnbelievableError as error:
        raise InputError(f"{path}: {error}") from error
    except UNREADABLE as error:
        kind = path.suffix.lower().removeprefix(".")
        raise InputError(f"{path} can't be read as a {kind} file: {_sentence(error)}") from error
    if not table.num_rows:
        raise InputError(f"{path} has no rows: one row a trial is needed below the header")
    return _renamed(Source(str(path), table, np.arange(1, table.num_rows + 1)))


def _check_there(path: Path) -> None:
    if path.is_file():
        if not path.stat().st_size:
            raise InputError(f"{path} is empty: a header and one row a trial are needed")
        return
    beside = [p.name for p in path.parent.glob("*") if p.suffix.lower() in SUFFIXES]
    near = difflib.get_close_matches(path.name, sorted(beside), n=3, cutoff=0.5)
    hint = f"; there is {', '.join(near)}" if near else ""
    raise InputError(f"there is no file {path}{hint}")


def _read_csv(path: Path) -> pa.Table:
    """Read every column as text, those of few different values as dictionaries."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    _check_names(path, header)
    plain = {own_name(name, header) for name in NUMBERS} | MEASURED
    text = pa.dictionary(pa.int32(), pa.string())
    odd: list[pacsv.InvalidRow] = []

    def note(row: pacsv.InvalidRow) -> str:
        odd.append(row)
        return "skip"

    table = pacsv.read_csv(
        path,
        read_options=pacsv.ReadOptions(use_threads=False),  # else rows have no numbers
        parse_options=pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        convert_options=pacsv.ConvertOptions(
            column_types={name: pa.string() if name in plain else text for name in header},
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    if odd:
        _refuse(path, odd)
    unmarked = [_unmarked(column) for column in table.columns]
    return pa.table(unmarked, names=[from_text(name.strip()) for name in table.column_names])


def _unmarked(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take off the marks of cells that begin like a formula."""
    if pa.types.is_dictionary(column.type):
        marked = any(pc.any(pc.match_substring_regex(c.dictionary, MARKED)).as_py() for c in column.chunks)
        # Decoded, for what it stands for may be there already.
        return _unmarked(column.cast(pa.string())).dictionary_encode() if marked else column
    return pc.replace_substring_regex(column, MARKED, r"\1")


def _refuse(path: Path, odd: Sequence[pacsv.InvalidRow]) -> None:
    lines = [
        f"  row {'?' if row.number is None else row.number - 1}: {row.actual_columns} values in "
        f"{row.expected_columns} columns: {row.text[:80]}"
        for row in odd[:_SHOWN]
    ]
    more = [f"  ... and {len(odd) - _SHOWN:,} more"] if len(odd) > _SHOWN else []
    head = f"{path}: {len(odd):,} row{'s' if len(odd) > 1 else ''} with too few or too many values"
    raise InputError("\n".join([f"{head}, nothing was written", *lines, *more]))


def _read_parquet(path: Path, also: Collection[str]) -> pa.Table:
    """Read the columns that are needed, of results of ours as today's version names them."""
    file = pq.ParquetFile(path)
    old = _results_of(path, file)
    schema = file.schema_arrow if old is None else old.schema
    names = schema.names
    _check_names(path, names)
    needed = {own_name(name, names) for name in (*NUMBERS, "seed", "outcome", "solved", "stopped_early")}
    wanted = [name for name in names if name in needed or name in also or name not in MEASURED]
    if old is not None:
        return old.select(wanted)
    # as dictionaries, for a text stands in a thousand rows: half of the time and memory
    text = [name for name in wanted if pa.types.is_string(schema.field(name).type)]
    file = pq.ParquetFile(path, read_dictionary=text)
    return file.read(columns=wanted).replace_schema_metadata(None)


def _results_of(path: Path, file: pq.ParquetFile) -> pa.Table | None:
    """Read results that an earlier version stored, as a table of today's; None if it is anything else."""
    metadata = file.metadata.metadata
    if not is_ours(metadata):
        return None
    version = version_of(path, metadata)
    if version == formats.SCHEMA_VERSION or not file.schema_arrow.equals(
        formats.FORMATS[version].schemas["results"]
    ):
        return None
    return formats.upgraded("results", file.read().replace_schema_metadata(None), version, path)


def _check_names(path: Path, names: Sequence[str]) -> None:
    stripped = [name.strip() for name in names]
    twice = sorted({name for name in stripped if stripped.count(name) > 1})
    if twice:
        raise InputError(f"{path} has more than one column {', '.join(map(repr, twice))}: names must differ")


def _renamed(source: Source) -> Source:
    """Give an export of MLflow's runs the names of ours, and leave out the run that stands for the study."""
    ours = from_mlflow(source.table.column_names)
    if not ours:
        return source
    table, rows = source.table, source.rows
    if _KIND in table.column_names:
        kept = np.asarray(pc.fill_null(pc.equal(pc.cast(table[_KIND], pa.string()), "trial"), False))
        table, rows = table.filter(pa.array(kept)), rows[kept]
    table = table.select(list(ours)).rename_columns(list(ours.values()))
    for name in ("solved_at_iteration", "sparsity_error"):  # a metric that no run has is no column there
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table), pa.float64()))
    return Source(source.name, table, rows)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
