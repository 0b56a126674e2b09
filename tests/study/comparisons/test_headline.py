"""Headlines of reports, consistent with the rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from study.comparisons.contrasts import contrasts
from study.comparisons.headline import headline
from study.outcomes import gather, read_source
from study.records import Cell
from study.reports import cell_rows, groups
from study.summaries.aggregate import aggregate_by
from study.trials.table import TrialTable
from tasks.arithmetic import published
from tests.study.builders import contrasts_of, published_cell, summaries_of


def headline_of(summaries):
    """Return the headline of cells."""
    rows = cell_rows(summaries, {})
    return headline(rows, contrasts_of(rows))


def headline_of_outcomes(outcomes):
    """Return the headline of a file's groups."""
    trials = TrialTable(outcomes.table, outcomes.metrics, outcomes.by)
    rows = groups(aggregate_by(trials), outcomes.by)
    return headline(rows, contrasts(rows, trials))


def sweep(**solved_by_model):
    """Build summaries of a sweep, given each model's number of solved trials of 50 at 2, 3, 6 and 10 hidden units."""
    return summaries_of(
        *(
            (published_cell(model.replace("_", "-"), hidden_size=h), {"solved": k, "unsolved": 50 - k})
            for model, solved in solved_by_model.items()
            for h, k in zip((2, 3, 6, 10), solved, strict=True)
        )
    )


def test_the_best_method_its_trend_and_its_time_are_reported():
    """Counts are pooled over swept values; the trend is that of the best method."""
    text = headline_of(sweep(NMU=(50, 48, 40, 25), NALU=(10, 9, 8, 7)))
    assert text.startswith("NMU succeeds most often over hidden units: 81% of 200 trials, NALU 17% (p < 0.001); ")
    assert "its rate falls with hidden units (100% at 2, 50% at 10; trend p < 0.001)" in text
    assert "its solved trials take 34.5k iterations on average at 2, 22.0k at 10" in text


def test_a_flat_rate_has_no_detected_trend():
    """A flat rate is reported as no detected trend, not as constant."""
    text = headline_of(sweep(NMU=(25, 24, 26, 25)))
    assert text.startswith(
        "The success rate is highest at hidden units 6: 52% (26 of 50); no trend with hidden units was"
    )


def test_a_trend_that_the_ends_contradict_is_qualified():
    """A rising trend is qualified if the last rate is as low as the first."""
    text = headline_of(sweep(NMU=(10, 12, 49, 9)))
    grows = "the rate tends to grow with hidden units, but its last value isn't higher than its first"
    assert f"{grows} (20% at 2, 18% at 10; trend p" in text


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"solved": 94, "unsolved": 6}, "94 of 100 trials (94%) were solved; solved trials take 56.5k iterations"),
        ({"unsolved": 100}, "None of 100 trials was solved."),
        ({"pending": 5}, "No trial has finished yet."),
        ({"solved": 1}, "1 of 1 trials (100%) were solved"),
        ({"solved": 999, "unsolved": 1}, "(99.9%)"),
        ({"solved": 3, "pending": 2}, "incomplete: 1 of 1 cell."),
    ],
)
def test_one_cell_has_a_sentence_too(counts, expected):
    """The headline of one cell covers unsolved, pending and nearly complete trials."""
    assert expected in headline_of(summaries_of((published_cell("NMU"), counts)))


def test_ties_are_shared():
    """Two methods with equal rates both lead."""
    text = headline_of(sweep(NMU=(50, 50, 50, 50), NAU=(50, 50, 50, 50), NALU=(1, 1, 1, 1)))
    assert text.startswith("NMU and NAU both solved 100% of their trials")


def test_many_leaders_are_abbreviated():
    """Four leaders are all named; of five, three are named."""
    names = ("NMU", "NAU", "NALU", "linear", "ReLU")
    of_four, of_five = (headline_of(sweep(**dict.fromkeys(names[:k], (50, 50, 50, 50)))) for k in (4, 5))
    assert of_four.startswith("NMU, NAU, NALU and Linear all solved 100% of their trials")
    assert of_five.startswith("NMU, NAU, NALU and 2 others all solved 100% of their trials")


def test_unsolved_questions_have_no_leader():
    """Questions that no method solves are named if they are few, otherwise counted."""

    def two_questions(*models: str) -> str:
        cells = [(published_cell(model, operation="mul"), {"solved": 9, "unsolved": 1}) for model in models]
        cells += [(published_cell(model, operation="div"), {"unsolved": 10}) for model in models]
        return headline_of(summaries_of(*cells))

    assert "at ÷, neither NMU nor NALU solved a trial" in two_questions("NMU", "NALU")
    assert "at ÷, none of NMU, NALU and Linear solved a trial" in two_questions("NMU", "NALU", "linear")
    many = ("NMU", "NAU", "NALU", "linear", "ReLU")
    assert "at ÷, none of 5 methods solved a trial" in two_questions(*many)


