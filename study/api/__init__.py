"""The service from Python: what the command line does, as functions and objects.

study     a study: plan, run, read
outcomes  the report of outcomes from anywhere
frames    trials, cells and curves as pandas DataFrames
notebook  how things look in a terminal and in a notebook
where     the store, and MLflow's address
"""

from study.api.outcomes import OutcomesReport, report
from study.api.study import Study, load, open_study
from study.api.where import Where

__all__ = ["OutcomesReport", "Study", "Where", "load", "open_study", "report"]
