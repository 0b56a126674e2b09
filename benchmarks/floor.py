"""Lower bound of an iteration's cost on one core: its share of a draw, and its multiply-adds at the core's full rate.

    python -m benchmarks.floor [--out benchmarks/results/floor.csv] [--only-figure CSV]

It measures the NMU's network on the arithmetic task. The floor has two terms. One is the engine's stream alone, divided
by the cells that share it. The other is the multiply-adds alone, each once, at the highest rate measured on this core.
Only other random numbers or other products could be faster. Prints a row for each part, the floor and the engine, and
writes it with `--out`: microseconds, and their ratio to the floor. A figure beside the file shows the floor and the
engine against the cells that share a seed; `--only-figure` draws it from an earlier file.
"""

from __future__ import annotations

import csv
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numba as nb
import numpy as np
from llvmlite import ir
from matplotlib.figure import Figure
from numba.core import cgutils, types
from numba.extending import intrinsic

from benchmarks.measure import (
    BATCH,
    PACK,
    Measure,
    finish,
    in_turns,
    new_pack,
    one_core,
    parser,
    published_cell,
    ratio,
    repeated,
    tell,
    training,
)
from study.engine import engine_named
from study.records import Cell
from study.reports.figures.style import PALETTE, STYLE, WIDTH_IN
from study.stream.stream import Purpose
from study.stream.stream_simd import fill_inputs
from tasks.arithmetic.cell import task_of, typed_cell

Work = Callable[[int], object]
"""Does the work of so many iterations."""

FLOOR = "floor: stream / cells + multiply-adds"
ENGINE = "fused engine"
STREAM = "stream: as the engine draws it"
PRODUCTS = "multiply-adds: at the peak rate"
_TOGETHER = 8
_TURNS = 10_000


# --- the stream alone -------------------------------------------------------------------------------------------


def engine_stream(cell: Cell) -> Work:
    """Return a function that draws the inputs of some iterations as the fused engine does, with its transposed copy.

    Compiled afresh each time: a cached copy would not notice a change of the functions that it calls.
    """
    from tasks.arithmetic.engine.cpu.arrays import CpuArrays
    from tasks.arithmetic.engine.cpu.groups import new_groups
    from tasks.arithmetic.engine.cpu.inputs import draw
    from tasks.arithmetic.engine.cpu.scratch import new_scratch

    arrays = CpuArrays(new_pack(cell, 1).trials)
    source, block, batch, n = arrays._source, arrays._block, cell.value("batch_size"), cell.value("input_size")
    _, sizes = new_groups(arrays._tables, np.zeros(1, np.int64), np.zeros(1, np.int64))
    scratch = new_scratch(arrays._tables, sizes, block)
    seed, low, second, width = source.seeds[0], source.low[0, 0], source.low[0, 1], source.width[0]

    @nb.njit(error_model="numpy")
    def stream(x, transposed, n, block, count, seed, low, second, width, purpose, batch):  # type: ignore[no-untyped-def]
        for iteration in range(count):
            for row in range(0, batch, block):
                draw(x, transposed, n, block, seed, low, second, width, iteration, purpose, row, batch)

    arguments = (seed, low, second, width, source.purpose, batch)
    return lambda count: stream(scratch.x, scratch.x_transposed, n, block, count, *arguments)


