"""Moments of outputs and gradients of NAC• and NMU under initial weights: the paper's equations 8 to 10.

H is the number of multiplied inputs, V the variance of a weight, m and v the mean and the variance of an input. Weights
and inputs are independent. A gradient is given as Var[∂L/∂z_1] / Var[∂L/∂z], for a ∂L/∂z of mean 0 and a layer with H_l
outputs. Where the paper and its draft differ, both forms are available.

Source: Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020, equations 8 to 10 and the appendix on moments, and its
    draft.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from units.variance import nac_reach

Form = Literal["draft", "final"]
"""Version of the paper that a formula is from."""

_EPSILON = 1e-7
_GRADIENT_FACTORS = {"draft": 2, "final": 4}


def fan_reach(fan: int) -> float:
    """Compute r of Ŵ, M̂ ~ U[-r, r] so that W = tanh(Ŵ) ⊙ σ(M̂) has Glorot's variance (equation 8).

        (1 - tanh(r) / r) (r - tanh(r / 2)) / (2r) = 2 / fan

    Args:
        fan: number of inputs plus number of outputs of the layer; > 4, since the variance is below 1/2 for every r.

    Raises:
        ValueError: unless fan > 4.

    Example:
        >>> round(fan_reach(12), 4)
        2.0742
    """
    require("fan", fan, fan > 4, "fan > 4 (so that 2 / fan is below 1/2, the limit for tanh(Ŵ) ⊙ σ(M̂))")
    return nac_reach(2 / fan)


def nac_mul_power(
    c1: float, c2: float, hidden: int, weight_variance: float, input_mean: float, epsilon: float = _EPSILON
) -> float:
    """Compute the building block of equation 9: f(c1, c2) = (1 + c1 V log²(|m| + ε) / 2)^(c2 H).

    It is a second-order Taylor approximation around z = m and W = 0, independent of v.

    Args:
        c1: factor of the variance, >= 0, which isn't checked; the square of W's factor.
        c2: factor of the exponent.
        hidden: H >= 1.
        weight_variance: V >= 0.
        input_mean: m, any finite number.
        epsilon: ε > 0.

    Returns:
        f(c1, c2); infinity if c2 > 0 and the base of the power exceeds every float.

    Raises:
        ValueError: if `hidden`, `weight_variance`, `input_mean` or `epsilon` is out of its range.
        OverflowError: if only the power exceeds every float.

    Example:
        >>> round(nac_mul_power(1, 1, 2, 0.1, 1.5), 4)
        1.0165
    """
    _require_weights(hidden, weight_variance)
    require("input_mean", input_mean, math.isfinite(input_mean), "a finite input_mean")
    require("epsilon", epsilon, 0 < epsilon < math.inf, "0 < epsilon < infinity")
    return float((1 + c1 * weight_variance * math.log(abs(input_mean) + epsilon) ** 2 / 2) ** (c2 * hidden))


def nac_mul_mean(hidden: int, weight_variance: float, input_mean: float, epsilon: float = _EPSILON) -> float:
    """Compute equation 9's mean of NAC•'s output: E[z] = f(1, 1), f as in `nac_mul_power`.

    Args: as for `nac_mul_power`.

    Raises:
        ValueError: if an argument is out of its range.
        OverflowError: if only the power exceeds every float; infinity is returned if its base does.

    Example:
        >>> round(nac_mul_mean(2, 0.1, 0.0), 1)  # simulated, it is below 2
        195.7
    """
    return nac_mul_power(1, 1, hidden, weight_variance, input_mean, epsilon)


def nac_mul_variance(hidden: int, weight_variance: float, input_mean: float, epsilon: float = _EPSILON) -> float:
    """Compute equation 9's variance of NAC•'s output: Var[z] = f(4, 1) - f(1, 2), f as in `nac_mul_power`.

    It is negative, so not a variance, if V exceeds `nac_mul_limit`; NaN if the bases of both powers exceed every float.

    Args: as for `nac_mul_power`.

    Raises:
        ValueError: if an argument is out of its range.
        OverflowError: if a power in the formula exceeds every float.

    Example:
        >>> round(nac_mul_variance(2, 0.1, 1.5), 4), round(nac_mul_variance(2, 0.1, 0.0))
        (0.0336, -35498)
    """
    second_moment = nac_mul_power(4, 1, hidden, weight_variance, input_mean, epsilon)
    return second_moment - nac_mul_power(1, 2, hidden, weight_variance, input_mean, epsilon)


def nac_mul_limit(input_mean: float, epsilon: float = _EPSILON) -> float:
    """Compute the largest V with a nonnegative variance in equation 9, for any H: V = 4 / log²(|m| + ε).

    Args:
        input_mean: m, any finite number.
        epsilon: ε > 0.

    Returns:
        V; infinity where |m| + ε is 1, or within 1e-8 of it.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> round(nac_mul_limit(0.0), 4)
        0.0154
    """
    excess = nac_mul_power(2, 1, 1, 1.0, input_mean, epsilon) - 1  # log²(|m| + ε), with checked arguments
    return 4 / excess if excess > 0 else math.inf


def nac_mul_gradient(
    hidden: int,
    weight_variance: float,
    input_mean: float,
    input_variance: float,
    outputs: int = 1,
    form: Form = "final",
    epsilon: float = _EPSILON,
) -> float:
    """Compute equation 9's gradient of NAC•: H_l f(c, 1) V (1 / (|m| + ε)² + 3 v / (|m| + ε)⁴).

    c is 4 in the paper and 2 in its draft; f is `nac_mul_power`. f(4, 1) is E[z²], as the product requires.

    Args:
        hidden: H >= 1.
        weight_variance: V >= 0.
        input_mean: m, any finite number.
        input_variance: v >= 0.
        outputs: H_l >= 1.
        form: version of the paper.
        epsilon: ε > 0.

    Raises:
        ValueError: if an argument is out of its range.
        OverflowError: if a power of finite numbers in the formula exceeds every float; the result is infinity or NaN if
            only a product or a quotient does.
        ZeroDivisionError: if (|m| + ε)⁴ is 0 in float64.

    Example:
        >>> [round(nac_mul_gradient(2, 0.1, 1.5, 1 / 12, form=form), 4) for form in ("draft", "final")]
        [0.051, 0.0527]
    """
    _require_inputs(input_variance, outputs, form)
    power = nac_mul_power(_GRADIENT_FACTORS[form], 1, hidden, weight_variance, input_mean, epsilon)
    size = abs(input_mean) + epsilon
    return outputs * power * weight_variance * (1 / size**2 + 3 * input_variance / size**4)


def nmu_mean(hidden: int, input_mean: float = 0.0) -> float:
    """Compute the mean of an NMU's output for E[W] = 1/2: E[z] = ((1 + m) / 2)^H.

    Equation 10 is the case m = 0; for other m this is its exact extension.

    Args:
        hidden: H >= 1.
        input_mean: m, any finite number.

    Raises:
        ValueError: if an argument is out of its range.
        OverflowError: if the result exceeds every float.

    Example:
        >>> nmu_mean(2), nmu_mean(2, 1.5)
        (0.25, 1.5625)
    """
    _require_weights(hidden, 0.0)
    require("input_mean", input_mean, math.isfinite(input_mean), "a finite input_mean")
    return float(((1 + input_mean) / 2) ** hidden)


def nmu_variance(hidden: int, weight_variance: float, input_variance: float, input_mean: float = 0.0) -> float:
    """Compute the variance of an NMU's output for E[W] = 1/2: Var[z] = (m + (V + 1/4) (v + (m - 1)²))^H - E[z]².

    Equation 10 is the case m = 0: (V + 1/4)^H (v + 1)^H - 4^-H.

    Args:
        hidden: H >= 1.
        weight_variance: V >= 0.
        input_variance: v >= 0.
        input_mean: m, any finite number.

    Raises:
        ValueError: if an argument is out of its range.
        OverflowError: if a power of finite numbers in the formula exceeds every float; the result is infinity if the
            base of the first power does.

    Example:
        >>> round(nmu_variance(2, 1 / 12, 1.0), 4)
        0.3819
    """
    mean = nmu_mean(hidden, input_mean)
    return _nmu_factor(hidden, weight_variance, input_variance, input_mean) ** hidden - mean**2


def nmu_gradient(
    hidden: int,
    weight_variance: float,
    input_variance: float,
    outputs: int = 1,
    form: Form = "final",
    input_mean: float = 0.0,
) -> float:
    """Compute the gradient of an NMU for E[W] = 1/2: H_l (V + 1/4) (m + (V + 1/4) (v + (m - 1)²))^(H - 1).

    Equation 10 is the case m = 0: H_l (V + 1/4)^H (v + 1)^(H - 1). It is the second moment of ∂z/∂z_1, as the variance
    of a product with a ∂L/∂z of mean 0 requires. The draft has the variance of ∂z/∂z_1 instead: it subtracts
    E[∂z/∂z_1]² before the multiplication by H_l. At m = 0 this is 4^-H.

    Args:
        hidden: H >= 1.
        weight_variance: V >= 0.
        input_variance: v >= 0.
        outputs: H_l >= 1.
        form: version of the paper.
        input_mean: m, any finite number.

    Raises:
        ValueError: if an argument is out of its range.
        OverflowError: if a power of finite numbers in the formula exceeds every float; the result is infinity if only a
            product or a sum does.

    Example:
        >>> [round(nmu_gradient(2, 1 / 12, 1.0, form=form), 4) for form in ("draft", "final")]
        [0.1597, 0.2222]
    """
    _require_inputs(input_variance, outputs, form)
    require("input_mean", input_mean, math.isfinite(input_mean), "a finite input_mean")
    factor = _nmu_factor(hidden, weight_variance, input_variance, input_mean)
    second_moment = (weight_variance + 0.25) * factor ** (hidden - 1)
    mean = 0.5 * ((1 + input_mean) / 2) ** (hidden - 1) if form == "draft" else 0.0
    return float(outputs * (second_moment - mean**2))


def _nmu_factor(hidden: int, weight_variance: float, input_variance: float, input_mean: float) -> float:
    """Return E[(W z + 1 - W)²] for an input z and E[W] = 1/2; raise ValueError unless H >= 1, V >= 0 and v >= 0."""
    _require_weights(hidden, weight_variance)
    _require_inputs(input_variance, 1, "final")
    return input_mean + (weight_variance + 0.25) * (input_variance + (input_mean - 1) ** 2)


def _require_weights(hidden: int, weight_variance: float) -> None:
    require("hidden", hidden, hidden >= 1, "hidden >= 1")
    require("weight_variance", weight_variance, 0 <= weight_variance < math.inf, "0 <= weight_variance < infinity")


def _require_inputs(input_variance: float, outputs: int, form: str) -> None:
    require("input_variance", input_variance, 0 <= input_variance < math.inf, "0 <= input_variance < infinity")
    require("outputs", outputs, outputs >= 1, "outputs >= 1")
    require("form", form, form in get_args(Form), f"form in {get_args(Form)}")


def require(name: str, value: object, holds: bool, must: str) -> None:
    """Check a condition on an argument.

    Args:
        name: the argument's name.
        value: what was given.
        holds: True if the condition holds.
        must: the condition in words, for the message.

    Raises:
        ValueError: if `holds` is False.
    """
    if not holds:
        raise ValueError(f"{name}={value} was given, but {must} must hold")
