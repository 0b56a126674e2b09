"""Outcomes of seeded trials from anywhere, as one checked table: one row a trial.

separated     separators, decimal commas and error values of text files
states        words of tools for states of runs -> finished, failed, stopped, running
wanted        what the user says of columns: metrics, and what success is
columns       the names that a column may have, and what it must hold
files, write  text and Parquet files, as they are
starts        a file of starts, to whose success rates are standardised
checks        the rules for their values
gather        several sources -> one table; the columns that distinguish groups
runs          runs that were recorded elsewhere, as tables
run_names     what the names of their columns say
run_columns   what each of them is for
nested_runs   runs with runs nested in them
run_outcomes  runs -> outcomes, with a sentence for each decision
"""

from study.outcomes.columns import OUTCOME_SCHEMA
from study.outcomes.files import SUFFIXES, Source, read_source, without_states
from study.outcomes.gather import Outcomes, gather
from study.outcomes.run_columns import RunChoices
from study.outcomes.run_outcomes import RunOutcomes, outcomes_of_runs
from study.outcomes.runs import Runs, of_mlflow, read_runs
from study.outcomes.starts import read_starts
from study.outcomes.states import State, read_state_words
from study.outcomes.wanted import Wanted, wanted
from study.outcomes.write import write_outcomes

__all__ = [
    "OUTCOME_SCHEMA",
    "SUFFIXES",
    "Outcomes",
    "RunChoices",
    "RunOutcomes",
    "Runs",
    "Source",
    "State",
    "Wanted",
    "gather",
    "of_mlflow",
    "outcomes_of_runs",
    "read_runs",
    "read_source",
    "read_starts",
    "read_state_words",
    "wanted",
    "without_states",
    "write_outcomes",
]
