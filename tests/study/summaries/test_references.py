"""Valid references, and the rates of trials within their bounds."""

from __future__ import annotations

import math

import pytest

from study import statistics
from study.arrow import results_table
from study.interface.criterion import Bound
from study.interface.declarations import Metric
from study.interface.references import ReferenceCriterion, reference_bound
from study.records import Cell, Outcome, Result, Trial
from study.summaries.references import rates_by_bound, reference_findings, references_of
from study.trials.table import TrialTable

EXACT, LEARNER, STRANGER = (Cell("lab:Sums", model, {"size": 2}) for model in ("exact", "learner", "stranger"))
CRITERION = ReferenceCriterion(
    model="exact",
    higher_is_better={"loss": False, "accuracy": True},
    level=0.9,
    keep={"r2": Bound(at_least=0.5)},
    reference_of={EXACT.id: EXACT.id, LEARNER.id: EXACT.id},
    seeds={EXACT.id: range(4)},
)
LOSSES, ACCURACIES = [1.0, 1.2, 1.1], [0.9, 0.8, 0.85]


def result(cell: Cell, seed: int, outcome: Outcome = Outcome.FINISHED, **metrics: float) -> Result:
    return Result(trial=Trial(cell, seed), outcome=outcome, metrics=metrics)


REFERENCES = [
    result(EXACT, seed, loss=loss, accuracy=accuracy, r2=0.9)
    for seed, (loss, accuracy) in enumerate(zip(LOSSES, ACCURACIES, strict=True))
]
NOT_LEARNT = result(EXACT, 3, loss=9.0, accuracy=0.1, r2=0.1)
NOT_PLANNED = result(EXACT, 4, loss=0.0, accuracy=1.0, r2=1.0)


def test_planned_references_that_learnt_count() -> None:
    """References that didn't learn are dropped and counted; unplanned ones are ignored."""
    known = references_of(TrialTable(results_table([*REFERENCES, NOT_LEARNT, NOT_PLANNED])), CRITERION)[EXACT.id]
    assert (known.count, known.dropped) == (3, 1)
    assert known.values["loss"].tolist() == LOSSES
    failed = Result(trial=Trial(EXACT, 3), outcome=Outcome.FAILED, error="killed")
    assert references_of(TrialTable(results_table([*REFERENCES, failed])), CRITERION)[EXACT.id].dropped == 0
    assert references_of(TrialTable(results_table([])), CRITERION)[EXACT.id].count == 0


def test_rates_are_of_each_metric_by_each_bound() -> None:
    """Rates cover all ended trials, diverged ones as not passing; intervals are Wilson's."""
    ends = {
        (name, kind): reference_bound(values, kind, 0.9, higher_is_better=is_higher)
        for name, values, is_higher in (("loss", LOSSES, False), ("accuracy", ACCURACIES, True))
        for kind in ("mean", "prediction")
    }
    between = {name: (ends[name, "mean"] + ends[name, "prediction"]) / 2 for name in ("loss", "accuracy")}  # type: ignore[operator]
    learners = [
        result(LEARNER, 0, loss=0.0, accuracy=1.0),
        result(LEARNER, 1, **between),
        result(LEARNER, 2, loss=between["loss"], accuracy=0.0),
        result(LEARNER, 3, Outcome.DIVERGED, loss=0.0, accuracy=1.0),
        result(LEARNER, 4, Outcome.FAILED),
    ]
    rates = rates_by_bound(TrialTable(results_table([*REFERENCES, *learners])), CRITERION, [EXACT.id, LEARNER.id])
    of_learner = [rate for rate in rates if rate.cell_id == LEARNER.id]
    assert [(rate.metric, rate.kind, rate.passed, rate.judged) for rate in of_learner] == [
        ("loss", "mean", 1, 4),
        ("loss", "prediction", 3, 4),
        ("accuracy", "mean", 1, 4),
        ("accuracy", "prediction", 2, 4),
    ]
    for rate in of_learner:
        assert rate.bound == ends[rate.metric, rate.kind]
        assert rate.rate == rate.passed / 4
        assert rate.interval == statistics.wilson(rate.passed, 4)
    (own,) = [rate for rate in rates if (rate.cell_id, rate.metric, rate.kind) == (EXACT.id, "loss", "prediction")]
    assert (own.passed, own.judged) == (3, 3)


@pytest.mark.parametrize("cell", [LEARNER, STRANGER])
def test_without_a_bound_the_rate_is_missing(cell: Cell) -> None:
    """Too few references, references of another question, or missing trials give no rate."""
    trial = result(cell, 0, loss=1.0, accuracy=0.9)
    references = REFERENCES if cell is STRANGER else REFERENCES[:1]
    rates = rates_by_bound(TrialTable(results_table([*references, trial])), CRITERION, [cell.id])
    assert {(rate.bound, rate.rate, rate.interval, rate.judged) for rate in rates} == {(None, None, None, 1)}
    rates = rates_by_bound(TrialTable(results_table(REFERENCES)), CRITERION, [LEARNER.id])
    assert {(rate.rate, rate.judged) for rate in rates} == {(None, 0)}
    assert all(rate.bound is not None and math.isfinite(rate.bound) for rate in rates)


def test_findings_have_criterion_references_and_rates() -> None:
    findings = reference_findings(TrialTable(results_table(REFERENCES)), CRITERION, [EXACT.id])
    assert findings.criterion is CRITERION
    assert findings.references[EXACT.id].count == 3
    assert len(findings.rates) == 4


def test_each_place_of_a_series_of_success_has_its_bound() -> None:
    """References bound each place of a series in the criterion, not other series, and don't change judged trials."""
    metrics = {
        f"{name}_at_{n}": Metric(series=name, along="length", at=n) for name in ("loss", "wait") for n in (1, 2, 3)
    }
    values = {name: [float(n + i) for i in range(3)] for n, name in enumerate(metrics)}
    trials = [
        result(cell, seed, **{name: seed_values[seed] for name, seed_values in values.items()})
        for cell in (EXACT, LEARNER)
        for seed in range(3)
    ]
    criterion = ReferenceCriterion(
        model="exact",
        higher_is_better={"loss_at_2": False},
        reference_of={EXACT.id: EXACT.id, LEARNER.id: EXACT.id},
        seeds={EXACT.id: range(3)},
    )
    findings = reference_findings(TrialTable(results_table(trials), metrics), criterion, [LEARNER.id])
    assert findings.along is not None
    assert [(rate.metric, rate.kind) for rate in findings.along.rates] == [
        (f"loss_at_{n}", kind) for n in (1, 2, 3) for kind in ("mean", "prediction")
    ]
    for rate in findings.along.rates:
        assert rate.bound == reference_bound(values[rate.metric], rate.kind, 0.99)
        assert (rate.passed, rate.judged) == (3, 3)
    assert list(findings.rates) == [rate for rate in findings.along.rates if rate.metric == "loss_at_2"]
    assert reference_findings(TrialTable(results_table(trials)), criterion, [LEARNER.id]).along is None
