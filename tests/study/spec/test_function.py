"""Study files that name a training function: checked against its signature, with its code in the ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from study.interface.function_family import FunctionFamily
from study.plan.plan import make_plan, study_cells
from study.source import SourceCode
from study.spec import Spec, parse_spec
from study.spec.function_tables import FunctionSpec
from tests.study.lab import mistakes_of, packed_study, study_of

SEARCH = {
    "grid": None,
    "ranges": {"rate": {"low": 0.1, "high": 1.0}},
    "search": {"objective": "success_rate", "trials": 60},
    "seeds": 20,
}


_ERROR = {"better": "lower", "series": "error", "along": "length"}


def ids(spec: Spec) -> list[str]:
    return [cell.id for cell in study_cells(spec)]


def test_the_signature_is_the_schema(lab: Path) -> None:
    """Defaults are filled in, and other notations give the same cell."""
    spec = study_of(lab)
    assert [cell.value("width") for cell in study_cells(spec)] == [1, 4]
    assert {cell.value("rate") for cell in study_cells(spec)} == {0.5}
    same = study_of(lab, grid={"width": [1.0, 4]}, fixed={"rate": 0.5, "fail": ""})
    assert ids(same) == ids(spec)
    assert ids(study_of(lab, fixed={"rate": 0.25})) != ids(spec)


def test_every_mistake_is_in_one_error(lab: Path) -> None:
    """The error has mistakes of tables, hyperparameters and combinations, each with its place and a suggestion."""
    mistakes = mistakes_of(
        study_of,
        lab,
        grid={"widht": [1], "rate": [0.5, -1]},
        seeds=0,
        metrics={"accuracy": "hihger", "width": "lower", "outcome": "lower"},
        success={"acuracy": {"at_least": 0.9}},
        resources={"memory_gb": 2, "cpu": 1},
    )
    expected = (
        "grid.widht: unknown key; did you mean 'width'?",
        "grid.rate[2]: must be > 0, but got -1",
        "seeds: must be at least 1",
        "metrics.accuracy: must be one of higher, lower, but got 'hihger'; did you mean 'higher'?",
        "metrics.width: mylab.training:train has a hyperparameter of that name",
        "metrics.outcome: the name means something else",
        "success.acuracy: must be one of the metrics, accuracy, width, outcome, but got 'acuracy'; did you mean",
        "resources.memory_gb: can be limited only in a separate process",
        "resources.cpu: unknown key; did you mean 'cpus'?",
    )
    for text in expected:
        assert any(message.startswith(text) for message in mistakes), (text, mistakes)
    assert len(mistakes) == len(expected)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"train": "os:system"}, "os is a module of Python itself"),
        ({"train": "mylab.training:unmarked"}, "write @seeded above it"),
        ({"train": "mylab.training:trian"}, "did you mean 'train'"),
        ({"train": "mylab.trainign:train"}, "did you mean 'mylab.training'"),
        ({"train": "mylab/training.py:train"}, "did you mean 'mylab.training:train'"),
        ({"metrics": None}, "must be given"),
        ({"success": {"accuracy": {}}}, "must have at_least, below or at_most"),
        ({"success": None, "seeds": {"until": {"half_width": 0.1, "max": 9}}}, "which need a criterion: add success"),
        ({"seeds": {"until": {"different_from": "mylab.training:train", "max": 9}}}, "needs a model to compare with"),
        ({"isolation": "proces"}, "isolation"),
        ({**SEARCH, "success": None}, "needs a success criterion"),
        (
            {**SEARCH, "search": {"objective": "sparsity_error", "trials": 60}},
            "must be one or several of success_rate, ",
        ),
        ({**SEARCH, "search": {"objective": "solved_at", "trials": 60}}, "set iterations"),
        ({"metrics": {"accuracy": {"better": "higher", "series": "accuracy"}}}, "needs all of series, along and at"),
        ({"metrics": {name: _ERROR | {"at": 5} for name in ("accuracy", "loss")}}, "both are at 5"),
    ],
)
def test_a_mistake_says_what_must_hold(lab: Path, changed: dict[str, Any], message: str) -> None:
    assert any(message in mistake for mistake in mistakes_of(study_of, lab, **changed))


def test_an_import_that_fails_shows_the_users_line(lab: Path) -> None:
    """The message has its file, line, text and error, without the study's own traceback."""
    (lab / "mylab" / "training.py").write_text("import os\n\nos.lisdir\n")
    [mistake] = mistakes_of(study_of, lab)
    assert "mylab/training.py, line 3:\n    os.lisdir\nAttributeError" in mistake
    assert "Traceback" not in mistake
    assert "cache" not in mistake


