"""What a study's seeds can tell apart follows from the rates so far, or those published."""

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
    """Build rows and trials of judged cells: by model, an s or u a seed."""
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
    """Rates are (k + 1/2)/(n + 1), and φ is that of the outcomes over the seeds."""
    rows, trials = known(NMU="s" * 15 + "u" * 5, NALU="s" * 11 + "u" * 9)
    found = design(rows, trials, 30, most_pairs=5)
    [pair] = found.pairs
    assert (pair.first, pair.second) == ("NMU", "NALU")
    assert pair.rates == pytest.approx((15.5 / 21, 11.5 / 21))
    phi = (11 * 5) / (15 * 5 * 11 * 9) ** 0.5
    assert pair.correlation == pytest.approx(phi)
    rates = statistics.discordant_rates(*pair.rates, phi)
    assert pair.power == statistics.mcnemar_power(*rates, 30)
    assert pair.seeds == statistics.seeds_for(*rates)
    assert (found.known, found.detectable, found.comparisons) == (1, 0, 1)


def test_rates_of_cells_without_trials_are_the_published_ones():
    """The simple task's NMU and NALU were published with 100 seeds; with a hundred here they are told apart."""
    rows = cell_rows(summaries_of(*((published_cell(model), {"pending": 3}) for model in ("NMU", "NALU"))), {})
    found = design(rows, None, 100, most_pairs=5, wanted=0.1)
    assert (found.known, found.detectable, found.pairs) == (1, 1, [])
    assert found.wanted_seeds == statistics.seeds_for(*statistics.discordant_rates(0.55, 0.45))


def test_holm_counts_all_pairs_of_all_questions():
    """Three methods at two sizes are six comparisons, and the level of each is a sixth."""
    made = [(published_cell(m, hidden_size=h), {"pending": 9}) for m in ("NMU", "NAU", "NALU") for h in (2, 3)]
    found = design(cell_rows(summaries_of(*made), {}), None, 40, most_pairs=5)
    assert found.comparisons == 6
    assert found.least_difference == statistics.least_difference(40, level=0.05 / 6)


def test_one_method_is_no_comparison():
    """A single cell has nothing to be told apart from."""
    assert design(cell_rows(summaries_of((published_cell(), {"pending": 9})), {}), None, 40, most_pairs=5) is None
