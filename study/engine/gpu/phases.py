"""An iteration of the fused GPU engine as phases: each a function of one thread, with a barrier after it.

A kernel calls each phase once in every thread, with a barrier in between (`gpu.kernels`); on the CPU a compiled loop
calls it for all threads in turn (`gpu.emulated`): one source, and the same bits. A phase writes only what no other
thread reads or writes before the barrier, so that the order of the threads is of no consequence; a test turns it round.

Places and counters are uint64: signed ones would be looked at for being negative, as Python has it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from study.engine.gpu.backward import new_rows
from study.engine.gpu.draw import new_draw
from study.engine.gpu.evaluate import new_distances, new_squares
from study.engine.gpu.layout import Layout
from study.engine.gpu.outer import new_outer, new_products
from study.engine.gpu.weights import new_owners


class Phases(NamedTuple):
    """The phases of a layout, in the order of an iteration; see `new_phases`."""

    load: Any
    put: Any
    draw: Any
    rows: Any
    outer: Any
    spread: Any
    gather: Any
    parts: Any
    own: Any
    second: Any
    store: Any
    look: Any
    squares: Any
    distance: Any
    furthest: Any


def new_phases(layout: Layout) -> Phases:
    """Make the phases of a layout."""
    rows, look = new_rows(layout)
    outer, parts = new_outer(layout)
    spread, gather = new_products(layout)
    load, put, own, second, store = new_owners(layout)
    distance, furthest = new_distances(layout)
    return Phases(
        load, put, new_draw(layout), rows, outer, spread, gather, parts, own, second, store, look,
        new_squares(layout), distance, furthest,
    )  # fmt: skip
