"""Outcomes from any file: accepted formats, and refusals with file, row and column."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from study.arrow import EMPTY_RESULTS, metric_columns, results_table
from study.errors import InputError
from study.outcomes import OUTCOME_SCHEMA, Outcomes, gather, read_source, wanted
from study.outcomes.columns import from_mlflow, measured
from study.records import Outcome, Result, Trial
from study.reports.content import DataRows
from study.reports.files import to_csv
from tasks.arithmetic import ArithmeticTask, published
from tests.study.builders import published_cell, summarised, summarised_by

SEEDS = Path(published.__file__).with_name("static_seeds.csv")
HEAD = "model,hidden_size,seed,solved,solved_at,sparsity_error\n"
GOOD = HEAD + "NMU,2,0,True,7000,1e-6\nNMU,2,1,False,,0.3\nNAU,2,0,True,9000,2e-6\nNAU,2,1,True,8000,1e-6\n"


def file(folder: Path, text: str, name: str = "a.csv") -> Path:
    """Write a text into a file of a folder, and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(
    *paths: Path, by: list[str] | None = None, metrics: Sequence[str] = (), success: str | None = None
) -> Outcomes:
    """Read files like the command line."""
    say = wanted(metrics, success, ArithmeticTask.metrics)
    return gather([read_source(path, also=by or (), metrics=[*say.known, *say.columns]) for path in paths], by, say)


def refusal(*paths: Path, by: list[str] | None = None, **options: Any) -> str:
    """Return the error message of `read` for files that it refuses."""
    with pytest.raises(InputError) as caught:
        read(*paths, by=by, **options)
    assert caught.value.exit_code == 2
    return str(caught.value)


def results() -> list[Result]:
    """Make results of every outcome in two cells that differ in model and hidden size."""
    outcomes = [Outcome.SOLVED, Outcome.SOLVED, Outcome.UNSOLVED, Outcome.DIVERGED, Outcome.FAILED]
    return [
        Result(
            trial=Trial(published_cell(model, hidden_size=size), seed),
            outcome=outcome,
            solved_at_iteration=1000 * (seed + 1) if outcome is Outcome.SOLVED else None,
            metrics={"sparsity_error": 1e-5 * (seed + 1)} if outcome is Outcome.SOLVED else {},
            iterations=200_000,
            training_s=1.5,
        )
        for model, size in (("NMU", 2), ("NAU", 3))
        for seed, outcome in enumerate(outcomes)
    ]


def test_the_published_seeds_are_read_unchanged():
    """The published per-seed file groups by operation and model, with 100 seeds each and its own numbers."""
    outcomes = read(SEEDS)
    assert outcomes.by == ("operation", "model")
    assert outcomes.notices == ()
    counts = {
        group.values: (group.solved, group.seeds)
        for group in summarised_by(outcomes.table, outcomes.by, outcomes.metrics)
    }
    assert len(counts) == 20
    assert counts["mul", "NMU"] == (98, 100)
    assert counts["add", "NALU"] == (14, 100)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_studys_own_columns_give_its_own_cells(tmp_path, kind):
    """Stored results, as Parquet or CSV, give the study's own summaries, whatever other columns they have."""
    table = results_table(results())
    path = tmp_path / f"results.{kind}"
    (pq.write_table if kind == "parquet" else pacsv.write_csv)(table, path)
    outcomes = read(path)
    assert outcomes.by == ("model",)  # the model determines the hidden size
    for cell, group in zip(
        summarised(table, ArithmeticTask.metrics),
        summarised_by(outcomes.table, outcomes.by, outcomes.metrics),
        strict=True,
    ):
        assert group.values == (cell.cell.model,)
        for name in ("seeds", "solved", "unsolved", "diverged", "failed", "solved_at_interval", "training_s_mean"):
            assert getattr(group, name) == getattr(cell, name), name
        assert group.metrics == cell.metrics


