"""Rates of wrong and right decisions on claims, and the seeds that decisions take.

    python -m benchmarks.claims [--only TABLE] [--studies N] [--seed N] [--out benchmarks/results/claims/errors.csv]

Each study looks at its claims after every 20 seeds, 400 at most, as `seeds: {until: {claims: decided}}` does, unless a
rule says otherwise. Prints four tables, and writes them with `--out` into the folder of that file:

errors.csv  claims at their bounds, where errors are most likely
power.csv   claims that hold with a margin
raised.csv  claims at their bounds, in studies whose seeds are raised up to five times while the claim is undecided
peers.csv   AdaStop (Mathieu et al., TMLR 2024) and claims on the same draws

AdaStop takes seconds for a study, so it has `--peer-studies` of them, and needs the package adastop. The numbers depend
on the seed and the numbers of studies alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.measure import cores, finish, studies_parser, tell
from benchmarks.pairing import outcomes
from study.statistics import ClaimSample, ClaimTest, Course
from study.statistics.claims import EarlierLook

BATCH, MOST, ERROR = 20, 400, 0.05
LOOKS = tuple(range(BATCH, MOST + 1, BATCH))
ITERATIONS = 100_000
_EVERY = 1_000
_PEER = "AdaStop, 10,000 permutations"
_OURS = "claim"

Rng = np.random.Generator
Floats = npt.NDArray[np.float64]
Draw = Callable[[Rng], ClaimSample]
"""Draws the numbers of one cell, or pair, of a study."""


@dataclass(frozen=True)
class Claimed:
    """A claim and its truth.

    Args:
        cells: a function for each cell that draws its sample.
        is_true: True if all cells are above the bound.
    """

    cells: tuple[Draw, ...]
    is_true: bool


# --- cells ----------------------------------------------------------------------------------------------------------


def rate(success_rate: float, bound: float) -> Draw:
    """Return a function that draws `MOST` outcomes at a success rate, with the claimed lower bound of that rate.

    The returned function raises ValueError unless 0 < bound < 1.
    """

    def draw(rng: Rng) -> ClaimSample:
        return ClaimSample((rng.random(MOST) < success_rate).astype(float), bound, kind="rate")

    return draw


def difference(first: float, second: float, by: float, phi: float = 0.3) -> Draw:
    """Return a function that draws `MOST` differences of two methods' outcomes, with the claimed lower bound.

    The returned function raises ValueError unless -1 < by < 1.

    Args:
        first: success rate of the first method.
        second: success rate of the second method.
        by: claimed lower bound of the difference.
        phi: correlation of both methods' outcomes; the rates must allow it.
    """

    def draw(rng: Rng) -> ClaimSample:
        (first_outcomes,), (second_outcomes,) = outcomes(rng, (1, MOST), rates=(first, second), phi=phi)
        return ClaimSample(first_outcomes - second_outcomes, by, -1.0, 1.0, "difference")

    return draw


@cache
def _times(unsolved: float, typical: float) -> tuple[Floats, Floats]:
    """Return times to success, a grid up to 100,000 iterations, and their probabilities.

    Args:
        unsolved: probability of a trial without success, which counts as the last time.
        typical: mean of the gamma distribution of the other times.
    """
    grid = np.arange(_EVERY, ITERATIONS + 1, _EVERY).astype(float)
    ends = stats.gamma.cdf(grid, 4, scale=typical / 4)
    chances = np.diff(ends, prepend=0.0) * (1 - unsolved)
    chances[-1] += 1 - chances.sum()
    return grid, chances


def time(unsolved: float, typical: float, above: float) -> Draw:
    """Return a function that draws `MOST` times to success, with a claimed upper bound of their mean.

    Times are rounded up to whole thousands of iterations. The sample holds 100,000 iterations minus each time, so that
    greater is better and the bound is a lower one. The returned function raises ValueError unless the claimed bound is
    between 0 and 100,000.

    Args:
        unsolved: probability of a trial without success.
        typical: mean of the gamma distribution of the others; times beyond 100,000 count as the last one.
        above: claimed bound, as a share by which it exceeds the true mean.
    """
    grid, chances = _times(unsolved, typical)
    bound = float(grid @ chances) * (1 + above)

    def draw(rng: Rng) -> ClaimSample:
        drawn = rng.choice(grid, MOST, p=chances)
        return ClaimSample(ITERATIONS - drawn, ITERATIONS - bound, 0.0, float(ITERATIONS))

    return draw


# --- laws -----------------------------------------------------------------------------------------------------------

_NEARLY = 1e-6
_AT, _FAR, _ABOVE = difference(0.6, 0.5, 0.1), difference(0.9, 0.5, 0.1), difference(0.6, 0.5, 0.1 - _NEARLY)
ERRORS: Mapping[str, tuple[Claimed, ...]] = {
    "a rate of 0.5, at its bound": (Claimed((rate(0.5, 0.5),), is_true=False),),
    "a rate of 0.5, just above": (Claimed((rate(0.5, 0.5 - _NEARLY),), is_true=True),),
    "a rate of 0.95, at its bound": (Claimed((rate(0.95, 0.95),), is_true=False),),
    "a rate of 0.95, just above": (Claimed((rate(0.95, 0.95 - _NEARLY),), is_true=True),),
    "0.5 and 0.5, by 0": (Claimed((difference(0.5, 0.5, 0.0),), is_true=False),),
    "0.9 and 0.9, by 0": (Claimed((difference(0.9, 0.9, 0.0),), is_true=False),),
    "0.6 and 0.5, by 0.1": (Claimed((_AT,), is_true=False),),
    "0.95 and 0.85, by 0.1": (Claimed((difference(0.95, 0.85, 0.1),), is_true=False),),
    "0.95 and 0.85, just above 0.1": (Claimed((difference(0.95, 0.85, 0.1 - _NEARLY),), is_true=True),),
    "times with 20% unsolved, at their bound": (Claimed((time(0.2, 40_000, 0.0),), is_true=False),),
    "times with 20% unsolved, just below": (Claimed((time(0.2, 40_000, _NEARLY),), is_true=True),),
    "times with 1% unsolved, at their bound": (Claimed((time(0.01, 5_000, 0.0),), is_true=False),),
    "5 cells, 1 at the bound, 4 far above": (Claimed((_AT, *[_FAR] * 4), is_true=False),),
    "5 cells, all just above": (Claimed((_ABOVE,) * 5, is_true=True),),
    "4 claims of 5 cells: 2 with 1 cell at the bound, 2 just above": (
        *[Claimed((_AT, *[_FAR] * 4), is_true=False)] * 2,
        *[Claimed((_ABOVE,) * 5, is_true=True)] * 2,
    ),
}
"""Studies with claims at their bounds, by the distribution of their cells."""

POWER: Mapping[str, Draw] = {
    "0.55 and 0.45, by 0, φ 0": difference(0.55, 0.45, 0.0, 0.0),
    "0.55 and 0.45, by 0, φ 0.5": difference(0.55, 0.45, 0.0, 0.5),
    "0.6 and 0.4, by 0, φ 0": difference(0.6, 0.4, 0.0, 0.0),
    "0.95 and 0.85, by 0": difference(0.95, 0.85, 0.0),
    "0.9 and 0.5, by 0": difference(0.9, 0.5, 0.0),
    "0.65 and 0.5, by 0.1": difference(0.65, 0.5, 0.1),
    "0.7 and 0.5, by 0.1": difference(0.7, 0.5, 0.1),
    "0.9 and 0.5, by 0.1": difference(0.9, 0.5, 0.1),
    "a rate of 0.8, above 0.7": rate(0.8, 0.7),
    "a rate of 0.95, above 0.9": rate(0.95, 0.9),
    "times 10% below their bound, 20% unsolved": time(0.2, 40_000, 0.1),
    "times 30% below their bound, 20% unsolved": time(0.2, 40_000, 0.3),
    "times 30% below their bound, 1% unsolved": time(0.01, 5_000, 0.3),
}
RULES: Mapping[str, ClaimTest] = {
    "claim": ClaimTest(LOOKS, ERROR),
    "bets alone": ClaimTest(LOOKS, ERROR, is_planned=False),
    "400 seeds in any case": ClaimTest((MOST,), ERROR),
}
RAISED: Mapping[str, Draw] = {
    "a rate of 0.5, at its bound": rate(0.5, 0.5),
    "a rate of 0.95, at its bound": rate(0.95, 0.95),
    "0.5 and 0.5, by 0": difference(0.5, 0.5, 0.0),
    "0.6 and 0.5, by 0.1": _AT,
}
RAISES = (20, 40, 80, 120, 200, MOST)
"""Successive numbers of seeds in a study's file."""
WAYS: Mapping[str, Callable[[int], tuple[int, ...]]] = {
    "a number of seeds": lambda seeds: (seeds,),
    "until: claims, max": lambda seeds: tuple(range(BATCH, seeds + 1, BATCH)),
}
PEERS: Mapping[str, tuple[float, float, float]] = {
    "0.5 and 0.5, φ 0": (0.5, 0.5, 0.0),
    "0.5 and 0.5, φ 0.5": (0.5, 0.5, 0.5),
    "0.55 and 0.45, φ 0": (0.55, 0.45, 0.0),
    "0.55 and 0.45, φ 0.5": (0.55, 0.45, 0.5),
    "0.6 and 0.4, φ 0": (0.6, 0.4, 0.0),
    "0.95 and 0.85, φ 0.3": (0.95, 0.85, 0.3),
    "0.9 and 0.5, φ 0.3": (0.9, 0.5, 0.3),
}
"""Two success rates, and φ."""


