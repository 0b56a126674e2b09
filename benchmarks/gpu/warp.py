"""Emulator of machine code of compute capability 9.0, warp by warp on the CPU, to count issued instructions.

It supports the instructions of the engine's kernels, as NVIDIA's disassembler writes them; the error for another one
names it. Diverged threads of a warp wait for each other where the code has a BSYNC instruction. Until then, the threads
at the earliest place in the code run next. Numbers are computed, since branches depend on them, but the last bit may
differ: only the counts matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

LANES = 32
SHARED_FROM = 0x400
"""Start of a block's shared memory; the memory below is reserved by the device."""

PARAMETERS_FROM = 0x210
_THREADS_AT, _STACK_AT, _SHARED_AT, _STACK_BYTES = 0x0, 0x28 // 4, 0x2C // 4, 4096
_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[0-9T])\s+)?([A-Z0-9_.]+)\s*([^;]*);")
_MASK = 0xFFFFFFFF

Step = Callable[["Warp", Any], None]


class Instruction(NamedTuple):
    """One instruction of a kernel.

    Args:
        guard: predicate under which threads execute it, or None.
        name: its name and modifiers, which dots separate in the listing.
        operands: its operands, as in the listing.
        spilled: True if it moves spilled numbers.
    """

    guard: str | None
    name: tuple[str, ...]
    operands: tuple[str, ...]
    spilled: bool


class Code(NamedTuple):
    """Instructions and labels of a kernel."""

    instructions: list[Instruction]
    labels: dict[str, int]


