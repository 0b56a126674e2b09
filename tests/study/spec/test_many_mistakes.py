"""Independent mistakes of one file are reported together, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.errors import SpecError
from tests.study.lab import packed_study, study_of


def mistakes(make_study: object, folder: Path, **changed: object) -> dict[str, str]:
    """Return the mistakes of a study by place."""
    with pytest.raises(SpecError) as raised:
        make_study(folder, **changed)  # type: ignore[operator]
    assert all(problem.line for problem in raised.value.problems)
    return {problem.where: problem.message for problem in raised.value.problems}


def test_keys_of_another_kind_of_study_hide_nothing(lab: Path) -> None:
    """A function study with `models`, `task` and an unknown key also has the mistakes of its grid."""
    messages = mistakes(
        study_of, lab, grid={"width": "adam", "widht": [1]}, models=["NMU"], task={"name": "simple"}, epochs=3
    )
    assert messages == {
        "grid.width": "must be a list, but got 'adam'; write [adam]",
        "grid.widht": "unknown key; did you mean 'width'?",
        "models": "unknown key",
        "task": "unknown key",
        "epochs": "unknown key",
    }


def test_a_missing_function_hides_no_mistake_of_the_file(lab: Path) -> None:
    """Metrics, success and seeds are checked even if the function is missing."""
    messages = mistakes(study_of, lab, train="mylab.training:trian", success={"acuracy": {"below": 1}}, seeds=0)
    assert list(messages) == ["train", "success.acuracy", "seeds"]
    assert "did you mean 'train'?" in messages["train"]
    assert messages["success.acuracy"].endswith("did you mean 'accuracy'?")


def test_missing_metrics_hide_nothing(lab: Path) -> None:
    """The function is read, and its arguments are checked; references to metrics cause no further mistakes."""
    search = {"objective": "loss", "trials": 600}
    ranges = {"rate": {"low": 0.1, "high": 1}, "widht": {"choices": [1, 2]}}
    messages = mistakes(study_of, lab, metrics=None, grid=None, ranges=ranges, search=search, seeds=9)
    assert messages == {
        "metrics": "must be given, but is missing",
        "ranges.widht": "unknown key; did you mean 'width'?",
    }


def test_required_keys_of_a_search_hide_nothing(lab: Path) -> None:
    """A wrong number of trials and a wrong objective don't stop the other checks."""
    messages = mistakes(
        study_of,
        lab,
        grid=None,
        ranges={"widht": {"low": 1, "high": 2}, "rate": {"low": 2, "high": 1}},
        search={"objective": "los", "trials": 0},
        seeds=9,
        epochs=1,
    )
    assert set(messages) == {"search.objective", "search.trials", "ranges.widht", "ranges.rate.low", "epochs"}
    assert messages["search.objective"].endswith("did you mean 'loss'?")


def test_a_missing_model_hides_neither_the_task_nor_the_training(packed_lab: Path) -> None:
    """Task and models are looked up together, and training is checked without them."""
    messages = mistakes(
        packed_study,
        packed_lab,
        task={"name": "mylab.tasks:Spirls"},
        models=["mylab.models:mpl", 3],
        protocol={"iterations": -1, "evry": 3},
        grid={"optimizer": ["adm"], "anything": [1]},
        fixed=None,
        seeds=0,
    )
    assert set(messages) == {
        "task.name", "models[1]", "models[2]", "protocol.iterations", "protocol.evry", "grid.optimizer[1]", "seeds"
    }  # fmt: skip
    assert messages["task.name"].endswith("did you mean 'Spirals'?")
    assert "did you mean 'mlp'?" in messages["models[1]"]
