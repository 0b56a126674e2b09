"""The phases of an evaluation: sums of squared errors, and distances of weights from -1, 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from tasks.arithmetic.engine.compiled.formulas import discrete_distance, larger
from tasks.arithmetic.engine.gpu.compile import inline
from tasks.arithmetic.engine.gpu.layout import Layout
from tasks.arithmetic.engine.gpu.row_math import ONE, ZERO
from tasks.arithmetic.engine.gpu.shape import effective, parameters
from tasks.arithmetic.engine.gpu.weight_update import new_weights


def new_error_sum(layout: Layout) -> Any:
    """Make the function that sums the threads' squared errors in shared memory in a fixed order.

        error_sum(s) -> float64

    s is as in `gpu.phases.Phases`; s[t] is the sum of thread t.
    """
    threads = layout.threads

    @inline
    def error_sum(s):
        total = np.float64(0)
        for k in range(threads):
            total += np.float64(s[np.uint64(k)])
        return total

    return error_sum


def new_distances(layout: Layout) -> tuple[Any, Any]:
    """Make the functions that compute the sparsity error and detect parameters that are NaN.

        distance(t, p, f, p2, f2) -> worst, has_nan
        furthest(s) -> worst, has_nan

    `worst` is the largest distance of an effective weight, gates and biases aside, from the nearest of -1, 0 and 1,
    where NaN counts as the largest; `has_nan` is 1 if a parameter is NaN, else 0; both float32. `distance` takes a
    thread's weights, `furthest` the threads' results in shared memory: `worst` of thread t in s[t], its `has_nan` in
    s[threads + t]. Arguments are as in `gpu.phases.Phases`.
    """
    shape, threads = layout.shape, layout.threads
    rounds, hidden, features, n = layout.rounds, shape.hidden, layout.features, shape.inputs
    kinds, kinds_2 = parameters(shape.first), layout.second_slots
    (first_effective, _), (second_effective, _) = new_weights(shape)
    both, both_2 = effective(shape.first) == 3, effective(shape.second) == 3

    @inline
    def distance(t, p, f, p2, f2):
        worst, has_nan = ZERO, ZERO
        for j in range(rounds):
            e = t + np.uint64(j * threads)
            if e < np.uint64(hidden * features) and e % np.uint64(features) < np.uint64(n):
                of_sum, _, of_product = first_effective(p, f, j)
                worst = larger(worst, discrete_distance(of_sum))
                if both:
                    worst = larger(worst, discrete_distance(of_product))
                for k in range(kinds):
                    has_nan = has_nan if p[kinds * j + k] == p[kinds * j + k] else ONE
        if t < np.uint64(hidden):
            of_sum, _, of_product = second_effective(p2, f2, 0)
            worst = larger(worst, discrete_distance(of_sum))
            if both_2:
                worst = larger(worst, discrete_distance(of_product))
        for k in range(kinds_2):
            has_nan = has_nan if p2[k] == p2[k] else ONE
        return worst, has_nan

    @inline
    def furthest(s):
        worst, has_nan = ZERO, ZERO
        for k in range(threads):
            worst = larger(worst, s[np.uint64(k)])
            has_nan = larger(has_nan, s[np.uint64(threads + k)])
        return worst, has_nan

    return distance, furthest
