"""Laws of the comparison with the published numbers."""

from __future__ import annotations

import pytest

from study import statistics
from study.report import compare


def test_the_simple_study_is_compared_with_table_1(published_cell, summaries_of):
    """Each model of the simple task meets its published count; the p-value is Fisher's."""
    counts = {"NMU": 94, "NAC-mul": 13, "NALU": 26}
    cells = [(published_cell(model), {"solved": k, "unsolved": 100 - k}) for model, k in counts.items()]
    compared = compare(summaries_of(*cells))
    assert [(c.summary.cell.model, c.published.solved, c.published.seeds) for c in compared] == [
        (model, k, 100) for model, k in counts.items()
    ]
    assert {c.p_value for c in compared} == {1.0}
    assert {c.verdict for c in compared} == {"agrees"}


def test_a_rate_that_differs_is_said_to(published_cell, summaries_of):
    """A count far from the published one differs, and Holm's correction is over all compared cells."""
    cells = [
        (published_cell("NMU"), {"solved": 50, "unsolved": 50}),
        (published_cell("NALU"), {"solved": 15, "unsolved": 85}),
    ]
    first, second = compare(summaries_of(*cells))
    assert first.p_value == statistics.fisher_exact(50, 100, 94, 100)
    assert [first.p_adjusted, second.p_adjusted] == statistics.holm([first.p_value, second.p_value])
    assert (first.verdict, second.verdict) == ("differs", "agrees")


def test_a_schedule_that_never_starts_is_off(published_cell, summaries_of):
    """In the simple task the regulariser is never on: without it the cell is the same."""
    off = dict.fromkeys(("sparsity_strength", "sparsity_start", "sparsity_end", "sparsity_shape"))
    assert len(compare(summaries_of((published_cell("NMU", **off), {"solved": 9})))) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 3},
        {"iterations": 100_000},
        {"learning_rate": 1e-2},
        {"init_variance": 0.01},
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
    ],
)
def test_another_protocol_is_not_compared(published_cell, summaries_of, change):
    """A cell that differs from the published protocol in anything that matters has no published numbers."""
    assert compare(summaries_of((published_cell("NMU", **change), {"solved": 9, "unsolved": 1}))) == []


def test_what_changes_no_outcome_is_compared(published_cell, summaries_of):
    """Stopping decided trials, and a window longer than the run, leave the cell a published one."""
    cell = published_cell("NMU", stop="when_decided", best_step_window=201)
    assert len(compare(summaries_of((cell, {"solved": 9})))) == 1


def test_cells_without_finished_trials_are_not_compared(published_cell, summaries_of):
    """Nothing finished, nothing to compare; and no cells, no comparison."""
    assert compare(summaries_of((published_cell("NMU"), {"failed": 3, "pending": 2}))) == []
    assert compare([]) == []


def test_the_nmu_is_compared_with_the_ablation_when_hidden_size_is_swept(arithmetic_cell, summaries_of):
    """A hidden-size sweep of the NMU meets the 50-seed curve; other models meet the figure's."""
    cells = [
        (arithmetic_cell(model, hidden_size=h), {"solved": 5, "unsolved": 5})
        for model in ("NMU", "NAC-mul-NMU")
        for h in (2, 6)
    ]
    compared = compare(summaries_of(*cells))
    assert [(c.published.table, c.published.solved, c.published.seeds) for c in compared] == [
        ("hidden_size_ablation", 50, 50),
        ("hidden_size_ablation", 37, 50),
        ("hidden_size", 34, 38),
        ("hidden_size", 0, 28),
    ]


def test_one_hidden_size_is_compared_with_the_published_seeds(arithmetic_cell, summaries_of):
    """At hidden size 2 alone the published seeds are the reference, for + and for x."""
    cells = [
        (arithmetic_cell("NAU", operation="add"), {"solved": 5}),
        (arithmetic_cell("NMU"), {"solved": 5}),
    ]
    compared = compare(summaries_of(*cells))
    assert [(c.published.table, c.published.solved, c.published.seeds) for c in compared] == [
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
def test_ablations_meet_their_own_curves(arithmetic_cell, summaries_of, change, solved):
    """Without clipping or without sparsity the NMU is compared with the curve of that ablation."""
    (compared,) = compare(summaries_of((arithmetic_cell("NMU", hidden_size=3, **change), {"solved": 9})))
    assert (compared.published.table, compared.published.solved) == ("hidden_size_ablation", solved)
