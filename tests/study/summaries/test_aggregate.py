"""Aggregation of trials to cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from study import statistics
from study.arrow import results_table
from study.errors import InputError
from study.records import Cell, Outcome, Result, Trial
from study.statistics.samples import intervals
from study.summaries.aggregate import CellSummary
from study.summaries.metrics import MetricSummary
from study.trials.grouping import group_codes
from tasks.arithmetic import ArithmeticTask
from tests.study.builders import published_cell, summarised

METRICS = ArithmeticTask.metrics

CELLS = [published_cell(hidden_size=h) for h in (3, 2, 10)]


def result(cell: Cell, seed: int, outcome: Outcome = Outcome.SOLVED, **content: object) -> Result:
    """Build a result; solved trials have a time and a sparsity error that grow with the seed."""
    numbers = {"solved_at_iteration": 1000 * (seed + 1), "metrics": {"sparsity_error": 1e-4 * (seed + 1)}}
    measures = numbers if outcome is Outcome.SOLVED else {}
    return Result(trial=Trial(cell, seed), outcome=outcome, **{"training_s": 1.5, **measures, **content})


def mixed() -> list[Result]:
    """Build results of every outcome in two cells."""
    outcomes = [Outcome.SOLVED] * 4 + [Outcome.UNSOLVED] * 2 + [Outcome.DIVERGED, Outcome.FAILED]
    return [result(cell, seed, outcome) for cell in CELLS[:2] for seed, outcome in enumerate(outcomes)]


def test_every_trial_is_counted_once():
    """Outcomes and pending trials add up to the planned seeds, and the rate covers finished trials."""
    summary = summarised(results_table(mixed()), METRICS, planned={CELLS[0]: 10})[0]
    assert (summary.solved, summary.unsolved, summary.diverged, summary.failed) == (4, 2, 1, 1)
    assert summary.pending == 2
    assert summary.seeds == 10
    assert summary.ended == summary.judged == 7
    assert summary.success_rate == pytest.approx(4 / 7)
    assert summary.success_rate_interval == statistics.wilson(4, 7)
    assert not summary.complete


def test_statistics_are_of_the_solved_trials_alone():
    """Statistics of solved-at and sparsity error cover solved trials; seconds cover ended trials."""
    extra = [
        result(CELLS[0], 20, Outcome.UNSOLVED, metrics={"sparsity_error": 0.5}, solved_at_iteration=77),
        result(CELLS[0], 21, Outcome.FAILED, training_s=1e9),
    ]
    summary = summarised(results_table([*mixed(), *extra]), METRICS)[0]
    assert summary.solved_at_median == 2500
    assert summary.solved_at_mean == 2500
    interval = statistics.gamma_mean_intervals([1000, 2000, 3000, 4000])
    assert [summary.solved_at_interval] == intervals(interval)
    assert summary.metrics["sparsity_error"].mean == pytest.approx(2.5e-4)
    interval = statistics.beta_mean_intervals([1e-4, 2e-4, 3e-4, 4e-4])
    assert [summary.metrics["sparsity_error"].mean_interval] == intervals(interval)
    assert summary.training_s_mean == 1.5


def test_order_of_rows_changes_nothing_but_the_order_of_cells():
    """Shuffled rows and chunks give the same cells; planned cells come in planned order."""
    table = results_table(mixed())
    order = np.random.default_rng(3).permutation(table.num_rows)
    shuffled = table.take(pa.array(order))
    shuffled = pa.concat_tables([shuffled.slice(0, 5), shuffled.slice(5)])
    planned = dict.fromkeys(CELLS, 8)
    # a mean's last bit may depend on the order of its terms
    assert [s.cell for s in summarised(shuffled, METRICS, planned=planned)] == CELLS
    for ours, theirs in zip(
        summarised(table, METRICS, planned=planned), summarised(shuffled, METRICS, planned=planned), strict=True
    ):
        assert (ours.solved, ours.pending, ours.solved_at_median) == (
            theirs.solved,
            theirs.pending,
            theirs.solved_at_median,
        )
        assert ours.metrics["sparsity_error"].mean_interval == pytest.approx(
            theirs.metrics["sparsity_error"].mean_interval, nan_ok=True
        )


def test_without_a_plan_cells_come_as_first_seen():
    """Without a plan, cells are in the order of the rows, and nothing is pending."""
    summaries = summarised(results_table(mixed()), METRICS)
    assert [s.cell for s in summaries] == CELLS[:2]
    assert all(s.pending == 0 and s.seeds == 8 for s in summaries)


def test_a_planned_cell_without_results_is_all_pending():
    """A planned cell without trials is a row with pending trials and without numbers."""
    summary = summarised(results_table([]), METRICS, planned={CELLS[2]: 5})[0]
    none = {"sparsity_error": MetricSummary(metric=METRICS["sparsity_error"])}
    assert summary == CellSummary(cell=CELLS[2], seeds=5, pending=5, metrics=none)
    assert summary.success_rate is None
    assert not summary.complete


def test_cells_outside_the_plan_are_kept_last():
    """Unplanned results come after the planned cells."""
    summaries = summarised(results_table(mixed()), METRICS, planned={CELLS[2]: 1, CELLS[1]: 8})
    assert [s.cell for s in summaries] == [CELLS[2], CELLS[1], CELLS[0]]
    assert summaries[-1].pending == 0


@pytest.mark.parametrize(
    ("outcomes", "rate"),
    [
        ([Outcome.DIVERGED] * 3, 0.0),
        ([Outcome.UNSOLVED] * 3, 0.0),
        ([Outcome.FAILED] * 3, None),
        ([Outcome.SOLVED], 1.0),
    ],
)
def test_degenerate_cells_have_defined_answers(outcomes, rate):
    """The rate is zero if all trials diverged and None if all failed; a single solved trial has no interval."""
    rows = [result(CELLS[0], seed, outcome) for seed, outcome in enumerate(outcomes)]
    summary = summarised(results_table(rows), METRICS)[0]
    assert summary.success_rate == rate
    assert (summary.success_rate_interval is None) == (rate is None)
    assert summary.solved_at_interval is None
    assert summary.metrics["sparsity_error"].mean_interval is None
    assert (summary.solved_at_mean is None) == (rate != 1.0)
    assert (summary.training_s_mean is None) == (rate is None)


def test_stopped_trials_are_counted():
    """Trials that ended early are counted, and the report shows the count."""
    rows = [result(CELLS[0], seed, stopped_early=seed < 2) for seed in range(5)]
    assert summarised(results_table(rows), METRICS)[0].stopped_early == 2


def test_a_trial_with_two_rows_is_refused():
    """A duplicate trial would count twice: the error names it."""
    rows = [*mixed(), result(CELLS[0], 0, Outcome.UNSOLVED)]
    with pytest.raises(InputError, match=rows[0].trial.id):
        summarised(results_table(rows), METRICS)


def test_missing_columns_are_named():
    """A table without required columns is refused with all their names."""
    with pytest.raises(InputError, match="columns task, outcome"):
        summarised(results_table(mixed()).drop_columns(["outcome", "task"]), METRICS)


def test_a_foreign_outcome_is_refused():
    """An invalid outcome is named."""
    table = results_table(mixed())
    column = table.column_names.index("outcome")
    foreign = pa.array(["solved", "crashed", None] + ["solved"] * (table.num_rows - 3))
    with pytest.raises(InputError, match="'crashed'"):
        summarised(table.set_column(column, "outcome", foreign), METRICS)


def test_a_cell_that_contradicts_its_id_is_refused():
    """Rows whose columns contradict their cell id are rejected."""
    table = results_table(mixed()[:1])
    column = table.column_names.index("learning_rate")
    with pytest.raises(InputError, match=CELLS[0].id):
        summarised(table.set_column(column, "learning_rate", pa.array([0.5])), METRICS)


def test_many_rows_are_summarised_without_a_row_at_a_time():
    """200,000 rows give the same summary as their repeated pattern."""
    table = results_table(mixed())
    copies = 12_500
    ids = pa.array([f"{copy}-{row}" for copy in range(copies) for row in range(table.num_rows)])
    large = pa.concat_tables([table] * copies)
    large = large.set_column(large.column_names.index("trial_id"), "trial_id", ids)
    first = summarised(large, METRICS)[0]
    assert (first.solved, first.failed, first.seeds) == (4 * copies, copies, 8 * copies)
    assert first.solved_at_median == 2500


@pytest.mark.parametrize("columns", [1, 2, 7])
def test_rows_are_numbered_by_any_number_of_columns(columns):
    """Rows equal in all columns have equal numbers, even if 64 bits can't number all combinations."""
    rows = np.tile(np.arange(4096)[:, None], columns)  # seven columns of 4096 values have 2^84 combinations
    others = np.full((4096, columns), 5)
    others[:, 0] = np.arange(4096)
    rows = np.concatenate([rows, others, rows[:9]])
    codes_by_row: dict[tuple[int, ...], int] = {}
    expected = [codes_by_row.setdefault(tuple(row), len(codes_by_row)) for row in rows.tolist()]
    table = pa.table({f"{place}": column for place, column in enumerate(rows.T)})
    assert group_codes(table, table.column_names).tolist() == expected
