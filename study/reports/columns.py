"""Descriptions of the columns of every file of a report; docs/reference/columns.md is generated from them.

A name in braces stands for several names: ``{metric}_mean`` exists for each metric.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from study.interface.declarations import Metric

_VALUES = {
    "": "text", "id": "16 hexadecimal digits", "flag": "true or false", "count": "a whole number >= 0",
    "rate": "0 to 1", "number": "any number",
}  # fmt: skip
_UNITS = {"metric's": "that of the metric"}
"""The abbreviations in the tables of `notes`."""


@dataclass(frozen=True)
class ColumnNote:
    """The description of a column.

    Args:
        meaning: the meaning of the values.
        unit: the unit; empty for none.
        values: the possible values.
        empty: when a value is missing; empty if it never is.
    """

    meaning: str
    unit: str = ""
    values: str = "text"
    empty: str = ""

    @property
    def text(self) -> str:
        """The meaning, with the unit."""
        return f"{self.meaning} (unit: {self.unit})" if self.unit else self.meaning


def notes(table: str, **inserted: str) -> dict[str, ColumnNote]:
    """Parse descriptions of columns, one a line: ``name | meaning | unit | values | empty``; indented lines continue.

    Args:
        table: the descriptions. The last fields may be omitted. A name that ends in ``lower/upper`` stands for the two
            ends of an interval.
        inserted: texts that replace names in angle brackets.

    Example:
        >>> list(notes("time_lower/upper | of the time, 95% | seconds | >= 0"))
        ['time_lower', 'time_upper']
    """
    columns = {}
    for line in re.sub(r"\n +", " ", table.strip()).split("\n"):
        fields = [re.sub(r"<(\w+)>", lambda match: inserted[match[1]], field.strip()) for field in line.split("|")]
        name, meaning, unit, values, empty = [*fields, "", "", ""][:5]
        for end in ("lower", "upper") if name.endswith("lower/upper") else ("",):
            full = f"{end} end of the interval {meaning}" if end else meaning
            note = ColumnNote(full, _UNITS.get(unit, unit), _VALUES.get(values, values), empty)
            columns[name.removesuffix("lower/upper") + end] = note
    return columns


CELL_ID = notes("""
cell_id | the cell's id: a hash of all that determines its trials except the seed | | id
""")
OF_CELL = notes("""
task | the name of the task, or its import string | | | of a training function
model | the name of the model, or its import string | | | of a training function without models
{hyperparameter} | each hyperparameter, by its name in a study file; `NAME (hyperparameter)` where another column is
    called so | | those of the study file; a range as text | where the cell has no such hyperparameter, or it is off
""")
KEYS = notes("""
{key} | each key of the table's rows: a hyperparameter, an axis with labels, or a column of a file
    | | those of the study file, or of the file | where the row has none
""")
COUNTS = notes("""
seeds | trials planned | | count
solved | trials that solved the task | | count
unsolved | trials that ran to the end without solving it | | count
finished | trials that ran to the end and weren't judged | | count
stopped | trials that prune stopped early; a row with such trials has no rate, times and metrics | | count
diverged | trials whose weights became NaN or infinite | | count
failed | trials that crashed and have no result | | count
pending | trials that are planned and not done | | count
complete | true if no trial is failed, stopped or pending | | flag
""")
RATES = notes("""
success_rate | solved / (solved + unsolved + diverged) | | rate | where no trial is judged
success_rate_lower/upper | of the success rate, 95%; Wilson's, or one that allows for sequential sampling where seeds
    were added until there were enough | | rate | where no trial is judged
""")
SOLVED_AT = notes("""
solved_at_median | median over the solved trials | iterations | >= 0 | where no trial is solved
solved_at_median_lower/upper | of the distribution's median, by order statistics, at least 95% | iterations | >= 0
    | where too few trials are solved
solved_at_mean | mean over the solved trials | iterations | >= 0 | where no trial is solved
solved_at_lower/upper | of a gamma distribution's mean, by profile likelihood, 95% | iterations | >= 0
    | where too few trials are solved
""")
TIMES = notes("""
time_to_success_mean | mean of min(time to success, time_to_success_until) of all trials that ended | iterations | >= 0
    | where no trial is judged
time_to_success_lower/upper | of this mean, at least 95%, for any distribution | iterations | >= 0
    | where no trial is judged
time_to_success_until | the restriction time: the iterations planned for the rows of the question | iterations
    | >= 0 | where no trial is judged
