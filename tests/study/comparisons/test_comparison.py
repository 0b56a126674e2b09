"""Comparisons with published numbers and with other studies."""

from __future__ import annotations

import pyarrow as pa
import pytest

from study import statistics
from study.arrow import results_table
from study.errors import InputError
from study.records import Outcome, Result, Trial
from study.reports import groups, with_groups, with_published, with_study
from study.summaries.aggregate import aggregate_by
from study.trials.table import TrialTable
from tests.study.builders import arithmetic_cell, published_cell, summaries_of, summarised, table_of


def compared_cells(summaries):
    """Compare cells with the published ones."""
    return with_published(summaries).comparisons


def test_the_simple_study_is_compared_with_table_1():
    """Each model of the simple task is compared with its published count by Fisher's test."""
    counts = {"NMU": 94, "NAC-mul": 13, "NALU": 26}
    cells = [(published_cell(model), {"solved": k, "unsolved": 100 - k}) for model, k in counts.items()]
    compared = compared_cells(summaries_of(*cells))
    assert [(c.summary.cell.model, c.beside.solved, c.beside.judged) for c in compared] == [
        (model, k, 100) for model, k in counts.items()
    ]
    assert {c.finding.p_value for c in compared} == {1.0}
    assert {c.verdict for c in compared} == {"agrees"}


def test_printed_means_have_a_caution():
    """Published seeds are estimated by the same method; printed means alone get a caution about their method."""
    cells = [(cell, {"solved": 9, "unsolved": 1}) for cell in (published_cell("NMU"), arithmetic_cell("NMU"))]
    printed, from_seeds = (c.beside for c in compared_cells(summaries_of(*cells)))
    assert "and one at 1,020,000 it is 86,000 instead of 30,051" in printed.caution
    as_printed = statistics.as_published([4000] * 38 + [1_020_000], [0.1, 0.2] * 19 + [0.1], 39)
    assert as_printed.solved_at_mean == pytest.approx(86_000, rel=1e-3)
    assert (from_seeds.source, from_seeds.caution) == ("static_seeds", "")


def test_a_different_rate_is_reported():
    """A count far from the published one differs, with Holm's correction over all compared cells."""
    cells = [
        (published_cell("NMU"), {"solved": 50, "unsolved": 50}),
        (published_cell("NALU"), {"solved": 15, "unsolved": 85}),
    ]
    first, second = compared_cells(summaries_of(*cells))
    assert first.finding.p_value == statistics.fisher_exact(50, 100, 94, 100)
    assert [first.finding.p_adjusted, second.finding.p_adjusted] == statistics.holm(
        [first.finding.p_value, second.finding.p_value]
    )
    assert (first.verdict, second.verdict) == ("differs", "agrees")


def test_an_unused_regulariser_does_not_prevent_the_comparison():
    """A cell without a regulariser matches the published cell, whose regulariser the simple task never turns on."""
    off = dict.fromkeys(("sparsity_strength", "sparsity_start", "sparsity_end", "sparsity_shape"))
    assert len(compared_cells(summaries_of((published_cell("NMU", **off), {"solved": 9})))) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 3},
        {"iterations": 100_000},
        {"learning_rate": 1e-2},
        {"init_variance": 0.01},
        {"init_range": ((0.5, 1.0),)},
        {"init_signs": "two_negative"},
        {"batch_size": 64},
        {"optimizer": "sgd"},
        {"interpolation_range": ((0.0, 1.0),)},
        {"extrapolation_range": ((2.0, 5.0),)},
        {"operation": "add"},
        {"bounds": "regularized", "out_of_bounds_strength": 1.0},
        {"sparsity_start": 0, "sparsity_end": 10},
        {"success_epsilon": 1e-4},
        {"evaluate_every": 100},
        {"best_step_window": 10},
        {"distribution": "normal", "interpolation_mean": 1.5, "extrapolation_mean": 4.0, "deviation": 0.1},
        {"l1_strength": 0.01, "l1_first_strength": 0.0},
        {"clip_norm": 1e-3},
        {"clip_value": 1e-3},
    ],
)
def test_another_protocol_is_not_compared(change):
    """A cell that differs from the published protocol in an outcome-relevant field has no published numbers."""
    assert compared_cells(summaries_of((published_cell("NMU", **change), {"solved": 9, "unsolved": 1}))) == ()


def test_fields_without_effect_on_outcomes_are_ignored():
    """A cell that stops decided trials, or whose window is longer than the run, is still compared."""
    cell = published_cell("NMU", stop="when_decided", best_step_window=201)
    assert len(compared_cells(summaries_of((cell, {"solved": 9})))) == 1


def test_cells_without_finished_trials_are_not_compared():
    """Without finished trials, or without cells, the list of comparisons is empty."""
    assert compared_cells(summaries_of((published_cell("NMU"), {"failed": 3, "pending": 2}))) == ()
    assert compared_cells([]) == ()


