"""What a candidate is worth by its trials so far: the worse end of an interval, not the raw estimate.

Each objective is the end of an interval at which the candidate looks worst, and all rest on one: Wilson's, of the share
of trials that were solved by some time, or with some error at most. So few seeds count for little, more seeds of equal
results for more, and values of different numbers of seeds can be compared.

Trials that were not solved count in all of them, as the worst that there is. Otherwise a candidate that solves one
trial more, and that one late, would be worth less.
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
    """What a candidate's trials came to.

    Args:
        finished: trials with an outcome, those that were not solved or diverged among them; >= 0.
        solved_at: iterations; of the solved trials, NaN where it isn't known.
        sparsity_error: of the solved trials, too.
    """

    finished: int
    solved_at: Floats
    sparsity_error: Floats


def _success_rate(sample: Sample, most_iterations: int) -> float:
    return statistics.wilson(sample.solved_at.size, sample.finished)[0]


def _solved_at(sample: Sample, most_iterations: int) -> float:
    return _geometric(sample.solved_at, sample.finished, 1.0, most_iterations)


def _time_to_success(sample: Sample, most_iterations: int) -> float:
    times = _known(sample.solved_at, most_iterations)
    return statistics.upper_mean(times, sample.finished, most_iterations)


def _sparsity_error(sample: Sample, most_iterations: int) -> float:
    # weights that are rounded to 32 bits don't tell smaller errors apart
    return _geometric(sample.sparsity_error, sample.finished, FLOAT32_SPACING, WORST_SPARSITY_ERROR)


def _geometric(values: Floats, n: int, least: float, worst: float) -> float:
    """Bound the geometric mean of positive numbers from above, by the mean of their logarithms."""
    ratios = np.clip(_known(values, worst), least, worst) / worst
    return worst * float(np.exp(statistics.upper_mean(np.log(ratios), n, 0.0)))


def _known(values: Floats, worst: float) -> Floats:
    return np.where(np.isfinite(values), values, worst)


_DEFINITIONS: Mapping[str, tuple[str, bool, Callable[[Sample, int], float]]] = {
    "success_rate": ("success rate, lower end", True, _success_rate),
    "solved_at": ("solved at, geometric mean of all trials, upper end", False, _solved_at),
    "time_to_success": ("time to success, restricted mean, upper end", False, _time_to_success),
    "sparsity_error": ("sparsity error, geometric mean of all trials, upper end", False, _sparsity_error),
}
"""Of each objective its title, whether more is better, and its value by a sample and the search's most iterations.

Each has a value for every sample, of none finished the worst. A sample with one trial more that is solved, one that is
solved earlier or with less error, or with each trial there several times, is worth no less: `statistics.upper_mean`.
"""

OBJECTIVES: Mapping[str, Objective] = {
    name: Objective(name=name, title=title, is_sought_high=is_sought_high)
    for name, (title, is_sought_high, _) in _DEFINITIONS.items()
}
"""The objectives by name."""


def value_of(sample: Sample, names: Sequence[str], most_iterations: int) -> Value:
    """Compute a candidate's values.

    Args:
        sample: its trials so far.
        names: of objectives.
        most_iterations: of any cell of the search: what a trial that was not solved counts as, whatever its own cell
            has, so that values of one search can be compared.

    Example:
        >>> perfect = Sample(5, np.full(5, 1000.0), np.full(5, 1e-6))
        >>> [f"{value:.3g}" for value in value_of(perfect, list(OBJECTIVES), 20_000)]
        ['0.566', '3.68e+03', '9.26e+03', '0.000299']
    """
    return tuple(float(_DEFINITIONS[name][2](sample, most_iterations)) for name in names)


def ranked(values: Sequence[Value], names: Sequence[str]) -> list[int]:
    """Sort candidates, the best first; of equals, the one that comes first.

    With several objectives: by how many fronts have to be taken away before none is better in all respects, then by the
    objectives in order.

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
    """Give the candidates that none is better than in all respects, in order of the first objective.

    Example:
        >>> front([(0.9, 50.0), (0.5, 10.0), (0.4, 20.0)], ["success_rate", "solved_at"])
        [0, 1]
    """
    losses = [tuple(OBJECTIVES[n].loss(v) for n, v in zip(names, value, strict=True)) for value in values]
    best = [i for i, loss in enumerate(losses) if not any(_dominates(other, loss) for other in losses)]
    return sorted(best, key=lambda i: (losses[i], i))


def spread(some: Sequence[int], most: int) -> list[int]:
    """Take so many of a front at most, its ends and others evenly between.

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
