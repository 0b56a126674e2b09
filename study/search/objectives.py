"""The value of a candidate by its trials so far: the worse end of an interval, not the raw estimate.

Each objective is the end of an interval at which the candidate looks worst. All are based on Wilson's interval of the
share of trials that were solved by some time, or with at most some error. So few seeds count for little, more seeds
with equal results count for more, and values based on different numbers of seeds can be compared.

A trial that was not solved counts in all objectives as the worst possible. Otherwise a candidate that solves one more
trial, but late, would be worth less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from study import statistics
from study.analysis.search import Objective, Value
from study.statistics.sparsity_error import FLOAT32_SPACING

WORST_SPARSITY_ERROR = 0.5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """The results of a candidate's trials.

    Args:
        finished: the number of trials with a result, including those that were not solved or diverged; >= 0.
        solved_at: iterations; of the solved trials, NaN where it isn't known.
        sparsity_error: of the solved trials, likewise.
    """

    finished: int
    solved_at: Floats
    sparsity_error: Floats


def _success_rate(sample: Sample, most_iterations: int) -> float:
    return statistics.wilson(sample.solved_at.size, sample.finished)[0]


def _solved_at(sample: Sample, most_iterations: int) -> float:
    return _geometric(sample.solved_at, sample.finished, 1.0, most_iterations)


def _time_to_success(sample: Sample, most_iterations: int) -> float:
    times = _or_worst(sample.solved_at, most_iterations)
    return statistics.upper_mean(times, sample.finished, most_iterations)


def _sparsity_error(sample: Sample, most_iterations: int) -> float:
    # smaller errors can't be distinguished with weights of 32 bits
    return _geometric(sample.sparsity_error, sample.finished, FLOAT32_SPACING, WORST_SPARSITY_ERROR)


def _geometric(values: Floats, n: int, least: float, worst: float) -> float:
    """Bound the geometric mean of positive numbers from above, through the mean of their logarithms."""
    ratios = np.clip(_or_worst(values, worst), least, worst) / worst
    return worst * float(np.exp(statistics.upper_mean(np.log(ratios), n, 0.0)))


def _or_worst(values: Floats, worst: float) -> Floats:
    return np.where(np.isfinite(values), values, worst)


_DEFINITIONS: Mapping[str, tuple[str, bool, Callable[[Sample, int], float]]] = {
    "success_rate": ("success rate, lower end", True, _success_rate),
    "solved_at": ("solved at, geometric mean of all trials, upper end", False, _solved_at),
    "time_to_success": ("time to success, restricted mean, upper end", False, _time_to_success),
    "sparsity_error": ("sparsity error, geometric mean of all trials, upper end", False, _sparsity_error),
}
"""Each objective's title, whether more is better, and its value for a sample, given the search's most iterations.

Each has a value for every sample: with no finished trial, the worst. A sample's value doesn't get worse when a solved
trial is added, when a trial is solved earlier or with less error, or when every trial is repeated:
`statistics.upper_mean`.
"""

OBJECTIVES: Mapping[str, Objective] = {
    name: Objective(name=name, title=title, is_higher_better=is_higher_better)
    for name, (title, is_higher_better, _) in _DEFINITIONS.items()
}
"""The objectives by name."""


def value_of(sample: Sample, names: Sequence[str], most_iterations: int) -> Value:
    """Compute a candidate's values.

    Args:
        sample: its trials so far.
        names: the names of the objectives.
        most_iterations: the most iterations that any cell of the search has. A trial that was not solved counts as
            solved after these, whatever its own cell has, so that the values of one search can be compared.

    Example:
        >>> perfect = Sample(5, np.full(5, 1000.0), np.full(5, 1e-6))
        >>> [f"{value:.3g}" for value in value_of(perfect, list(OBJECTIVES), 20_000)]
        ['0.566', '3.68e+03', '9.26e+03', '0.000299']
    """
    return tuple(float(_DEFINITIONS[name][2](sample, most_iterations)) for name in names)


def ranked(values: Sequence[Value], names: Sequence[str]) -> list[int]:
    """Return the indices of candidates, the best first; of equal candidates, the earlier one first.

    With several objectives, candidates are sorted by how many fronts must be removed until none is better in all
    respects, then by the objectives in order.

    Example:
        >>> ranked([(0.2,), (0.9,), (0.5,)], ["success_rate"])
        [1, 2, 0]
    """
    losses = [tuple(OBJECTIVES[n].loss(v) for n, v in zip(names, value, strict=True)) for value in values]
    left, order = list(range(len(values))), []
    while left:
        front = [i for i in left if not any(_dominates(losses[j], losses[i]) for j in left)]
        order += sorted(front, key=lambda i: (losses[i], i))
        left = [i for i in left if i not in set(front)]
    return order


def front(values: Sequence[Value], names: Sequence[str]) -> list[int]:
    """Return the candidates that no other is better than in all respects, sorted by the first objective.

    Example:
        >>> front([(0.9, 50.0), (0.5, 10.0), (0.4, 20.0)], ["success_rate", "solved_at"])
        [0, 1]
    """
    losses = [tuple(OBJECTIVES[n].loss(v) for n, v in zip(names, value, strict=True)) for value in values]
    best = [i for i, loss in enumerate(losses) if not any(_dominates(other, loss) for other in losses)]
    return sorted(best, key=lambda i: (losses[i], i))


def spread(some: Sequence[int], most: int) -> list[int]:
    """Select at most `most` members of a front: its ends, and others evenly between them.

    Example:
        >>> spread([4, 7, 1, 0, 2], 3)
        [4, 1, 2]
    """
    if len(some) <= most:
        return list(some)
    places = np.unique(np.linspace(0, len(some) - 1, most).round().astype(int))
    return [some[place] for place in places]


def _dominates(one: Value, other: Value) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