""")
SECONDS = notes("""
training_s_mean | mean of the training of trials that ended | seconds | >= 0 | if unmeasured
""")
SECONDS_TO_SUCCESS = notes("""
solved_at_s_median | median over the solved trials | seconds of training | >= 0 | where no trial is solved
solved_at_s_mean | mean over the solved trials | seconds of training | >= 0 | where no trial is solved
solved_at_s_lower/upper | of a gamma distribution's mean, by profile likelihood, 95% | seconds of training | >= 0
    | where too few trials are solved
""")
STOPPED = notes("""
stopped_early | trials ended by stop: when_decided | | count
ended_early | trials that ended unsolved before time_to_success_until, and are censored at their end | | count
""")
_MEAN = """
<name>_mean | mean over <trials> | metric's | <values> | where there are none
"""
_BETA = """
<name>_lower/upper | of the mean of a beta distribution on [<low>, <high>], by profile likelihood, 95%
    | metric's | <values> | where there are too few
"""
_BOOTSTRAP = """
<name>_lower/upper | of the mean, by the studentised bootstrap, 95% | metric's | <values> | where there are too few
<name>_median | median over <trials> | metric's | <values> | where there are none
<name>_median_lower/upper | of the distribution's median, by order statistics, at least 95% | metric's | <values>
    | where there are too few
<name>_interquartile_mean | mean of the middle half of <trials> | metric's | <values> | where there are none
<name>_interquartile_mean_lower/upper | of this mean, by the expanded percentile bootstrap, 95% | metric's | <values>
    | where there are too few
<name>_trials | the number of <trials> | | count
"""


def of_metric(name: str, metric: Metric) -> dict[str, ColumnNote]:
    """Describe the columns of a metric averaged over the trials of a row.

    Args:
        name: the metric's name.
        metric: the metric's declaration.
    """
    low, high = ("" if end is None else "1/2" if end == 0.5 else f"{end:g}" for end in (metric.low, metric.high))
    values = f"{low} to {high}" if low and high else f">= {low}" if low else f"<= {high}" if high else "number"
    trials = "the solved trials" if metric.of == "solved" else "the trials that ended with a number"
    table = _MEAN + (_BETA if metric.interval == "beta" else _BOOTSTRAP)
    return notes(table.replace("\n\n", "\n"), name=name, trials=trials, values=values, low=low, high=high)


def as_published(error: str) -> dict[str, ColumnNote]:
    """Describe the columns that `--as-published` adds. The published success rates and medians need no correction.

    Args:
        error: the metric of solved trials to which the published estimators are applied.
    """
    return notes(_AS_PUBLISHED, error=error, quantity=error.replace("_", " "))


_AS_PUBLISHED = """
as_published_solved_at_mean | the published estimate of the mean of solved-at | iterations | >= 0
    | where no trial is solved
as_published_solved_at_lower/upper | of that estimate | iterations | >= 0 | where no trial is solved
as_published_<error>_mean | the published estimate of the mean of the <quantity> | metric's | >= 0
    | where no trial is solved
as_published_<error>_lower/upper | of that estimate | metric's | >= 0 | where no trial is solved
"""

STATISTICS = {**COUNTS, **RATES, **SOLVED_AT, **TIMES, **SECONDS, **SECONDS_TO_SUCCESS, **STOPPED}
"""The columns of counts, rates and times, without those of metrics."""

_LABEL = notes("label_{axis} | the label of the cell's point on an axis of the grid | | | if the point has none")
_BEFORE, _AFTER = {**CELL_ID, **_LABEL, **OF_CELL, **COUNTS, **RATES, **SOLVED_AT}, {**TIMES, **SECONDS}
CELLS = {**_BEFORE, **of_metric("{metric}", Metric()), **_AFTER, **SECONDS_TO_SUCCESS, **STOPPED}
GROUPS = {**KEYS, **as_published("{metric}")}

TEST_NAMES = (
    "McNemar, Fisher, McNemar and Fisher, sign-flip, Welch, paired and Welch, sign-flip of ranks, "
    "permutation of ranks, sign-flip and permutation of ranks, sign-flip by the independent seed, "
    "t over crossed seeds, tuned sign-flip, tuned sign-flip of ranks, sign test at any time"
)
_COMPARED = """
<prefix>solved | trials of <row> that solved the task | | count
<prefix>trials | trials of <row> that are judged, or have a number of the metric | | count
<prefix>success_rate | success rate of <row> | | rate | where no trial is judged
<prefix>success_rate_lower/upper | of the success rate of <row>, 95% | | rate | where no trial is judged
<prefix>{metric}_mean | mean of <row> | metric's | number | where there are no such trials
<prefix>{metric}_lower/upper | of the mean of <row>, 95% | metric's | number | where there are too few trials
<prefix>solved_at_median | median over solved trials of <row> | iterations | >= 0
    | where that row's trials aren't known, or none is solved