# --- tables ---------------------------------------------------------------------------------------------------------


def rng_of(law: str, seed: int) -> Rng:
    """Return a random number generator that depends on the law's name and the seed."""
    return np.random.default_rng([seed, zlib.crc32(law.encode())])


def wrong(law: str, studies: int, seed: int) -> list[dict[str, Any]]:
    """Draw studies of a law, a key of `ERRORS`, and return its row, in a list.

    It has the share of studies with a wrong decision, the share of decided claims, and the mean seeds of a cell.
    `studies` is at least 1.
    """
    tell(law)
    claims, rng = ERRORS[law], rng_of(law, seed)
    test = ClaimTest(LOOKS, ERROR / len(claims))
    is_wrong, decided, seeds = 0, 0, 0.0
    for _ in range(studies):
        courses = [test.follow([draw(rng) for draw in claim.cells]) for claim in claims]
        is_wrong += any(_is_wrong(claim, course) for claim, course in zip(claims, courses, strict=True))
        decided += sum(course.state in ("shown", "refuted") for course in courses)
        seeds += float(np.mean([np.mean(course.seeds) for course in courses]))
    shares = {"wrong": f"{is_wrong / studies:.4f}", "decided": f"{decided / studies / len(claims):.4f}"}
    return [{"law": law, "claims": len(claims), **shares, "mean_seeds": f"{seeds / studies:.1f}"}]


