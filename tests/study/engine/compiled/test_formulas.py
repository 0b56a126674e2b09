"""What single numbers can do in compiled code, and formulas at the corners that trained networks don't visit."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from study.engine.compiled import formulas as f
from study.engine.compiled import intrinsics

_CORNERS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1e-45, -1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan]


@nb.njit(error_model="numpy")
def _each(which, x, y):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        y[k] = intrinsics.floor(x[k]) if which == "floor" else intrinsics.root(x[k])


@pytest.mark.parametrize(("name", "expected"), [("floor", np.floor), ("root", np.sqrt)])
def test_floor_and_root_are_numpys_bits(name, expected):
    """Over all magnitudes and signs, -0, infinity and NaN too."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=1000) * 10.0 ** rng.uniform(-44, 38, 1000), _CORNERS])
    x = x.astype(np.float32)
    y = np.empty_like(x)
    _each(name, x, y)
    with np.errstate(invalid="ignore"):
        wanted = expected(x)
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(np.signbit(y[y == 0]), np.signbit(wanted[wanted == 0]))


@nb.njit(error_model="numpy")
def _plain(z, y):  # type: ignore[no-untyped-def]
    for k in range(len(z)):
        y[k] = f.activate(z[k], f.PLAIN) + f.activate_back(z[k], z[k], z[k], f.PLAIN)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_plain_is_the_identity(kind):
    """Forward and backward; `gradients` leaves the call out."""
    z = np.array([-2.5, 0.0, 7.0], kind)
    y = np.empty_like(z)
    _plain(z, y)
    np.testing.assert_array_equal(y, 2 * z)


@nb.njit(error_model="numpy")
def _logarithms_back(x, slope, result):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        result[k] = f.logarithm_back(x[k], slope[k])


def test_a_logarithms_slope_has_the_sign_of_x_and_is_0_at_0():
    """Like autograd's, that is the quotient times sign(x): 0 times infinity is NaN."""
    x = np.array([2, -2, 0, 0, 0, np.nan], np.float32)
    slope = np.array([3, 3, 3, np.inf, np.nan, 1], np.float32)
    result = np.empty_like(x)
    _logarithms_back(x, slope, result)
    np.testing.assert_allclose(result, np.array([1.5, -1.5, 0, np.nan, np.nan, np.nan]), rtol=1e-6)
