"""Descriptions of the columns of every file of a report; docs/reference/columns.md is generated from them.

A name in braces stands for several names: ``{metric}_mean`` exists for each metric.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from study.interface.declarations import Metric

_VALUES = {
    "": "text", "id": "16 hex digits", "flag": "true or false", "count": "integer >= 0", "rate": "0 to 1",
}  # fmt: skip
_UNITS = {"metric's": "the metric's"}
"""Abbreviated units in the tables that `notes` parses."""


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

    Raises:
        KeyError: if a name in angle brackets isn't among `inserted`.
        ValueError: if a line is only a name.

    Example:
        >>> list(notes("time_lower/upper | 95% | seconds | >= 0"))
        ['time_lower', 'time_upper']
    """
    columns = {}
    for line in re.sub(r"\n +", " ", table.strip()).split("\n"):
        fields = [re.sub(r"<(\w+)>", lambda match: inserted[match[1]], field.strip()) for field in line.split("|")]
        name, meaning, unit, values, empty = [*fields, "", "", ""][:5]
        for end in ("lower", "upper") if name.endswith("lower/upper") else ("",):
            full = f"{end} limit, {meaning}" if end else meaning
            note = ColumnNote(full, _UNITS.get(unit, unit), _VALUES.get(values, values), empty)
            columns[name.removesuffix("lower/upper") + end] = note
    return columns


CELL_ID = notes("""
cell_id | id of the cell | | id
""")
OF_CELL = notes("""
task | name or import string of the task | | | no task
model | name or import string of the model | | | no model
{hyperparameter} | hyperparameter, by its name in study files; `NAME (hyperparameter)` if another column has that name
    | | as in study files; ranges as text | not applicable or off
""")
KEYS = notes("""
{key} | hyperparameter, axis or file column that distinguishes rows | | as in the study or file | missing
""")
COUNTS = notes("""
seeds | planned trials | | count
solved | solved trials | | count
unsolved | trials that ended unsolved | | count
finished | trials that ended, unjudged | | count
stopped | trials stopped by prune; such rows have no rate, times or metrics | | count
diverged | trials with NaN or infinite weights or metrics | | count
failed | trials that crashed, without a result | | count
pending | planned trials without an outcome | | count
complete | no trial is failed, stopped or pending | | flag
""")
RATES = notes("""
success_rate | solved / (solved + unsolved + diverged) | | rate | no trial judged
success_rate_lower/upper | 95%: Wilson, or calibrated for adaptive numbers of seeds | | rate | no trial judged
""")
SOLVED_AT = notes("""
solved_at_median | median of solved trials | iterations | >= 0 | none solved
solved_at_median_lower/upper | at least 95%, order statistics | iterations | >= 0 | too few solved
solved_at_mean | mean of solved trials | iterations | >= 0 | none solved
solved_at_lower/upper | 95%, gamma mean by profile likelihood | iterations | >= 0 | too few solved
""")
TIMES = notes("""
time_to_success_mean | restricted mean: mean of min(time to success, time_to_success_until) of ended trials
    | iterations | >= 0 | no trial judged
time_to_success_lower/upper | at least 95%, distribution-free | iterations | >= 0 | no trial judged
time_to_success_until | restriction time: planned iterations of the question's rows | iterations | >= 0
    | no trial judged
""")
SECONDS = notes("""
training_s_mean | mean training time of ended trials | seconds | >= 0 | unmeasured
""")
SECONDS_TO_SUCCESS = notes("""
solved_at_s_median | median of solved trials | seconds of training | >= 0 | none solved
solved_at_s_mean | mean of solved trials | seconds of training | >= 0 | none solved
solved_at_s_lower/upper | 95%, gamma mean by profile likelihood | seconds of training | >= 0 | too few solved
""")
STOPPED = notes("""
stopped_early | trials ended by stop: when_decided | | count
ended_early | unsolved trials that ended before time_to_success_until, censored at their end | | count
""")
_MEAN = """
<name>_mean | mean of <trials> | metric's | <values> | no such trial
"""
_BETA = """
<name>_lower/upper | 95%, mean of a beta distribution on [<low>, <high>] by profile likelihood | metric's | <values>
    | too few trials
"""
_BOOTSTRAP = """
<name>_lower/upper | 95%, studentised bootstrap | metric's | <values> | too few trials
<name>_median | median of <trials> | metric's | <values> | no such trial
<name>_median_lower/upper | at least 95%, order statistics | metric's | <values> | too few trials
<name>_interquartile_mean | interquartile mean of <trials> | metric's | <values> | no such trial
<name>_interquartile_mean_lower/upper | 95%, expanded percentile bootstrap | metric's | <values> | too few trials
<name>_trials | number of <trials> | | count
"""


