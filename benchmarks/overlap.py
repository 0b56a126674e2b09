"""Rejection rates of tests of partly shared and of crossed seeds.

    python -m benchmarks.overlap [--studies N] [--partial-studies N] [--seed N]
                                 [--out benchmarks/results/overlap/partial.csv]

The first table has two methods with 20 seeds each, all, some or none of them shared. The test of all trials is compared
with a test of the pairs alone, and with a test of all trials as independent samples. The second has methods that train
each init seed with each data seed. Their effects have given shares of variance: of init seeds, data seeds and their
combination. Both are printed, with a row for each distribution, design and test: the share of studies that reject.
`--out` writes the first table, and the second as crossed.csv beside it. The numbers depend on the seed and the numbers
of studies alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from benchmarks.measure import finish, studies_parser, tell
from benchmarks.pairing import LEVEL, Floats, Rng, Shape, failures, lognormals, outcomes, shifted, times
from study import statistics

SEEDS = 20
SHARED = (20, 12, 5, 1, 0)
"""Numbers of each method's shared seeds."""

DESIGNS = ((8, 8), (20, 20), (40, 5), (5, 40), (20, 3))
"""Init seeds and data seeds."""

SHARES = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.5, 0.5, 0.0), (0.3, 0.3, 0.4), (0.1, 0.8, 0.1))
_END = 1.7
"""Times beyond it are censored, as in `benchmarks.pairing`."""

Parts = Sequence[Floats]
"""Outcomes of a study: both methods' pairs, and their other trials."""

Test = Callable[..., statistics.Contrast | None]


@dataclass(frozen=True)
class PartialLaw:
    """A distribution of two methods' outcomes, and the tests that compare them.

    Args:
        name: its name in the table.
        draw: draws both methods' outcomes on shared seeds, shape [studies, seeds] each.
        truth: ``equal`` or ``differ``.
        test: the test of all trials; its samples are both methods' pairs, and each method's other trials.
    """

    name: str
    draw: Callable[[Rng, Shape], tuple[Floats, Floats]]
    truth: str
    test: Test


def losses(rng: Rng, shape: Shape, *, rates: tuple[float, float], by: float) -> tuple[Floats, Floats]:
    """Draw normal losses, the first method's less by `by` deviations; infinite ones for trials that diverge.

    Trials diverge at the given rates. The methods' losses have a correlation of 0.5, their divergence one of 0.3.
    """
    diverged = outcomes(rng, shape, rates=rates, phi=0.3)
    first, second = shifted(rng, shape, shared=0.5, by=-by)
    return np.where(diverged[0] > 0, math.inf, first), np.where(diverged[1] > 0, math.inf, second)


def _times_test(*parts: Floats) -> statistics.Contrast | None:
    return statistics.partly_paired_times(*((np.minimum(part, _END), part < _END) for part in parts))


_RATES, _MEANS, _RANKS = (
    statistics.partly_paired_rates,
    statistics.partly_paired_means,
    statistics.partly_paired_ranks,
)
PARTIAL_LAWS = (
    *(
        PartialLaw(
            f"rates {a:g} and {b:g}, φ {phi:g}",
            partial(outcomes, rates=(a, b), phi=phi),
            "equal" if a == b else "differ",
            _RATES,
        )
        for a, b, phi in ((0.5, 0.5, 0.5), (0.9, 0.9, 0.3), (0.05, 0.05, 0.3), (0.8, 0.4, 0.4))
    ),
    PartialLaw("normal, ρ 0.8", partial(shifted, shared=0.8, by=0.0), "equal", _MEANS),
    PartialLaw("log-normal, ρ 0.5", partial(lognormals, shared=0.5, factor=1.0), "equal", _MEANS),
    PartialLaw("3 of 10 fail, φ 0.5", partial(failures, rates=(0.3, 0.3)), "equal", _MEANS),
    PartialLaw("normal, 0.8 apart, ρ 0.8", partial(shifted, shared=0.8, by=0.8), "differ", _MEANS),
    PartialLaw("ranks, 2 of 10 diverge", partial(losses, rates=(0.2, 0.2), by=0.0), "equal", _RANKS),
    PartialLaw("ranks, 2 and 4 of 10 diverge, 0.8 apart", partial(losses, rates=(0.2, 0.4), by=0.8), "differ", _RANKS),
    PartialLaw("times, ρ 0.7", partial(times, shared=0.7, factor=1.0), "equal", _times_test),
    PartialLaw("times, 2.5 times, ρ 0.7", partial(times, shared=0.7, factor=2.5), "differ", _times_test),
)


def partial_studies(law: PartialLaw, shared: int, count: int, seed: int) -> Iterator[Parts]:
    """Draw `count` studies of a law whose methods share `shared` of their `SEEDS` seeds, and yield their outcomes."""
    rng = np.random.default_rng([seed, zlib.crc32(law.name.encode()), shared])
    pairs = law.draw(rng, (count, shared))
    alone = law.draw(rng, (count, SEEDS - shared))[0], law.draw(rng, (count, SEEDS - shared))[1]
    yield from zip(*pairs, *alone, strict=True)


def _pairs_alone(test: Test, parts: Parts) -> statistics.Contrast | None:
    return test(*parts[:2], parts[0][:0], parts[0][:0])


def _as_independent(test: Test, parts: Parts) -> statistics.Contrast | None:
    none = parts[0][:0]
    return test(none, none, np.concatenate(parts[::2]), np.concatenate(parts[1::2]))


def _rejects(test: statistics.Contrast | None) -> bool:
    return test is not None and test.p_value <= LEVEL


