"""The phases of an evaluation: sums of squared errors, and the distance of weights from whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from study.engine.gpu.compile import inline
from study.engine.gpu.layout import Layout, effective, has_bias, parameters
from study.engine.gpu.row_math import ONE, ZERO
from study.engine.gpu.weight_update import weight


def new_squares(layout: Layout) -> Any:
    """Make the phase that adds up what the threads left in shared memory, in a fixed order and in float64."""
    threads = layout.threads

    @inline
    def squares(t, x):
        total = np.float64(0)
        for k in range(threads):
            total += np.float64(x[np.uint64(k)])
        return total

    return squares


def new_distances(layout: Layout) -> tuple[Any, Any]:
    """Make what finds the sparsity error: `distance` of a thread's weights, `furthest` of all threads' distances.

    Each is the largest distance from -1, 0 or 1, with NaN the largest of all; and whether a parameter is NaN.
    """
    shape, threads = layout.shape, layout.threads
    rounds, hidden, features, n = layout.rounds, shape.hidden, layout.features, shape.inputs
    kinds, kinds_2 = parameters(shape.first), parameters(shape.second)
    first_effective, _ = weight(shape.first, shape.rules[:kinds])
    second_effective, _ = weight(shape.second, shape.rules[kinds + has_bias(shape.first) :])
    both, both_2 = effective(shape.first) == 3, effective(shape.second) == 3

    @inline
    def larger(a, b):
        return a if a > b or a != a else b

    @inline
    def from_whole(w):
        size = abs(w)
        rest = abs(ONE - size)
        return size if size < rest or size != size else rest

    @inline
    def distance(t, p, f, p2, f2):
        worst, lost = ZERO, ZERO
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            if e < np.uint64(hidden * features) and e % np.uint64(features) < np.uint64(n):
                of_sum, _, of_product = first_effective(p, f, j)
                worst = larger(worst, from_whole(of_sum))
                if both:
                    worst = larger(worst, from_whole(of_product))
                for k in range(kinds):
                    lost = lost if p[kinds * j + k] == p[kinds * j + k] else ONE
        if t < np.uint64(hidden):
            of_sum, _, of_product = second_effective(p2, f2, 0)
            worst = larger(worst, from_whole(of_sum))
            if both_2:
                worst = larger(worst, from_whole(of_product))
        for k in range(kinds_2):
            lost = lost if p2[k] == p2[k] else ONE
        return worst, lost

    @inline
    def furthest(x):
        worst, lost = ZERO, ZERO
        for k in range(threads):
            worst = larger(worst, x[np.uint64(k)])
            lost = larger(lost, x[np.uint64(threads + k)])
        return worst, lost

    return distance, furthest