def test_an_export_of_mlflows_runs_is_read_unchanged(tmp_path):
    """Columns params., metrics. and tags. are read; the study's own run isn't counted as a trial."""
    path = file(
        tmp_path,
        "run_id,metrics.solved,metrics.solved_at_iteration,metrics.sparsity_error,params.model,params.seed,"
        "tags.study.kind,tags.study.outcome,tags.study.seed\n"
        "r0,,,,,,study,,\nr1,1.0,7000.0,1e-6,NMU,0,trial,solved,0\nr2,0.0,,0.2,NMU,1,trial,diverged,1\n",
    )
    table = read(path).table
    assert table["outcome"].to_pylist() == ["solved", "diverged"]
    assert table["seed"].to_pylist() == [0, 1]
    assert from_mlflow(["model", "seed"]) == {}
    unsolved = file(
        tmp_path, "params.model,params.seed,metrics.solved,metrics.curve/test_mse\nNMU,0,0.0,5.0\n", "b.csv"
    )
    table = read(unsolved).table
    assert table["solved_at_iteration"].to_pylist() == [None]  # a metric that no run has isn't a column
    assert "curve/test_mse" not in table.column_names


def test_an_export_without_trials_is_refused(tmp_path):
    text = "run_id,params.model,params.seed,tags.study.kind,tags.study.outcome\nr0,NMU,,cell,\nr1,NMU,,study,\n"
    assert "none of its runs is a trial of a study" in refusal(file(tmp_path, text), by=["model"])


def test_many_words_for_missing_and_solved_are_read(tmp_path):
    """The words True, 1, nan, NA and blanks have their usual meanings; large seeds keep every digit."""
    text = HEAD + "NMU,2,9007199254740993, TRUE,7e3, 1e-6\nNMU,2,9007199254740992,0,nan,NA\nNMU,2,1.0,1.0,5,1e-6\n"
    table = read(file(tmp_path, "\ufeff" + text)).table
    assert table["outcome"].to_pylist() == ["solved", "unsolved", "solved"]
    assert table["seed"].to_pylist() == [9007199254740993, 9007199254740992, 1]
    assert table["solved_at_iteration"].to_pylist() == [7000.0, None, 5.0]
    assert table.select(OUTCOME_SCHEMA.names).schema == OUTCOME_SCHEMA


def test_groups_are_formed_by_the_fewest_varying_columns(tmp_path):
    """Constants, dependent columns, ids and measurements don't make groups; the model is always named."""
    rows = [f"r{i},{'AB'[i % 2]},x,{'ab'[i % 2]},{i % 4 // 2},{i // 4},{i * 0.1},True,5,0.1" for i in range(40)]
    head = "run,model,task,init,width,seed,loss,solved,solved_at,sparsity_error\n"
    outcomes = read(file(tmp_path, head + "\n".join(rows)))
    assert outcomes.by == ("model", "width")
    assert (
        "run, loss aren't used for grouping, because of more different values than half of the rows"
        in outcomes.notices[0]
    )
    alone = read(file(tmp_path, HEAD + "NMU,2,0,True,5,0.1\nNMU,3,0,True,5,0.1\n" * 2))
    assert alone.by == ("model", "hidden_size")


def test_by_takes_any_column_and_notes_pooling(tmp_path):
    """Grouping by only a part of the varying columns pools different cells, and a note says so."""
    outcomes = read(file(tmp_path, GOOD), by=["hidden_size"])
    (group,) = summarised_by(outcomes.table, outcomes.by, outcomes.metrics)
    assert (group.values, group.solved, group.seeds) == ((2,), 3, 4)
    assert "rows of different model are counted together" in outcomes.notices[0]
    assert "choose from model" in refusal(file(tmp_path, GOOD), by=["modle"])


def test_several_files_are_one_table(tmp_path):
    """Rows of several files are joined, whatever columns they lack; `source` separates them on request."""
    first = file(tmp_path, GOOD)
    second = file(tmp_path, GOOD.replace(",hidden_size", "").replace(",2,", ","), "b.csv")
    assert read(first, second).table.num_rows == 8  # without a hidden size they are other trials
    same = file(tmp_path, GOOD, "c.csv")
    outcomes = read(first, same)
    assert outcomes.table.num_rows == 4
    assert outcomes.notices == ("4 rows that repeat others exactly were counted once",)
    apart = read(first, same, by=["source", "model"])
    groups = summarised_by(apart.table, apart.by, apart.metrics)
    assert [group.values for group in groups] == [("a", "NMU"), ("a", "NAU"), ("c", "NMU"), ("c", "NAU")]


