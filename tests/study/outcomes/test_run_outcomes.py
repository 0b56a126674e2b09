"""Runs of other tools become trials: each counts once, varying columns except the seed make groups, and every
decision is reported.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study.errors import InputError
from study.outcomes import (
    RunChoices,
    RunOutcomes,
    Runs,
    of_mlflow,
    outcomes_of_runs,
    read_runs,
    read_source,
    write_outcomes,
)

GRID = [
    {"lr": lr, "optimizer": optimizer, "seed": seed, "val_acc": 0.5 + seed / 10 + index / 100}
    for index, (lr, optimizer, seed) in enumerate(itertools.product((0.1, 0.01), ("adam", "sgd"), range(3)))
]


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def outcomes(rows: list[dict[str, Any]], **choices: Any) -> RunOutcomes:
    return outcomes_of_runs(Runs("runs", table_of(rows)), RunChoices(**choices))


def grid(**more: Any) -> list[dict[str, Any]]:
    """Return the rows of the grid with more columns, each given as a value or as a list with one value per row."""
    return [
        row | {name: value[place] if isinstance(value, list) else value for name, value in more.items()}
        for place, row in enumerate(GRID)
    ]


def decision(run_outcomes: RunOutcomes, start: str) -> str:
    """Return the only notice that begins with a text."""
    (notice,) = [notice for notice in run_outcomes.notices if notice.startswith(start)]
    return notice


def test_groups_are_all_that_varies_but_the_seed() -> None:
    """Hyperparameters make groups, a column named like a metric is averaged, and other columns are left out."""
    run_outcomes = outcomes(
        grid(
            batch_size=32,
            run_name=[f"run-{place}" for place in range(12)],
            output_dir=["/a", "/b", "/c"] * 4,
            started=[f"2026-01-{place + 1:02}T00:00:00" for place in range(12)],
            epoch=[7, 8, 9] * 4,
            walltime=[1.5 + place for place in range(12)],
            drift=[1.5 + place for place in range(12)],
            std_reward=[1.5 + place % 3 for place in range(12)],
            error=None,
        )
    )
    assert run_outcomes.by == ("lr", "optimizer")
    assert run_outcomes.metric_options == ["val_acc:higher"]
    assert run_outcomes.table.column_names == ["seed", "outcome", "lr", "optimizer", "val_acc"]
    assert run_outcomes.table["val_acc"].to_pylist() == [row["val_acc"] for row in GRID]
    assert set(run_outcomes.table["outcome"].to_pylist()) == {"finished"}
    assert decision(run_outcomes, "seeds") == "seeds: seed"
    assert decision(run_outcomes, "the same in all runs").endswith(": batch_size")
    assert decision(run_outcomes, "ids, names").endswith(": run_name, output_dir, started, epoch")
    assert decision(run_outcomes, "other numbers").endswith(": drift")
    assert decision(run_outcomes, "spreads, extremes, counts and times").endswith(": walltime, std_reward")
    assert decision(run_outcomes, "empty") == "empty, left out: error"
    assert decision(run_outcomes, "groups") == "groups: 4 groups by lr, optimizer, 3 seeds each"


def test_a_mean_over_an_epoch_is_a_metric() -> None:
    """Lightning's ``val_loss_epoch`` is a metric, though its name ends like a run's progress."""
    rows = grid(val_loss_epoch=[0.5 + place / 10 for place in range(12)])
    assert "val_loss_epoch" in outcomes(rows).metric_options


@pytest.mark.parametrize("name", ["seed", "random_seed", "trainer.seed", "RNGSeed", "random_state", "cfg/train-seed"])
def test_seeds_are_found_by_their_name(name: str) -> None:
    """The last word of a column's name marks the seed; other names must be given."""
    rows = [{name if key == "seed" else key: value for key, value in row.items()} for row in GRID]
    assert outcomes(rows).table["seed"].to_pylist() == [row["seed"] for row in GRID]