def partial_rows(law: PartialLaw, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each number of shared seeds and each test: the share of `count` studies that reject equality."""
    ways: Mapping[str, Callable[[Test, Parts], statistics.Contrast | None]] = {
        "all trials": lambda test, parts: test(*parts),
        "pairs alone": _pairs_alone,
        "as if independent": _as_independent,
    }
    for shared in SHARED:
        studies = list(partial_studies(law, shared, count, seed))
        for way, compare in ways.items():
            rejected = np.mean([_rejects(compare(law.test, parts)) for parts in studies])
            yield {
                "distribution": law.name,
                "truth": law.truth,
                "test": way,
                "design": f"{shared} of {SEEDS} shared",
                "rejected": f"{rejected:.4f}",
            }


@dataclass(frozen=True)
class CrossedLaw:
    """A distribution of crossed trials of two methods.

    Args:
        name: its name in the table.
        effect: draws effects with a variance of 1.
        rates: success rates, where a latent normal number decides on success; None to use the numbers themselves.
        by: the first method's mean minus the second's.
    """

    name: str
    effect: Callable[[Rng, tuple[int, ...]], Floats]
    rates: tuple[float, float] | None = None
    by: float = 0.0

    @property
    def truth(self) -> str:
        """``equal`` if the methods are, else ``differ``."""
        return "differ" if self.by or (self.rates and self.rates[0] != self.rates[1]) else "equal"


def _normal(rng: Rng, shape: tuple[int, ...]) -> Floats:
    return rng.normal(size=shape)


def _skewed(rng: Rng, shape: tuple[int, ...]) -> Floats:
    return rng.exponential(size=shape) - 1


CROSSED_LAWS = (
    CrossedLaw("normal", _normal),
    CrossedLaw("exponential", _skewed),
    *(CrossedLaw(f"success, rates {rate:g}", _normal, (rate, rate)) for rate in (0.05, 0.5, 0.95)),
    CrossedLaw("normal, 1 apart", _normal, by=1.0),
    CrossedLaw("success, rates 0.8 and 0.3", _normal, (0.8, 0.3)),
)


def crossed_differences(law: CrossedLaw, shares: Sequence[float], design: Shape, count: int, rng: Rng) -> Floats:
    """Draw studies, and return the first method's outcomes minus the second's, [studies, init seeds, data seeds].

    Args:
        law: distribution of the outcomes.
        shares: shares of variance: of init seeds, of data seeds, and of their combination.
        design: numbers of init seeds and data seeds.
        count: number of studies.
        rng: source of the outcomes.
    """
    first, second = design
    spreads = np.sqrt(shares)
    values = [
        spreads[0] * law.effect(rng, (count, first, 1))
        + spreads[1] * law.effect(rng, (count, 1, second))
        + spreads[2] * law.effect(rng, (count, first, second))
        for _ in range(2)
    ]
    if law.rates is not None:
        values = [(y < special.ndtri(rate)).astype(float) for y, rate in zip(values, law.rates, strict=True)]
    return values[0] - values[1] + law.by


def _crossed_p_values(differences: Floats) -> Floats:
    tests = [statistics.crossed_mean(study) for study in differences]
    return np.array([1.0 if test is None else test.p_value for test in tests])


def _student(means: Floats) -> Floats:
    """Return p-values of Student's test that the mean of each row is 0; 1 for a row of equal values."""
    n = means.shape[1]
    error = means.std(axis=1, ddof=1) / math.sqrt(n)
    t = np.divide(np.abs(means.mean(axis=1)), error, out=np.zeros(len(means)), where=error > 1e-12)
    return np.asarray(2 * special.stdtr(n - 1, -t))


def crossed_rows(law: CrossedLaw, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each choice of variance shares, design and test: the share of studies that reject equality."""
    ways: Mapping[str, Callable[[Floats], Floats]] = {
        "crossed_mean": _crossed_p_values,
        "Student's t of init seeds' means": lambda differences: _student(differences.mean(axis=2)),
        "Student's t, as if independent": lambda differences: _student(differences.reshape(len(differences), -1)),
    }
    for shares in SHARES:
        for design in DESIGNS:
            text = " ".join(f"{share:g}" for share in shares)
            rng = np.random.default_rng([seed, zlib.crc32(f"{law.name} {text}".encode()), *design])
            differences = crossed_differences(law, shares, design, count, rng)
            for way, p_values in ways.items():
                yield {
                    "distribution": f"{law.name}; {text}",
                    "truth": law.truth,
                    "test": way,
                    "design": "x".join(map(str, design)),
                    "rejected": f"{np.mean(p_values(differences) <= LEVEL):.4f}",
                }


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count rejections; print both tables, and write them with `--out`.

    Raises:
        OSError: if a table can't be written.
    """
    options = studies_parser(__doc__)
    options.set_defaults(studies=2000)
    options.add_argument("--partial-studies", type=int, default=2000, help="studies with partly shared seeds")
    arguments = options.parse_args(words)
    out, crossed_table, partial_table = arguments.out, list[dict[str, Any]](), list[dict[str, Any]]()
    for crossed_law in CROSSED_LAWS:
        tell(crossed_law.name)
        crossed_table += crossed_rows(crossed_law, arguments.studies, arguments.seed)
    arguments.out = out and Path(out).with_name("crossed.csv")
    finish(crossed_table, arguments)
    for law in PARTIAL_LAWS:
        tell(law.name)
        partial_table += partial_rows(law, arguments.partial_studies, arguments.seed)
    arguments.out, arguments.studies = out, arguments.partial_studies
    finish(partial_table, arguments)


if __name__ == "__main__":
    main()