def test_every_mistake_of_a_file_is_in_one_message(tmp_path):
    """Wrong seeds, words and numbers are named with their rows and values."""
    text = HEAD + (
        "NMU,2,x,True,7000,1e-6\nNMU,2,1,perhaps,,\nNMU,2,2,True,soon,1e-6\nNMU,2,3,True,5,-1\nNMU,2,4,True,,0.1\n"
        "NMU,2,1.5,False,,\nNMU,2,,False,,\nNMU,2,9223372036854775808,False,,\n"
    )
    message = refusal(file(tmp_path, text))
    assert message.count("\n") == 8, message
    for words in (
        "row 1: seed: 'x' isn't a whole number >= 0",
        "row 6: seed: '1.5' isn't a whole number >= 0",
        "row 7: seed: nothing isn't a whole number >= 0",
        "row 8: seed: '9223372036854775808' isn't a whole number",
        "row 2: solved: 'perhaps' is neither true nor false",
        "row 3: solved_at: 'soon' isn't a number",
        "row 4: sparsity_error: '-1' is below 0",
        "row 5: solved_at: nothing isn't a number, but the trial is solved",
    ):
        assert words in message, message


def test_infinite_numbers_are_refused(tmp_path):
    """Infinite times and errors, and numbers beyond the range of a float, are named once each, in any column."""
    text = HEAD.replace("\n", ",iterations\n") + (
        "NMU,2,0,True,inf,1e-6,9000\nNMU,2,1,True,7000,-Infinity,9000\nNMU,2,2,False,,0.1,1e999\nNMU,2,3,True,7,0.1,9\n"
    )
    message = refusal(file(tmp_path, text))
    assert message.count("\n") == 3, message
    for words in (
        "row 1: solved_at: 'inf' isn't a finite number",
        "row 2: sparsity_error: '-Infinity' isn't a finite number",
        "row 3: iterations: '1e999' isn't a finite number",
    ):
        assert words in message, message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (HEAD, "has no rows"),
        ("model,seed\nNMU,1\n", "no column solved or outcome: give a success criterion, as in --success"),
        ("seed,seed,solved\n1,1,True\n", "several columns are called 'seed'"),
        (HEAD + "NMU,2,0,True,7000\nNMU,2,1,False,,,,\n", "row 2: 8 values in 6 columns"),
        (HEAD.replace("solved,", "outcome,", 1) + "NMU,2,0,sloved,7000,0.1\n", "did you mean solved?"),
        (HEAD.replace(",solved,", ",outcome,") + "NMU,2,0,pending,,\n", "no run has ended"),
    ],
)
def test_files_that_hold_no_outcomes_are_refused(tmp_path, text, words):
    """Empty files, missing or duplicate columns, rows of other lengths and unknown outcomes are named."""
    message = refusal(file(tmp_path, text))
    assert words in message
    assert "a.csv" in message


def test_outcome_and_solved_must_agree(tmp_path):
    """Both columns must agree, also with the last iteration if the file has it."""
    text = "model,seed,outcome,solved,solved_at,sparsity_error,iterations\nA,0,unsolved,True,,,9\nA,1,failed,,,,9\n"
    message = refusal(file(tmp_path, text))
    assert message.count("\n") == 1
    assert "row 1: outcome: 'unsolved' contradicts column solved" in message
    late = "model,seed,solved,solved_at,sparsity_error,iterations\nA,0,True,10,0.1,9\n"
    assert "row 1: solved_at: '10' is after the trial's last iteration" in refusal(file(tmp_path, late))


def test_a_trial_with_two_outcomes_is_refused_with_both_rows(tmp_path):
    """The message names file, row and outcome of both rows."""
    first, second = file(tmp_path, GOOD), file(tmp_path, GOOD.replace("9000", "9500"), "b.csv")
    message = refusal(first, second)
    assert "1 trial twice with different outcomes" in message
    assert f"{first}, row 3 and {second}, row 3: model NAU, seed 0: solved at 9000" in message
    assert "solved at 9500" in message


def test_parquet_columns_of_another_type_are_reported(tmp_path):
    """Dates in place of numbers are one mistake of the column, not one of each row."""
    table = pa.table({"seed": [0, 1], "solved": [True, False], "sparsity_error": [0.1, None]})
    times = pa.array([0, 1], pa.timestamp("ms"))
    pq.write_table(table.append_column("solved_at", times), tmp_path / "a.parquet")
    assert "column solved_at holds timestamp[ms], but must hold numbers" in refusal(tmp_path / "a.parquet")


