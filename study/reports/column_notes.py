"""What the columns of rows of results hold: of cells, of groups, and of the metrics in both.

A name in braces stands for any such name: ``{metric}_mean`` is there for each metric.
"""

from __future__ import annotations

from dataclasses import dataclass

from study.interface.declarations import Metric


@dataclass(frozen=True)
class ColumnNote:
    """What a column holds.

    Args:
        meaning: what its values are.
        unit: their unit; empty for none.
        values: which values there are.
        empty: where there is none; empty if each row has one.
    """

    meaning: str
    unit: str = ""
    values: str = "text"
    empty: str = ""

    @property
    def text(self) -> str:
        """The meaning, with the unit."""
        return f"{self.meaning} (unit: {self.unit})" if self.unit else self.meaning


POSITIVE, RATE, FLAG, NUMBER = ">= 0", "0 to 1", "true or false", "any number"
METRICS_UNIT = "that of the metric"
ID = "16 hexadecimal digits"


def count(meaning: str, empty: str = "") -> ColumnNote:
    """Describe a column of counts."""
    return ColumnNote(meaning, values="a whole number >= 0", empty=empty)


def p_value(meaning: str, empty: str = "") -> ColumnNote:
    """Describe a column of p-values."""
    return ColumnNote(meaning, values=RATE, empty=empty)


def interval(name: str, meaning: str, unit: str, values: str, empty: str) -> dict[str, ColumnNote]:
    """Describe the two columns of an interval."""
    return {
        f"{name}_{end}": ColumnNote(f"{end} end of the interval {meaning}", unit, values, empty)
        for end in ("lower", "upper")
    }


CELL_ID = {"cell_id": ColumnNote("the cell's id: a hash of what determines its trials but for their seeds", values=ID)}
OF_CELL = {
    "task": ColumnNote("the name of the task, or its import string", empty="of a training function"),
    "model": ColumnNote("the name of the model, or its import string", empty="of a training function without models"),
    "{hyperparameter}": ColumnNote(
        "each hyperparameter, by its name in a study file; `NAME (hyperparameter)` where another column is called so",
        values="those of the study file; a range as text",
        empty="where the cell has no such hyperparameter, or it is off",
    ),
}
KEYS = {
    "{key}": ColumnNote(
        "what tells the rows of the table apart: hyperparameters, axes with labels, or columns of a file",
        values="those of the study file, or of the file",
        empty="where the row has none",
    )
}

COUNTS = {
    "seeds": count("trials planned"),
    "solved": count("trials that solved the task"),
    "unsolved": count("trials that ran to the end without solving it"),
    "finished": count("trials that ran to the end, which nothing judges"),
    "stopped": count("trials that prune stopped early; a row with some has no rate, times and metrics"),
    "diverged": count("trials whose weights became NaN or infinite"),
    "failed": count("trials that crashed and have no result"),
    "pending": count("trials that are planned and not done"),
    "complete": ColumnNote("true if no trial is failed, stopped or pending", values=FLAG),
}
NONE_JUDGED, NONE_SOLVED = "where no trial is judged", "where no trial is solved"
RATES = {
    "success_rate": ColumnNote("solved / (solved + unsolved + diverged)", "", RATE, NONE_JUDGED),
    **interval(
        "success_rate",
        "of the success rate, 95%; Wilson's, or one that allows for it where seeds were added until there were enough",
        "",
        RATE,
        NONE_JUDGED,
    ),
}
_BY_ORDER = "of the distribution's median, by order statistics, at least 95%"
_TOO_FEW = "where too few trials are solved"
SOLVED_AT = {
    "solved_at_median": ColumnNote("median over the solved trials", "iterations", POSITIVE, NONE_SOLVED),
    **interval("solved_at_median", _BY_ORDER, "iterations", POSITIVE, _TOO_FEW),
    "solved_at_mean": ColumnNote("mean over the solved trials", "iterations", POSITIVE, NONE_SOLVED),
    **interval(
        "solved_at", "of a gamma distribution's mean, by profile likelihood, 95%", "iterations", POSITIVE, _TOO_FEW
    ),
}
TIMES = {
    "time_to_success_mean": ColumnNote(
        "mean of min(time to success, time_to_success_until) of all trials that ended",
        "iterations",
        POSITIVE,
        NONE_JUDGED,
    ),
    **interval("time_to_success", "of it, at least 95%, for any distribution", "iterations", POSITIVE, NONE_JUDGED),
    "time_to_success_until": ColumnNote(
        "what it is restricted to: the iterations planned for the rows of its question",
        "iterations",
        POSITIVE,
        NONE_JUDGED,
    ),
}
SECONDS = {
    "training_s_mean": ColumnNote("mean of the training of trials that ended", "seconds", POSITIVE, "if unmeasured")
}
SECONDS_TO_SUCCESS = {
    "solved_at_s_median": ColumnNote("median over the solved trials", "seconds of training", POSITIVE, NONE_SOLVED),
    "solved_at_s_mean": ColumnNote("mean over the solved trials", "seconds of training", POSITIVE, NONE_SOLVED),
    **interval(
        "solved_at_s",
        "of a gamma distribution's mean, by profile likelihood, 95%",
        "seconds of training",
        POSITIVE,
        _TOO_FEW,
    ),
}
STOPPED = {
    "stopped_early": count("trials that were ended by stop: when_decided"),
    "ended_early": count("trials that ended unsolved before time_to_success_until, and are censored at their end"),
}