def _is_wrong(claim: Claimed, course: Course) -> bool:
    return course.state == ("refuted" if claim.is_true else "shown")


def found(law: str, studies: int, seed: int) -> list[dict[str, Any]]:
    """Draw studies of a law, a key of `POWER`, and return a row for each of `RULES`, on the same draws.

    A row has the share of studies that show the law's claim, and the mean seeds. `studies` is at least 1.
    """
    tell(law)
    rows = []
    for rule, test in RULES.items():
        rng = rng_of(law, seed)
        courses = [test.follow([POWER[law](rng)]) for _ in range(studies)]
        shown = sum(course.state == "shown" for course in courses)
        seeds = np.mean([course.seeds[0] for course in courses])
        rows.append({"law": law, "rule": rule, "shown": f"{shown / studies:.4f}", "mean_seeds": f"{seeds:.1f}"})
    return rows


def raised(law: str, studies: int, seed: int) -> list[dict[str, Any]]:
    """Draw studies of a law, a key of `RAISED`; return two rows for each of `WAYS`, with and without a shared error.

    A row has the share of studies that wrongly show the claim while their seeds are raised. With a shared error it also
    has the bound that the test guarantees for that share; without, this column is empty. `studies` is at least 1.
    """
    tell(f"raised: {law}")
    return [_row_of_raised(law, way, sharing, studies, seed) for way in WAYS for sharing in (True, False)]


def _row_of_raised(law: str, way: str, sharing: bool, studies: int, seed: int) -> dict[str, Any]:
    """Return the row of a way, a key of `WAYS`; without `sharing`, each number of seeds may spend the full error."""
    rng, is_shown, error = rng_of(law, seed), 0, 0.0
    for _ in range(studies):
        sample, earlier = RAISED[law](rng), tuple[EarlierLook, ...]()
        for seeds in RAISES:
            test = ClaimTest(WAYS[way](seeds), ERROR, earlier=earlier if sharing else ())
            course = test.follow([sample.first(seeds)])
            error = max(error, test.total_error(sample.kind))
            if course.state != "undecided":
                break
            bets, exact = test.shares(sample.kind)
            earlier = (*earlier, EarlierLook(seeds, exact, bets))
        is_shown += course.state == "shown"
    shares = {"wrong": f"{is_shown / studies:.4f}", "error": f"{error:.4f}" if sharing else ""}
    return {"law": law, "way": way, "rule": "shared" if sharing else "each look by itself", **shares}