def of_metric(name: str, metric: Metric) -> dict[str, ColumnNote]:
    """Describe the columns of a metric averaged over the trials of a row, by column name.

    A metric with a beta interval has only its mean and the interval's ends; others have median, interquartile mean and
    number of trials, too.

    Args:
        name: the metric's name.
        metric: the metric's declaration.
    """
    low, high = ("" if end is None else "1/2" if end == 0.5 else f"{end:g}" for end in (metric.low, metric.high))
    values = f"{low} to {high}" if low and high else f">= {low}" if low else f"<= {high}" if high else "number"
    trials = "solved trials" if metric.of == "solved" else "trials with a number"
    table = _MEAN + (_BETA if metric.interval == "beta" else _BOOTSTRAP)
    return notes(table.replace("\n\n", "\n"), name=name, trials=trials, values=values, low=low, high=high)


def as_published(error: str) -> dict[str, ColumnNote]:
    """Describe the columns that `--as-published` adds. The published success rates and medians need no correction.

    Args:
        error: the metric of solved trials to which the published estimators are applied.
    """
    return notes(_AS_PUBLISHED, error=error, quantity=error.replace("_", " "))


_AS_PUBLISHED = """
as_published_solved_at_mean | published estimator of the mean | iterations | >= 0 | none solved
as_published_solved_at_lower/upper | of that estimator | iterations | >= 0 | none solved
as_published_<error>_mean | published estimator of the mean <quantity> | metric's | >= 0 | none solved
as_published_<error>_lower/upper | of that estimator | metric's | >= 0 | none solved
"""

STATISTICS = {**COUNTS, **RATES, **SOLVED_AT, **TIMES, **SECONDS, **SECONDS_TO_SUCCESS, **STOPPED}
"""The columns of counts, rates and times, without those of metrics."""

_LABEL = notes("label_{axis} | label of the cell's point on an axis | | | no point")
_BEFORE, _AFTER = {**CELL_ID, **_LABEL, **OF_CELL, **COUNTS, **RATES, **SOLVED_AT}, {**TIMES, **SECONDS}
CELLS = {**_BEFORE, **of_metric("{metric}", Metric()), **_AFTER, **SECONDS_TO_SUCCESS, **STOPPED}
GROUPS = {**KEYS, **as_published("{metric}")}