def test_runs_without_a_seed_need_a_named_column_or_are_numbered() -> None:
    """Any column can be named as the seed; without a seed column, runs get unique numbers."""
    rows = [{("draw" if key == "seed" else key): value for key, value in row.items()} for row in GRID]
    with pytest.raises(InputError, match=r"--seed COLUMN.*--without-seeds.*choose from lr, optimizer, draw, val_acc"):
        outcomes(rows)
    assert outcomes(rows, seed="draw").by == ("lr", "optimizer")
    with pytest.raises(InputError, match="--seed draws: no such column"):
        outcomes(rows, seed="draws")
    for row in rows:
        del row["draw"]
    numbered = outcomes(rows, without_seeds=True)
    assert numbered.table["seed"].to_pylist() == list(range(12))
    assert numbered.by == ("lr", "optimizer")


def test_failed_and_diverged_runs_are_counted() -> None:
    """Failed runs and runs without a value have failed, NaN has diverged; unfinished and seedless runs are dropped."""
    words = ["finished"] * 6 + ["FAILED", "killed", "crashed", "running", "finished", "finished"]
    rows = grid(status=words)
    rows[1]["val_acc"], rows[10]["val_acc"], rows[11]["seed"] = math.nan, None, None
    run_outcomes = outcomes(rows)
    assert run_outcomes.table["outcome"].to_pylist() == [
        *("finished", "diverged", "finished", "finished", "finished", "finished"),
        *("failed", "failed", "failed", "failed"),
    ]
    assert run_outcomes.table["seed"].to_pylist() == [row["seed"] for row in GRID[:9]] + [GRID[10]["seed"]]
    assert "left out: 1 run, by status (running 1), not ended yet" in run_outcomes.notices
    assert "left out: 1 run without a seed" in run_outcomes.notices
    assert "failed or stopped: 3 runs, by status (FAILED 1, killed 1, crashed 1)" in run_outcomes.notices
    assert "failed: 1 run, which ended without any of the metrics" in run_outcomes.notices


@pytest.mark.parametrize(("repeats", "counts"), [("first", 0.11), ("last", 0.12)])
def test_repeated_seeds_count_once(repeats: str, counts: float) -> None:
    """A run with equal hyperparameters and seed is a repeat; a failure never replaces a result."""
    repeats_of_first = [GRID[0] | {"val_acc": value, "status": status} for value, status in
             ((0.10, "failed"), (0.11, "finished"), (0.12, "finished"), (0.13, "failed"))]  # fmt: skip
    run_outcomes = outcomes([*repeats_of_first, *(row | {"status": "finished"} for row in GRID[1:])], repeats=repeats)
    assert run_outcomes.table.num_rows == 12
    assert next(row["val_acc"] for row in run_outcomes.table.to_pylist() if row["seed"] == 0) == counts
    assert decision(run_outcomes, "repeats").startswith("repeats: 3 runs of 1 group ")


def test_runs_that_differ_only_in_an_id_are_refused() -> None:
    """If most runs differ only in a column that looks like an id, the user must state its role."""
    rows = [{"seed": 0, "shape": f"{n}-{n + 1}", "val_acc": n / 10} for n in range(9)]
    with pytest.raises(InputError, match=r"8 of 9 runs .* if one of shape is a hyperparameter"):
        outcomes(rows)
    assert outcomes(rows, by=["shape"]).by == ("shape",)


def test_the_user_decides() -> None:
    """Columns given by --by make groups; those given by --metric are averaged, in the given direction."""
    rows = grid(walltime=[1.5 + place for place in range(12)], depth=[2.5 + place for place in range(12)])
    run_outcomes = outcomes(rows, by=["depth"], metrics=["walltime:lower", "val_acc:lower"])
    assert run_outcomes.by == ("depth",)
    assert run_outcomes.metrics == {"walltime": False, "val_acc": False}
    assert run_outcomes.table.column_names == ["seed", "outcome", "lr", "optimizer", "depth", "walltime", "val_acc"]
    for wrong in ({"by": ["dpth"]}, {"metrics": ["walltimes"]}):
        with pytest.raises(InputError, match="the runs have no column"):
            outcomes(rows, **wrong)
    with pytest.raises(InputError, match="--metric walltime:higher or walltime:lower"):
        outcomes(rows, metrics=["walltime"])
    with pytest.raises(InputError, match="--metric optimizer: its values must be numbers"):
        outcomes(rows, metrics=["optimizer"])


