"""The kernels of the fused GPU engine, compiled for a device; the only file that imports numba.cuda.

They follow `gpu.emulated` line by line: a loop over threads there ends with a barrier here. They are compiled without
contraction of products and sums, so that the bits are equal too.
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

from study.stream.stream import ROUNDS
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
    Choices,
)
from tasks.arithmetic.engine.gpu.draw import BlockStream
from tasks.arithmetic.engine.gpu.instructions import from_place
from tasks.arithmetic.engine.gpu.layout import EVALUATED_ROWS, Layout
from tasks.arithmetic.engine.gpu.phases import new_phases
from tasks.arithmetic.engine.gpu.row_math import ZERO
from tasks.arithmetic.engine.gpu.weight_update import Step
from tasks.arithmetic.engine.shared.update_rule import ADAM

# mypy mistakes this module for an older one in numba.
_compiler: Any = cuda_compiler
_nvvm: Any = nvvm

_F, _W, _U, _D = (types.CPointer(kind) for kind in (float32, uint32, uint64, float64))
TRAIN_TYPES = (_U, int64, int64, int64, _W, _U, _U, _F, _F, _F, _F, _F)
EVALUATE_TYPES = (_U, _U, _F, _U, _F, int64, _D, _F)

REGISTERS = 128
"""The most registers of a thread if four blocks share a multiprocessor, which has 65,536."""

_U0, _U1, _U2 = np.uint64(0), np.uint64(1), np.uint64(2)


def new_train(layout: Layout, choices: Choices) -> Any:
    """Make the training kernel: a block trains one trial, or several that see the same rows.

        train(which, iteration, count, settled, keys, spans, start, numbers, corrections, weight, first, second)

    The grid is [blocks], and a block has `layout.threads` threads for each of its trials. `which`, uint64, are the
    places in the pack of the first block's trials, then the second's, and so on. It makes `count` >= 1 updates from
    `iteration` >= 0 on. `settled` is the last row of `corrections`, which holds from there on. The tables are those of
    `gpu.arrays.Tables`; `weight` and the moments `first` and `second` are float32 [trials * parameters], written.
    """
    phases = new_phases(layout)
    load, put, draw, rows, outer = phases.load, phases.put, phases.draw, phases.rows, phases.outer
    spread, gather, parts, own, second, store = (
        phases.spread, phases.gather, phases.parts, phases.own, phases.second, phases.store
    )  # fmt: skip
    put_subsets, multiply, subsets = phases.put_subsets, phases.multiply, phases.subsets
    passes, row_sums, products, hidden = layout.passes, layout.row_sums, layout.products, layout.shape.hidden
    parameters_, span = np.uint64(layout.parameters), np.uint64(2 * layout.shape.subsets)
    totals, outer_slots, slots, subset_count = layout.totals, layout.outer_slots, layout.slots, layout.shape.subsets
    threads, at_inputs, part_sums, own_size = layout.threads, layout.at_inputs, layout.part_sums, layout.own
    input_room, row_slots = layout.input_room, layout.row_slots
    factor_slots, second_slots, second_factor_slots = (
        layout.factor_slots, layout.second_slots, layout.second_factor_slots
    )  # fmt: skip
    operation, two, exponential, optimizer, momentum, squared, out_squared = choices

    def train(
        which, iteration, count, settled, keys, spans, start, numbers, corrections, weight, first, second_moment
    ):  # fmt: skip
        b, trials = uint64(cuda.threadIdx.x), uint64(cuda.blockDim.x) // uint64(threads)
        t, k, trial_0 = b % uint64(threads), b // uint64(threads), uint64(cuda.blockIdx.x) * trials
        place, place_0 = which[trial_0 + k], which[trial_0]
        x = cuda.shared.array(0, float32, alignment=16)
        s = from_place(x, uint64(at_inputs) + k * uint64(part_sums))
        at_own = uint64(at_inputs) + max(uint64(input_room), trials * uint64(part_sums))
        w = from_place(x, at_own + k * uint64(own_size))
        e = cuda.local.array(subset_count, float32)
        a, d = cuda.local.array(totals, float32), cuda.local.array(outer_slots, float32)
        z, p = cuda.local.array(row_slots, float32), cuda.local.array(slots, float32)
        m, v = cuda.local.array(slots, float32), cuda.local.array(slots, float32)
        p2, m2 = cuda.local.array(second_slots, float32), cuda.local.array(second_slots, float32)
        v2, f = cuda.local.array(second_slots, float32), cuda.local.array(factor_slots, float32)
        f2, u = cuda.local.array(second_factor_slots, float32), cuda.local.array(hidden, float32)
        u_grad, left = cuda.local.array(hidden, float32), cuda.local.array(hidden, float32)
        mul, gates = cuda.local.array(hidden, float32), cuda.local.array(hidden, float32)
        first_keys, second_keys = cuda.local.array(ROUNDS, uint32), cuda.local.array(ROUNDS, uint32)
        at, mine = place * parameters_, place * np.uint64(NUMBERS)
        drawn, key = place_0 * np.uint64(NUMBERS), place_0 * np.uint64(2 * ROUNDS)
        for n in range(ROUNDS):
            first_keys[n] = keys[key + uint64(n)]
            second_keys[n] = keys[key + uint64(ROUNDS + n)]
        stream = BlockStream(
            first_keys, second_keys, numbers[drawn + uint64(INTERVAL)], numbers[drawn + uint64(SECOND_INTERVAL)],
            numbers[drawn + uint64(SCALE)], two,
        )  # fmt: skip
        rate, full = numbers[mine + uint64(RATE)], numbers[mine + uint64(STRENGTH)]
        length, out = numbers[mine + uint64(LENGTH)], numbers[mine + uint64(OUT_STRENGTH)]
        begin = start[place]
        load(t, weight, at, p, p2)
        load(t, first, at, m, m2)
        load(t, second_moment, at, v, v2)
        put(t, w, p, f, p2, f2)
        put_subsets(b, x, spans, place_0 * span, uint64(cuda.blockDim.x))
        cuda.syncthreads()
        for i in range(iteration, iteration + count):
            now = min(uint64(i), uint64(settled))
            c1, c2 = corrections[_U2 * now], corrections[_U2 * now + _U1]
            how = Step(
                sparsity_strength_in_float32(uint64(i), begin, length, full, exponential), out,
                rate * c1 if optimizer == ADAM else rate, c2, momentum, optimizer, squared, out_squared,
            )  # fmt: skip
            for n in range(row_sums):
                z[n] = ZERO
            for turn in range(passes):
                draw(b, x, turn, i, stream, trials)
                cuda.syncthreads()
                multiply(t, x, w, a)
                subsets(t, x, e, k, trials)
                cuda.syncthreads()
                rows(t, x, w, a, e, u, u_grad, mul, gates, left, z, turn, operation)
                cuda.syncthreads()
                outer(t, x, w, d, turn)
                cuda.syncthreads()
                if products:
                    for o in range(hidden):
                        spread(t, x, w, o)
                        cuda.syncthreads()
                        gather(t, w, o, turn)
                        cuda.syncthreads()
            parts(t, s, w, d, z)
            cuda.syncthreads()
            own(t, s, w, p, m, v, f, how)
            cuda.syncthreads()
            second(t, w, p2, m2, v2, f2, how)
            cuda.syncthreads()
        store(t, weight, at, p, p2)
        store(t, first, at, m, m2)
        store(t, second_moment, at, v, v2)

    return train


def new_evaluate(layout: Layout, choices: Choices) -> Any:
    """Make the evaluation kernel: a block evaluates one trial on one chunk of validation or test rows.

        evaluate(which, sets, evaluated, spans, weight, rows, errors, weights)

    The grid is [trials to evaluate, chunks, 2]; `which` are the trials' places in the pack, uint64. The tables are
    those of `gpu.arrays.Tables`, with `rows` evaluation rows; `weight` is float32 [trials * parameters]. `errors` and
    `weights` are written, as in `gpu.arrays.Evaluation`.
    """
    phases = new_phases(layout)
    load, put, row_error, error_sum = phases.load, phases.put, phases.row_error, phases.error_sum
    put_subsets = phases.put_subsets
    distance, furthest, threads = phases.distance, phases.furthest, layout.threads
    quads, planes, chunk = layout.quads, 1 + layout.logs, np.uint64(EVALUATED_ROWS)
    parameters_, span = np.uint64(layout.parameters), np.uint64(2 * layout.shape.subsets)
    totals, slots, hidden = layout.totals, layout.slots, layout.shape.hidden
    factor_slots, second_slots, second_factor_slots = (
        layout.factor_slots, layout.second_slots, layout.second_factor_slots
    )  # fmt: skip
    operation, subset_count = choices.operation, layout.shape.subsets
    at_inputs, at_trial = layout.at_inputs, layout.at_trial(0, 1)

    def evaluate(which, sets, evaluated, spans, weight, rows, errors, weights):
        t, k = uint64(cuda.threadIdx.x), uint64(cuda.blockIdx.x)
        c, purpose = uint64(cuda.blockIdx.y), uint64(cuda.blockIdx.z)
        place = which[k]
        x = cuda.shared.array(0, float32, alignment=16)
        s, w = from_place(x, uint64(at_inputs)), from_place(x, uint64(at_trial))
        e = cuda.local.array(subset_count, float32)
        a, p = cuda.local.array(totals, float32), cuda.local.array(slots, float32)
        p2, f = cuda.local.array(second_slots, float32), cuda.local.array(factor_slots, float32)
        f2, u = cuda.local.array(second_factor_slots, float32), cuda.local.array(hidden, float32)
        mul, gates = cuda.local.array(hidden, float32), cuda.local.array(hidden, float32)
        left = cuda.local.array(hidden, float32)
        plane = uint64(quads) * uint64(4 * rows)
        set_size = plane * uint64(planes)
        load(t, weight, place * parameters_, p, p2)
        put(t, w, p, f, p2, f2)
        put_subsets(t, x, spans, place * span, uint64(threads))
        cuda.syncthreads()
        base = sets[_U2 * place + purpose] * set_size
        total = ZERO
        row = c * chunk + t
        end = min((c + _U1) * chunk, uint64(rows))
        while row < end:
            total += row_error(
                x, w, a, e, u, mul, gates, left, evaluated, base + uint64(4) * row, uint64(4 * rows), plane, operation
            )  # fmt: skip
            row += uint64(threads)
        s[t] = total
        cuda.syncthreads()
        if t == _U0:
            errors[(_U2 * k + purpose) * uint64(cuda.gridDim.y) + c] = error_sum(s)
        if c == _U0 and purpose == _U0:
            cuda.syncthreads()
            s[t], s[uint64(threads) + t] = distance(t, p, f, p2, f2)
            cuda.syncthreads()
            if t == _U0:
                weights[_U2 * k], weights[_U2 * k + _U1] = furthest(s)

    return evaluate


def compile_kernels(
    layout: Layout, choices: Choices, capability: tuple[int, int], registers: int = REGISTERS, trials: int = 1
) -> tuple[ObjectCode, ObjectCode]:
    """Compile both kernels, ``train`` and ``evaluate``, for a compute capability.

    Args:
        layout: layout of a block.
        choices: the pack's choices.
        capability: major and minor.
        registers: registers of a thread, on a multiprocessor with 65,536; the compiler may take more if as many blocks
            fit. Affects only the speed.
        trials: the most trials of a block of `train`.

    Returns:
        The kernels, each as machine code, or as PTX if the assembler rejects it; see `to_machine_code`.
    """
    train, evaluate = (
        to_machine_code(to_ptx(kernel, name, kinds, capability, threads, registers), capability)
        for kernel, name, kinds, threads in (
            (new_train(layout, choices), "train", TRAIN_TYPES, trials * layout.threads),
            (new_evaluate(layout, choices), "evaluate", EVALUATE_TYPES, layout.threads),
        )
    )
    return train, evaluate


def to_ptx(
    kernel: Any, name: str, kinds: tuple[Any, ...], capability: tuple[int, int], threads: int, registers: int
) -> str:
    """Compile a kernel to PTX, without contraction of products and sums.

    `numba.cuda.compile` has no option for that. It also asks NVRTC for the device's name, and NVRTC 13 doesn't support
    devices older than 7.5.

    Args:
        kernel: the Python function.
        name: its name in PTX.
        kinds: types of its arguments.
        capability: major and minor.
        threads: the most threads of a block.
        registers: as for `compile_kernels`.
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
    """Assemble PTX, or return it for the driver to assemble if the assembler rejects it.

    CUDA 13's assembler doesn't support devices older than 7.5, and CUDA 12's doesn't support PTX of a later minor
    version; the driver may support both.

    Args:
        ptx: PTX of one kernel.
        capability: major and minor.
    """
    try:
        return Program(ptx, "ptx", ProgramOptions(arch="sm_{}{}".format(*capability))).compile("cubin")
    except nvJitLinkError:
        return ObjectCode.from_ptx(ptx.encode())