def test_methods_of_different_questions_are_not_pooled():
    """Addition and multiplication each have a best method."""
    text = headline_of_outcomes(gather([read_source(Path(published.__file__).with_name("static_seeds.csv"))]))
    assert text.startswith(
        "At +, Linear, NAC₊ and NAU all solved 100% of their trials; at ×, success rate: NAC•,σ 100%, NMU 98%"
    )
    assert "NAC•,NMU 93% and 7 others: NAC•,σ and NMU are not distinguished (p = 1)" in text


def test_methods_are_compared_at_shared_sizes():
    """A method that was tried only at easy sizes gains no advantage from that."""
    cells = [(published_cell("NMU", hidden_size=2), {"solved": 9, "unsolved": 1})]
    cells += [(published_cell("NAU", hidden_size=2), {"solved": 10})]
    cells += [(published_cell("NAU", hidden_size=h), {"solved": 3, "unsolved": 7}) for h in (3, 4, 5)]
    assert headline_of(summaries_of(*cells)).startswith(
        "Success rate: NAU 100% and NMU 90%: NAU and NMU are not distinguished (p = 1)"
    )
    apart = [(published_cell("NMU"), {"solved": 9})]
    apart += [(published_cell("NAU", hidden_size=h), {"solved": 9}) for h in (3, 4)]
    assert "No two methods were tried at the same values" in headline_of(summaries_of(*apart))


def test_a_hyperparameter_of_one_model_distinguishes_methods():
    """Each value of a hyperparameter that another model lacks is a method, and all are compared."""
    cells = [
        (Cell("lab:Task", "lab:unit", {"pull": 0.0}), {"solved": 9, "unsolved": 1}),
        (Cell("lab:Task", "lab:unit", {"pull": 1.0}), {"solved": 5, "unsolved": 5}),
        (Cell("lab:Task", "lab:lstm", {"pull": None}), {"unsolved": 10}),
    ]
    text = headline_of(summaries_of(*cells))
    assert text.startswith(
        "Success rate: unit (pull 0) 90%, unit (pull 1) 50% and lstm 0%: unit (pull 0) and unit (pull 1) are not"
    )
    assert "lstm" in text


def test_undeclared_columns_are_varied_one_factor_at_a_time(tmp_path):
    """Values of a column are compared at each value of the other, without averaging."""
    lines = ["schedule,hidden,seed,outcome"]
    for schedule in ("", "late"):
        lines += [f"{schedule},{h},{seed},{'solved' if schedule else 'unsolved'}" for h in (2, 4) for seed in range(9)]
    (tmp_path / "some.csv").write_text("\n".join(lines))
    text = headline_of_outcomes(gather([read_source(tmp_path / "some.csv")], ["schedule", "hidden"]))
    assert text.startswith("The success rate is highest at schedule late, hidden 2 and 1 other group (100%) and lowest")
    assert "schedule late is best at 2 of 2 settings of all else; no value of hidden is known to be best" in text


def test_a_factor_without_a_best_value_has_a_trend(tmp_path):
    """A factor whose two top values are equally good has a trend and no best value."""
    lines = ["method,hidden,seed,outcome"]
    for method, hidden in product("xy", (2, 4, 8)):
        lines += [f"{method},{hidden},{seed},{'solved' if hidden > 2 else 'unsolved'}" for seed in range(20)]
    (tmp_path / "some.csv").write_text("\n".join(lines))
    text = headline_of_outcomes(gather([read_source(tmp_path / "some.csv")], ["method", "hidden"]))
    assert text.startswith("The success rate is highest at method x, hidden 4 and 3 other groups (100%) and lowest at ")
    assert "; it grows with hidden at 2 of 2 settings of all else (greatest trend p < 0.001); " in text
    assert text.endswith("no value of method or hidden is known to be best.")


def test_many_factors_are_each_averaged_over_all_else(tmp_path):
    """Settings that lack a trial are left out, so that all values are compared at the same settings."""
    lines = ["a,b,c,d,seed,outcome"]
    for a, b, c, d in product("xy", (1, 2), (3, 4), (5, 6)):
        outcomes = ["solved" if a == "x" and (seed > 1 or b == 2) else "unsolved" for seed in range(9)]
        if (a, b, c, d) == ("y", 1, 3, 5):
            outcomes[0] = "failed"
        lines += [f"{a},{b},{c},{d},{seed},{outcome}" for seed, outcome in enumerate(outcomes)]
    (tmp_path / "some.csv").write_text("\n".join(lines))
    text = headline_of_outcomes(gather([read_source(tmp_path / "some.csv")], list("abcd")))
    assert text.startswith(
        "Success rate on average over all else, without settings that lack trials: a x: 90%, a y: 0% ("
    )
    assert "no value of b, c or d is known to be best; incomplete: 1 of 16" in text
