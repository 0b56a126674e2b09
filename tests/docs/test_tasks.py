"""Completeness of the page of the tasks."""

from __future__ import annotations

import dataclasses
import re

import pytest

from docs.marks import ROOT
from study.plugins import offers
from study.plugins.packed_tasks import packed_task
from study.plugins.presets import preset_names
from study.spec import load_spec
from tests.mnist import mnist, mnist_folder

__all__ = ["mnist", "mnist_folder"]
PAGE = (ROOT / "tasks" / "docs" / "tasks.md").read_text(encoding="utf-8")


def section(task: str) -> str:
    return PAGE.split(f"\n## {task}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("name", offers.names("stable_tasks"))
def test_fields_models_and_defaults_are_on_the_page(name):
    """Each field of a task is in its section with its default, and so is each of its own models."""
    task, text = packed_task(name), section(name)
    for model in task.model_names:
        assert f"`{model}`" in text, model
    for field in dataclasses.fields(task):
        (row,) = [
            line for line in text.splitlines() if line.startswith("|") and f"`{field.name}`" in line.split("|")[1]
        ]
        names, defaults = re.findall(r"`(\w+)`", row.split("|")[1]), row.split("|")[3].strip()
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        of_field = defaults if default.__class__ is list else defaults.split(", ")[names.index(field.name)]
        assert of_field.strip("`") == str(default), field.name


@pytest.mark.parametrize("name", offers.names("stable_tasks"))
def test_metrics_are_on_the_page(name):
    """Each metric is named; metrics of several lengths or numbers by the first one or by a letter."""
    text = section(name)
    for metric in packed_task(name)().measured():
        stem = re.sub(r"_at_-?\d+$", "_at_", metric)
        assert f"`{stem}" in text, metric


@pytest.mark.usefixtures("mnist")
def test_presets_are_on_the_page():
    """The table names the presets of each packed task."""
    for preset in preset_names():
        task = load_spec(preset).task_name
        if offers.is_offered("stable_tasks", task):
            (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| [`{task}`]")]
            assert f"`{preset}`" in row
