"""Contrasts between rows, equal to the statistics over the right rows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import rankdata

from study import statistics
from study.comparisons.plan import MOST_PAIRS
from study.interface.declarations import Metric
from study.reports import cell_rows, contrasts, groups
from study.summaries.aggregate import aggregate_by
from study.trials.table import TrialTable
from tests.study.builders import contrasts_of, outcomes_table, published_cell, summaries_of

SIZES = (2, 3, 4, 10)


def sweep(solved_by_model, **changes):
    """Build rows of a sweep of hidden units, given each model's number of solved trials of 20 at each size."""
    cells = [
        (published_cell(model, hidden_size=h, **changes), {"solved": k, "unsolved": 20 - k})
        for model, solved in solved_by_model.items()
        for h, k in zip(SIZES, solved, strict=True)
    ]
    return cell_rows(summaries_of(*cells), {})


def test_each_method_has_its_trend_over_hidden_units():
    """Each method has one Cochran-Armitage trend over the ranks of sizes, and all are adjusted together."""
    trends = contrasts_of(sweep({"NMU": (20, 18, 12, 5), "NALU": (3, 4, 3, 4)})).trends
    assert [(t.name, t.key) for t in trends] == [("NMU", "hidden_size"), ("NALU", "hidden_size")]
    expected = statistics.cochran_armitage([0, 1, 2, 3], [20, 18, 12, 5], [20] * 4)
    assert (trends[0].z, trends[0].p_value) == (expected.z, expected.p_value)
    assert (trends[0].low, trends[0].high) == ((2.0, 1.0), (10.0, 0.25))
    assert [t.p_adjusted for t in trends] == statistics.holm([t.p_value for t in trends])


def test_a_metric_has_its_trend_seed_by_seed():
    """A metric's trend uses the signs of each seed's slope over ranks; diverged trials rank worst."""
    values = np.random.default_rng(0).normal([0.0, 0.3, 0.6, 0.9], size=(12, 4))
    table = outcomes_table(
        outcome=["finished"] * 47 + ["diverged"],
        width=np.tile([1, 2, 4, 8], 12),
        seed=np.repeat(range(12), 4),
        loss=pa.array([*values.ravel()[:47], None]),
    )
    trials = TrialTable(table, {"loss": Metric()}, ("width",))
    (trend,) = contrasts(groups(aggregate_by(trials), ["width"]), trials).trends
    values[-1, -1] = np.inf
    expected = statistics.paired_trend(rankdata(values, axis=1))
    assert (trend.metric, trend.key, trend.seeds) == ("loss", "width", 12)
    assert (trend.z, trend.p_value) == pytest.approx((expected.z, expected.p_value))
    assert trend.z > 0


def test_degenerate_sweeps_have_no_trend():
    """Equal rates, two sizes, or a default among the values give no trend."""
    everything = sweep({"NMU": (20, 20, 20, 20)})
    assert contrasts_of(everything).trends == ()
    two_sizes = [(published_cell("NMU", hidden_size=h), {"solved": h, "unsolved": 9}) for h in (2, 3)]
    assert contrasts_of(cell_rows(summaries_of(*two_sizes), {})).trends == ()
    variances = (None, 0.01, 0.02, 0.03)
    default = [(published_cell("NMU", init_variance=v), {"solved": 2, "unsolved": 9}) for v in variances]
    assert contrasts_of(cell_rows(summaries_of(*default), {})).trends == ()


def test_two_swept_numbers_are_regressed_together():
    """Slopes equal those of logistic regression; a number that varies by a factor of ten or more is log-transformed."""
    grid = [(h, rate) for h in (2, 3, 4) for rate in (1e-4, 1e-3, 1e-2)]
    solved = [18, 15, 12, 15, 11, 8, 13, 9, 4]
    cells = [
        (published_cell("NMU", hidden_size=h, learning_rate=rate), {"solved": k, "unsolved": 20 - k})
        for (h, rate), k in zip(grid, solved, strict=True)
    ]
    slopes = {slope.key: slope for slope in contrasts_of(cell_rows(summaries_of(*cells), {})).slopes}
    fit = statistics.logistic_regression([[h, p] for h in (2, 3, 4) for p in (-4, -3, -2)], solved, [20] * 9)
    assert set(slopes) == {"hidden_size", "learning_rate"}
    assert (slopes["hidden_size"].is_log, slopes["learning_rate"].is_log) == (False, True)
    assert slopes["hidden_size"].odds_ratio == pytest.approx(math.exp(fit.slopes[0].estimate), rel=1e-6)
    assert slopes["learning_rate"].p_value == pytest.approx(fit.slopes[1].p_value, rel=1e-6)
    low, high = fit.slopes[1].profile_interval
    assert slopes["learning_rate"].interval == pytest.approx((math.exp(low), math.exp(high)), rel=1e-4)


