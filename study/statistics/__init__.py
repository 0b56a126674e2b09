"""Statistics of seeds: numbers in, numbers out.

    rates             success rates: an interval, a difference, a test, many tests
    sequential        the same while seeds are added, valid whenever one stops
    bets              means of any bounded numbers while seeds are added: how much bets against a bound have won
    claims            claims about rates, differences and means, decided in either direction while seeds are added
    fixed_width       success rates, with seeds added until the interval is narrow enough
    mean_precision    means of any numbers, with seeds added until the interval is narrow enough
    trends            success rates over hyperparameters
    solved_at         median and mean of iterations (or seconds) to success
    survival          the same, with unsolved trials counted as censored
    restricted_mean   mean time to success up to a given time, with unsolved trials counted as censored
    bootstrap         mean and interquartile mean of any number, whatever its distribution
    welch             means of any numbers, compared
    paired            rates and times of the same seeds, compared seed by seed
    sign_flips        means of the same seeds, compared seed by seed
    partly_paired     rates, means, ranks and times of methods that share only some of their seeds, by all trials
    exchanges         the test behind ranks and times there: scores, tested by exchanging trials
    tuned             means of two methods, each at the best value of a hyperparameter
    power             how often differences of rates are found, and how many seeds that takes
    crossed           means of trials that share the seeds of several sources of randomness
    components        how much of the variance of trials each source of randomness makes
    shared_rate       success rates of trials that share the seeds of two sources: an interval
    standardised      success rates of a known population of starts, where the sample's starts are others
    seed_values       the values of a method by cell and seed, of which the next three are, each cell counting alike
    interquartile_mean  interquartile means over several cells
    profiles          how often trials are better than a threshold, for all thresholds at once
    improvement       the probability that a trial of one method is better than one of another
    sparsity_error    mean of numbers in [0, 1/2]
    upper_mean        upper bound of a mean cost, where failed trials cost the most
    upper_median      upper bound of a median cost, where there is no greatest cost
    published         the published estimators, including their faults, to repeat published numbers
    samples           what the functions that take many samples at once have in common: their names are plurals

The seeds are the sample, and independent. What can't be estimated is None, or NaN in an array: an interval from one
value, from equal values, or from values outside the distribution's support. A value that can't be an observation (NaN,
a negative count) raises an error.
"""

from study.statistics.bets import BetGains, anytime_mean, evidence, log_evidence
from study.statistics.bootstrap import interquartile_mean_intervals, interquartile_means, mean_intervals
from study.statistics.claims import ClaimSample, ClaimTest, Course
from study.statistics.components import VarianceShares, variance_shares
from study.statistics.crossed import LEAST_LEVELS, crossed_mean
from study.statistics.fixed_width import FixedWidth, looks
from study.statistics.improvement import probability_of_improvement
from study.statistics.interquartile_mean import interquartile_mean_over_cells
from study.statistics.mean_precision import MeanPrecision
from study.statistics.paired import (
    LEAST_DISCORDANT,
    comparable_trials,
    difference_p_values,
    least_p_value,
    log_rank_scores,
    mcnemar,
    mcnemar_interval,
    more_seeds,
    paired_log_rank,
    paired_trend,
    seeds_needed,
)
from study.statistics.partly_paired import (
    PartlyPaired,
    partly_paired_means,
    partly_paired_ranks,
    partly_paired_rates,
    partly_paired_times,
)
from study.statistics.power import discordant_rates, least_difference, mcnemar_power, seeds_for
from study.statistics.profiles import PerformanceProfile, performance_profile
from study.statistics.published import AsPublished, as_published
from study.statistics.rates import fisher_exact, holm, newcombe, wilson, wilsons
from study.statistics.restricted_mean import RestrictedMeans, restricted_means
from study.statistics.seed_values import MeanOverCells, SeedValues, seed_values
from study.statistics.sequential import anytime, anytime_sign_test
from study.statistics.shared_rate import shared_rate_interval
from study.statistics.sign_flips import paired_differences, sign_flip, sign_flips
from study.statistics.solved_at import gamma_mean_intervals, means, median_intervals, medians
from study.statistics.sparsity_error import beta_mean_intervals
from study.statistics.standardised import StandardisedRate, standardised_difference, standardised_rate
from study.statistics.survival import LogRank, SurvivalCurve, kaplan_meier, log_rank
from study.statistics.trends import Coefficient, LogisticFit, Trend, cochran_armitage, logistic_regression
from study.statistics.tuned import TunedDifference, TunedMethod, tuned_difference
from study.statistics.upper_mean import upper_mean
from study.statistics.upper_median import upper_median
from study.statistics.welch import Contrast, contrast, deviations

__all__ = [
    "LEAST_DISCORDANT",
    "LEAST_LEVELS",
    "AsPublished",
    "BetGains",
    "ClaimSample",
    "ClaimTest",
    "Coefficient",
    "Contrast",
    "Course",
    "FixedWidth",
    "LogRank",
    "LogisticFit",
    "MeanOverCells",
    "MeanPrecision",
    "PartlyPaired",
    "PerformanceProfile",
    "RestrictedMeans",
    "SeedValues",
    "StandardisedRate",
    "SurvivalCurve",
    "Trend",
    "TunedDifference",
    "TunedMethod",
    "VarianceShares",
    "anytime",
    "anytime_mean",
    "anytime_sign_test",
    "as_published",
    "beta_mean_intervals",
    "cochran_armitage",
    "comparable_trials",
    "contrast",
    "crossed_mean",
    "deviations",
    "difference_p_values",
    "discordant_rates",
    "evidence",
    "fisher_exact",
    "gamma_mean_intervals",
    "holm",
    "interquartile_mean_intervals",
    "interquartile_mean_over_cells",
    "interquartile_means",
    "kaplan_meier",
    "least_difference",
    "least_p_value",
    "log_evidence",
    "log_rank",
    "log_rank_scores",
    "logistic_regression",
    "looks",
    "mcnemar",
    "mcnemar_interval",
    "mcnemar_power",
    "mean_intervals",
    "means",
    "median_intervals",
    "medians",
    "more_seeds",
    "newcombe",
    "paired_differences",
    "paired_log_rank",
    "paired_trend",
    "partly_paired_means",
    "partly_paired_ranks",
    "partly_paired_rates",
    "partly_paired_times",
    "performance_profile",
    "probability_of_improvement",
    "restricted_means",
    "seed_values",
    "seeds_for",
    "seeds_needed",
    "shared_rate_interval",
    "sign_flip",
    "sign_flips",
    "standardised_difference",
    "standardised_rate",
    "tuned_difference",
    "upper_mean",
    "upper_median",
    "variance_shares",
    "wilson",
    "wilsons",
]
