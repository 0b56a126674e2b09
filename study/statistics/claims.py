"""Claims about means, decided in either direction while seeds are added, with one error for all cells.

A claim says that the mean μ_k of each of K cells, or pairs of cells, is above a bound m: a rate, a difference of rates,
or any bounded number. Exactly one thing can be wrong about it: that it is called shown though some μ_k <= m, or refuted
though all μ_k > m. Each has a probability of at most α:

- *shown*: all cells are, each by its own evidence that μ_k > m, at α: wherever one is not above its bound, it alone
  must be called so wrongly;
- *refuted*: by the mean over the cells of the evidence that μ_k < m, at α: the mean of bets is a bet.

Evidence is that of `study.statistics.bets`. It counts at every look where it reaches 1/α. Where there is an exact test
for a fixed number of seeds, half of α is kept for the last look, at which a cell is also above its bound where that
test says so at α/2, and the claim also refuted where it says so of any cell at α/(2 K). With a single look, the test
has all of α. The tests are the binomial one for rates, and that of `study.statistics.mcnemar_interval` for differences
of rates.

Several claims share an error by Bonferroni's correction: each has the error of all, divided by their number. Holm's
would be wrong here: it counts on errors being possible in one direction only.
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
    """Numbers of a cell's, or a pair's, seeds, in order, and the bound that their mean is claimed to be above.

    Args:
        values: one a seed, in [low, high]; NaN for a seed that counts for nothing, that is pending, or that failed.
        bound: m, low < m < high.
        low: the least that a number can be.
        high: the greatest.
        kind: ``rate`` for numbers that are 0 or 1, ``difference`` for -1, 0 or 1, ``mean`` for any others.
        complete: how many of the first seeds have ended; None for all.
        failed: whether a trial of each seed failed, so that its number is unknown: as evidence for the claim it counts
            as the least that it can be, and as evidence against it as the greatest. None if none failed.

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
        """Return that of the first n seeds."""
        return replace(self, values=self.values[:n], failed=None if self.failed is None else self.failed[:n])

    @property
    def known(self) -> Floats:
        """The numbers that there are."""
        numbers: Floats = self.values[~np.isnan(self.values)]
        return numbers

    @property
    def failures(self) -> int:
        """The number of seeds of which a trial failed."""
        return 0 if self.failed is None else int(np.count_nonzero(self.failed))

    def _known_with(self, failed: float) -> Floats:
        """Return the numbers that there are, and one for each failed seed, in the order of seeds."""
        if self.failed is None:
            return self.known
        numbers: Floats = np.where(self.failed, failed, self.values)
        return numbers[~np.isnan(numbers)]

    @property
    def evidence(self) -> BetGains:
        """What bets against the bound have won."""
        bound = float(self._scaled(np.asarray(self.bound)))
        gains = evidence(self._scaled(self._known_with(self.low)), bound)
        if not self.failures:
            return gains
        return BetGains(gains.above, evidence(self._scaled(self._known_with(self.high)), bound).below)

    @property
    def p_values(self) -> tuple[float, float] | None:
        """Those of the exact test that the mean is above the bound, and that it is below; None without such a test."""
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
        """The mean of the numbers; None without any."""
        return float(self.known.mean()) if self.known.size else None

    @property
    def interval(self) -> Interval:
        """An interval of the mean that holds at any time, 95%."""
        low, high = anytime_mean(self._scaled(self.known))
        return self.low + low * (self.high - self.low), self.low + high * (self.high - self.low)

    def _scaled(self, numbers: Floats) -> Floats:
        return np.asarray((numbers - self.low) / (self.high - self.low))

    def _rates(self, rng: np.random.Generator, paths: int) -> tuple[Floats, Floats]:
        """Draw distributions that the numbers so far may be from, each on these numbers and on what they can be."""
        possible = {"rate": [0.0, 1.0], "difference": [-1.0, 0.0, 1.0], "mean": [self.low, self.high]}[self.kind]
        numbers, counts = np.unique([*self.known, *possible], return_counts=True)
        weights = counts - 0.5 * np.isin(numbers, possible)
        return self._scaled(numbers), rng.dirichlet(weights, size=paths)


@dataclass(frozen=True)
class Course:
    """How far a claim has come.

    Args:
        state: ``shown``, ``refuted``, ``undecided`` at the last look, or ``open`` while seeds are to be added.
        seeds: how many each cell has been given.
        evidence: that of each cell at its last look.
        hold: whether each cell is above its bound.
        p_values: those of each cell at the last look; None before, and without an exact test.
    """

    state: State
    seeds: tuple[int, ...]
    evidence: tuple[BetGains, ...]
    hold: tuple[bool, ...]
    p_values: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True)
class EarlierLook:
    """A look that was the last one, until more or fewer seeds were asked for.

    Args:
        seeds: how many each cell had.
        exact: how much of the error its exact test had.
        bets: how much of the error bets had.
        is_of_first: whether its seeds are the first of those that cells get now.
    """

    seeds: int
    exact: float
    bets: float = 0.0
    is_of_first: bool = True


