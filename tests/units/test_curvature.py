"""The loss of one observation over two weights: its values, its units, and its zeros."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from units.curvature import DRAFT, EPSILONS, FINAL, Observation, nac_mul_exact, nac_mul_loss, nmu_exact, nmu_loss
from units.nac import nac_add, nac_mul
from units.nmu import nmu

# (w1, w2); losses of NAC• with each of EPSILONS and of the NMU, in the draft and in the paper; None: out of range.
VALUES = [
    ((1, 1), (4.9e-13, 0.5041, 64, 0), (6.7e-13, 0.6889, 84.64, 0)),
    ((-1, 1), (4.9e-13, 0.5041, 64, 0), (6.7e-13, 0.6889, 84.64, 0)),
    ((0, 1), (126.56, 126.34, 105.06, 126.56), (174.24, 173.98, 148.84, 174.24)),
    ((0.3, 0), (105.0625,) * 4, (148.84,) * 4),
    ((0.5, 0.5), (91.641, 89.659, 73.031, 88.772), (129.58, 127.04, 106.13, 123.21)),
    ((1, 0.5), (62.345, 60.710, 47.094, 41.441), (91.524, 89.385, 71.692, 57.76)),
    ((1, -1), (124.57, 124.69, 125.40, None), (172.25, 172.36, 173.06, None)),
    ((0, -1), (1e28, 7876.6, 105.06, None), (1e28, 7534.2, 148.84, None)),
]
LARGEST = {"draft": (1e28, 7876.6, 125.40, 127.73), "final": (1e28, 7534.2, 173.06, 178.52)}
EXACT_AT_MINUS_1 = {"draft": (0.08889, 0.05822), "final": (0.07576, 0.04605)}
EXACT_AT_1 = {"draft": (1, 0.9689, 0.6928), "final": (1, 0.9690, 0.6997)}
OBSERVATIONS = {"draft": DRAFT, "final": FINAL}
every_observation = pytest.mark.parametrize("name", OBSERVATIONS)


def losses(observation: Observation, w1: object, w2: object) -> list[np.ndarray]:
    """Return the losses of NAC• for each epsilon, and that of the NMU if w2 is in its range."""
    values = [nac_mul_loss(w1, w2, observation, epsilon) for epsilon in EPSILONS]
    return values + ([nmu_loss(w1, w2, observation)] if np.min(w2) >= 0 else [])


@pytest.mark.parametrize(("at", "draft", "final"), VALUES)
def test_the_loss_has_its_values(at: tuple[float, float], draft: tuple, final: tuple) -> None:
    """At each point of the table the loss is the known one, to the digits of the table."""
    for observation, expected in ((DRAFT, draft), (FINAL, final)):
        known = [value for value in expected if value is not None]
        for value, exact in zip(losses(observation, *at), known, strict=True):
            assert value == pytest.approx(exact, rel=0.02 if exact < 1e-6 else 1e-4, abs=1e-20)


@every_observation
def test_the_largest_loss_of_the_square(name: str) -> None:
    """The largest loss on the grid of the figure is the known one, for each epsilon and the NMU."""
    w1, signed, positive = np.linspace(-1, 1, 201), np.linspace(-1, 1, 201)[:, None], np.linspace(0, 1, 201)[:, None]
    values = [*losses(OBSERVATIONS[name], w1, signed), losses(OBSERVATIONS[name], w1, positive)[-1]]
    assert [values.max() for values in values] == pytest.approx(LARGEST[name], rel=1e-4)


@every_observation
@given(w1=st.floats(-1, 1), w2=st.floats(0, 1))
def test_the_loss_is_that_of_the_units(name: str, w1: float, w2: float) -> None:
    """The loss is the squared error of the project's own units with these weights."""
    observation = OBSERVATIONS[name]
    first = w1 * torch.tensor(observation.subsets, dtype=torch.float64)
    second = torch.full((1, 2), w2, dtype=torch.float64)
    s = nac_add(torch.tensor([observation.inputs], dtype=torch.float64), first)
    for unit, value in ((nac_mul, nac_mul_loss(w1, w2, observation)), (nmu, nmu_loss(w1, w2, observation))):
        assert float(value) == pytest.approx((float(unit(s, second)) - observation.target) ** 2, rel=1e-9, abs=1e-12)


