"""Bounds set by references, and the pass rate of a perfect learner."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from study.interface.criterion import Bound
from study.interface.references import KINDS, Kind, ReferenceCriterion, References, reference_bound

NAN, INF = float("nan"), float("inf")
STUDIES = 20_000


def pass_rate(kind: Kind, n: int, level: float = 0.99) -> float:
    """Simulate the rate at which another value passes the bound of n values, all from one normal distribution."""
    drawn = np.random.default_rng(n).normal(3.0, 2.0, (STUDIES, n + 1))
    bounds = [reference_bound(values, kind, level) for values in drawn[:, :n]]
    return float(np.mean(drawn[:, n] < np.array(bounds, float)))


@pytest.mark.parametrize("n", [2, 7, 9, 30])
def test_a_perfect_learner_passes_the_prediction_bound_at_the_level(n: int) -> None:
    """Another reference is below the bound at the rate of the level, within four standard errors."""
    assert pass_rate("prediction", n) == pytest.approx(0.99, abs=4 * math.sqrt(0.99 * 0.01 / STUDIES))


@pytest.mark.parametrize(("n", "rate"), [(2, 0.98), (7, 0.845), (9, 0.81), (30, 0.67)])
def test_a_perfect_learner_passes_the_bound_of_the_mean_less_often(n: int, rate: float) -> None:
    """The published criterion bounds the references' mean: its pass rate follows from Student's distribution.

    The published program used eight degrees of freedom with seven references, too, which made the rate 0.83.
    """
    exact = stats.t.cdf(stats.t.ppf(0.99, n - 1) / math.sqrt(n + 1), n - 1)
    assert exact == pytest.approx(rate, abs=0.015)
    assert stats.t.cdf(stats.t.ppf(0.99, 8) / math.sqrt(8), 6) == pytest.approx(0.83, abs=0.005)
    assert pass_rate("mean", n) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / STUDIES))


def test_the_bounds_are_those_of_the_textbooks() -> None:
    """The mean's bound is the end of Student's one-sided interval; a prediction's is that times sqrt(n + 1)."""
    values = np.array([0.21, 0.25, 0.19, 0.24, 0.22])
    mean = np.mean(values)
    upper = stats.ttest_1samp(values, 0.0, alternative="less").confidence_interval(0.99).high
    assert reference_bound(values, "mean", 0.99) == pytest.approx(upper, rel=1e-12)
    further = mean + (upper - mean) * math.sqrt(len(values) + 1)
    assert reference_bound(values, "prediction", 0.99) == pytest.approx(further, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_where_higher_is_better_the_bound_is_the_mirror_image(kind: Kind) -> None:
    values = np.array([0.91, 0.95, 0.89])
    mirrored = reference_bound(-values, kind, 0.9)
    assert mirrored is not None
    assert reference_bound(values, kind, 0.9, higher_is_better=True) == -mirrored


@pytest.mark.parametrize("kind", KINDS)
def test_one_reference_sets_no_bound(kind: Kind) -> None:
    """A single reference sets no bound, since it doesn't show a variance."""
    assert reference_bound([1.0], kind, 0.99) is None
    assert reference_bound([], kind, 0.99) is None
    assert reference_bound([1.0, 1.0], kind, 0.99) == 1.0


def test_references_that_do_not_vary_pass_their_own_bound() -> None:
    """A trial equal to the references passes, despite rounding in a mean of equal numbers."""
    same = {"error": np.full(3, 0.1), "accuracy": np.full(3, 0.7)}
    for name, bound in CRITERION.of(References(values=same)).items():
        assert name == "loss" or bound.holds(same[name]).all()


@pytest.mark.parametrize(("values", "level"), [([1.0, NAN], 0.9), ([1.0, INF], 0.9), ([1.0, 2.0], 1.0)])
def test_references_without_a_bound_are_refused(values: list[float], level: float) -> None:
    with pytest.raises(ValueError, match=r"finite|0 < level < 1"):
        reference_bound(values, "mean", level)


CRITERION = ReferenceCriterion(
    model="exact",
    higher_is_better={"error": False, "accuracy": True},
    keep={"r2": Bound(at_least=0.5)},
    bounds={"loss": Bound(below=1.0)},
)


def test_references_that_failed_to_learn_do_not_count() -> None:
    """Diverged references, those without a finite number and those failing `keep` are dropped and counted."""
    metrics = {
        "error": np.array([1.0, 2.0, NAN, 4.0, INF, NAN]),
        "accuracy": np.array([0.9, 0.8, NAN, 0.7, 0.6, NAN]),
        "r2": np.array([0.5, 0.9, NAN, 0.4, 0.9, NAN]),
    }
    references = CRITERION.select(np.array([True, True, True, True, True, False]), metrics)
    assert (references.count, references.dropped) == (2, 3)
    assert references.values["error"].tolist() == [1.0, 2.0]
    assert references.values["accuracy"].tolist() == [0.9, 0.8]


def test_all_bounds_together_define_success() -> None:
    """The criterion has the file's bounds and those of the references; each reference bound limits the worse side."""
    values = {"error": np.array([1.0, 2.0, 1.5]), "accuracy": np.array([0.9, 0.8, 0.7])}
    bounds = CRITERION.of(References(values=values))
    assert list(bounds) == ["loss", "error", "accuracy"]
    assert bounds["loss"] == Bound(below=1.0)
    assert bounds["error"] == Bound(at_most=reference_bound(values["error"], "prediction", 0.99))
    assert bounds["accuracy"].at_most is None
    text = CRITERION.in_words(References(values=values))
    assert text.startswith("loss < 1.0 and error <= ")
    assert text.endswith("(99% prediction bound of 3 references)")


def test_too_few_references_judge_no_trial() -> None:
    """With too few references no trial is judged, not even by the file's bounds."""
    few = References(values={"error": np.array([1.0]), "accuracy": np.array([0.9])})
    assert CRITERION.of(few) == {}
    assert CRITERION.in_words(few) == ""
