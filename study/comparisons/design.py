"""How often a study's comparisons find what is known of its rates so far, and how many seeds that would take."""

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
"""How often a difference is to be found."""

_LEAST_SEEDS = 10
"""With fewer seeds in common, how alike two cells' outcomes are is not estimated, but taken as not at all."""


@dataclass(frozen=True, kw_only=True)
class PlannedPair:
    """Two methods that a study compares, and how often their difference would be found.

    Args:
        question: the question that both answer; empty if there is only one.
        first: the name of the first method.
        second: the name of the second method.
        rates: their success rates, of trials so far, or published.
        correlation: φ of their outcomes over the seeds so far; 0 where too few are known.
        power: how often McNemar's test tells them apart at these rates.
        seeds: how many seeds that takes in 80% of studies; None if a million wouldn't do.
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
    """What a study's seeds can tell apart.

    Args:
        seeds: of a cell.
        comparisons: pairs of methods; each is tested at 5% over as many, the least that Holm's correction may leave.
        least_difference: of rates around one half, that is found in 80% of studies; None if none is.
        wanted: a difference that was asked for, around one half.
        wanted_seeds: how many seeds it takes; None if none was asked for.
        known: pairs whose rates are known.
        detectable: those of them that are told apart in 80% of studies.
        pairs: of the others, those that differ most.
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
    """Compute how often differences would be found; None where no two methods answer one question.

    Args:
        rows: the study's cells, with what is known of them.
        trials: their trials so far, by their seeds.
        seeds: that each cell is to have.
        most_pairs: the most pairs that are described of those that would be missed.
        wanted: a difference of rates to find the seeds for.

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
    comparisons = sum(math.comb(len(some), 2) for some in members.values())
    if not comparisons:
        return None
    level = LEVEL / comparisons
    known: list[PlannedPair] = []
    if comparisons <= MOST_PAIRS:
        every = [pair for some in members.values() for pair in combinations(some, 2)]
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
    """Return (k + 1/2)/(n + 1) of the trials so far, which few seeds don't make 0 or 1, or what was published."""
    summary = rows.summaries[row]
    if summary.judged:
        return (summary.solved + 0.5) / (summary.judged + 1)
    if isinstance(summary, CellSummary):
        published = repeated_cell(summary.cell, [s.cell for s in rows.summaries if isinstance(s, CellSummary)])
        return None if published is None or not published.seeds else (published.solved + 0.5) / (published.seeds + 1)
    return None


def _correlation(trials: TrialTable | None, summaries: Sequence[Summary]) -> float:
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
