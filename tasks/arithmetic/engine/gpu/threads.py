"""The private data of an emulated block's threads, as arrays; on a GPU it lies in registers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tasks.arithmetic.engine.gpu.layout import Layout


class Threads(NamedTuple):
    """The private data of a block's threads, [threads, ...], with shared scratch; see `new_threads` and `Phases`."""

    e: Any
    a: Any
    d: Any
    z: Any
    p: Any
    m: Any
    v: Any
    f: Any
    p2: Any
    m2: Any
    v2: Any
    f2: Any
    u: Any
    u_grad: Any
    mul: Any
    gates: Any
    left: Any
    x: Any


def new_threads(layout: Layout, trials: int) -> Threads:
    """Make the arrays of a block with room for a number of trials.

    A phase's scratch is one array for all threads, and shared memory starts as NaN.
    """
    own = (
        layout.shape.subsets, layout.totals, layout.outer_slots, layout.row_slots, *[layout.slots] * 3,
        layout.factor_slots, *[layout.second_slots] * 3, layout.second_factor_slots,
    )  # fmt: skip
    arrays = [np.zeros((trials * layout.threads, count), np.float32) for count in own]
    scratch = [np.zeros(layout.shape.hidden, np.float32) for _ in range(5)]
    return Threads(*(*arrays, *scratch, np.full(layout.size(trials), np.nan, np.float32)))
