"""A finding: one comparison with its direction, the only source of statements about differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from study import statistics, words
from study.records import Interval

LEVEL = 0.05
"""Methods are distinguished if the adjusted p-value is below this level."""


class Verdict(StrEnum):
    """The conclusion on two methods."""

    FIRST_BETTER = "first better"
    SECOND_BETTER = "second better"
    NOT_DISTINGUISHED = "not distinguished"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Lacking:
    """Numbers of one method's trials without a value to compare.

    Args:
        trials: all its trials, including pending ones.
        diverged: trials that diverged, or ended without a finite number of the metric.
        failed: trials that failed with an error.
        pending: trials without a result so far.
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
        """The counts in words; empty if no trial lacks a value.

        Example:
            >>> Lacking(trials=20, diverged=2, failed=1).phrase, Lacking(trials=20, stopped=1).phrase
            ('2 of 20 trials diverged and 1 failed', '1 of 20 trials was stopped')
        """
        counts = {
            "diverged": self.diverged,
            "failed": self.failed,
            "was stopped" if self.stopped == 1 else "were stopped": self.stopped,
            "is missing" if self.pending == 1 else "are missing": self.pending,
        }
        parts = [(count, word) for word, count in counts.items() if count]
        if not parts:
            return ""
        total = f" of {words.count_of(self.trials, 'trial')}"
        (first, word), *others = parts
        return words.join_and([f"{first:,}{total} {word}", *(f"{count:,} {word}" for count, word in others)])


@dataclass(frozen=True)
class Sample:
    """The trials of a test.

    Args:
        pairs: the number of seeds that both methods have, or of independent seeds of a source of randomness; 0 for
            independent samples.
        first_better: the number of pairs at which the first method is better.
        second_better: the number of pairs at which the second method is better.
        first_alone: the number of the first method's trials with seeds that the second lacks.
        second_alone: the number of the second method's trials with seeds that the first lacks.
        unit: the sampling unit, for readers.
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
        metric: the compared metric; None for success.
        is_higher_better: whether a greater value is better.
        values: the value of each method over the tested trials: a success rate, a mean or, if the estimate is a
            probability, the mean of the trials with a number; None where there is none.
        estimate: first minus second of rates or means; or the probability that a trial of the first method is better
            than one of the second, ties counted half. None if nothing could be tested.
        interval: the estimate's 95% interval, by the method that belongs to the test; None if there are too few values.
        is_probability: whether the estimate is a probability.
        test: the name of the test; empty if nothing could be tested.
        p_value: two-sided.
        p_adjusted: after Holm's correction over the family; None if nothing could be tested.
        family: the number of tests in the family.
        sample: the trials of the test.
        lacking: for each method, the trials without a value to compare.
        reason: why nothing could be tested; empty if it could.
        note: a note on the comparison for the reader; empty if there is none.
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
        """1 if the first method is better by the estimate, -1 if the second is, 0 if neither or without an estimate."""
        if self.estimate is None:
            return 0
        excess = self.estimate - 0.5 if self.is_probability else self.estimate
        sign = (excess > 0) - (excess < 0)
        return sign if self.is_probability or self.is_higher_better else -sign

    @property
    def verdict(self) -> Verdict:
        """The better method, or that they are not distinguished, or not tested."""
        if self.p_adjusted is None:
            return Verdict.NOT_TESTED
        if self.p_adjusted >= LEVEL or not self.direction:
            return Verdict.NOT_DISTINGUISHED
        return Verdict.FIRST_BETTER if self.direction > 0 else Verdict.SECOND_BETTER

    @property
    def winner(self) -> str | None:
        """The name of the better method; None unless the test distinguishes them."""
        return {Verdict.FIRST_BETTER: self.first, Verdict.SECOND_BETTER: self.second}.get(self.verdict)

    @property
    def discordant(self) -> int:
        """The number of pairs with one method better than the other."""
        return self.sample.first_better + self.sample.second_better

    @property
    def more_seeds(self) -> int | None:
        """The number of further seeds until enough pairs are discordant for a verdict; 0 if they are enough now.

        It is an expectation, at the present rate of discordant pairs.

        The least p-value of an exact paired test follows from the number of discordant pairs, and must be at most
        `LEVEL` divided by the size of the family. Without pairs, or with unpaired trials, the number is 0. If no
        pair is discordant, it is None.
        """
        if not self.sample.pairs or self.sample.first_alone or self.sample.second_alone:
            return 0
        counts = self.sample.first_better, self.sample.second_better
        return statistics.more_seeds(*counts, self.sample.pairs, LEVEL / self.family)

    @property
    def has_enough_seeds(self) -> bool:
        """True if enough pairs differ for a paired test to distinguish the methods, and for any other test."""
        return self.more_seeds == 0

    @property
    def statement(self) -> str:
        """The verdict in words, with the reason if nothing was tested.

        If all trials are paired and too few pairs differ to distinguish the methods, it adds `more_seeds`; if none
        differs, that the methods are equal at all seeds.
        """
        if self.verdict is Verdict.NOT_TESTED:
            return f"{self.verdict}: {self.reason}" if self.reason else str(self.verdict)
        if self.verdict is not Verdict.NOT_DISTINGUISHED or self.has_enough_seeds:
            return str(self.verdict)
        if self.more_seeds is None:
            return f"{self.verdict}: equal at all {self.sample.unit}s"
        of_family = f" for {self.family:,} tests" if self.family > 1 else ""
        seeds = words.count_of(self.more_seeds, f"more {self.sample.unit}")
        return f"{self.verdict}: it takes about {seeds}{of_family}, at the rate so far"

    @property
    def seeds(self) -> int | None:
        """The number of paired seeds of the test; None for independent samples, or without a test."""
        return self.sample.pairs or None


def adjusted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Adjust the p-values of a family of findings by Holm's method; those without a test don't belong to it.

    Raises:
        ValueError: if a p-value isn't in [0, 1].
    """
    p_values = [finding.p_value for finding in findings if finding.p_value is not None]
    corrected = iter(statistics.holm(p_values))
    return tuple(
        finding if finding.p_value is None else replace(finding, p_adjusted=next(corrected), family=len(p_values))
        for finding in findings
    )