@every_observation
@given(w1=st.floats(-1, 1), w2=st.floats(-1, 1))
def test_symmetries_of_the_loss(name: str, w1: float, w2: float) -> None:
    """NAC•'s loss is even in w1 everywhere, the NMU's at w2 = 1, so (-1, 1) is as exact as (1, 1)."""
    observation = OBSERVATIONS[name]
    for epsilon in EPSILONS:
        assert nac_mul_loss(w1, w2, observation, epsilon) == nac_mul_loss(-w1, w2, observation, epsilon)
    assert nmu_loss(w1, 1.0, observation) == pytest.approx(nmu_loss(-w1, 1.0, observation))


@every_observation
@given(w2=st.floats(-1, 1).filter(lambda w2: abs(w2) > 0.01), epsilon=st.sampled_from(EPSILONS))
def test_exact_solutions_have_no_loss(name: str, w2: float, epsilon: float) -> None:
    """At an exact solution the loss is 0; with an epsilon of 1, w2 < 0 has no solution."""
    observation = OBSERVATIONS[name]
    w1 = float(nac_mul_exact(w2, observation, epsilon))
    if math.isnan(w1):
        assert w2 < 0
        assert nac_mul_loss(0.0, w2, observation, epsilon) > 0
    else:
        assert not (w2 < 0 and epsilon == 1)
        assert nac_mul_loss(w1, w2, observation, epsilon) < 1e-12 * observation.target**2
    if w2 > 0:
        solutions = nmu_exact(w2, observation)
        assert (nmu_loss(solutions, w2, observation) < 1e-12 * observation.target**2).all()
        assert solutions[0] <= -1 <= 1 <= solutions[1] or abs(solutions) == pytest.approx(1)


@every_observation
def test_positions_of_undesired_solutions(name: str) -> None:
    """At w2 = -1, two epsilons have a solution at the known w1; at w2 = 1, epsilon shifts the desired solution."""
    observation = OBSERVATIONS[name]
    undesired = [float(nac_mul_exact(-1.0, observation, epsilon)) for epsilon in EPSILONS]
    assert undesired[:2] == pytest.approx(EXACT_AT_MINUS_1[name], abs=6e-6)
    assert math.isnan(undesired[2])
    grid = nac_mul_loss(np.linspace(-1, 1, 201), np.linspace(-1, -1e-9, 201)[:, None], observation, 1.0)
    assert grid.min() > {"draft": 105, "final": 148.8}[name]
    desired = [float(nac_mul_exact(1.0, observation, epsilon)) for epsilon in EPSILONS]
    assert desired == pytest.approx(EXACT_AT_1[name], abs=6e-5)


@every_observation
def test_the_target_is_the_product_of_the_sums(name: str) -> None:
    """The desired weights are exact: t = s_1 s_2 at w1 = 1, for the sums in the table."""
    observation = OBSERVATIONS[name]
    assert observation.sums == pytest.approx({"draft": (2.5, 4.5), "final": (2.2, 6.0)}[name])
    assert math.prod(observation.sums) == pytest.approx(observation.target)


def test_invalid_arguments_are_refused() -> None:
    """A w2 outside the NMU's range, an epsilon of 0 and a w2 of 0 are errors that state the rule."""
    with pytest.raises(ValueError, match=r"w2=1.5 was given, but 0 <= w2 <= 1"):
        nmu_loss(1.0, 1.5, DRAFT)
    with pytest.raises(ValueError, match=r"epsilon=0.0 was given, but epsilon > 0"):
        nac_mul_loss(1.0, 1.0, DRAFT, 0.0)
    with pytest.raises(ValueError, match=r"w2=0.0 was given, but w2 != 0"):
        nac_mul_exact(0.0, DRAFT)
    with pytest.raises(ValueError, match=r"w2=0.0 was given, but 0 < w2 <= 1"):
        nmu_exact(0.0, DRAFT)