def test_the_nmu_is_compared_with_the_ablation_when_hidden_size_is_swept():
    """A hidden-size sweep of the NMU is compared with the 50-seed curve, other models with the figure."""
    cells = [
        (arithmetic_cell(model, hidden_size=h), {"solved": 5, "unsolved": 5})
        for model in ("NMU", "NAC-mul-NMU")
        for h in (2, 6)
    ]
    compared = compared_cells(summaries_of(*cells))
    assert [(c.beside.source, c.beside.solved, c.beside.judged) for c in compared] == [
        ("hidden_size_ablation", 50, 50),
        ("hidden_size_ablation", 37, 50),
        ("hidden_size", 34, 38),
        ("hidden_size", 0, 28),
    ]


def test_one_hidden_size_is_compared_with_the_published_seeds():
    """A single hidden size of 2 is compared with the published seeds, for + and for x."""
    cells = [(arithmetic_cell("NAU", operation="add"), {"solved": 5}), (arithmetic_cell("NMU"), {"solved": 5})]
    compared = compared_cells(summaries_of(*cells))
    assert [(c.beside.source, c.beside.solved, c.beside.judged) for c in compared] == [
        ("static_seeds", 100, 100),
        ("static_seeds", 98, 100),
    ]


@pytest.mark.parametrize(
    ("change", "solved"),
    [
        ({}, 46),
        ({"sparsity_strength": 0.0}, 0),
        ({"bounds": "regularized", "out_of_bounds_strength": 0.0}, 49),
        ({"sparsity_strength": None, "bounds": "regularized", "out_of_bounds_strength": 0.0}, 50),
    ],
)
def test_ablations_meet_their_own_curves(change, solved):
    """An NMU without clipping or sparsity is compared with the curve of that ablation."""
    (compared,) = compared_cells(summaries_of((arithmetic_cell("NMU", hidden_size=3, **change), {"solved": 9})))
    assert (compared.beside.source, compared.beside.solved) == ("hidden_size_ablation", solved)


def test_another_study_of_the_same_cells_is_compared_cell_by_cell():
    """Cells are matched by their fields; the difference, its interval and both tests use their trials."""
    cells = [published_cell("NMU", hidden_size=h) for h in (2, 3, 4)]
    own_cells = summaries_of(*((cell, {"solved": 40, "unsolved": 10}) for cell in cells))
    other_cells = summaries_of((cells[1], {"solved": 10, "unsolved": 40}), (cells[0], {"solved": 40, "unsolved": 10}))
    against = with_study(own_cells, other_cells, "other", (table_of(own_cells), table_of(other_cells, 500_000)))
    first, second = against.comparisons
    assert (first.row, second.row) == (0, 1)
    assert (first.finding.estimate, second.finding.estimate) == pytest.approx((0.0, 0.6))
    assert second.finding.interval == statistics.newcombe(40, 50, 10, 50)
    assert (first.verdict, second.verdict) == ("agrees", "differs")
    tests = [
        statistics.log_rank([s.times.known("iterations") for s in pair]).p_value
        for pair in ((own_cells[0], other_cells[1]), (own_cells[1], other_cells[0]))
    ]
    assert [first.log_rank_p, second.log_rank_p] == pytest.approx(statistics.holm(tests), rel=1e-9)
    assert against.notes == ("1 of 3 cells have no finished counterpart",)


def test_studies_that_differ_in_a_fixed_value_are_compared_by_the_sweep():
    """Hidden sizes are matched despite different learning rates; a note names the rates."""
    own_cells = summaries_of(*((published_cell("NMU", hidden_size=h), {"solved": 3}) for h in (2, 3)))
    other_cells = summaries_of(
        *((published_cell("NMU", hidden_size=h, learning_rate=0.01), {"unsolved": 3}) for h in (3, 2))
    )
    against = with_study(own_cells, other_cells, "other", (table_of(own_cells), table_of(other_cells, 500_000)))
    assert [c.beside.solved for c in against.comparisons] == [0, 0]
    assert against.notes == ("learning rate: 0.001 here, 0.01 in other",)


def test_every_difference_is_noted():
    """Each unmatched hyperparameter is named with the values of both studies."""
    own_cells = summaries_of((published_cell("NMU"), {"solved": 3}))
    other_cells = summaries_of((published_cell("NMU", learning_rate=0.01, iterations=1000), {"solved": 3}))
    assert with_study(own_cells, other_cells, "other", (table_of(own_cells), table_of(other_cells, 500_000))).notes == (
        "learning rate: 0.001 here, 0.01 in other",
        "iterations: 200,000 here, 1,000 in other",
    )


