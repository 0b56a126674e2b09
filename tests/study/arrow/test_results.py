"""Lossless tables of results: bits, types and ids survive in any number of files."""

from __future__ import annotations

import math
import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.arrow import (
    EMPTY_RESULTS,
    cell_columns,
    column_names,
    hyperparameters_of,
    kind_of,
    metric_columns,
    metrics_of,
    results_table,
    table_cells,
    table_results,
    trials_table,
    unified,
    with_metrics,
)
from study.arrow.kinds import decoded, encoded
from study.records import Cell, Outcome, Pack, Result, Trial
from study.store import StudyStore, folder_at
from tests.study.builders import exact_result, published_cell, small_cell

NAMES = ("width", "rate", "x̂", "threshold", "loss", "criterion")
"""Hyperparameters, among them names of a fixed column and of a metric."""

floats = st.floats(allow_nan=False, allow_infinity=False)
intervals = st.tuples(floats, floats)
plain = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.integers(0, 9) | floats | st.text(max_size=5)
lists = st.recursive(plain, lambda items: st.lists(items, max_size=3), max_leaves=5)
values = plain | lists | st.lists(intervals, min_size=1, max_size=2).map(tuple)
numbers = st.integers(0, 3) | st.sampled_from([0.0, 1.0, 2.0, 2.5])
functions = st.builds(
    Cell,
    st.just("function"),
    st.sampled_from(["mine:train", "mine:other"]),
    st.fixed_dictionaries({}, optional={"depth": numbers, **dict.fromkeys(NAMES, values)}),
)
built_in = st.builds(small_cell, st.sampled_from(["NMU", "linear"]), learning_rate=floats)
results = st.builds(
    Result,
    trial=st.builds(Trial, functions | built_in, st.integers(0, 2**63 - 1)),
    outcome=st.sampled_from(Outcome),
    threshold=st.none() | floats,
    criterion=st.none() | st.just("loss < 0.1"),
    best_iteration=st.none() | st.integers(0, 2**53),
    metrics=st.dictionaries(st.sampled_from(["loss", "accuracy", "error"]), floats | st.just(math.inf), max_size=2),
    iterations=st.integers(0, 10**9),
    training_s=floats,
    engine=st.just("function"),
    device=st.just("cpu"),
    error=st.none() | st.just("killed"),
)
files = st.lists(st.lists(results, max_size=4), min_size=1, max_size=4)


@given(st.lists(values, max_size=6))
def test_a_column_of_any_kind_holds_its_values(column: list[Any]) -> None:
    """Each value comes back unchanged; integers of a float column are restored by the list of integer columns."""
    kind = kind_of(column)
    back = decoded(encoded(column, kind), kind)
    assert repr([_as_list(value) for value in back]) == repr(
        [_as_list(float(value) if kind == "number" and value is not None else value) for value in column]
    )


def _as_list(value: Any) -> Any:
    return [_as_list(item) for item in value] if isinstance(value, list | tuple) else value


@given(files)
def test_tables_joined_are_their_results(given_files: list[list[Result]]) -> None:
    """The joined table has every result, and each cell has the id in its row."""
    table = unified([results_table(file_results) for file_results in given_files])
    check_is(table, [result for file_results in given_files for result in file_results])


def check_is(table: pa.Table, expected: list[Result]) -> None:
    assert table_results(table) == expected
    assert [cell.id for cell in table_cells(table)] == table["cell_id"].to_pylist()
    assert [result.trial.id for result in expected] == table["trial_id"].to_pylist()


