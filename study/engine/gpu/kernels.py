"""The kernels of the fused GPU engine, compiled for a device; the only file that imports numba.cuda.

They follow `gpu.emulated` line by line: what is a loop over threads there ends with a barrier here. Compiled are they
without contracting products and sums, so that the bits are the same too.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from cuda.bindings.nvjitlink import nvJitLinkError
from cuda.core import ObjectCode, Program, ProgramOptions
from numba import cuda, float32, float64, int64, types, uint32, uint64
from numba.cuda import compiler as cuda_compiler
from numba.cuda.cudadrv import nvvm

from study.engine.compiled.codes import ADAM
from study.engine.gpu.arrays import (
    INTERVAL,
    LENGTH,
    NUMBERS,
    OUT_STRENGTH,
    RATE,
    SCALE,
    SECOND_INTERVAL,
    STRENGTH,
    Choices,
)
from study.engine.gpu.draw import Drawing
from study.engine.gpu.layout import EVALUATED_ROWS, Layout, factors, parameters
from study.engine.gpu.phases import new_phases
from study.engine.gpu.row_math import ZERO
from study.engine.gpu.weight_update import Step, sparsity_strength
from tasks.stream import ROUNDS

# mypy takes numba's own, older module for this one.
_cuda: Any = cuda
_compiler: Any = cuda_compiler
_nvvm: Any = nvvm

_F, _W, _U, _D = (types.CPointer(kind) for kind in (float32, uint32, uint64, float64))
TRAIN_TYPES = (_U, int64, int64, int64, _W, _U, _U, _F, _F, _F, _F, _F)
LOOK_TYPES = (_U, _U, _F, _U, _F, int64, _D, _F)

REGISTERS = 128
"""Of a thread, at most, if its block is one of four on a multiprocessor: they share 65,536."""

_U0, _U1, _U2 = np.uint64(0), np.uint64(1), np.uint64(2)


def new_train(layout: Layout, choices: Choices) -> Any:
    """Make the kernel that trains: a block is a trial.

    train(which, iteration, count, settled, keys, spans, start, numbers, corrections, weight, first, second)
    """
    phases = new_phases(layout)
    load, put, draw, rows, outer = phases.load, phases.put, phases.draw, phases.rows, phases.outer
    spread, gather, parts, own, second, store = (
        phases.spread, phases.gather, phases.parts, phases.own, phases.second, phases.store
    )  # fmt: skip
    passes, row_sums, products, hidden = layout.passes, layout.row_sums, layout.products, layout.shape.hidden
    parameters_, span = np.uint64(layout.parameters), np.uint64(2 * layout.shape.subsets)
    totals, outer_sums, slots = layout.totals, 4 * layout.outputs, layout.slots
    kept, kept_2 = layout.rounds * max(1, factors(layout.shape.first)), max(1, factors(layout.shape.second))
    kinds_2 = parameters(layout.shape.second)
    operation, two, exponential, optimizer, momentum, squared, out_squared = choices

    def train(
        which,
        iteration,
        count,
        settled,
        keys,
        spans,
        start,
        numbers,
        corrections,
        weight,
        first,
        second_moment,
    ):
        t, s = uint64(cuda.threadIdx.x), which[uint64(cuda.blockIdx.x)]
        x = cuda.shared.array(0, float32, alignment=16)
        a, d, z = (
            cuda.local.array(totals, float32),
            cuda.local.array(outer_sums, float32),
            cuda.local.array(row_sums, float32),
        )
        p, m, v = (
            cuda.local.array(slots, float32),
            cuda.local.array(slots, float32),
            cuda.local.array(slots, float32),
        )
        p2, m2, v2 = (
            cuda.local.array(kinds_2, float32),
            cuda.local.array(kinds_2, float32),
            cuda.local.array(kinds_2, float32),
        )
        f, f2 = cuda.local.array(kept, float32), cuda.local.array(kept_2, float32)
        u, u_grad, left = (
            cuda.local.array(hidden, float32),
            cuda.local.array(hidden, float32),
            cuda.local.array(hidden, float32),
        )
        made, gates = cuda.local.array(hidden, float32), cuda.local.array(hidden, float32)
        first_keys, second_keys = cuda.local.array(ROUNDS, uint32), cuda.local.array(ROUNDS, uint32)
        at, mine, key = s * parameters_, s * np.uint64(NUMBERS), s * np.uint64(2 * ROUNDS)
        for k in range(ROUNDS):
            first_keys[k] = keys[key + uint64(k)]
            second_keys[k] = keys[key + uint64(ROUNDS + k)]
        drawing = Drawing(
            first_keys, second_keys, numbers[mine + uint64(INTERVAL)], numbers[mine + uint64(SECOND_INTERVAL)],
            numbers[mine + uint64(SCALE)], two,
        )  # fmt: skip
        rate, full = numbers[mine + uint64(RATE)], numbers[mine + uint64(STRENGTH)]
        length, out = numbers[mine + uint64(LENGTH)], numbers[mine + uint64(OUT_STRENGTH)]
        begin = start[s]
        load(t, weight, at, p, p2)
        load(t, first, at, m, m2)
        load(t, second_moment, at, v, v2)
        put(t, x, p, f, p2, f2, spans, s * span)
        cuda.syncthreads()
        for i in range(iteration, iteration + count):
            now = min(uint64(i), uint64(settled))
            c1, c2 = corrections[_U2 * now], corrections[_U2 * now + _U1]
            how = Step(
                sparsity_strength(uint64(i), begin, length, full, exponential), out,
                rate * c1 if optimizer == ADAM else rate, c2, momentum, optimizer, squared, out_squared,
            )  # fmt: skip
            for k in range(row_sums):
                z[k] = ZERO
            for turn in range(passes):
                draw(t, x, a, turn, i, drawing)
                cuda.syncthreads()
                rows(t, x, a, u, u_grad, made, gates, left, z, turn, operation)
                cuda.syncthreads()
                outer(t, x, d, turn)
                cuda.syncthreads()
                if products:
                    for o in range(hidden):
                        spread(t, x, o)
                        cuda.syncthreads()
                        gather(t, x, o, turn)
                        cuda.syncthreads()
            parts(t, x, d, z)
            cuda.syncthreads()
            own(t, x, p, m, v, f, how)
            cuda.syncthreads()
            second(t, x, p2, m2, v2, f2, how)
            cuda.syncthreads()
        store(t, weight, at, p, p2)
        store(t, first, at, m, m2)
        store(t, second_moment, at, v, v2)

    return train


def new_look(layout: Layout, choices: Choices) -> Any:
    """Make the kernel that evaluates: a block is a trial, a chunk of rows, and validation or test.

    look(which, sets, evaluated, spans, weight, rows, errors, found)
    """
    phases = new_phases(layout)
    load, put, look, squares = phases.load, phases.put, phases.look, phases.squares
    distance, furthest, threads = phases.distance, phases.furthest, layout.threads
    quads, planes, chunk = layout.quads, 1 + layout.logs, np.uint64(EVALUATED_ROWS)
    parameters_, span = np.uint64(layout.parameters), np.uint64(2 * layout.shape.subsets)
    totals, slots, hidden = layout.totals, layout.slots, layout.shape.hidden
    kept, kept_2 = layout.rounds * max(1, factors(layout.shape.first)), max(1, factors(layout.shape.second))
    kinds_2, operation = parameters(layout.shape.second), choices.operation

    def look_all(which, sets, evaluated, spans, weight, rows, errors, found):
        t, k = uint64(cuda.threadIdx.x), uint64(cuda.blockIdx.x)
        c, of = uint64(cuda.blockIdx.y), uint64(cuda.blockIdx.z)
        s = which[k]
        x = cuda.shared.array(0, float32, alignment=16)
        a, p, p2 = (
            cuda.local.array(totals, float32),
            cuda.local.array(slots, float32),
            cuda.local.array(kinds_2, float32),
        )
        f, f2 = cuda.local.array(kept, float32), cuda.local.array(kept_2, float32)
        u, made, gates = (
            cuda.local.array(hidden, float32),
            cuda.local.array(hidden, float32),
            cuda.local.array(hidden, float32),
        )
        left = cuda.local.array(hidden, float32)
        plane = uint64(quads) * uint64(4 * rows)
        set_size = plane * uint64(planes)
        load(t, weight, s * parameters_, p, p2)
        put(t, x, p, f, p2, f2, spans, s * span)
        cuda.syncthreads()
        base = sets[_U2 * s + of] * set_size
        total = ZERO
        row = c * chunk + t
        end = min((c + _U1) * chunk, uint64(rows))
        while row < end:
            total += look(
                x,
                a,
                u,
                made,
                gates,
                left,
                evaluated,
                base + uint64(4) * row,
                uint64(4 * rows),
                plane,
                operation,
            )
            row += uint64(threads)
        x[t] = total
        cuda.syncthreads()
        if t == _U0:
            errors[(_U2 * k + of) * uint64(cuda.gridDim.y) + c] = squares(t, x)
        if c == _U0 and of == _U0:
            cuda.syncthreads()
            x[t], x[uint64(threads) + t] = distance(t, p, f, p2, f2)
            cuda.syncthreads()
            if t == _U0:
                found[_U2 * k], found[_U2 * k + _U1] = furthest(x)

    return look_all


def compile_kernels(
    layout: Layout, choices: Choices, capability: tuple[int, int], registers: int = REGISTERS
) -> tuple[ObjectCode, ObjectCode]:
    """Compile both kernels, called ``train`` and ``look``, for a device of some compute capability.

    Args:
        layout: of a block.
        choices: of the pack.
        capability: major and minor.
        registers: of a thread, at most, if there are 65,536; only how fast it goes depends on it.
    """
    train, look = (
        to_machine_code(to_ptx(kernel, name, kinds, capability, layout.threads, registers), capability)
        for kernel, name, kinds in (
            (new_train(layout, choices), "train", TRAIN_TYPES),
            (new_look(layout, choices), "look", LOOK_TYPES),
        )
    )
    return train, look


def to_ptx(
    kernel: Any, name: str, kinds: tuple[Any, ...], capability: tuple[int, int], threads: int, registers: int
) -> str:
    """Compile a kernel to PTX, without contracting products and sums.

    `numba.cuda.compile` has no option for that; and it asks NVRTC what the device is called, which from version 13 on
    knows none older than 7.5.
    """
    options = {"opt": 3, "fma": False}
    compiled = _compiler.compile_cuda(kernel, types.void, kinds, nvvm_options=options, cc=capability)
    library, mangled = compiled.library, compiled.fndesc.llvm_func_name
    function = library.get_function(mangled)
    _compiler.kernel_fixup(function, False)
    _nvvm.set_launch_bounds(function, (threads, max(1, 65_536 // (registers * threads))))
    ptx = _nvvm.compile_ir(library.llvm_strs, arch="compute_{}{}".format(*capability), **options).decode()
    (entry,) = re.findall(r"\.entry (\w+)", ptx)
    return re.sub(rf"\b{entry}\b", name, ptx.strip("\0 \n"))


def to_machine_code(ptx: str, capability: tuple[int, int]) -> ObjectCode:
    """Assemble PTX; or leave it to the driver, where the assembler is too new for the device or too old for the PTX.

    CUDA 13's knows no device older than 7.5, CUDA 12's no PTX of a later minor version; and the driver may know either.
    """
    try:
        return Program(ptx, "ptx", ProgramOptions(arch="sm_{}{}".format(*capability))).compile("cubin")
    except nvJitLinkError:
        return ObjectCode.from_ptx(ptx.encode())
