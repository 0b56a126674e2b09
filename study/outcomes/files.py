"""Reading of text and Parquet files of outcomes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from study.errors import InputError
from study.interface.declarations import Metric
from study.outcomes.columns import NUMBERS, from_mlflow, measured, own_name
from study.outcomes.separated import header_and_separator, with_plain_numbers
from study.outcomes.states import NO_RESULT, State, find_states
from study.outcomes.text_cells import MARKED, from_text
from study.store import formats
from study.store.files import UNREADABLE, UnbelievableError, is_ours, version_of
from study.trials.seed_design import Sizes
from study.words import count_of, join_and

SUFFIXES = (".csv", ".tsv", ".parquet")
_KIND = "tags.study.kind"
_MOST_LISTED = 10


@dataclass(frozen=True)
class Source:
    """Rows of one file or study, unchecked.

    Args:
        name: name of the file or study, for messages.
        table: the unchecked columns; those of a text file are text.
        rows: the position of each row in the file, starting with 1 below the header.
        has_pending: True if an outcome may be null because the trial is planned but not done.
        metrics: the declarations of its metrics, by name; empty for a file.
        failed: True for rows of failed or stopped trials, by a column of states; None without such a column.
        notices: sentences for the reader about decisions made while reading.
        sizes: the kind of its sample size: fixed or adaptive.
    """

    name: str
    table: pa.Table
    rows: npt.NDArray[np.int64]
    has_pending: bool = False
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    failed: npt.NDArray[np.bool_] | None = None
    notices: Sequence[str] = ()
    sizes: Sizes = "fixed"


def read_source(
    path: Path,
    *,
    also: Collection[str] = (),
    metrics: Collection[str] = (),
    state_words: Mapping[str, State] | None = None,
) -> Source:
    """Read a file of outcomes, without runs that haven't ended.

    Args:
        path: a path that ends in one of `SUFFIXES`.
        also: columns to read that usually don't distinguish groups.
        metrics: the metrics to read, if the file has them.
        state_words: user-supplied meanings of words for states.

    Raises:
        InputError: as for `read_table`; if the file has unknown states, or no run that has ended; or if it is an export
            of MLflow without trials.
        StoreError: if results of an earlier version can't be converted to the current format, which is a bug in this
            package.
    """
    table, notices = read_table(path, metrics, {*also, *metrics})
    source = Source(str(path), table, np.arange(1, table.num_rows + 1), notices=notices)
    return _from_mlflow_export(without_states(source, {*also, *metrics}, state_words), metrics)


def without_states(source: Source, others: Collection[str], words: Mapping[str, State] | None = None) -> Source:
    """Return a source without its columns of states and runs that haven't ended, and mark failed and stopped runs.

    The source gets a notice for each. A source without columns of states is unchanged.

    Args:
        source: rows, with or without columns of states.
        others: columns that don't hold states.
        words: user-supplied meanings of words for states.

    Raises:
        InputError: if no run has ended, or the source has unknown states.
    """
    states = find_states(source.table, words, others)
    if states is None:
        return source
    ended = ~states.running
    if not ended.any():
        raise InputError(f"{source.name}: no run has ended: {states.count(State.RUNNING)}")
    texts = (
        f"left out: {states.count(State.RUNNING)}, not ended yet",
        f"failed or stopped: {states.count(*NO_RESULT)}",
    )
    sentences = [text for text, rows in zip(texts, (states.running, states.failed), strict=True) if rows.any()]
    table = source.table.drop_columns(list(states.columns)).filter(pa.array(ended))
    notices = [*source.notices, *sentences]
    return replace(source, table=table, rows=source.rows[ended], failed=states.failed[ended], notices=notices)


def read_table(
    path: Path, plain: Collection[str] = (), also: Collection[str] | None = None
) -> tuple[pa.Table, list[str]]:
    """Read a file without checks of its values. The columns of a text file are text, with decimal points.

    Nested values of a Parquet file become JSON texts.

    Args:
        path: a path that ends in one of `SUFFIXES`.
        plain: columns of a text file with too many distinct values to be read as dictionaries.
        also: columns of a Parquet file to read that don't distinguish groups; None for all columns.

    Returns:
        The table, and sentences for the reader.

    Raises:
        InputError: if the file has another suffix, doesn't exist, can't be read, has no rows or rows with too many or
            too few values, repeats a column, or was written by a newer package; or if an installed package of tasks
            can't be imported, or two offer the same task.
        StoreError: if results of an earlier version can't be converted to the current format, which is a bug in this
            package.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} must end in {join_and(SUFFIXES, 'or')}")
    with _explained(path):
        table, notices = (
            (_read_parquet(path, also), []) if path.suffix.lower() == ".parquet" else _read_text(path, plain)
        )
    if not table.num_rows:
        raise InputError(f"{path} has no rows: one row a trial is needed below the header")
    return table, notices


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise InputError if a file doesn't exist or is empty; convert errors of the context's block into InputError."""
    try:
        _check_there(path)
        yield
    except UnbelievableError as error:
        raise InputError(f"{path}: {error}") from error
    except UNREADABLE as error:
        kind = path.suffix.lower().removeprefix(".")
        raise InputError(f"{path} can't be read as a {kind} file: {_sentence(error)}") from error


def _check_there(path: Path) -> None:
    """Raise InputError if a file doesn't exist, with similar names, or if it is empty."""
    if path.is_file():
        if not path.stat().st_size:
            raise InputError(f"{path} is empty: a header and one row a trial are needed")
        return
    names = [p.name for p in path.parent.glob("*") if p.suffix.lower() in SUFFIXES]
    near = difflib.get_close_matches(path.name, sorted(names), n=3, cutoff=0.5)
    hint = f"; choose from {', '.join(near)}" if near else ""
    raise InputError(f"no such file: {path}{hint}")


