"""A standardised rate is the rate under the population's starts, whatever the sample's starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.statistics import standardised_rate, wilson

LEVELS = st.lists(
    st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=8
)


def test_an_unlucky_sample_is_corrected() -> None:
    """With 50 trials and too many hard starts, the rate is that of equal halves."""
    estimate = standardised_rate([9, 4], [10, 40], [0.5, 0.5])
    assert estimate is not None
    assert estimate.rate == pytest.approx((0.9 + 0.1) / 2)
    assert estimate.interval[0] > wilson(13, 50)[0]


def test_starts_that_explain_outcomes_shrink_the_interval() -> None:
    """If levels explain outcomes, the interval is narrower than the raw rate's; otherwise it is as wide."""
    decided = standardised_rate([25, 0], [25, 25], [0.5, 0.5])
    alike = standardised_rate([13, 12], [25, 25], [0.5, 0.5])
    assert decided is not None
    assert alike is not None
    low, high = wilson(25, 50)
    assert np.ptp(decided.interval) < (high - low) / 2
    assert np.ptp(alike.interval) == pytest.approx(high - low, rel=0.05)


@given(LEVELS)
def test_shares_of_the_sample_give_its_own_rate(levels: list[tuple[int, int]]) -> None:
    """If the population has the sample's shares, the rate is the raw one, always within its interval."""
    solved, judged = map(list, zip(*levels, strict=True))
    if not sum(judged):
        assert standardised_rate(solved, judged, [1] * len(judged)) is None
        return
    estimate = standardised_rate(solved, judged, judged)
    assert estimate is not None
    assert estimate.rate == pytest.approx(sum(solved) / sum(judged))
    assert 0 <= estimate.interval[0] <= estimate.rate + 1e-12
    assert estimate.rate - 1e-12 <= estimate.interval[1] <= 1


def test_levels_with_few_trials_are_joined() -> None:
    """A level without a trial is merged into the next, and the last ones into the previous."""
    estimate = standardised_rate([0, 4, 0, 9, 1, 0], [0, 5, 3, 10, 2, 1], [1, 1, 1, 1, 1, 1])
    assert estimate is not None
    assert estimate.strata == (1, 5)
    assert estimate.rate == pytest.approx(4 / 5 * 2 / 6 + 10 / 16 * 4 / 6)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (([1], [2], [1, 1]), "must have equal lengths, but got 1, 1 and 2"),
        (([3], [2], [1]), "0 <= successes <= n must hold"),
        (([1], [2], [0]), "not all 0"),
        (([1], [2], [-1]), "shares must be >= 0"),
    ],
)
def test_impossible_levels_are_refused(levels: tuple[list[int], list[int], list[float]], message: str) -> None:
    """The message has the value given and the rule."""
    with pytest.raises(ValueError, match=message):
        standardised_rate(*levels)
