"""Claims in a study file: their cells and counterparts, and error messages for every mistake."""

from __future__ import annotations

import pytest

from study.errors import SpecError
from study.spec import parse_spec, schema
from study.spec.claims import Claim, claims_of

GRID = """
study: claimed
task: {name: simple}
models: [NMU, NAC-mul]
grid: {hidden_size: [2, 3]}
zip:
  schedule:
    - {label: "off", sparsity_strength: 0}
    - {label: late mild, sparsity_strength: 1, sparsity_start: 3000}
protocol: {iterations: 20000}
"""


def claims(*lines: str, cells: str = GRID, seeds: str = "9") -> list[Claim]:
    items = "\n".join(f"  - {line}" for line in lines)
    return claims_of(parse_spec(f"{cells}seeds: {seeds}\nclaims:\n{items}\n", source="a.yaml"))


def claim_of(line: str) -> Claim:
    (claim,) = claims(line)
    return claim


def compared_cells(claim: Claim) -> list[tuple[object, ...]]:
    """List each cell and its counterpart by model, hidden units and sparsity strength."""
    return [
        tuple((cell.model, cell.value("hidden_size"), cell.value("sparsity_strength")) for cell in pair)
        for pair in claim.compared
    ]


def test_every_value_of_an_axis_is_a_cell_with_its_counterpart() -> None:
    """`every hidden_size` gives a claim for each; a model without a schedule is the counterpart of any schedule."""
    claim = claim_of("{NMU late mild: success_rate, exceeds: NAC-mul, by: 0.1, at: every hidden_size}")
    assert compared_cells(claim) == [(("NMU", n, 1), ("NAC-mul", n, None)) for n in (2, 3)]
    assert (claim.bound, claim.is_below, claim.limits) == (0.1, False, (0.0, 1.0))
    assert claim.text == "NMU late mild: success rate exceeds that of NAC-mul by more than 0.1, at every hidden size"


@pytest.mark.parametrize(
    ("selection", "cells"),
    [
        ("every cell", [(2, 0), (2, 1), (3, 0), (3, 1)]),
        ("{hidden_size: every, schedule: every}", [(2, 0), (2, 1), (3, 0), (3, 1)]),
        ("{hidden_size: [2, 3], schedule: off}", [(2, 0), (3, 0)]),
        ("{hidden_size: 3, schedule: [late mild]}", [(3, 1)]),
        ("{hidden_size: 3.0, sparsity_strength: 1}", [(3, 1)]),
    ],
)
def test_a_table_selects_cells(selection: str, cells: list[tuple[int, int]]) -> None:
    """Values, lists of values, labels and `every` select cells."""
    claim = claim_of(f"{{NMU: success_rate, exceeds: 0.9, at: {selection}}}")
    assert compared_cells(claim) == [(("NMU", n, strength),) for n, strength in cells]
    assert claim.others == ()


@pytest.mark.parametrize("other", ["NMU off", '{schedule: "off"}', "{sparsity_strength: 0}"])
def test_cells_are_compared_within_a_model(other: str) -> None:
    """Another label of the same axis, or other values, with all else equal, select the counterpart."""
    claim = claim_of(f"{{NMU late mild: time_to_success, below: {other}, at: every hidden_size}}")
    assert compared_cells(claim) == [(("NMU", n, 1), ("NMU", n, 0)) for n in (2, 3)]
    assert (claim.is_below, claim.limits) == (True, (0.0, 20_000.0))


def test_metrics_with_limits_have_means_and_others_shares() -> None:
    """Claims of metrics without limits, or with values over decades, are about more than half of the seeds."""
    share = claim_of("{NMU: sparsity_error, below: 0.001, at: every cell}")
    assert (share.is_of_share, share.limits) == (True, None)
    assert share.text.endswith("is below 0.001 in more than half of the solved trials, in every cell")
    pair = claim_of("{NMU: validation_mse, below: NAC-mul, at: every cell}")
    assert pair.text == "NMU: validation MSE is below that of NAC-mul in more than half of the seeds, in every cell"


