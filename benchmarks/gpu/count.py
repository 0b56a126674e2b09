"""Count of the instructions that the fused GPU engine's warps issue, computed on the CPU: no GPU is needed.

    python -m benchmarks.gpu.count --nvdisasm FILE [--write]

It compiles the training kernel for compute capability 9.0 and disassembles the machine code with NVIDIA's `nvdisasm`.
It emulates one and two updates of a block's trials warp by warp (see warp.py); the difference of both counts is an
update. It counts only if the weights equal the emulation's bit for bit. It prints the table; `--write` puts it into
docs/guides/gpu.md.

`nvdisasm` comes with the CUDA toolkit. It is on the package index, too:

    pip install --target FOLDER nvidia-cuda-nvdisasm     # FOLDER/nvidia/cu13/bin/nvdisasm
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from benchmarks.gpu.operations import steps
from benchmarks.gpu.warp import PARAMETERS_FROM, SHARED_FROM, Code, Memory, parse, run_block
from benchmarks.measure import published_cell, tell
from benchmarks.tables import markdown
from study.records import Cell, Trial
from tasks.arithmetic.engine.gpu.arrays import Choices, GpuArrays, Tables
from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks
from tasks.arithmetic.engine.gpu.layout import MOST_TOGETHER, Layout, new_layout
from tasks.arithmetic.engine.gpu.shape import Shape

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "gpu.md"
CAPABILITY = (9, 0)
REGISTERS = 128
"""Maximum registers of a thread, as in the engine for these shapes on a multiprocessor of 9.0."""

_HIDDEN = (2, 10)
# Limits of a multiprocessor of 9.0; a block takes 1 KiB of shared memory more than its launch requests.
_HAS_REGISTERS, _HAS_SHARED, _BLOCK_EXTRA, _HAS_THREADS = 65_536, 228 * 1024, 1024, 2048
# An iteration at which the sparsity regulariser is on, as in most of a published run.
_ITERATION = 100_000


class Machine(NamedTuple):
    """A kernel's machine code.

    Args:
        code: its instructions.
        registers: registers of a thread.
        spilled_bytes: local memory of a thread, for numbers that don't fit into registers.
    """

    code: Code
    registers: int
    spilled_bytes: int


class Counted(NamedTuple):
    """Counts of a block.

    Args:
        hidden: hidden units.
        trials: trials of the block.
        instructions: warp instructions of a trial's update with the sparsity regulariser on.
        spilled: those of them that move spilled numbers.
        registers: registers of a thread.
        spilled_bytes: local memory of a thread, for spilled numbers.
        shared_bytes: shared memory of a block.
        blocks: blocks that fit on a multiprocessor of 9.0.
    """

    hidden: int
    trials: int
    instructions: float
    spilled: float
    registers: int
    spilled_bytes: int
    shared_bytes: int
    blocks: int


class _Block(EmulatedBlocks):
    """A block of the emulation that keeps a kernel's arguments."""

    def __init__(
        self, shape: Shape, choices: Choices, tables: Tables, state: Sequence[npt.NDArray[np.float32]]
    ) -> None:
        super().__init__(shape, choices, tables, state)
        self.layout, self.choices, self.tables, self.begun = new_layout(shape), choices, tables, list(state)


def block_of(cell: Cell, trials: int) -> tuple[_Block, GpuArrays]:
    """Make a block with `trials` trials of one seed and different learning rates; also return the pack's arrays.

    `trials` is from 1 to `MOST_TOGETHER`.
    """
    rates = [cell.replace(learning_rate=1e-3 * (1 + k)) for k in range(trials)]
    arrays = GpuArrays([Trial(cell, 0) for cell in rates], None, _Block)
    block: Any = arrays._blocks
    return block, arrays


