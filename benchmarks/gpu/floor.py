"""Lower bound of an iteration's cost on a GPU, and the share of that rate that the engine reaches.

Two floors, of the NMU with 100 inputs:

- **Drawing and multiply-adds.** The engine's own phases `draw`, `multiply` and `subsets` alone, in as many blocks of
  one trial as fit, with two barriers a pass. They draw the inputs of each batch into shared memory, and sum them by
  weights and by subsets. The multiply-adds of the other product, gradients by inputs, are counted instead of measured:
  batch x inputs x hidden, 32 a warp instruction, at the rate at which warp instructions are issued. This floor leaves
  out a row's work between the layers, sums over rows, Adam, regularisers and the other barriers. A faster way to draw
  lowers it, and so do blocks of several trials.
- **Issue slots.** A multiprocessor issues four warp instructions a cycle. For a trial that sees rows of its own, the
  machine code for compute capability 9.0 has about 11,300 an iteration at 2 hidden units and 23,000 at 10 (count.py).
  The arithmetic alone, without computing addresses or moving numbers, needs at least 8,000 and 20,000. The rates are
  those of the highest clock, so no kernel reaches them in full.
"""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.machine import LEAST_SLOTS, SLOTS, Machine, each, smi
from benchmarks.gpu.sizes import Model, Sizes
from benchmarks.gpu.speed import laps
from benchmarks.measure import Measure, in_turns, new_pack, published_cell, tell
from study.records import Cell
from study.stream.stream import ROUNDS
from tasks.arithmetic.engine.gpu.arrays import round_keys
from tasks.arithmetic.engine.gpu.engine import _layout
from tasks.arithmetic.engine.gpu.layout import Layout

_REGISTERS = (64, 128)
_LAUNCH_S = 0.02
_WARP = 32


