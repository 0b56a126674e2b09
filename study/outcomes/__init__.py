"""Outcomes of seeded trials from anywhere, as one checked table: one row a trial.

wanted    what the user says of columns: metrics, and what success is
columns   the names that a column may have, and what it must hold
files     CSV and Parquet files, as they are
checks    the rules for their values
gather    several sources -> one table; the columns that distinguish groups
"""

from study.outcomes.columns import OUTCOME_SCHEMA
from study.outcomes.files import SUFFIXES, Source, read_source
from study.outcomes.gather import Outcomes, gather
from study.outcomes.wanted import Wanted, wanted

__all__ = ["OUTCOME_SCHEMA", "SUFFIXES", "Outcomes", "Source", "Wanted", "gather", "read_source", "wanted"]
