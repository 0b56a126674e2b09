"""What the columns of every file of a report hold; the tables of docs/columns.md are made of it.

A name in braces stands for any such name: ``{metric}_mean`` is there for each metric.
"""

from __future__ import annotations

from collections.abc import Mapping

from study.reports.column_notes import (
    CELL_ID,
    CELLS,
    FLAG,
    GROUPS,
    ID,
    KEYS,
    METRICS_UNIT,
    NONE_JUDGED,
    NUMBER,
    OF_CELL,
    POSITIVE,
    RATE,
    ColumnNote,
    count,
    interval,
    p_value,
)

_OF_KEY = {**CELL_ID, **KEYS}


def _compared(prefix: str, row: str) -> dict[str, ColumnNote]:
    """Describe the numbers of one of two rows that are compared."""
    unknown = "where that row's trials aren't known, or none is solved"
    metric = f"{prefix}{{metric}}"
    return {
        f"{prefix}solved": count(f"trials of {row} that solved the task"),
        f"{prefix}trials": count(f"trials of {row} that are judged, or have a number of the metric"),
        f"{prefix}success_rate": ColumnNote(f"success rate of {row}", "", RATE, NONE_JUDGED),
        **interval(f"{prefix}success_rate", f"of the success rate of {row}, 95%", "", RATE, NONE_JUDGED),
        f"{metric}_mean": ColumnNote(f"mean of {row}", METRICS_UNIT, NUMBER, "where there are no such trials"),
        **interval(metric, f"of the mean of {row}, 95%", METRICS_UNIT, NUMBER, "where there are too few trials"),
        f"{prefix}solved_at_median": ColumnNote(f"median over solved trials of {row}", "iterations", POSITIVE, unknown),
        f"{prefix}solved_at_mean": ColumnNote(f"mean over solved trials of {row}", "iterations", POSITIVE, unknown),
        f"{prefix}complete": ColumnNote(f"true if no trial of {row} is failed or pending", values=FLAG),
    }


TEST_NAMES = (
    "McNemar, Fisher, McNemar and Fisher, sign-flip, Welch, paired and Welch, sign-flip of ranks, "
    "permutation of ranks, sign-flip and permutation of ranks, sign-flip by the independent seed, "
    "t over crossed seeds, tuned sign-flip, tuned sign-flip of ranks, sign test at any time"
)

COMPARISON = {
    **_OF_KEY,
    **_compared("", "this row"),
    **_compared("other_", "the row that it is compared with"),
    "difference": ColumnNote(
        "this row's success rate or mean minus the other's", "that of the metric, if there is one", NUMBER
    ),
    **interval(
        "difference",
        "of it, 95%, by what belongs to the test",
        "that of the metric, if there is one",
        NUMBER,
        "where there is none",
    ),
    "probability": ColumnNote(
        "probability that a trial of this row is better than one of the other, where ranks are compared, since a trial "
        "diverged or failed",
        "",
        RATE,
        "where rates or means are compared",
    ),
    "test": ColumnNote("what the rows are compared by", values=TEST_NAMES, empty="where nothing can be tested"),
    "seeds": count("seeds that were compared", "where trials aren't compared seed by seed"),
    "p_value": p_value("of the test", "where nothing can be tested"),
    "p_adjusted": p_value("after Holm's correction over the rows", "where nothing can be tested"),
    "verdict": ColumnNote("what the corrected test says at a level of 5%", values="agrees, differs or not tested"),
    "log_rank_p": p_value(
        "of the log-rank test of times to success, after Holm's correction", "where the other row's trials aren't known"
    ),
    "source": ColumnNote("where the other row is from"),
    "compared_{name}": ColumnNote("one of these columns, where a column that tells rows apart is called so"),
}