<prefix>solved_at_mean | mean over solved trials of <row> | iterations | >= 0
    | where that row's trials aren't known, or none is solved
<prefix>complete | true if no trial of <row> is failed or pending | | flag
"""
COMPARISON = {
    **CELL_ID,
    **KEYS,
    **notes(_COMPARED, prefix="", row="this row"),
    **notes(_COMPARED, prefix="other_", row="the row that it is compared with"),
    **notes(
        """
difference | this row's success rate or mean minus the other's | that of the metric, if there is one | number
difference_lower/upper | of the difference, 95%, consistent with the test | that of the metric, if there is one
    | number | where there is none
probability | probability that a trial of this row is better than one of the other; given if ranks are compared, since
    a trial diverged or failed | | rate | where rates or means are compared
test | the test that compares the rows | | <tests> | where nothing can be tested
seeds | seeds that were compared | | count | where trials aren't compared seed by seed
p_value | of the test | | rate | where nothing can be tested
p_adjusted | after Holm's correction over the rows | | rate | where nothing can be tested
verdict | the result of the corrected test at a level of 5% | | agrees, differs or not tested
log_rank_p | of the log-rank test of times to success, after Holm's correction | | rate
    | where the other row's trials aren't known
source | the source of the other row
compared_{name} | one of these columns, renamed because a key of the rows has the same name
""",
        tests=TEST_NAMES,
    ),
}
TESTS = notes(
    """
test | the test | | paired trend, Cochran-Armitage, logistic regression, <tests>, paired log-rank,
    log-rank | where nothing can be tested
metric | the compared metric | | | where success is compared
rows | the tested rows | | | of pairs, and if all rows are tested
at | the question: the values that all tested rows share | | | if there is one question
key | the hyperparameter, prefixed by log10 if its logarithm is used | | | in other tests
first | the first method of a pair | | | in other tests
second | the second method of a pair | | | in other tests
statistic | z of trends, χ² of times to success | | number | in other tests
degrees_of_freedom | of χ² | | count | in other tests
first_value | success rate or mean of the first method's trials that the test used | that of the metric, if there is one
    | number | in other tests
second_value | the same for the second method | that of the metric, if there is one | number | in other tests
estimate_of | the quantity that a pair's estimate is of: a difference, or if ranks are compared the probability that a
    trial of the first method is better than one of the second, ties half | | difference or probability | in other tests
estimate | difference of rates or means, first minus second; a probability; or the odds ratio for one unit of the key
    | that of the metric, if there is one | number | of trends and of log-rank tests, and where a regression separates
lower | lower end of the estimate's interval, 95% | that of the estimate | number | without an estimate
upper | upper end of the estimate's interval, 95% | that of the estimate | number | without an estimate
p_value | two-sided | | rate | where nothing can be tested
p_adjusted | after Holm's correction over the tests of its kind | | rate | of regressions
seeds | seeds that were compared | | count | where trials aren't compared seed by seed
first_better | of these seeds, those at which the first method is better | | count
    | where pairs aren't compared seed by seed
second_better | of these seeds, those at which the second method is better | | count
    | where pairs aren't compared seed by seed
first_alone | trials of the first method with seeds that the second lacks | | count | in other tests
second_alone | trials of the second method with seeds that the first lacks | | count | in other tests
family | tests over which the p-value is adjusted | | count | in other tests
verdict | the verdict on a pair at a level of 5% | | first better, second better, not distinguished, not tested
    | in other tests
reason | why a pair couldn't be tested | | | where it could
note | the values of tuned hyperparameters that other seeds chose, and how often | | | where nothing is tuned
""",
    tests=TEST_NAMES,
)
CANDIDATES = notes("""
candidate | the number of the candidate, in the order of suggestion | | count
round | the round that suggested it | | a whole number >= 1
{parameter} | each parameter that the search chooses, prefixed by its model and a point if only that model has it
    | | those of its range | where the candidate's model has no such parameter
seeds | seeds that the search gave it | | count
value_{objective} | its value in the search, by which candidates are ranked | that of the objective
    | any number, or 1e30 and more where it is unknown
