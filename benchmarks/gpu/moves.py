"""Move and memory instructions of compute capability 9.0; see `operations`."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gpu.warp import LANES, Step, Warp

_SPECIAL = {"SR_CgaCtaId": 0, "SR_CTAID.Y": 0, "SR_CTAID.Z": 0, "SRZ": 0}


def _move(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        warp.set(operands[0], warp.word(operands[-1]), mask)
        if "64" in flags and operands[0] != "URZ":
            warp.set(operands[0], warp.word(operands[-1], 1), mask, 1)

    return step


def _clear(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        if operands[1] != "SRZ":
            raise ValueError(f"unsupported instruction: CS2R of {operands[1]}")
        for k in range(1 if "32" in flags else 2):
            warp.set(operands[0], np.uint32(0), mask, k)

    return step


def _special(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        if operands[1] == "SR_TID.X":
            value: Any = np.arange(LANES, dtype=np.uint32) + np.uint32(warp.first_thread)
        elif operands[1] == "SR_CTAID.X":
            value = np.uint32(warp.block)
        else:
            value = np.uint32(_SPECIAL[operands[1]])
        warp.set(operands[0], value, mask)

    return step


def _select(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        a, b = warp.word(operands[1]), warp.word(operands[2])
        warp.set(operands[0], np.where(warp.predicate(operands[3]), a, b), mask)

    return step


def _packed(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    """Return the step of HFMA2, which packs two half-precision constants; raise ValueError for other operands."""
    if operands[1:3] != ("-RZ", "RZ"):
        raise ValueError("unsupported instruction: HFMA2 that isn't a constant")
    high, low = (int(np.float16(float(text)).view(np.uint16)) for text in operands[3:5])
    return lambda warp, mask: warp.set(operands[0], np.uint32(high << 16 | low), mask)


def _from_predicates(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        value = sum(warp.predicates[k].astype(np.uint32) << np.uint32(k) for k in range(7))
        warp.set(operands[0], value & np.uint32(int(operands[-1], 16)), mask)

    return step


def _to_predicates(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        value = warp.word(operands[-2])
        for k in range(7):
            if int(operands[-1], 16) >> k & 1:
                warp.set_predicate(f"P{k}", (value >> np.uint32(k) & np.uint32(1)) != 0, mask)

    return step


# --- memory -------------------------------------------------------------------------------------------------------


def _width(flags: frozenset[str]) -> int:
    return 4 if "128" in flags else 2 if "64" in flags else 1


def _load(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...], kind: str = "") -> Step:
    def step(warp: Warp, mask: Any) -> None:
        at = np.where(mask, warp.address(operands[1]), 0) // 4
        for k in range(_width(flags)):
            if kind == "local":
                value = warp.stack[at + k, np.arange(LANES)]
            else:
                value = (warp.memory.heap if kind == "global" else warp.memory.shared)[at + k]
            warp.set(operands[0], value, mask, k)

    return step


def _store(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...], kind: str = "") -> Step:
    def step(warp: Warp, mask: Any) -> None:
        at = warp.address(operands[0]) // 4
        for k in range(_width(flags)):
            value = np.broadcast_to(warp.word(operands[1], k if operands[1] != "RZ" else 0), LANES)[mask]
            if kind == "local":
                warp.stack[at[mask] + k, np.arange(LANES)[mask]] = value
            else:
                (warp.memory.heap if kind == "global" else warp.memory.shared)[at[mask] + k] = value

    return step


def _of(kind: str, make: Any) -> Any:
    return lambda flags, operands, names: make(flags, operands, names, kind)


MOVE_STEPS: dict[str, Any] = {
    "MOV": _move, "LDC": _move, "R2UR": _move, "CS2R": _clear, "S2R": _special, "S2UR": _special, "SEL": _select,
    "HFMA2": _packed, "P2R": _from_predicates, "R2P": _to_predicates, "LDS": _of("shared", _load),
    "LDL": _of("local", _load), "LDG": _of("global", _load), "STS": _of("shared", _store),
    "STL": _of("local", _store), "STG": _of("global", _store),
}  # fmt: skip
