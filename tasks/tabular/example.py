"""Built-in table: 28 inputs, and a noisy sum, product and quotient of some of them."""

from __future__ import annotations

from functools import cache

import numpy as np

from study.stream.stream import EVALUATION_SEED, Purpose
from study.stream.trial_stream import Stream
from tasks.tabular.table import Floats, Table

ROWS, INPUTS = 4000, 28
LOW, HIGH = 1.0, 5.0
NOISE = 0.01
"""Standard deviation of the noise, as a share of the value."""

OUTPUTS = ("sum", "product", "quotient")

_UNIFORMS = 12  # their sum has variance 1


@cache
def example_table() -> Table:
    """Generate the table: 4,000 rows of x1 ... x28, uniform on [1, 5), and three outputs.

        sum = (x1 + x2 + x3) (1 + .01 z),   product = x1 x4 (1 + .01 z'),   quotient = x1 / x5 (1 + .01 z'')

    The noise z is the sum of twelve uniform numbers less 6: nearly normal, with mean 0 and standard deviation 1. The
    table is the same on every machine: it needs only the counter-based stream and float64 additions, products and
    quotients.

    Example:
        >>> table = example_table()
        >>> len(table), list(table.numbers)[-4:]
        (4000, ['x28', 'sum', 'product', 'quotient'])
    """
    stream = Stream([EVALUATION_SEED], 0, Purpose.SETUP)
    x = LOW + (HIGH - LOW) * stream.uniform(ROWS, INPUTS).double().numpy()
    uniform = stream.uniform(ROWS, _UNIFORMS * len(OUTPUTS)).double().numpy()
    # Sums of multiples of 2**-24 are exact in any order.
    z = uniform.reshape(ROWS, _UNIFORMS, len(OUTPUTS)).sum(1) - _UNIFORMS / 2
    exact = (x[:, 0] + x[:, 1] + x[:, 2], x[:, 0] * x[:, 3], x[:, 0] / x[:, 4])
    columns: dict[str, Floats] = {f"x{i + 1}": np.ascontiguousarray(x[:, i]) for i in range(INPUTS)}
    return Table(
        columns | {name: y * (1 + NOISE * z[:, i]) for i, (name, y) in enumerate(zip(OUTPUTS, exact, strict=True))}
    )