TEST_NAMES = (
    "McNemar, Fisher, McNemar and Fisher, sign-flip, Welch, paired and Welch, sign-flip of ranks, "
    "permutation of ranks, sign-flip and permutation of ranks, sign-flip by the independent seed, "
    "t over crossed seeds, tuned sign-flip, tuned sign-flip of ranks, sign test at any time"
)
_COMPARED = """
<prefix>solved | solved trials of <row> | | count
<prefix>trials | trials of <row> that are judged, or have a number | | count
<prefix>success_rate | success rate of <row> | | rate | no trial judged
<prefix>success_rate_lower/upper | 95% | | rate | no trial judged
<prefix>{metric}_mean | mean of <row> | metric's | number | no such trial
<prefix>{metric}_lower/upper | 95% | metric's | number | too few trials
<prefix>solved_at_median | median of solved trials of <row> | iterations | >= 0 | trials unknown, or none solved
<prefix>solved_at_mean | mean of solved trials of <row> | iterations | >= 0 | trials unknown, or none solved
<prefix>complete | no trial of <row> is failed or pending | | flag
"""
COMPARISON = {
    **CELL_ID,
    **KEYS,
    **notes(_COMPARED, prefix="", row="this row"),
    **notes(_COMPARED, prefix="other_", row="the other row"),
    **notes(
        """
difference | success rate or mean, this row minus the other | metric's | number
difference_lower/upper | 95%, by the test's method | metric's | number | no interval
probability | probability that a trial of this row is better, if ranks are compared because a trial diverged or failed
    | | rate | rates or means compared
test | test of the difference | | <tests> | nothing to test
seeds | compared seeds | | count | not compared by seed
p_value | p-value | | rate | nothing to test
p_adjusted | p-value after Holm's correction over rows | | rate | nothing to test
verdict | verdict of the corrected test at 5% | | agrees, differs or not tested
log_rank_p | p-value of the log-rank test of times to success, after Holm's correction | | rate
    | other trials unknown
source | source of the other row
compared_{name} | one of these columns, if a key has its name
""",
        tests=TEST_NAMES,
    ),
}
TESTS = notes(
    """
test | name of the test | | paired trend, Cochran-Armitage, logistic regression, <tests>, paired log-rank,
    log-rank | nothing to test
metric | compared metric | | | success compared
rows | tested rows | | | a pair, or all rows
at | question: what the tested rows have in common | | | one question
key | hyperparameter of a trend, possibly as log10 | | | other tests
first | first method of a pair | | | other tests
second | second method of a pair | | | other tests
statistic | z of trends, χ² of times to success | | number | other tests
degrees_of_freedom | degrees of freedom of χ² | | count | other tests
first_value | success rate or mean of the first method's tested trials | metric's | number | other tests
second_value | success rate or mean of the second method's tested trials | metric's | number | other tests
estimate_of | difference, or for ranks the probability that a trial of the first method is better, ties half
    | | difference or probability | other tests
estimate | difference (first minus second), probability, or odds ratio per unit of the key | metric's | number
    | trends, log-rank tests, separated regressions
lower | lower limit of the estimate, 95% | the estimate's | number | no estimate
upper | upper limit of the estimate, 95% | the estimate's | number | no estimate
p_value | two-sided p-value | | rate | nothing to test
p_adjusted | p-value after Holm's correction over tests of its kind | | rate | regressions
seeds | compared seeds | | count | not compared by seed
first_better | seeds at which the first method is better | | count | not compared by seed
second_better | seeds at which the second method is better | | count | not compared by seed
first_alone | trials of the first method at seeds that the second lacks | | count | other tests
second_alone | trials of the second method at seeds that the first lacks | | count | other tests
family | tests in the correction | | count | other tests
verdict | verdict on a pair at 5% | | first better, second better, not distinguished, not tested | other tests
reason | reason for not testing a pair | | | tested
note | tuned values chosen on other seeds, with counts | | | nothing tuned
""",
    tests=TEST_NAMES,
)
CANDIDATES = notes("""
candidate | number, in order of suggestion | | count
round | round of the suggestion | | integer >= 1
{parameter} | parameter, preceded by model and point if it belongs to one model | | those of its range
    | not of this model
seeds | seeds given by the search | | count
value_{objective} | value by which candidates are ranked | the objective's | number; 1e30 and more if unknown
front | in the Pareto front | | flag
confirmed | run with fresh seeds | | flag
""")
OWN_OF_BOUNDS = notes("""
metric | bounded metric
kind | kind of bound | | mean or prediction
level | level of the bound | | rate
references | references that set the bound | | count
dropped | dropped references | | count
bound | bound | metric's | number | too few references
passed | trials within the bound | | count | too few references
trials | ended trials | | count
rate | passed / trials | | rate | too few references
lower | lower limit of the rate, 95%, Wilson | | rate | too few references
upper | upper limit of the rate, 95%, Wilson | | rate | too few references
""")
BOUNDS = {**CELL_ID, **KEYS, **OWN_OF_BOUNDS}
METHODS = notes("""
metric | name of the metric
method | method
questions | questions that all methods answer, weighted equally | | count
trials | ended trials of the method at these questions | | count
without_number | ended trials without a finite number | | count
interquartile_mean | interquartile mean, averaged over questions | metric's | number | a question without numbers
interquartile_mean_lower/upper | 95%, resampled seeds | metric's | number | a question with too few numbers
other | method compared with
probability | probability that a trial of the method is better than one of the other at another seed, ties half,
    averaged over questions | | rate | a question with one seed
probability_lower/upper | 95% | | rate | a question with one seed
""")
PROFILES = notes("""
metric | name of the metric
method | method
from | threshold from which the share holds, up to the method's next one | metric's | number | first threshold
share | share of trials better than the threshold, averaged over questions | | rate
share_lower/upper | 95% at all thresholds at once | | rate
""")
SOURCES = notes("""
cell_id | id of the cell | | id
quantity | success, or the metric's title
source | init (initial weights), data (training rows), seed (both), evaluation (test rows), or an interaction
share | share of the variance over trials; for success, of a latent normal variable | | rate
share_lower/upper | 95% | | rate
trials | trials with a number | | count
standard_error | standard error of the mean, allowing for shared sources | the quantity's | >= 0
""")
OWN_OF_STANDARDISED = notes("""
covariate | number of each trial's start for standardisation
trials | judged trials with this number | | count
without_number | judged trials without this number, excluded from both rates | | count
success_rate | solved / trials | | rate | no trials, or shared seeds
success_rate_lower/upper | 95%, Wilson | | rate | no rate
standardised | standardised rate: mean of the rates at each level, weighted by the starts' frequencies | | rate
    | no trials, or shared seeds
standardised_lower/upper | 95%, Wilson with an effective sample size | | rate | no rate
unseen | share of the starts at levels without a trial of the row | | rate
""")
STANDARDISED = {**CELL_ID, **KEYS, **OWN_OF_STANDARDISED}
STANDARDISED_DIFFERENCES = notes("""
at | question of both rows
first | first row
second | second row
covariate | number of each trial's start for standardisation
difference | success rates of the tested trials, first minus second | | -1 to 1 | nothing to test
difference_lower/upper | 95%, by the test's method | | -1 to 1 | no interval
standardised | standardised rates, first minus second | | -1 to 1
standardised_lower/upper | 95%, as if rows shared no seeds | | -1 to 1
""")
CLAIMS = notes("""
claim | number of the claim in the study file | | integer >= 1
text | claim in words
verdict | verdict; open: trials missing, undecided: out of seeds | | shown, refuted, undecided or open
trials | trials used for the verdict | | count
training_s | their training time | seconds | >= 0
error | upper bound of the probability of a wrong verdict | | rate
cell_id | id of the cell | | id
other_cell_id | id of the cell compared with | | id | compared with a number
seeds | seeds with a number | | count
failed | seeds with a failed trial, without a number | | count
estimate | mean, or mean difference; for some metrics the share of seeds beyond the bound | the quantity's | number
    | no seeds
estimate_lower/upper | 95% at any time | the quantity's | number | no seeds
bound | bound of the claim | the quantity's | number
evidence_for | capital / stake of bets on the claim | | >= 0
evidence_against | capital / stake of bets against the claim | | >= 0
p_value_for | exact test at the last look, for the claim | | rate | before the last look, or no exact test
p_value_against | exact test at the last look, against the claim | | rate | before the last look, or no exact test
holds | shown for this cell | | flag
""")
OWN_OF_SERIES = notes("""
series | title of the series
along | quantity along which the metrics lie
at | place of the metric | the axis's | number
metric | name of the metric
trials | trials with a number | | count
mean | mean | metric's | number | no number
mean_lower/upper | 95%, studentised bootstrap | metric's | number | too few trials
median | median | metric's | number | no number
median_lower/upper | at least 95%, order statistics | metric's | number | too few trials
interquartile_mean | interquartile mean | metric's | number | no number
interquartile_mean_lower/upper | 95%, expanded percentile bootstrap | metric's | number | too few trials
""")
SERIES = {**CELL_ID, **KEYS, **OWN_OF_SERIES}
TRIALS = notes("""
trial_id | id: a hash of cell and seed | | id
cell_id | id of the cell | | id
seed | seed; below 0 for a combination of sources' seeds | | integer
task | name or import string of the task | | | no task
model | name or import string of the model | | | no model
outcome | solved, unsolved, finished (without a success criterion), stopped (by prune), diverged or failed
threshold | test error to undercut, if the task computes it | | >= 0 | not computed
criterion | criterion by references or metrics | | | neither
best_iteration | iteration of the best step, at which metrics are taken | | count | no best step
solved_at_iteration | first iteration that met the criterion | | count | never met
trained_iterations | iterations trained | | count | failed or unknown
stopped_early | ended once its outcome was decided | | flag
training_s | seconds of training: those of the pack / its trials | seconds | >= 0 | failed
engine | engine | | | failed
device | kind of device | | cpu or cuda | failed
error | reason of the failure | | | not failed
""")
RESULTS = {
    **TRIALS,
    "{hyperparameter}": OF_CELL["{hyperparameter}"],
    **notes("""
{metric} | metric at the best step | metric's | number | no number
whole_numbers | hyperparameters that are integers in this row but not in others | | names | none
"""),
}
CURVES = {
    "trial_id": TRIALS["trial_id"],
    **notes("""
iteration | list: iteration of each evaluation, from 0 | iterations | integers >= 0
{metric} | list: metric at these evaluations | metric's | number | no curve
"""),
}

