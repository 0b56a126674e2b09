"""Power of a study's seeds, from the rates so far or the published ones."""

from __future__ import annotations

import pytest

from study import statistics
from study.arrow import results_table
from study.comparisons.design import design
from study.records import Outcome, Result, Trial
from study.reports import cell_rows
from study.trials.table import TrialTable
from tests.study.builders import published_cell, summaries_of, summarised


def known(**solved_by_model):
    """Build rows and trials of judged cells: by model, one letter `s` or `u` per seed."""
    results = [
        Result(
            trial=Trial(published_cell(model, iterations=100_000), seed),
            outcome=Outcome.SOLVED if letter == "s" else Outcome.UNSOLVED,
            solved_at_iteration=1000 if letter == "s" else None,
            iterations=100_000,
            training_s=1.0,
        )
        for model, letters in solved_by_model.items()
        for seed, letter in enumerate(letters)
    ]
    table = results_table(results)
    return cell_rows(summarised(table, {}), {}), TrialTable(table)


def test_pairs_have_the_power_at_the_rates_so_far():
    """Rates are (k + 1/2)/(n + 1), and φ is the correlation of outcomes over shared seeds."""
    rows, trials = known(NMU="s" * 15 + "u" * 5, NALU="s" * 11 + "u" * 9)
    plan = design(rows, trials, 30, most_pairs=5)
    [pair] = plan.pairs
    assert (pair.first, pair.second) == ("NMU", "NALU")
    assert pair.rates == pytest.approx((15.5 / 21, 11.5 / 21))
    phi = (11 * 5) / (15 * 5 * 11 * 9) ** 0.5
    assert pair.correlation == pytest.approx(phi)
    rates = statistics.discordant_rates(*pair.rates, phi)
    assert pair.power == statistics.mcnemar_power(*rates, 30)
    assert pair.seeds == statistics.seeds_for(*rates)
    assert (plan.known, plan.detectable, plan.comparisons) == (1, 0, 1)


def test_rates_of_cells_without_trials_are_the_published_ones():
    """Cells without trials use the published rates; 100 seeds distinguish these."""
    rows = cell_rows(summaries_of(*((published_cell(model), {"pending": 3}) for model in ("NMU", "NALU"))), {})
    plan = design(rows, None, 100, most_pairs=5, wanted=0.1)
    assert (plan.known, plan.detectable, plan.pairs) == (1, 1, [])
    assert plan.wanted_seeds == statistics.seeds_for(*statistics.discordant_rates(0.55, 0.45))


def test_holm_counts_all_pairs_of_all_questions():
    """Three methods at two sizes are six comparisons, each tested at a sixth of the level."""
    cells = [(published_cell(m, hidden_size=h), {"pending": 9}) for m in ("NMU", "NAU", "NALU") for h in (2, 3)]
    plan = design(cell_rows(summaries_of(*cells), {}), None, 40, most_pairs=5)
    assert plan.comparisons == 6
    assert plan.least_difference == statistics.least_difference(40, level=0.05 / 6)


def test_a_single_cell_has_no_design():
    """A single cell has no comparison."""
    assert design(cell_rows(summaries_of((published_cell(), {"pending": 9})), {}), None, 40, most_pairs=5) is None
