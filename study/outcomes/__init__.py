"""Outcomes of seeded trials from anywhere, as one checked table: one row a trial.

columns   what a column may be called and must hold
files     CSV and Parquet files, as they are
checks    what must hold of their values
gather    several sources -> one table; which columns tell groups apart
"""

from study.outcomes.columns import OUTCOME_SCHEMA
from study.outcomes.files import SUFFIXES, Source, read_source
from study.outcomes.gather import Outcomes, gather

__all__ = ["OUTCOME_SCHEMA", "SUFFIXES", "Outcomes", "Source", "gather", "read_source"]
