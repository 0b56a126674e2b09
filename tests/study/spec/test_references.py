"""Study files whose references define success."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from study.errors import SpecError
from study.interface.criterion import Bound
from study.interface.references import ReferenceCriterion
from study.plan.plan import make_plan
from study.plugins.families import declared_family
from study.spec import parse_spec, schema
from study.spec.packed_tables import PackedSpec
from tests.study.lab import REFERENCE_STUDY, mistakes_of, reference_study, study_of

EXACT = "mylab.models:Exact"
KEEP = {"validation_loss": {"below": 1}}


def criterion_of(folder: Path, **changed: Any) -> ReferenceCriterion:
    criterion = make_plan(reference_study(folder, **changed)).criterion
    assert isinstance(criterion, ReferenceCriterion)
    return criterion


def test_each_cell_has_the_references_of_its_question(packed_lab: Path) -> None:
    """Cells with the same task fields, the reference cell among them, are judged by one reference cell."""
    plan = make_plan(
        reference_study(
            packed_lab, grid={"size": [2, 3]}, models=[EXACT, {"name": "NMU", "grid": {"learning_rate": [0.1, 0.2]}}]
        )
    )
    criterion = plan.criterion
    assert isinstance(criterion, ReferenceCriterion)
    size = {cell.id: cell.value("size") for cell in plan.cells}
    exact = {cell.value("size"): cell.id for cell in plan.cells if cell.model == EXACT}
    assert len(size) == 6
    assert criterion.reference_of == {cell: exact[cell_size] for cell, cell_size in size.items()}
    assert criterion.seeds == dict.fromkeys(exact.values(), range(3))
    assert plan.judges_at_the_end


def test_the_file_sets_the_bounds_of_references(packed_lab: Path) -> None:
    """The defaults are the prediction bound at 99% and all references; the engine judges nothing."""
    plain = criterion_of(packed_lab)
    assert (plain.kind, plain.level, plain.keep, plain.bounds) == ("prediction", 0.99, {}, {})
    assert plain.higher_is_better == {"test_loss": False}
    references = {"model": EXACT, "bound": "mean", "level": 0.9, "keep": KEEP}
    success = {"test_loss": "below_references", "validation_loss": {"below": 2}}
    changed = criterion_of(packed_lab, references=references, success=success)
    assert (changed.kind, changed.level, changed.keep) == ("mean", 0.9, {"validation_loss": Bound(below=1)})
    assert changed.bounds == {"validation_loss": Bound(below=2)}
    spec = reference_study(packed_lab, success=success)
    assert spec.criterion == {}
    assert spec.has_success


def test_success_isnt_part_of_ids(packed_lab: Path) -> None:
    """Trials don't depend on their criterion; without references, the file's bounds apply."""
    plain = make_plan(reference_study(packed_lab, success={"test_loss": {"below": 1}}, references=None))
    assert plain.criterion == {"test_loss": Bound(below=1)}
    assert not plain.judges_at_the_end
    assert plain.trials == make_plan(reference_study(packed_lab)).trials


def test_the_batch_size_isnt_part_of_the_question(packed_lab: Path) -> None:
    """The batch size isn't part of the question: references may have another one."""
    spirals = {"name": "mylab.tasks:Spirals", "batch_size": 8}
    models = ["mylab.models:mlp", {"name": "mylab.models:wide", "fixed": {"batch_size": 4, "width": 2}}]
    criterion = criterion_of(
        packed_lab,
        task=spirals,
        models=models,
        success={"test_accuracy": "above_references"},
        references={"model": "mylab.models:mlp"},
    )
    assert criterion.higher_is_better == {"test_accuracy": True}
    assert len(set(criterion.reference_of)) == 2
    assert len(set(criterion.reference_of.values())) == 1


