"""Coverage of the intervals of variance shares, in studies that cross two sources of randomness.

    python -m benchmarks.components [--studies N] [--seed N] [--out benchmarks/results/components.csv]

Each study crosses n seeds of one source with n seeds of the other. Success means that a normal latent number is below
the success rate's quantile; the shares are those of the latent numbers. The package's intervals are compared with those
of the jackknife and of generalized pivotal quantities, which see the latent numbers and a tenth of the studies. Prints
a row for each distribution, shares, n and interval, and writes it with `--out`: the share of studies with an interval,
the coverage of each share, and the mean width of the first. The numbers depend on the seed and the number of studies
alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from benchmarks.measure import cores, finish, studies_parser, tell
from study.statistics.components import _jackknife, _variances, variance_shares

SIZES = (5, 10, 20)
SHARES = ((0.0, 0.0, 1.0), (0.5, 0.0, 0.5), (0.3, 0.3, 0.4), (0.1, 0.1, 0.8), (0.8, 0.1, 0.1))
OTHERS_SHARE = 10
"""Divisor of the number of studies for the other intervals."""
PARTS = ("first", "second", "rest")
_TAIL = 0.025

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
Bounds = Callable[[Floats], Floats]
"""Returns the intervals of the three shares, shape [3, 2], of an array of trials."""


@dataclass(frozen=True)
class Law:
    """A distribution of trials.

    Args:
        effect: draws effects with a variance of 1.
        rate: success rate; None to use the latent numbers themselves.
    """

    effect: Callable[[Rng, tuple[int, int]], Floats]
    rate: float | None = None


def _normal(rng: Rng, shape: tuple[int, int]) -> Floats:
    return rng.normal(size=shape)


def _heavy(rng: Rng, shape: tuple[int, int]) -> Floats:
    return rng.standard_t(5, size=shape) / np.sqrt(5 / 3)


def _skewed(rng: Rng, shape: tuple[int, int]) -> Floats:
    return (rng.gamma(4, size=shape) - 4) / 2


LAWS: Mapping[str, Law] = {
    "normal": Law(_normal),
    "t, 5 degrees of freedom": Law(_heavy),
    "gamma, shape 4": Law(_skewed),
    "success, rate 0.5": Law(_normal, 0.5),
    "success, rate 0.9": Law(_normal, 0.9),
    "success, rate 0.1": Law(_normal, 0.1),
}


def drawn(law: Law, shares: tuple[float, float, float], n: int, rng: Rng) -> Floats:
    """Draw the trials of a study, [n, n]: latent numbers, or outcomes of 0 and 1 for a law with a rate.

    `shares` are the variances of the effects of rows, of columns, and of the rest; they add up to 1.
    """
    a, b, residual = np.sqrt(shares)
    y = a * law.effect(rng, (n, 1)) + b * law.effect(rng, (1, n)) + residual * law.effect(rng, (n, n))
    return y if law.rate is None else np.asarray(y < special.ndtri(law.rate), float)


def pivotal(y: Floats) -> Floats:
    """Return 95% intervals of the shares, [3, 2], by generalized pivotal quantities, assuming normal effects.

    `y` is a square array without NaN, of at least two rows.
    """
    n = len(y)
    a, b, residual = _variances(y, np.ones(y.shape, bool), False)
    squares = np.maximum([residual + n * a, residual + n * b, residual], 1e-12)
    freedoms = np.array([n - 1, n - 1, (n - 1) ** 2])
    parts = squares * freedoms / np.random.default_rng(0).chisquare(freedoms, size=(1999, 3))
    sigma = np.stack([(parts[:, 0] - parts[:, 2]) / n, (parts[:, 1] - parts[:, 2]) / n, parts[:, 2]], axis=1)
    sigma = np.maximum(sigma, 0)
    return np.asarray(np.quantile(sigma / sigma.sum(axis=1, keepdims=True), [_TAIL, 1 - _TAIL], axis=0).T)


def jackknife(y: Floats) -> Floats:
    """Return 95% intervals of the shares, [3, 2], by the jackknife, leaving out each seed in turn."""
    return np.stack(_jackknife(y, np.ones(y.shape, bool), False, _TAIL), axis=1)


def own(y: Floats, *, is_success: bool) -> Floats | None:
    """Return 95% intervals of the shares, [3, 2], by `variance_shares`; None if they can't be estimated.

    Raises:
        ValueError: if a number is infinite or, with `is_success`, neither 0 nor 1.
    """
    shares = variance_shares(y, is_success=is_success)
    return None if shares is None else np.array(shares.intervals)


def of_law(name: str, shares: tuple[float, float, float], studies: int, seed: int) -> list[dict[str, Any]]:
    """Draw the studies of a law, a key of `LAWS`, with given shares, and return a row for each n and interval.

    A law with a rate has the intervals of `variance_shares` only. The other intervals see a tenth of the studies, at
    least one. Coverage and width are empty if no study has an interval. `studies` is at least 1.
    """
    law, rows = LAWS[name], []
    tell(f"{name}, {shares}")
    for n in SIZES:
        rng = np.random.default_rng([seed, zlib.crc32(f"{name} {shares}".encode()), n])
        arrays = [drawn(law, shares, n, rng) for _ in range(studies)]
        ways: dict[str, Callable[[Floats], Floats | None]] = {
            "variance_shares": lambda y: own(y, is_success=law.rate is not None)
        }
        if law.rate is None:
            ways |= {"jackknife": jackknife, "generalized pivotal quantities": pivotal}
        for way, bounds in ways.items():
            sample = arrays if way == "variance_shares" else arrays[: max(1, studies // OTHERS_SHARE)]
            rows.append(_row(name, shares, n, way, [bounds(y) for y in sample]))
    return rows


def _row(
    name: str, shares: tuple[float, float, float], n: int, way: str, bounds: Sequence[Floats | None]
) -> dict[str, Any]:
    known = np.array([estimate for estimate in bounds if estimate is not None]).reshape(-1, len(PARTS), 2)
    holds = (known[:, :, 0] <= np.array(shares) + 1e-9) & (np.array(shares) <= known[:, :, 1] + 1e-9)
    return {
        "distribution": name,
        "shares": " ".join(f"{share:g}" for share in shares),
        "n": n,
        "interval": way,
        "with_interval": f"{len(known) / len(bounds):.4f}",
        **{f"coverage_{part}": _mean(holds[:, i]) for i, part in enumerate(PARTS)},
        "width_first": _mean(known[:, 0, 1] - known[:, 0, 0]),
    }


def _mean(values: npt.NDArray[Any]) -> str:
    return f"{values.mean():.4f}" if values.size else ""


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count covering intervals; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    tasks = list(product(LAWS, SHARES))
    with ProcessPoolExecutor(cores()) as pool:
        parts = pool.map(of_law, *zip(*tasks, strict=True), repeat(arguments.studies), repeat(arguments.seed))
        finish([row for part in parts for row in part], arguments)


if __name__ == "__main__":
    main()
