"""The search for the best cell, without trying all of them.

space        what can be chosen, and the cell that a choice makes
objectives   what a candidate is worth, by its trials so far
halving      which of the candidates that are compared get more seeds
record       the suggestions and their values, stored with the study
evidence     the results of candidates, by their first seeds
suggest      Optuna's samplers
storage      the record as an Optuna study, for Optuna's dashboard
searching    what to train next, by all of these
findings     the result of a search
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