def test_stated_outcomes_stay() -> None:
    """A run's own column of success decides its outcome."""
    solved = [place % 2 == 0 for place in range(12)]
    run_outcomes = outcomes([{k: v for k, v in row.items() if k != "val_acc"} for row in grid(solved=solved)])
    assert run_outcomes.table["outcome"].to_pylist() == ["solved", "unsolved"] * 6
    assert "solved" not in run_outcomes.table.column_names


def test_reserved_names_are_renamed() -> None:
    """A hyperparameter with the name of a reserved column is renamed."""
    run_outcomes = outcomes(grid(iterations=[100, 200] * 6))
    assert "iterations (hyperparameter)" in run_outcomes.table.column_names
    assert run_outcomes.by == ("lr", "optimizer", "iterations (hyperparameter)")


def mlflow_rows(rows: list[dict[str, Any]]) -> pa.Table:
    """Build the table of an MLflow experiment: each run's id, parent id, status and values."""
    return pa.table(
        {
            "run_id": [row["id"] for row in rows],
            "status": ["FINISHED"] * len(rows),
            "start_time": pa.array([1000 * place for place in range(len(rows))]),
            "end_time": pa.array([1000 * place + 500 for place in range(len(rows))]),
            "tags.mlflow.parentRunId": pa.array([row.get("parent") for row in rows], pa.string()),
            **{f"params.{name}": pa.array([row.get(name) for row in rows], pa.string()) for name in ("lr", "seed")},
            "metrics.val_acc": pa.array([row.get("val_acc") for row in rows], pa.float64()),
        }
    )


def test_nested_runs_with_seeds_are_the_trials() -> None:
    """Parents of runs with seeds are dropped; the nested runs inherit their parameters and keep their own times."""
    rows: list[dict[str, Any]] = [{"id": "top", "lr": "9"}]
    for lr in ("0.1", "0.2"):
        rows.append({"id": lr, "parent": "top", "lr": lr, "val_acc": 1.0})
        rows += [{"id": f"{lr}-{seed}", "parent": lr, "seed": str(seed), "val_acc": seed / 10} for seed in range(3)]
    run_outcomes = outcomes_of_runs(of_mlflow("sweep", mlflow_rows(rows)))
    assert run_outcomes.table["lr"].to_pylist() == [0.1] * 3 + [0.2] * 3
    assert run_outcomes.table["seed"].to_pylist() == [0, 1, 2] * 2
    assert run_outcomes.table["training_s"].to_pylist() == [0.5] * 6
    assert run_outcomes.table["trial_id"].to_pylist()[0] == "0.1-0"
    assert "left out: 3 runs with nested runs that have seeds" in run_outcomes.notices


def test_nested_runs_without_seeds_are_parts() -> None:
    """If the parent runs have the seeds, they are the trials, and the nested runs are dropped."""
    rows: list[dict[str, Any]] = []
    for lr, seed in itertools.product(("0.1", "0.2"), range(3)):
        rows.append({"id": f"{lr}-{seed}", "lr": lr, "seed": str(seed), "val_acc": seed / 10})
        rows += [{"id": f"{lr}-{seed}-{fold}", "parent": f"{lr}-{seed}", "val_acc": 0.0} for fold in range(2)]
    run_outcomes = outcomes_of_runs(of_mlflow("folds", mlflow_rows(rows)))
    assert run_outcomes.table["val_acc"].to_pylist() == [0.0, 0.1, 0.2] * 2
    assert "left out: 12 runs without a seed" in run_outcomes.notices