def machine_code(layout: Layout, choices: Choices, nvdisasm: str) -> Machine:
    """Compile the training kernel, for blocks of up to `MOST_TOGETHER` trials, and disassemble it.

    Raises:
        FileNotFoundError: if the assembler, ptxas, isn't installed, or the file `nvdisasm` doesn't exist.
        ImportError: if a package of the extra `gpu` isn't installed.
        RuntimeError: if the assembler or the disassembler fails.
    """
    from tasks.arithmetic.engine.gpu import kernels

    here = SimpleNamespace(compute_capability=CAPABILITY)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: here):
        kernel, threads = kernels.new_train(layout, choices), MOST_TOGETHER * layout.threads
        ptx = kernels.to_ptx(kernel, "train", kernels.TRAIN_TYPES, CAPABILITY, threads, REGISTERS)
    with TemporaryDirectory() as folder:
        source, binary = Path(folder) / "train.ptx", Path(folder) / "train.cubin"
        source.write_text(ptx)
        said = _run([_assembler(), "-v", "-arch=sm_{}{}".format(*CAPABILITY), str(source), "-o", str(binary)])
        listing = _run([nvdisasm, "-c", str(binary)])
    (registers,), spilled = re.findall(r"Used (\d+) registers", said), re.findall(r"(\d+) bytes spill stores", said)
    return Machine(parse(listing), int(registers), max(map(int, spilled)))