FILES: Mapping[str, tuple[str, Mapping[str, ColumnNote]]] = {
    "cells.csv and cells.parquet of a study": ("one row per cell", CELLS),
    "cells.csv and cells.parquet of files, of several studies, or with --by": (
        "one row per group: keys, the statistics of cells, and with --as-published",
        GROUPS,
    ),
    "comparison.csv": ("one row per row of the table with a counterpart", COMPARISON),
    "tests.csv": ("one row per test", TESTS),
    "claims.csv": ("for a study with claims: one row per claim and cell or pair of cells", CLAIMS),
    "sources.csv": ("for combined seeds: one row per cell, quantity and source", SOURCES),
    "standardised.csv": ("with --standardise or standardise: one row per row with judged trials", STANDARDISED),
    "standardised-differences.csv": (
        "beside standardised.csv: one row per compared pair of rows",
        STANDARDISED_DIFFERENCES,
    ),
    "methods.csv": ("for two or more methods with a metric of all ended trials: one row per pair of methods", METHODS),
    "profiles.csv": ("beside methods.csv: one row per method and threshold", PROFILES),
    "candidates.csv": ("for a search: one row per candidate", CANDIDATES),
    "bounds.csv": ("for criteria set by references: one row per cell, metric and kind of bound", BOUNDS),
    "series.csv": ("for metrics of series: one row per row of the table and metric", SERIES),
    "results/*.parquet": ("in the store, and as DataFrame `s.trials()`: one row per trial", RESULTS),
    "curves/*.parquet": ("in the store: one row per trial", CURVES),
}
"""By file: the meaning of a row, and the columns."""
