"""Coverage of the interval of a standardised success rate, beside that of the raw rate.

    python -m benchmarks.standardised [--studies N] [--seed N] [--out benchmarks/results/standardised.csv]

Starts have six levels. Each study draws its trials' levels by their shares in the population, and outcomes by each
level's rate. The rate is standardised to the population's shares, then to the shares among drawn starts, twice as many
as trials. Its difference from that of another study of the same law is 0, and is compared with Newcombe's interval of
the raw difference. Prints a row for each law and number of seeds, and writes it with `--out`: the coverage and the mean
width of each interval. The numbers depend on the seed and the number of studies alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import finish, studies_parser
from study.records import Interval
from study.statistics import StandardisedRate, newcombe, standardised_difference, standardised_rate, wilson

Ints = npt.NDArray[np.int64]

SHARES = (0.08, 0.2, 0.28, 0.23, 0.13, 0.08)
LAWS: Mapping[str, tuple[float, ...]] = {
    "the same for all levels": (0.5,) * 6,
    "as the NMU's by negative factors": (0.95, 0.64, 0.94, 0.49, 0.02, 0.06),
    "all or none": (1, 1, 1, 0, 0, 0),
    "high": (1, 0.98, 0.95, 0.9, 0.9, 0.8),
    "low": (0, 0, 0.05, 0.05, 0.1, 0.2),
}
SEEDS = (12, 25, 50, 100, 200)


def coverage_row(law: str, seeds: int, studies: int, seed: int) -> dict[str, Any]:
    """Draw studies of a law, a key of `LAWS`, and return a row with the coverage and the mean width of each interval.

    `seeds`, the trials of a study, and `studies` are at least 1.
    """
    rates = np.array(LAWS[law])
    rate = float(np.array(SHARES) @ rates)
    rng = np.random.default_rng([seed, zlib.crc32(f"{law} {seeds}".encode())])
    truth = dict.fromkeys(("standardised", "raw", "drawn"), rate) | dict.fromkeys(("difference", "raw_difference"), 0.0)
    bounds: dict[str, list[Interval]] = {name: [] for name in truth}
    for _ in range(studies):
        judged = rng.multinomial(seeds, SHARES)
        solved = rng.binomial(judged, rates)
        estimate = _standardised(solved, judged)
        bounds["standardised"].append(estimate.interval)
        bounds["raw"].append(wilson(int(solved.sum()), seeds))
        drawn = rng.multinomial(2 * seeds, SHARES)
        bounds["drawn"].append(_standardised(solved, judged, drawn).interval)
        others = rng.multinomial(seeds, SHARES)
        other = rng.binomial(others, rates)
        bounds["difference"].append(standardised_difference(estimate, _standardised(other, others)))
        bounds["raw_difference"].append(newcombe(int(solved.sum()), seeds, int(other.sum()), seeds))
    row: dict[str, Any] = {"law": law, "rate": f"{rate:.4g}", "seeds": seeds}
    for name, intervals in bounds.items():
        low, high = np.array(intervals).T
        is_held = (low <= truth[name] + 1e-12) & (truth[name] - 1e-12 <= high)
        row |= {f"{name}_coverage": f"{np.mean(is_held):.4f}"}
        row |= {f"{name}_width": f"{np.mean(high - low):.4f}"}
    return row


def _standardised(solved: Ints, judged: Ints, drawn: Ints | None = None) -> StandardisedRate:
    starts = None if drawn is None else int(drawn.sum())
    shares = SHARES if drawn is None else drawn.tolist()
    estimate = standardised_rate(solved.tolist(), judged.tolist(), shares, starts)
    assert estimate is not None
    return estimate


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count covering intervals; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    finish([coverage_row(law, seeds, arguments.studies, arguments.seed) for law in LAWS for seeds in SEEDS], arguments)


if __name__ == "__main__":
    main()