WANDB = """\
"Name","State","Notes","User","Tags","Created","Runtime","Sweep","batch_size","lr","random_seed","epoch","val/loss"
"calm-sea-4","finished","-","me","","2026-01-04T00:00:00.000Z","60","s1","32","0.1","1","10","0.3"
"calm-sea-3","crashed","-","me","","2026-01-03T00:00:00.000Z","6","s1","32","0.1","0","1","0.9"
"calm-sea-5","running","-","me","","2026-01-05T00:00:00.000Z","9","s1","32","0.1","2","1","0.8"
"calm-sea-2","finished","-","me","","2026-01-02T00:00:00.000Z","61","s1","32","0.01","1","10","NaN"
"calm-sea-1","finished","-","me","","2026-01-01T00:00:00.000Z","60","s1","32","0.01","0","10","0.2"
"""


def test_wandbs_table_of_runs_is_read(tmp_path: Path) -> None:
    """W&B's own columns aren't hyperparameters, its states mark failures, and its oldest run comes first."""
    (tmp_path / "wandb.csv").write_text(WANDB)
    run_outcomes = outcomes_of_runs(read_runs(tmp_path / "wandb.csv", is_wandb=True))
    assert run_outcomes.table.select(["seed", "outcome", "trial_id", "training_s", "lr"]).to_pylist() == [
        {"seed": 0, "outcome": "finished", "trial_id": "calm-sea-1", "training_s": 60, "lr": 0.01},
        {"seed": 1, "outcome": "diverged", "trial_id": "calm-sea-2", "training_s": 61, "lr": 0.01},
        {"seed": 0, "outcome": "failed", "trial_id": "calm-sea-3", "training_s": 6, "lr": 0.1},
        {"seed": 1, "outcome": "finished", "trial_id": "calm-sea-4", "training_s": 60, "lr": 0.1},
    ]
    assert (run_outcomes.by, run_outcomes.metric_options) == (("lr",), ["val/loss"])
    assert outcomes_of_runs(read_runs(tmp_path / "wandb.csv")).notices == run_outcomes.notices
    (tmp_path / "other.csv").write_text("lr,seed,val/loss\n0.1,0,0.5\n")
    with pytest.raises(InputError, match="isn't wandb's table of runs"):
        read_runs(tmp_path / "other.csv", is_wandb=True)


@pytest.mark.parametrize(("name", "words", "is_status"), [
    ("state", "finished,crashed,running", True), ("Status", "success,failed,pending", True),
    ("state", "solid,liquid,gas", False),
])  # fmt: skip
def test_a_tables_column_of_states_is_read(tmp_path: Path, name: str, words: str, is_status: bool) -> None:
    """A column with a state's name marks failures if its words are states; otherwise it is a hyperparameter."""
    rows = [f"{word},{seed},0.{5 + seed}" for word in words.split(",") for seed in range(3)]
    (tmp_path / "runs.csv").write_text("\n".join([f"{name},seed,val_acc", *rows]))
    run_outcomes = outcomes_of_runs(read_runs(tmp_path / "runs.csv"))
    assert run_outcomes.by == (() if is_status else (name,))
    assert run_outcomes.table["outcome"].to_pylist() == ["finished"] * (3 if is_status else 9)


@pytest.mark.parametrize("name", ["trials.csv", "trials.tsv", "trials.parquet"])
def test_reports_read_written_values_unchanged(tmp_path: Path, name: str) -> None:
    """Values round-trip, texts that a spreadsheet would evaluate are escaped in CSV, and nothing is overwritten."""
    rows = grid(kind=["=1+1", "plain", "-late"] * 4)
    rows[0]["val_acc"] = math.nan
    run_outcomes = outcomes(rows)
    write_outcomes(run_outcomes.table, tmp_path / name)
    read = read_source(tmp_path / name, metrics=["val_acc"]).table
    assert read["kind"].to_pylist() == ["=1+1", "plain", "-late"] * 4
    diverged, *values = read["val_acc"].to_pylist()
    assert (diverged, str(read["outcome"][0])) == (None, "diverged")
    assert [float(value) for value in values] == [row["val_acc"] for row in GRID[1:]]
    assert name.endswith(".parquet") or b'"\'=1+1"' in (tmp_path / name).read_bytes()
    with pytest.raises(InputError, match="nothing is overwritten"):
        write_outcomes(run_outcomes.table, tmp_path / name)
    with pytest.raises(InputError, match="must end in"):
        write_outcomes(run_outcomes.table, tmp_path / "trials.txt")