def test_a_stored_study_has_the_same_criterion(packed_lab: Path) -> None:
    """A stored study is planned with the same criterion, without its code."""
    spec = reference_study(packed_lab)
    assert isinstance(spec, PackedSpec)
    stored = parse_spec(spec.text, source="spec.yaml", declared=declared_family(spec.declared.to_json()))
    assert make_plan(stored).criterion == make_plan(spec).criterion


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"references": None}, "success.test_loss: below_references needs the model of the references"),
        ({"success": {"test_loss": {"below": 1}}}, "references: set no bound: under success, give a metric below_"),
        ({"success": {"test_loss": "above_references"}}, "lower values of test_loss are better, so it must be below_"),
        ({"success": {"test_loss": "below_reference"}}, "success.test_loss: must be one of below_references, above_"),
        ({"success": {"test_loss": "below_reference"}}, "did you mean 'below_references'?"),
        ({"success": {"test_loss": {"word": "below_references"}}}, "the keys here are at_least and below; or give"),
        ({"success": {"test_los": "below_references"}}, "must be one of the metrics, validation_loss, test_loss"),
        (
            {"success": {"test_loss": {"below": 1, "belw": 1}}},
            "success.test_loss.belw: unknown key; did you mean 'below'?",
        ),
        ({"references": {"model": "mylab.models:Exat"}}, "references.model: must be one of the study's models"),
        ({"references": {"model": "mylab.models:Exat"}}, "did you mean 'mylab.models:Exact'?"),
        ({"references": {"bound": "mean"}}, "references.model: must be given, but is missing"),
        ({"references": {"model": EXACT, "bound": "means"}}, "must be one of prediction, mean, but got 'means'"),
        ({"references": {"model": EXACT, "level": 1}}, "references.level: must be < 1, but got 1"),
        ({"references": {"model": EXACT, "lvl": 0.9}}, "references.lvl: unknown key; did you mean 'level'?"),
        (
            {"references": {"model": EXACT, "keep": {"r2": {"below": 1}}}},
            "references.keep.r2: must be one of the metrics",
        ),
        ({"references": {"model": EXACT, "keep": {"test_loss": {}}}}, "must have at_least, below or at_most"),
        ({"seeds": {"until": {"half_width": 0.1, "max": 40}}}, "seeds.until: can't be combined with references"),
        (
            {
                "search": {"objective": "test_loss", "trials": 60},
                "ranges": {"learning_rate": {"low": 0.1, "high": 1}},
                "fixed": None,
                "seeds": 20,
            },
            "search: a search compares candidates while it runs, but references judge trials after all have ended",
        ),
        (
            {"grid": {"learning_rate": [0.1, 0.2]}, "fixed": None},
            "must have exactly one cell of mylab.models:Exact, but size 2 has 2, which differ in learning_rate: fix",
        ),
        (
            {"models": [EXACT, {"name": "NMU", "grid": {"size": [2, 3, 4]}}]},
            "must have exactly one cell of mylab.models:Exact, but size 3 (and 1 more) has none",
        ),
    ],
)
def test_a_mistake_says_what_must_hold(packed_lab: Path, changed: dict[str, Any], message: str) -> None:
    """Each mistake has its place, its value and a suggestion."""
    problems = mistakes_of(reference_study, packed_lab, **changed)
    assert any(message in problem for problem in problems), problems
    assert len(problems) <= 2, problems


def test_a_function_has_no_references(lab: Path) -> None:
    """A study of a function can't have references, neither as a table nor in a criterion."""
    with pytest.raises(SpecError, match="references: unknown key"):
        study_of(lab, references={"model": "mylab.training:train"})
    with pytest.raises(SpecError, match=r"success.accuracy: must be a table"):
        study_of(lab, success={"accuracy": "above_references"})


@pytest.mark.parametrize(
    ("changed", "is_valid"),
    [
        ({}, True),
        ({"references": {"model": EXACT, "bound": "mean", "level": 0.9, "keep": KEEP}}, True),
        ({"success": {"test_loss": {"below": 1}}}, True),
        ({"success": {"test_loss": "below"}}, False),
        ({"success": {"test_loss": {"word": "below_references"}}}, False),
        ({"references": {"model": EXACT, "level": 2}}, False),
        ({"references": {"bound": "mean"}}, False),
    ],
)
def test_editors_know_references(changed: dict[str, Any], is_valid: bool) -> None:
    """The JSON schema accepts the same criteria as the parser."""
    assert Draft202012Validator(schema()).is_valid(REFERENCE_STUDY | changed) == is_valid
