"""Methods aggregated over tasks: interquartile means, performance profiles, and probabilities of improvement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from study import statistics, words
from study.interface.declarations import Metric
from study.statistics import MeanOverCells, PerformanceProfile, SeedValues
from study.statistics.seed_values import Sample
from study.summaries.rows import ResultRows
from study.trials.table import ENDED, Floats, Ints, Trials, TrialTable

MOST_METHODS = 24
"""The greatest number of methods that are aggregated over tasks."""

_MOST_TRIALS = 250_000
_MOST_NAMES = 8


@dataclass(frozen=True, kw_only=True)
class OverallMethod:
    """A method over the questions that all methods answer.

    Args:
        name: its name.
        seeds: the least and the greatest number of seeds of a question.
        trials: the number of its trials that ended.
        without_number: the number of these without a finite number.
        interquartile_mean: the mean over questions of the interquartile mean of the trials with a number; None if a
            question has no such trial.
        profile: the share of its trials that are better than a threshold; a trial without a number is never better.
        improvements: for each method in their order, the probability that a trial of this one is better; None for
            itself, and if a question has only one seed.
    """

    name: str
    seeds: tuple[int, int]
    trials: int
    without_number: int
    interquartile_mean: MeanOverCells | None
    profile: PerformanceProfile
    improvements: tuple[MeanOverCells | None, ...]


@dataclass(frozen=True, kw_only=True)
class Overall:
    """Methods aggregated over tasks: the questions of a report.

    Args:
        name: the metric's name.
        metric: its declaration.
        questions: the names of the questions that all methods answer.
        methods: the methods; empty if they can't be compared, with the reason in a note.
        notes: notes for the reader.
    """

    name: str
    metric: Metric
    questions: tuple[str, ...]
    methods: tuple[OverallMethod, ...]
    notes: tuple[str, ...]

    @cached_property
    def title(self) -> str:
        """The metric's name for readers."""
        return words.metric_title(self.name, self.metric)

    @cached_property
    def best(self) -> int:
        """The index of the method with the best interquartile mean, the reference for the others; 0 if none has one.

        Raises:
            ValueError: without methods.
        """
        sign = -1.0 if self.metric.higher_is_better else 1.0
        means = [m.interquartile_mean for m in self.methods]
        return min(range(len(means)), key=lambda i: math.inf if (mean := means[i]) is None else sign * mean.value)


def overall(rows: ResultRows, table: TrialTable) -> Overall | None:
    """Aggregate the methods of a report over its questions by its main metric.

    Args:
        rows: the rows of the report.
        table: their trials.

    Returns:
        None if no metric is reported by all trials that ended, fewer than two methods have a trial that ended, or fewer
        than two questions are answered by all of them. With too many methods or trials, there are no methods, and a
        note says so.

    Raises:
        InputError: if the vocabulary of an installed package can't be imported.
        KeyError: if the trials' table doesn't declare the metric.
    """
    name = rows.main_metric
    of_method = rows.alike([key for key in rows.keys if key in rows.methods], rows.ended())
    if name is None or len(of_method) < 2:
        return None
    questions = rows.questions()
    answered = Counter(question for members in of_method.values() for question in {questions[row] for row in members})
    common = [question for question in dict.fromkeys(questions) if answered[question] == len(of_method)]
    if len(common) < 2:
        return None
    head: dict[str, Any] = {"name": name, "metric": rows.metrics[name]}
    count = table.results.num_rows
    if len(of_method) > MOST_METHODS or count > _MOST_TRIALS:
        size = f"{len(of_method)} methods" if len(of_method) > MOST_METHODS else words.count_of(count, "trial")
        return Overall(**head, questions=(), methods=(), notes=(f"{size} are too many to be aggregated over tasks.",))
    in_order = [[next(row for row in members if questions[row] == q) for q in common] for members in of_method.values()]
    methods = [_Method([table.group(rows.summaries[row].key) for row in members], name) for members in in_order]
    names = [rows.name(members[0], rows.method_keys) for members in in_order]
    return Overall(
        **head,
        questions=tuple(rows.name(row, rows.question_keys) for row in in_order[0]),
        methods=tuple(method.summarised(own, methods) for method, own in zip(methods, names, strict=True)),
        notes=tuple(_notes(words.metric_title(name, rows.metrics[name]), names, methods, len(common), len(answered))),
    )


