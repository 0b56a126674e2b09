"""What a candidate is worth by its trials so far: never the raw estimate, of which the luckiest would be the best.

Each objective is the end of a 95% interval at which the candidate looks worst. So few seeds count for little, more
seeds of an equal share of successes for more, and values of different numbers of seeds can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from study.aggregate import CellSummary

WORST_SPARSITY_ERROR = 0.5
Value = tuple[float, ...]
"""A candidate's values, one an objective."""


@dataclass(frozen=True)
class Objective:
    """What is sought.

    Args:
        name: as in the study's file.
        is_sought_high: whether more is better.
        title: what the value is, for people.
        of: gives a candidate's value.
    """

    name: str
    is_sought_high: bool
    title: str
    of: Callable[[CellSummary], float]

    def loss(self, value: float) -> float:
        """Turn a value so that less is better."""
        return -value if self.is_sought_high else value


def _success_rate(summary: CellSummary) -> float:
    return summary.success_rate_interval[0] if summary.success_rate_interval is not None else 0.0


def _solved_at(summary: CellSummary) -> float:
    found = summary.solved_at_median_interval
    return found[1] if found is not None else float(summary.cell.iterations)


def _time_to_success(summary: CellSummary) -> float:
    found = summary.time_to_success_interval
    if found is None or not summary.solved:
        return float(summary.cell.iterations)
    return min(found[1], float(summary.cell.iterations))


def _sparsity_error(summary: CellSummary) -> float:
    found = summary.sparsity_error_interval
    return found[1] if found is not None else WORST_SPARSITY_ERROR


OBJECTIVES: Mapping[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective("success_rate", True, "success rate, lower end", _success_rate),
        Objective("solved_at", False, "solved at, median of solved, upper end", _solved_at),
        Objective("time_to_success", False, "time to success, restricted mean, upper end", _time_to_success),
        Objective("sparsity_error", False, "sparsity error, mean of solved, upper end", _sparsity_error),
    )
}
"""The objectives by name; a candidate without what its interval needs has the worst value."""


def value_of(summary: CellSummary, names: Sequence[str]) -> Value:
    """Give a candidate's values.

    Args:
        summary: of its trials so far.
        names: of objectives.
    """
    return tuple(float(OBJECTIVES[name].of(summary)) for name in names)


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
    found = [i for i, loss in enumerate(losses) if not any(_dominates(other, loss) for other in losses)]
    return sorted(found, key=lambda i: (losses[i], i))


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