def _run(words: Sequence[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr}")
    return done.stdout + done.stderr


def _assembler() -> str:
    found = find_spec("nvidia.cuda_nvcc")
    folders = [Path(place) / "bin" for place in (found.submodule_search_locations or ())] if found else []
    for name in (*(str(folder / "ptxas") for folder in folders), "ptxas"):
        if shutil.which(name):
            return name
    raise FileNotFoundError("there is no ptxas: pip install '.[gpu]'")


def issued(machine: Machine, block: _Block, iteration: int, count: int) -> tuple[Any, npt.NDArray[np.float32]]:
    """Emulate `count` updates of a block's trials from `iteration` on, and count the issued instructions.

    Returns:
        The count of each instruction over the block's warps, int64 [instructions], and the weights, float32 [trials,
        parameters].

    Raises:
        AssertionError: if the threads of a warp have diverged at a barrier.
        ValueError: if an instruction or an operand is unsupported.
        KeyError: if an instruction reads an unknown special register, or jumps to an unknown label.
    """
    tables, trials = block.tables, len(block.begun[0])
    which = np.arange(trials, dtype=np.uint64)
    given: list[Any] = [
        which, iteration, count, len(tables.corrections) - 1, tables.keys, tables.spans, tables.start, tables.numbers,
        tables.corrections, *block.begun,
    ]  # fmt: skip
    parts, parameters, at = [np.zeros(64, np.uint32)], [], 64
    for argument in given:
        if isinstance(argument, int):
            parameters.append(argument)
            continue
        words = np.ascontiguousarray(argument).reshape(-1).view(np.uint32)
        parameters.append(4 * at)
        parts.append(np.pad(words, (0, -len(words) % 64)))
        at += len(parts[-1])
    size = block.layout.size(trials)
    nothing = np.full(size, np.nan, np.float32).view(np.uint32)
    memory = Memory(
        constants=np.zeros(1024, np.uint32), heap=np.concatenate(parts),
        shared=np.concatenate([np.zeros(SHARED_FROM // 4, np.uint32), nothing]),
    )  # fmt: skip
    first = PARAMETERS_FROM // 4
    memory.constants[first : first + 2 * len(parameters)] = np.array(parameters, np.uint64).view(np.uint32)
    counts = run_block(machine.code, steps(machine.code), memory, trials * block.layout.threads)
    weights = memory.heap[parameters[-3] // 4 :][: block.begun[0].size].view(np.float32)
    return counts, weights.reshape(block.begun[0].shape)


def update_of(machine: Machine, cell: Cell, trials: int) -> tuple[float, float]:
    """Count the warp instructions of a trial's update, and those of them that move spilled numbers.

    The machine code is that of the cell's shape; a block has `trials` trials.

    Raises:
        AssertionError: if the weights differ from the emulation's, or the threads of a warp have diverged at a barrier.
        ValueError: if the machine code has an unsupported instruction or operand.
        KeyError: if it reads an unknown special register, or jumps to an unknown label.
    """
    block, arrays = block_of(cell, trials)
    (after_first, _), (after_second, weights) = (issued(machine, block, _ITERATION, count) for count in (1, 2))
    arrays.update(np.arange(trials), _ITERATION, 2)
    if block.read()[0].tobytes() != weights.tobytes():
        raise AssertionError(f"{cell.model}, {trials} trials: the weights aren't the emulation's; nothing was counted")
    update = (after_second - after_first) / trials
    spilled = [instruction.spilled for instruction in machine.code.instructions]
    return float(update.sum()), float(update[spilled].sum())


def count(hidden: int, trials: int, machine: Machine) -> Counted:
    """Count the instructions of a block with this many trials of the NMU with 100 inputs.

    `machine` has the machine code for `hidden` hidden units.

    Raises:
        AssertionError: if the weights differ from the emulation's, or the threads of a warp have diverged at a barrier.
        ValueError: if the machine code has an unsupported instruction or operand.
        KeyError: if it reads an unknown special register, or jumps to an unknown label.
    """
    cell = published_cell("NMU", 100, hidden)
    layout = block_of(cell, 1)[0].layout
    instructions, spilled = update_of(machine, cell, trials)
    threads, shared = trials * layout.threads, 4 * layout.size(trials)
    blocks = min(
        _HAS_REGISTERS // (machine.registers * threads), _HAS_SHARED // (shared + _BLOCK_EXTRA), _HAS_THREADS // threads
    )  # fmt: skip
    return Counted(
        hidden, trials, instructions, spilled, machine.registers, machine.spilled_bytes, shared, blocks
    )  # fmt: skip


def table(found: Sequence[Counted]) -> str:
    """Return the counts as a Markdown table, a row for each block."""
    head = [
        "hidden units", "trials of a block", "warp instructions", "of these, for spilled numbers",
        "registers of a thread", "spilled bytes of a thread", "KiB of a block", "blocks of a multiprocessor",
    ]  # fmt: skip
    rows = [
        [
            str(block.hidden), str(block.trials), f"{block.instructions:,.0f}", f"{block.spilled:,.0f}",
            str(block.registers), str(block.spilled_bytes), f"{block.shared_bytes / 1024:.0f}", str(block.blocks),
        ]
        for block in found
    ]  # fmt: skip
    return markdown(head, rows, 0)


def updated(page: str, made: str) -> str:
    r"""Return the page with the table between its marks; without the marks, the page is unchanged.

    Example:
        >>> updated("<!-- counted -->\n| old |\n<!-- end -->\n", "| new |")
        '<!-- counted -->\n\n| new |\n\n<!-- end -->\n'
    """
    pattern = re.compile(r"(<!-- counted -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}\n{made}\n\n{found[2]}", page)


def main(words: Sequence[str] | None = None) -> int:
    """Count, print the table, and write it with ``--write``; return 2 without a disassembler, else 0.

    Raises:
        FileNotFoundError: if the assembler, ptxas, isn't installed.
        ImportError: if a package of the extra `gpu` isn't installed.
        RuntimeError: if the assembler or the disassembler fails.
        AssertionError: if the weights differ from the emulation's, or the threads of a warp have diverged at a barrier.
        ValueError: if the machine code has an unsupported instruction or operand.
        KeyError: if it reads an unknown special register, or jumps to an unknown label.
    """
    known = ArgumentParser(description="Count the instructions of the fused GPU engine, without a GPU.")
    known.add_argument("--nvdisasm", default="nvdisasm", metavar="FILE", help="NVIDIA's disassembler; default: PATH's")
    known.add_argument("--hidden", type=int, nargs="+", default=_HIDDEN)
    known.add_argument("--write", action="store_true", help=f"put the table into docs/{PAGE.name}")
    asked = known.parse_args(words)
    if shutil.which(asked.nvdisasm) is None:
        tell(f"--nvdisasm: there is no program {asked.nvdisasm}: pip install --target FOLDER nvidia-cuda-nvdisasm")
        return 2
    found = []
    for hidden in asked.hidden:
        block, _ = block_of(published_cell("NMU", 100, hidden), 1)
        machine = machine_code(block.layout, block.choices, asked.nvdisasm)
        for trials in (1, 2, MOST_TOGETHER):
            found.append(count(hidden, trials, machine))
            tell(str(found[-1]))
    print(table(found))
    if asked.write:
        PAGE.write_text(updated(PAGE.read_text(), table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
