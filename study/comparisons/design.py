"""Power of a study's comparisons at the rates known so far, and the numbers of seeds that they need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from study import statistics
from study.comparisons.finding import LEVEL
from study.comparisons.plan import MOST_PAIRS
from study.comparisons.published import repeated_cell
from study.summaries.aggregate import CellSummary
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary
from study.trials.table import TrialTable

POWER = 0.8
"""The wanted power: the probability that a difference is found."""

_LEAST_SEEDS = 10
"""With fewer seeds in common, the correlation of two cells' outcomes is not estimated, but set to 0."""


@dataclass(frozen=True, kw_only=True)
class PlannedPair:
    """Two methods that a study compares, with the power of the comparison.

    Args:
        question: the question that both answer; empty if there is only one.
        first: the name of the first method.
        second: the name of the second method.
        rates: their success rates, from trials so far or from publications.
        correlation: φ of their outcomes over the seeds so far; 0 where too few are known.
        power: of McNemar's test at these rates.
        seeds: the number of seeds with a power of 80%; None if a million aren't enough.
    """

    question: str
    first: str
    second: str
    rates: tuple[float, float]
    correlation: float
    power: float
    seeds: int | None


@dataclass(frozen=True, kw_only=True)
class Design:
    """The power of a study's comparisons.

    Args:
        seeds: the number of seeds of a cell.
        comparisons: the number of pairs of methods. Each is tested at 5% divided by that number, the least level that
            Holm's correction may leave.
        least_difference: the least difference of rates, centred at one half, with a power of 80%; None if there is
            none.
        wanted: the difference that the user asks for, centred at one half.
        wanted_seeds: the number of seeds that it needs; None if none was asked for, or a million aren't enough.
        known: the number of pairs with known rates; 0 if there are more than `MOST_PAIRS` pairs.
        detectable: how many of them have a power of at least 80%.
        pairs: the known pairs with less power, by descending difference of rates; at most as many as asked for.
    """

    seeds: int
    comparisons: int
    least_difference: float | None
    wanted: float | None
    wanted_seeds: int | None
    known: int
    detectable: int
    pairs: Sequence[PlannedPair]


def design(
    rows: ResultRows, trials: TrialTable | None, seeds: int, *, most_pairs: int, wanted: float | None = None
) -> Design | None:
    """Compute the power of a study's comparisons; None if no two methods answer one question.

    Args:
        rows: the study's cells, with their results so far.
        trials: their trials so far, by their seeds.
        seeds: the planned number of seeds of each cell.
        most_pairs: the greatest number of pairs with too little power that are listed.
        wanted: a difference of rates whose number of seeds is computed, in (0, 1]; None or 0 for none.

    Raises:
        InputError: if the published results of an installed package are invalid, or its vocabulary can't be imported.
        ValueError: if the number of seeds is negative, or `wanted` isn't in [-1, 1].

    Example:
        >>> from study.summaries.rows import cell_rows
        >>> from study.records import Cell
        >>> of = [CellSummary(cell=Cell("lab:Task", name, {}), seeds=0) for name in ("lab:one", "lab:two")]
        >>> design(cell_rows(of, {}), None, 20, most_pairs=5, wanted=0.2).wanted_seeds
        107
    """
    members: dict[object, list[int]] = {}
    for row, question in enumerate(rows.questions()):
        members.setdefault(question, []).append(row)
    comparisons = sum(math.comb(len(group), 2) for group in members.values())
    if not comparisons:
        return None
    level = LEVEL / comparisons
    known: list[PlannedPair] = []
    if comparisons <= MOST_PAIRS:
        every = [pair for group in members.values() for pair in combinations(group, 2)]
        known = [pair for two in every if (pair := _planned(rows, trials, two, seeds, level)) is not None]
    missed = [pair for pair in known if pair.power < POWER]
    rates = statistics.discordant_rates(0.5 + (wanted or 0) / 2, 0.5 - (wanted or 0) / 2)
    return Design(
        seeds=seeds,
        comparisons=comparisons,
        least_difference=statistics.least_difference(seeds, POWER, level),
        wanted=wanted,
        wanted_seeds=statistics.seeds_for(*rates, POWER, level) if wanted else None,
        known=len(known),
        detectable=len(known) - len(missed),
        pairs=sorted(missed, key=lambda pair: -abs(pair.rates[0] - pair.rates[1]))[:most_pairs],
    )


def _planned(
    rows: ResultRows, trials: TrialTable | None, two: tuple[int, int], seeds: int, level: float
) -> PlannedPair | None:
    """Compute the power of a pair; None if a rate is unknown."""
    first, second = (_rate(rows, row) for row in two)
    if first is None or second is None:
        return None
    phi = _correlation(trials, [rows.summaries[row] for row in two])
    rates = statistics.discordant_rates(first, second, phi)
    return PlannedPair(
        question=rows.name(two[0], rows.question_keys),
        first=rows.name(two[0], rows.method_keys),
        second=rows.name(two[1], rows.method_keys),
        rates=(first, second),
        correlation=phi,
        power=statistics.mcnemar_power(*rates, seeds, level),
        seeds=statistics.seeds_for(*rates, POWER, level),
    )


def _rate(rows: ResultRows, row: int) -> float | None:
    """Return (k + 1/2)/(n + 1), never 0 or 1, of the trials so far, else of the published cell; None without either."""
    summary = rows.summaries[row]
    if summary.judged:
        return (summary.solved + 0.5) / (summary.judged + 1)
    if isinstance(summary, CellSummary):
        published = repeated_cell(summary.cell, [s.cell for s in rows.summaries if isinstance(s, CellSummary)])
        return None if published is None else (published.solved + 0.5) / (published.seeds + 1)
    return None


def _correlation(trials: TrialTable | None, summaries: Sequence[Summary]) -> float:
    """Estimate φ of two cells' outcomes over their common seeds; 0 where these are too few, or don't vary."""
    if trials is None:
        return 0.0
    samples = [trials.group(summary.key) for summary in summaries]
    judged = [sample.select(sample.is_judged) for sample in samples]
    seeds = np.intersect1d(judged[0].seeds, judged[1].seeds)
    if seeds.size < _LEAST_SEEDS:
        return 0.0
    first, second = (sample.of_seeds(seeds).is_solved for sample in judged)
    spread = first.std() * second.std()
    return float(np.mean((first - first.mean()) * (second - second.mean())) / spread) if spread else 0.0
