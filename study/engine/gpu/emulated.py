"""The fused GPU engine on the CPU: each phase for all threads of a block in turn, compiled; for tests.

It follows `gpu.kernels` line by line: a loop over threads here is what stands between two barriers there. The bits are
those of a GPU: both compile the same phases, and neither may contract a product and a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from study.engine.arithmetic.update_rule import ADAM
from study.engine.compiled.cache import SOURCES
from study.engine.compiled.formulas import sparsity_strength_in_float32
from study.engine.gpu.arrays import (
    INTERVAL,
    LENGTH,
    NUMBERS,
    OUT_STRENGTH,
    RATE,
    SCALE,
    SECOND_INTERVAL,
    STRENGTH,
    Blocks,
    Choices,
    Evaluation,
    Tables,
    chunks,
)
from study.engine.gpu.draw import TrialStream
from study.engine.gpu.layout import EVALUATED_ROWS, Layout, Shape, new_layout
from study.engine.gpu.phases import new_phases
from study.engine.gpu.row_math import ZERO
from study.engine.gpu.weight_update import Step
from tasks.compile import cached, digest
from tasks.stream import ROUNDS

_STAMP = digest((*SOURCES, *sorted(Path(__file__).parent.glob("*.py"))))
_compiled = partial(cached, _STAMP, error_model="numpy", _nrt=False)


class Threads(NamedTuple):
    """What each thread of a block has to itself, [threads, ...], scratch but once; see `new_threads` and `Phases`."""

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


def new_threads(layout: Layout) -> Threads:
    """Make the arrays of a block; scratch of a phase is one array for all threads, and shared memory starts as NaN."""
    own = (
        layout.totals, 4 * layout.outputs, layout.row_sums, *[layout.slots] * 3, layout.factor_slots,
        *[layout.second_slots] * 3, layout.second_factor_slots,
    )  # fmt: skip
    arrays = [np.zeros((layout.threads, count), np.float32) for count in own]
    scratch = [np.zeros(layout.shape.hidden, np.float32) for _ in range(5)]
    return Threads(*(*arrays, *scratch, np.full(layout.size, np.nan, np.float32)))


@cache
def emulation(shape: Shape) -> tuple[Layout, Any, Any]:
    """Compile `train` and `evaluate` for a shape."""
    layout = new_layout(shape)
    return layout, _train(layout), _evaluate(layout)


def _train(layout: Layout) -> Any:
    phases = new_phases(layout)
    load, put, draw, rows, outer = phases.load, phases.put, phases.draw, phases.rows, phases.outer
    spread, gather, parts, own, second, store = (
        phases.spread, phases.gather, phases.parts, phases.own, phases.second, phases.store
    )  # fmt: skip
    parameters_, span = np.uint64(layout.parameters), np.uint64(2 * layout.shape.subsets)
    passes, row_sums, products, hidden = layout.passes, layout.row_sums, layout.products, layout.shape.hidden

    @_compiled(made_for=(layout.shape, layout.rows))
    def train(
        order, own_arrays, choices, which, iteration, count, keys, spans, start, numbers, corrections, weight,
        first, second_moment
    ):  # fmt: skip
        (a, d, z, p, m, v, f, p2, m2, v2, f2, u, u_grad, mul, gates, left, x) = own_arrays
        settled = np.uint64(len(corrections) // 2 - 1)
        for s in which:
            at, mine = s * parameters_, s * np.uint64(NUMBERS)
            key = s * np.uint64(2 * ROUNDS)
            stream = TrialStream(
                keys[key : key + np.uint64(ROUNDS)], keys[key + np.uint64(ROUNDS) : key + np.uint64(2 * ROUNDS)],
                numbers[mine + np.uint64(INTERVAL)], numbers[mine + np.uint64(SECOND_INTERVAL)],
                numbers[mine + np.uint64(SCALE)], choices.two,
            )  # fmt: skip
            rate, full = numbers[mine + np.uint64(RATE)], numbers[mine + np.uint64(STRENGTH)]
            length, out = numbers[mine + np.uint64(LENGTH)], numbers[mine + np.uint64(OUT_STRENGTH)]
            begin = start[s]
            for t in order:
                load(t, weight, at, p[t], p2[t])
                load(t, first, at, m[t], m2[t])
                load(t, second_moment, at, v[t], v2[t])
                put(t, x, p[t], f[t], p2[t], f2[t], spans, s * span)
            for i in range(iteration, iteration + count):
                now = min(np.uint64(i), settled)
                c1, c2 = corrections[np.uint64(2) * now], corrections[np.uint64(2) * now + np.uint64(1)]
                how = Step(
                    sparsity_strength_in_float32(np.uint64(i), begin, length, full, choices.exponential), out,
                    rate * c1 if choices.optimizer == ADAM else rate, c2, choices.momentum, choices.optimizer,
                    choices.squared, choices.out_squared,
                )  # fmt: skip
                for t in order:
                    for k in range(row_sums):
                        z[t, k] = ZERO
                for turn in range(passes):
                    for t in order:
                        draw(t, x, a[t], turn, i, stream)
                    for t in order:
                        rows(t, x, a[t], u, u_grad, mul, gates, left, z[t], turn, choices.operation)
                    for t in order:
                        outer(t, x, d[t], turn)
                    if products:
                        for o in range(hidden):
                            for t in order:
                                spread(t, x, o)
                            for t in order:
                                gather(t, x, o, turn)
                for t in order:
                    parts(t, x, d[t], z[t])
                for t in order:
                    own(t, x, p[t], m[t], v[t], f[t], how)
                for t in order:
                    second(t, x, p2[t], m2[t], v2[t], f2[t], how)
            for t in order:
                store(t, weight, at, p[t], p2[t])
                store(t, first, at, m[t], m2[t])
                store(t, second_moment, at, v[t], v2[t])

    return train


def _evaluate(layout: Layout) -> Any:
    phases = new_phases(layout)
    load, put, row_error, error_sum = phases.load, phases.put, phases.row_error, phases.error_sum
    parameters_, span = np.uint64(layout.parameters), np.uint64(2 * layout.shape.subsets)
    distance, furthest, threads = phases.distance, phases.furthest, layout.threads
    quads, planes, chunk = layout.quads, 1 + layout.logs, np.uint64(EVALUATED_ROWS)

    @_compiled(made_for=(layout.shape, layout.rows))
    def evaluate(
        order, own_arrays, choices, which, sets, evaluated, spans, weight, rows, errors, weights
    ):  # fmt: skip
        (a, _, _, p, _, _, f, p2, _, _, f2, u, _, mul, gates, left, x) = own_arrays
        plane = np.uint64(quads) * np.uint64(4 * rows)
        set_size = plane * np.uint64(planes)
        for k in range(len(which)):
            s = which[k]
            for t in order:
                load(t, weight, s * parameters_, p[t], p2[t])
                put(t, x, p[t], f[t], p2[t], f2[t], spans, s * span)
            for of in range(2):
                base = sets[s, of] * set_size
                for c in range(errors.shape[2]):
                    for t in order:
                        total = ZERO
                        row = np.uint64(c) * chunk + t
                        end = min(np.uint64(c + 1) * chunk, np.uint64(rows))
                        while row < end:
                            total += row_error(
                                x, a[t], u, mul, gates, left, evaluated, base + np.uint64(4) * row,
                                np.uint64(4 * rows), plane, choices.operation,
                            )  # fmt: skip
                            row += np.uint64(threads)
                        x[t] = total
                    errors[k, of, c] = error_sum(x)
            for t in order:
                x[t], x[np.uint64(threads) + t] = distance(t, p[t], f[t], p2[t], f2[t])
            weights[k, 0], weights[k, 1] = furthest(x)

    return evaluate


class EmulatedBlocks(Blocks):
    """A pack's blocks, one after the other on the CPU.

    Args:
        shape: what is compiled.
        choices: of the pack.
        tables: of the trials.
        state: weights and both moments, each [trials, parameters]; copied.
        backwards: whether threads are called in reverse order, to find a missing barrier.
    """

    def __init__(
        self, shape: Shape, choices: Choices, tables: Tables, state: Sequence[npt.NDArray[np.float32]], *,
        backwards: bool = False,
    ) -> None:  # fmt: skip
        layout, self._train, self._evaluate = emulation(shape)
        self._choices, self._tables = choices, tables
        self._state = [array.copy() for array in state]
        order = np.arange(layout.threads, dtype=np.uint64)
        self._order = order[::-1].copy() if backwards else order
        self._threads = new_threads(layout)

    def train(self, which: npt.NDArray[np.uint64], iteration: int, count: int) -> None:
        """Update some trials; see `Blocks`."""
        tables = self._tables
        self._train(
            self._order, self._threads, self._choices, which, iteration, count, tables.keys.reshape(-1),
            tables.spans.reshape(-1), tables.start, tables.numbers.reshape(-1),
            tables.corrections.reshape(-1), *(array.reshape(-1) for array in self._state),
        )  # fmt: skip

    def evaluate(self, which: npt.NDArray[np.uint64]) -> Callable[[], Evaluation]:
        """Evaluate the trials at some places as they are now; see `Blocks`."""
        tables, rows = self._tables, self._tables.evaluated.shape[3]
        evaluation = Evaluation(np.zeros((len(which), 2, chunks(rows))), np.zeros((len(which), 2), np.float32))
        self._evaluate(
            self._order, self._threads, self._choices, which, tables.sets, tables.evaluated.reshape(-1),
            tables.spans.reshape(-1), self._state[0].reshape(-1), rows, *evaluation,
        )  # fmt: skip
        return lambda: evaluation

    def read(self) -> list[npt.NDArray[np.float32]]:
        """Copy weights and both moments out."""
        return [array.copy() for array in self._state]

    def wait(self, left: int) -> None:
        """Return at once: everything is done."""
