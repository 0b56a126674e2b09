"""Compiled formulas of single numbers, also at corners that trained networks don't reach."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest
import torch

from tasks.arithmetic.engine.compiled import formulas as f
from tasks.arithmetic.engine.compiled import intrinsics
from units.regularize import out_of_bounds, sparsity

_CORNERS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1e-45, -1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan]


@nb.njit(error_model="numpy")
def _each(name, x, y):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        y[k] = intrinsics.floor(x[k]) if name == "floor" else intrinsics.root(x[k])


@pytest.mark.parametrize(("name", "expected"), [("floor", np.floor), ("root", np.sqrt)])
def test_floor_and_root_are_numpys_bits(name, expected):
    """Floor and root have numpy's bits for all magnitudes and signs, and for -0, infinity and NaN."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=1000) * 10.0 ** rng.uniform(-44, 38, 1000), _CORNERS])
    x = x.astype(np.float32)
    y = np.empty_like(x)
    _each(name, x, y)
    with np.errstate(invalid="ignore"):
        exact = expected(x)
    np.testing.assert_array_equal(y, exact)
    np.testing.assert_array_equal(np.signbit(y[y == 0]), np.signbit(exact[exact == 0]))


@nb.njit(error_model="numpy")
def _plain(z, y):  # type: ignore[no-untyped-def]
    for k in range(len(z)):
        y[k] = f.activate(z[k], f.PLAIN) + f.activate_back(z[k], z[k], z[k], f.PLAIN)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_plain_is_the_identity(kind):
    """The plain activation is the identity, forward and backward."""
    z = np.array([-2.5, 0.0, 7.0], kind)
    y = np.empty_like(z)
    _plain(z, y)
    np.testing.assert_array_equal(y, 2 * z)


@nb.njit(error_model="numpy")
def _logarithms_back(x, slope, result):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        result[k] = f.logarithm_back(x[k], slope[k])


def test_a_logarithms_slope_has_the_sign_of_x_and_is_0_at_0():
    """As in autograd, the slope is the quotient times sign(x): 0 at x = 0, and NaN if it isn't finite there."""
    x = np.array([2, -2, 0, 0, 0, np.nan], np.float32)
    slope = np.array([3, 3, 3, np.inf, np.nan, 1], np.float32)
    result = np.empty_like(x)
    _logarithms_back(x, slope, result)
    np.testing.assert_allclose(result, np.array([1.5, -1.5, 0, np.nan, np.nan, np.nan]), rtol=1e-6)


# Every kink, both sides of it, and points in general position.
_WEIGHTS = np.append(np.arange(-160, 161, dtype=np.float32) / 64, np.float32(np.nan))


@nb.njit(error_model="numpy")
def _slopes(name, w, of_nau, squared, slope):  # type: ignore[no-untyped-def]
    for k in range(len(w)):
        if name == "sparsity":
            slope[k] = f.sparsity_slope(w[k], of_nau, squared)
        else:
            slope[k] = f.out_of_bounds_slope(w[k], of_nau, squared)


@pytest.mark.parametrize("regulariser", [sparsity, out_of_bounds])
@pytest.mark.parametrize("kind", ["NAU", "NMU"])
@pytest.mark.parametrize("shape", ["linear", "squared"])
def test_the_slopes_of_regularisers_are_autograds(regulariser, kind, shape):
    """The closed forms are torch's derivatives of the units' regularisers, at the kinks too."""
    slope = np.empty_like(_WEIGHTS)
    _slopes(regulariser.__name__, _WEIGHTS, kind == "NAU", shape == "squared", slope)
    weight = torch.from_numpy(_WEIGHTS[:-1, None, None]).requires_grad_()
    regulariser(weight, kind, shape).sum().backward()
    torch.testing.assert_close(torch.from_numpy(slope[:-1]), weight.grad[:, 0, 0])
