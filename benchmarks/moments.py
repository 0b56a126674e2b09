"""Equations 8 to 10 of the NMU's paper, moments under initial weights, beside a simulation of them.

    python -m benchmarks.moments [--samples N] [--seed N] [--out benchmarks/results/moments.csv]

Inputs are uniform with mean m and variance v. NMU's weights are uniform, as they start; NAC•'s are tanh(Ŵ) σ(M̂), as
they start, or uniform. All means m share the same draws, shifted by m. A gradient is the variance of δ ∂z/∂z_1, δ
standard normal. Prints a row for each case, mean and quantity, and writes it with `--out`: the simulated moment with
its standard error, the paper's and the draft's formula, and the exact moment. A figure beside the file shows them over
m. The numbers depend on the seed and the number of samples alone.

Exact moments of an NMU are the paper's formulas for any mean, those of a NAC• integrals over an input and a weight.
Where a NAC•'s inputs cross 0, few of them make nearly all of a variance, and a simulation misses most of it.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.measure import finish, plain_parser, tell
from benchmarks.moments_figure import plot
from units import moments
from units.variance import nac_reach

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]

FANS = (5, 6, 10, 12, 20, 102)
MEANS = tuple(np.linspace(-3, 3, 25).tolist())
EPSILON = 1e-7
SIGMOID, UNIFORM = "tanh σ", "uniform"


class Case(NamedTuple):
    """A case simulated at all means: a unit, the distribution of its weights, H, V and v."""

    unit: str
    weights: str
    hidden: int
    weight_variance: float
    input_variance: float


CASES = (
    *(Case("NMU", UNIFORM, hidden, variance, 1.0) for hidden in (2, 10) for variance in (1 / 48, 1 / 12)),
    *(Case("NAC-mul", SIGMOID, hidden, variance, 1 / 12) for hidden in (2, 10) for variance in (0.01, 0.1)),
    Case("NAC-mul", UNIFORM, 2, 0.1, 1 / 12),
    Case("NAC-mul", SIGMOID, 2, 0.1, 1.0),
)


# --- simulation -------------------------------------------------------------------------------------------------


def sigmoid_weights(rng: np.random.Generator, reach: float, shape: tuple[int, ...]) -> Floats:
    """Draw weights tanh(Ŵ) σ(M̂) with Ŵ, M̂ ~ U[-r, r], where r is `reach`."""
    return np.tanh(rng.uniform(-reach, reach, shape)) / (1 + np.exp(-rng.uniform(-reach, reach, shape)))


def uniform(rng: np.random.Generator, mean: float, variance: float, shape: tuple[int, ...]) -> Floats:
    """Draw uniform numbers with that mean and variance >= 0."""
    reach = math.sqrt(3 * variance)
    return rng.uniform(mean - reach, mean + reach, shape)


def nmu_pass(z: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Compute an NMU's output prod_h (W_h (z_h - 1) + 1) and its derivative by z_1, from z and W [H, samples]."""
    factors = weight * (z - 1) + 1
    others = factors[1:].prod(axis=0)
    return factors[0] * others, weight[0] * others