front | true if no other candidate beats it in all objectives | | flag
confirmed | true if it was run again with fresh seeds | | flag
""")
OWN_OF_BOUNDS = notes("""
metric | the bounded metric
kind | the kind of bound | | mean or prediction
level | the level of the bound | | rate
references | references that set the bound | | count
dropped | references that were dropped as outliers | | count
bound | the bound | metric's | number | where references are too few
passed | trials within the bound | | count | where references are too few
trials | trials that ended | | count
rate | passed / trials | | rate | where references are too few
lower | lower end of the rate's interval, Wilson's, 95% | | rate | where references are too few
upper | upper end of the rate's interval, Wilson's, 95% | | rate | where references are too few
""")
BOUNDS = {**CELL_ID, **KEYS, **OWN_OF_BOUNDS}
METHODS = notes("""
metric | the metric's name
method | the method
questions | questions that all methods answer, each of which counts alike | | count
trials | trials of the method at these questions that ended | | count
without_number | those of these trials without a finite number of the metric | | count
interquartile_mean | mean over questions of the interquartile mean of trials with a number | metric's | number
    | where a question has no trial with a number
interquartile_mean_lower/upper | of this mean, by resampling seeds, 95% | metric's | number
    | where a question has too few trials with a number
other | the method that it is compared with
probability | probability that a trial of the method is better than one of the other with another seed, ties counted
    half; the mean over questions | | rate | where a question has one seed only
probability_lower/upper | of this probability, 95% | | rate | where a question has one seed only
""")
PROFILES = notes("""
metric | the metric's name
method | the method
from | where the share's interval of thresholds begins; it ends where the method's next one begins
    | metric's | number | of the first interval, which has no beginning
share | mean over questions of the share of trials that are better than the threshold | | rate
share_lower/upper | of this share, at all thresholds at once, 95% | | rate
""")
SOURCES = notes("""
cell_id | the cell's id | | id
quantity | success, or the metric's title
source | the source: init (initial weights), data (training rows), seed (both), evaluation (test rows), or their
    combination
share | its share of the variance of trials; for success, of a latent normal number | | rate
share_lower/upper | of this share, 95% | | rate
trials | trials with a number | | count
standard_error | of the mean of the trials, allowing for shared sources | that of the quantity | >= 0
""")
OWN_OF_STANDARDISED = notes("""
covariate | the number of each trial's start for which rates are standardised
trials | judged trials with this number | | count
without_number | judged trials without it, which both rates leave out | | count
success_rate | solved / trials | | rate | without a trial, or where trials share seeds
success_rate_lower/upper | of this rate, Wilson's, 95% | | rate | without a rate
standardised | the rate at each level of the number, weighted by how often the starts have each level | | rate
    | without a trial, or where trials share seeds
standardised_lower/upper | of this rate, Wilson's of an effective number of trials, 95% | | rate | without such a rate
unseen | the share of the starts at levels at which the row has no trial | | rate
""")
STANDARDISED = {**CELL_ID, **KEYS, **OWN_OF_STANDARDISED}
STANDARDISED_DIFFERENCES = notes("""
at | the question that both rows answer
first | the first row
second | the second row
covariate | the number of each trial's start for which rates are standardised
difference | of success rates, first minus second, of the trials that the pair's test used | | -1 to 1
    | where nothing could be tested
difference_lower/upper | of this difference, consistent with the test, 95% | | -1 to 1 | where the interval is missing
standardised | of the standardised rates, first minus second | | -1 to 1
standardised_lower/upper | of this difference, as if the rows had no seeds in common, 95% | | -1 to 1
""")
CLAIMS = notes("""
claim | the claim's number in the study's file | | a whole number >= 1
text | the claim in words
verdict | the verdict on the claim: open while trials are missing, undecided when seeds have run out
    | | shown, refuted, undecided or open
trials | trials that the claim was judged by | | count
training_s | seconds of their training | seconds | >= 0
error | the largest probability of a wrong verdict | | rate
cell_id | the id of a cell that the claim is about | | id
other_cell_id | the id of the cell that it is compared with | | id | with a number
seeds | seeds that count | | count
failed | seeds with a failed trial, so that their number is unknown | | count
estimate | the mean, or the mean of differences; for some metrics the share of seeds beyond the bound
    | that of the quantity | number | without seeds
estimate_lower/upper | of the estimate, 95% at any time | that of the quantity | number | without seeds
bound | the number that the estimate is compared with | that of the quantity | number
evidence_for | the payoff of bets on the claim, as a multiple of their stake | | >= 0
evidence_against | the payoff of bets against the claim, as a multiple of their stake | | >= 0
p_value_for | of the exact test at the last look, for the claim | | rate
    | before the last look, and without an exact test
