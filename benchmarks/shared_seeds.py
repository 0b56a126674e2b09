"""What comparing seed by seed gains in studies that were run: how alike the outcomes of a seed are across cells.

    study run demo; study run simple; study run single-module
    python -m benchmarks.shared_seeds demo simple single-module [--store studies]

Each pair of methods of a question is compared seed by seed and as independent samples. φ is the correlation of success
across the two cells' seeds, over pairs of which neither solves all or none. The variance is that of the difference of
rates, paired over independent: 0.5 says that half of the seeds would do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.measure import finish, plain_parser, tell
from study.analysis.contrasts import Contrasts, contrasts
from study.analysis.method_tests import LEVEL, Pair, Speed
from study.results.load import StudyResults, load_results


def correlation(pair: Pair, rates: tuple[float, float]) -> float | None:
    """Return φ of a pair's successes; None where either method solves all seeds or none."""
    spread = math.prod(math.sqrt(rate * (1 - rate)) for rate in rates)
    if not spread or not pair.seeds:
        return None
    # P(first alone) = p1 - P(both)
    both = rates[0] - pair.first_only / pair.seeds
    return (both - rates[0] * rates[1]) / spread


def variance_ratio(pair: Pair, rates: tuple[float, float]) -> float | None:
    """Return the variance of the difference of rates, paired over independent; None where nothing varies."""
    independent = sum(rate * (1 - rate) for rate in rates)
    if not independent or not pair.seeds:
        return None
    discordant = (pair.first_only + pair.second_only) / pair.seeds
    return (discordant - pair.difference**2) / independent


def _rates(results: StudyResults) -> dict[tuple[str, str], float]:
    """Return each method's rate by its question, as pairs name them."""
    rows = results.compared
    question = [key for key in rows.varying() if key not in rows.methods]
    methods = [key for key in rows.varying() if key in rows.methods]
    return {
        (rows.name(row, question), rows.name(row, methods)): s.solved / s.judged
        for row, s in enumerate(rows.summaries)
        if s.judged
    }


def _model(method: str) -> str:
    """Return the model of a method's name, which begins with it."""
    return method.partition(",")[0]


def _differing(tests: Sequence[Pair] | Sequence[Speed]) -> int:
    return sum(test.p_adjusted < LEVEL for test in tests)


def row(name: str, results: StudyResults) -> dict[str, Any]:
    """Compare a study's pairs seed by seed and as independent samples."""
    paired, independent = results.contrasts, contrasts(results.compared)
    rates = _rates(results)
    by_seed = [pair for pair in paired.pairs if pair.seeds]
    known = [(pair, (rates[pair.question, pair.first], rates[pair.question, pair.second])) for pair in by_seed]
    of_pairs = [(pair, phi) for pair, two in known if (phi := correlation(pair, two)) is not None]
    phis = [phi for _, phi in of_pairs]
    of_one_model = [phi for pair, phi in of_pairs if _model(pair.first) == _model(pair.second)]
    of_two_models = [phi for pair, phi in of_pairs if _model(pair.first) != _model(pair.second)]
    ratios = [ratio for pair, two in known if (ratio := variance_ratio(pair, two)) is not None]
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
        "differ_paired": _differing(paired.pairs),
        "differ_independent": _differing(independent.pairs),
        "without_verdict": sum(not pair.has_verdict for pair in by_seed),
        **_times(paired, independent),
    }


def _times(paired: Contrasts, independent: Contrasts) -> dict[str, int]:
    return {
        "questions_of_times": len(paired.speeds),
        "times_differ_paired": _differing(paired.speeds),
        "times_differ_independent": _differing(independent.speeds),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Read each study, print and write a row for each."""
    options = plain_parser(__doc__)
    options.add_argument("names", nargs="+", metavar="STUDY", help="names of studies in the store")
    options.add_argument("--store", default="studies")
    arguments = options.parse_args(words)
    rows = []
    for name in arguments.names:
        tell(name)
        rows.append(row(name, load_results(name, Path(arguments.store))))
    del arguments.store  # where it lies says nothing
    finish(rows, arguments)


if __name__ == "__main__":
    main()
