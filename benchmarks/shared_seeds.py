"""Gain from comparing seed by seed in real studies: correlation of a seed's outcomes across cells.

    study run demo; study run simple; study run single-module
    python -m benchmarks.shared_seeds demo simple single-module [--store studies] [--out FILE.csv]

Each pair of methods of a question is compared seed by seed and as independent samples. φ is the correlation of success
across the two cells' seeds, over pairs in which both methods solve some but not all. The variance ratio is the variance
of the difference of rates, paired over independent: 0.5 means that half of the seeds would suffice. Prints a row for
each study, and writes it with `--out`: means of φ, the median variance ratio, and the numbers of differences found in
both ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import finish, plain_parser, tell
from study.comparisons.contrasts import Contrasts, TimesTest, contrasts
from study.comparisons.finding import LEVEL, Finding
from study.results.load import StudyResults, load_results
from study.trials.table import TrialTable


def correlation(pair: Finding) -> float | None:
    """Return φ, the correlation of a pair's successes; None without shared seeds, or if a method solves all or none.

    It is correct only if both methods have the same seeds: the rates are those of all their trials.
    """
    first, second = _rates(pair)
    spread = math.prod(math.sqrt(rate * (1 - rate)) for rate in (first, second))
    if not spread or not pair.seeds:
        return None
    # P(first alone) = p1 - P(both)
    both = first - pair.sample.first_better / pair.seeds
    return (both - first * second) / spread


def variance_ratio(pair: Finding) -> float | None:
    """Return the variance of the rates' difference, paired over independent; None without shared seeds or variance.

    It is correct only if both methods have the same seeds: the rates are those of all their trials.
    """
    independent = sum(rate * (1 - rate) for rate in _rates(pair))
    if not independent or not pair.seeds:
        return None
    return (pair.discordant / pair.seeds - (pair.estimate or 0.0) ** 2) / independent


def _rates(pair: Finding) -> tuple[float, float]:
    first, second = pair.values
    return first or 0.0, second or 0.0


def _of_rows(results: Contrasts) -> list[Finding]:
    """Return the findings between single cells, without those of averages over swept values."""
    questions = () if results.plan is None else results.plan.by_row
    return [finding for question in questions for finding in results.findings.get(question, ())]


def _with_own_seeds(trials: TrialTable) -> TrialTable:
    """Return the trials as if no two had a seed in common."""
    seeds = pa.array(np.arange(trials.results.num_rows))
    place = trials.results.column_names.index("seed")
    return TrialTable(trials.results.set_column(place, "seed", seeds), trials.metrics, trials.by)


def _model(method: str) -> str:
    """Return the first part of a method's name, its model."""
    return method.partition(",")[0]


def _differing(tests: Sequence[Finding] | Sequence[TimesTest]) -> int:
    return sum(test.p_adjusted is not None and test.p_adjusted < LEVEL for test in tests)


def row(name: str, results: StudyResults) -> dict[str, Any]:
    """Compare a study's pairs seed by seed and as independent samples, and return the study's row.

    Figures without a pair to compute them from are empty.
    """
    paired = results.contrasts
    independent = contrasts(results.compared, _with_own_seeds(results.trials))
    by_seed = [pair for pair in _of_rows(paired) if pair.seeds]
    of_pairs = [(pair, phi) for pair in by_seed if (phi := correlation(pair)) is not None]
    phis = [phi for _, phi in of_pairs]
    of_one_model = [phi for pair, phi in of_pairs if _model(pair.first) == _model(pair.second)]
    of_two_models = [phi for pair, phi in of_pairs if _model(pair.first) != _model(pair.second)]
    ratios = [ratio for pair in by_seed if (ratio := variance_ratio(pair)) is not None]
    quartiles = np.quantile(phis, [0.25, 0.75]) if phis else [math.nan] * 2
    return {
        "study": name,
        "pairs": len(by_seed),
        "of_which_vary": len(phis),
        "phi_mean": f"{mean(phis):.3f}" if phis else "",
        "phi_of_one_model": f"{mean(of_one_model):.3f}" if of_one_model else "",
        "phi_of_two_models": f"{mean(of_two_models):.3f}" if of_two_models else "",
        "phi_quartiles": f"{quartiles[0]:.2f} to {quartiles[1]:.2f}" if phis else "",
        "variance_ratio_median": f"{median(ratios):.3f}" if ratios else "",
        "differ_paired": _differing(_of_rows(paired)),
        "differ_independent": _differing(_of_rows(independent)),
        "without_verdict": sum(not pair.has_enough_seeds for pair in by_seed),
        **_times(paired, independent),
    }


def _times(paired: Contrasts, independent: Contrasts) -> dict[str, int]:
    return {
        "questions_of_times": len(paired.speeds),
        "times_differ_paired": _differing(paired.speeds),
        "times_differ_independent": _differing(independent.speeds),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Read each study from the store, compare its pairs, print a row for each study, and write the rows with `--out`.

    Raises:
        UnknownStudyError: if the store has no such study.
        StoreError: if the store can't be read.
        InputError: if a stored file is invalid, or a newer package wrote it.
        OSError: if the table can't be written.
    """
    options = plain_parser(__doc__)
    options.add_argument("names", nargs="+", metavar="STUDY", help="names of studies in the store")
    options.add_argument("--store", default="studies")
    arguments = options.parse_args(words)
    rows = []
    for name in arguments.names:
        tell(name)
        rows.append(row(name, load_results(name, Path(arguments.store))))
    del arguments.store  # the path of the store isn't a result
    finish(rows, arguments)


if __name__ == "__main__":
    main()