def portable_stream(cell: Cell) -> Measure:
    """Return a function that measures `fill_inputs`, in microseconds of CPU time per trial-iteration.

    Each call draws for several trials, so that its own cost is negligible.
    """
    x = np.empty((_TOGETHER, cell.value("input_size"), cell.value("batch_size")), np.float32)
    seeds = np.arange(_TOGETHER, dtype=np.uint64)
    low, width = np.ones((_TOGETHER, 2), np.float32), np.ones(_TOGETHER, np.float32)

    def work(count: int) -> None:
        for iteration in range(-(-count // _TOGETHER)):
            fill_inputs(x, seeds, low, width, iteration, Purpose.TRAIN)

    return repeated(work, 10 * _TOGETHER)


# --- the multiply-adds alone ------------------------------------------------------------------------------------


def subset_sizes(cell: Cell) -> list[int]:
    """Return the number of inputs of each subset that the target sums."""
    return [int(mask.sum()) for mask in task_of(typed_cell(cell)).masks(0)]


def multiply_adds(cell: Cell, cells: int = 1) -> int:
    """Count the multiply-adds of one iteration's gradients, each once.

    batch (2 n h + s / cells + 3 h), with n inputs, h hidden units and s, the sum of the subsets' sizes. The terms are
    W1 x and g x^T; the target's sums, which cells of a seed share; W2 z, W2^T g and g z^T.
    """
    n, hidden = cell.value("input_size"), cell.value("hidden_size")
    return round(cell.value("batch_size") * (2 * n * hidden + sum(subset_sizes(cell)) / cells + 3 * hidden))


def spin(lanes: int, accumulators: int) -> Callable[..., float]:
    """Compile a loop of multiply-adds that never leaves the registers.

    Args:
        lanes: float32 numbers in a register.
        accumulators: independent sums, more than twice the cycles of a multiply-add.

    Returns:
        A function of a factor, an addend and the number of turns; each turn makes lanes x accumulators multiply-adds.
    """
    kind = ir.VectorType(ir.FloatType(), lanes)

    @intrinsic
    def turn(typing: Any, factor: Any, addend: Any, turns: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            factor, addend, turns = arguments
            form = ir.FunctionType(kind, [kind] * 3)
            multiply_add = cgutils.get_or_insert_function(builder.module, form, f"llvm.fma.v{lanes}f32")
            first, second = (_splat(builder, kind, number) for number in (factor, addend))
            places = [cgutils.alloca_once(builder, kind) for _ in range(accumulators)]
            for k, place in enumerate(places):
                builder.store(ir.Constant(kind, [float(k)] * lanes), place)
            with cgutils.for_range(builder, turns):
                for place in places:
                    builder.store(builder.call(multiply_add, [builder.load(place), first, second]), place)
            total = builder.load(places[0])
            for place in places[1:]:
                total = builder.fadd(total, builder.load(place))
            return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

        return types.float32(types.float32, types.float32, types.int64), generate

    compiled: Callable[..., float] = nb.njit(lambda factor, addend, turns: turn(factor, addend, turns))
    return compiled


def _splat(builder: Any, kind: Any, number: Any) -> Any:
    """Emit LLVM instructions that broadcast a number to all lanes of the vector type `kind`; return the vector."""
    undefined, zero = ir.Constant(kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [zero] * kind.count)
    return builder.shuffle_vector(builder.insert_element(undefined, number, zero), undefined, mask)


def at_peak(cell: Cell) -> Measure:
    """Return a function that measures an iteration's multiply-adds at this core's highest rate, in microseconds.

    It measures two widths of registers, and takes the faster one: some cores lack wide ones, or slow down with them.
    """
    shapes = ((8, 12), (16, 12))
    factor, addend = np.float32(0.5), np.float32(1)  # sums stay near 2: no overflow, no subnormal numbers
    loops = [(spin(*shape), shape) for shape in shapes]
    share = [
        (repeated(lambda count, loop=loop: loop(factor, addend, count * _TURNS), 10), lanes * many)
        for loop, (lanes, many) in loops
    ]
    needed = multiply_adds(cell) / _TURNS

    def measure(for_s: float) -> float:
        return min(timed_loop(for_s / len(share)) * needed / a_turn for timed_loop, a_turn in share)

    return measure


def by_blas(cell: Cell) -> Measure:
    """Return a function that measures an iteration's products of `BATCH` rows by numpy's BLAS, in microseconds."""
    n, hidden, rng = cell.value("input_size"), cell.value("hidden_size"), np.random.default_rng(0)

    def new(*shape: int) -> Any:
        return rng.uniform(1, 2, shape).astype(np.float32)

    x, z, g, top = new(n, BATCH), new(hidden, BATCH), new(hidden, BATCH), new(1, BATCH)
    w, v = new(hidden, n), new(1, hidden)
    products = [(w, x), (g, x.T), (v, z), (v.T, top), (top, z.T)]
    products += [(np.ones((1, size), np.float32), x[:size]) for size in subset_sizes(cell)]
    ready = [(a, b, np.empty((len(a), b.shape[1]), np.float32)) for a, b in products]

    def work(count: int) -> None:
        for _ in range(count):
            for a, b, out in ready:
                np.matmul(a, b, out=out)

    return repeated(work, 20)


# --- both, beside the engine ------------------------------------------------------------------------------------


def rows_of(cell: Cell, arguments: Namespace) -> list[dict[str, Any]]:
    """Measure one shape; return a row for each part, and for the floor and the engine at each number of cells a seed.

    Parts are compared with the floor at the first number of cells.

    Args:
        cell: the shape's cell.
        arguments: `cells`, `rounds` and `seconds`: the options of `main`.
    """
    engines = {
        cells: training(engine_named("fused"), new_pack(cell, PACK, cells), clock=time.process_time)
        for cells in arguments.cells
    }
    parts = {
        STREAM: repeated(engine_stream(cell), 100),
        "stream: fill_inputs, as the torch engine calls it": portable_stream(cell),
        PRODUCTS: at_peak(cell),
        "multiply-adds: by BLAS": by_blas(cell),
    }
    measured = in_turns({**parts, **engines}, rounds=arguments.rounds, seconds=arguments.seconds)
    floors = {cells: _floor(cell, cells, measured[STREAM], measured[PRODUCTS]) for cells in arguments.cells}

    def row(part: str, cells: int, us: Sequence[float]) -> dict[str, Any]:
        return {
            "model": cell.model,
            "input_size": cell.value("input_size"),
            "hidden_size": cell.value("hidden_size"),
            "part": part,
            "cells_a_seed": cells if part in (FLOOR, ENGINE) else "",
            "multiply_adds": multiply_adds(cell, cells) if part != STREAM and not part.startswith("stream") else "",
            "us_per_iteration": f"{statistics.median(us):.3f}",
            "times_the_floor": f"{ratio(us, floors[cells]):.2f}",
        }

    rows = [row(part, arguments.cells[0], measured[part]) for part in parts]
    for cells in arguments.cells:
        rows += [row(FLOOR, cells, floors[cells]), row(ENGINE, cells, measured[cells])]
    return rows


def _floor(cell: Cell, cells: int, stream_us: Sequence[float], products_us: Sequence[float]) -> list[float]:
    share = multiply_adds(cell, cells) / multiply_adds(cell)
    return [stream / cells + share * products for stream, products in zip(stream_us, products_us, strict=True)]


# --- the figure -------------------------------------------------------------------------------------------------


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw microseconds against cells of a seed into a file: engine and floor, for each number of hidden units.

    Only the first numbers of hidden units are drawn, as many as `PALETTE` has colours.

    Args:
        rows: at least one row of `rows_of`, or of its CSV file.
        path: the file.

    Raises:
        KeyError: if a row lacks a column.
        ValueError: if a number of a row can't be read, or the file's suffix isn't that of a supported image format.
        OSError: if the file can't be written.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, 2.6), layout="constrained")
        axes = figure.subplots()
        for color, hidden in zip(PALETTE, dict.fromkeys(str(row["hidden_size"]) for row in rows), strict=False):
            for part, style in ((ENGINE, "o-"), (FLOOR, "--")):
                mine = [row for row in rows if str(row["hidden_size"]) == hidden and row["part"] == part]
                cells = [int(row["cells_a_seed"]) for row in mine]
                us = [float(row["us_per_iteration"]) for row in mine]
                axes.plot(cells, us, style, color=color, label=f"{hidden} hidden units, {part.split(':')[0]}")
        axes.set_xscale("log")
        axes.set_xticks(cells, [str(count) for count in cells])
        axes.minorticks_off()
        axes.set_ylim(0)
        axes.set_xlabel("cells that share a seed")
        axes.set_ylabel("µs a trial-iteration")
        axes.legend(frameon=False)
        figure.savefig(path, dpi=200, metadata={"Software": None})


def main(words: Sequence[str] | None = None) -> None:
    """Measure; print the table, and write it and the figure with `--out`; or draw the figure of an earlier file.

    Raises:
        OSError: if the earlier file can't be read, or a file can't be written.
        KeyError: if the earlier file lacks a column.
    """
    known = parser(__doc__, rounds=7, seconds=0.5)
    known.add_argument("--hidden", nargs="+", type=int, default=[2, 10], metavar="N")
    known.add_argument("--cells", nargs="+", type=int, default=[1, 2, 4, 9, 20, 45], metavar="N")
    known.add_argument("--only-figure", type=Path, metavar="CSV", help="draw what was measured before")
    arguments = known.parse_args(words)
    if arguments.only_figure is not None:
        with arguments.only_figure.open(encoding="utf-8", newline="") as file:
            plot(list(csv.DictReader(file)), arguments.only_figure.with_suffix(".png"))
        return
    table = []
    with one_core():
        for hidden in arguments.hidden:
            tell(f"hidden {hidden}")
            table += rows_of(published_cell("NMU", 100, hidden), arguments)
    finish(table, arguments)
    if arguments.out is not None:
        plot(table, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