@dataclass(frozen=True)
class ClaimTest:
    """The rule by which claims are decided.

    Args:
        looks: after how many seeds one looks, ascending.
        error: α, in (0, 1): the probability of being wrong about a claim is at most that, if none was made earlier.
        is_planned: whether the number of seeds depends on nothing but this rule, so that the last look is known to be
            the last one; otherwise there is no exact test.
        earlier: looks that were the last ones. Those among `looks` are made again, as they were.

    Raises:
        ValueError: if there is no look, or the error is out of range.

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
        """Return how much of the error is for evidence, and how much for the exact test at the last look."""
        if kind == "mean" or not self.is_planned:
            return self.error, 0.0
        bets = self.error / 2 if len(self.looks) > 1 else 0.0
        repeated = [look.exact for look in self.earlier if self.is_last(look)]
        return bets, repeated[0] if repeated else (self.error - bets) / 2 ** len(self.earlier)

    def total_error(self, kind: Kind) -> float:
        """Return the most that the probability of either error is, over all looks that were or will be made.

        Example:
            >>> ClaimTest((40,), earlier=(EarlierLook(20, exact=0.05),)).total_error("rate")
            0.07500000000000001
        """
        bets, exact = self.shares(kind)
        spent = sum(look.exact for look in self.earlier if not self.is_last(look))
        return max([bets, *(look.bets for look in self.earlier)]) + exact + spent

    @property
    def looks_once(self) -> bool:
        """Whether there is one look, of which it is known in advance after how many seeds it is."""
        return self.is_planned and len(self.looks) == 1

    def is_last(self, look: EarlierLook) -> bool:
        """Return whether an earlier look is the same as the last one of now."""
        return look.is_of_first and look.seeds == self.looks[-1]

    def _exact_shares(self, kind: Kind) -> dict[int, float]:
        """Return how much of the error the exact test has, by the number of seeds at which there is one."""
        shares = {look.seeds: look.exact for look in self.earlier if look.is_of_first and look.seeds in self.looks}
        _, last = self.shares(kind)
        return shares | ({self.looks[-1]: last} if last else {})

    def follow(self, cells: Sequence[ClaimSample]) -> Course:
        """Look at the cells of a claim after each batch of seeds, until it is decided or trials are pending.

        All cells get the same number of seeds until they are shown, and then no more.

        Args:
            cells: one or several, all of one kind.
        """
        count = len(cells)
        seeds, so_far, hold = [0] * count, [BetGains()] * count, [False] * count
        p_values: list[tuple[float, float] | None] = [None] * count
        enough, _ = self.shares(cells[0].kind)
        exact_shares = self._exact_shares(cells[0].kind)

        def course(state: State) -> Course:
            return Course(state, tuple(seeds), tuple(so_far), tuple(hold), tuple(p_values))

        for look in self.looks:
            active = [k for k in range(count) if not hold[k]]
            for k in active:
                seeds[k] = look
            if any(of is not None and of < look for of in (cells[k].complete for k in active)):
                return course("open")
            exact = exact_shares.get(look, 0.0)
            for k in active:
                sample = cells[k].first(look)
                so_far[k] = sample.evidence
                p_values[k] = sample.p_values if exact else None
                hold[k] = so_far[k].above * enough >= 1 or _is_below(p_values[k], 0, exact)
            if all(hold):
                return course("shown")
            against = sum(of.below for of in so_far) / count
            if against * enough >= 1 or any(_is_below(p_values[k], 1, exact / count) for k in active):
                return course("refuted")
        return course("undecided")

    def expected(self, cell: ClaimSample, cells: int) -> int:
        """Estimate how many seeds a cell of a claim will have needed, by drawing how its numbers may go on.

        Args:
            cell: its numbers so far; those that it can have count half a seed each.
            cells: how many cells the claim has.
        """
        rng = np.random.default_rng(0)
        numbers, rates = cell._rates(rng, _PATHS)
        steps = np.diff([0, *self.looks])
        counts = np.cumsum(np.stack([rng.multinomial(step, rates) for step in steps], axis=1), axis=1)
        bound = float(cell._scaled(np.asarray(cell.bound)))
        above, below = log_evidence(numbers, counts.astype(np.float64), bound)
        enough, _ = self.shares(cell.kind)
        if not enough:
            return self.looks[-1]
        ends = (above >= -math.log(enough)) | (below >= math.log(cells / enough))
        at = np.where(ends.any(axis=1), ends.argmax(axis=1), len(self.looks) - 1)
        return math.ceil(float(np.mean(np.asarray(self.looks)[at])))


def _is_below(p_values: tuple[float, float] | None, side: int, level: float) -> bool:
    return p_values is not None and p_values[side] <= level
