"""Error of division near zero at exact weights: a lower bound of every trial's error.

    python -m benchmarks.near_zero [--out benchmarks/results/near_zero.csv]

Inputs are uniform on [0, 10^-k]. There are three targets: 1/a from a alone, 1/a from (a, b), and a/b. Each unit has the
weights that compute the target; its output in single precision is compared with the quotient of the same numbers in
double precision. 2^-23 is added to the mean squared error, as in the published thresholds, which are such bounds.
Prints a row for each target, k and unit, and writes it with `--out`: this error, and the mean relative error. The
numbers depend only on the library that computes powers.

Source: Mistry, Farrahi & Hare, "Learning Division with Neural Arithmetic Logic Modules", 2021.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import finish, plain_parser
from study.engine.device import one_thread
from study.stream.stream import EVALUATION_SEED, Purpose
from study.stream.stream_simd import fill_inputs
from units import UNITS, Unit

Row = dict[str, Any]

ROWS = 10_000
POWERS = (0, 1, 2, 3, 4)
SPACING = 2.0**-23
SATURATED = 40.0
"""A NAC's parameter at which tanh and σ are 1 in single precision."""


class Target(NamedTuple):
    """A target: a name, a number of inputs, and each input's exponent."""

    name: str
    exponents: tuple[int, ...]


TARGETS = (Target("1/a from a", (-1,)), Target("1/a from a, b", (-1, 0)), Target("a/b", (1, -1)))


def rows(power: int, inputs: int) -> Tensor:
    """Return the test rows on [0, 10^-power], without 0: float32 [rows, inputs], the same at each call.

    `power` is at most 37; beyond that, all numbers are 0.

    Example:
        >>> bool((rows(4, 2) > 0).all()), bool((rows(4, 2) <= 1e-4).all())
        (True, True)
    """
    x = np.empty((1, inputs, ROWS), np.float32)
    width = 10.0**-power
    low = np.full((1, 2), width * 2.0**-25, np.float32)
    seed = np.array([EVALUATION_SEED], np.uint64)
    fill_inputs(x, seed, low, np.array([width], np.float32), 0, Purpose.TEST)
    return torch.from_numpy(x[0].T.copy())


def exact(name: str, exponents: Sequence[int]) -> Unit:
    """Build a unit with weights that compute a product of powers -1, 0 and 1.

    Args:
        name: NAC-mul, NPU, RealNPU, RealNPU-modified, NRU or NMRU.
        exponents: exponent of each input.

    Raises:
        KeyError: if there is no such unit.
        RuntimeError: for another unit of `units.UNITS`.

    Example:
        >>> round(exact("NRU", (1, -1))(torch.tensor([[6.0, 3.0]])).item(), 3)
        2.0
    """
    unit = UNITS[name](len(exponents), 1).eval()
    wanted = torch.tensor([list(exponents)], dtype=torch.float32)
    values: Mapping[str, Tensor]
    match name:
        case "NAC-mul":
            values = {"weight_hat": SATURATED * wanted, "mask_hat": torch.full_like(wanted, SATURATED)}
        case "NMRU":
            values = {"weight": torch.cat([wanted.clamp(0, 1), (-wanted).clamp(0, 1)], -1)}
        case "NRU":
            values = {"weight": wanted}
        case _:
            gate = wanted.abs()
            values = {"weight": wanted, "gate": gate, **({"weight_imaginary": 0 * wanted} if name == "NPU" else {})}
    unit.load_state_dict(values)
    return unit


EXACT = ("NAC-mul", "NPU", "RealNPU", "NRU", "NMRU")


def floors() -> list[Row]:
    """Compute each unit's error for each target and range, in one thread: the partition of rows decides last bits."""
    with one_thread(), torch.no_grad():
        return list(_floors())


def _floors() -> Iterator[Row]:
    for target in TARGETS:
        for power in POWERS:
            x = rows(power, len(target.exponents))
            quotient = (x.double() ** torch.tensor(target.exponents, dtype=torch.float64)).prod(-1)
            for name in EXACT:
                error = exact(name, target.exponents)(x).squeeze(-1).double() - quotient
                yield {
                    "target": target.name,
                    "power": power,
                    "unit": name,
                    "floor": f"{float(error.square().mean()) + SPACING:.4g}",
                    "relative_error": f"{float((error / quotient).abs().mean()):.3g}",
                }


def main(words: Sequence[str] | None = None) -> None:
    """Compute the floors; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    finish(floors(), plain_parser(__doc__).parse_args(words))


if __name__ == "__main__":
    main()