def test_a_fit_without_a_signature_is_refused(lab: Path) -> None:
    """A class whose method `fit` is compiled has no parameters that a study could read."""
    text = "from study import seeded\n\n@seeded\nclass train:\n    fit = min"
    (lab / "mylab" / "training.py").write_text(text)
    [mistake] = mistakes_of(study_of, lab)
    assert "Python can't read the signature of its method fit" in mistake


def test_a_missing_value_is_a_mistake_of_the_function(lab: Path) -> None:
    """A hyperparameter without a value has its mistake at the key `train`, since such files have no models."""
    text = "from study import seeded\n\n@seeded\ndef train(seed, width: int): ..."
    (lab / "mylab" / "training.py").write_text(text)
    mistakes = mistakes_of(study_of, lab, grid={}, fixed={})
    assert any(mistake.startswith("train: width has no default") for mistake in mistakes), mistakes


def test_a_signature_that_can_not_be_called_is_refused_whole(lab: Path) -> None:
    text = "from study import seeded\n\n@seeded\ndef train(width, *, rate: float = 'a', model: int = 1, **rest): 0"
    (lab / "mylab" / "training.py").write_text(text)
    [mistake] = mistakes_of(study_of, lab)
    for part in (
        "mylab/training.py:3: train: 5 mistakes",
        "width: it has no annotation",
        "seed: it is missing",
        "rate: ",
    ):
        assert part in mistake
    assert "cache" not in mistake


@pytest.mark.parametrize("make", [study_of, packed_study])
def test_the_code_is_part_of_the_ids(packed_lab: Path, make: Callable[..., Spec]) -> None:
    """A changed line of the package changes the id; a version replaces the code in it."""
    before, versioned = make(packed_lab), make(packed_lab, version=3)
    (packed_lab / "mylab" / "helpers.py").write_text("SCALE = 2\n")
    assert set(ids(make(packed_lab))).isdisjoint(ids(before))
    assert ids(make(packed_lab, version=3)) == ids(versioned) != ids(make(packed_lab, version=4))


def test_metrics_and_length_are_part_of_the_ids_and_the_criterion_is_not(lab: Path) -> None:
    """Metrics and iterations are part of the ids; the criterion isn't, since it only judges stored numbers."""
    spec = study_of(lab)
    assert ids(study_of(lab, success={"loss": {"below": 0.1}})) == ids(study_of(lab, success=None)) == ids(spec)
    assert ids(study_of(lab, metrics={"accuracy": "lower", "loss": "lower"})) != ids(spec)
    assert ids(study_of(lab, iterations=3)) != ids(spec)


def test_a_series_is_declared_in_the_file(lab: Path) -> None:
    """Declaring a series doesn't change the trials."""
    plain, series = (
        study_of(lab, metrics={name: _ERROR | {"at": at} for at, name in enumerate(names)} | others)
        for names, others in (((), {"accuracy": "lower", "loss": "lower"}), (("accuracy", "loss"), {}))
    )
    assert ids(plain) == ids(series)
    assert [(metric.series, metric.along, metric.at) for metric in series.family.metrics.values()] == [
        ("error", "length", 0),
        ("error", "length", 1),
    ]


def test_a_stored_study_is_planned_without_its_code(lab: Path) -> None:
    """Stored declarations give the same plan without an import, so the code may be deleted."""
    spec = study_of(lab, zip={"pair": [{"label": "a", "rate": 1}, {"label": "b", "rate": 2.0}]})
    assert isinstance(spec, FunctionSpec)
    assert isinstance(spec.family, FunctionFamily)
    assert isinstance(spec.source_code, SourceCode)
    declared = FunctionFamily.from_json(spec.family.to_json())
    (lab / "mylab" / "training.py").unlink()
    stored = parse_spec(spec.text, source="spec.yaml", declared=declared)
    assert isinstance(stored, FunctionSpec)
    assert stored.source_code is None
    before, after = make_plan(spec), make_plan(stored)
    assert [trial.id for trial in before.trials] == [trial.id for trial in after.trials]
    assert before.labels == after.labels
    assert list(after.metrics) == ["accuracy", "loss"]