def test_a_label_is_a_name_with_a_single_model() -> None:
    """With one model its name may be omitted; with one cell, `at` may be."""
    single_cell = GRID.replace("models: [NMU, NAC-mul]", "models: [NMU]").replace("grid: {hidden_size: [2, 3]}\n", "")
    first, second = claims(
        "{late mild: solved_at, below: 15000}", "{NMU off: solved_at, exceeds: 2e3}", cells=single_cell
    )
    assert compared_cells(first) == [(("NMU", 2, 1),)]
    assert second.text == "NMU off: mean solved at exceeds 2,000"


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("{NMU late: success_rate, exceeds: 0.9}", "NMU late", "did you mean 'NMU late mild'?"),
        ("{NMU: success_rat, exceeds: 0.9}", "NMU", "did you mean 'success_rate'?"),
        ("{NMU: success_rate, exceeds: 1}", "exceeds", "must be > 0 and < 1, but got 1"),
        ("{NMU: success_rate, exceeds: NAC-mul, by: 1}", "by", "must be < 1, the greatest difference, but got 1"),
        ("{NMU: time_to_success, below: 20000}", "below", "must be > 0 and < 20000, but got 20000"),
        ("{NMU: success_rate, exceeds: NAC-mull}", "exceeds", "did you mean 'NAC-mul'?"),
        ("{NMU: success_rate, exceeds: NMU}", "exceeds", "has no counterpart among the cells of NMU"),
        ("{NAC-mul: success_rate, exceeds: NMU}", "exceeds", "several counterparts among the cells of NMU, with"),
        ("{NMU: solved_at, below: NAC-mul}", "NMU", "compare time_to_success"),
        ("{NMU: sparsity_error, below: NAC-mul}", "NMU", "covers only solved trials"),
    ],
)
def test_a_mistake_says_what_must_hold(line: str, place: str, message: str) -> None:
    """A claim's cells are checked, and mistakes have the line and the key."""
    with pytest.raises(SpecError) as caught:
        claims(line.replace("}", ", at: every cell}"))
    (problem,) = caught.value.problems
    assert (problem.where, problem.line) == (f"claims[1].{place}", 13)
    assert message in problem.message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{NMU: success_rate, exceeds: 0.9}", "NMU means several cells, with schedule off, late mild: choose values"),
        ("{NMU off: success_rate, exceeds: 0.9}", "means several cells, with hidden_size 2, 3"),
        ("{NMU: success_rate, exceeds: 0.9, at: every hiden_size}", "did you mean 'hidden_size'?"),
        ("{NMU: success_rate, exceeds: 0.9, at: {hidden_size: 7}}", "hidden_size must be one of 2, 3, but got 7"),
        (
            "{NMU: success_rate, exceeds: 0.9, at: hidden_size}",
            "must be `every NAME` of a swept hyperparameter or axis",
        ),
        ("{NMU: success_rate, exceeds: 0.9, at: {}}", "must be `every NAME` of a swept hyperparameter or axis"),
        ("{NMU: success_rate, at: every cell}", "must have either exceeds or below, but has neither"),
        (
            "{NMU: success_rate, exceeds: 0.9, below: 1, at: every cell}",
            "must have either exceeds or below, but has both",
        ),
        ("{NMU: success_rate, exceeds: 0.9, by: 0.1}", "by needs cells to compare with"),
        ("{NMU: success_rate, exceeds: true}", "must be a number, a name of cells"),
        ("{NMU: success_rate, exceeds: NAC-mul, by: -1}", "must be >= 0, but got -1"),
        ("{exceeds: 0.9}", "must have one key that names the cells, with the quantity"),
        ("{NMU: success_rate, exceds: 0.9}", "must have one key that names the cells, with the quantity"),
        ("success_rate", "must be a table"),
    ],
)
def test_malformed_claims_are_refused(line: str, message: str) -> None:
    """Missing, additional and invalid keys are refused."""
    with pytest.raises(SpecError) as caught:
        claims(line)
    (problem,) = caught.value.problems
    assert problem.line == 13
    assert message in problem.message


def test_mistakes_of_claims_are_reported_with_others() -> None:
    """Mistakes of claims are reported with those of other tables, and once each."""
    with pytest.raises(SpecError) as caught:
        claims("{NMU: success_rate, at: every cell}", seeds="{until: {claims: decided, max: 10, batch: 20}}")
    assert [problem.where for problem in caught.value.problems] == ["seeds.until.batch", "claims[1]"]
    grid = GRID.replace("hidden_size: [2, 3]", "hidden_size: [2, 0]")
    with pytest.raises(SpecError) as caught:
        claims("{NMUU: success_rate, exceeds: 0.9}", cells=grid)
    # Claims are checked only if the grid is valid.
    assert [problem.where for problem in caught.value.problems] == ["grid.hidden_size[2]"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("seeds: {until: {claims: decided, max: 9}}", "needs claims to decide, but the file has none"),
        ("seeds: {until: {claims: yes, max: 9}}", "must be one of decided"),
        ("seeds: {until: {claims: decided, half_width: 0.1, max: 9}}", "one of half_width, different_from and claims"),
        ("seeds: {until: {claims: decided, metric: test_mse, max: 9}}", "remove metric"),
        ("seeds: 9\nclaims: []", "must have at least 1 value"),
    ],
)
def test_rules_and_claims_belong_together(more: str, message: str) -> None:
    """Seeds until claims are decided need claims, and no other rule."""
    with pytest.raises(SpecError, match=message):
        parse_spec(f"{GRID}{more}\n", source="a.yaml")


def test_a_search_has_no_claims() -> None:
    """Claims are about planned cells, and a search chooses its own."""
    text = (
        "{study: a, task: {name: simple}, models: [NMU], seeds: 9, ranges: {hidden_size: {low: 2, high: 9}}, "
        "search: {objective: success_rate, trials: 200}, claims: [{NMU: success_rate, exceeds: 0.5}]}"
    )
    with pytest.raises(SpecError, match="can't be combined with a search"):
        parse_spec(text, source="a.yaml")


def test_claims_change_no_ids_and_are_in_the_schema() -> None:
    """Trials have the ids of a file without claims; editors complete the keys."""
    from study.plan.plan import make_plan

    without = make_plan(parse_spec(f"{GRID}seeds: 2\n", source="a.yaml"))
    text = f"{GRID}seeds: 2\nclaims: [{{NMU: success_rate, exceeds: 0.9, at: every cell}}]\n"
    assert [t.id for t in make_plan(parse_spec(text, source="a.yaml")).trials] == [t.id for t in without.trials]
    assert set(schema()["$defs"]["ClaimTable"]["anyOf"][0]["properties"]) == {"exceeds", "below", "by", "at"}
