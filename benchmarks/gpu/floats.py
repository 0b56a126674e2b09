"""Float32 instructions of compute capability 9.0; see `operations`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.warp import LANES, Step, Warp

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor,
}  # fmt: skip


def _floating(compute: Callable[..., Any]) -> Any:
    def make(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
        def step(warp: Warp, mask: Any) -> None:
            value = np.float32(compute(*(warp.number(text) for text in operands[1:])))
            warp.set(operands[0], value, mask)

        return step

    return make


def _fused(a: Any, b: Any, c: Any) -> Any:
    return np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)


def _float_compare(flags: frozenset[str], operands: tuple[str, ...], names: tuple[str, ...]) -> Step:
    unordered = names[0].endswith("U") and len(names[0]) == 3
    compare, combine = names[0][:2], next(COMBINE[name] for name in names[1:] if name in COMBINE)

    def step(warp: Warp, mask: Any) -> None:
        a, b = (np.broadcast_to(warp.number(text), LANES) for text in operands[2:4])
        result = COMPARE[compare](a, b)
        nan = np.isnan(a) | np.isnan(b)
        result = result | nan if unordered else result & ~nan
        warp.set_predicate(operands[0], combine(result, warp.predicate(operands[4])), mask)
        warp.set_predicate(operands[1], combine(~result, warp.predicate(operands[4])), mask)

    return step


def _float_set(flags: frozenset[str], operands: tuple[str, ...], names: tuple[str, ...]) -> Step:
    compare = COMPARE[names[1][:2]]

    def step(warp: Warp, mask: Any) -> None:
        a, b = (warp.number(text) for text in operands[1:3])
        warp.set(operands[0], (compare(a, b) & warp.predicate(operands[3])).astype(np.float32), mask)

    return step


def _float_select(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        a, b = (warp.number(text) for text in operands[1:3])
        warp.set(operands[0], np.where(warp.predicate(operands[3]), a, b).astype(np.float32), mask)

    return step


def _least(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        a, b = (warp.number(text) for text in operands[1:3])
        least, most = (np.minimum, np.maximum) if "NAN" in flags else (np.fmin, np.fmax)
        value = np.where(warp.predicate(operands[3]), least(a, b), most(a, b))
        warp.set(operands[0], value.astype(np.float32), mask)

    return step


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "RCP": lambda x: 1 / x, "RSQ": lambda x: 1 / np.sqrt(x), "SQRT": np.sqrt, "EX2": np.exp2, "LG2": np.log2,
}  # fmt: skip


def _function(flags: frozenset[str], operands: tuple[str, ...], names: tuple[str, ...]) -> Step:
    compute = _FUNCTIONS[names[0]]
    return lambda warp, mask: warp.set(operands[0], np.float32(compute(warp.number(operands[1]))), mask)


def _division_check(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    """Return the step of FCHK: it sets a predicate where a quotient needs more than the usual steps."""

    def step(warp: Warp, mask: Any) -> None:
        a, b = np.abs(warp.number(operands[1])), np.abs(warp.number(operands[2]))
        quotient = a / b
        usual = (b > 2.0**-126) & (b < 2.0**126) & (a > 2.0**-102) & (quotient > 2.0**-126) & (quotient < 2.0**126)
        warp.set_predicate(operands[0], ~np.broadcast_to(usual, LANES), mask)

    return step


def _to_float(flags: frozenset[str], operands: tuple[str, ...], _: tuple[str, ...]) -> Step:
    def step(warp: Warp, mask: Any) -> None:
        if "U64" in flags:
            value = np.asarray(warp.wide(operands[1]))
        else:
            value = np.asarray(warp.word(operands[1])).view(np.int32 if "S32" in flags else np.uint32)
        warp.set(operands[0], value.astype(np.float32), mask)

    return step


FLOAT_STEPS: dict[str, Any] = {
    "FADD": _floating(np.add), "FMUL": _floating(np.multiply), "FFMA": _floating(_fused), "FSETP": _float_compare,
    "FSET": _float_set, "FSEL": _float_select, "FMNMX": _least, "MUFU": _function, "FCHK": _division_check,
    "I2FP": _to_float, "I2F": _to_float,
}  # fmt: skip
