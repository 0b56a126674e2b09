"""Semantics of the machine instructions of compute capability 9.0 in the engine's kernels; see `warp`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from benchmarks.gpu.floats import COMBINE, COMPARE, FLOAT_STEPS
from benchmarks.gpu.moves import MOVE_STEPS
from benchmarks.gpu.warp import LANES, Code, Instruction, Step, Warp

_BITS, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def steps(code: Code) -> list[Step]:
    """Return a function for each instruction of a kernel.

    Raises:
        ValueError: if an instruction is unsupported. For some operands the returned function raises it; for an
            unknown special register it raises KeyError.
    """
    return [_step(instruction, code) for instruction in code.instructions]


def _step(instruction: Instruction, code: Code) -> Step:
    kind = instruction.name[0]
    # Uniform instructions do for a warp what the others do for each thread.
    plain = kind[1:] if kind.startswith("U") and kind[1:] in _STEPS else kind
    if plain in _CONTROL:
        return lambda warp, mask: None
    if plain not in _STEPS:
        raise ValueError(f"unsupported instruction: {'.'.join(instruction.name)}; see benchmarks/gpu/operations.py")
    make = _STEPS[plain]
    operands = tuple(_label(text, code) for text in instruction.operands)
    return make(frozenset(instruction.name[1:]), operands, instruction.name[1:])


def _label(text: str, code: Code) -> str:
    """Return an operand's text; a word of a label's address becomes hex: the low one its place in the code, else 0."""
    found = re.search(r"32@(lo|hi)\(\((?:\w+ \+ )?([.\w]+)@srel\)\)", text)
    if found is None:
        return text
    return hex(code.labels[found[2]] if found[1] == "lo" else 0)


def _u64(value: Any) -> Any:
    return np.asarray(value).astype(np.uint64)


def _is_predicate(text: str) -> bool:
    return re.fullmatch(r"!?U?P[0-9T]", text) is not None


# --- whole numbers ------------------------------------------------------------------------------------------------


def _added(texts: list[str], warp: Warp) -> Any:
    """Add words as uint64, so that carries show; a negated word is added as its complement plus 1."""
    total = np.zeros(LANES, np.uint64)
    for text in texts:
        if text.startswith("-") and "R" in text and not text.lstrip("-").startswith(("RZ", "URZ")):
            total = total + _u64(~np.asarray(warp.word(text[1:]))) + np.uint64(1)
        else:
            total = total + _u64(warp.word(text))
    return total


def _iadd3(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    outs = []
    remaining = list(operands[1:])
    while _is_predicate(remaining[0]):
        outs.append(remaining.pop(0))
    ins = [text for text in remaining if _is_predicate(text)]
    texts = [text for text in remaining if not _is_predicate(text)]

    def step(warp: Warp, mask: Any) -> None:
        total = _added(texts, warp)
        for text in ins if "X" in flags else ():
            total = total + _u64(warp.predicate(text))
        warp.set(operands[0], total & _LOW, mask)
        for count, out in enumerate(outs):  # three words carry up to two
            warp.set_predicate(out, (total >> _BITS) > np.uint64(count), mask)

    return step


def _product(warp: Warp, a: str, b: str, *, signed: bool) -> Any:
    if signed:
        first, second = (np.asarray(warp.word(text)).view(np.int32).astype(np.int64) for text in (a, b))
        return (first * second).astype(np.uint64)
    return _u64(warp.word(a)) * _u64(warp.word(b))


def _imad(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    out = operands[1] if _is_predicate(operands[1]) else None
    a, b, c, *remaining = operands[2:] if out else operands[1:]
    carries = [text for text in remaining if _is_predicate(text)]

    def step(warp: Warp, mask: Any) -> None:
        product = _product(warp, a, b, signed="WIDE" in flags and "U32" not in flags)
        carry = sum((_u64(warp.predicate(text)) for text in carries), np.uint64(0)) if "X" in flags else np.uint64(0)
        if "WIDE" in flags:
            addend = np.uint64(0) if c in ("RZ", "URZ") else warp.wide(c)
            total = product + addend + carry
            warp.set_wide(operands[0], np.broadcast_to(total, LANES), mask)
            if out:
                warp.set_predicate(out, np.broadcast_to(total < product, LANES), mask)
        elif "HI" in flags:
            warp.set(operands[0], (product >> _BITS) + _u64(warp.word(c)) & _LOW, mask)
        else:
            warp.set(operands[0], product + _u64(warp.word(c)) + carry & _LOW, mask)

    return step


def _lea(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    out = operands[1] if _is_predicate(operands[1]) else None
    a, b, *remaining = operands[2:] if out else operands[1:]
    words = [text for text in remaining if not _is_predicate(text)]
    carries = [text for text in remaining if _is_predicate(text)]

    def step(warp: Warp, mask: Any) -> None:
        by = np.uint64(int(words[-1], 16))
        if "HI" in flags:
            low, high = _u64(warp.word(a)), _u64(warp.word(words[0]))
            shifted = ((high << _BITS | low) << by) >> _BITS & _LOW
            if "SX32" in flags:
                raise ValueError("unsupported instruction: LEA.HI.X.SX32")
        else:
            shifted = _u64(warp.word(a)) << by & _LOW
        total = shifted + _u64(warp.word(b))
        for text in carries if "X" in flags else ():
            total = total + _u64(warp.predicate(text))
        warp.set(operands[0], total & _LOW, mask)
        if out:
            warp.set_predicate(out, np.broadcast_to((total >> _BITS) != 0, LANES), mask)

    return step


def _looked_up(table: int, a: Any, b: Any, c: Any) -> Any:
    """Combine the bits of three arrays by a lookup table: bit 4a + 2b + c of `table` is the result."""
    result = a & np.zeros_like(a)
    for case in range(8):
        if table >> case & 1:
            result = result | ((a if case & 4 else ~a) & (b if case & 2 else ~b) & (c if case & 1 else ~c))
    return result


def _lop3(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    out = operands[0] if _is_predicate(operands[0]) else None
    target, a, b, c, table, *_rest = operands[1:] if out else operands

    def step(warp: Warp, mask: Any) -> None:
        words = [np.broadcast_to(np.asarray(warp.word(text), np.uint32), LANES) for text in (a, b, c)]
        value = _looked_up(int(table, 16), *words)
        warp.set(target, value, mask)
        if out:
            warp.set_predicate(out, value != 0, mask)

    return step


def _plop3(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    outs = [operands[0]] + ([operands[1]] if len(operands) == 7 else [])
    a, b, c = operands[-5:-2] if len(operands) == 7 else operands[1:4]
    tables = operands[-2:] if len(operands) == 7 else operands[4:5]

    def step(warp: Warp, mask: Any) -> None:
        words = [np.broadcast_to(np.asarray(warp.predicate(text), bool), LANES) for text in (a, b, c)]
        for out, table in zip(outs, tables, strict=False):
            warp.set_predicate(out, _looked_up(int(table, 16), *words), mask)

    return step


def _isetp(flags: frozenset[str], operands: tuple[str, ...], names: tuple[str, ...]) -> Step:
    compare, strict = names[0], {"LE": "LT", "GE": "GT"}.get(names[0], names[0])
    signed, combine = "U32" not in flags, next(COMBINE[name] for name in names[1:] if name in COMBINE)

    def step(warp: Warp, mask: Any) -> None:
        kind = np.int32 if signed else np.uint32
        a, b = (np.broadcast_to(np.asarray(warp.word(text), np.uint32), LANES).view(kind) for text in operands[2:4])
        if "EX" in flags:
            lower = warp.predicate(operands[5])
            equal = a == b
            result = (a != b) | lower if compare == "NE" else equal & lower
            if compare not in ("NE", "EQ"):
                result = COMPARE[strict](a, b) | equal & lower
        else:
            result = COMPARE[compare](a, b)
        warp.set_predicate(operands[0], combine(result, warp.predicate(operands[4])), mask)
        warp.set_predicate(operands[1], combine(~result, warp.predicate(operands[4])), mask)

    return step


def _shf(flags: frozenset[str], operands: tuple[str, ...], names: tuple[str, ...]) -> Step:
    to, a, by, c = operands

    def step(warp: Warp, mask: Any) -> None:
        low, high = _u64(warp.word(a)), _u64(warp.word(c))
        shift = _u64(warp.word(by)) & np.uint64(63)
        if "S32" in flags and "HI" in flags:
            signed = np.asarray(warp.word(c)).view(np.int32).astype(np.int64)
            warp.set(to, (signed >> shift.astype(np.int64)).astype(np.uint64) & _LOW, mask)
            return
        both = high << _BITS | low
        if "L" in flags:
            value = (both << shift) >> _BITS if "HI" in flags else low << shift
        else:
            value = high >> shift if "HI" in flags and "U32" in flags else both >> shift
        warp.set(to, value & _LOW, mask)

    return step


def _prmt(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    to, a, choice, b = operands

    def step(warp: Warp, mask: Any) -> None:
        both = _u64(warp.word(b)) << _BITS | _u64(warp.word(a))
        value = np.zeros(LANES, np.uint64)
        for k in range(4):
            nibble = int(choice, 16) >> 4 * k & 15
            byte = both >> np.uint64(8 * (nibble & 7)) & np.uint64(255)
            if nibble & 8:
                byte = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
            value = value | byte << np.uint64(8 * k)
        warp.set(to, value, mask)

    return step


_CONTROL = {"BRA", "CALL", "RET", "EXIT", "BSSY", "BSYNC", "BAR", "NOP", "WARPSYNC", "YIELD"}

_STEPS: dict[str, Any] = {
    "IADD3": _iadd3, "VIADD": _iadd3, "IMAD": _imad, "LEA": _lea, "LOP3": _lop3, "PLOP3": _plop3, "ISETP": _isetp,
    "SHF": _shf, "PRMT": _prmt, **MOVE_STEPS, **FLOAT_STEPS,
}  # fmt: skip
