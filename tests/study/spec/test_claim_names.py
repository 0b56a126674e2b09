"""Claims use the names of cells and quantities in reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.arrow import results_table
from study.comparisons.methods import methods_of
from study.errors import SpecError
from study.plan.plan import make_plan
from study.records import Cell
from study.spec import Spec, parse_spec
from study.spec.claims import claims_of
from study.summaries.rows import cell_rows as rows_of
from tests.study.builders import summarised
from tests.study.lab import study_of

ARITHMETIC = """
study: claimed
task: {name: simple}
models: [NMU, NAC-mul]
grid: {hidden_size: [2, 1000], optimizer: [adam, sgd], operation: [mul, div]}
zip:
  schedule:
    - {label: "off", sparsity_strength: 0}
    - {label: "late, mild", sparsity_strength: 1, sparsity_start: 3000}
protocol: {iterations: 20000}
seeds: 9
"""
CODE = """
from typing import Literal

from study import seeded


@seeded
def train(
    seed, *, method: Literal["a", "b"] = "a", other: Literal["b", "c"] = "b", width: int = 4, deep: bool = False
):
    return {"accuracy": 1.0, "loss": 0.0}
"""
STUDY = {
    "train": "mylab.named:train",
    "metrics": {
        "accuracy": {"better": "higher", "low": 0, "high": 1, "title": "test accuracy", "unit": "%"},
        "loss": "lower",
    },
    "success": None,
}


@pytest.fixture
def named(lab: Path) -> Path:
    (lab / "mylab" / "named.py").write_text(CODE)
    return lab


def names_of_rows(spec: Spec) -> dict[Cell, set[str]]:
    """Return the names of report rows, in tables and in sentences."""
    plan = make_plan(spec)
    summaries = summarised(results_table([]), plan.metrics, planned=dict.fromkeys(plan.cells, 9))
    rows = rows_of(summaries, plan.labels)
    names = {summary.cell: {rows.name(row)} for row, summary in enumerate(summaries)}
    for method in methods_of(rows, range(len(summaries)), "model", ()):
        for row in method.rows if len(method.rows) == 1 else ():
            names[summaries[row].cell].add(method.name)
    return names


def claimed(spec: Spec, text: str, lab: Path) -> list[tuple[Cell, ...]]:
    """Return the cells of a claim added to a study file, each with its counterpart."""
    (claim,) = claims_of(parse_spec(f"{spec.text}\nclaims: [{text}]\n", source="a.yaml", folder=lab))
    return claim.compared


def test_every_name_of_a_reports_rows_means_its_cell(named: Path) -> None:
    """A claim can use every name of a row in tables and sentences: symbols, labels, values with titles."""
    arithmetic = parse_spec(ARITHMETIC, source="a.yaml")
    function = study_of(named, **STUDY, grid={"method": ["a", "b"], "width": [2, 1000], "deep": [True, False]})
    for spec, quantity in ((arithmetic, "success rate"), (function, "loss")):
        for cell, names in names_of_rows(spec).items():
            for name in names:
                assert claimed(spec, f"{{{name!r}: {quantity}, exceeds: 0.5}}", named) == [(cell,)], name


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("{b: accuracy, exceeds: a}", "b", "a"),
        ("{method b: test accuracy, exceeds: method a}", "b", "a"),
        ("{b: test accuracy (%), exceeds: {method: a}}", "b", "a"),
        ("{b: mean test accuracy, exceeds: a, at: {method: b}}", "b", "a"),
    ],
)
def test_a_claim_of_a_function_names_its_values(named: Path, text: str, first: str, second: str) -> None:
    """A hyperparameter's value is a name, as in the report's rows; so is a metric's title."""
    spec = study_of(named, **STUDY, grid={"method": ["a", "b"]})
    ((cell, counterpart),) = claimed(spec, text, named)
    assert (cell.value("method"), counterpart.value("method")) == (first, second)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{trian: accuracy, exceeds: 0.5}", "did you mean 'train'?"),
        ("{method bb: accuracy, exceeds: 0.5}", "did you mean 'method b'?"),
        ("{method a: tst accuracy, exceeds: 0.5}", "did you mean 'test accuracy'?"),
        ("{b: accuracy, exceeds: 0.5}", "'b' is a value of method and other: write 'method b' or 'other b'"),
        ("{a: success rate, exceeds: 0.5}", "success_rate needs a success criterion"),
    ],
)
def test_unknown_and_ambiguous_names_get_a_suggestion(named: Path, text: str, message: str) -> None:
    """The nearest valid name is suggested, and a value of two hyperparameters is refused as ambiguous."""
    spec = study_of(named, **STUDY, grid={"method": ["a", "b"], "other": ["b", "c"]})
    with pytest.raises(SpecError) as caught:
        claimed(spec, text, named)
    (problem,) = caught.value.problems
    assert message in problem.message


def test_claims_of_metrics_are_decided_without_success(named: Path) -> None:
    """`until: {claims: decided}` needs no `success` if no claim uses success; other rules still need it."""
    claims = [{"b": "accuracy", "exceeds": "a"}]
    settings = STUDY | {"grid": {"method": ["a", "b"]}, "claims": claims}
    spec = study_of(named, **settings, seeds={"until": {"claims": "decided", "max": 40}})
    assert [claim.quantity for claim in claims_of(spec)] == ["accuracy"]
    with pytest.raises(SpecError, match="half_width: is about success rates"):
        study_of(named, **settings, seeds={"until": {"half_width": 0.1, "max": 40}})
    with pytest.raises(SpecError) as caught:
        study_of(
            named,
            **(settings | {"claims": [{"b": "success_rate", "exceeds": "a"}]}),
            seeds={"until": {"claims": "decided", "max": 40}},
        )
    (problem,) = caught.value.problems
    assert (problem.where, problem.message) == (
        "claims[1].b", "success_rate needs a success criterion: add success"
    )  # fmt: skip