class _Method:
    """The trials of a method at each question."""

    def __init__(self, trials: Sequence[Trials], metric: str) -> None:
        self.higher_is_better = trials[0].table.metrics[metric].higher_is_better
        samples = [
            (ended.seeds, ended.values(metric)) for group in trials for ended in [group.select(group.are(*ENDED))]
        ]
        self.trials = sum(seeds.size for seeds, _ in samples)
        self.without_number = sum(int(np.isnan(values).sum()) for _, values in samples)
        self.repeats = sum(seeds.size - np.unique(seeds).size for seeds, _ in samples)
        self.by_question = [_by_seed(*sample) for sample in samples]

    def summarised(self, name: str, others: Sequence[_Method]) -> OverallMethod:
        """Summarise the method, alone and against each other method."""
        sizes = [len(sample) for sample in self.by_question]
        numbers = [{s: v for s, v in sample.items() if math.isfinite(v)} for sample in self.by_question]
        has_all = all(numbers)
        return OverallMethod(
            name=name,
            seeds=(min(sizes), max(sizes)),
            trials=self.trials,
            without_number=self.without_number,
            interquartile_mean=statistics.interquartile_mean_over_cells(_named(numbers)) if has_all else None,
            profile=statistics.performance_profile(self.worst_named, higher_is_better=self.higher_is_better),
            improvements=tuple(None if other is self else self._improvement(other) for other in others),
        )

    @cached_property
    def worst_named(self) -> SeedValues:
        """The values, with the worst possible one for trials without a number."""
        worst = -math.inf if self.higher_is_better else math.inf
        return _named([{s: worst if math.isnan(v) else v for s, v in sample.items()} for sample in self.by_question])

    def _improvement(self, other: _Method) -> MeanOverCells | None:
        """Estimate the probability that a trial is better than another method's; None if a question has one seed."""
        if min(len(sample) for sample in (*self.by_question, *other.by_question)) < 2:
            return None
        return statistics.probability_of_improvement(
            of=self.worst_named, over=other.worst_named, higher_is_better=self.higher_is_better
        )


def _named(samples: Sequence[Sample]) -> SeedValues:
    """Give each question's values its index as the name of the cell."""
    return SeedValues(dict(enumerate(samples)))


def _by_seed(seeds: Ints, values: Floats) -> Sample:
    """Return the value of each seed: the mean of its trials, NaN if one has no number."""
    different, place = np.unique(seeds, return_inverse=True)
    means = np.bincount(place, weights=values) / np.bincount(place)
    return dict(zip(different.tolist(), means.tolist(), strict=True))


def _notes(title: str, names: Sequence[str], methods: Sequence[_Method], common: int, every: int) -> list[str]:
    """Return notes on the scale, tasks left out, trials without a number, and repeated seeds."""
    notes = [
        f"All tasks have equal weights. So {title} must be on one scale in all of them for the interquartile mean and "
        "the profile; if it isn't, use the probabilities, which compare trials of the same task only."
    ]
    if every > common:
        notes.append(f"{words.count_of(every - common, 'task')} left out, on which not all methods were trained.")
    lacking = [
        f"{name} ({method.without_number:,} of {method.trials:,})"
        for name, method in zip(names, methods, strict=True)
        if method.without_number
    ]
    if lacking:
        more = len(lacking) - _MOST_NAMES
        listed = "; ".join(lacking[:_MOST_NAMES]) + (f"; and {more} more" if more > 0 else "")
        notes.append(
            f"Trials without a finite {title} count as worse than any number in profiles and probabilities, and "
            f"interquartile means leave them out: {listed}."
        )
    if any(method.repeats for method in methods):
        notes.append(
            "The seed is the sampling unit: if a row has several trials of a seed, their mean is the seed's value."
        )
    return notes