_NOT_OF_TEST = "in other tests"
TESTS = {
    "test": ColumnNote(
        "what is tested by what",
        values=f"paired trend, Cochran-Armitage, logistic regression, {TEST_NAMES}, paired log-rank, log-rank",
        empty="where nothing can be tested",
    ),
    "metric": ColumnNote("the metric that is compared", empty="where success is"),
    "rows": ColumnNote("the rows that the test is of", empty="of pairs, and if the test is of all rows"),
    "at": ColumnNote("the question: what all rows of the test have in common", empty="if there is one question"),
    "key": ColumnNote("the hyperparameter, or log10 and it", empty=_NOT_OF_TEST),
    "first": ColumnNote("the first method of a pair", empty=_NOT_OF_TEST),
    "second": ColumnNote("the second method of a pair", empty=_NOT_OF_TEST),
    "statistic": ColumnNote("z of trends, χ² of times to success", values=NUMBER, empty=_NOT_OF_TEST),
    "degrees_of_freedom": count("of χ²", _NOT_OF_TEST),
    "first_value": ColumnNote(
        "success rate or mean of the first method's trials that the test used",
        "that of the metric, if there is one",
        NUMBER,
        _NOT_OF_TEST,
    ),
    "second_value": ColumnNote(
        "the same of the second method", "that of the metric, if there is one", NUMBER, _NOT_OF_TEST
    ),
    "estimate_of": ColumnNote(
        "what the estimate of a pair is: a difference, or where ranks are compared the probability that a trial of the "
        "first method is better than one of the second, ties half",
        values="difference or probability",
        empty=_NOT_OF_TEST,
    ),
    "estimate": ColumnNote(
        "difference of rates or means, first minus second; a probability; or the odds ratio of a unit of the key",
        "that of the metric, if there is one",
        NUMBER,
        "of trends and of log-rank tests, and where a regression separates",
    ),
    "lower": ColumnNote(
        "lower end of the estimate's interval, 95%", "that of the estimate", NUMBER, "without an estimate"
    ),
    "upper": ColumnNote(
        "upper end of the estimate's interval, 95%", "that of the estimate", NUMBER, "without an estimate"
    ),
    "p_value": p_value("two-sided", "where nothing can be tested"),
    "p_adjusted": p_value("after Holm's correction over the tests of its kind", "of regressions"),
    "seeds": count("seeds that were compared", "where trials aren't compared seed by seed"),
    "first_better": count(
        "of these seeds, those at which the first method is better", "where pairs aren't compared seed by seed"
    ),
    "second_better": count(
        "of these seeds, those at which the second method is better", "where pairs aren't compared seed by seed"
    ),
    "first_alone": count("trials of the first method with seeds that the second lacks", _NOT_OF_TEST),
    "second_alone": count("trials of the second method with seeds that the first lacks", _NOT_OF_TEST),
    "family": count("tests over which the p-value is adjusted", _NOT_OF_TEST),
    "verdict": ColumnNote(
        "what can be said of a pair at 5%",
        values="first better, second better, not distinguished, not tested",
        empty=_NOT_OF_TEST,
    ),
    "reason": ColumnNote("why a pair could not be tested", empty="where it could"),
    "note": ColumnNote(
        "which values of what is tuned other seeds chose, and how often", empty="where nothing is tuned"
    ),
}

CANDIDATES = {
    "candidate": count("the number of the candidate, in the order of suggestion"),
    "round": ColumnNote("the round in which it was suggested", values="a whole number >= 1"),
    "{parameter}": ColumnNote(
        "each parameter that the search chooses, with its model and a point in front if it is one model's own",
        values="those of its range",
        empty="where the candidate's model has no such parameter",
    ),
    "seeds": count("seeds that the search gave it"),
    "value_{objective}": ColumnNote(
        "its value in the search, by which candidates are ranked",
        "that of the objective",
        NUMBER + ", or 1e30 and more where it is unknown",
    ),
    "front": ColumnNote("whether no other candidate beats it in all objectives", values=FLAG),
    "confirmed": ColumnNote("whether it was run again with fresh seeds", values=FLAG),
}

_NO_BOUND = "where references are too few"
OWN_OF_BOUNDS = {
    "metric": ColumnNote("the metric that is bounded"),
    "kind": ColumnNote("which of the two bounds", values="mean or prediction"),
    "level": ColumnNote("the level of the bound", values=RATE),
    "references": count("references that set it"),
    "dropped": count("references that were dropped as outliers"),
    "bound": ColumnNote("the bound", METRICS_UNIT, NUMBER, _NO_BOUND),
    "passed": count("trials within it", _NO_BOUND),
    "trials": count("trials that ended"),
    "rate": ColumnNote("passed / trials", "", RATE, _NO_BOUND),
    "lower": ColumnNote("lower end of the rate's interval, Wilson's, 95%", "", RATE, _NO_BOUND),
    "upper": ColumnNote("upper end of the rate's interval, Wilson's, 95%", "", RATE, _NO_BOUND),
}
BOUNDS = {**CELL_ID, **KEYS, **OWN_OF_BOUNDS}