def parse(listing: str) -> Code:
    """Parse a disassembler's listing of one kernel into its instructions, and the place of the one after each label."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in listing.splitlines():
        label = re.match(r"\s*(\.L_x_\d+|\$?[\w$]+):", line)
        found = _LINE.search(line)
        if label and not found:
            labels[label[1]] = len(instructions)
            labels[label[1].split("$")[-1]] = len(instructions)
        elif found:
            text, *notes = found[4].split("(*")
            operands = tuple(part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip())
            spilled = any("Spill" in note for note in notes)
            instructions.append(Instruction(found[2], tuple(found[3].split(".")), operands, spilled))
    return Code(instructions, labels)


class _Meeting:
    """Threads that have diverged and wait for each other."""

    def __init__(self, members: Any) -> None:
        self.members, self.arrived = members.copy(), np.zeros(LANES, bool)


@dataclass
class Memory:
    """Memory of a block as words of 32 bits: constants, global and shared memory."""

    constants: Any
    heap: Any
    shared: Any


@dataclass
class Warp:
    """The state of one warp, and its count of each instruction."""

    memory: Memory
    first_thread: int
    block: int
    code: Code
    issued: Any
    registers: Any = field(default_factory=lambda: np.zeros((256, LANES), np.uint32))
    predicates: Any = field(default_factory=lambda: np.array([[False] * LANES] * 7 + [[True] * LANES]))
    uniform: list[int] = field(default_factory=lambda: [0] * 64)
    uniform_predicates: list[bool] = field(default_factory=lambda: [False] * 7 + [True])
    stack: Any = field(default_factory=lambda: np.zeros((1024, LANES), np.uint32))

    def __post_init__(self) -> None:
        self.at = np.zeros(LANES, np.int64)
        self.alive, self.waiting = np.ones(LANES, bool), np.zeros(LANES, bool)
        self.meetings: dict[str, list[_Meeting | None]] = {}

    def run(self, steps: Sequence[Step]) -> Iterator[None]:
        """Execute instructions; yield at each barrier of the block.

        Raises:
            AssertionError: if the threads of the warp have diverged at a barrier.
            ValueError: if an operand of an instruction is unsupported.
            KeyError: if an instruction reads an unknown special register, or jumps to an unknown label.
        """
        instructions, lanes = self.code.instructions, np.arange(LANES)
        while self.alive.any():
            ready = self.alive & ~self.waiting
            place = int(self.at[ready].min())
            now = ready & (self.at == place)
            guard, name, operands, _ = instructions[place]
            self.issued[place] += 1
            self.at[now] = place + 1
            mask = now if guard is None else now & self.predicate(guard)
            kind = name[0]
            if kind in ("BRA", "CALL"):
                taken = mask & self.predicate(operands[0]) if len(operands) > 1 else mask
                self.at[taken] = self.code.labels[re.sub(r"[`()]", "", operands[-1]).split("$")[-1]]
            elif kind == "RET":
                self.at[mask] = self.registers[int(operands[0].split()[0][1:])][mask]
            elif kind == "EXIT":
                self.alive &= ~mask
                self._part_from(mask)
            elif kind == "BSSY":
                meeting, of_lanes = _Meeting(now), self.meetings.setdefault(operands[0], [None] * LANES)
                for lane in lanes[now]:
                    of_lanes[lane] = meeting
            elif kind == "BSYNC":
                self._meet(self.meetings[operands[0]], lanes[now])
            elif kind == "BAR":
                if (now != self.alive).any():
                    raise AssertionError("threads of a warp are at different places, but one is at a barrier")
                yield
            elif mask.any():
                steps[place](self, mask)

    def _meet(self, of_lanes: list[_Meeting | None], lanes: Any) -> None:
        for lane in lanes:
            meeting = of_lanes[lane]
            assert meeting is not None
            meeting.arrived[lane] = self.waiting[lane] = True
            self._release(meeting)

    def _release(self, meeting: _Meeting) -> None:
        if (meeting.arrived == meeting.members).all():
            self.waiting[meeting.members] = False

    def _part_from(self, gone: Any) -> None:
        for of_lanes in self.meetings.values():
            for meeting in {id(item): item for item in of_lanes if item is not None}.values():
                meeting.members &= ~gone
                self._release(meeting)

    # --- operands -------------------------------------------------------------------------------------------------

    def predicate(self, text: str) -> Any:
        """Read a predicate, such as ``P0``, ``!P0`` or ``UP0``; ``PT`` is the constant true.

        Returns:
            bool [lanes]; a single bool for a uniform predicate.
        """
        inverted, name = text.startswith("!"), text.lstrip("!")
        place = 7 if name[-1] == "T" else int(name[-1])
        value = self.uniform_predicates[place] if name.startswith("U") else self.predicates[place]
        return np.logical_not(value) if inverted else value

    def set_predicate(self, text: str, value: Any, mask: Any) -> None:
        """Write a predicate for the threads in `mask`, unless it is the constant true.

        A uniform predicate takes the value of the first of these threads.
        """
        if text.endswith("T"):
            return
        if text.startswith("U"):
            self.uniform_predicates[int(text[-1])] = bool(np.broadcast_to(value, LANES)[mask][0])
        else:
            np.copyto(self.predicates[int(text[-1])], value, where=mask)

    def word(self, text: str, offset: int = 0) -> Any:
        """Read an operand as uint32; with an offset, the word that many words further on, or 0 for a number.

        Returns:
            uint32 [lanes] for a register; a single uint32 for a uniform register, a constant or a number.

        Raises:
            ValueError: if the operand is unsupported.
        """
        text = text.replace(".reuse", "").replace(".64", "")
        if text.startswith("~"):
            return ~np.uint32(self.word(text[1:], offset))
        if text.startswith("-") and not text[1].isdigit():
            return np.uint32(0) - self.word(text[1:], offset)
        if text in ("RZ", "URZ", "SRZ"):
            return np.uint32(0)
        if text.startswith("UR"):
            return np.uint32(self.uniform[int(text[2:]) + offset])
        if text.startswith("R"):
            return self.registers[int(text[1:]) + offset]
        if text.startswith("c["):
            inside = text.rsplit("[", 1)[1][:-1]
            at = 0 if inside == "RZ" else int(inside, 16)
            return self.memory.constants[at // 4 + offset]
        return np.uint32(int(text, 0) & _MASK if offset == 0 else 0)

    def number(self, text: str) -> Any:
        """Read an operand as float32: [lanes] for a register, else a single number.

        Raises:
            ValueError: if the operand is unsupported.
        """
        text = text.replace(".reuse", "")
        if text.startswith("-") and (text[1] in "R|cU"):
            return -self.number(text[1:])
        if text.startswith("|"):
            return np.abs(self.number(text[1:-1]))
        if text[0] in "RUc":
            return np.asarray(self.word(text)).view(np.float32)
        named = {"+INF": np.inf, "-INF": -np.inf, "+QNAN": np.nan, "-QNAN": np.nan, "INF": np.inf, "QNAN": np.nan}
        return np.float32(named[text] if text in named else float(text))

    def wide(self, text: str) -> Any:
        """Read a pair of registers as uint64."""
        return np.uint64(self.word(text)) | np.uint64(self.word(text, 1)) << np.uint64(32)

    def set(self, text: str, value: Any, mask: Any, offset: int = 0) -> None:
        """Write a register for the threads in `mask`, unless it is the constant 0.

        The value is a whole number or float32, per thread or the same for all. A uniform register takes the value of
        the first thread in `mask`. `offset` is added to the register's number.
        """
        if text in ("RZ", "URZ"):
            return
        words = np.broadcast_to(np.asarray(value), LANES)
        words = words.view(np.uint32) if words.dtype == np.float32 else words.astype(np.uint32)
        if text.startswith("UR"):
            self.uniform[int(text[2:]) + offset] = int(words[mask][0])
        else:
            np.copyto(self.registers[int(text[1:]) + offset], words, where=mask)

    def set_wide(self, text: str, value: Any, mask: Any) -> None:
        """Write a uint64 to a pair of registers, as `set` does."""
        if text not in ("RZ", "URZ"):
            self.set(text, np.asarray(value & np.uint64(_MASK)), mask)
            self.set(text, np.asarray(value >> np.uint64(32)), mask, 1)

    def address(self, text: str) -> Any:
        """Compute an address in bytes, int64 [lanes], from the text in the last brackets.

        Raises:
            ValueError: if the text is unsupported.
        """
        inside = text[text.rindex("[") + 1 : -1]
        total = np.zeros(LANES, np.int64)
        for part in inside.replace("-0x", "+-0x").split("+"):
            if part.endswith(".64"):
                total = total + self.wide(part).astype(np.int64)
            elif "R" in part:
                scale = 1
                if ".X" in part:
                    part, times = part.split(".X")
                    scale = int(times)
                total = total + np.asarray(self.word(part)).astype(np.int64) * scale
            elif part:
                total = total + int(part, 16)
        return total


def run_block(code: Code, steps: Sequence[Step], memory: Memory, threads: int, block: int = 0) -> Any:
    """Execute a kernel for one block, changing `memory`, and return the count of each instruction over its warps.

    Args:
        code: the kernel.
        steps: a function for each instruction, from `operations.steps`.
        memory: the block's memory.
        threads: threads of the block, a multiple of `LANES`.
        block: the block's number.

    Raises:
        AssertionError: if the threads of a warp have diverged at a barrier.
        ValueError: if an operand of an instruction is unsupported.
        KeyError: if an instruction reads an unknown special register, or jumps to an unknown label.
    """
    memory.constants[[_THREADS_AT, _STACK_AT]] = threads, _STACK_BYTES
    memory.constants[_SHARED_AT] = 4 * len(memory.shared) - SHARED_FROM
    issued = np.zeros(len(code.instructions), np.int64)
    warps = [Warp(memory, first, block, code, issued) for first in range(0, threads, LANES)]
    running = [warp.run(steps) for warp in warps]
    with np.errstate(all="ignore"):
        while running:
            # From one barrier to the next, one warp after the other.
            running = [warp for warp in running if next(warp, running) is None]
    return issued