def test_parquet_columns_of_any_type_are_read(tmp_path):
    """Dictionary texts, null columns, and integers that no float can hold are read unchanged."""
    content = {
        "model": pa.array(["NMU", "NAU", None, "NMU"]),
        "note": pa.nulls(4),
        "seed": pa.array([0, 2**63 - 1, 2, 3]),
        "solved": pa.array([1, 0, 1, 0], pa.int8()),
        "solved_at": pa.array([2**53 + 1, None, 5, None]),
        "sparsity_error": pa.array(["1e-6", "nan", " 0.25", "none"]).dictionary_encode(),
        "stopped_early": pa.array([None, True, False, None]),
    }
    pq.write_table(pa.table(content), tmp_path / "a.parquet", row_group_size=1)
    outcomes = read(tmp_path / "a.parquet")
    assert outcomes.by == ("model",)
    table = outcomes.table.select([*OUTCOME_SCHEMA.names, "sparsity_error", "model", "note"]).to_pydict()
    assert table == {
        "seed": [0, 2**63 - 1, 2, 3],
        "outcome": ["solved", "unsolved", "solved", "unsolved"],
        "solved_at_iteration": [2.0**53, None, 5.0, None],
        "sparsity_error": [1e-6, None, 0.25, None],
        "training_s": [None] * 4,
        "trained_iterations": [None] * 4,
        "stopped_early": [False, True, False, False],
        "model": ["NMU", "NAU", None, "NMU"],
        "note": [None] * 4,
    }


def test_parquet_lists_are_json(tmp_path):
    """Lists distinguish groups by their JSON, as in a CSV file, and a list isn't a seed."""
    layers = [[8, 8], [8, 8], [16], None]
    content = {"layers": layers, "seed": [0, 1, 0, 0], "solved": [True, False, True, True]}
    pq.write_table(pa.table(content), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").table["layers"].to_pylist() == ["[8, 8]", "[8, 8]", "[16]", None]
    pq.write_table(pa.table(content | {"seed": [[0], [1], [0], [0]]}), tmp_path / "a.parquet")
    assert "row 1: seed: '[0]' isn't a whole number >= 0" in refusal(tmp_path / "a.parquet")


def test_a_newer_schema_is_refused(tmp_path):
    """A results file of a later version gives a message that asks for an upgrade."""
    table = results_table(results()).replace_schema_metadata({"study.schema_version": "99"})
    pq.write_table(table, tmp_path / "a.parquet")
    assert "schema version 99" in refusal(tmp_path / "a.parquet")


def test_missing_and_foreign_files_are_named(tmp_path):
    """A missing file is named with its nearest match, and a file that isn't Parquet is named as such."""
    file(tmp_path, GOOD, "seeds.csv")
    assert "choose from seeds.csv" in refusal(tmp_path / "seed.csv")
    assert "can't be read as a parquet file" in refusal(file(tmp_path, GOOD, "b.parquet"))
    assert "File name too long" in refusal(tmp_path / f"{'a' * 300}.csv")
    (tmp_path / "c.csv").write_bytes(b"seed,solved,solved_at,sparsity_error\n\xff\xfe,1,2,3\n")
    assert "can't be read as a csv file" in refusal(tmp_path / "c.csv")


def test_results_of_trials_arent_hyperparameters():
    """Every column common to all results is an attribute of the trial, a criterion or a measurement."""
    fixed = {*EMPTY_RESULTS.column_names, *metric_columns()}
    assert fixed - measured() == {"task", "model", "seed", "criterion"}


def test_groups_are_in_order(tmp_path):
    """Numbers ascend in any order of rows; words keep their first order."""
    rows = [f"{m},{h},{s},True,5,0.1" for h in (10, 2) for m in ("NMU", "NAC") for s in (0, 1)]
    outcomes = read(file(tmp_path, HEAD + "\n".join(rows)))
    values = [group.values for group in summarised_by(outcomes.table, outcomes.by, outcomes.metrics)]
    assert values == [("NMU", 2), ("NMU", 10), ("NAC", 2), ("NAC", 10)]


def test_groups_partition_the_rows():
    """Every row is in one group and counted once, whatever the columns."""
    random = np.random.default_rng(5)
    table = pa.table(
        {
            "a": random.integers(0, 3, 500),
            "b": pa.array(random.choice(["x", "y", ""], 500), mask=random.random(500) < 0.2),
            "outcome": pa.array(random.choice([str(o) for o in Outcome], 500), mask=random.random(500) < 0.1),
            "solved_at_iteration": random.integers(1, 9, 500) * 1000,
            "training_s": random.random(500),
            "trained_iterations": random.integers(9000, 12000, 500),
            "stopped_early": random.random(500) < 0.5,
        }
    )
    groups = summarised_by(table, ["a", "b"])
    assert len({group.values for group in groups}) == len(groups) == 12
    assert sum(group.seeds for group in groups) == 500
    assert sum(g.ended + g.failed + g.stopped + g.pending for g in groups) == 500
    (summary,) = summarised_by(table, [])
    assert (summary.seeds, summary.pending) == (500, table["outcome"].null_count)
    assert not summary.complete


def test_hyperparameters_that_differ_in_every_row_arent_ids(tmp_path):
    """With one seed for each model, size or learning rate, every row is a trial."""
    models = [f"{model},2,{0.001 * (i + 1)},0,False,," for i, model in enumerate("ABCDE")]
    head = "model,hidden_size,learning_rate,seed,solved,solved_at,sparsity_error\n"
    assert len(read(file(tmp_path, head + "\n".join(models))).table) == 5
    sizes = [f"NMU,{size},0.1,0,False,," for size in range(2, 10)]
    assert len(read(file(tmp_path, head + "\n".join(sizes))).table) == 8


def test_rows_that_differ_only_in_an_id_are_refused(tmp_path):
    """Rows that differ only in an id are refused: the user decides if they repeat a trial or differ otherwise."""
    rows = [f"NMU,{0.1 * i},{seed},False,," for i in range(4) for seed in (0, 1)]
    text = "model,dropout_of_run,seed,solved,solved_at,sparsity_error\n" + "\n".join(rows)
    assert len(read(file(tmp_path, text)).table) == 8  # four values in eight rows: a hyperparameter
    rows = [f"NMU,run{i},0,False,," for i in range(4)]
    text = "model,run,seed,solved,solved_at,sparsity_error\n" + "\n".join(rows)
    assert "differ from others only in run" in refusal(file(tmp_path, text))


def test_a_files_own_source_tells_rows_apart(tmp_path):
    """A column named source is treated like any other."""
    rows = [f"NMU,{device},{seed},False,," for device in ("gpu", "cpu") for seed in range(5)]
    outcomes = read(file(tmp_path, "model,source,seed,solved,solved_at,sparsity_error\n" + "\n".join(rows)))
    assert (len(outcomes.table), outcomes.by) == (10, ("model", "source"))


def test_missing_words_among_numbers_are_missing_values(tmp_path):
    """Nan and NA in a column of numbers equal an empty field, and the other values stay numbers."""
    rows = [f"NMU,{lam},{seed},False,," for lam in ("nan", "NA", "", "0.1", "10") for seed in range(9)]
    rows = [row for i, row in enumerate(rows) if i % 9 < 3 or i >= 27]
    text = "model,lam,seed,solved,solved_at,sparsity_error\n" + "\n".join(rows[6:])
    assert read(file(tmp_path, text)).table["lam"].unique().to_pylist() == [None, 0.1, 10.0]


CELLS = st.text(st.sampled_from("=+-@'\t＝＠a1.e, \"\n"), min_size=1, max_size=6).map(str.strip).filter(bool) | st.text(
    st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CELLS, min_size=1, max_size=8), CELLS)
