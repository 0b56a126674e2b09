"""Sequential tests of claims about means, with one error level over all cells of a claim.

A claim says that the mean μ_k of each of K cells, or pairs of cells, is above a bound m. The mean is a rate, a
difference of rates, or that of any bounded number. Two errors are possible: the claim is called shown although some
μ_k <= m, or refuted although all μ_k > m. Each has a probability of at most α:

- *shown*: each cell has evidence of its own that μ_k > m, at level α. If a cell isn't above its bound, calling the
  claim shown takes an error on that cell (an intersection-union test).
- *refuted*: the mean over the cells of the evidence that μ_k < m reaches level α. A mean of bets is a bet.

Evidence is computed by `study.statistics.bets`, and decides at any look where it reaches 1/α. If the last look is
planned, α is halved for rates and differences of rates: half for the bets, and half for an exact test at that look.
That test also counts a cell as above its bound at level α/2. It also refutes the claim if any cell is below its bound
at level α/(2 K). With a single planned look, the exact test has all of α. The exact test is the binomial one for rates,
and that of `study.statistics.mcnemar_interval` for differences of rates.

Several claims share one error level by Bonferroni's correction: each is tested at the level divided by their number.
Holm's correction isn't valid here, since it requires that errors are possible in one direction only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from study.records import Interval
from study.statistics.bets import BetGains, anytime_mean, evidence, log_evidence
from study.statistics.checks import Floats
from study.statistics.paired import difference_p_values

Kind = Literal["rate", "difference", "mean"]
State = Literal["shown", "refuted", "undecided", "open"]
_PATHS = 200


@dataclass(frozen=True, eq=False)
class ClaimSample:
    """Numbers of the seeds of one cell, or pair of cells, and the bound that their mean is claimed to exceed.

    Args:
        values: one for each seed in order, in [low, high]; NaN if the seed is not counted, is pending or failed.
        bound: m, low < m < high.
        low: the least possible number, finite.
        high: the greatest possible number, finite.
        kind: ``rate`` for numbers that are 0 or 1, ``difference`` for -1, 0 or 1, ``mean`` for any others.
        complete: the number of first seeds that have all ended; None for all.
        failed: a flag for each seed with a failed trial, whose number is unknown. It counts as the least possible
            number in the evidence for the claim, and as the greatest in the evidence against it. None if no trial
            failed.

    Raises:
        ValueError: if low < bound < high doesn't hold.
    """

    values: Floats
    bound: float
    low: float = 0.0
    high: float = 1.0
    kind: Kind = "mean"
    complete: int | None = None
    failed: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if not self.low < self.bound < self.high:
            raise ValueError(f"low < bound < high must hold, but got {self.low:g}, {self.bound:g}, {self.high:g}")

    def first(self, n: int) -> ClaimSample:
        """Return the sample of the first n seeds; `complete` isn't reduced."""
        return replace(self, values=self.values[:n], failed=None if self.failed is None else self.failed[:n])

    @property
    def known(self) -> Floats:
        """The known numbers, in the order of seeds."""
        numbers: Floats = self.values[~np.isnan(self.values)]
        return numbers

    @property
    def failures(self) -> int:
        """The number of seeds with a failed trial."""
        return 0 if self.failed is None else int(np.count_nonzero(self.failed))

    def _known_with(self, failed: float) -> Floats:
        """Return the known numbers, with the given number for each failed seed, in the order of seeds."""
        if self.failed is None:
            return self.known
        numbers: Floats = np.where(self.failed, failed, self.values)
        return numbers[~np.isnan(numbers)]

    @property
    def evidence(self) -> BetGains:
        """The evidence that the mean is above the bound, and that it is below.

        Raises:
            ValueError: if a value is not in [low, high].
        """
        bound = float(self._scaled(np.asarray(self.bound)))
        gains = evidence(self._scaled(self._known_with(self.low)), bound)
        if not self.failures:
            return gains
        return BetGains(gains.above, evidence(self._scaled(self._known_with(self.high)), bound).below)

    @property
    def p_values(self) -> tuple[float, float] | None:
        """One-sided exact p-values that the mean is above the bound, and below; None for the kind ``mean``.

        Raises:
            ValueError: if the kind is ``difference``, and the bound isn't in (-1, 1).
        """
        least, greatest = self._known_with(self.low), self._known_with(self.high)
        if self.kind == "rate":
            k, n = int(least.sum()), least.size
            above = float(special.bdtrc(k - 1, n, self.bound)) if k else 1.0
            return above, float(special.bdtr(int(greatest.sum()), n, self.bound))
        if self.kind == "difference":
            above, _ = self._difference_p_values(least)
            return above, self._difference_p_values(greatest)[1]
        return None

    def _difference_p_values(self, numbers: Floats) -> tuple[float, float]:
        return difference_p_values(int(np.sum(numbers > 0)), int(np.sum(numbers < 0)), numbers.size, self.bound)

    @property
    def mean(self) -> float | None:
        """The mean of the known numbers; None without any."""
        return float(self.known.mean()) if self.known.size else None

    @property
    def interval(self) -> Interval:
        """A 95% interval of the mean by the known numbers, valid at any stopping time; (low, high) without any.

        Raises:
            ValueError: if a value is not in [low, high].
        """
        low, high = anytime_mean(self._scaled(self.known))
        return self.low + low * (self.high - self.low), self.low + high * (self.high - self.low)

    def _scaled(self, numbers: Floats) -> Floats:
        return np.asarray((numbers - self.low) / (self.high - self.low))

    def _rates(self, rng: np.random.Generator, paths: int) -> tuple[Floats, Floats]:
        """Draw distributions from the Dirichlet posterior on the known and the possible numbers.

        Returns:
            The distinct numbers, scaled to [0, 1], and their probabilities, shape [paths, numbers].
        """
        possible = {"rate": [0.0, 1.0], "difference": [-1.0, 0.0, 1.0], "mean": [self.low, self.high]}[self.kind]
        numbers, counts = np.unique([*self.known, *possible], return_counts=True)
        weights = counts - 0.5 * np.isin(numbers, possible)
        return self._scaled(numbers), rng.dirichlet(weights, size=paths)


