"""Statements about seeds: numbers in, numbers out.

    rates             success rates: an interval, a difference, a test, many tests
    trends            success rates over hyperparameters
    solved_at         median and mean of iterations (or seconds) to success
    survival          the same with unsolved trials counted as censored
    sparsity_error    mean of numbers in [0, 1/2]
    published         the published estimators, faults included, to repeat published numbers

Seeds are the sample, and independent. What can't be estimated is None: an interval from one value, from equal values,
or from values outside the law's support. What can't be an observation (NaN, a negative count) raises.
"""

from study.statistics.published import AsPublished, as_published
from study.statistics.rates import fisher_exact, holm, newcombe, wilson
from study.statistics.solved_at import gamma_mean_interval, mean, median, median_interval
from study.statistics.sparsity_error import beta_mean_interval
from study.statistics.survival import (
    LogRank,
    RestrictedMean,
    SurvivalCurve,
    kaplan_meier,
    log_rank,
    restricted_mean,
)
from study.statistics.trends import Coefficient, LogisticFit, Trend, cochran_armitage, logistic_regression

__all__ = [
    "AsPublished",
    "Coefficient",
    "LogRank",
    "LogisticFit",
    "RestrictedMean",
    "SurvivalCurve",
    "Trend",
    "as_published",
    "beta_mean_interval",
    "cochran_armitage",
    "fisher_exact",
    "gamma_mean_interval",
    "holm",
    "kaplan_meier",
    "log_rank",
    "logistic_regression",
    "mean",
    "median",
    "median_interval",
    "newcombe",
    "restricted_mean",
    "wilson",
]