def nac_mul_pass(z: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Compute a NAC•'s output prod_h (|z_h| + ε)^W_h and its derivative by z_1, from z and W [H, samples]."""
    sizes = np.abs(z) + EPSILON
    out = np.exp((weight * np.log(sizes)).sum(axis=0))
    return out, out * weight[0] * np.sign(z[0]) / sizes[0]


def estimate(values: Floats) -> tuple[float, float]:
    """Return the mean of values, and its standard error."""
    return float(values.mean()), float(values.std() / math.sqrt(values.size))


def quantities(out: Floats, slope: Floats, delta: Floats) -> dict[str, tuple[float, float]]:
    """Estimate the moments of outputs and derivatives, by name, each with its standard error; `delta` is δ."""
    return {
        "E[z]": estimate(out),
        "Var[z]": estimate((out - out.mean()) ** 2),
        "E[(∂z/∂z_1)²]": estimate(slope**2),
        "Var[∂z/∂z_1]": estimate((slope - slope.mean()) ** 2),
        "Var[δ ∂z/∂z_1]": estimate((delta * slope) ** 2),  # its mean is 0, since δ's is
    }


# --- integrals --------------------------------------------------------------------------------------------------


def _between(power: Floats, low: float, high: float) -> Floats:
    """Integrate (x + ε)^power over x from low to high, 0 <= low <= high."""
    q = power + 1
    is_log = np.abs(q) < 1e-9
    safe = np.where(is_log, 1.0, q)
    ends = (high + EPSILON) ** safe - (low + EPSILON) ** safe
    return np.asarray(np.where(is_log, math.log((high + EPSILON) / (low + EPSILON)), ends / safe))


def _input_mean(power: Floats, mean: float, variance: float, *, is_signed: bool = False) -> Floats:
    """Compute the mean of (|x| + ε)^power over uniform x, or that of its product with the sign of x."""
    reach = math.sqrt(3 * variance)
    low, high = mean - reach, mean + reach
    above, below = _between(power, max(low, 0), max(high, 0)), _between(power, max(-high, 0), max(-low, 0))
    return (above - below if is_signed else above + below) / (2 * reach)


def _weights(case: Case) -> tuple[Floats, Floats]:
    """Return nodes of a quadrature over the distribution of a NAC•'s weights, with their probabilities."""
    nodes, shares = np.polynomial.legendre.leggauss(300)
    if case.weights != SIGMOID:
        return math.sqrt(3 * case.weight_variance) * nodes, shares / 2
    reach = nac_reach(case.weight_variance)
    weight = np.tanh(reach * nodes)[:, None] / (1 + np.exp(-reach * nodes))
    return weight.ravel(), np.outer(shares, shares).ravel() / 4


def nac_mul_exact(case: Case, mean: float) -> dict[str, float]:
    """Compute a NAC•'s moments by name, as integrals over one input and one weight: all of them are independent.

    The case's variances are positive. Moments beyond the largest float are infinite or NaN.

    Raises:
        OverflowError: if only a power by `hidden`, or the slope's square, exceeds every float.
    """
    weight, shares = _weights(case)

    def over_weights(values: Floats) -> float:
        return float(shares @ values)

    def of_input(power: Floats, *, is_signed: bool = False) -> Floats:
        return _input_mean(power, mean, case.input_variance, is_signed=is_signed)

    first, second = over_weights(of_input(weight)), over_weights(of_input(2 * weight))
    slope = over_weights(weight * of_input(weight - 1, is_signed=True)) * first ** (case.hidden - 1)
    square = over_weights(weight**2 * of_input(2 * weight - 2)) * second ** (case.hidden - 1)
    return {
        "E[z]": first**case.hidden,
        "Var[z]": second**case.hidden - first ** (2 * case.hidden),
        "E[(∂z/∂z_1)²]": square,
        "Var[∂z/∂z_1]": square - slope**2,
        "Var[δ ∂z/∂z_1]": square,
    }


# --- formulas ---------------------------------------------------------------------------------------------------


def formulas(case: Case, mean: float) -> dict[str, tuple[float, float | str, float]]:
    """Compute each quantity by the paper, by its draft (an empty text if it agrees), and exactly for any mean.

    Raises:
        ValueError: if a number of the case is out of range, such as a negative variance.
        OverflowError: if a result exceeds every float.
    """
    hidden, V, v = case[2:]
    if case.unit == "NMU":
        values = {
            "E[z]": (moments.nmu_mean(hidden), "", moments.nmu_mean(hidden, mean)),
            "Var[z]": (moments.nmu_variance(hidden, V, v), "", moments.nmu_variance(hidden, V, v, mean)),
        }
        gradient: Callable[..., float] = partial(moments.nmu_gradient, hidden, V, v)
        second, spread = gradient(input_mean=mean), gradient(input_mean=mean, form="draft")
    else:
        exact = nac_mul_exact(case, mean)
        values = {
            "E[z]": (moments.nac_mul_mean(hidden, V, mean, EPSILON), "", exact["E[z]"]),
            "Var[z]": (moments.nac_mul_variance(hidden, V, mean, EPSILON), "", exact["Var[z]"]),
        }
        gradient = partial(moments.nac_mul_gradient, hidden, V, mean, v, epsilon=EPSILON)
        second, spread = exact["E[(∂z/∂z_1)²]"], exact["Var[∂z/∂z_1]"]
    both = gradient(form="final"), gradient(form="draft")
    return values | {
        "E[(∂z/∂z_1)²]": (*both, second),
        "Var[∂z/∂z_1]": (*both, spread),
        "Var[δ ∂z/∂z_1]": (*both, second),
    }


# --- rows -------------------------------------------------------------------------------------------------------


def row(equation: int, unit: str, quantity: str, value: tuple[float, float], final: float, **more: Any) -> Row:
    """Return the row of a simulated quantity beside its formulas; a column that doesn't apply is empty.

    Args:
        equation: number of the paper's equation.
        unit: name of the unit.
        quantity: name of the quantity.
        value: simulated moment and its standard error.
        final: the paper's formula.
        more: further columns of the table by name, among them `draft` and `exact`; other names are ignored.
    """
    columns = ("weights", "fan", "reach", "hidden", "weight_variance", "input_variance", "input_mean")
    numbers: dict[str, Any] = {"simulated": value[0], "standard_error": value[1], "final": final}
    numbers |= {name: more.get(name, "") for name in ("draft", "exact")}
    texts = {name: f"{number:.6g}" if number != "" else "" for name, number in numbers.items()}
    return {"equation": equation, "unit": unit} | {name: more.get(name, "") for name in columns} | {
        "quantity": quantity, **texts,
    }  # fmt: skip


def weight_rows(arguments: Namespace) -> Iterator[Row]:
    """Simulate equation 8, and yield a row for each fan."""
    for fan in FANS:
        rng = np.random.default_rng([arguments.seed, 8, fan])
        reach = moments.fan_reach(fan)
        value = estimate(sigmoid_weights(rng, reach, (arguments.samples,)) ** 2)  # their mean is 0
        more = {"weights": SIGMOID, "fan": fan, "reach": f"{reach:.6g}"}
        yield row(8, "NAC-add", "Var[W]", value, 2 / fan, **more)


def case_rows(number: int, case: Case, arguments: Namespace) -> Iterator[Row]:
    """Simulate equation 9 or 10, and yield a row for each mean and quantity; `number` seeds the draws.

    `arguments` has the number of `samples`, and a `seed`.

    Raises:
        ValueError: if a number of the case is out of range, such as a negative variance.
        OverflowError: if a result exceeds every float.
    """
    tell(f"{case.unit}, {case.weights}, H {case.hidden}, V {case.weight_variance:.4f}, v {case.input_variance:.4f}")
    rng = np.random.default_rng([arguments.seed, 9, number])
    shape = (case.hidden, arguments.samples)
    centred = uniform(rng, 0.0, case.input_variance, shape)
    delta = rng.standard_normal(arguments.samples)
    if case.weights == SIGMOID:
        weight = sigmoid_weights(rng, nac_reach(case.weight_variance), shape)
    else:
        weight = uniform(rng, 0.5 if case.unit == "NMU" else 0.0, case.weight_variance, shape)
    through = nmu_pass if case.unit == "NMU" else nac_mul_pass
    names = ("weights", "hidden", "weight_variance", "input_variance")
    more = dict(zip(names, (case.weights, case.hidden, f"{case[3]:.6g}", f"{case[4]:.6g}"), strict=True))
    for mean in MEANS:
        known = formulas(case, mean)
        for quantity, value in quantities(*through(centred + mean, weight), delta).items():
            final, draft, exact = known[quantity]
            also = {"input_mean": f"{mean:g}", "draft": draft, "exact": exact}
            yield row(10 if case.unit == "NMU" else 9, case.unit, quantity, value, final, **more, **also)


def main(words: Sequence[str] | None = None) -> None:
    """Simulate the moments; print the table, and write it and the figure with `--out`.

    Raises:
        OSError: if a file can't be written.
    """
    known = plain_parser(__doc__)
    known.add_argument("--samples", type=int, default=400_000, help="samples of each case")
    known.add_argument("--seed", type=int, default=0, help="seed of the random numbers")
    arguments = known.parse_args(words)
    rows = list(weight_rows(arguments))
    for number, case in enumerate(CASES):
        rows += case_rows(number, case, arguments)
    finish(rows, arguments)
    if arguments.out is not None:
        plot(rows, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