@dataclass(frozen=True)
class Course:
    """The progress of a claim.

    Args:
        state: ``shown``, ``refuted``, ``undecided`` at the last look, or ``open`` while seeds are to be added.
        seeds: the number of seeds that each cell has been given.
        evidence: of each cell at its last look.
        hold: whether each cell is above its bound.
        p_values: of each cell at its last look; None if that look has no exact test.
    """

    state: State
    seeds: tuple[int, ...]
    evidence: tuple[BetGains, ...]
    hold: tuple[bool, ...]
    p_values: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True)
class EarlierLook:
    """A former last look, from before the number of seeds was changed.

    Args:
        seeds: the number of seeds of each cell.
        exact: the error level of its exact test.
        bets: the error level of the bets.
        is_of_first: whether its seeds are the first ones of the current seeds.
    """

    seeds: int
    exact: float
    bets: float = 0.0
    is_of_first: bool = True


@dataclass(frozen=True)
class ClaimTest:
    """The decision rule of a claim.

    Args:
        looks: the numbers of seeds at which the cells are tested, ascending.
        error: α, in (0, 1): the greatest probability of either error, without earlier looks (see
            `total_error`).
        is_planned: whether the number of seeds depends on this rule alone, so that the last look is known in advance;
            otherwise no exact test is known.
        earlier: former last looks. Those among `looks` are repeated at their own levels.

    Raises:
        ValueError: without a look, or if the error is out of range.

    Example:
        >>> test = ClaimTest(looks=(20, 40, 60), error=0.05)
        >>> solved = np.array([1.0] * 19 + [0.0] + [np.nan] * 40)
        >>> course = test.follow([ClaimSample(solved, 0.5, kind="rate", complete=20)])
        >>> course.state, course.seeds, round(course.evidence[0].above)
        ('shown', (20,), 4998)
    """

    looks: tuple[int, ...]
    error: float = 0.05
    is_planned: bool = True
    earlier: tuple[EarlierLook, ...] = ()

    def __post_init__(self) -> None:
        if not self.looks or not 0 < self.error < 1:
            raise ValueError(f"there must be a look and 0 < error < 1, but got {self.looks} and {self.error}")

    def shares(self, kind: Kind) -> tuple[float, float]:
        """Return the error levels of the evidence, and of the exact test at the last look.

        A level is 0 if that test isn't used: evidence on rates and differences with a single planned look, and the
        exact test for means or if the last look isn't planned. Each earlier look halves the level of the exact test;
        if an earlier look coincides with the last one, its own level counts.
        """
        if kind == "mean" or not self.is_planned:
            return self.error, 0.0
        bets = self.error / 2 if len(self.looks) > 1 else 0.0
        repeated = [look.exact for look in self.earlier if self.is_last(look)]
        return bets, repeated[0] if repeated else (self.error - bets) / 2 ** len(self.earlier)

    def total_error(self, kind: Kind) -> float:
        """Return the greatest probability of either error, over all looks, earlier ones included.

        Example:
            >>> ClaimTest((40,), earlier=(EarlierLook(20, exact=0.05),)).total_error("rate")
            0.07500000000000001
        """
        bets, exact = self.shares(kind)
        spent = sum(look.exact for look in self.earlier if not self.is_last(look))
        return max([bets, *(look.bets for look in self.earlier)]) + exact + spent

    @property
    def looks_once(self) -> bool:
        """True if there is a single look, at a number of seeds that is known in advance."""
        return self.is_planned and len(self.looks) == 1

    def is_last(self, look: EarlierLook) -> bool:
        """Return True if an earlier look coincides with the current last one."""
        return look.is_of_first and look.seeds == self.looks[-1]

    def _exact_shares(self, kind: Kind) -> dict[int, float]:
        """Return the error levels of all exact tests, the repeated earlier ones included, by their numbers of seeds."""
        shares = {look.seeds: look.exact for look in self.earlier if look.is_of_first and look.seeds in self.looks}
        _, last = self.shares(kind)
        return shares | ({self.looks[-1]: last} if last else {})

    def follow(self, cells: Sequence[ClaimSample]) -> Course:
        """Test the cells of a claim at each look, until it is decided, a look lacks trials, or no look is left.

        All cells get the same number of seeds until they are above their bounds, and then no more.

        Args:
            cells: at least one, all of one kind.

        Returns:
            The progress; ``open`` at a look for which an active cell has fewer complete seeds.

        Raises:
            ValueError: if a value is not in its cell's [low, high], or a bound of differences not in (-1, 1).
        """
        count = len(cells)
        seeds, so_far, hold = [0] * count, [BetGains()] * count, [False] * count
        p_values: list[tuple[float, float] | None] = [None] * count
        bet_error, _ = self.shares(cells[0].kind)
        exact_shares = self._exact_shares(cells[0].kind)

        def course(state: State) -> Course:
            return Course(state, tuple(seeds), tuple(so_far), tuple(hold), tuple(p_values))

        for look in self.looks:
            active = [k for k in range(count) if not hold[k]]
            for k in active:
                seeds[k] = look
            if any(ended is not None and ended < look for ended in (cells[k].complete for k in active)):
                return course("open")
            exact = exact_shares.get(look, 0.0)
            for k in active:
                sample = cells[k].first(look)
                so_far[k] = sample.evidence
                p_values[k] = sample.p_values if exact else None
                hold[k] = so_far[k].above * bet_error >= 1 or _is_below(p_values[k], 0, exact)
            if all(hold):
                return course("shown")
            against = sum(gains.below for gains in so_far) / count
            if against * bet_error >= 1 or any(_is_below(p_values[k], 1, exact / count) for k in active):
                return course("refuted")
        return course("undecided")

    def expected(self, cell: ClaimSample, cells: int) -> int:
        """Estimate the number of seeds that a cell of a claim needs in all, by simulation.

        Samples are simulated from distributions that the numbers so far suggest, with half a seed for each possible
        number as the prior.

        Args:
            cell: the numbers so far.
            cells: the number of cells of the claim.

        Returns:
            The mean over the simulated samples, rounded up; the last look for a sample that stays undecided, and for a
            test that uses no evidence.
        """
        rng = np.random.default_rng(0)
        numbers, rates = cell._rates(rng, _PATHS)
        steps = np.diff([0, *self.looks])
        counts = np.cumsum(np.stack([rng.multinomial(step, rates) for step in steps], axis=1), axis=1)
        bound = float(cell._scaled(np.asarray(cell.bound)))
        above, below = log_evidence(numbers, counts.astype(np.float64), bound)
        bet_error, _ = self.shares(cell.kind)
        if not bet_error:
            return self.looks[-1]
        ends = (above >= -math.log(bet_error)) | (below >= math.log(cells / bet_error))
        at = np.where(ends.any(axis=1), ends.argmax(axis=1), len(self.looks) - 1)
        return math.ceil(float(np.mean(np.asarray(self.looks)[at])))


def _is_below(p_values: tuple[float, float] | None, side: int, level: float) -> bool:
    return p_values is not None and p_values[side] <= level
