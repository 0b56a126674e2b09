"""Python interface of the service: the command line's functions as functions and objects.

study      a study: plan, run, read
outcomes   reports of outcomes from any source
deletion   deletion of a study
importing  import of studies, and of runs trained elsewhere
frames     trials, cells and curves as pandas DataFrames
notebook   output in a terminal and in a notebook
pages      the index of a store, and MLflow's dashboard
where      addresses of the store and of MLflow
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