def test_separated_successes_have_no_odds_ratio():
    """If a line separates successes from failures, the odds ratio is missing."""
    cells = [
        (published_cell("NMU", hidden_size=h, learning_rate=rate), {"solved" if h < 4 else "unsolved": 20})
        for h in (2, 3, 4)
        for rate in (1e-3, 2e-3)
    ]
    assert [s.odds_ratio for s in contrasts_of(cell_rows(summaries_of(*cells), {})).slopes] == [None, None]


def test_methods_are_tested_two_by_two_at_each_size():
    """Models are compared within a hidden size only; all pairs are one family."""
    solved = {"NMU": (20, 18, 12, 5), "NALU": (3, 4, 3, 4), "NAC-mul": (9, 9, 9, 9)}
    rows = sweep(solved)
    tests = contrasts_of(rows)
    assert len(tests.pairs) == 3 * len(SIZES) + 3  # three more pairs average over all sizes
    first = tests.pairs[0]
    assert (first.question, first.first, first.second) == ("hidden units 2", "NMU", "NALU")
    assert first.interval == statistics.newcombe(20, 20, 3, 20)
    assert first.p_value == statistics.fisher_exact(20, 20, 3, 20)
    assert [p.p_adjusted for p in tests.pairs] == statistics.holm([p.p_value for p in tests.pairs])
    assert {p.family for p in tests.pairs} == {len(tests.pairs)}
    assert [s.names for s in tests.speeds] == [("NMU", "NALU", "NAC•")] * len(SIZES)
    times = [rows.summaries[row].times.known("iterations") for row in (0, 4, 8)]
    assert tests.speeds[0].p_value == statistics.log_rank(times).p_value


def test_very_many_pairs_are_not_tested():
    """Above a limit no pairs are tested, and a note says so."""
    cells = [(published_cell("NMU", learning_rate=1e-3 * (i + 1)), {"solved": 1, "unsolved": 1}) for i in range(70)]
    tests = contrasts_of(cell_rows(summaries_of(*cells), {}))
    assert MOST_PAIRS < 70 * 69 // 2
    assert tests.pairs == ()
    assert "2,415 pairs" in tests.notes[0]


def test_unfinished_trials_give_no_contrasts():
    """Without results, contrasts are empty, without an error."""
    rows = cell_rows(summaries_of(*((published_cell("NMU", hidden_size=h), {"pending": 3}) for h in SIZES)), {})
    tests = contrasts_of(rows)
    assert (tests.trends, tests.slopes, tests.pairs, tests.speeds) == ((), (), (), ())


def test_words_and_infinities_have_no_order():
    """Swept words and infinite values aren't regressed on, and cause no error."""
    cells = [
        (published_cell("NMU", optimizer=name, learning_rate=rate), {"solved": k, "unsolved": 9})
        for k, (name, rate) in enumerate((n, r) for n in ("adam", "sgd") for r in (1e-3, 1e-2, 1e-1))
    ]
    tests = contrasts_of(cell_rows(summaries_of(*cells), {}))
    assert tests.slopes == ()
    assert {trend.key for trend in tests.trends} == {"learning_rate"}


def test_only_methods_that_vary_both_keys_are_regressed():
    """Only the method that varies both keys is regressed on both."""
    cells = [
        (published_cell("NMU", hidden_size=h, learning_rate=r), {"solved": h, "unsolved": 10})
        for h in (2, 3, 4)
        for r in (1e-3, 1e-2)
    ]
    cells += [(published_cell("NAU", hidden_size=h), {"solved": h, "unsolved": 10}) for h in (2, 3, 4)]
    assert {slope.name for slope in contrasts_of(cell_rows(summaries_of(*cells), {})).slopes} == {"NMU"}
