"""The fused GPU engine emulated on the CPU, for tests: each phase runs, compiled, for all threads of a block in turn.

It follows `gpu.kernels` line by line: a loop over threads here stands for the code between two barriers there. The bits
are those of a GPU: both compile the same phases, and neither may contract a product and a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from study.stream.compile import cached, digest
from study.stream.stream import ROUNDS
from tasks.arithmetic.engine.compiled.cache import SOURCES
from tasks.arithmetic.engine.compiled.formulas import sparsity_strength_in_float32
from tasks.arithmetic.engine.gpu.arrays import (
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
from tasks.arithmetic.engine.gpu.compile import inline
from tasks.arithmetic.engine.gpu.draw import BlockStream
from tasks.arithmetic.engine.gpu.groups import deal
from tasks.arithmetic.engine.gpu.instructions import from_place
from tasks.arithmetic.engine.gpu.layout import EVALUATED_ROWS, MOST_TOGETHER, Layout, new_layout
from tasks.arithmetic.engine.gpu.phases import new_phases
from tasks.arithmetic.engine.gpu.row_math import ZERO
from tasks.arithmetic.engine.gpu.shape import Shape
from tasks.arithmetic.engine.gpu.threads import new_threads
from tasks.arithmetic.engine.gpu.weight_update import Step
from tasks.arithmetic.engine.shared.update_rule import ADAM

_STAMP = digest((*SOURCES, *sorted(Path(__file__).parent.glob("*.py"))))
_compiled = partial(cached, _STAMP, error_model="numpy", _nrt=False)

# Limits of a block on compute capability 9.0: shared memory, and threads with 128 registers.
_BLOCK_BYTES, _THREADS = 227 * 1024, 512


@cache
def emulation(shape: Shape) -> tuple[Layout, Any, Any]:
    """Return the layout, and the compiled `train` and `evaluate`, of a shape.

    Raises:
        ValueError: for some shapes with more inputs than `MOST_INPUTS`.
    """
    layout = new_layout(shape)
    return layout, _train(layout), _evaluate(layout)


def _train(layout: Layout) -> Any:
    phases = new_phases(layout)
    load, put, draw, rows, outer = phases.load, phases.put, phases.draw, phases.rows, phases.outer
    spread, gather, parts, own, second, store = (
        phases.spread, phases.gather, phases.parts, phases.own, phases.second, phases.store
    )  # fmt: skip
    put_subsets, multiply, subsets = phases.put_subsets, phases.multiply, phases.subsets
    parameters_, span = np.uint64(layout.parameters), np.uint64(2 * layout.shape.subsets)
    passes, row_sums, products, hidden = layout.passes, layout.row_sums, layout.products, layout.shape.hidden
    threads, at_inputs, part_sums = np.uint64(layout.threads), np.uint64(layout.at_inputs), np.uint64(layout.part_sums)
    own_size, input_room = np.uint64(layout.own), np.uint64(layout.input_room)

    @_compiled(made_for=(layout.shape, layout.rows))
    def train(
        order, of_block, own_arrays, choices, which, iteration, count, keys, spans, start, numbers, corrections, weight,
        first, second_moment
    ):  # fmt: skip
        (e, a, d, z, p, m, v, f, p2, m2, v2, f2, u, u_grad, mul, gates, left, x) = own_arrays
        settled, trials = np.uint64(len(corrections) // 2 - 1), np.uint64(len(of_block))
        at_own = at_inputs + max(input_room, trials * part_sums)
        for block in range(len(which) // len(of_block)):
            trial_0 = np.uint64(block) * trials
            place_0 = which[trial_0]
            drawn, key = place_0 * np.uint64(NUMBERS), place_0 * np.uint64(2 * ROUNDS)
            stream = BlockStream(
                keys[key : key + np.uint64(ROUNDS)], keys[key + np.uint64(ROUNDS) : key + np.uint64(2 * ROUNDS)],
                numbers[drawn + np.uint64(INTERVAL)], numbers[drawn + np.uint64(SECOND_INTERVAL)],
                numbers[drawn + np.uint64(SCALE)], choices.two,
            )  # fmt: skip
            for k in of_block:
                at = which[trial_0 + k] * parameters_
                for t in order:
                    b = k * threads + t
                    load(t, weight, at, p[b], p2[b])
                    load(t, first, at, m[b], m2[b])
                    load(t, second_moment, at, v[b], v2[b])
                    put(t, from_place(x, at_own + k * own_size), p[b], f[b], p2[b], f2[b])
                    put_subsets(b, x, spans, place_0 * span, trials * threads)
            for i in range(iteration, iteration + count):
                for b in range(len(z)):
                    for n in range(row_sums):
                        z[b, n] = ZERO
                for turn in range(passes):
                    for k in of_block:
                        for t in order:
                            draw(k * threads + t, x, turn, i, stream, trials)
                    for k in of_block:
                        for t in order:
                            b = k * threads + t
                            multiply(t, x, from_place(x, at_own + k * own_size), a[b])
                            subsets(t, x, e[b], k, trials)
                    for k in of_block:
                        for t in order:
                            b, mine = k * threads + t, from_place(x, at_own + k * own_size)
                            rows(t, x, mine, a[b], e[b], u, u_grad, mul, gates, left, z[b], turn, choices.operation)
                    for k in of_block:
                        for t in order:
                            outer(t, x, from_place(x, at_own + k * own_size), d[k * threads + t], turn)
                    if products:
                        for o in range(hidden):
                            for k in of_block:
                                for t in order:
                                    spread(t, x, from_place(x, at_own + k * own_size), o)
                            for k in of_block:
                                for t in order:
                                    gather(t, from_place(x, at_own + k * own_size), o, turn)
                for k in of_block:
                    for t in order:
                        b = k * threads + t
                        parts(
                            t,
                            from_place(x, at_inputs + k * part_sums),
                            from_place(x, at_own + k * own_size),
                            d[b],
                            z[b],
                        )
                for k in of_block:
                    how = step_of(which[trial_0 + k], i, settled, choices, start, numbers, corrections)
                    for t in order:
                        b = k * threads + t
                        own(
                            t,
                            from_place(x, at_inputs + k * part_sums),
                            from_place(x, at_own + k * own_size),
                            p[b],
                            m[b],
                            v[b],
                            f[b],
                            how,
                        )
                for k in of_block:
                    how = step_of(which[trial_0 + k], i, settled, choices, start, numbers, corrections)
                    for t in order:
                        b = k * threads + t
                        second(t, from_place(x, at_own + k * own_size), p2[b], m2[b], v2[b], f2[b], how)
            for k in of_block:
                at = which[trial_0 + k] * parameters_
                for t in order:
                    b = k * threads + t
                    store(t, weight, at, p[b], p2[b])
                    store(t, first, at, m[b], m2[b])
                    store(t, second_moment, at, v[b], v2[b])

    return train


@inline
def step_of(place, i, settled, choices, start, numbers, corrections):
    """Collect the update parameters of the trial at a place, uint64, at iteration i: a `Step`."""
    mine, now = place * np.uint64(NUMBERS), min(np.uint64(i), settled)
    c1, c2 = corrections[np.uint64(2) * now], corrections[np.uint64(2) * now + np.uint64(1)]
    rate, full = numbers[mine + np.uint64(RATE)], numbers[mine + np.uint64(STRENGTH)]
    length, out = numbers[mine + np.uint64(LENGTH)], numbers[mine + np.uint64(OUT_STRENGTH)]
    return Step(
        sparsity_strength_in_float32(np.uint64(i), start[place], length, full, choices.exponential), out,
        rate * c1 if choices.optimizer == ADAM else rate, c2, choices.momentum, choices.optimizer,
        choices.squared, choices.out_squared,
    )  # fmt: skip


def _evaluate(layout: Layout) -> Any:
    phases = new_phases(layout)
    load, put, row_error, error_sum = phases.load, phases.put, phases.row_error, phases.error_sum
    put_subsets, at_inputs, at_trial = phases.put_subsets, layout.at_inputs, layout.at_trial(0, 1)
    parameters_, span = np.uint64(layout.parameters), np.uint64(2 * layout.shape.subsets)
    distance, furthest, threads = phases.distance, phases.furthest, layout.threads
    quads, planes, chunk = layout.quads, 1 + layout.logs, np.uint64(EVALUATED_ROWS)

    @_compiled(made_for=(layout.shape, layout.rows))
    def evaluate(
        order, own_arrays, choices, which, sets, evaluated, spans, weight, rows, errors, weights
    ):  # fmt: skip
        (e, a, _, _, p, _, _, f, p2, _, _, f2, u, _, mul, gates, left, x) = own_arrays
        s, w = from_place(x, np.uint64(at_inputs)), from_place(x, np.uint64(at_trial))
        plane = np.uint64(quads) * np.uint64(4 * rows)
        set_size = plane * np.uint64(planes)
        for k in range(len(which)):
            place = which[k]
            for t in order:
                load(t, weight, place * parameters_, p[t], p2[t])
                put(t, w, p[t], f[t], p2[t], f2[t])
                put_subsets(t, x, spans, place * span, np.uint64(threads))
            for purpose in range(2):
                base = sets[place, purpose] * set_size
                for c in range(errors.shape[2]):
                    for t in order:
                        total = ZERO
                        row = np.uint64(c) * chunk + t
                        end = min(np.uint64(c + 1) * chunk, np.uint64(rows))
                        while row < end:
                            total += row_error(
                                x, w, a[t], e[t], u, mul, gates, left, evaluated, base + np.uint64(4) * row,
                                np.uint64(4 * rows), plane, choices.operation,
                            )  # fmt: skip
                            row += np.uint64(threads)
                        s[t] = total
                    errors[k, purpose, c] = error_sum(s)
            for t in order:
                s[t], s[np.uint64(threads) + t] = distance(t, p[t], f[t], p2[t], f2[t])
            weights[k, 0], weights[k, 1] = furthest(s)

    return evaluate


class EmulatedBlocks(Blocks):
    """A pack's blocks, run in sequence on the CPU.

    Args:
        shape: the shape to compile for.
        choices: the pack's choices.
        tables: the trials' tables.
        state: weights and both moments, each [trials, parameters]; copied.
        backwards: True to call threads in reverse order, to detect a missing barrier.
        most: the most trials of a block; None for as many as fit on a multiprocessor of compute capability 9.0.
    """

    def __init__(
        self, shape: Shape, choices: Choices, tables: Tables, state: Sequence[npt.NDArray[np.float32]], *,
        backwards: bool = False, most: int | None = None,
    ) -> None:  # fmt: skip
        layout, self._train, self._evaluate = emulation(shape)
        self._choices, self._tables = choices, tables
        self._state = [array.copy() for array in state]
        order = np.arange(layout.threads, dtype=np.uint64)
        self._order = order[::-1].copy() if backwards else order
        self._most = min(most or MOST_TOGETHER, layout.most_together(_BLOCK_BYTES, _THREADS))
        self._threads = new_threads(layout, self._most)

    def train(self, which: npt.NDArray[np.uint64], iteration: int, count: int) -> None:
        """Update some trials; see `Blocks`."""
        tables = self._tables
        for blocks in deal(which, tables.rows, self._most):
            of_block = np.arange(blocks.shape[1], dtype=np.uint64)
            of_block = of_block[::-1].copy() if self._order[0] else of_block
            self._train(
                self._order, of_block, self._threads, self._choices, blocks.reshape(-1), iteration, count,
                tables.keys.reshape(-1), tables.spans.reshape(-1), tables.start, tables.numbers.reshape(-1),
                tables.corrections.reshape(-1), *(array.reshape(-1) for array in self._state),
            )  # fmt: skip

    def evaluate(self, which: npt.NDArray[np.uint64]) -> Callable[[], Evaluation]:
        """Evaluate some trials; see `Blocks`."""
        tables, rows = self._tables, self._tables.evaluated.shape[3]
        evaluation = Evaluation(np.zeros((len(which), 2, chunks(rows))), np.zeros((len(which), 2), np.float32))
        self._evaluate(
            self._order, self._threads, self._choices, which, tables.sets, tables.evaluated.reshape(-1),
            tables.spans.reshape(-1), self._state[0].reshape(-1), rows, *evaluation,
        )  # fmt: skip
        return lambda: evaluation

    def read(self) -> list[npt.NDArray[np.float32]]:
        """Copy weights, first and second moments, each [trials, parameters]."""
        return [array.copy() for array in self._state]

    def wait(self, left: int) -> None:
        """Return at once: `train` is synchronous."""
