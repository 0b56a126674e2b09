"""Time and memory of `study report FILE` on a file of a million outcomes.

    python -m benchmarks.aggregate [--trials N] [--cells N [N ...]] [--rounds N] [--out FILE.csv]

The command runs as a process of its own. For each number of cells it reads two files: a CSV file with 8 columns, and a
Parquet file with every column of a study's results. Prints a row for each file, and writes it with `--out`: medians of
seconds, CPU seconds and peak memory, and the seconds of a report on a single trial.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from benchmarks.measure import command, finish, parser, published_cell, tell
from study.arrow import results_table
from study.records import Outcome, Result, Trial

ONE = results_table([Result(trial=Trial(published_cell("NMU", 100, 2), 0), outcome=Outcome.UNSOLVED)])
"""A trial's row, with every column."""
FEW, ALL = "csv, 8 columns", f"parquet, {ONE.num_columns} columns"
"""A minimal file, and one with every column of a study's results."""


def outcomes(trials: int, cells: int, seed: int = 1) -> pa.Table:
    """Draw a table of outcomes: `trials` rows, `trials // cells` seeds a cell, at success rates from 0 to 1.

    The rates rise by 1/96 from cell to cell, and start again after 97 cells. `cells` is from 1 to `trials`, and
    should divide it; else the remaining trials form more cells. ``solved_at``, in iterations, is null for an unsolved
    trial.
    """
    random = np.random.default_rng(seed)
    cell, number = np.divmod(np.arange(trials), trials // cells)
    solved = random.random(trials) < (cell % 97) / 96
    solved_at = np.minimum(np.ceil(random.gamma(8.0, 2e5, trials) / 1000) * 1000, 5_000_000)
    error = random.beta(0.5, 50.0, trials) / 2
    return pa.table(
        {
            "operation": np.where(cell % 2, "add", "mul"),
            "model": np.where(cell // 2 % 2, "NMU", "NAU"),
            "hidden_size": cell // 4 + 2,
            "seed": number,
            "solved": solved,
            "solved_at": pa.array(solved_at, mask=~solved),
            "sparsity_error": error,
            "training_s": random.gamma(4.0, 10.0, trials),
        }
    )


def all_columns(table: pa.Table) -> pa.Table:
    """Convert a table of `outcomes` to one with all columns of a study's results.

    Columns that both have are copied. Outcomes, iterations of success and errors follow from the table. Each row has a
    trial id of its own; a hundred successive rows have the same cell id. The other columns are constant.
    """
    given: dict[str, Any] = {name: table[name] for name in table.column_names if name in ONE.column_names}
    given["trial_id"] = pa.array([f"{number:032x}" for number in range(len(table))])
    given["cell_id"] = pa.array(np.char.add("cell", (np.arange(len(table)) // 100).astype(str)))
    given["outcome"] = pa.array(np.where(np.asarray(table["solved"]), "solved", "unsolved"))
    given["solved_at_iteration"] = table["solved_at"].cast(pa.int64())
    given["trained_iterations"] = given["iterations"] = pa.repeat(5_000_000, len(table))
    for name in ("test_mse", "validation_mse"):
        given[name] = table["sparsity_error"]
    columns = [given.get(name, pa.repeat(ONE[name][0], len(table))) for name in ONE.column_names]
    return pa.table(columns, names=ONE.column_names).cast(ONE.schema)


def measure_report(file: Path, out: Path) -> tuple[float, float, float]:
    """Run `study report` on a file, in three formats, into the folder `out`.

    Returns:
        The seconds, the CPU seconds in user mode, and the peak memory in MiB.

    Raises:
        subprocess.CalledProcessError: if the command fails.
    """
    formats = [word for kind in ("csv", "parquet", "latex") for word in ("--format", kind)]
    return command(["study", "report", str(file), "--out", str(out), *formats])


def main(words: Sequence[str] | None = None) -> None:
    """Measure `study report` on files of outcomes; print the table, and write it with `--out`.

    Raises:
        subprocess.CalledProcessError: if a report fails.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=3, seconds=0)
    options.add_argument("--trials", type=int, default=1_000_000)
    options.add_argument("--cells", type=int, nargs="+", default=[1000, 10_000])
    arguments = options.parse_args(words)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder) / "nothing.csv"
        pacsv.write_csv(outcomes(1, 1), nothing)
        for cells in arguments.cells:
            table = outcomes(arguments.trials, cells)
            few, everything = Path(folder) / f"few-{cells}.csv", Path(folder) / f"all-{cells}.parquet"
            pacsv.write_csv(table, few)
            pq.write_table(all_columns(table), everything)
            measured: dict[str, list[tuple[float, ...]]] = {FEW: [], ALL: []}
            for _ in range(arguments.rounds):
                start_s = measure_report(nothing, Path(folder) / "nothing")[0]
                for kind, file in ((FEW, few), (ALL, everything)):
                    measured[kind].append((*measure_report(file, Path(folder) / "out"), start_s))
            for kind, turns in measured.items():
                wall_s, user_s, peak_mib, start_s = (statistics.median(column) for column in zip(*turns, strict=True))
                tell(f"{kind}, {cells} cells: {wall_s:.1f} s, {user_s:.1f} s of CPU, {peak_mib:.0f} MiB")
                rows.append(
                    {
                        "file": kind,
                        "trials": arguments.trials,
                        "cells": cells,
                        "whole_s": f"{wall_s:.2f}",
                        "user_s": f"{user_s:.2f}",
                        "start_s": f"{start_s:.2f}",
                        "peak_mib": f"{peak_mib:.0f}",
                    }
                )
    finish(rows, arguments)


if __name__ == "__main__":
    main()