p_value_against | of the exact test at the last look, against the claim | | rate
        | before the last look, and without an exact test
    holds | true if the claim is shown for this cell | | flag
""")
OWN_OF_SERIES = notes("""
series | the title of the series
along | the title of its axis
at | the place of the metric | that of the axis | number
metric | the metric's name
trials | trials that ended with a number of the metric | | count
mean | mean over these trials | metric's | number | where no trial has a number
mean_lower/upper | of the mean, by the studentised bootstrap, 95% | metric's | number | where there are too few trials
median | median over these trials | metric's | number | where no trial has a number
median_lower/upper | of the median, by order statistics, at least 95% | metric's | number
    | where there are too few trials
interquartile_mean | mean of their middle half | metric's | number | where no trial has a number
interquartile_mean_lower/upper | of this mean, by the expanded percentile bootstrap, 95% | metric's | number
    | where there are too few trials
""")
SERIES = {**CELL_ID, **KEYS, **OWN_OF_SERIES}
TRIALS = notes("""
trial_id | the trial's id: of what is trained, and of the seed | | id
cell_id | the id of its cell | | id
seed | its seed; below 0 if seeds of sources are combined, with a distinct number for each combination
    | | a whole number
task | the name of its task, or the import string | | | of a training function
model | the name of its model, or the import string | | | of a training function without models
outcome | solved, unsolved, finished (without a success criterion), stopped (by prune), diverged or failed
    | | one of these
threshold | the test error below which the trial counts as solved, where the task computes one | | >= 0 | elsewhere
criterion | the criterion that judged it, if references or metrics define success | | | where neither does
best_iteration | the iteration of its best step, at which the metrics are taken | | count | if it has none
solved_at_iteration | the first iteration at which it met the criterion; missing if it wasn't solved | | count
    | if it never met it
trained_iterations | the iterations that it was trained for | | count | if it failed, or if that isn't known
stopped_early | true if it ended once its outcome could no longer change | | flag
training_s | seconds of training | seconds | >= 0 | if it failed
engine | the engine that trained it | | | if it failed
device | the kind of device: cpu or cuda | | cpu or cuda | if it failed
error | why it failed; missing if it didn't | | | if it didn't fail
""")
RESULTS = {
    **TRIALS,
    "{hyperparameter}": OF_CELL["{hyperparameter}"],
    **notes("""
{metric} | each metric, by its name | metric's | number | if the trial has no number of it
whole_numbers | the hyperparameters that are whole numbers in this row, though others' aren't | | names
    | where no column mixes the two
"""),
}
CURVES = {
    "trial_id": TRIALS["trial_id"],
    **notes("""
iteration | a list: the iteration of each evaluation, counted from 0 | iterations | whole numbers >= 0
{metric} | a list: each metric at these evaluations | metric's | number | if it has no curve
"""),
}

FILES: Mapping[str, tuple[str, Mapping[str, ColumnNote]]] = {
    "cells.csv and cells.parquet of a study": ("one row a cell", CELLS),
    "cells.csv and cells.parquet of files, of several studies, or with --by": (
        "one row a group: its keys, then counts, rates, times and metrics as of cells, then, with --as-published",
        GROUPS,
    ),
    "comparison.csv": ("one row for each row of the table that has a counterpart", COMPARISON),
    "tests.csv": ("one row a test", TESTS),
    "claims.csv": ("where the study's file has claims: one row for each cell, or pair of cells, of each claim", CLAIMS),
    "sources.csv": ("where seeds of sources are combined: one row for each cell, quantity and source", SOURCES),
    "standardised.csv": (
        "with --standardise, or where the study's file has standardise: one row for each row with judged trials",
        STANDARDISED,
    ),
    "standardised-differences.csv": (
        "where there is standardised.csv: one row for each pair of rows that is compared",
        STANDARDISED_DIFFERENCES,
    ),
    "methods.csv": (
        "where two or more methods have a metric of all trials that ended: one row for each method and each other",
        METHODS,
    ),
    "profiles.csv": ("where there is methods.csv: one row for each method and threshold", PROFILES),
    "candidates.csv": ("of a search: one row a candidate", CANDIDATES),
    "bounds.csv": ("where references say what success is: one row for each cell, metric and kind of bound", BOUNDS),
    "series.csv": ("where metrics belong to series: one row for each row of the table and each such metric", SERIES),
    "results/*.parquet": ("in the store, and as DataFrame `s.trials()`: one row a trial", RESULTS),
    "curves/*.parquet": ("in the store: one row a trial", CURVES),
}
"""By file: the meaning of a row, and the columns."""
