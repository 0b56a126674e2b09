"""The study service: seeded training trials, from a file to a report.

    study.load("study.yaml" | "demo" | {...})    a study, to plan, run and read
    study.open("demo", store="studies")          a stored study, to read
    study.index(store="studies")                 the page that lists the studies of a store
    study.report(dataframe, by=["model"])        a report of outcomes from any source
    study.import_study("demo.zip")               import of an exported study
    study.import_mlflow(uri, "experiment")       runs trained elsewhere; also import_csv, import_wandb
    study.import_hydra(folder, "study.yaml")     finished runs as trials of a study; also import_optuna

For own code (docs/guides/own-code.md):

    seeded                       marks training functions and model builders that a study file may name
    Trial                        receives a training function's metrics, and keeps its files
    Task, Stream, Purpose        base class of your tasks, and the random stream of their rows
    Dropout, noise, on_device    random numbers in a model, and a task's tensors on a GPU
    Metric, Hyperparameter       declarations of tasks and functions
    DataFile, data_path          data files
    Engine                       base class of your engines
    plain_domain                 conversion of Ray Tune's search spaces to plain tables

docs/reference/python.md explains the first group. Each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from study.interrupts import defer_while_importing

if TYPE_CHECKING:
    from study.api import (
        Study,
        import_csv,
        import_hydra,
        import_mlflow,
        import_optuna,
        import_study,
        import_wandb,
        index,
        load,
        report,
    )
    from study.api import open_study as open  # noqa: A004
    from study.engine.base import Engine
    from study.interface.data import DataFile, data_path
    from study.interface.declarations import Hyperparameter, Metric
    from study.interface.function.trial import Trial
    from study.interface.seeded import seeded
    from study.interface.task import Task
    from study.interface.tune import plain_domain
    from study.stream.device import on_device
    from study.stream.stream import Purpose
    from study.stream.trial_stream import Dropout, Stream, noise

__all__ = [
    "DataFile",
    "Dropout",
    "Engine",
    "Hyperparameter",
    "Metric",
    "Purpose",
    "Stream",
    "Study",
    "Task",
    "Trial",
    "data_path",
    "import_csv",
    "import_hydra",
    "import_mlflow",
    "import_optuna",
    "import_study",
    "import_wandb",
    "index",
    "load",
    "noise",
    "on_device",
    "open",
    "plain_domain",
    "report",
    "seeded",
]

_NAMES = {"open": "open_study"}
_MODULES = {
    "DataFile": "study.interface.data",
    "data_path": "study.interface.data",
    "Dropout": "study.stream.trial_stream",
    "Engine": "study.engine.base",
    "Hyperparameter": "study.interface.declarations",
    "Metric": "study.interface.declarations",
    "Purpose": "study.stream.stream",
    "Stream": "study.stream.trial_stream",
    "Task": "study.interface.task",
    "Trial": "study.interface.function.trial",
    "noise": "study.stream.trial_stream",
    "on_device": "study.stream.device",
    "plain_domain": "study.interface.tune",
    "seeded": "study.interface.seeded",
}
"""Modules of the names that `study.api` lacks, so that each name imports no more than it needs."""

defer_while_importing()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'study' has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "study.api")), _NAMES.get(name, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