@given(files, files, st.randoms(use_true_random=False))
def test_tables_are_joined_in_any_steps(first: list[list[Result]], second: list[list[Result]], order: Any) -> None:
    """Results stay unchanged if tables are joined in steps, with rows selected and reordered in between."""
    left, right = (unified([results_table(of_file) for of_file in part]) for part in (first, second))
    rows = [result for part in (first, second) for file_results in part for result in file_results]
    check_is(unified([left, right]), rows)
    chosen = order.sample(range(len(left)), len(left) // 2)
    check_is(unified([left.take(pa.array(chosen, pa.int64())), right]), [rows[i] for i in chosen] + rows[len(left) :])


@given(files)
@settings(max_examples=25)
def test_the_store_returns_cells_with_the_ids_of_their_rows(given_files: list[list[Result]]) -> None:
    """Results from any number of files are read with the cells that they were written with."""
    by_trial = {result.trial.id: result for file_results in given_files for result in file_results}
    with tempfile.TemporaryDirectory() as folder:
        study = StudyStore(folder_at(folder))
        for file_results in given_files:
            own = [r for r in file_results if by_trial[r.trial.id] is r]
            study.write_pack(Pack(tuple(r.trial for r in own)).id, own, [], [], {})
        table = study.read_results()
    assert len(table) == len(by_trial)
    assert {result.trial.id: result for result in table_results(table)} == by_trial
    assert [cell.id for cell in table_cells(table)] == table["cell_id"].to_pylist()


def test_built_in_results_have_fixed_columns() -> None:
    """Built-in tasks have the same columns, even if all trials failed or don't use a hyperparameter."""
    failed = Result(trial=Trial(published_cell("linear"), 0), outcome=Outcome.FAILED)
    table = results_table([failed])
    assert table.schema.equals(results_table([exact_result(Trial(published_cell(momentum=0.9), 0))]).schema)
    assert list(table.column_names[3 : 3 + len(cell_columns())]) == list(cell_columns())
    assert metrics_of(table) == list(metric_columns())
    assert table.schema.field("momentum").type == pa.float64()


def test_columns_keep_the_order_of_declaration() -> None:
    """Hyperparameters follow the model in their cells' order of declaration; metrics follow the best step."""
    cells = [Cell("function", "mine:train", {"b": 1, "a": 2}), Cell("function", "mine:train", {"a": 2, "c": None})]
    cell_results = [Result(trial=Trial(cell, 0), outcome=Outcome.FINISHED, metrics={"z": 0, "y": 0}) for cell in cells]
    table = results_table(cell_results)
    assert column_names(cells) == ["task", "model", "b", "a", "c"]
    assert hyperparameters_of(table) == ["b", "a", "c"]
    assert metrics_of(table) == ["z", "y"]
    fixed_columns = [name for name in table.column_names if name not in ("a", "b", "c", "y", "z")]
    assert fixed_columns == EMPTY_RESULTS.column_names
    assert table.column_names.index("a") < table.column_names.index("outcome") < table.column_names.index("z")


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [(1, 2.5, "double"), (1, 2**60, "int64"), (2**60, 2.5, "string"), (1, "a", "string"), (True, 1, "string")],
)
def test_values_of_two_kinds_share_a_column(first: Any, second: Any, kind: str) -> None:
    """Integers and floats share a number column if that is exact; other mixtures become JSON, in one file or two."""
    pair = [
        Result(trial=Trial(Cell("function", "mine:train", {"x": value}), 0), outcome=Outcome.FINISHED)
        for value in (first, second)
    ]
    for table in (results_table(pair), unified([results_table([result]) for result in pair])):
        assert str(table.schema.field("x").type) == kind
        assert [repr(cell.value("x")) for cell in table_cells(table)] == [repr(first), repr(second)]


def test_trials_without_results_are_rows() -> None:
    """A pending trial has its cell and seed and null in every other column; it joins with results."""
    done, pending = (Trial(published_cell(), seed) for seed in (0, 1))
    table = unified([results_table([exact_result(done)]), trials_table([pending])])
    assert [cell.id for cell in table_cells(table)] == [done.cell.id] * 2
    assert table["outcome"].to_pylist() == ["solved", None]
    assert table["test_mse"].to_pylist()[1] is None


def test_a_metric_that_no_trial_has_is_null() -> None:
    """A missing metric is added as a column of nulls."""
    table = with_metrics(EMPTY_RESULTS, ["loss"])
    assert metrics_of(table) == ["loss"]
    assert with_metrics(table, ["loss"]) is table
