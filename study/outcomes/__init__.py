"""Outcomes of seeded trials from anywhere, as one checked table: one row a trial.

columns   the names that a column may have, and what it must hold
files     CSV and Parquet files, as they are
checks    the rules for their values
gather    several sources -> one table; the columns that distinguish groups
"""

from study.outcomes.columns import OUTCOME_SCHEMA
from study.outcomes.files import SUFFIXES, Source, read_source
from study.outcomes.gather import Outcomes, gather

__all__ = ["OUTCOME_SCHEMA", "SUFFIXES", "Outcomes", "Source", "gather", "read_source"]