_NO_NUMBER = "where no trial has a number"


def _statistic(name: str, meaning: str, method: str) -> dict[str, ColumnNote]:
    return {
        name: ColumnNote(meaning, METRICS_UNIT, NUMBER, _NO_NUMBER),
        **interval(name, method, METRICS_UNIT, NUMBER, "where there are too few trials"),
    }


METHODS = {
    "metric": ColumnNote("the metric's name"),
    "method": ColumnNote("the method"),
    "questions": count("questions that all methods answer, each of which counts alike"),
    "trials": count("trials of the method at these questions that ended"),
    "without_number": count("those of them that have no finite number of the metric"),
    "interquartile_mean": ColumnNote(
        "mean over questions of the interquartile mean of trials with a number",
        METRICS_UNIT,
        NUMBER,
        "where a question has no trial with a number",
    ),
    **interval(
        "interquartile_mean",
        "of it, by resampling seeds, 95%",
        METRICS_UNIT,
        NUMBER,
        "where a question has too few trials with a number",
    ),
    "other": ColumnNote("another method, that it is compared with"),
    "probability": ColumnNote(
        "probability that a trial of the method is better than one of the other with another seed, ties counted half; "
        "the mean over questions",
        "",
        RATE,
        "where a question has one seed only",
    ),
    **interval("probability", "of it, 95%", "", RATE, "where a question has one seed only"),
}
PROFILES = {
    "metric": METHODS["metric"],
    "method": METHODS["method"],
    "from": ColumnNote(
        "where the stretch of thresholds begins that the share is of; it ends where the method's next one begins",
        METRICS_UNIT,
        NUMBER,
        "of the first stretch, which has no beginning",
    ),
    "share": ColumnNote("mean over questions of the share of trials that are better than the threshold", "", RATE),
    **interval("share", "of it, at all thresholds at once, 95%", "", RATE, ""),
}

SOURCES = {
    "cell_id": ColumnNote("the cell's id", values=ID),
    "quantity": ColumnNote("success, or the metric's title"),
    "source": ColumnNote(
        "the source: init (initial weights), data (training rows), seed (both), evaluation (test rows), or their "
        "combination"
    ),
    "share": ColumnNote("its share of the variance of trials; of success, of a latent normal number", "", RATE),
    **interval("share", "of it, 95%", "", RATE, ""),
    "trials": count("trials with a number"),
    "standard_error": ColumnNote(
        "of the mean of the trials, with what sources share allowed for", "that of the quantity", POSITIVE
    ),
}

_NO_TEST = "before the last look, and where there is no exact test"
CLAIMS = {
    "claim": ColumnNote("the claim's number in the study's file", values="a whole number >= 1"),
    "text": ColumnNote("the claim in words"),
    "verdict": ColumnNote(
        "what is known of the claim: open while trials are missing, undecided out of seeds",
        values="shown, refuted, undecided or open",
    ),
    "trials": count("trials that the claim was judged by"),
    "training_s": ColumnNote("seconds of their training", "seconds", POSITIVE),
    "error": ColumnNote("the most that the probability of a wrong verdict is", values="0 to 1"),
    "cell_id": ColumnNote("the id of a cell that the claim is about", values=ID),
    "other_cell_id": ColumnNote("the id of that which it is compared with", values=ID, empty="with a number"),
    "seeds": count("seeds that count"),
    "failed": count("seeds of which a trial failed, so that their number is unknown"),
    "estimate": ColumnNote(
        "the mean, or the mean of differences; of some metrics the share of seeds beyond the bound",
        "that of the quantity",
        NUMBER,
        "without seeds",
    ),
    **interval("estimate", "of it, 95% at any time", "that of the quantity", NUMBER, "without seeds"),
    "bound": ColumnNote("what the estimate is compared with", "that of the quantity", NUMBER),
    "evidence_for": ColumnNote("how many times their stake bets on the claim have won", values=POSITIVE),
    "evidence_against": ColumnNote("how many times their stake bets against it have won", values=POSITIVE),
    "p_value_for": p_value("of the exact test at the last look, for the claim", _NO_TEST),
    "p_value_against": p_value("of the exact test at the last look, against the claim", _NO_TEST),
    "holds": ColumnNote("whether the claim is shown of this cell", values=FLAG),
}