def test_studies_without_a_cell_in_common_are_refused():
    """A comparison without a matching cell is an error."""
    own_cells = summaries_of((published_cell("NMU"), {"solved": 3}))
    other_cells = summaries_of((published_cell("NAU"), {"solved": 3}))
    with pytest.raises(InputError, match="no cell of other has the same"):
        with_study(own_cells, other_cells, "other", (table_of(own_cells), table_of(other_cells)))


def test_groups_are_compared_by_their_columns():
    """Rows of two files are matched by their columns."""

    def table(solved: list[bool]) -> pa.Table:
        return pa.table(
            {
                "model": ["A"] * 3 + ["B"] * 3,
                "outcome": ["solved" if s else "unsolved" for s in solved],
                "solved_at_iteration": [5.0 if s else None for s in solved],
                "sparsity_error": [0.1 if s else None for s in solved],
                "training_s": [None] * 6,
                "trained_iterations": [9.0] * 6,
                "stopped_early": [False] * 6,
            }
        )

    tables = [TrialTable(table(solved), by=("model",)) for solved in ([True] * 4 + [False] * 2, [True] * 6)]
    own_rows, other_rows = (groups(aggregate_by(trials), ["model"]) for trials in tables)
    comparisons = with_groups(own_rows, other_rows, "other.csv", (tables[0], tables[1])).comparisons
    assert [(c.summary.solved, c.beside.solved) for c in comparisons] == [(3, 3), (1, 3)]


def table_of_seeds(seeds: list[int], solved: list[bool]) -> TrialTable:
    """Make trials of one row, solved at iteration 5 or observed until iteration 9."""
    count = len(seeds)
    columns = {
        "seed": seeds,
        "outcome": ["solved" if is_solved else "unsolved" for is_solved in solved],
        "solved_at_iteration": [5.0 if is_solved else None for is_solved in solved],
        "training_s": pa.nulls(count, pa.float64()),
        "trained_iterations": [9.0] * count,
        "stopped_early": [False] * count,
    }
    return TrialTable(pa.table(columns), by=())


def compared_rows(own_trials: TrialTable, other_trials: TrialTable):
    """Compare two tables with one row each, as files."""
    rows, others = (groups(aggregate_by(trials), trials.by) for trials in (own_trials, other_trials))
    (comparison,) = with_groups(rows, others, "other.csv", (own_trials, other_trials)).comparisons
    return comparison


def test_files_of_one_row_are_compared():
    """Without columns that distinguish rows, all trials of a file are one row and tested as such."""
    seeds = list(range(12))
    compared = compared_rows(table_of_seeds(seeds, [True] * 12), table_of_seeds(seeds, [False] * 12))
    assert (compared.finding.test, compared.finding.p_value) == ("McNemar", statistics.mcnemar(12, 0))
    assert compared.verdict == "differs"


def test_times_of_repeated_seeds_are_not_tested():
    """Repeated trials of a seed aren't independent, so their times aren't tested."""
    solved = [True] * 8 + [False] * 4
    once, twice = list(range(12)), [*range(6), *range(6)]
    assert compared_rows(table_of_seeds(once, solved), table_of_seeds(once, solved[::-1])).log_rank_p is not None
    assert compared_rows(table_of_seeds(once, solved), table_of_seeds(twice, solved[::-1])).log_rank_p is None


def test_studies_with_the_same_seeds_are_compared_seed_by_seed():
    """A seed that both studies have is one pair, even with different tables; times are paired, too."""

    def study_of(letters, at):
        results = [
            Result(
                trial=Trial(published_cell("NMU"), seed),
                outcome=Outcome.SOLVED if letter == "s" else Outcome.UNSOLVED,
                solved_at_iteration=at + 1000 * seed if letter == "s" else None,
                iterations=200_000,
                training_s=1.0,
            )
            for seed, letter in enumerate(letters)
        ]
        table = results_table(results)
        return summarised(table), TrialTable(table)

    (own_cells, table), (other_cells, other_table) = study_of("s" * 9 + "u" * 3, 1000), study_of("uuuuuuusssuu", 5000)
    (paired,) = with_study(own_cells, other_cells, "other", (table, other_table)).comparisons
    assert (paired.finding.test, paired.finding.seeds) == ("McNemar", 12)
    assert (paired.finding.p_value, paired.finding.estimate) == (statistics.mcnemar(7, 1), pytest.approx(6 / 12))
    assert paired.finding.interval == statistics.mcnemar_interval(7, 1, 12)
    scores = statistics.paired_log_rank(
        [table.cell(own_cells[0].cell_id).times, other_table.cell(other_cells[0].cell_id).times]
    )
    assert paired.log_rank_p == scores.p_value
    (independent,) = with_study(
        own_cells, other_cells, "other", (table_of(own_cells), table_of(other_cells, 500_000))
    ).comparisons
    assert (independent.finding.test, independent.finding.seeds) == ("Fisher", None)
    assert independent.finding.p_value == statistics.fisher_exact(9, 12, 3, 12)
