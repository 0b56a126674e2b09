"""Validation of results from outside this process: a store, a ZIP file, MLflow.

Anybody can write a Parquet file or an MLflow run. A row is accepted only if its ids are the hashes of its content, and
an engine could have written its texts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow.columns import HYPERPARAMETER, WHOLE_NUMBERS, column_of
from study.arrow.results import table_cells
from study.records import ID_VERSION, Outcome, sources_of
from study.visible import visible

MOST_ERROR_CHARACTERS = 100_000
"""Greatest length of an error, in characters; longer ones are truncated."""

_CUT = " ... (cut)"
_LABEL = re.compile(r"[\w .,:;/+()\[\]@&#=®™-]{0,200}")
_LABELS = {"engine": "the name of an engine", "device": "the name of a device"}
_LINES = {"task": 1_000, "model": 1_000, "criterion": 10_000}
_MOST_NAME_CHARACTERS = 1_000
_REQUIRED = ("trial_id", "cell_id", "seed", "task", "model", "outcome")
_OUTCOMES = tuple(map(str, Outcome))


def complaint(results: pa.Table) -> str | None:
    """Return the first reason why this package can't have written these results; None if it can.

    Args:
        results: one row a trial, with at least the columns of `EMPTY_RESULTS`; checking is slower if columns have
            several chunks.

    Raises:
        KeyError: if one of these columns is missing.
        ValueError: if a hyperparameter's JSON or range, or a field's metadata, can't be decoded.
        ValueError, TypeError, OverflowError: if `whole_numbers` names a value that can't be an integer, such as NaN.

    Example:
        >>> from study.arrow import results_table
        >>> from study.records import Cell, Outcome, Result, Trial
        >>> trial = Trial(Cell("function", "mine:train", {"width": 8}), seed=0)
        >>> table = results_table([Result(trial=trial, outcome=Outcome.FINISHED)])
        >>> complaint(table) is None
        True
        >>> complaint(table.set_column(table.column_names.index("seed"), "seed", pa.array([100])))
        "trial id '6477581230c4ff60' doesn't match its cell and seed 100 (expected c6be8a9a44dc5037): it was ..."
    """
    return next(_complaints(results), None)


def names_complaint(schema: pa.Schema) -> str | None:
    r"""Describe the first unprintable or too long name of a column, a hyperparameter or a metric; None without one.

    Raises:
        UnicodeDecodeError: if a field's metadata isn't UTF-8 text.

    Example:
        >>> names_complaint(pa.schema([("loss\x1b[2J", pa.float64())]))
        "one called 'loss\\x1b[2J', whose name must have at most 1,000 characters and no control characters"
    """
    roles = (column for field in schema if (column := column_of(field)) is not None)
    for name in (*schema.names, *(column.name for column in roles)):
        if not _is_printable(name, _MOST_NAME_CHARACTERS):
            most = f"{_MOST_NAME_CHARACTERS:,} characters"
            return f"one called {_quoted(name)}, whose name must have at most {most} and no control characters"
    return None


def with_short_errors(results: pa.Table) -> pa.Table:
    """Return the results, with each error truncated to `MOST_ERROR_CHARACTERS` characters."""
    if "error" not in results.column_names:
        return results
    errors = results["error"]
    if (pc.max(pc.utf8_length(errors)).as_py() or 0) <= MOST_ERROR_CHARACTERS:
        return results
    is_long = pc.greater(pc.utf8_length(errors), MOST_ERROR_CHARACTERS)
    beginnings = pc.utf8_slice_codeunits(errors, 0, MOST_ERROR_CHARACTERS - len(_CUT))
    short = pc.if_else(is_long, pc.binary_join_element_wise(beginnings, _CUT, ""), errors)
    return results.set_column(results.column_names.index("error"), results.field("error"), short)


def _complaints(results: pa.Table) -> Iterator[str]:
    missing = [name for name in _REQUIRED if results[name].null_count]
    if missing:
        yield f"it has rows without {', '.join(missing)}"
        return
    yield from _text_complaints(results)
    yield from _cell_complaints(results)
    yield from _trial_complaints(results)


def _text_complaints(results: pa.Table) -> Iterator[str]:
    """Yield a complaint for each invalid text; each distinct text of a column is checked once."""
    for text in pc.unique(results["outcome"]).to_pylist():
        if text not in _OUTCOMES:
            yield f"outcome must be one of {', '.join(_OUTCOMES)}, but is {_quoted(text)}"
    for name, description in _LABELS.items():
        for text in pc.unique(results[name]).drop_null().to_pylist():
            if not _LABEL.fullmatch(text):
                yield f"{name} must be {description}, in one line and without quotes, but is {_quoted(text)}"
    for name, most in _LINES.items():
        for text in pc.unique(results[name]).drop_null().to_pylist():
            if not _is_printable(text, most):
                yield f"{name} must have at most {most:,} characters and no control characters, but is {_quoted(text)}"


def _cell_complaints(results: pa.Table) -> Iterator[str]:
    """Yield a complaint for each cell id that isn't the hash of the cell's content."""
    rows = results.take(_rows_of_cells(results))
    for cell, stored in zip(table_cells(rows), rows["cell_id"].to_pylist(), strict=True):
        ids = [cell.id_of_version(version) for version in range(ID_VERSION, 0, -1)]
        if stored not in ids:
            yield (
                f"cell id {_quoted(stored)} doesn't match its task, model and hyperparameters (expected {ids[0]}): it "
                "was changed, or another program wrote it"
            )


def _rows_of_cells(results: pa.Table) -> pa.Array:
    """Return the index of the first row of each distinct pair of cell id and cell content."""
    names = ["task", "model", *(field.name for field in results.schema if _role(field) == HYPERPARAMETER)]
    columns = [results[name] for name in names]
    if WHOLE_NUMBERS.name in results.column_names:  # lists can't be grouping keys
        notes = [None if note is None else json.dumps(note) for note in results[WHOLE_NUMBERS.name].to_pylist()]
        columns.append(pa.chunked_array([pa.array(notes, pa.string())]))
    varying = [results["cell_id"], *(column for column in columns if len(pc.unique(column)) > 1)]
    keys = [str(number) for number in range(len(varying))]
    rows = pa.table([*varying, pa.array(np.arange(len(results)))], names=[*keys, "row"])
    return rows.group_by(keys, use_threads=False).aggregate([("row", "min")])["row_min"].combine_chunks()


def _trial_complaints(results: pa.Table) -> Iterator[str]:
    """Yield a complaint for each trial id that isn't the hash of cell id and seed, and each invalid negative seed."""
    stored, seeds = results["trial_id"].to_pylist(), results["seed"].to_pylist()
    prefixes: dict[str, Any] = {}
    for trial_id, cell_id, seed in zip(stored, results["cell_id"].to_pylist(), seeds, strict=True):
        # The same hash as `Trial.id`. All trials of a cell share the part before the seed.
        digest = prefixes.get(cell_id)
        if digest is None:
            digest = prefixes[cell_id] = hashlib.sha256(f'{{"cell":{json.dumps(cell_id)},"seed":'.encode())
        digest = digest.copy()
        digest.update(b"%d}" % seed)
        if digest.hexdigest()[:16] != trial_id:
            yield (
                f"trial id {_quoted(trial_id)} doesn't match its cell and seed {seed} (expected "
                f"{digest.hexdigest()[:16]}): it was changed, or another program wrote it"
            )
        elif seed < 0 and not _stands_for_sources(seed):
            yield f"seed {seed} is negative, but doesn't encode the seeds of several sources of randomness"


def _stands_for_sources(seed: int) -> bool:
    try:
        return sources_of(seed).seed == seed
    except ValueError:
        return False


def _role(field: pa.Field) -> str:
    column = column_of(field)
    return "" if column is None else column.role


def _is_printable(text: str, most_characters: int) -> bool:
    return len(text) <= most_characters and visible(text) == text


def _quoted(text: str) -> str:
    excerpt = text if len(text) <= 100 else f"{text[:100]}..."
    return ascii(excerpt) if visible(excerpt) != excerpt else repr(excerpt)