OWN_OF_SERIES = {
    "series": ColumnNote("the title of the series"),
    "along": ColumnNote("what its places are"),
    "at": ColumnNote("the place of the metric", "that of the axis", NUMBER),
    "metric": ColumnNote("the metric's name"),
    "trials": count("trials that ended with a number of it"),
    **_statistic("mean", "mean over these trials", "of the mean, by the studentised bootstrap, 95%"),
    **_statistic("median", "median over these trials", "of the median, by order statistics, at least 95%"),
    **_statistic("interquartile_mean", "mean of their middle half", "of it, by the expanded percentile bootstrap, 95%"),
}
SERIES = {**_OF_KEY, **OWN_OF_SERIES}

_OF_TRIAL = {
    "trial_id": ColumnNote("the trial's id: of what is trained, and of the seed", values=ID),
    "cell_id": ColumnNote("the id of its cell", values=ID),
    "seed": ColumnNote(
        "its seed; below 0 where seeds of sources are combined, of which each combination has a number of its own",
        values="a whole number",
    ),
}
TRIALS = {
    **_OF_TRIAL,
    "task": ColumnNote("the name of its task, or the import string", empty="of a training function"),
    "model": ColumnNote("the name of its model, or the import string", empty="of a training function without models"),
    "outcome": ColumnNote(
        "solved, unsolved, finished (where nothing says what success is), stopped (by prune), diverged or failed",
        values="one of these",
    ),
    "threshold": ColumnNote(
        "the test error below which the trial counts as solved, where the task computes one", "", POSITIVE, "elsewhere"
    ),
    "criterion": ColumnNote(
        "what it was judged by, where references or metrics say what success is", empty="where neither does"
    ),
    "best_iteration": count("the iteration of its best step, of which the metrics are", "if it has none"),
    "solved_at_iteration": count(
        "the first iteration at which it met the criterion; missing if it wasn't solved", "if it never met it"
    ),
    "trained_iterations": count("the iterations that it was trained for", "if it failed, or if that isn't known"),
    "stopped_early": ColumnNote("whether it ended once its outcome could no longer change", values=FLAG),
    "training_s": ColumnNote("seconds of training", "seconds", POSITIVE, "if it failed"),
    "engine": ColumnNote("the engine that trained it", empty="if it failed"),
    "device": ColumnNote("the kind of device: cpu or cuda", values="cpu or cuda", empty="if it failed"),
    "error": ColumnNote("why it failed; missing if it didn't", empty="if it didn't fail"),
}
RESULTS = {
    **TRIALS,
    "{hyperparameter}": OF_CELL["{hyperparameter}"],
    "{metric}": ColumnNote("each metric, by its name", METRICS_UNIT, NUMBER, "if the trial has no number of it"),
    "whole_numbers": ColumnNote(
        "the hyperparameters that are whole numbers in this row, though others' aren't", values="names",
        empty="where no column mixes the two",
    ),
}  # fmt: skip
_EVALUATION = "of each evaluation, counted from 0"
CURVES = {
    "trial_id": _OF_TRIAL["trial_id"],
    "iteration": ColumnNote(f"a list: the iteration {_EVALUATION}", "iterations", "whole numbers >= 0"),
    "{metric}": ColumnNote("a list: each metric at these evaluations", METRICS_UNIT, NUMBER, "if it has no curve"),
}

FILES: Mapping[str, tuple[str, Mapping[str, ColumnNote]]] = {
    "cells.csv and cells.parquet of a study": ("one row a cell", CELLS),
    "cells.csv and cells.parquet of files, of several studies, or with --by": (
        "one row a group: what tells it apart, then counts, rates, times and metrics as of cells, then, with "
        "--as-published",
        GROUPS,
    ),
    "comparison.csv": ("one row for each row of the table that has a counterpart", COMPARISON),
    "tests.csv": ("one row a test", TESTS),
    "claims.csv": ("where the study's file has claims: one row for each cell, or pair of cells, of each claim", CLAIMS),
    "sources.csv": ("where seeds of sources are combined: one row for each cell, quantity and source", SOURCES),
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
"""By file: what a row is, and its columns."""
