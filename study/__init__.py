"""The study service: seeded training trials, from a file to a report.

    study.load("study.yaml" | "demo" | {...})    a study, to plan, run and read
    study.open("demo", store="studies")          a study of a store, to read
    study.index(store="studies")                 the page that lists the studies of a store
    study.report(dataframe, by=["model"])        the report of outcomes from anywhere
    study.import_study("demo.zip")               a study that was exported
    study.import_mlflow(uri, "experiment")       runs that were trained elsewhere; import_csv, import_wandb

docs/python.md explains them. Nothing else is imported before one of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from study.interrupts import defer_while_importing

if TYPE_CHECKING:
    from study.api import Study, import_csv, import_mlflow, import_study, import_wandb, index, load, report
    from study.api import open_study as open  # noqa: A004

__all__ = ["Study", "import_csv", "import_mlflow", "import_study", "import_wandb", "index", "load", "open", "report"]

_NAMES = {"open": "open_study"}

defer_while_importing()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'study' has no attribute {name!r}")
    from study import api

    return getattr(api, _NAMES.get(name, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
