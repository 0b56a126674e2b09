"""Names and numbers of a search for readers: objectives, parameters, and estimates by fresh seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from study import words
from study.interface.declarations import Metric
from study.plugins.vocabulary import vocabulary
from study.records import Interval
from study.summaries.search import Candidate, Objective, Parameter, SearchFindings
from study.summaries.summary import Summary
from study.words import Notation

UNKNOWN = "unknown"
"""The value of a candidate with too many trials without a number."""


@dataclass(frozen=True)
class Measured:
    """The estimate of an objective by fresh seeds.

    Args:
        title: the title for readers.
        write: formats a value.
        estimate: the summary's field with the estimate, or a metric's name.
        interval: the summary's field with the 95% interval; None for a metric.
        statistic: the statistic of a metric, ``mean`` or ``median``.
    """

    title: str
    write: Notation
    estimate: str
    interval: str | None = None
    statistic: str = "mean"

    def measure(self, summary: Summary) -> tuple[float | None, Interval | None]:
        """Return the estimate and its 95% interval; None where they are missing."""
        if self.interval is not None:
            return getattr(summary, self.estimate), getattr(summary, self.interval)
        metric = summary.metrics.get(self.estimate)
        if metric is None:
            return None, None
        return getattr(metric, self.statistic), getattr(metric, f"{self.statistic}_interval")

    def text(self, summary: Summary) -> str:
        """Format the estimate with its interval, in the notation of the table of results; an en dash if missing."""
        metric = summary.metrics.get(self.estimate)
        write = self.write if metric is None else words.metric_notation(metric.metric)
        return write(*self.measure(summary))


SUCCESS_RATE = Measured("success rate", words.rate, "success_rate", "success_rate_interval")
_TIMES = (
    ("solved_at", "solved at iteration, median", "solved_at_median", "solved_at_median_interval"),
    ("time_to_success", "iterations to success, mean", "time_to_success_mean", "time_to_success_interval"),
)
_MEASURED = {"success_rate": SUCCESS_RATE} | {
    name: Measured(title, words.iterations, estimate, interval) for name, title, estimate, interval in _TIMES
}


def measured(objective: Objective) -> Measured:
    """Return the estimate by fresh seeds that the report's tables show for an objective."""
    if objective.statistic in ("rate", "time"):
        return _MEASURED[objective.name]
    name = objective.title.partition(",")[0]
    return Measured(f"{name}, {objective.statistic}", words.error, objective.name, statistic=objective.statistic)


def title(parameter: Parameter) -> str:
    """Name a parameter for readers, prefixed by the model if the range is that model's own.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> title(Parameter("learning_rate", "learning_rate", title="step size"))
        'step size'
        >>> title(Parameter("NAC-mul.init_variance", "init_variance"))
        'NAC•: init variance'
    """
    model, name = parameter.name.rpartition(".")[0], parameter.hyperparameter
    text = words.title(name, {name: parameter.title})
    return f"{words.symbol(model)}: {text}" if model else text


def unit(parameter: str) -> str:
    """Return a parameter's unit; empty if the vocabulary has none.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    return vocabulary().units.get(parameter.rpartition(".")[2], "")


def value(parameter: str, choice: Any) -> str:
    """Format a parameter's value: floats to three digits, from 1,000 as whole numbers; None is empty.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> [value("sparsity_strength", choice) for choice in (0.144234, 12.0, 1.2345e-05, 12345.6)]
        ['0.144', '12', '1.23e-5', '12,346']
        >>> value("sparsity_start", 12345), value("model", "NAC-mul"), value("momentum", None)
        ('12,345', 'NAC•', '')
    """
    if choice is None:
        return ""
    if isinstance(choice, float):
        return f"{choice:,.0f}" if abs(choice) >= 999.5 else f"{choice:.3g}".replace("e-0", "e-")
    return words.format_value(parameter.rpartition(".")[2], choice)


def objectives_note(search: SearchFindings, metrics: Mapping[str, Metric]) -> str:
    """Explain unknown values, and objectives whose trials differ from those of fresh seeds; empty without either."""
    solved_names = {name for name, metric in metrics.items() if metric.of == "solved"} | {"solved_at"}
    names = [objective.title.partition(",")[0] for objective in search.objectives if objective.name in solved_names]
    sentences = []
    if any(
        not objective.has_number(c.values[i])
        for c in search.candidates
        for i, objective in enumerate(search.objectives)
    ):
        sentences.append(
            "A candidate's value is unknown if so many of its trials diverged or failed that the end of the median's "
            "interval isn't a number; such candidates rank last, by their share of trials with a number."
        )
    if names:
        sentences.append(
            f"For {' and '.join(names)} the search takes the geometric mean of all trials, with unsolved ones at the "
            "worst value; estimates by fresh seeds are of the solved trials alone."
        )
    return " ".join(sentences)


def choices(search: SearchFindings, params: Mapping[str, Any]) -> str:
    """Format all parameters of a candidate in a line.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    return ", ".join(
        value(name, choice) if name == "model" else f"{title(search.parameter(name))} {value(name, choice)}"
        for name, choice in params.items()
    )


def worth(objective: Objective, number: float) -> str:
    """Format a candidate's value in the search.

    Example:
        >>> rate = Objective(name="success_rate", title="success rate", is_higher_better=True, statistic="rate")
        >>> worth(rate, 0.7701), worth(rate, 2e30)
        ('0.77', 'unknown')
    """
    return measured(objective).write(number) if objective.has_number(number) else UNKNOWN


def described(search: SearchFindings, candidate: Candidate) -> str:
    """Describe a candidate: its values, the number of its seeds, and its parameters.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    values = zip(search.objectives, candidate.values, strict=True)
    worths = ", ".join(f"{objective.title} {worth(objective, number)}" for objective, number in values)
    return f"#{candidate.number}: {worths}, {candidate.seeds} seeds; {choices(search, candidate.params)}"


def confirmed(search: SearchFindings) -> list[tuple[Candidate, int]]:
    """Return the candidates that were run with fresh seeds, with their rows of the report, in the rows' order."""
    pairs = [(c, search.rows[c.number]) for c in search.candidates if c.number in search.rows]
    return sorted(pairs, key=lambda pair: pair[1])


def by_importance(search: SearchFindings) -> list[str]:
    """Return the names of the parameters with known importance, the most important over all objectives first."""
    names = {name for shares in search.importance.values() for name in shares}
    order = [parameter.name for parameter in search.parameters if parameter.name in names]
    return sorted(order, key=lambda name: -importance(search, name))


def importance(search: SearchFindings, parameter: str) -> float:
    """Return a parameter's importance, averaged over the objectives with known importance; 0 if unknown for all.

    An objective for which only this parameter's importance is unknown counts as 0.
    """
    shares = [by_parameter.get(parameter, 0.0) for by_parameter in search.importance.values()]
    return sum(shares) / len(shares) if shares else 0.0


def selected(search: SearchFindings, most: int) -> Sequence[Candidate]:
    """Select up to `most` candidates: first those of the front or confirmed, then others at even steps.

    If more are of the front or confirmed, those with the lowest numbers are taken. All are returned in the order of
    their numbers.
    """
    if len(search.candidates) <= most:
        return search.candidates
    special = {*search.front, *search.rows}
    best = [c for c in search.candidates if c.number in special][:most]
    others = [c for c in search.candidates if c.number not in special]
    room = most - len(best)
    between = [others[i * len(others) // room] for i in range(room)]
    return sorted([*best, *between], key=lambda candidate: candidate.number)