def _read_text(path: Path, metrics: Collection[str]) -> tuple[pa.Table, list[str]]:
    """Read every column as text, as dictionaries except for numbers and measurements; return notices, too.

    Marks, decimal commas and error values are replaced. Raises InputError for rows with too few or too many values.
    """
    header, separator = header_and_separator(path)
    _check_names(path, header)
    plain = {own_name(name, header) for name in NUMBERS} | measured() | {*metrics}
    text = pa.dictionary(pa.int32(), pa.string())
    invalid: list[pacsv.InvalidRow] = []

    def skip(row: pacsv.InvalidRow) -> str:
        """Record an invalid row."""
        invalid.append(row)
        return "skip"

    table = pacsv.read_csv(
        path,
        read_options=pacsv.ReadOptions(use_threads=False),  # with threads, invalid rows have no numbers
        parse_options=pacsv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=skip),
        convert_options=pacsv.ConvertOptions(
            column_types={name: pa.string() if name in plain else text for name in header},
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    if invalid:
        _refuse(path, invalid, separator)
    columns = [_remove_marks(column) for column in table.columns]
    table = pa.table(columns, names=[from_text(name.strip()) for name in table.column_names])
    return with_plain_numbers(table, separator)


def _remove_marks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Remove the marks from cells that begin like a formula."""
    if pa.types.is_dictionary(column.type):
        has_marks = any(pc.any(pc.match_substring_regex(c.dictionary, MARKED)).as_py() for c in column.chunks)
        # The column is decoded first: its dictionary may also hold the same text without a mark.
        return _remove_marks(column.cast(pa.string())).dictionary_encode() if has_marks else column
    return pc.replace_substring_regex(column, MARKED, r"\1")


def _refuse(path: Path, invalid: Sequence[pacsv.InvalidRow], separator: str) -> None:
    """Raise InputError with the rows that have too few or too many values."""
    lines = [
        f"  row {'?' if row.number is None else row.number - 1}: {row.actual_columns} values in "
        f"{row.expected_columns} columns: {row.text[:80]}"
        for row in invalid[:_MOST_LISTED]
    ]
    more = [f"  ... and {len(invalid) - _MOST_LISTED:,} more"] if len(invalid) > _MOST_LISTED else []
    head = f"{path}: {count_of(len(invalid), 'row')} with too few or too many values between {separator!r}"
    raise InputError("\n".join([f"{head}, nothing was written", *lines, *more]))


def _read_parquet(path: Path, also: Collection[str] | None) -> pa.Table:
    """Read the needed columns, in the current format for results of an earlier version; all columns for None."""
    if also is None:
        return _with_text_of_lists(pq.read_table(path).replace_schema_metadata(None))
    file = pq.ParquetFile(path)
    old = _results_of(path, file)
    schema = file.schema_arrow if old is None else old.schema
    names = schema.names
    _check_names(path, names)
    needed = {own_name(name, names) for name in (*NUMBERS, "seed", "outcome", "solved", "stopped_early")}
    described = measured()
    columns = [name for name in names if name in needed or name in also or name not in described]
    if old is not None:
        return old.select(columns)
    # Dictionaries of texts halve time and memory, since texts repeat.
    text = [name for name in columns if pa.types.is_string(schema.field(name).type)]
    file = pq.ParquetFile(path, read_dictionary=text)
    return _with_text_of_lists(file.read(columns=columns).replace_schema_metadata(None))


def _with_text_of_lists(table: pa.Table) -> pa.Table:
    """Replace the columns of lists, maps and structs by their JSON, as in a CSV file: Arrow can't group by them."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_nested(table[place].type):
            values = table[place].to_pylist()
            texts = [None if value is None else json.dumps(value, default=str) for value in values]
            table = table.set_column(place, name, pa.array(texts, pa.string()))
    return table


def _results_of(path: Path, file: pq.ParquetFile) -> pa.Table | None:
    """Read results of an earlier version in the current format; None for any other file."""
    metadata = file.metadata.metadata
    if not is_ours(metadata):
        return None
    version = version_of(path, metadata)
    columns = file.schema_arrow.remove_metadata()
    if version == formats.SCHEMA_VERSION or formats.FORMATS[version].complaint("results", columns):
        return None
    return formats.upgraded("results", file.read().replace_schema_metadata(None), version, path)


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Raise InputError if several columns have the same name."""
    stripped = [name.strip() for name in names]
    repeats = sorted({name for name in stripped if stripped.count(name) > 1})
    if repeats:
        raise InputError(
            f"{path}: several columns are called {' and '.join(map(repr, repeats))} (spaces at the ends don't count); "
            "rename all but one"
        )


def _from_mlflow_export(source: Source, metrics: Collection[str]) -> Source:
    """Reduce an export of MLflow's runs to trials and known columns, with our names; no-op for other tables.

    Raises InputError if none of its runs is a trial.
    """
    ours = from_mlflow(source.table.column_names, metrics)
    if not ours:
        return source
    table, rows, failed = source.table, source.rows, source.failed
    if _KIND in table.column_names:
        is_trial = np.asarray(pc.fill_null(pc.equal(pc.cast(table[_KIND], pa.string()), "trial"), False))
        if not is_trial.any():
            raise InputError(f"{source.name}: none of its runs is a trial of a study ({_KIND} = trial)")
        table, rows = table.filter(pa.array(is_trial)), rows[is_trial]
        failed = None if failed is None else failed[is_trial]
    return replace(source, table=table.select(list(ours)).rename_columns(list(ours.values())), rows=rows, failed=failed)


def _sentence(error: Exception) -> str:
    """Return an error's message in one line, or its type if it has none."""
    return " ".join(str(error).split())[:300] or type(error).__name__
