"""Statistics of seeded trials: arrays of numbers in, numbers out.

    rates             success rates: intervals, differences, tests, Holm's adjustment
    sequential        success rates while seeds are added: intervals and tests valid at any stopping time
    bets              means of bounded numbers while seeds are added: evidence by betting
    claims            claims about rates, differences and means, shown or refuted while seeds are added
    fixed_width       success rates, with seeds added until the interval is narrow enough
    mean_precision    means of any numbers, with seeds added until the interval is narrow enough
    trends            success rates over hyperparameters: trend test, logistic regression
    solved_at         median and mean of iterations (or seconds) to success, of the solved trials
    survival          times to success with unsolved trials censored: Kaplan-Meier curves, log-rank test
    restricted_mean   mean time to success up to a given time, with unsolved trials censored
    bootstrap         mean and interquartile mean of any number: bootstrap intervals
    welch             differences and averages of means of independent samples
    paired            rates and times of two methods, paired by seed
    sign_flips        means of paired differences: sign-flip tests
    partly_paired     rates, means, ranks and times of two methods that share some of their seeds
    exchanges         permutation test of scores, behind the ranks and times of `partly_paired`
    tuned             means of two methods, each at its best value of a hyperparameter
    power             power of McNemar's test, and the numbers of seeds that it needs
    crossed           means of trials that share the seeds of several sources of randomness
    components        shares of two sources of randomness in the variance of trials
    shared_rate       success rates of trials that share the seeds of two sources: intervals
    standardised      success rates of a population of starts: post-stratification
    seed_values       values of one method by cell and seed, for the next three modules
    interquartile_mean  interquartile means over several cells
    profiles          performance profiles over several cells
    improvement       probability that a trial of one method is better than one of another
    sparsity_error    mean of numbers in [0, 1/2]: beta distribution
    upper_mean        upper bound of a mean cost, where failed trials cost the most
    upper_median      upper bound of a median cost, for costs without a maximum
    published         the published estimators, including their faults, to reproduce published numbers
    samples           many samples at once, for the functions with plural names

Seeds are independent, and the seed is the sampling unit. A quantity that can't be estimated is None, or NaN in an
array: for example, an interval from one value, from equal values, or from values outside the distribution's support. An
impossible observation (NaN, a negative count) raises ValueError.
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
