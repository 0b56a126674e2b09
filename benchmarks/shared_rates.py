"""Coverage of success-rate intervals where trials share the seeds of two sources of randomness.

    python -m benchmarks.shared_rates [--studies N] [--seed N] [--out benchmarks/results/shared_rates.csv]

Each study crosses each init seed with each data seed, or nests data seeds in init seeds. A latent normal number decides
on success; its variance has shares of init seeds, data seeds and their combination. Prints a row for each design,
shares and rate, and writes it with `--out`: the coverage and the mean width. The numbers depend on the seed and the
number of studies alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from benchmarks.measure import cores, finish, studies_parser, tell
from study.records import Interval
from study.statistics import shared_rate_interval

RATES = (0.02, 0.05, 0.1, 0.5, 0.9, 0.95, 0.98)
DESIGNS = ((5, 5), (8, 8), (20, 20), (40, 5), (5, 40), (20, 3))
"""Init seeds and data seeds."""

SHARES = ((0.0, 0.0, 1.0), (0.5, 0.0, 0.5), (0.3, 0.3, 0.4), (0.8, 0.1, 0.1), (0.1, 0.8, 0.1))
NESTED_SHARES = ((0.0, 0.0, 1.0), (0.5, 0.0, 0.5), (0.9, 0.0, 0.1))
Floats = npt.NDArray[np.float64]


def drawn(
    rate: float, shares: Sequence[float], design: tuple[int, int], *, is_nested: bool, rng: np.random.Generator
) -> Floats:
    """Draw the outcomes of a study, 0 or 1, [init seeds, data seeds].

    Args:
        rate: success rate.
        shares: shares of variance: of init seeds, of data seeds, and of their combination.
        design: numbers of init seeds and data seeds.
        is_nested: True if each init seed has data seeds of its own; the share of data seeds is then ignored.
        rng: source of the outcomes.
    """
    first, second, residual = np.sqrt(shares)
    latent = first * rng.normal(size=(design[0], 1)) + residual * rng.normal(size=design)
    if not is_nested:
        latent += second * rng.normal(size=(1, design[1]))
    return np.asarray(latent < special.ndtri(rate), np.float64)


def _sorted(y: Floats, *, is_nested: bool) -> Floats:
    """Sort rows by total, and columns too, or values in nested rows: the interval doesn't depend on the order."""
    y = y[np.argsort(y.sum(axis=1), kind="stable")]
    return np.sort(y, axis=1) if is_nested else y[:, np.argsort(y.sum(axis=0), kind="stable")]


def coverage_row(
    design: tuple[int, int], rate: float, shares: Sequence[float], is_nested: bool, studies: int, seed: int
) -> dict[str, Any]:
    """Draw studies, and return a row with coverage and mean width of their intervals of the success rate.

    See `drawn` for design, rate and shares; `studies` is at least 1.
    """
    name = f"{rate} {shares} {design} {is_nested}"
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    intervals: dict[tuple[bytes, bytes], Interval | None] = {}
    bounds = []
    for _ in range(studies):
        y = _sorted(drawn(rate, shares, design, is_nested=is_nested, rng=rng), is_nested=is_nested)
        key = y.sum(axis=0).tobytes() if not is_nested else b"", y.sum(axis=1).tobytes()  # fixes the interval
        if key not in intervals:
            intervals[key] = shared_rate_interval(y, is_nested=is_nested)
        bounds.append(intervals[key])
    low, high = np.array(bounds).T
    return {
        "seeds": "x".join(map(str, design)) + (", nested" if is_nested else ""),
        "shares": " ".join(f"{share:g}" for share in shares),
        "rate": rate,
        "coverage": f"{np.mean((low <= rate) & (rate <= high)):.4f}",
        "width": f"{np.mean(high - low):.4f}",
    }


def design_rows(design: tuple[int, int], is_nested: bool, studies: int, seed: int) -> list[dict[str, Any]]:
    """Return the `coverage_row` of a design for each kind of variance shares and each of `RATES`."""
    tell(f"{design}{', nested' if is_nested else ''}")
    kinds = product(NESTED_SHARES if is_nested else SHARES, RATES)
    return [coverage_row(design, rate, shares, is_nested, studies, seed) for shares, rate in kinds]


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count covering intervals; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    options = studies_parser(__doc__)
    options.set_defaults(studies=2000)
    arguments = options.parse_args(words)
    tasks = list(product(DESIGNS, (False, True)))
    with ProcessPoolExecutor(cores()) as pool:
        parts = pool.map(design_rows, *zip(*tasks, strict=True), repeat(arguments.studies), repeat(arguments.seed))
        finish([row for part in parts for row in part], arguments)


if __name__ == "__main__":
    main()
