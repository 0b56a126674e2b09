"""A finding: one comparison with its direction, the only source of statements about differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from study import statistics, words
from study.records import Interval

LEVEL = 0.05
"""Methods are distinguished if the adjusted p-value is below this."""


class Verdict(StrEnum):
    """What can be said of two methods."""

    FIRST_BETTER = "first better"
    SECOND_BETTER = "second better"
    NOT_DISTINGUISHED = "not distinguished"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Lacking:
    """Trials of one method without what is compared.

    Args:
        trials: all its trials, those to come included.
        diverged: trials that diverged, or ended without a finite number of the metric.
        failed: trials that failed by an error.
        pending: trials that have no result yet.
        stopped: trials that `prune` stopped.
    """

    trials: int = 0
    diverged: int = 0
    failed: int = 0
    pending: int = 0
    stopped: int = 0

    def __add__(self, other: Lacking) -> Lacking:
        return Lacking(
            self.trials + other.trials,
            self.diverged + other.diverged,
            self.failed + other.failed,
            self.pending + other.pending,
            self.stopped + other.stopped,
        )

    @property
    def phrase(self) -> str:
        """How many trials lack what is compared, as "2 of 20 trials diverged and 1 failed"; empty if none does."""
        counts = {
            "diverged": self.diverged,
            "failed": self.failed,
            "were stopped": self.stopped,
            "are missing": self.pending,
        }
        parts = [(count, word) for word, count in counts.items() if count]
        if not parts:
            return ""
        total = f" of {words.count_of(self.trials, 'trial')}"
        (first, word), *others = parts
        return words.join_and([f"{first:,}{total} {word}", *(f"{count:,} {word}" for count, word in others)])


@dataclass(frozen=True)
class Sample:
    """The trials that a test used.

    Args:
        pairs: seeds that both methods have, or independent seeds of a source of randomness; 0 where trials were
            compared as independent samples.
        first_better: of the pairs, those at which the first method is better.
        second_better: those at which the second method is better.
        first_alone: trials of the first method with seeds that the second lacks.
        second_alone: trials of the second method with seeds that the first lacks.
        unit: the seeds that are independent of each other, for people.
    """

    pairs: int = 0
    first_better: int = 0
    second_better: int = 0
    first_alone: int = 0
    second_alone: int = 0
    unit: str = "seed"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Two methods compared at one question.

    Args:
        question: the question that both answer; empty if there is only one.
        first: the name of the first method.
        second: the name of the second method.
        metric: the metric that is compared; None for success.
        is_higher_better: whether a greater value is better.
        values: the value of each method over the trials that the test used: a success rate, a mean, or where the
            estimate is a probability the mean of the trials with a number; None where there is none.
        estimate: first minus second of rates or means; or the probability that a trial of the first method is better
            than one of the second, ties half. None where nothing could be tested.
        interval: 95% of the estimate, by what belongs to the test; None where there are too few values for one.
        is_probability: whether the estimate is a probability.
        test: the name of the test; empty where nothing could be tested.
        p_value: two-sided.
        p_adjusted: after Holm's correction over the family; None where nothing could be tested.
        family: how many tests the correction is over.
        sample: the trials that the test used.
        lacking: of each method, the trials without what is compared.
        reason: why nothing could be tested; empty if it could.
        note: what a reader must know of how the methods were compared; empty if nothing.
    """

    question: str
    first: str
    second: str
    metric: str | None
    is_higher_better: bool
    values: tuple[float | None, float | None] = (None, None)
    estimate: float | None = None
    interval: Interval | None = None
    is_probability: bool = False
    test: str = ""
    p_value: float | None = None
    p_adjusted: float | None = None
    family: int = 1
    sample: Sample = Sample()
    lacking: tuple[Lacking, Lacking] = (Lacking(), Lacking())
    reason: str = ""
    note: str = ""

    @property
    def direction(self) -> int:
        """1 if the first method is better by the estimate, -1 if the second is, 0 if neither."""
        if self.estimate is None:
            return 0
        excess = self.estimate - 0.5 if self.is_probability else self.estimate
        sign = (excess > 0) - (excess < 0)
        return sign if self.is_probability or self.is_higher_better else -sign

    @property
    def verdict(self) -> Verdict:
        """Which method is better, if the test tells them apart."""
        if self.p_adjusted is None:
            return Verdict.NOT_TESTED
        if self.p_adjusted >= LEVEL or not self.direction:
            return Verdict.NOT_DISTINGUISHED
        return Verdict.FIRST_BETTER if self.direction > 0 else Verdict.SECOND_BETTER

    @property
    def winner(self) -> str | None:
        """The name of the better method; None unless the test tells them apart."""
        return {Verdict.FIRST_BETTER: self.first, Verdict.SECOND_BETTER: self.second}.get(self.verdict)

    @property
    def discordant(self) -> int:
        """The number of pairs at which one of the methods is better."""
        return self.sample.first_better + self.sample.second_better

    @property
    def more_seeds(self) -> int | None:
        """How many more seeds may bring a verdict, where these are too few for any; None where nothing says it.

        The least p-value of an exact test follows from the number of pairs that differ, and must be below `LEVEL`
        divided by the size of the family.
        """
        if not self.sample.pairs or self.sample.first_alone or self.sample.second_alone:
            return 0
        counts = self.sample.first_better, self.sample.second_better
        return statistics.more_seeds(*counts, self.sample.pairs, LEVEL / self.family)

    @property
    def has_enough_seeds(self) -> bool:
        """Whether the methods differ at so many seeds that the test can tell them apart."""
        return self.more_seeds == 0

    @property
    def statement(self) -> str:
        """The verdict in words, with the reason where there is none."""
        if self.verdict is Verdict.NOT_TESTED:
            return f"{self.verdict}: {self.reason}" if self.reason else str(self.verdict)
        if self.verdict is not Verdict.NOT_DISTINGUISHED or self.has_enough_seeds:
            return str(self.verdict)
        if self.more_seeds is None:
            return f"{self.verdict}: equal at all {self.sample.unit}s"
        of_family = f" for {self.family:,} tests" if self.family > 1 else ""
        seeds = words.count_of(self.more_seeds, f"more {self.sample.unit}")
        return f"{self.verdict}: it takes at least {seeds}{of_family}"

    @property
    def seeds(self) -> int | None:
        """The pairs that were compared seed by seed; None if trials were compared as independent samples."""
        return self.sample.pairs or None


def adjusted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Adjust the p-values of a family of findings by Holm's method; those without a test are not of the family."""
    p_values = [finding.p_value for finding in findings if finding.p_value is not None]
    corrected = iter(statistics.holm(p_values))
    return tuple(
        finding if finding.p_value is None else replace(finding, p_adjusted=next(corrected), family=len(p_values))
        for finding in findings
    )
