"""Warnings about plans with fewer iterations than similar cells needed."""

from __future__ import annotations

import pytest

from study.summaries.solved_times import SolvedTimes, too_few_iterations
from tasks.arithmetic.own_family import ARITHMETIC
from tasks.arithmetic.published.rows import published_times, trained_cell

CELL = trained_cell("simple", "mul", "NMU", hidden_size=2)
SEEDS = SolvedTimes(CELL, "study a", solved=8, mean=900.0, first=600)
MEAN = SolvedTimes(CELL, "a table", solved=8, mean=900.0)


@pytest.mark.parametrize(("times", "least"), [([SEEDS], 600), ([MEAN], 900), ([SEEDS, MEAN], 600)])
def test_a_warning_begins_below_the_iterations_needed(times: list[SolvedTimes], least: int) -> None:
    """A plan is warned about below the iterations of the first solved trial, or else below their mean."""
    assert too_few_iterations([CELL.replace(iterations=least)], times, ARITHMETIC) == []
    [sentence] = too_few_iterations([CELL.replace(iterations=least - 1)], times, ARITHMETIC)
    assert sentence.startswith(f"{least - 1} iterations may be too few for NMU. In ")


@pytest.mark.parametrize(
    "values",
    [{"operation": "add"}, {"input_size": 10}, {"learning_rate": 1e-2}, {"optimizer": "sgd"}, {"success_epsilon": 0.1}],
)
def test_cells_of_other_questions_are_ignored(values: dict[str, object]) -> None:
    """Cells with another question, criterion, learning rate, optimiser, model or task are ignored."""
    short = CELL.replace(iterations=10)
    assert too_few_iterations([short.replace(**values)], [SEEDS], ARITHMETIC) == []
    assert (
        too_few_iterations([trained_cell("simple", "mul", "NALU", 2).replace(iterations=10)], [SEEDS], ARITHMETIC) == []
    )
    assert too_few_iterations([short.replace(batch_size=16, init_variance=0.1)], [SEEDS], ARITHMETIC) != []


def test_the_nearest_cells_of_a_source_count() -> None:
    """A source is represented by its cells with the fewest different hyperparameters, and of these the nearest size."""
    near = SolvedTimes(CELL.replace(hidden_size=4), "study a", solved=1, mean=5000.0, first=5000)
    other = SolvedTimes(CELL.replace(hidden_size=5, batch_size=16), "study a", solved=2, mean=9.0, first=8)
    cells = [CELL.replace(hidden_size=size, iterations=1000) for size in (2, 5, 6)]
    assert too_few_iterations(cells, [SEEDS, near, other], ARITHMETIC) == [
        "1,000 iterations may be too few for NMU (2 of 3 cells). "
        "In study a (hidden units 4), the only solved trial was solved at iteration 5,000."
    ]


def test_the_published_protocol_is_long_enough() -> None:
    """No published cell has fewer iterations than its own trials needed."""
    cells = [times.cell for times in published_times()]
    assert len(cells) > 30
    assert too_few_iterations(cells, published_times(), ARITHMETIC) == []
