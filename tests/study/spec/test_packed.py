"""Study files that name a task and models: checked against their declarations, with their code in the ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from study.plan.plan import make_plan, study_cells
from study.plugins import offers
from study.plugins.families import declared_family, family_of
from study.source import SourceCode
from study.spec import Spec, parse_spec
from study.spec.packed_tables import PackedSpec
from study.summaries.questions import varying
from tasks.arithmetic import TASKS
from tests.study.lab import mistakes_of, packed_study

SHORT_NAMES = (*TASKS, *offers.names("stable_tasks"))

TASK = {"name": "mylab.tasks:Spirals"}
MLP, WIDE = "mylab.models:mlp", "mylab.models:wide"


def ids(spec: Spec) -> list[str]:
    return [cell.id for cell in study_cells(spec)]


def test_a_model_has_only_its_own_arguments(packed_lab: Path) -> None:
    """Defaults are filled in, arguments belong to one model, and other notations give the same cell."""
    spec = packed_study(packed_lab)
    first, *wide = study_cells(spec)
    assert (first.model, first.value("width"), first.value("hidden")) == ("mylab.models:mlp", None, 4)
    assert [(cell.model, cell.value("width")) for cell in wide] == [("mylab.models:wide", 8), ("mylab.models:wide", 32)]
    assert {cell.value("turns") for cell in study_cells(spec)} == {2.0}
    assert {cell.value("momentum") for cell in study_cells(spec)} == {None}
    assert {cell.value("best_step_window") for cell in study_cells(spec)} == {3}
    task = {"name": "mylab.tasks:Spirals"}
    other = packed_study(packed_lab, task=task, fixed={"turns": 2, "learning_rate": 0.01, "optimizer": "adam"})
    assert ids(other) == ids(spec)
    assert ids(packed_study(packed_lab, success=None)) == ids(spec)
    assert ids(packed_study(packed_lab, protocol={"iterations": 20, "evaluate_every": 10})) == ids(spec)
    assert ids(packed_study(packed_lab, fixed={"learning_rate": 0.02})) != ids(spec)


def test_trials_of_other_rates_share_a_pack(packed_lab: Path) -> None:
    """Values trained for each member of a pack may differ; values that change its program may not."""
    grid = {"learning_rate": [0.1, 0.2], "warmup": [0, 3], "schedule": ["constant", "cosine"]}
    shapes = {family_of(cell).shape(cell) for cell in study_cells(packed_study(packed_lab, grid=grid, fixed=None))}
    assert len(shapes) == 3
    for name, values in {"hidden": [2, 3], "optimizer": ["sgd", "adam"], "batch_size": [8, 9]}.items():
        cells = study_cells(packed_study(packed_lab, grid={name: values}, models=["mylab.models:mlp"], fixed=None))
        assert len({family_of(cell).shape(cell) for cell in cells}) == 2, name


def test_every_mistake_is_in_one_error(packed_lab: Path) -> None:
    """The error has mistakes of tables, hyperparameters and combinations, each with its place and a suggestion."""
    mistakes = mistakes_of(
        packed_study,
        packed_lab,
        task={"name": "mylab.tasks:Spirals", "trns": 2},
        fixed={"optimzer": "adam", "momentum": 0.5, "learning_rate": -1},
        grid={"batch_size": [8, "x"]},
        protocol={"iterations": 5, "evaluate_every": 10, "window": 2},
        success={"test_acuracy": {"at_least": 0.9}},
        seeds=0,
    )
    expected = (
        "task.trns: unknown key; did you mean 'turns'?",
        "fixed.optimzer: unknown key; did you mean 'optimizer'?",
        "fixed.momentum: momentum has no effect on any model of the study: optimizer must be momentum for that",
        "fixed.learning_rate: must be > 0, but got -1",
        "grid.batch_size[2]: must be a number, but got 'x'",
        "protocol.evaluate_every: evaluate_every <= iterations must hold",
        "protocol.window: unknown key; the keys here are iterations, evaluate_every, best_step_window",
        "success.test_acuracy: must be one of the metrics, validation_loss, test_accuracy, but got 'test_acuracy'",
        "seeds: must be at least 1",
    )
    for text in expected:
        assert any(message.startswith(text) for message in mistakes), (text, mistakes)
    assert len(mistakes) == len(expected), mistakes


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task": {"name": "os:system"}}, "task.name: os:system: os is a module of Python itself"),
        ({"task": {"name": "mylab.tasks:helper"}}, "isn't marked for studies"),
        ({"task": {"name": "mylab.tasks:marked"}}, "must be a class derived from study.Task"),
        ({"task": {"name": "mylab.tasks:Thawed"}}, "must be a frozen dataclass"),
        ({"task": {"name": "mylab.tasks:Spiral"}}, "did you mean 'Spirals'"),
        ({"task": {"name": "Spirals"}}, f"must be one of {', '.join(SHORT_NAMES)}, but got 'Spirals'"),
        ({"models": ["mylab.models:unmarked"]}, "models[1]: mylab.models:unmarked isn't marked"),
        ({"models": ["mylab.models:mpl"]}, "did you mean 'mlp'"),
        ({"models": ["mylab.models:clash"]}, "has an argument turns, and mylab.tasks:Spirals a field of that name"),
        ({"models": ["mylab.models:rated"]}, "learning_rate: the name is reserved in study files"),
        ({"models": ["mylab.models:mlp", "mylab.models:other"]}, "have an argument hidden of different types"),
        ({"models": ["NAUU"]}, "'NAUU' isn't among the models that are built in or offered by installed packages"),
        ({"models": ["NAUU"]}, "did you mean 'NAU'?"),
        ({"models": ["nothing"]}, "'nothing' isn't among the models that are built in or offered"),
        (
            {"task": {"name": "mylab.tasks:Products"}, "models": ["NAU", "mylab.models:named"]},
            "have an argument hidden_size of different types",
        ),
        ({"protocol": None}, "iterations must be given, under protocol"),
        (
            {"models": [{"name": "mylab.models:mlp", "fixed": {"width": 3}}, "mylab.models:wide"]},
            "mylab.models:mlp has no argument width",
        ),
        ({"success": None, "seeds": {"until": {"half_width": 0.1, "max": 9}}}, "success rates, which need a criterion"),
    ],
)
def test_a_mistake_says_what_must_hold(packed_lab: Path, changed: dict[str, Any], message: str) -> None:
    mistakes = mistakes_of(packed_study, packed_lab, **({"models": ["mylab.models:mlp"]} | changed))
    assert any(message in problem for problem in mistakes), mistakes
    assert not any("cache" in problem for problem in mistakes)


def test_mistakes_of_several_names_are_in_one_error(packed_lab: Path) -> None:
    mistakes = mistakes_of(
        packed_study, packed_lab, task={"name": "mylab.tasks:Thawed"}, models=["mylab.models:mpl", "mylab.models:mlp"]
    )
    assert [message.partition(":")[0] for message in mistakes] == ["task.name", "models[1]"]
    mistakes = mistakes_of(packed_study, packed_lab, task={"name": "mylab.task:Spirals"}, models=["nothing"])
    assert [message.partition(":")[0] for message in mistakes] == ["task.name", "models[1]"]


def test_a_module_class_is_a_model(packed_lab: Path) -> None:
    """A subclass of nn.Module is a model without a decorator, because its base class identifies it."""
    (cell,) = study_cells(packed_study(packed_lab, models=["mylab.models:Net"]))
    assert cell.value("size") == 3


def test_a_stored_study_is_planned_without_its_code(packed_lab: Path) -> None:
    """Stored declarations give the same plan without an import, so the code may be deleted."""
    spec = packed_study(packed_lab, zip={"pair": [{"label": "a", "turns": 1}, {"label": "b", "turns": 2.0}]}, task=TASK)
    assert isinstance(spec, PackedSpec)
    assert isinstance(spec.source_code, SourceCode)
    declared = declared_family(spec.declared.to_json())
    (packed_lab / "mylab" / "tasks.py").unlink()
    stored = parse_spec(spec.text, source="spec.yaml", declared=declared)
    assert isinstance(stored, PackedSpec)
    assert stored.source_code is None
    before, after = make_plan(spec), make_plan(stored)
    assert [trial.id for trial in before.trials] == [trial.id for trial in after.trials]
    assert before.labels == after.labels
    assert list(after.metrics) == ["validation_loss", "test_accuracy"]


def test_a_value_may_be_a_list(packed_lab: Path) -> None:
    """A list in a task's field or in a grid is a value of a cell, and a tuple in reports."""
    text = (packed_lab / "mylab" / "models.py").read_text()
    (packed_lab / "mylab" / "models.py").write_text(
        text + "\n\n@seeded\ndef deep(*, widths: tuple[int, ...] = (4,)):\n    return nn.Linear(2, widths[-1])\n"
    )
    study = packed_study(packed_lab, models=["mylab.models:deep"], grid={"widths": [[2], [4, 2]]})
    of_lists = study_cells(study)
    assert [cell.values["widths"] for cell in of_lists] == [[2], [4, 2]]
    assert [cell.value("widths") for cell in of_lists] == [(2,), (4, 2)]
    assert varying(of_lists) == ["widths"]
