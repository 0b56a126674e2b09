"""Descriptions of columns: every column of every file is described, and its values match."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from study.console import Console
from study.driver.options import Options
from study.interface.declarations import Metric
from study.plan.plan import make_plan
from study.records import names_of
from study.reports.columns import (
    BOUNDS,
    CANDIDATES,
    CELLS,
    COMPARISON,
    CURVES,
    GROUPS,
    RESULTS,
    SERIES,
    TESTS,
    ColumnNote,
    of_metric,
)
from study.results.groups import tabulate
from study.results.groups import write_group_report as write_groups
from study.results.load import StudyResults, load_results
from study.results.study import write_study_report
from study.run import Ending, run
from study.search import Searching
from study.spec import Spec, parse_spec
from study.store import Store
from tests.study.lab import packed_study, reference_study, study_of
from tests.study.search.test_search_by_metrics import spec_of

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

FILES: Mapping[str, Mapping[str, ColumnNote]] = {
    "cells": CELLS,
    "comparison": COMPARISON,
    "tests": TESTS,
    "candidates": CANDIDATES,
    "bounds": BOUNDS,
    "series": SERIES,
}
ALONG = """
study: along
question: How far beyond?
task: {name: identity}
models: [linear]
zip:
  sizes: [{label: narrow, hidden_size: 2}, {label: wide, hidden_size: 4}]
seeds: 3
protocol: {iterations: 2, evaluate_every: 1, best_step_window: 1}
"""
ARITHMETIC = """
study: little
question: Does it learn?
task: {name: simple}
models: [NMU, NAC-mul]
zip:
  schedule:
    - {label: "off", sparsity_strength: 0}
    - {label: strong, sparsity_strength: 10, sparsity_start: 10, sparsity_end: 20}
grid: {hidden_size: [2, 3]}
seeds: 3
fixed: {batch_size: 16}
protocol: {iterations: 40, evaluate_every: 10, evaluation_rows: 50}
success: {threshold: 3.0}
"""


def ran(spec: Spec, store: Path, *, is_search: bool = False) -> StudyResults:
    """Run a study in this process, and return its results."""
    options = Options(store, None, local=True, pack_size=8)
    more = [Searching(None)] if is_search else []
    assert run(make_plan(spec), options, Console(file=StringIO()), *more) is Ending.FINISHED
    return load_results(spec.study, store)


def note_of(columns: Mapping[str, ColumnNote], name: str, names: Mapping[str, Collection[str]]) -> ColumnNote | None:
    """Return a column's description, or None; words in braces stand for the given names."""
    plain = re.sub(r" \((hyperparameter|metric|column)\)$", "", name)
    for pattern, note in columns.items():
        before, word, after = re.split(r"\{(\w+)\}", pattern) if "{" in pattern else (pattern, "", "")
        if any(f"{before}{value}{after}" in (name, plain) for value in (names[word] if word else [""])):
            return note
    return None


def names_in(results: StudyResults) -> dict[str, Collection[str]]:
    """Return the names that replace words in braces in descriptions of a study's columns."""
    search = results.search
    return {
        "hyperparameter": names_of(cell for cell in results.plan.cells),
        "metric": [*results.metrics],
        "axis": {axis for labels in results.plan.labels.values() for axis in labels},
        "key": results.rows.keys,
        "name": FILES["comparison"],
        "parameter": [] if search is None else [parameter.name for parameter in search.parameters],
        "objective": [] if search is None else [objective.name for objective in search.objectives],
    }


def holds(note: ColumnNote, value: Any) -> bool:
    """Return True if a description allows the value."""
    if value is None:
        return bool(note.empty)
    if note.values == "true or false":
        return isinstance(value, bool)
    if note.values.startswith("integer"):
        return float(value) == int(value) and int(value) >= 0
    if note.values == "0 to 1":
        return 0 <= value <= 1
    return note.values != ">= 0" or value >= 0


def mistakes(
    table: pyarrow.Table, columns: Mapping[str, ColumnNote], names: Mapping[str, Collection[str]]
) -> list[str]:
    """Return a message for each column that is undescribed, or has a value that contradicts its description."""
    wrong = []
    for name in table.column_names:
        note = note_of(columns, name, names)
        if note is None:
            wrong.append(f"{name}: not described")
        else:
            wrong += [f"{name}: {value!r}" for value in table[name].to_pylist() if not holds(note, value)][:1]
    return wrong


def read(path: Path) -> pyarrow.Table:
    """Read a CSV file; an empty field is a missing value."""
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=[""])
    return pyarrow.csv.read_csv(path, convert_options=options)


def check(results: StudyResults, out: Path, expected: Sequence[str]) -> None:
    """Check a study's files against their descriptions; cells must have equal columns in CSV and Parquet."""
    files = {path.name: path for path in write_study_report(results, out, ["csv", "parquet"])}
    assert {name.removesuffix(".csv") for name in files if name.endswith(".csv")} == set(expected)
    names = names_in(results)
    for name in expected:
        assert mistakes(read(files[f"{name}.csv"]), FILES[name], names) == []
    cells = pyarrow.parquet.read_table(files["cells.parquet"])
    assert cells.column_names == read(files["cells.csv"]).column_names
    assert mistakes(cells, CELLS, names) == []
    assert cells.num_rows == len(results.summaries)


