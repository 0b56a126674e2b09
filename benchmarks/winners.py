"""False winners of reports: the share of studies of equal methods that name one.

    python -m benchmarks.winners [--studies N] [--seed N] [--out benchmarks/results/winners.csv]

Each study is drawn as outcomes of trials, and goes through the tables, findings and sentence of a report. A winner is
named by the first sentence, by a bold row, or by the verdict of a pair. Shared seeds correlate methods as the design
says. Prints a row for each design, and writes it with `--out`: the percentage of studies that name a winner in each of
these places, and in any. The numbers depend on the seed and the number of studies alone.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.measure import cores, finish, studies_parser, tell
from study import statistics
from study.comparisons.contrasts import contrasts
from study.comparisons.headline import headline
from study.comparisons.plan import Statement
from study.interface.declarations import Metric
from study.records import Outcome, Sources
from study.statistics import looks
from study.summaries.aggregate import aggregate_by
from study.summaries.rows import groups
from study.trials.table import TrialTable

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

_METRICS = {"loss": Metric()}


@dataclass(frozen=True)
class Design:
    """A study of equal methods.

    Args:
        name: its name in the tables.
        draw: draws the columns of its trials, an array each.
        sizes: the rule for the number of seeds.
        by: the columns that identify its rows.
        statements: the comparisons in its file; empty for the default.
    """

    name: str
    draw: Callable[[Rng], Mapping[str, Sequence[Any]]]
    sizes: Any = "fixed"
    by: tuple[str, ...] = ("model",)
    statements: tuple[Statement, ...] = ()


def _successes(rng: Rng, methods: int, seeds: int, rate: float, alike: float) -> Floats:
    """Draw the successes of methods on the same seeds, 0 or 1, [methods, seeds].

    They have the success rate `rate`. A seed's latent normal numbers have the correlation `alike` between methods.
    """
    common, own = rng.normal(size=seeds), rng.normal(size=(methods, seeds))
    latent = np.sqrt(alike) * common + np.sqrt(1 - alike) * own
    return np.asarray(latent < np.quantile(rng.normal(size=20_000), rate), float)


def plain(rng: Rng, methods: int, seeds: int, *, rate: float = 0.6, alike: float = 0.5, questions: int = 1) -> Any:
    """Draw trials of methods on the same seeds, at one or several questions, as columns.

    All have the success rate `rate`. The latent normal numbers of a seed have the correlation `alike`.
    """
    columns: dict[str, list[Any]] = {"question": [], "model": [], "seed": [], "outcome": []}
    for question in range(questions):
        solved = _successes(rng, methods, seeds, rate, alike)
        for method in range(methods):
            columns["question"] += [question] * seeds
            columns["model"] += [f"m{method}"] * seeds
            columns["seed"] += range(seeds)
            columns["outcome"] += _outcomes(solved[method])
    return columns


def crossed(rng: Rng, side: int) -> Any:
    """Draw trials of two methods with crossed init and data seeds, `side` of each, as columns.

    The seeds cause nine tenths of the variance of the latent numbers.
    """
    columns: dict[str, list[Any]] = {"model": [], "seed": [], "outcome": []}
    seeds = [Sources(init, data + side).seed for init in range(side) for data in range(side)]
    share = rng.choice([0.1, 0.5, 0.9])
    for method in range(2):
        init, data = rng.normal(size=(side, 1)), rng.normal(size=(1, side))
        latent = np.sqrt(0.9 * share) * init + np.sqrt(0.9 * (1 - share)) * data
        latent = latent + np.sqrt(0.1) * rng.normal(size=(side, side))
        columns["model"] += [f"m{method}"] * side**2
        columns["seed"] += seeds
        columns["outcome"] += _outcomes((latent < 0.3).ravel())
    return columns


def adaptive(rng: Rng, most: int = 100) -> Any:
    """Draw trials of two methods of the same success rate, as columns.

    Ten seeds are added at a time, until McNemar's test finds a difference at 5%, or there are `most`.
    """
    solved = _successes(rng, 2, most, 0.6, 0.3)
    for count in looks(10, most):
        first, second = solved[0][:count], solved[1][:count]
        alone = int(np.sum(first > second)), int(np.sum(second > first))
        if statistics.mcnemar(*alone) < 0.05:
            break
    columns: dict[str, list[Any]] = {"model": [], "seed": [], "outcome": []}
    for method in range(2):
        columns["model"] += [f"m{method}"] * count
        columns["seed"] += range(count)
        columns["outcome"] += _outcomes(solved[method][:count])
    return columns


def swept(rng: Rng) -> Any:
    """Draw trials of two optimizers at four learning rates with a metric, without any effect, as columns."""
    columns: dict[str, list[Any]] = {"kind": [], "rate": [], "seed": [], "outcome": [], "loss": []}
    seed_luck = rng.normal(size=12)
    for kind in range(2):
        for rate in range(4):
            columns["kind"] += [f"k{kind}"] * 12
            columns["rate"] += [0.1 * (rate + 1)] * 12
            columns["seed"] += range(12)
            columns["outcome"] += ["finished"] * 12
            columns["loss"] += (seed_luck + rng.normal(size=12)).tolist()
    return columns


def factors(rng: Rng) -> Any:
    """Draw trials of the settings of four factors, without any effect, as columns."""
    settings = list(product(range(2), repeat=4))
    solved = _successes(rng, len(settings), 12, 0.6, 0.5)
    columns: dict[str, list[Any]] = {name: [] for name in ("a", "b", "c", "d", "seed", "outcome")}
    for setting, own in zip(settings, solved, strict=True):
        for name, value in zip("abcd", setting, strict=True):
            columns[name] += [f"{name}{value}"] * 12
        columns["seed"] += range(12)
        columns["outcome"] += _outcomes(own)
    return columns


def diverging(rng: Rng) -> Any:
    """Draw 20 trials of each of two equal methods, as columns; three in ten diverge by chance, and lack the metric."""
    columns: dict[str, list[Any]] = {"model": [], "seed": [], "outcome": [], "loss": []}
    for method in range(2):
        lost = rng.random(20) < 0.3
        columns["model"] += [f"m{method}"] * 20
        columns["seed"] += range(20)
        columns["outcome"] += ["diverged" if is_lost else "finished" for is_lost in lost]
        columns["loss"] += [None if is_lost else float(v) for is_lost, v in zip(lost, rng.normal(size=20), strict=True)]
    return columns


def _outcomes(solved: npt.NDArray[Any]) -> list[str]:
    return [str(Outcome.SOLVED if is_solved else Outcome.UNSOLVED) for is_solved in solved]


DESIGNS = (
    Design("two methods, 20 seeds", lambda rng: plain(rng, 2, 20)),
    Design("two methods, 100 seeds", lambda rng: plain(rng, 2, 100)),
    Design("six methods, 30 seeds", lambda rng: plain(rng, 6, 30)),
    Design(
        "four questions, two methods, 30 seeds", lambda rng: plain(rng, 2, 30, questions=4), by=("question", "model")
    ),
    Design("crossed, 8 x 8", lambda rng: crossed(rng, 8)),
    Design("crossed, 20 x 20", lambda rng: crossed(rng, 20)),
    Design("seeds added while p > 0.05", adaptive, "adaptive"),
    Design("two factors, metric, 12 seeds", swept, by=("kind", "rate")),
    Design(
        "two optimizers, each at its best of four rates, 12 seeds",
        swept,
        by=("kind", "rate"),
        statements=(Statement(("kind",), ("rate",)),),
    ),
    Design("three in ten diverge, metric, 20 seeds", diverging),
    Design("four factors, 12 seeds", factors, by=("a", "b", "c", "d")),
)


def report_names_winner(design: Design, rng: Rng) -> tuple[bool, bool, bool]:
    """Draw a study, report it, and return three flags: the sentence, a bold row and a pair's verdict name a winner."""
    columns = design.draw(rng)
    count = len(columns["outcome"])
    numbers = {
        name: pa.nulls(count, pa.float64()) for name in ("solved_at_iteration", "training_s", "trained_iterations")
    }
    table = pa.table({**columns, **numbers, "stopped_early": pa.nulls(count, pa.bool_())})
    trials = TrialTable(table, _METRICS if "loss" in columns else {}, design.by)
    rows = groups(aggregate_by(trials), design.by)
    found = contrasts(rows, trials, design.sizes, design.statements)
    sentence = headline(rows, found)
    named = (
        r"succeeds most often|has the lowest|has the best| is best at | is better than |over all else[^:]*: (?!no v)"
    )
    return (
        re.search(named, sentence) is not None,
        bool(found.winners),
        any(finding.winner is not None for finding in found.pairs),
    )


def row(place: int, studies: int, seed: int) -> dict[str, Any]:
    """Draw the studies of the design `DESIGNS[place]`, and return its row: the percentages that name a winner.

    Also print the design's name.
    """
    design = DESIGNS[place]
    tell(design.name)
    rng = np.random.default_rng([seed, zlib.crc32(design.name.encode())])
    named = np.array([report_names_winner(design, rng) for _ in range(studies)])
    shares = 100 * named.mean(axis=0)
    return {
        "study": design.name,
        "sentence": f"{shares[0]:.2f}",
        "bold": f"{shares[1]:.2f}",
        "verdict": f"{shares[2]:.2f}",
        "any": f"{100 * named.any(axis=1).mean():.2f}",
    }


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies of each design, and count those that name a winner; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    options = studies_parser(__doc__).parse_args(words)
    with ProcessPoolExecutor(cores()) as pool:
        count = partial(row, studies=options.studies, seed=options.seed)
        finish(list(pool.map(count, range(len(DESIGNS)))), options)


if __name__ == "__main__":
    main()
