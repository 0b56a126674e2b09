"""Search for the best cells by Optuna, without training all of them.

space         the parameters, and the cells of their values
objectives    values of candidates by their trials so far
halving       successive halving over seeds
record        the suggestions and their values, stored with the study
evidence      the results of candidates by their first seeds
suggest       Optuna's samplers
storage       the record as an Optuna study, for Optuna's dashboard
searching     the next plan of a search
importance    importance of parameters
findings      the result of a search
read_storage  studies from Optuna's own storages
"""

from study.search.evidence import Evidence
from study.search.findings import search_findings, winner_cells
from study.search.halving import cost, rungs
from study.search.record import Record
from study.search.searching import Searching, plan_of, planned_seeds, read_record

__all__ = [
    "Evidence",
    "Record",
    "Searching",
    "cost",
    "plan_of",
    "planned_seeds",
    "read_record",
    "rungs",
    "search_findings",
    "winner_cells",
]
