"""The service from Python: what the command line does, as functions and objects.

study     a study: plan, run, read
outcomes  the report of outcomes from anywhere
deletion  what goes if a study is deleted
importing what was trained elsewhere: studies, and runs
frames    trials, cells and curves as pandas DataFrames
notebook  how things look in a terminal and in a notebook
pages     the index of a store, and MLflow's dashboard beside it
where     the store, and MLflow's address
"""

from study.api.importing import (
    ImportedRuns,
    import_csv,
    import_hydra,
    import_mlflow,
    import_optuna,
    import_study,
    import_wandb,
)
from study.api.outcomes import OutcomesReport, report
from study.api.pages import index, serve_pages
from study.api.study import Study, load, open_study
from study.api.where import Where

__all__ = [
    "ImportedRuns",
    "OutcomesReport",
    "Study",
    "Where",
    "import_csv",
    "import_hydra",
    "import_mlflow",
    "import_optuna",
    "import_study",
    "import_wandb",
    "index",
    "load",
    "open_study",
    "report",
    "serve_pages",
]
