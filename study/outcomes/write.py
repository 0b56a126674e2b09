"""Writing of outcomes to a file that `study report` reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from study.errors import InputError, StudyError
from study.outcomes.files import SUFFIXES
from study.outcomes.text_cells import as_text
from study.visible import visible
from study.words import join_and


def write_outcomes(table: pa.Table, file: Path) -> None:
    """Write outcomes to a new CSV, TSV or Parquet file.

    In CSV and TSV, cells that begin like a formula are marked as text, and control characters are escaped.

    Args:
        table: the outcomes.
        file: a path that ends in one of `SUFFIXES`, without an existing file.

    Raises:
        InputError: if the file exists, or has another suffix.
        StudyError: if the file can't be written.
        ValueError: if a text file can't hold a column's type, such as lists.
    """
    kind = file.suffix.lower()
    if kind not in SUFFIXES:
        raise InputError(f"{file} must end in {join_and(SUFFIXES, 'or')}")
    try:
        with file.open("xb") as output:
            try:
                if kind == ".parquet":
                    pq.write_table(table, output)
                else:
                    options = pacsv.WriteOptions(delimiter="\t" if kind == ".tsv" else ",")
                    pacsv.write_csv(_marked(table), output, options)
            except BaseException:
                file.unlink(missing_ok=True)  # a partial file could be taken for a complete one
                raise
    except FileExistsError:
        raise InputError(
            f"{file} exists already, and nothing is overwritten: remove it, or name another file with --out"
        ) from None
    except OSError as error:
        raise StudyError(f"can't write {file}: {error.strerror or error}") from error


def _marked(table: pa.Table) -> pa.Table:
    """Mark the texts and column names that begin like a formula, and escape control characters."""
    columns = []
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        if pa.types.is_string(column.type):
            encoded = column.combine_chunks().dictionary_encode()
            texts = [None if text is None else as_text(visible(text)) for text in encoded.dictionary.to_pylist()]
            column = pa.array(texts, pa.string()).take(encoded.indices)
        columns.append(column)
    return pa.table(columns, names=[as_text(visible(name)) for name in table.column_names])