def rows(machine: Machine, sizes: Sizes, arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Measure each shape, and yield a row for each part, each floor and the engine.

    Raises:
        PartlyFailedError: at the end, if a shape failed; its error has been printed.
    """
    yield from each(sizes.floor, lambda shape: _shape_rows(machine, shape, arguments))


def _shape_rows(machine: Machine, shape: Model, arguments: Namespace) -> Iterator[dict[str, Any]]:
    cell = published_cell(*shape)
    pack = 2 * machine.at_once(cell)
    lap = laps(machine.start(new_pack(cell, pack)), cell.value("evaluate_every"))
    measures: dict[str, Measure] = {"engine": lambda for_s: lap(for_s).update_s / pack}
    measures |= {f"draw {limit}": draws(machine, cell, limit) for limit in _REGISTERS}
    measured = in_turns(measures, rounds=arguments.rounds, seconds=arguments.seconds)
    return _rows(machine, cell, shape, {name: statistics.median(s) for name, s in measured.items()})


def _rows(machine: Machine, cell: Cell, shape: Model, second: dict[str, float]) -> Iterator[dict[str, Any]]:
    """Yield and print the rows of a shape, from the seconds a trial-iteration of the engine and of each draw."""
    draw = min(s for name, s in second.items() if name != "engine")
    products = 1 / machine.estimate(
        cell.value("batch_size") * cell.value("input_size") * cell.value("hidden_size") / _WARP
    )
    parts = {
        "draw: the engine's phase alone": draw,
        "multiply-adds of the gradient, counted": products,
        "floor: draw + multiply-adds": draw + products,
        "fused-gpu engine": second["engine"],
    }
    if cell.value("input_size") == 100 and cell.value("hidden_size") in SLOTS:
        parts["issue slots: least conceivable"] = 1 / machine.estimate(LEAST_SLOTS[cell.value("hidden_size")])
        parts["issue slots: of the machine code"] = 1 / machine.estimate(SLOTS[cell.value("hidden_size")])
    for name, s in parts.items():
        row = {
            "part": name,
            "model": shape[0],
            "input_size": shape[1],
            "hidden_size": shape[2],
            "million_per_s": f"{1e-6 / s:.4f}",
            "reached_by_the_engine": f"{s / second['engine']:.3f}",
        }
        tell("  " + ", ".join(f"{key} {value}" for key, value in row.items()))
        yield row


def clock_under_load_mhz(machine: Machine, shape: Model) -> float | None:
    """Return the multiprocessors' clock while the device trains, in MHz; None if emulated or if it can't be read.

    An error of the training or of the query is printed, and the result is None.
    """
    if machine.emulated:
        return None
    try:
        cell = published_cell(*shape)
        lap = laps(machine.start(new_pack(cell, 2 * machine.at_once(cell))), cell.value("evaluate_every"))
        lap(0.5)  # an idle device has a low clock
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(smi, "clocks.sm")
            while not asked.done():
                lap(0.1)
        return float(asked.result()[0])
    except Exception as error:  # useful, but a failure must not cost the measurements
        tell(f"  can't read the clock: {error}")
        return None


# --- the draw phase alone ---------------------------------------------------------------------------------------


def draws(machine: Machine, cell: Cell, registers: int) -> Measure:
    """Return a function that measures the wall-clock seconds to draw and add up the inputs of a trial's batch.

    Args:
        machine: the device.
        cell: cell of the trials.
        registers: maximum registers of a thread; ignored in the emulation.

    Raises:
        ImportError: if a package of the extra `gpu` isn't installed, unless emulated.
    """
    layout = _layout(cell)
    work, blocks = (_emulated if machine.emulated else _on_gpu)(machine, layout, registers)
    work(1)
    began = time.perf_counter()
    work(4)
    at_once = max(1, int(4 * _LAUNCH_S / (time.perf_counter() - began)))

    def measure(for_s: float) -> float:
        done, began = 0, time.perf_counter()
        while not done or time.perf_counter() - began < for_s:
            work(at_once)
            done += at_once
        return (time.perf_counter() - began) / (done * blocks)

    return measure


def draw_arguments(layout: Layout, blocks: int) -> tuple[Any, Any, Any]:
    """Make the kernel's arrays for a number of blocks.

    Returns:
        The blocks' round keys, uint32 [blocks x 2 x `ROUNDS`]; the interval's start and scale, float32 [2]; and zeros
        for the threads' sums, float32 [blocks x threads].
    """
    keys = round_keys(np.arange(blocks, dtype=np.uint64)).reshape(-1)
    return keys, np.array([1, 2.0**-24], np.float32), np.zeros(blocks * layout.threads, np.float32)


def new_draw_kernel(layout: Layout) -> Any:
    """Make the kernel draws(count, keys, numbers, out), in which each block draws `count` batches and adds them up.

    The arrays are those of `draw_arguments`. A thread's sum goes to `out`, so that nothing is optimised away.
    """
    from numba import cuda, float32, uint32, uint64

    from tasks.arithmetic.engine.gpu.draw import BlockStream, new_draw, new_multiply

    draw, (multiply, subsets), passes, totals = new_draw(layout), new_multiply(layout), layout.passes, layout.totals
    threads, size, at_trial, subset_count = layout.threads, layout.size(1), layout.at_trial(0, 1), layout.shape.subsets
    zero, one = np.float32(0), np.float32(1)

    def draws(count, keys, numbers, out):  # type: ignore[no-untyped-def]
        t, s = uint64(cuda.threadIdx.x), uint64(cuda.blockIdx.x)
        x = cuda.shared.array(0, float32, alignment=16)
        w = x[at_trial:]
        a, e = cuda.local.array(totals, float32), cuda.local.array(subset_count, float32)
        first_keys, second_keys = cuda.local.array(ROUNDS, uint32), cuda.local.array(ROUNDS, uint32)
        for k in range(ROUNDS):
            first_keys[k] = keys[s * uint64(2 * ROUNDS) + uint64(k)]
            second_keys[k] = keys[s * uint64(2 * ROUNDS) + uint64(ROUNDS + k)]
        low = numbers[uint64(0)]
        stream = BlockStream(first_keys, second_keys, low, low, numbers[uint64(1)], False)
        place = t
        while place < uint64(size):
            x[place] = one
            place += uint64(threads)
        cuda.syncthreads()
        total = zero
        for i in range(count):
            for turn in range(passes):
                draw(t, x, turn, i, stream, uint64(1))
                cuda.syncthreads()
                multiply(t, x, w, a)
                subsets(t, x, e, uint64(0), uint64(1))
                cuda.syncthreads()
                for k in range(totals):
                    total += a[k]
        out[s * uint64(threads) + t] = total

    return draws


def draws_ptx(layout: Layout, capability: tuple[int, int], registers: int) -> str:
    """Compile the kernel of `new_draw_kernel` to PTX as the engine compiles its own.

    Args:
        layout: layout of a block.
        capability: compute capability, such as (9, 0).
        registers: maximum registers of a thread.

    Raises:
        ImportError: if a package of the extra `gpu` isn't installed.
    """
    from numba import float32, int64, types, uint32

    from tasks.arithmetic.engine.gpu.kernels import to_ptx

    kinds = (int64, types.CPointer(uint32), types.CPointer(float32), types.CPointer(float32))
    kernel = new_draw_kernel(layout)
    return to_ptx(kernel, "draws", kinds, capability, layout.threads, registers)


def _on_gpu(machine: Machine, layout: Layout, registers: int) -> tuple[Callable[[int], None], int]:
    """Return a function that draws in all blocks on the device a number of times, and the number of blocks."""
    from cuda.core import Device, LaunchConfig, Stream, launch

    from tasks.arithmetic.engine.gpu.device import blocks_of_one
    from tasks.arithmetic.engine.gpu.kernels import to_machine_code

    Device(torch.cuda.current_device()).set_current()
    capability = torch.cuda.get_device_capability()
    kernel = to_machine_code(draws_ptx(layout, capability, registers), capability).get_kernel("draws")
    blocks = 4 * blocks_of_one(layout, registers)
    arrays = [torch.from_numpy(array.view(np.uint8)).to(machine.device) for array in draw_arguments(layout, blocks)]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    to_launch = Stream.from_handle(stream.cuda_stream)
    config = LaunchConfig(grid=(blocks,), block=layout.threads, shmem_size=4 * layout.size(1))

    def work(count: int) -> None:
        launch(to_launch, config, kernel, count, *(array.data_ptr() for array in arrays))
        stream.synchronize()

    return work, blocks


def _emulated(machine: Machine, layout: Layout, registers: int) -> tuple[Callable[[int], None], int]:
    """Return a function that draws in one block on the CPU a number of times, and the number of blocks, 1."""
    run, (keys, numbers, out) = _draw_loop(layout), draw_arguments(layout, 1)
    x, a = np.ones(layout.size(1), np.float32), np.zeros((layout.threads, layout.totals), np.float32)
    return lambda count: run(count, keys, numbers, out, x, a), 1


@cache
def _draw_loop(layout: Layout) -> Any:
    import numba as nb

    from tasks.arithmetic.engine.gpu.draw import BlockStream, new_draw, new_multiply

    draw, (multiply, subsets), passes, threads = new_draw(layout), new_multiply(layout), layout.passes, layout.threads
    at_trial, subset_count = layout.at_trial(0, 1), layout.shape.subsets

    @nb.njit(error_model="numpy")
    def run(count, keys, numbers, out, x, a):  # type: ignore[no-untyped-def]
        w, e = x[at_trial:], np.zeros(subset_count, np.float32)
        stream = BlockStream(keys[:ROUNDS], keys[ROUNDS:], numbers[0], numbers[0], numbers[1], False)
        for i in range(count):
            for turn in range(passes):
                for t in range(threads):
                    draw(np.uint64(t), x, turn, i, stream, np.uint64(1))
                for t in range(threads):
                    multiply(np.uint64(t), x, w, a[t])
                    subsets(np.uint64(t), x, e, np.uint64(0), np.uint64(1))
                    out[t] += a[t].sum()

    return run
