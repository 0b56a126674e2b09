"""Power of McNemar's exact test, and the numbers of seeds that it needs."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from study.statistics.checks import Floats, check_confidence
from study.statistics.samples import Ints

MOST_SEEDS = 1_000_000
"""The greatest number of seeds that is considered."""


def discordant_rates(first: float, second: float, correlation: float = 0.0) -> tuple[float, float]:
    """Return the rates of seeds that only the first method solves, and that only the second solves.

    P(both) = p q + φ sqrt(p (1 - p) q (1 - q)), clipped to its possible range from max(0, p + q - 1) to min(p, q).

    Args:
        first: p, the first method's success rate, in [0, 1].
        second: q, the second method's success rate, in [0, 1].
        correlation: φ of their outcomes over the seeds, in [-1, 1].

    Raises:
        ValueError: if a rate or the correlation is out of range.

    Example:
        >>> [round(rate, 3) for rate in discordant_rates(0.9, 0.5, 0.2)]
        [0.42, 0.02]
    """
    if not (0 <= first <= 1 and 0 <= second <= 1 and -1 <= correlation <= 1):
        raise ValueError(f"rates must lie in [0, 1], φ in [-1, 1], but got {first:g}, {second:g}, φ {correlation:g}")
    both = first * second + correlation * math.sqrt(first * (1 - first) * second * (1 - second))
    both = min(max(both, first + second - 1, 0.0), first, second)
    return first - both, second - both


def mcnemar_power(first_only: float, second_only: float, seeds: int, level: float = 0.05) -> float:
    """Compute the power of McNemar's exact test.

    It is the sum over d of P(D = d) P(B <= c_d or B >= d - c_d). D is binomial with n and the rate of discordant seeds;
    B given D is binomial with D and the first method's share of that rate; and c_d is the greatest count with 2
    P(Bin(d, 1/2) <= c_d) <= level.

    Args:
        first_only: the rate of seeds that only the first method solves, >= 0.
        second_only: the rate of seeds that only the second solves, >= 0; both add up to at most 1.
        seeds: n, >= 0.
        level: of the test, in (0, 1); for one of m tests under Holm's correction, level / m at worst.

    Raises:
        ValueError: if a rate, the number of seeds or the level is out of range.

    Example:
        >>> round(mcnemar_power(0.42, 0.02, 20), 3), round(mcnemar_power(0.1, 0.1, 100), 3)
        (0.792, 0.029)
    """
    check_confidence(1 - level)
    rate = first_only + second_only
    if not (min(first_only, second_only) >= 0 and rate <= 1 + 1e-12 and seeds >= 0):
        raise ValueError(
            f"0 <= rates, their sum <= 1 and 0 <= n must hold, got {first_only:g}, {second_only:g}, {seeds}"
        )
    if rate == 0:
        return 0.0
    share, rate = first_only / rate, min(rate, 1.0)
    counts = np.arange(seeds + 1)
    # the binomial is negligible beyond eight standard deviations
    middle, reach = seeds * rate, 8 * math.sqrt(seeds * rate * (1 - rate)) + 8
    counts = counts[(counts >= middle - reach) & (counts <= middle + reach)]
    critical = _critical(counts, level)
    is_possible = critical >= 0
    least = np.where(is_possible, critical, 0)
    rejected = special.bdtr(least, counts, share) + special.bdtr(least, counts, 1 - share)
    weights = np.exp(
        special.gammaln(seeds + 1)
        - special.gammaln(counts + 1)
        - special.gammaln(seeds - counts + 1)
        + special.xlogy(counts, rate)
        + special.xlogy(seeds - counts, 1 - rate)
    )
    return float(min(1.0, np.sum(weights * np.where(is_possible, rejected, 0.0))))


def _critical(counts: Ints, level: float) -> Floats:
    """Return the greatest rejected count of the rarer outcome for each number of discordant seeds; -1 if none is."""
    guess = np.floor(counts / 2 - special.ndtri(1 - level / 2) * np.sqrt(counts) / 2) + 2
    guess = np.minimum(guess, np.floor((counts - 1) / 2))
    while np.any(too_many := (guess >= 0) & (2 * special.bdtr(np.maximum(guess, 0), counts, 0.5) > level)):
        guess -= too_many
    return np.asarray(np.maximum(guess, -1))


def seeds_for(first_only: float, second_only: float, power: float = 0.8, level: float = 0.05) -> int | None:
    """Return a number of seeds that gives McNemar's exact test the wanted power.

    The power of an exact test isn't monotone in the number of seeds: it falls a little where a further seed adds no
    rejected outcome. So the result is a crossing found by bisection. The test has the power with this number of seeds.
    If the result is above 5, the test lacks the power with a number that is lower by one seed or by at most 1%.

    Args:
        first_only: the rate of seeds that only the first method solves.
        second_only: the rate of seeds that only the second solves.
        power: in (0, 1).
        level: of the test, in (0, 1).

    Returns:
        At least 5, even if fewer seeds give the power; None if both rates are equal, or a million seeds aren't enough.

    Raises:
        ValueError: if the power is out of range or, for different rates, a rate or the level is.

    Example:
        >>> seeds_for(0.42, 0.02), seeds_for(0.1, 0.1)
        (21, None)
    """
    check_confidence(power)
    if math.isclose(first_only, second_only, abs_tol=1e-12):
        return None
    high = 8
    while mcnemar_power(first_only, second_only, high, level) < power:
        if high == MOST_SEEDS:
            return None
        high = min(2 * high, MOST_SEEDS)
    low = high // 2
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        if mcnemar_power(first_only, second_only, middle, level) < power:
            low = middle
        else:
            high = middle
    return high


def least_difference(seeds: int, power: float = 0.8, level: float = 0.05, correlation: float = 0.0) -> float | None:
    """Return the least difference of two rates, centred at one half, that McNemar's test finds with a given power.

    The result is accurate to 1e-4. Outcomes vary the most around one half, so elsewhere smaller differences are
    found.

    Args:
        seeds: n, >= 0.
        power: in (0, 1).
        level: of the test, in (0, 1).
        correlation: φ of the methods' outcomes, in [-1, 1].

    Returns:
        None if the power is lower even for rates of 1 and 0.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> round(least_difference(20), 2), round(least_difference(100), 2), least_difference(5)
        (0.49, 0.21, None)
    """
    check_confidence(power)

    def power_at(difference: float) -> float:
        """Compute the power at a difference of rates."""
        rates = discordant_rates(0.5 + difference / 2, 0.5 - difference / 2, correlation)
        return mcnemar_power(*rates, seeds, level)

    if power_at(1.0) < power:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if power_at(middle) >= power else (middle, high)
    return high