def stored(store: Path, name: str, results: StudyResults) -> Iterator[list[str]]:
    """Yield the mistakes of the stored results, and the undescribed columns of the stored curves."""
    folder = Store(store).study(name)
    yield mistakes(folder.read_results(), RESULTS, names_in(results))
    curves = folder.read_curves()
    yield [n for n in curves.column_names if note_of(CURVES, n, names_in(results)) is None]


@pytest.mark.slow
def test_columns_of_an_arithmetic_study(tmp_path: Path) -> None:
    """Columns of cells with labels, tests, a comparison and the store match their descriptions."""
    store = tmp_path / "studies"
    results = ran(parse_spec(ARITHMETIC, source="little.yaml"), store)
    check(results, tmp_path / "out", ["cells", "tests"])
    labels = pyarrow.parquet.read_table(tmp_path / "out" / "cells.parquet")["label_schedule"].to_pylist()
    assert set(labels) == {"off", "strong", None}
    assert list(stored(store, "little", results)) == [[], []]
    other = ARITHMETIC.replace("study: little", "study: other").replace("seeds: 3", "seeds: [7, 8, 9]")
    ran(parse_spec(other, source="other.yaml"), store)
    check(load_results("little", store, compare="other"), tmp_path / "both", ["cells", "tests", "comparison"])


def test_columns_of_groups(tmp_path: Path) -> None:
    """Columns of groups by a labelled axis match, with the published estimators, in CSV and Parquet."""
    store = tmp_path / "studies"
    results = ran(parse_spec(ARITHMETIC, source="little.yaml"), store)
    report = tabulate(
        ["little"], store, ["schedule", "model"], as_published=True, out=tmp_path, formats=["csv", "parquet"]
    )
    files = {path.name: path for path in write_groups(report)}
    names = names_in(results) | {"key": ["schedule", "model"]}
    table = pyarrow.parquet.read_table(files["cells.parquet"])
    assert mistakes(table, {**GROUPS, **CELLS}, names) == []
    assert table.column_names == read(files["cells.csv"]).column_names
    assert set(table["schedule"].to_pylist()) == {"off", "strong", None}


def test_columns_of_a_function(lab: Path, tmp_path: Path) -> None:
    """Columns of a function's metrics and success match their descriptions, in reports and in the store."""
    store = tmp_path / "studies"
    results = ran(study_of(lab), store)
    check(results, tmp_path / "out", ["cells", "tests"])
    assert list(stored(store, "mine", results)) == [[], []]


@pytest.mark.slow
def test_columns_of_a_search(lab: Path, tmp_path: Path) -> None:
    """Columns of a search's cells and candidates match their descriptions."""
    results = ran(spec_of(lab), tmp_path / "studies", is_search=True)
    check(results, tmp_path / "out", ["cells", "candidates"])


@pytest.mark.slow
def test_columns_of_a_task_in_packs(packed_lab: Path, tmp_path: Path) -> None:
    """Columns of a user's task match their descriptions, also in a comparison of means with another study."""
    store = tmp_path / "studies"
    results = ran(packed_study(packed_lab), store)
    check(results, tmp_path / "out", ["cells", "tests"])
    assert list(stored(store, results.name, results)) == [[], []]
    ran(packed_study(packed_lab, study="other", seeds=[7, 8, 9]), store)
    files = ["cells", "tests", "comparison"]
    check(load_results(results.name, store, compare="other"), tmp_path / "both", files)


def test_columns_of_references(packed_lab: Path, tmp_path: Path) -> None:
    """Columns of references' bounds match their descriptions."""
    results = ran(reference_study(packed_lab, seeds=4), tmp_path / "studies")
    check(results, tmp_path / "out", ["cells", "bounds"])


@pytest.mark.slow
def test_columns_of_series(tmp_path: Path) -> None:
    """Columns of series match their descriptions."""
    results = ran(parse_spec(ALONG, source="along.yaml"), tmp_path / "studies")
    check(results, tmp_path / "out", ["cells", "tests", "series"])


def test_undescribed_columns_are_detected() -> None:
    """The checks above detect an undescribed column, and a value that contradicts the description."""
    names: Mapping[str, Collection[str]] = {name: [] for name in ("axis", "hyperparameter", "metric")}
    wrong = pyarrow.table({"lost_mean": [1.0], "seeds": [1.5], "success_rate": [1.5], "complete": [None]})
    assert [text.partition(":")[0] for text in mistakes(wrong, CELLS, names)] == wrong.column_names


def test_the_name_of_a_metric_may_have_any_characters() -> None:
    """A metric's name is inserted after the table of columns is parsed, so it can't add fields or lines."""
    name = "a | b <c>\n  d"
    assert list(of_metric(name, Metric())) == [name + column[1:] for column in of_metric("m", Metric())]