def test_a_parquet_file_of_runs_is_read(tmp_path: Path) -> None:
    """A table of runs may be Parquet with typed columns; other formats are refused."""
    pq.write_table(table_of(GRID), tmp_path / "runs.parquet")
    assert outcomes_of_runs(read_runs(tmp_path / "runs.parquet")).by == ("lr", "optimizer")
    (tmp_path / "runs.xlsx").write_bytes(b"PK")
    for name, message in (("runs.xlsx", "must end in .csv, .tsv or .parquet"), ("no.csv", "no such file")):
        with pytest.raises(InputError, match=message):
            read_runs(tmp_path / name)


@pytest.mark.parametrize("missing", ["<NA>", "NaT", "n/a", "None", ""])
def test_a_metric_may_be_missing_in_words(missing: str, tmp_path: Path) -> None:
    """All words for a missing value, those of pandas too, are a missing number of a metric."""
    rows = [f"{lr},{seed},{missing if seed == 3 else lr + seed / 10}" for lr in (1, 2) for seed in range(4)]
    (tmp_path / "runs.csv").write_text("\n".join(["lr,seed,val_acc", *rows]))
    outcomes = outcomes_of_runs(read_runs(tmp_path / "runs.csv"))
    assert outcomes.table["val_acc"].to_pylist()[2:4] == [1.2, None]


def test_a_weight_of_a_loss_is_not_a_metric() -> None:
    """A varying column such as loss_weight is a hyperparameter, so its runs aren't repeats."""
    rows = [{**row, "loss_weight": weight} for row in GRID for weight in (1, 10)]
    run_outcomes = outcomes(rows)
    assert set(run_outcomes.by) == {"lr", "optimizer", "loss_weight"}
    assert (len(run_outcomes.table), list(run_outcomes.metrics)) == (len(rows), ["val_acc"])
    odd = [{**row, "cost": cost} for row in GRID for cost in (1, 10)]
    with pytest.raises(InputError, match="if one of cost is a hyperparameter"):
        outcomes(odd)
    assert len(outcomes(odd, by=["lr", "optimizer", "cost"]).table) == len(odd)


@pytest.mark.parametrize("choices", [{"metrics": ["seed"]}, {"by": ["lr", "seed"]}])
def test_the_seed_is_neither_metric_nor_hyperparameter(choices: dict[str, Any]) -> None:
    """The error for a seed named as a metric or hyperparameter lists the available columns."""
    with pytest.raises(InputError, match="the runs have no column 'seed'; choose from lr, optimizer"):
        outcomes([dict(row) for row in GRID], **choices)


def test_a_crashed_run_without_a_judgement_failed() -> None:
    """If other runs have a success column, a crashed run with an empty one counts as failed."""
    rows = [{"lr": 0.1, "seed": seed, "solved": "true", "status": "finished"} for seed in range(3)]
    rows.append({"lr": 0.1, "seed": 3, "solved": None, "status": "crashed"})
    assert outcomes(rows).table["outcome"].to_pylist() == ["solved"] * 3 + ["failed"]


def test_non_text_outcomes_are_refused(tmp_path: Path) -> None:
    """Numbers in the outcome column of a Parquet file are refused, and each row is named, as in a report."""
    pq.write_table(pa.table({"lr": [0.1, 0.1], "seed": [0, 1], "outcome": [0, 1]}), tmp_path / "runs.parquet")
    with pytest.raises(InputError, match="row 1: outcome: 0 isn't one of solved, unsolved"):
        outcomes_of_runs(read_runs(tmp_path / "runs.parquet"))
