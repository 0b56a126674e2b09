"""Outcomes of seeded trials from any source, as one checked table with one row a trial.

separated     separators, decimal commas and error values of text files
states        tools' words for states of runs -> finished, failed, stopped, running
wanted        user-supplied roles of columns: metrics, success criterion
columns       schema of outcomes, and accepted column names
files, write  text and Parquet files, unchecked
starts        files of starts for standardised success rates
checks        validation of values
gather        several sources -> one table; the columns that distinguish groups
runs          runs that were recorded elsewhere, as tables
run_names     roles of columns by their names
run_columns   roles of columns by user, source, name or values
nested_runs   runs with nested runs
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
