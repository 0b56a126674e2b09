"""Study files that name a built-in task that trains in packs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from study.errors import SpecError
from study.plan.plan import make_plan, study_cells
from study.plugins import offers
from study.plugins.families import declared_family, family_of
from study.plugins.packed_tasks import packed_task
from study.plugins.presets import preset_names
from study.spec import Spec, load_spec, parse_spec
from study.spec.packed_tables import PackedSpec
from tests.mnist import mnist, mnist_folder

__all__ = ["mnist", "mnist_folder"]

STUDY: dict[str, Any] = {
    "study": "add",
    "task": {"name": "recurrent", "operation": "mul"},
    "models": ["NMU", "LSTM"],
    "seeds": 2,
    "protocol": {"iterations": 100},
}


def spec(folder: Path | None = None, **changed: Any) -> Spec:
    return parse_spec(yaml.safe_dump(STUDY | changed, sort_keys=False), source="add.yaml", folder=folder)


@pytest.mark.usefixtures("mnist")
def test_a_preset_trains_each_task():
    """A preset has its question and known models, and the metrics of the task with its fields."""
    names = offers.names("stable_tasks")
    task_specs = [task_spec for preset in preset_names() if (task_spec := load_spec(preset)).task_name in names]
    assert {task_spec.task_name for task_spec in task_specs} == set(names)
    for task_spec in task_specs:
        assert isinstance(task_spec, PackedSpec)
        assert task_spec.question
        assert task_spec.declared.revision == f"{task_spec.task_name} {packed_task(task_spec.task_name).revision}"
        assert {cell.model for cell in study_cells(task_spec)} == {model.name for model in task_spec.model_tables}


def test_metrics_follow_from_the_fields():
    """A task tested at other lengths has other metrics."""
    metrics = spec(task={"name": "recurrent", "test_lengths": [5, 7]}).family.metrics
    assert {name for name in metrics if name.startswith("test_mse")} == {"test_mse_at_5", "test_mse_at_7"}


def test_ids_have_the_revision_and_no_code(packed_lab: Path):
    """A built-in model's trial keeps its id beside a user's model, whose code is only in its own ids."""
    alone = {cell.model: cell.id for cell in study_cells(spec())}
    task = {"name": "sequential", "operation": "product"}
    own = spec(packed_lab, task=task, models=["NMU", "mylab.models:Shifted"])
    beside = {cell.model: cell for cell in study_cells(own)}
    (without,) = study_cells(spec(task=task, models=["NMU"]))
    assert beside["NMU"].id == without.id != alone["NMU"]
    assert beside["NMU"].value("code") == "sequential 1"
    code = own.source_code.identity()
    assert beside["mylab.models:Shifted"].value("code") == f"sequential 1;{code}"


def test_a_stored_study_is_planned_from_its_declarations():
    """With its stored declarations, a file has the same cells of the same family."""
    fresh = spec()
    stored = parse_spec(fresh.text, source="store", declared=declared_family(fresh.family.to_json()))
    assert [cell.id for cell in study_cells(stored)] == [cell.id for cell in study_cells(fresh)]
    assert {family_of(cell).__class__ for cell in make_plan(stored).cells} == {type(fresh.family)}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task": {"name": "recurent"}}, "did you mean 'recurrent'?"),
        ({"task": {"name": "recurrent", "operation": "pow"}}, "task.operation: must be one of add"),
        ({"task": {"name": "recurrent", "lenghts": [1]}}, "task.lenghts: unknown key"),
        ({"task": {"name": "recurrent", "test_lengths": [10, 10]}}, "task.test_lengths: must be"),
        ({"task": {"name": "sequential", "test_lengths": [4000]}}, "at most 358 images, the number of test images"),
        ({"task": {"name": "sequential", "batch_size": 6000}}, "at most 540, the number of training sequences of 2"),
        ({"models": ["LTSM"]}, "did you mean 'LSTM'?"),
        ({"models": ["reference"]}, "'reference' isn't among the models"),
        ({"fixed": {"z_strength": 1}}, "z_strength: unknown key"),
        ({"fixed": {"sparsity_strength": 1}}, "needs sparsity_start and sparsity_end"),
        (
            {"fixed": {"sparsity_strength": 1, "sparsity_start": 9, "sparsity_end": 9}},
            "sparsity_start < sparsity_end must hold, but got 9 and 9",
        ),
        ({"fixed": {"sparsity_start": 9}}, "sparsity_strength must be above 0 for that"),
        ({"fixed": {"l1_first_strength": 1e-5}}, "l1_strength must be above 0 for that"),
        (
            {"fixed": {"l1_strength": 1e-5, "l1_first_strength": 1e-4}},
            "l1_first_strength <= l1_strength must hold, but got 0.0001 and 1e-05",
        ),
        ({"fixed": {"l1_strength": -1}}, "l1_strength: must be"),
    ],
)
def test_a_mistake_says_what_must_hold(changed: dict[str, Any], message: str):
    """Each mistake has its line and a clear message."""
    with pytest.raises(SpecError) as caught:
        spec(**changed)
    assert message in str(caught.value)


def test_a_regulariser_of_strength_0_does_not_change_ids():
    """A strength of 0 equals none, and has no schedule."""
    (plain, _), (off, _) = study_cells(spec()), study_cells(spec(fixed={"sparsity_strength": 0, "l1_strength": 0}))
    assert plain.id == off.id


def test_l1_has_its_last_strength_at_once_unless_a_first_one_is_given():
    """Both strengths of L1 are part of the ids, and of the values that must be equal in a pack."""
    (plain, _), (constant, _) = study_cells(spec()), study_cells(spec(fixed={"l1_strength": 1e-4}))
    (same, _) = study_cells(spec(fixed={"l1_strength": 1e-4, "l1_first_strength": 1e-4}))
    (growing, _) = study_cells(spec(fixed={"l1_strength": 1e-4, "l1_first_strength": 1e-5}))
    assert constant.value("l1_first_strength") == 1e-4
    assert constant.id == same.id
    assert len({plain.id, constant.id, growing.id}) == 3
    assert len({family_of(cell).shape(cell) for cell in (plain, constant, growing)}) == 3
