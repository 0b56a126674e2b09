"""Means to a desired precision: looks, stopping rule, interval, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from study.statistics import MeanPrecision

SAMPLING = MeanPrecision(0.5, 20, 200)


def test_the_first_look_is_late_enough() -> None:
    """Looks begin at 40 seeds or more, after whole batches; if the maximum is smaller, it is the only look."""
    assert SAMPLING.looks == tuple(range(40, 201, 20))
    assert MeanPrecision(0.5, 7, 100).looks[0] == 42
    assert MeanPrecision(0.5, 20, 30).looks == (30,)


def test_the_rule_is_students_interval() -> None:
    """A sample is narrow exactly if scipy's interval is; the interval is never narrower than requested."""
    rng = np.random.default_rng(0)
    for scale in (0.5, 1.5, 1.7, 4.0):
        x = rng.normal(3.0, scale, 40)
        low, high = stats.t.interval(0.95, 39, x.mean(), stats.sem(x))
        assert SAMPLING.is_narrow(x) == ((high - low) / 2 <= 0.5)
        reach = max((high - low) / 2, 0.5)
        assert SAMPLING.interval(x) == pytest.approx((x.mean() - reach, x.mean() + reach))


def test_samples_without_a_deviation_continue() -> None:
    """Equal and single values have no interval, and the expected number of seeds is the maximum."""
    for values in ([], [1.0], [2.0] * 40, [0.1] * 3):  # the last has a deviation by rounding
        assert not SAMPLING.is_narrow(values)
        assert SAMPLING.interval(values) is None
        assert SAMPLING.expected(values) == 200


def test_normal_means_are_held() -> None:
    """Of 2,000 studies that follow the rule, 95% cover the mean, apart from chance."""
    sampling = MeanPrecision(0.25, 20, 400)
    rng, holds = np.random.default_rng(7), 0
    for _ in range(2000):
        x = rng.normal(size=400)
        stop = next((n for n in sampling.looks if sampling.is_narrow(x[:n])), 400)
        low, high = sampling.interval(x[:stop]) or (np.nan, np.nan)
        holds += bool(low <= 0 <= high)
    assert holds / 2000 >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize("wrong", [{"half_width": 0.0}, {"half_width": np.inf}, {"batch": 0}, {"most": 10}])
def test_impossible_arguments_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must hold"):
        MeanPrecision(**({"half_width": 0.5, "batch": 20, "most": 200} | wrong))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="finite"):
        SAMPLING.is_narrow([np.nan, 1.0])