def test_written_csv_is_text_to_a_spreadsheet_and_round_trips(tmp_path, texts, name):
    """Only numeric cells may begin like a formula, and the values read back equal those written."""
    schema = pa.schema([("seed", pa.int64()), ("x" + name, pa.string()), ("change", pa.float64())])
    text = to_csv(DataRows(schema, [{"seed": i, "x" + name: t, "change": -0.5} for i, t in enumerate(texts)]))
    cells = list(csv.reader(io.StringIO(text)))
    for cell in itertools.chain.from_iterable(cells):
        assert cell[0] not in "=+-@\t\r＝＋－＠" or math.isfinite(float(cell))
    assert {row[2] for row in cells[1:]} == {"-0.5"}
    path = tmp_path / "ours.csv"
    path.write_text(text)
    table = read_source(path).table
    assert table.column_names[1] == "x" + name
    assert table[1].to_pylist() == texts
    assert table[2].to_pylist() == ["-0.5"] * len(texts)


def test_a_header_that_begins_like_a_formula_is_text(tmp_path):
    """Column names are escaped and unescaped like cells."""
    text = to_csv(DataRows(pa.schema([("=1+1", pa.string()), ("seed", pa.int64())]), [{"=1+1": "\x1b[2J", "seed": 1}]))
    assert text == "'=1+1,seed\n\\x1b[2J,1\n"
    path = tmp_path / "ours.csv"
    path.write_text(text)
    assert read_source(path).table.column_names == ["=1+1", "seed"]
