"""Exponential, logarithm and related functions in float32, in a form that compilers vectorise.

A call of the system's library for each number would cost ten times the rest of an iteration, and its last bit differs
between systems. These functions have no branch and no table. Each result is within 2 units in the last place; NaN stays
NaN; infinity, zero and subnormal numbers follow IEEE 754. Float64, which only tests use, calls the system's functions.

Source: the polynomials are those of Moshier's Cephes library, single precision, 1989.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload

from tasks.arithmetic.engine.compiled.cache import forced, inlined
from tasks.arithmetic.engine.compiled.intrinsics import bits_of, float_of, floor, multiply_add, where

_F = np.float32
_I = np.int32
_LOG2_E = _F(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = _F(0.693359375), _F(-2.12194440e-4)
_HALF, _ONE, _TWO = _F(0.5), _F(1), _F(2)
_ZERO = _F(0)
_INFINITY = _F(np.inf)
_BIAS, _MANTISSA_BITS = _I(127), _I(23)
_EXP_TOP, _EXP_BOTTOM = _F(89), _F(-104)
_EXPM1_BOTTOM = _F(-20)
_TANH_CUT = _F(0.625)
_ROOT_HALF_BITS = _I(0x3F3504F3)

_E0, _E1, _E2 = _F(1.9875691500e-4), _F(1.3981999507e-3), _F(8.3334519073e-3)
_E3, _E4, _E5 = _F(4.1665795894e-2), _F(1.6666665459e-1), _F(5.0000001201e-1)

_L0, _L1, _L2 = _F(7.0376836292e-2), _F(-1.1514610310e-1), _F(1.1676998740e-1)
_L3, _L4, _L5 = _F(-1.2420140846e-1), _F(1.4249322787e-1), _F(-1.6668057665e-1)
_L6, _L7, _L8 = _F(2.0000714765e-1), _F(-2.4999993993e-1), _F(3.3333331174e-1)

_T0, _T1, _T2 = _F(-5.70498872745e-3), _F(2.06390887954e-2), _F(-5.37397155531e-2)
_T3, _T4 = _F(1.33314422036e-1), _F(-3.33332819422e-1)


@inlined
def _power_of_two(n):  # type: ignore[no-untyped-def]
    return float_of(_I((n + _BIAS) << _MANTISSA_BITS))


@inlined
def _split(x):  # type: ignore[no-untyped-def]
    """Write x as n ln 2 + r, and return n and exp(r) - 1."""
    exponent = floor(multiply_add(x, _LOG2_E, _HALF))
    r = multiply_add(exponent, -_LN2_LOW, multiply_add(exponent, -_LN2_HIGH, x))
    p = multiply_add(multiply_add(multiply_add(_E0, r, _E1), r, _E2), r, _E3)
    p = multiply_add(multiply_add(p, r, _E4), r, _E5)
    return _I(exponent), multiply_add(p, r * r, r)


@forced
def _exp(x):  # type: ignore[no-untyped-def]
    inside = where(x > _EXP_TOP, _EXP_TOP, x)
    n, expm1_r = _split(where(inside < _EXP_BOTTOM, _EXP_BOTTOM, inside))
    # Two factors: a single one would overflow before the result does, or lose subnormal results.
    half = n >> _I(1)
    y = (expm1_r + _ONE) * _power_of_two(half) * _power_of_two(_I(n - half))
    return where(x == x, y, x)


@forced
def _expm1(x):  # type: ignore[no-untyped-def]
    n, expm1_r = _split(where(x < _EXPM1_BOTTOM, _EXPM1_BOTTOM, x))
    scale = _power_of_two(n)
    y = multiply_add(scale, expm1_r, scale - _ONE)
    return where(x == x, y, x)


@forced
def _log(x):  # type: ignore[no-untyped-def]
    # x = m 2**e with m in [sqrt(1/2), sqrt(2)): the exponent bits of the difference from sqrt(1/2)'s bits are e.
    bits = bits_of(x)
    exponent = _I(bits - _ROOT_HALF_BITS) >> _MANTISSA_BITS
    m = float_of(_I(bits - _I(exponent << _MANTISSA_BITS))) - _ONE
    e = _F(exponent)
    z = m * m
    p = multiply_add(multiply_add(multiply_add(_L0, m, _L1), m, _L2), m, _L3)
    p = multiply_add(multiply_add(multiply_add(p, m, _L4), m, _L5), m, _L6)
    p = multiply_add(multiply_add(p, m, _L7), m, _L8) * m
    y = multiply_add(p, z, multiply_add(e, _LN2_LOW, -_HALF * z))
    y = multiply_add(e, _LN2_HIGH, m + y)
    return where(x < _INFINITY, y, x)


@forced
def _tanh(x):  # type: ignore[no-untyped-def]
    size = abs(x)
    z = x * x
    p = multiply_add(multiply_add(multiply_add(_T0, z, _T1), z, _T2), z, _T3)
    near = multiply_add(multiply_add(p, z, _T4) * z, x, x)
    # Near 1 the result is rounded only once: a saturated weight can move only while 1 - tanh^2 isn't exactly 0.
    far = _ONE - _TWO / (_exp(_TWO * size) + _ONE)
    return where(size < _TANH_CUT, near, where(x < _ZERO, -far, far))


def exp(x: Any) -> Any:
    """Compute e^x, in compiled code."""
    return np.exp(x)


def expm1(x: Any) -> Any:
    """Compute e^x - 1 for x <= 0, in compiled code."""
    return np.expm1(x)


def log(x: Any) -> Any:
    """Compute ln x for x >= 2**-126, in compiled code."""
    return np.log(x)


def tanh(x: Any) -> Any:
    """Compute tanh x, in compiled code."""
    return np.tanh(x)


def _serve(name: Any, in_float32: Any, in_float64: Any) -> None:
    """Let compiled code call a function by its public name, for float32 and float64."""

    # No annotations: numba compares the signatures including them.
    @overload(name)
    def choose(x):  # type: ignore[no-untyped-def]
        function = in_float32 if x == types.float32 else in_float64
        return lambda x: function(x)


_serve(exp, _exp, math.exp)
_serve(expm1, _expm1, math.expm1)
_serve(log, _log, math.log)
_serve(tanh, _tanh, math.tanh)