def peers(law: str, studies: int, seed: int) -> list[dict[str, Any]]:
    """Draw studies of a law, a key of `PEERS`; return a row for a claim, and one for AdaStop on the same draws.

    A row has the number of studies, the shares that decide ``greater`` and ``not greater`` of the first method, and the
    mean seeds.

    Raises:
        ImportError: if the package adastop isn't installed.
        ZeroDivisionError: if `studies` is less than 1.
    """
    tell(f"peers: {law}")
    first, second, phi = PEERS[law]
    rng, said = rng_of(law, seed), {_OURS: list[tuple[str, int]](), _PEER: list[tuple[str, int]]()}
    for study in range(studies):
        (first_outcomes,), (second_outcomes,) = outcomes(rng, (1, MOST), rates=(first, second), phi=phi)
        course = RULES["claim"].follow([ClaimSample(first_outcomes - second_outcomes, 0.0, -1.0, 1.0, "difference")])
        said[_OURS].append(({"shown": "greater", "refuted": "not greater"}.get(course.state, "–"), course.seeds[0]))
        said[_PEER].append(ada_stop(first_outcomes, second_outcomes, study))
    return [_row_of_peer(law, way, decisions) for way, decisions in said.items()]


def ada_stop(first: Floats, second: Floats, seed: int) -> tuple[str, int]:
    """Compare two methods by AdaStop, at the looks of `LOOKS` until it decides.

    Args:
        first: the first method's outcomes, [`MOST`].
        second: the second method's.
        seed: seed of AdaStop's permutations.

    Returns:
        Its decision on the first method, ``greater``, ``not greater``, or ``–`` if it calls both equal; and the
        number of seeds used.

    Raises:
        ImportError: if the package adastop isn't installed.
    """
    from adastop import MultipleAgentsComparator

    comparator = MultipleAgentsComparator(n=BATCH, K=len(LOOKS), B=10_000, alpha=ERROR, seed=seed)
    for look in LOOKS:
        comparator.partial_compare({"one": first[:look], "other": second[:look]}, verbose=False)
        if comparator.is_finished:
            break
    (decision,) = comparator.decisions.values()
    return {"larger": "greater", "smaller": "not greater"}.get(decision, "–"), look


def _row_of_peer(law: str, way: str, decisions: Sequence[tuple[str, int]]) -> dict[str, Any]:
    count = len(decisions)
    shares = {f"says {word}": sum(said == word for said, _ in decisions) / count for word in ("greater", "not greater")}
    seeds = np.mean([look for _, look in decisions])
    return {
        "law": law,
        "way": way,
        "studies": count,
        **{name: f"{share:.3f}" for name, share in shares.items()},
        "mean_seeds": f"{seeds:.1f}",
    }


def _tables(only: str | None, studies: int, peer_studies: int, seed: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    makes: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
        "errors": (wrong, ERRORS),
        "power": (found, POWER),
        "raised": (raised, RAISED),
        "peers": (peers, PEERS),
    }
    with ProcessPoolExecutor(cores()) as pool:
        for name in makes if only is None else [only]:
            make, laws = makes[name]
            rows = pool.map(partial(make, studies=peer_studies if make is peers else studies, seed=seed), laws)
            yield name, [row for law in rows for row in law]


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count their decisions; print the tables, and write them with `--out`.

    Raises:
        ImportError: if the package adastop isn't installed, and the table `peers` is asked for.
        OSError: if a table can't be written.
    """
    options = studies_parser(__doc__)
    options.add_argument("--peer-studies", type=int, default=30, help="studies of each kind for AdaStop")
    options.add_argument("--only", choices=("errors", "power", "raised", "peers"), help="make this table only")
    arguments = options.parse_args(words)
    first = arguments.out
    for name, rows in _tables(arguments.only, arguments.studies, arguments.peer_studies, arguments.seed):
        if first is not None:
            arguments.out = Path(first).with_name(f"{name}.csv")
        if name == "peers":
            arguments.studies = arguments.peer_studies
        finish(rows, arguments)


if __name__ == "__main__":
    main()