def of_metric(name: str, metric: Metric) -> dict[str, ColumnNote]:
    """Describe the columns of a metric that is averaged over the trials of a row.

    Args:
        name: its name.
        metric: its declaration.
    """
    trials = "the solved trials" if metric.of == "solved" else "the trials that ended with a number"
    none, values = "where there are none", _limits(metric)

    def column(meaning: str) -> ColumnNote:
        return ColumnNote(meaning, METRICS_UNIT, values, none)

    def ends_of(of: str, meaning: str) -> dict[str, ColumnNote]:
        return interval(of, meaning, METRICS_UNIT, values, "where there are too few")

    mean = {f"{name}_mean": column(f"mean over {trials}")}
    if metric.interval == "beta":
        where = f"[{_end(metric.low)}, {_end(metric.high)}]"
        return mean | ends_of(name, f"of the mean of a beta distribution on {where}, by profile likelihood, 95%")
    return {
        **mean,
        **ends_of(name, "of the mean, by the studentised bootstrap, 95%"),
        f"{name}_median": column(f"median over {trials}"),
        **ends_of(f"{name}_median", _BY_ORDER),
        f"{name}_interquartile_mean": column(f"mean of the middle half of {trials}"),
        **ends_of(f"{name}_interquartile_mean", "of it, by the expanded percentile bootstrap, 95%"),
        f"{name}_trials": count(f"the number of {trials}"),
    }


def _limits(metric: Metric) -> str:
    """Say between what a metric's values are."""
    if metric.low is None:
        return NUMBER if metric.high is None else f"<= {_end(metric.high)}"
    return f">= {_end(metric.low)}" if metric.high is None else f"{_end(metric.low)} to {_end(metric.high)}"


def _end(limit: float | None) -> str:
    return "1/2" if limit == 0.5 else f"{limit:g}"


def as_published(error: str) -> dict[str, ColumnNote]:
    """Describe the columns that follow with `--as-published`. The published success rates and medians are right.

    Args:
        error: the metric of solved trials that the published estimators are applied to.
    """
    name, what = f"as_published_{error}", error.replace("_", " ")
    return {
        "as_published_solved_at_mean": ColumnNote(
            "the published estimate of the mean of solved-at", "iterations", POSITIVE, NONE_SOLVED
        ),
        **interval("as_published_solved_at", "of that estimate", "iterations", POSITIVE, NONE_SOLVED),
        f"{name}_mean": ColumnNote(
            f"the published estimate of the mean of the {what}", METRICS_UNIT, POSITIVE, NONE_SOLVED
        ),
        **interval(name, "of that estimate", METRICS_UNIT, POSITIVE, NONE_SOLVED),
    }


STATISTICS = {**COUNTS, **RATES, **SOLVED_AT, **TIMES, **SECONDS, **SECONDS_TO_SUCCESS, **STOPPED}
"""The columns of counts, rates and times, of whatever metrics there are."""

_METRIC = of_metric("{metric}", Metric())
CELLS = {
    **CELL_ID,
    "label_{axis}": ColumnNote("the label of the cell's point on an axis of the grid", empty="if it is on none"),
    **OF_CELL,
    **COUNTS,
    **RATES,
    **SOLVED_AT,
    **_METRIC,
    **TIMES,
    **SECONDS,
    **SECONDS_TO_SUCCESS,
    **STOPPED,
}
GROUPS = {**KEYS, **as_published("{metric}")}
