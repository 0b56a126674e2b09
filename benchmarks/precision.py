"""Coverage of means when seeds are added until the interval is narrow: two rules, five distributions.

    python -m benchmarks.precision [--studies N] [--seed N] [--out benchmarks/results/precision.csv]

Each study wants the mean to a half-width that is a share of the distribution's deviation, adds 20 seeds at a time, and
has 1,000 at most. Student's interval looks after every batch, first after 20 or 40 seeds. Stein's rule computes the
number of seeds from the first 20 or 40. Prints a row for each distribution, half-width and rule, and writes it with
`--out`: the coverage, and the mean number of seeds. The numbers depend on the seed and the number of studies alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from benchmarks.measure import finish, studies_parser, tell

BATCH, MOST, CONFIDENCE = 20, 1000, 0.95
FIRST_LOOKS = (20, 40)
SHARES = (0.4, 0.2, 0.1)
"""Half-widths, in deviations of the distribution: about 24, 96 and 384 seeds would do if the deviation were known."""

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

LAWS: dict[str, tuple[Draw, float, float]] = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0, 1.0),
    "beta, mean 0.8": (lambda rng, shape: rng.beta(8, 2, shape), 0.8, math.sqrt(0.16 / 11)),
    "0 or 1, 10% ones": (lambda rng, shape: (rng.random(shape) < 0.1).astype(float), 0.1, 0.3),
    "log-normal, σ 0.5": (
        lambda rng, shape: rng.lognormal(0, 0.5, shape),
        math.exp(0.125),
        math.sqrt(math.expm1(0.25) * math.exp(0.25)),
    ),
    "log-normal, σ 1": (
        lambda rng, shape: rng.lognormal(0, 1, shape),
        math.exp(0.5),
        math.sqrt(math.expm1(1) * math.e),
    ),
}
"""For each distribution: a function that draws from it, its mean and its deviation."""


def quantile(n: Counts | int) -> Floats:
    """Return Student's quantile of a two-sided 95% interval of the mean of n values."""
    return np.asarray(special.stdtrit(np.asarray(n) - 1, (1 + CONFIDENCE) / 2))


class Studies:
    """Synthetic studies, with the mean and the deviation of their first n values for each n.

    Args:
        values: shape [studies, most].
        centre: a number near the mean, about which squares are summed.
    """

    def __init__(self, values: Floats, centre: float) -> None:
        n = np.arange(1, values.shape[1] + 1)
        shifted = values - centre
        means = np.cumsum(shifted, axis=1) / n
        squares = np.cumsum(shifted**2, axis=1) - n * means**2
        self.means = means + centre
        self.deviations = np.sqrt(np.maximum(squares, 0) / np.maximum(n - 1, 1))

    def at(self, statistic: Floats, n: Counts) -> Floats:
        """Select each study's value of a statistic at its number of seeds."""
        return np.asarray(statistic[np.arange(len(statistic)), n - 1])


def sequential(studies: Studies, half_width: float, first: int) -> tuple[Counts, Floats]:
    """Stop at the first look with a Student's interval of at most `half_width` to either side, or at the last look.

    Looks follow each batch from `first` seeds on. An interval of equal values doesn't count as narrow.

    Returns:
        Each study's number of seeds, and the half-width of its interval, at least the wanted one.
    """
    looks = np.arange(first, MOST + 1, BATCH)
    deviations = studies.deviations[:, looks - 1]
    is_narrow = (quantile(looks) * deviations / np.sqrt(looks) <= half_width) & (deviations > 1e-12)
    n = looks[np.where(is_narrow.any(axis=1), is_narrow.argmax(axis=1), len(looks) - 1)]
    return n, np.maximum(half_width, quantile(n) * studies.at(studies.deviations, n) / np.sqrt(n))


def stein(studies: Studies, half_width: float, first: int) -> tuple[Counts, Floats]:
    """Compute the number of seeds from the deviation of the first ones, in whole batches, from `first` to `MOST`.

    Returns:
        As for `sequential`.
    """
    reach = quantile(first) * studies.deviations[:, first - 1]
    needed = np.maximum(np.ceil((reach / half_width) ** 2 / BATCH) * BATCH, first)
    n = np.minimum(needed, MOST).astype(np.int64)
    return n, np.maximum(half_width, reach / np.sqrt(n))


def ways() -> Iterator[tuple[str, Callable[[Studies, float], tuple[Counts, Floats]]]]:
    """Yield the name of each rule and first look, and a function that applies it to studies and a half-width."""
    for first in FIRST_LOOKS:
        yield f"Student's, first look at {first}", lambda studies, width, first=first: sequential(studies, width, first)
    for first in FIRST_LOOKS:
        yield f"Stein's, first {first}", lambda studies, width, first=first: stein(studies, width, first)


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and stop them by each rule; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    rows = []
    for law, (draw, mean, deviation) in LAWS.items():
        tell(law)
        rng = np.random.default_rng([arguments.seed, zlib.crc32(law.encode())])
        studies = Studies(draw(rng, (arguments.studies, MOST)), mean)
        for share in SHARES:
            for way, stop in ways():
                n, reach = stop(studies, share * deviation)
                holds = np.abs(studies.at(studies.means, n) - mean) <= reach
                case = f"{law}, ±{share:g} deviations"
                rows.append({"of": case, "way": way, "share": f"{holds.mean():.4f}", "mean_seeds": f"{n.mean():.1f}"})
    finish(rows, arguments)


if __name__ == "__main__":
    main()
